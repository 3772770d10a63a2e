"""Random documents in reStructuredText, LaTeX and roff, and what a translation of them must keep."""

import re
import unicodedata
from collections import Counter

PROSE_WORDS = ["the", "old", "lighthouse", "stands", "above", "seven", "grey", "houses", "where", "ever", "sings"]
PROSE_ATOMS = ["{name}", "%s", "https://example.org/a_b?c=1", "me@example.org", "%(total)d", "12.5%"]


def words(chance, special=()):
    chosen = [chance.choice(PROSE_WORDS) for _ in range(chance.randint(2, 8))]
    if chance.random() < 0.4:
        chosen.insert(chance.randint(1, len(chosen)), chance.choice([*PROSE_ATOMS, *special]))
    return " ".join(chosen)


def text_of(chance, inline, special=()):
    """Return some words, with inline markup between them, and perhaps in several lines."""
    parts = [words(chance, special)]
    for _ in range(chance.randint(0, 3)):
        parts += [chance.choice(inline).format(words(chance)), words(chance, special)]
    return chance.choice([" ", " ", "\n"]).join(parts) + chance.choice([".", "", "!"])


RST_INLINE = [
    "**so {}**", "*so {}*", "``a = {{b}} * c``", "`see {} <https://a.b/c_d>`_", ":ref:`so {} <target>`", "`the place`_",
    ":func:`call_me`", "|name|", "[1]_",
]  # fmt: skip
RST_KEPT = [
    ".. code-block:: python\n   :linenos:\n\n   say('hello there')\n", ".. a comment that\n   nobody reads\n",
    ".. image:: a.png\n   :alt: so\n", ".. _the place: https://example.org/\n",
    "+-----+-----+\n| old | new |\n+-----+-----+\n",
    "====  ====\nold   new\n====  ====\n", ">>> 1 + 1 # so it is\n2\n", ".. math:: a *b* c\n",
]  # fmt: skip


def rst(chance):
    def text(indent=0):
        made = text_of(chance, RST_INLINE, ["\\*so", "\\|so", "so\\_", "<b>"])
        return made.replace("\n", "\n" + " " * indent)

    def block():
        return chance.choice(
            [
                text(), text(), f"- {text(2)}\n- {text(2)}\n\n  - {text(4)}", f"1. {text(3)}\n2. {text(3)}",
                f".. note:: {text(3)}", f".. warning::\n   :name: x\n\n   {text(3)}",
                f":param x: {text(3)}\n:type x: old house",
                f".. [1] {text(3)}", f"{words(chance)}\n   {text(3)}", f"{text()}::\n\n   as it\n     is here",
                f".. versionadded:: 2.1\n   {text(3)}", f".. py:function:: call(me)\n\n   {text(3)}", f"   {text(3)}",
                f"| {words(chance)}\n| {words(chance)}", f"-a, --all  {words(chance)}",
                chance.choice(RST_KEPT).rstrip(),
            ]
        )  # fmt: skip

    def title():
        made = words(chance)
        line = chance.choice("=-~") * (len(made) + chance.randint(0, 2))
        return chance.choice([f"{made}\n{line}", f"{line}\n{made}\n{line}"])

    blocks = [title()]
    for _ in range(chance.randint(1, 6)):
        blocks.append(block() if chance.random() < 0.8 else title())
    return "\n\n".join(blocks) + "\n"


def rst_outline(text):
    lines = [line.rstrip() for line in text.split("\n")]
    for number, line in enumerate(lines[1:], 1):
        if re.fullmatch(r"([=~-])\1{3,}", line) and lines[number - 1].strip() and "  " not in line:
            width = sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in lines[number - 1])
            assert len(line) >= width, lines[number - 1 : number + 1]
    kept = [
        line
        for line in lines
        if re.match(r"\s*(\.\. (?!\[|note)|\+|\| |:linenos|====  |>>>|say\(|as it|is here|nobody)", line)
    ]
    kept = [re.sub(r"^\| (?!old \| new \|$).*[^\W\d_].*", "| line", line) for line in kept]
    links = re.findall(r"``[^`]+``|<[^<>\s]+>`_?|:\w+:`(?:call_me)?|`the place`_|\|name\||\[1\]_", text)
    unescaped = re.sub(r"\\.", "x", text)
    marks = [len(re.findall(r"(?<!\*)\*\*(?!\*)", unescaped)), len(re.findall(r"^\s*(?:-|\d\.) ", text, re.M))]
    return kept, Counter(links), marks


MAN_INLINE = [
    "\\fBso {}\\fR", "\\fIfile\\fP", "\\fB\\-\\-all\\fR", "\n.B \\-x\n", "\n.BR printf (3),\n", "\\(lq{}\\(rq",
    "caf\\('e",
    "\n.I so\n",
]  # fmt: skip
MAN_KEPT = [
    ".nf\nas it is\n  here\n.fi", ".EX\nsay hello \\-x\n.EE", ".\\\" a comment that nobody reads",
    ".TS\nl l.\nold\tnew\n.TE",
    ".sp 2", ".RS 4", ".RE", ".de XX\nold house\n..", ".if n .ad l",
]  # fmt: skip


def man(chance):
    def text():
        made = text_of(chance, MAN_INLINE, ["\\-", "a\\\\b", "\\&.so", "'so'"])
        return re.sub(r"[ \n]*\n[ \n]*", "\n", made).strip("\n")

    def block():
        return chance.choice(
            [
                f".PP\n{text()}", f".TP\n.B \\-a\n{text()}", f".TP\n\\fBso\\fR\n{text()}", f".IP \\(bu 2\n{text()}",
                f".SH {words(chance)}\n{text()}", f'.SS "{words(chance)}"\n{text()}', f"\n{text()}",
                chance.choice(MAN_KEPT),
                f'.IP "{words(chance)}" 4\n{text()}', f"  {words(chance)}",
            ]
        )  # fmt: skip

    head = '.TH OLD 1 "2024\\-01\\-02" "House 1" "Old houses"\n.SH NAME\nold, older \\- '
    body = "\n".join(block() for _ in range(chance.randint(1, 6)))
    return f"{head}{words(chance)}\n.SH SYNOPSIS\n.B old\n[\\fIfile\\fR ...]\n.SH DESCRIPTION\n{text()}\n{body}\n"


def man_outline(text):
    kept = [re.sub(r"^(\.S[HS]|\.IP (?=\")).*", r"\1", line) for line in text.split("\n") if re.match(r"[.']", line)]
    inline = [line for line in kept if re.match(r"\.[BI]R? ", line)]
    fonts = Counter(re.findall(r"\\f[BIRP]|\\fIfile\\fP|\\fB\\-\\-all\\fR", text))
    return [line for line in kept if line not in inline], Counter(inline), fonts


LATEX_INLINE = [
    "\\textbf{{so {}}}", "\\emph{{so {}}}", "$a_b^{{2}} < c$", "\\cite[p.~2]{{key_a}}", "\\ref{{fig:a}}", "\\LaTeX{{}}",
    "\\LaTeX\\ ", "\\verb|a_b{{c|", "{{\\bf so {}}}", "\\footnote{{so {}}}", "\\href{{https://a.b/c_d}}{{so {}}}",
    "caf\\'e",
    "% a comment\n", "\\(x + y\\)", "``{}''", "\\url{{https://a.b/c_d}}",
]  # fmt: skip
LATEX_KEPT = [
    "\\begin{verbatim}\nas it is & so %\n\\end{verbatim}", "\\[ a = b_c \\]", "$$ x & y $$", "\\label{a_b}",
    "\\begin{equation}\n a &= b \\text{ where } c\n\\end{equation}", "\\newcommand{\\old}[1]{the #1}", "% old house",
    "\\includegraphics[width=2cm]{old_house}", "\\bigskip",
]  # fmt: skip


def latex(chance):
    def text():
        special = ["50\\%", "A \\& B", "\\#1", "a\\_b", "\\{so\\}", "5~m", "so---so"]
        made = text_of(chance, LATEX_INLINE, [])
        made = re.sub(r"(?<![\\{_/])(%s|%\(total\)d|12\.5%|\{name\}|https://example\.org/a_b\?c=1)", "so", made)
        return f"{made} {chance.choice(special)}".replace("\n ", "\n")

    def block():
        return chance.choice(
            [
                text(), text(), f"\\section{{{words_only(chance)}}}", f"\\subsection*{{{text()}}}\n{text()}",
                f"\\begin{{itemize}}\n\\item {text()}\n\\item[{words_only(chance)}] {text()}\n\\end{{itemize}}",
                f"\\begin{{tabular}}{{l|r}}\n{words_only(chance)} & {text()} \\\\ \\hline\n\\end{{tabular}}",
                f"\\begin{{figure}}[ht]\n\\centering\n\\caption[so]{{{text()}}}\n\\end{{figure}}",
                chance.choice(LATEX_KEPT),
                f"{text()}\\\\[2pt]\n{text()}",
            ]
        )  # fmt: skip

    body = "\n\n".join(block() for _ in range(chance.randint(1, 6)))
    if chance.random() < 0.3:
        return body + "\n"
    head = f"\\documentclass{{article}}\n\\title{{{words_only(chance)}}}\n\\newcommand{{\\x}}{{old house}}\n"
    return f"{head}\\begin{{document}}\n{body}\n\\end{{document}}\nold house\n"


def words_only(chance):
    return " ".join(chance.choice(PROSE_WORDS) for _ in range(chance.randint(2, 5)))


def latex_outline(text):
    assert len(re.findall(r"(?<!\\)\{", text)) == len(re.findall(r"(?<!\\)\}", text)) or "a_b{c" in text
    bare = re.sub(r"\\text(?:backslash|asciitilde|asciicircum)|\\[{}%&#_$ ]|\\'e", " ", text).replace("{}", " ")
    verbatim = re.compile(
        r"\\begin\{(?:verbatim|equation)\}.*?\\end\{\w+\}|(?<!\\)\\\[.*?\\\]|\$\$.*?\$\$|^% old house$", re.S | re.M
    )
    kept, bare = verbatim.findall(bare), verbatim.sub("", bare)
    commands = re.findall(r"\\[A-Za-z]+\*?|\\\\|\$[^$]+\$|&|%.*|\{[a-z]{1,3}[_:][a-z]\}", bare)
    return kept, Counter(commands), [len(re.findall(sign, bare)) for sign in (r"\{", r"\}", r"\\item", "\n\n")]


PROSE_MAKERS = {"rst": rst, "man": man, "latex": latex}
PROSE_OUTLINES = {"rst": rst_outline, "man": man_outline, "latex": latex_outline}
