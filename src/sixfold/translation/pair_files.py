"""Files of sentence pairs for glossaries and translation memories: two columns separated by tabs, and TMX 1.4."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from sixfold.errors import DataError
from sixfold.text.encodings import SAMPLE, check_utf8

Languages = tuple[str, str]
PAIRED = frozenset(["bpt", "ept"])  # code of another format, around words: it is dropped, and the words are kept


class Pair(NamedTuple):
    """A text, and what it becomes."""

    source: str
    target: str


def read_pairs(path: Path, kind: str) -> tuple[tuple[Pair, ...], Languages | None]:
    """Two columns separated by tabs; a first line of two language codes, such as `en	zh`, says the direction.

    `kind`: what stands in the first column, in words.
    """
    pairs = []
    try:
        with path.open("rb") as raw:
            check_utf8(raw.read(SAMPLE), str(path))
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            for row in reader:
                if not any(map(str.strip, row)):
                    continue
                if len(row) < 2 or not row[0].strip() or not row[1].strip():
                    wanted = f"{kind}, a tab and its translation"
                    raise DataError(f"{path}:{reader.line_num}: expected {wanted}; got {row!r:.60}")
                pairs.append(Pair(row[0].strip(), row[1].strip()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if pairs and all(re.fullmatch(r"[a-z]{2,3}(?:-\w+)?", each) for each in pairs[0]):
        return tuple(pairs[1:]), (pairs[0].source, pairs[0].target)
    return tuple(pairs), None


def is_turned(known: Languages | None, wanted: Languages) -> bool | None:
    """Whether pairs of a direction must be turned about for the one that is wanted; None: they are for neither."""
    if known is None or known == wanted:
        return False
    return True if known == wanted[::-1] else None


def turned_about(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(Pair(target, source) for source, target in pairs)


def read_tmx(path: Path) -> tuple[tuple[Pair, ...], Languages | None]:
    """The pairs, and their languages without regions.

    What marks words in a segment (`bpt`, `ept`, `hi`) is dropped. Where anything else stands in one, as `ph`, nobody
    knows what it is for, and the unit is skipped.
    """
    reader = _Reader(path)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    except (expat.ExpatError, ValueError, LookupError) as error:  # the latter of encodings that nobody knows
        raise DataError(f"{path}: expected TMX: {error}") from None
    return tuple(reader.pairs), reader.languages


class _Reader:
    """What has been read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pairs: list[Pair] = []
        self.languages: Languages | None = None
        self.first = ""  # the language that the header calls the source
        self.begun = False
        self.unit: dict[str, str] = {}  # segments by their languages
        self.skipped = False  # the unit
        self.language = ""  # of the variant
        self.text: list[str] | None = None  # of the segment
        self.code = 0  # elements inside of each other that hold no words
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.say
        self.parser.StartDoctypeDeclHandler = self.declare
        self.parser.SkippedEntityHandler = self.skip

    def start(self, name: str, attributes: dict[str, str]) -> None:
        if not self.begun and name != "tmx":
            raise self.wrong(f"expected TMX; got <{name}>")
        self.begun = True
        if self.text is not None:
            if self.code or name in PAIRED:
                self.code += 1
            elif name != "hi":
                self.skipped = True
        elif name == "header":
            self.first = _language(attributes.get("srclang", ""))
        elif name == "tu":
            self.unit, self.skipped = {}, False
        elif name == "tuv":
            self.language = _language(attributes.get("xml:lang", attributes.get("lang", "")))
            if not self.language:
                raise self.wrong("expected xml:lang in <tuv>; it has none")
        elif name == "seg":
            self.text, self.code = [], 0

    def end(self, name: str) -> None:
        if self.text is not None and self.code:
            self.code -= 1
        elif self.text is not None and name == "seg":
            self.unit.setdefault(self.language, "".join(self.text).strip())
            self.text = None
        elif name == "tu":
            self.take()

    def say(self, text: str) -> None:
        if self.text is not None and not self.code:
            self.text.append(text)

    def take(self) -> None:
        """A unit that is whole."""
        if self.languages is None and len(self.unit) == 2:
            one, other = self.unit
            self.languages = (other, one) if other == self.first else (one, other)
        known = {*self.unit, *(self.languages or ())}
        if len(known) > 2:
            raise self.wrong(f"expected two languages; got {', '.join(sorted(known))}", "make a file of two of them")
        pair = Pair(*(self.unit.get(language, "") for language in self.languages or ("", "")))
        if not self.skipped and all(pair):
            self.pairs.append(pair)

    def declare(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        """A DTD that is only named is never opened; one that is written here can make a gigabyte of a line."""
        if has_subset:
            raise self.wrong("expected no declarations in <!DOCTYPE>; got some", "delete what is in its brackets")

    def skip(self, name: str, _is_parameter: Any) -> None:
        raise self.wrong(f"expected characters; got the entity &{name};, which only its DTD knows")

    def wrong(self, message: str, hint: str | None = None) -> DataError:
        return DataError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}", hint)


def _language(code: str) -> str:
    """`en` for en-US; nothing for *all*."""
    return re.split("[-_]", code.strip().lower())[0] if code != "*all*" else ""
