"""The Markdown that is read: CommonMark with tables, and what maths, templates and generators of sites add to it."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.ruler import RuleOptionsType
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline

from sixfold.translation.cancellation import check_cancelled

MAX_MATHS_LINES = 200

# Front matter, of which only YAML has values that are translated.
FRONT_MATTER = re.compile(
    r"(?P<yaml>---[ \t]*\r?\n(?P<values>(?:(?!(?:---|\.\.\.)[ \t]*\r?$)[^\n]*\n)*+)(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z))"
    r"|\+\+\+[ \t]*\r?\n(?:(?!\+\+\+[ \t]*\r?$)[^\n]*\n)*+\+\+\+[ \t]*(?:\r?\n|\Z)",
    re.M,
)
# Lines that are no prose: containers, templates, tables of contents, attributes, modules of MDX.
_OPAQUE_LINE = re.compile(
    r":{3,}.*|\{\{[^{}].*\}\}|\{%.*%\}|\[TOC\]|\[\[_?TOC_?\]\]|\{:.*\}|--8<--.*"
    r"|import\s.*\sfrom\s+['\"].*|import\s+['\"].*['\"];?|export\s+(?:const|default|function)\b.*|\\(?:newpage|pagebreak)",
    re.I,
)
_ADMONITION = re.compile(r"""(?:!!!|\?\?\?\+?|===)[ \t]+(?:[\w "'+-]*?)(?:"(?P<title>[^"]*)"|[ \t\w-]*)[ \t]*""")
_MATHS_ENDS = {"$$": "$$", "\\[": "\\]", "\\begin{": "\\end{"}
# What a line of prose has that is copied: maths, templates, and attributes in braces.
_OPAQUE = re.compile(
    r"\$\$(?!\$)[^$]{1,2000}\$\$|\$(?![\s$])(?P<maths>(?:[^$\\]|\\.){0,500}?)(?<=[^\s\\])\$(?![\w$])"
    r"|\\\((?P<round>.{1,500}?)\\\)"
    r"|\{\{.{1,300}?\}\}|\{%.{1,300}?%\}|(?P<attributes>\{[#.:][^{}\n]{0,200}\})",
    re.S,
)
_MATHS_SIGN = re.compile(r"[\\^={}]|_\w")
_MATHS_CHARACTER = re.compile(r"[\\^_={}<>+*/|-]")


def make_parser() -> MarkdownIt:
    """Return a parser of this Markdown."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    interrupts: RuleOptionsType = {"alt": ["paragraph", "reference", "blockquote", "list"]}
    parser.block.ruler.before("table", "check_cancelled", _check_in_block)
    parser.block.ruler.before("fence", "maths_block", _maths_block, interrupts)
    parser.block.ruler.before("fence", "opaque_line", _opaque_line, interrupts)
    parser.block.ruler.before("fence", "admonition", _admonition, interrupts)
    parser.inline.ruler.before("text", "check_cancelled", _check_in_line)
    parser.inline.ruler.before("escape", "opaque", _opaque)
    return parser


def admonition_title(line: str) -> tuple[int, int] | None:
    """Return the span of the title in the first line of an admonition; None if it has none of its own."""
    match = _ADMONITION.fullmatch(line)
    return match.span("title") if match and match["title"] else None


def _check_in_block(_state: StateBlock, _start: int, _end: int, _silent: bool) -> bool:
    """A rule of the parser that matches nothing: it lets long work be cancelled."""
    check_cancelled()
    return False


def _check_in_line(_state: StateInline, _silent: bool) -> bool:
    check_cancelled()
    return False


def _line(state: StateBlock, number: int) -> str:
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip()


def _maths_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A rule for lines from `$$` to `$$`, which CommonMark would read as paragraphs, lists and headings."""
    line = _line(state, start)
    opening = next((opening for opening in _MATHS_ENDS if line.startswith(opening)), None)
    if opening is None or state.is_code_block(start):
        return False
    closing = _MATHS_ENDS[opening]
    rest = line[len(opening) :]
    if opening == "\\[" and rest and not _MATHS_SIGN.search(rest.removesuffix(closing)):
        return False  # an escaped bracket
    last = start
    if closing in rest:
        if closing != "\\end{" and not rest.endswith(closing):
            return False  # maths in a line of prose
    else:
        numbers = range(start + 1, min(end, start + MAX_MATHS_LINES))
        last = next((number for number in numbers if closing in _line(state, number)), -1)
        if last < 0:
            return False
    if not silent:
        token = state.push("maths_block", "", 0)
        token.map, token.content = [start, last + 1], state.getLines(start, last + 1, 0, True)
        state.line = last + 1
    return True


def _opaque_line(state: StateBlock, start: int, _end: int, silent: bool) -> bool:
    """A rule for a line that is no prose."""
    if state.is_code_block(start) or not _OPAQUE_LINE.fullmatch(_line(state, start)):
        return False
    if not silent:
        token = state.push("opaque_line", "", 0)
        token.map, token.content = [start, start + 1], _line(state, start)
        state.line = start + 1
    return True


def _admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A rule for `!!! note "Title"` with indented blocks, as MkDocs has it."""
    line = _line(state, start)
    if state.is_code_block(start) or not _ADMONITION.fullmatch(line):
        return False
    following, last = start + 1, start + 1
    while following < end and (state.isEmpty(following) or state.sCount[following] - state.blkIndent >= 4):
        last = last if state.isEmpty(following) else following + 1
        following += 1
    if last == start + 1:
        return False
    if silent:
        return True
    token = state.push("admonition_open", "div", 1)
    token.map, token.content = [start, start + 1], line
    old_parent, old_line_max = state.parentType, state.lineMax
    state.parentType, state.lineMax = "blockquote", last
    state.blkIndent += 4
    state.md.block.tokenize(state, start + 1, last)
    state.blkIndent -= 4
    state.parentType, state.lineMax = old_parent, old_line_max
    state.push("admonition_close", "div", -1)
    state.line = last
    return True


def _opaque(state: StateInline, silent: bool) -> bool:
    """A rule for maths, templates and attributes in a line of prose."""
    if state.src[state.pos] not in "$\\{":
        return False
    match = _OPAQUE.match(state.src, state.pos)
    if match is None or match.end() > state.posMax:
        return False
    maths = next((match[group] for group in ("maths", "round") if match[group] is not None), None)
    if maths is not None:
        before = state.src[state.pos - 1] if state.pos else " "
        is_escape = match["maths"] is None  # of a bracket in CommonMark
        if not _MATHS_CHARACTER.search(maths) and (" " in maths or (is_escape and len(maths) > 3)):
            return False
        if match["maths"] is not None and (before.isalnum() or before == "$"):
            return False
    if not silent:
        token = state.push("opaque", "", 0)
        token.content, token.markup = match[0], "attributes" if match["attributes"] else ""
    state.pos = match.end()
    return True
