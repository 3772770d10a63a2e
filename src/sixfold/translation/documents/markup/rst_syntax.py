"""reStructuredText: the names, marks and patterns that its two readers share."""

from __future__ import annotations

import re
import unicodedata


def _names(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Directives by what is translated: content that begins on the first line; content behind a version; a title and
# content; content below arguments.
ADMONITIONS = _names("attention caution danger error hint important note seealso tip todo warning")
VERSIONS = _names("deprecated deprecated-removed versionadded versionchanged versionremoved")
TITLED = _names("admonition dropdown list-table rubric sidebar tab tab-item topic")
CONTAINERS = _names(
    "class compound container epigraph figure grid grid-item hlist highlights only pull-quote rst-class tab-set"
)
# Descriptions of objects, such as `.. function::` and `.. py:class::`.
OBJECTS = re.compile(
    r"(?:c|cpp|js|py|rst|std):[\w-]+"
    r"|attribute|classmethod|cmdoption|confval|data|decorator|describe|envvar|event|exception|fixture|function|method"
    r"|module|object|option|program|setting|staticmethod|templatefilter|templatetag"
)
TEXT_ROLES = _names("any doc download numref ref term")  # whose title before <target> is text
ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
GRID_TABLE = re.compile(r"\+-[-+]*-\+")
SIMPLE_TABLE = re.compile(r"=+(?: +=+)+")
TABLE_BORDER = re.compile(r"=+(?: +=+)*")
BULLET = re.compile(r"[-*+•‣⁃](?:[ \t]+|$)")
ENUMERATOR = re.compile(
    r"(?:\((?:\d+|#|[a-zA-Z]|[ivxlcdmIVXLCDM]+)\)|(?:\d+|#|[a-zA-Z]|[ivxlcdmIVXLCDM]+)[.)])(?:[ \t]+|$)"
)
FIELD = re.compile(r":(?![:\s])(?P<name>(?:[^:\\\n]|\\.|:(?![ \t\n`]|$))+?)(?<!\s):(?:[ \t]+|$)")
_OPTION = r"(?:-\w(?: ?(?:[A-Za-z][\w-]*|<[^>\n]+>))?|--?[A-Za-z][\w-]*(?:[ =](?:[A-Za-z][\w-]*|<[^>\n]+>))?|/[A-Z]+)"
OPTION = re.compile(rf"{_OPTION}(?:, {_OPTION})*(?:  +|$)")
FOOTNOTE = re.compile(r"\.\.[ \t]+\[(?:\d+|#[\w.-]*|\*|[\w.-]+)\](?:[ \t]+|$)")
DIRECTIVE = re.compile(r"\.\.[ \t]+(?P<name>[a-zA-Z][\w+.:-]*?)[ \t]?::(?:[ \t]+|$)")
LITERAL_END = re.compile(r"(?<!\\)::(?=\s*\Z)")  # of a paragraph before a literal block
_OPENING = "\"'(<[{\\-/:"
_CLOSING = "\"')>\\]}\\-/:.,;!?\\\\"
_OTHER = "".join(
    re.escape(chr(code)) for code in range(0xA1, 0x10000) if unicodedata.category(chr(code)) in ("Pd", "Po", "Pi", "Pf")
)
_BRACKETS = {
    kind: "".join(re.escape(chr(code)) for code in range(0xA1, 0x10000) if unicodedata.category(chr(code)) == kind)
    for kind in ("Ps", "Pe")
}
# Markup starts after, and ends before, white space and certain punctuation, or at the end of the text.
START = rf"(?<![^\s{_OPENING}{_OTHER}{_BRACKETS['Ps']}])"
END = rf"(?![^\s{_CLOSING}{_OTHER}{_BRACKETS['Pe']}])"


def column_width(text: str) -> int:
    """Return the columns that a text takes, as docutils counts them: an ideograph takes two."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def is_adornment(line: str, title: str) -> bool:
    """Return whether a line is the underline of a title."""
    match = ADORNMENT.fullmatch(line)
    return match is not None and (len(line) >= 4 or len(line) >= column_width(title))
