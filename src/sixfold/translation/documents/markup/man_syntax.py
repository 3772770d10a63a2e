"""Manual pages in roff: the macros and escapes that the two readers of the format share."""

from __future__ import annotations

import re


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Macros whose line is a part of the sentence around it: fonts of man, and words of mdoc.
INLINE_MACROS = _names(
    "B I SM SB BI BR IB IR RB RI MR "
    "Ad An Ap Aq Ar Bq Brq Bsx Bx Cd Cm Dq Dv Dx Em Er Ev Fa Fl Fn Ft Fx Ic In Li Lk Ms Mt Nm No Ns Nx "
    "Ox Pa Pf Pq Ql Qq Sq St Sx Sy Tn Ux Va Vt Xr"
)
HEADINGS = _names("SH SS Sh Ss")
# Sections that programs know by their names: whatis and mandb read the first, mandoc lays out the second.
KEPT_HEADING = re.compile(r'[ \t]*"?(?:NAME|SYNOPSIS)"?[ \t]*', re.I)
TAGGED = _names("TP TQ")  # the next line is a tag
# Blocks whose lines stay: by the macro that begins one, the macro that ends it.
VERBATIM = {
    "nf": "fi", "EX": "EE", "TS": "TE", "EQ": "EN", "PS": "PE", "Vb": "Ve", "SY": "YS", "DS": "DE", "CS": "CE",
    "G1": "G2",
}  # fmt: skip
DEFINITIONS = _names("de de1 am ig dei ami")  # up to a line ".." or with the macro that is named
MACRO = re.compile(r"(?P<control>[.'])[ \t]*(?P<name>[^\s\\\"]{1,20})?(?P<rest>.*)")
FONT = r"\\f(?:[BIRPCS1234]|\((?:..)|\[[^\]\n]*\])"
ROMAN, PREVIOUS = "R", "P"  # fonts: that of running text, and the one before the current one
_FONT_NAMES = {"1": ROMAN, "2": "I", "3": "B", "4": "BI", "": PREVIOUS}
# Characters that escapes stand for.
CHARACTERS = {
    r"\-": "-", r"\e": "\\", r"\\": "\\", r"\ ": "\u00a0", r"\~": "\u00a0", r"\0": "\u00a0", r"\&": "",
    r"\:": "", r"\%": "",
    r"\|": "", r"\^": "", r"\/": "", r"\,": "", r"\)": "", r"\'": "'", r"\`": "`", r"\.": ".",
    "aq": "'", "dq": '"', "lq": "“", "rq": "”", "oq": "‘", "cq": "’", "em": "—", "en": "–", "bu": "•", "co": "©",
    "rg": "®", "tm": "™", "ga": "`", "ha": "^", "ti": "~", "rs": "\\", "at": "@", "sh": "#", "Do": "$", "bv": "|",
    "<-": "←", "->": "→", "mu": "×", "+-": "±", "de": "°", "ss": "ß", "hy": "-", "mi": "−", "pl": "+", "eq": "=",
    "la": "⟨", "ra": "⟩", "Fo": "«", "Fc": "»", "<=": "≤", ">=": "≥", "!=": "≠", "sc": "§", "Eu": "€", "Po": "£",
    ":a": "ä", ":o": "ö", ":u": "ü", ":A": "Ä", ":O": "Ö", ":U": "Ü", "'e": "é", "'a": "á", "'i": "í", "'o": "ó",
    "'u": "ú", "`e": "è", "`a": "à", "~n": "ñ", ",c": "ç", "^e": "ê", "^o": "ô", "^a": "â", "oA": "Å", "oa": "å",
    "/o": "ø", "/O": "Ø",
}  # fmt: skip
STRINGS = {"lq": "“", "rq": "”", 'L"': "“", 'R"': "”", "Aq": "'", "Tm": "™", "R": "®", "em": "—"}  # of \*(lq
_ARGUMENT = r"(?:\([^\s]{2}|\[[^\]\n]*\]|[^\s])"
ESCAPE = re.compile(
    rf"(?P<font>{FONT})|\\\((?P<two>[^\s]{{2}})|\\\[(?P<name>[^\]\n]{{1,40}})\]"
    r"|\\\*(?:\((?P<string>[^\s]{2})|\[(?P<named>[^\]\n]*)\]|(?P<one>[^\s\[(]))"
    r"|\\[-e\\ ~0&:%|^/,)'`.]|\\s(?:[-+]?\d|[-+]?\(\d\d|\[[^\]\n]*\]|'[^'\n]*')"
    rf"|\\[nkmFgVYM]{_ARGUMENT}|\\[hvwbDlLoSXZNHRAC]'[^'\n]*'|\\[^\s]",
)


def font_of(escape: str) -> str:
    """Return the name of the font that an escape such as `\\fB`, `\\f(CW` or `\\f[R]` sets; P is the previous one."""
    name = escape[2:].strip("([] ")
    return _FONT_NAMES.get(name, name)


class Fonts:
    """The current font of a page and the one before, to which `\\fP` goes back."""

    def __init__(self) -> None:
        self.current = self._previous = ROMAN

    def set(self, escape: str) -> bool:
        """Follow an escape, and return whether it changes the font."""
        name = font_of(escape)
        before, after = self.current, self._previous if name == PREVIOUS else name
        self.current, self._previous = after, before
        return before != after


def character_of(match: re.Match[str]) -> str | None:
    """Return the character that an escape stands for; None if it stands for none that is known."""
    if match["font"]:
        return None
    if (string := match["string"] or match["named"] or match["one"]) is not None:
        return STRINGS.get(string)
    name = match["two"] or match["name"]
    if name is not None and re.fullmatch(r"u[0-9A-F]{4,5}", name):
        return chr(int(name[1:], 16))
    return CHARACTERS.get(name if name is not None else match[0])
