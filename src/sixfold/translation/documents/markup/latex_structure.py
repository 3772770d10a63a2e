"""LaTeX: the commands, groups, maths and comments of a document in order, for comparison."""

from __future__ import annotations

import re

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.markup.latex_syntax import (
    ACCENT,
    BARS,
    CHARACTERS,
    INSIDE_SENTENCES,
    OWN_TEXT,
    SECOND_ARGUMENT,
    SYMBOLS,
    TEXT_COMMANDS,
    VERBATIM,
)
from sixfold.translation.documents.structure import Structure, StructureBuilder

_NAME = re.compile(r"[A-Za-z@]+\*?")
_ENVIRONMENT = re.compile(r"[ \t]*\{([^{}\n]*)\}")
_MATHS = {
    "$": re.compile(r"(?:[^$\\\n]|\\.|\n(?![ \t]*\n))*\$", re.S),
    "$$": re.compile(r"(?:[^$\\]|\\.|\$(?!\$))*\$\$", re.S),
}
_KEPT = re.compile(r"[ \t]*(?:\[[^\[\]{}\n]*\]|\{[^{}\n]*\})")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_PLAIN = re.compile(r"[^\\%${}&#_^|\n]+")


def structure(text: str) -> Structure:
    """Return the commands of a document with what follows them, its groups, maths, verbatim texts and comments.

    A group is written with its depth, so that braces stay balanced.
    """
    return _Scanner(text).scan()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._depth = 0
        self._builder = StructureBuilder()
        self._has_bars = BARS.search(text) is not None

    def scan(self) -> Structure:
        text = self._text
        while self._position < len(text):
            check_cancelled()
            if plain := _PLAIN.match(text, self._position):
                self._position = plain.end()
                continue
            char = text[self._position]
            if char == "\\":
                self._command()
            elif char == "%":
                end = text.find("\n", self._position)
                self._inside(end if end >= 0 else len(text))
            elif char == "$":
                self._maths()
            elif char in "{}":
                self._brace(char)
            elif char == "\n":
                self._line_end()
            else:
                if char == "&":
                    self._builder.block("&")
                elif char != "|" or self._has_bars:
                    self._builder.inside(char)
                self._position += 1
        self._builder.block(f"depth {self._depth}")
        return self._builder.build()

    def _inside(self, end: int) -> None:
        self._builder.inside(self._text[self._position : end])
        self._position = end

    def _line_end(self) -> None:
        if paragraph := _PARAGRAPH.match(self._text, self._position):
            self._builder.block("paragraph")
            self._position = paragraph.end()
        else:
            self._position += 1

    def _brace(self, char: str) -> None:
        if self._text.startswith("{}", self._position):  # nothing; a translation may need it behind a command
            self._position += 2
            return
        self._depth += 1 if char == "{" else -1
        self._builder.inside(f"{char} {self._depth if char == '{' else self._depth + 1}")
        self._position += 1

    def _maths(self) -> None:
        sign = "$$" if self._text.startswith("$$", self._position) else "$"
        match = _MATHS[sign].match(self._text, self._position + len(sign))
        if match is None:
            self._builder.inside(sign)
            self._position += len(sign)
        elif sign == "$$":
            self._builder.block(self._text[self._position : match.end()])
            self._position = match.end()
        else:
            self._inside(match.end())

    def _command(self) -> None:
        text, start = self._text, self._position
        name = _NAME.match(text, start + 1)
        if accent := ACCENT.match(text, start):
            self._position = accent.end()
        elif name is None:
            self._symbol(text[start + 1 : start + 2])
        elif name[0] in ("begin", "end"):
            self._environment(name[0], name.end())
        elif name[0].rstrip("*") in ("verb", "lstinline") and text[name.end() : name.end() + 1].strip():
            delimiter = text[name.end()]
            end = text.find({"{": "}"}.get(delimiter, delimiter), name.end() + 1, name.end() + 500)
            self._inside(end + 1 if end >= 0 else name.end())
        elif name[0] in CHARACTERS:
            self._position = name.end()
        else:
            self._named(name[0], name.end())

    def _symbol(self, symbol: str) -> None:
        closing = {"(": "\\)", "[": "\\]"}.get(symbol)
        end = self._text.find(closing, self._position, self._position + 20_000) if closing else -1
        if end >= 0:
            self._inside(end + 2)
            return
        if symbol == "\\":
            self._builder.block("\\\\")
        elif symbol not in SYMBOLS and symbol.strip():
            self._builder.inside("\\" + symbol)
        self._position += 1 + len(symbol)

    def _environment(self, kind: str, position: int) -> None:
        match = _ENVIRONMENT.match(self._text, position)
        if match is None:
            self._builder.block(f"\\{kind}")
            self._position = position
            return
        closing = f"\\end{{{match[1]}}}"
        end = self._text.find(closing, position) if kind == "begin" and match[1] in VERBATIM else -1
        if end >= 0:
            self._builder.block(self._text[self._position : end])
            self._position = end + len(closing)
        else:
            self._builder.block(f"\\{kind}{{{match[1]}}}")
            self._position = match.end()

    def _named(self, name: str, position: int) -> None:
        """Add a command; the short arguments of one that has no text are a part of it."""
        bare = name.rstrip("*")
        has_text = bare in TEXT_COMMANDS or bare in OWN_TEXT or bare == "item"
        end = position
        limit = 0 if has_text else 1 if bare in SECOND_ARGUMENT else 2 if bare == "multicolumn" else 9
        for _ in range(limit):
            match = _KEPT.match(self._text, end)
            if match is None:
                break
            end = match.end()
        item = self._text[self._position : end].removesuffix("{}").rstrip()
        if bare in OWN_TEXT - INSIDE_SENTENCES or bare == "item":
            self._builder.block(item)
        else:
            self._builder.inside(item)
        self._position = end
