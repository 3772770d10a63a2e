"""Files of sentence pairs for glossaries and translation memories: two columns separated by tabs, and TMX 1.4."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple
from xml.parsers import expat

from sixfold.errors import DataError
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.text.language_codes import matching_codes, normalise_code

Languages = tuple[str, str]
TMX_PAIRED_CODES = frozenset(["bpt", "ept"])  # hold code of another format; it is dropped, the words between them stay


class Pair(NamedTuple):
    """A text and its translation."""

    source: str
    target: str


def read_pairs(path: Path, kind: str) -> tuple[tuple[Pair, ...], Languages | None]:
    """Read two columns separated by tabs; a first line of two language codes, such as `en	zh`, is the direction.

    `kind` names the content of the first column in messages.
    """
    pairs = []
    try:
        with path.open("rb") as raw:
            check_utf8(raw.read(SAMPLE_BYTES), str(path))
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            for row in reader:
                if not any(map(str.strip, row)):
                    continue
                if len(row) < 2 or not row[0].strip() or not row[1].strip():
                    expected = f"{kind}, a tab and its translation"
                    raise DataError(f"{path}:{reader.line_num}: expected {expected}; got {row!r:.60}")
                pairs.append(Pair(row[0].strip(), row[1].strip()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if pairs and all(re.fullmatch(r"[a-z]{2,3}(?:-\w+)?", code) for code in pairs[0]):
        return tuple(pairs[1:]), (pairs[0].source, pairs[0].target)
    return tuple(pairs), None


def is_reversed(languages: Languages | None, direction: Languages) -> bool | None:
    """Return whether pairs of some languages have to be swapped for a direction; None if they do not fit it.

    Pairs without languages fit every direction as they are. Regions and scripts may differ: pairs of zh and pt fit zh
    and pt-BR. They decide only where both sides are of one language.
    """
    if languages is None:
        return False
    own = tuple(map(normalise_code, languages))
    wanted = tuple(map(normalise_code, direction))
    if own in (wanted, wanted[::-1]):
        return own != wanted
    for is_swapped in (False, True):
        if all(
            matching_codes(code, [each]) for code, each in zip(own[:: -1 if is_swapped else 1], wanted, strict=True)
        ):
            return is_swapped
    return None


def swap_sides(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    """Return pairs with source and target swapped."""
    return tuple(Pair(target, source) for source, target in pairs)


def read_tmx(path: Path) -> tuple[tuple[Pair, ...], Languages | None]:
    """Read the pairs of a TMX file, and their languages without regions.

    Elements around words of a segment (`bpt`, `ept`, `hi`) are dropped. A unit with any other element in a segment,
    such as `ph`, is skipped, since nothing says what the element stands for. The file is read as a stream, and the
    reader opens no other file.
    """
    reader = _TmxReader(path)
    try:
        with path.open("rb") as file:
            reader.parser.ParseFile(file)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    except (expat.ExpatError, ValueError, LookupError) as error:  # LookupError: an unknown encoding
        raise DataError(f"{path}: expected TMX: {error}") from None
    return tuple(reader.pairs), reader.languages


class _TmxReader:
    """Handlers of an XML parser, and what they have read so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pairs: list[Pair] = []
        self.languages: Languages | None = None
        self.source_language = ""  # from the header
        self.has_root = False
        self.unit: dict[str, str] = {}  # the segments of the current unit by their languages
        self.skips_unit = False
        self.language = ""  # of the current variant
        self.text: list[str] | None = None  # of the current segment
        self.code_depth = 0  # open elements of the segment that hold code and no words
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start_element
        self.parser.EndElementHandler = self.end_element
        self.parser.CharacterDataHandler = self.add_text
        self.parser.StartDoctypeDeclHandler = self.check_doctype
        self.parser.SkippedEntityHandler = self.refuse_entity

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        if not self.has_root and name != "tmx":
            raise self.error(f"expected TMX; got <{name}>")
        self.has_root = True
        if self.text is not None:
            if self.code_depth or name in TMX_PAIRED_CODES:
                self.code_depth += 1
            elif name != "hi":
                self.skips_unit = True
        elif name == "header":
            self.source_language = _tmx_language(attributes.get("srclang", ""))
        elif name == "tu":
            self.unit, self.skips_unit = {}, False
        elif name == "tuv":
            self.language = _tmx_language(attributes.get("xml:lang", attributes.get("lang", "")))
            if not self.language:
                raise self.error("expected xml:lang in <tuv>; it has none")
        elif name == "seg":
            self.text, self.code_depth = [], 0

    def end_element(self, name: str) -> None:
        if self.text is not None and self.code_depth:
            self.code_depth -= 1
        elif self.text is not None and name == "seg":
            self.unit.setdefault(self.language, "".join(self.text).strip())
            self.text = None
        elif name == "tu":
            self.add_unit()

    def add_text(self, text: str) -> None:
        if self.text is not None and not self.code_depth:
            self.text.append(text)

    def add_unit(self) -> None:
        """Add the pair of a unit that has ended; the first unit of two languages sets the direction."""
        if self.languages is None and len(self.unit) == 2:
            first, second = self.unit
            self.languages = (second, first) if second == self.source_language else (first, second)
        languages = {*self.unit, *(self.languages or ())}
        if len(languages) > 2:
            names = ", ".join(sorted(languages))
            raise self.error(f"expected two languages; got {names}", "make a file of two of them")
        pair = Pair(*(self.unit.get(language, "") for language in self.languages or ("", "")))
        if not self.skips_unit and all(pair):
            self.pairs.append(pair)

    def check_doctype(self, _name: str, _system: str | None, _public: str | None, has_subset: int) -> None:
        """Raise DataError for declarations inside the file, since entities can expand a line to a gigabyte.

        A DTD that is only named is never opened.
        """
        if has_subset:
            raise self.error("expected no declarations in <!DOCTYPE>; got some", "delete what is in its brackets")

    def refuse_entity(self, name: str, _is_parameter: Any) -> None:
        raise self.error(f"expected characters; got the entity &{name};, which only its DTD defines")

    def error(self, message: str, hint: str | None = None) -> DataError:
        return DataError(f"{self.path}:{self.parser.CurrentLineNumber}: {message}", hint)


def _tmx_language(code: str) -> str:
    """Return a language code without region, `en` for en-US, and nothing for `*all*`."""
    return re.split("[-_]", code.strip().lower())[0] if code != "*all*" else ""
