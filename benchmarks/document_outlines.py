"""What a translation of a document must keep, as a list of blocks that can be compared, whatever the format is.

The readers in document_readers.py and office_readers.py make such outlines with parsers that Sixfold does not use.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Literal, NamedTuple

MAX_FAULTS = 20  # of one document that are told


class MalformedError(Exception):
    """A document that the parser of its format does not accept."""


ERROR = "error: "  # begins what a checker complains about; a translation may have fewer of these than its source
WORD = "word: "  # begins what must not be lost, but may be written besides, as the options of a program


class Fault(NamedTuple):
    """What is wrong with a translated document."""

    kind: Literal["malformed", "structure", "lost", "invented", "placeholder lost", "placeholder invented"]
    message: str


@dataclass
class Block:
    """A paragraph, cell, message or cue: what it is, the markup inside, which may change places, and its text."""

    label: str
    inside: Counter[str] = field(default_factory=Counter)
    text: str = ""
    # What the text stands in for if it is a translation beside its source, as in PO: the source has the placeholders.
    source: str | None = None
    parts: str = ""  # the text with spaces where markup is: a placeholder may end there, or go on
    is_message: bool = False  # whether the text may be an ICU message


_PLACEHOLDER = re.compile(
    r"\{\{[^{}\n]{1,100}\}\}|[$#]?\{[\w.$:-]{0,60}\}|%\(\w+\)[-+0-9.]*[a-zA-Z]|%(?:\d+\$[-+0]?|[-+0]?(?=[\d.]))\d*(?:\.\d+)?[sdif]|%[sdif](?![a-z])|%@"
    r"|(?:https?|ftp)://[!#-;=?-~]*[\w/]|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"
    r"|</?[a-z][a-z0-9]*(?:\s+[\w:-]+=(?:\"[^\"<>]*\"|'[^'<>]*'))*\s*/?>",
    re.ASCII,
)
_PRIVATE = re.compile("[\ue000-\uf8ff\U000f0000-\U0010fffd]")


def placeholders(text: str) -> Counter[str]:
    """Return what a translation of a text must have as often: placeholders, tags, addresses, private characters."""
    found = (" ".join(each.split()) for each in _PLACEHOLDER.findall(text))  # lines may end elsewhere inside a tag
    return Counter(found) + Counter(_PRIVATE.findall(text))


def compare(before: Sequence[Block], after: Sequence[Block]) -> list[Fault]:
    """Return how the outline of a translation differs from that of its source; one block too many stops it."""
    faults: list[Fault] = []
    for old, new in zip_longest(before, after):
        if old is None or new is None or old.label != new.label:
            faults.append(Fault("structure", f"expected {_shown(old)}; got {_shown(new)}"))
            break
        faults += _differences(old.inside, new.inside, new, "")
        faults += _differences(*_placeholders_of(old, new), new, "placeholder ")
        if len(faults) >= MAX_FAULTS:
            break
    return faults[:MAX_FAULTS]


def _placeholders_of(old: Block, new: Block) -> tuple[Counter[str], Counter[str]]:
    if new.source is not None:
        if old.text == new.text:  # the translation was there before, right or wrong
            return Counter(), Counter()
        if not new.text:
            return Counter(), Counter() if not old.text else Counter(["a translation"])
        return placeholders(new.source), placeholders(new.text)
    if old.is_message and (tree := icu_outline(old.text)) is not None and any(", " in item for item in tree):
        return tree, icu_outline(new.text) or Counter(["an ICU message that cannot be parsed"])
    expected, got = placeholders(old.text), placeholders(new.text)
    if old.parts:  # what is lost only because its neighbour in the text is another one now is there in the parts
        of_parts = placeholders(old.parts), placeholders(new.parts)
        lost, invented = (expected - got) & (of_parts[0] - of_parts[1]), (got - expected) & (of_parts[1] - of_parts[0])
        return lost, invented
    return expected, got


def _differences(
    old: Counter[str], new: Counter[str], block: Block, of: Literal["", "placeholder "]
) -> Iterable[Fault]:
    where = f"in {block.label[:60]}: {block.text[:120]!r}"
    for item, count in (old - new).items():
        if item.startswith(ERROR):
            continue
        yield Fault(f"{of}lost", f"{count} × {item[:120]} {where}")
    for item, count in (new - old).items():
        if item.startswith(WORD):
            continue
        yield Fault(f"{of}invented", f"{count} × {item[:120]} {where}")


def _shown(block: Block | None) -> str:
    return "the end" if block is None else f"{block.label[:120]} ({block.text[:60]!r})"


def icu_outline(message: str) -> Counter[str] | None:
    """Return the arguments of an ICU message with the branches that they are in; None if it is not a message.

    "{n, plural, one {# cat} other {{n} cats}}" has "n, plural", "n, plural/one", "n, plural/one/#", "n, plural/other"
    and "n, plural/other/n".
    """
    reader = _MessageReader(message)
    try:
        reader.read_text("", depth=0)
    except MalformedError:
        return None
    return reader.items


class _MessageReader:
    """A recursive reader of ICU MessageFormat."""

    def __init__(self, message: str) -> None:
        self.message, self.position = message, 0
        self.items: Counter[str] = Counter()

    def read_text(self, path: str, depth: int) -> None:
        while self.position < len(self.message):
            char = self.message[self.position]
            if self.message.startswith("''", self.position):  # an apostrophe
                self.position += 2
            elif char == "'" and self.message[self.position + 1 : self.position + 2] in ("{", "}", "#", "|"):
                end = self.message.find("'", self.position + 2)
                self.position = len(self.message) if end < 0 else end + 1
            elif char == "{":
                self.position += 1
                self.read_argument(path, depth)
            elif char == "}":
                if depth == 0:
                    raise MalformedError
                return
            else:
                if char == "#" and depth:
                    self.items[f"{path}/#"] += 1
                self.position += 1
        if depth:
            raise MalformedError

    def read_argument(self, path: str, depth: int) -> None:
        head = self.take(
            r"\s*([\w.@-]+)\s*(?:,\s*(plural|selectordinal|select)\s*,\s*(offset:\s*\d+)?|,(?!\s*(?:plural|select))([^{}]*))?"
        )
        if head[2] is None:
            self.items[f"{path}/{head[1]}{', ' + ' '.join(head[4].split()) if head[4] else ''}"] += 1
        else:
            name = f"{path}/{head[1]}, {head[2]} {head[3] or ''}".strip()
            self.items[name] += 1
            branches = 0
            while branch := re.compile(r"\s*(=\d+|[\w-]+)\s*\{").match(self.message, self.position):
                self.position = branch.end()
                self.items[f"{name}/{branch[1]}"] += 1
                self.read_text(f"{name}/{branch[1]}", depth + 1)
                self.take(r"\}")
                branches += 1
            if not branches:
                raise MalformedError
        self.take(r"\s*\}")

    def take(self, pattern: str) -> re.Match[str]:
        match = re.compile(pattern, re.ASCII).match(self.message, self.position)
        if match is None:
            raise MalformedError
        self.position = match.end()
        return match
