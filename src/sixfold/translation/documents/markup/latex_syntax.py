"""LaTeX: the commands and environments that the two readers of the format share, and its special characters."""

from __future__ import annotations

import re
import unicodedata


def names(words: str) -> frozenset[str]:
    """Return the names that stand in a text with spaces between them."""
    return frozenset(words.split())


# Commands whose argument is a part of the sentence around it; of two arguments it is the last.
TEXT_COMMANDS = names(
    "emph textbf textit textsl textsc textsf textrm textup textmd textnormal text underline uline uwave sout st hl "
    "mbox enquote alert structure textsuperscript textsubscript"
)
SECOND_ARGUMENT = names("href textcolor colorbox hyperref")
# Commands whose last argument is a text by itself.
OWN_TEXT = names(
    "part chapter section subsection subsubsection paragraph subparagraph caption captionof title subtitle frametitle "
    "framesubtitle footnote footnotetext thanks marginpar marginnote todo"
)
INSIDE_SENTENCES = names("footnote footnotetext thanks marginpar marginnote todo index label")  # they do not end one
VERBATIM = names(
    "verbatim verbatim* Verbatim BVerbatim LVerbatim lstlisting minted comment filecontents filecontents* alltt "
    "tikzpicture pgfpicture picture equation equation* align align* alignat alignat* gather gather* multline multline* "
    "eqnarray eqnarray* math displaymath flalign flalign* array forest tikzcd thebibliography algorithmic algorithm2e "
    "asy luacode pycode sageblock pspicture bytefield prooftree macrocode"
)
DEFINITIONS = names(
    "newcommand renewcommand providecommand DeclareMathOperator newenvironment renewenvironment def edef gdef xdef let "
    "newtheorem DeclareRobustCommand NewDocumentCommand RenewDocumentCommand newcolumntype lstset hypersetup tikzset "
    "setlength addtolength newlength newcounter setcounter pagestyle thispagestyle usepackage RequirePackage input "
    "include bibliography bibliographystyle graphicspath geometry documentclass definecolor titleformat"
)
DECLARATIONS = names("bf it em sc sl rm sf tt bfseries itshape scshape slshape sffamily rmfamily small large")
BARS = re.compile(r"\|\\[A-Za-z@]")  # in documents where text between bars is verbatim
SYMBOLS = {"&": "&", "%": "%", "$": "$", "#": "#", "_": "_", "{": "{", "}": "}", " ": " ", "-": "", "/": "", "@": ""}
CHARACTERS = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "ldots": "…", "dots": "…", "textendash": "–",
    "textemdash": "—", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "aa": "å", "AA": "Å", "o": "ø", "O": "Ø",
    "l": "ł", "L": "Ł", "i": "ı", "S": "§", "P": "¶", "copyright": "©", "textless": "<", "textgreater": ">",
    "textbar": "|", "textquotedbl": '"', "texttimes": "×", "textdegree": "°", "euro": "€", "pounds": "£",
}  # fmt: skip
_COMBINING = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307",
    "u": "\u0306", "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "b": "\u0331", "r": "\u030a",
    "k": "\u0328",
}  # fmt: skip
ACCENT = re.compile(
    r"""\\(?:(?P<sign>['`^"~=.])\s*|(?P<letter>[uvHcdbrk])(?=[\s{])\s*)"""
    r"""(?:\{\\?(?P<braced>[A-Za-z]?)\}|\\?(?P<bare>[A-Za-z]))"""
)
_DECODED = re.compile(
    rf"{ACCENT.pattern}|\\(?P<word>[A-Za-z]+)(?:\{{\}}|[ \t]*\n?(?![A-Za-z]))?|\\(?P<symbol>[^A-Za-z])"
    "|(?P<other>~|---|--|``|'')",
    re.S,
)
_OTHER = {"~": "\u00a0", "---": "—", "--": "–", "``": "“", "''": "”"}
_ESCAPED = {
    "&": "\\&", "%": "\\%", "$": "\\$", "#": "\\#", "_": "\\_", "{": "\\{", "}": "\\}", "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}", "\\": "\\textbackslash{}", "\u00a0": "~", "“": "``", "”": "''",
}  # fmt: skip
_LINE_FEEDS = re.compile(r"\n[ \t\n]*")
_SPECIAL = re.compile("[&%$#_{}~^\\\\\u00a0“”]")


def decode(text: str) -> str:
    """Return the characters that a text of LaTeX stands for."""
    return _DECODED.sub(_decode_match, text) if re.search(r"[\\~`']|--", text) else text


def _decode_match(match: re.Match[str]) -> str:
    if (accent := match["sign"] or match["letter"]) is not None:
        letter = match["braced"] if match["braced"] is not None else match["bare"]
        return unicodedata.normalize("NFC", letter + _COMBINING[accent])
    if match["word"] is not None:
        return CHARACTERS.get(match["word"], match[0])
    if match["symbol"] is not None:
        return SYMBOLS.get(match["symbol"], " " if match["symbol"].isspace() else match[0])
    return _OTHER[match["other"]]


def escape(text: str) -> str:
    """Return a text as LaTeX reads it, without line feeds, of which two would end the paragraph."""
    return _SPECIAL.sub(lambda match: _ESCAPED[match[0]], _LINE_FEEDS.sub(" ", text))
