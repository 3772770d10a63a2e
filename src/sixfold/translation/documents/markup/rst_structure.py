"""reStructuredText: the blocks of a document by their indentation, and the markup in each, for comparison."""

from __future__ import annotations

import re

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.markup import rst_syntax as syntax
from sixfold.translation.documents.structure import Structure, StructureBuilder
from sixfold.translation.documents.units import MAX_DEPTH

_MARKERS = (syntax.BULLET, syntax.ENUMERATOR, syntax.FIELD, syntax.OPTION, re.compile(r"\|(?:[ \t]+|$)"))
# What is in a line of prose. Every repetition ends at a character that cannot repeat, so a search is linear.
_INLINE = re.compile(
    rf"\\.|{syntax.START}(?:``(?!\s)(?P<literal>(?:[^`]|`(?!`))+)``"
    r"|(?P<role>:[\w.+:-]+:)?`(?!\s)(?P<quoted>(?:[^`\\]|\\.)+)(?<!\s)`(?P<suffix>__?|:[\w.+:-]+:)?|(?P<target>_`[^`]+`)"
    r"|\*\*(?!\s)(?P<strong>(?:[^*]|\*(?!\*))+)(?<!\s)\*\*|\*(?![\s*])(?P<emphasis>[^*]+)(?<!\s)\*"
    r"|(?P<other>\|[^\s|][^|]*\|_{0,2}|\[(?:\d+|#[\w.-]*|\*|[A-Za-z][\w.-]*)\]_)"
    rf"){syntax.END}|(?<![\w`:.])(?P<reference>[^\W_]+(?:[-._+:][^\W_]+)*__?){syntax.END}",
    re.S,
)
_LINK = re.compile(r"[^<]*(?P<target><[^>]+>)", re.S)


def structure(text: str) -> Structure:
    """Return the blocks of a document with their indentation, and the markup inside them.

    A paragraph is one block, however many lines it has. Lines of code, tables, comments and targets are items.
    """
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._lines = [line.expandtabs(8).rstrip() for line in text.split("\n")]
        self._builder = StructureBuilder()
        self._number = 0
        self._markers = 0  # before the text of the current line, of which each begins a list in a list

    def read(self) -> Structure:
        while self._number < len(self._lines):
            check_cancelled()
            line = self._lines[self._number]
            if not line:
                self._number += 1
                continue
            self._read_block(line.lstrip(), len(line) - len(line.lstrip()))
        return self._builder.build()

    def _line(self, number: int) -> str:
        return self._lines[number] if number < len(self._lines) else ""

    def _indentation(self, number: int) -> int:
        line = self._line(number)
        return len(line) - len(line.lstrip())

    def _verbatim(self, end: int) -> None:
        """Add lines as they are."""
        for line in self._lines[self._number : end]:
            if line:
                self._builder.block(line)
        self._number = max(end, self._number)

    def _paragraph_end(self, number: int) -> int:
        while self._line(number):
            number += 1
        return number

    def _indented_end(self, number: int, column: int) -> int:
        """Return the number of the first line at or after `number` that is not blank nor right of a column."""
        while number < len(self._lines) and (not self._lines[number] or self._indentation(number) > column):
            number += 1
        return number

    def _read_block(self, content: str, column: int) -> None:
        following = self._line(self._number + 1)
        if syntax.GRID_TABLE.fullmatch(content) or content.startswith(">>> "):
            self._verbatim(self._paragraph_end(self._number))
        elif syntax.SIMPLE_TABLE.fullmatch(content):
            end = self._number + 1
            while end < len(self._lines) and not (
                syntax.TABLE_BORDER.fullmatch(self._lines[end].strip()) and not self._line(end + 1)
            ):
                end += 1
            self._verbatim(self._paragraph_end(self._number) if end == len(self._lines) else end + 1)
        elif syntax.ADORNMENT.fullmatch(content):
            self._read_adornment(content)
        elif not column and syntax.is_adornment(following, content):
            self._builder.block(f"title {following[0]}")
            self._inline(content)
            self._number += 2
        elif re.match(r"(?:\.\.|__)(?:\s|$)", content):
            self._read_explicit(content, column)
        else:
            self._read_text(content, column)

    def _read_adornment(self, content: str) -> None:
        title, underline = self._line(self._number + 1), self._line(self._number + 2)
        if title and underline[:2] == content[:2] and syntax.ADORNMENT.fullmatch(underline):
            self._builder.block(f"title {content[0]} with an overline")
            self._inline(title)
            self._number += 3
            if underline != content:
                self._builder.block("lines of different length")
        else:
            self._builder.block(f"line of {content[0]}")
            self._number += 1

    def _read_explicit(self, content: str, column: int) -> None:
        end = self._indented_end(self._number + 1, column)
        directive = syntax.DIRECTIVE.match(content)
        name = directive["name"].lower() if directive else ""
        if footnote := syntax.FOOTNOTE.match(content):
            self._rest(footnote[0].strip(), content[footnote.end() :], column)
        elif name in syntax.ADMONITIONS or name in syntax.VERSIONS:
            rest = content[directive.end() :] if directive else ""
            version, _, after = rest.partition(" ") if name in syntax.VERSIONS else ("", "", rest)
            self._rest(f".. {name}:: {version}", after.strip(), column, may_have_options=True)
        elif name in syntax.TITLED:
            rest = content[directive.end() :] if directive else ""
            self._builder.block(f"{column} .. {name}:: with title" if rest else f"{column} .. {name}::")
            self._inline(rest)
            self._number += 1
            self._verbatim(self._paragraph_end(self._number))
        elif name in syntax.CONTAINERS or (name and syntax.OBJECTS.fullmatch(name)):
            self._verbatim(self._number + 1)
            if name == "figure" or syntax.OBJECTS.fullmatch(name):
                self._verbatim(self._paragraph_end(self._number))
        else:
            self._verbatim(end)

    def _rest(self, marker: str, rest: str, column: int, may_have_options: bool = False) -> None:
        """Read the line of a marker, whose text goes on in the lines that are indented."""
        self._builder.block(f"{column} {marker}")
        self._number += 1
        if may_have_options:
            while self._line(self._number) and syntax.FIELD.match(self._line(self._number).strip()):
                self._verbatim(self._number + 1)
        if not rest:
            return
        self._lines[self._number - 1] = " " * max(self._indentation(self._number), column + 1) + rest
        self._number -= 1

    def _read_text(self, content: str, column: int) -> None:
        for pattern in _MARKERS if self._markers < MAX_DEPTH else ():
            match = pattern.match(content)
            if match is None:
                continue
            if pattern is syntax.ENUMERATOR and not self._is_item(pattern, column):
                break
            rest = content[match.end() :]
            self._builder.block(f"{column} {match[0].strip()}")
            if not rest:
                self._number += 1
                self._markers = 0
                return
            is_list = pattern in (syntax.BULLET, syntax.ENUMERATOR)
            rest_column = column + match.end() if is_list else max(column + 1, self._indentation(self._number + 1))
            self._lines[self._number] = " " * rest_column + rest
            self._markers += 1
            return
        self._markers = 0
        end = self._number + 1
        while self._line(end) and self._indentation(end) == column:
            end += 1
        is_term = end == self._number + 1 and self._line(end) and self._indentation(end) > column
        self._builder.block("term" if is_term else "text")

        text = "\n".join(self._lines[self._number : end])
        self._inline(text)
        self._number = end
        if syntax.LITERAL_END.search(text):
            self._builder.block("::")
            while self._number < len(self._lines) and not self._lines[self._number]:
                self._number += 1
            is_quoted = self._indentation(self._number) == column and syntax.ADORNMENT.match(
                self._line(self._number).strip()[:1] * 2
            )
            self._verbatim(self._paragraph_end(self._number) if is_quoted else self._indented_end(self._number, column))

    def _is_item(self, enumerator: re.Pattern[str], column: int) -> bool:
        """Return whether the next line agrees that this one begins with the number of an item."""
        following = self._line(self._number + 1)
        is_left = bool(following) and self._indentation(self._number + 1) <= column
        return not is_left or enumerator.match(following.lstrip()) is not None

    def _inline(self, text: str) -> None:
        for match in _INLINE.finditer(text):
            if match["quoted"] is not None:
                self._builder.inside(self._quoted(match))
            elif match["strong"] is not None or match["emphasis"] is not None:
                self._builder.inside("strong" if match["strong"] is not None else "emphasis")
            elif match.lastgroup is not None:
                self._builder.inside(" ".join(match[0].split()))

    def _quoted(self, match: re.Match[str]) -> str:
        role, suffix = match["role"] or "", match["suffix"] or ""
        link = _LINK.fullmatch(match["quoted"])
        is_link = link is not None and (role.strip(":") in syntax.TEXT_ROLES or suffix in ("_", "__"))
        return f"{role}`{link['target'] if link and is_link else ' '.join(match['quoted'].split())}`{suffix}"
