"""Documents read and written: units of prose are found and replaced, and every other byte stays where it is.

1. A format module finds the units of prose (`Document.read`).
2. Their texts are translated together (`steps.translate_parts`), by a translator or a server.
3. Markup is put back into each translation (`placement.place_markup`).
4. The document is written with the translations (`write_parts`).
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents import csv_tsv, docx, html, json_yaml, markdown, po_xliff, subtitles
from sixfold.translation.documents.placement import UnitTranslation
from sixfold.translation.documents.units import Span, Unit, UnreadableError

Parse = Callable[[str], list[Unit]]
Structure = Callable[[str], object]


def _no_structure(_text: str) -> object:
    return None


def _without_language(text: str, _target: str) -> str:
    return text


class Format(NamedTuple):
    """What is known about a format of documents.

    `structure` reads a document with a parser that `parse` does not use, and returns what a translation must leave as it
    is. It raises UnreadableError for a document that does not have the format. `set_language` writes the target
    language into a translated document, where the format has a place for it.
    """

    parse: Parse
    suffixes: tuple[str, ...]
    structure: Structure = _no_structure
    set_language: Callable[[str, str], str] = _without_language


FORMATS: Mapping[str, Format] = {
    "html": Format(html.parse, (".html", ".htm", ".xhtml")),
    "markdown": Format(markdown.parse, (".md", ".markdown")),
    "srt": Format(subtitles.parse, (".srt",)),
    "vtt": Format(subtitles.parse, (".vtt",)),
    "json": Format(json_yaml.parse_json, (".json",)),
    "yaml": Format(json_yaml.parse_yaml, (".yaml", ".yml")),
    "po": Format(po_xliff.parse_po, (".po", ".pot")),
    "xliff": Format(po_xliff.parse_xliff, (".xliff", ".xlf")),
    "csv": Format(csv_tsv.parse_csv, (".csv",)),
    "tsv": Format(csv_tsv.parse_tsv, (".tsv",)),
    "docx": Format(docx.parse, (".docx",)),
}


TABLES = {"csv": csv_tsv.parse_csv, "tsv": csv_tsv.parse_tsv}  # formats with columns to choose from


@dataclass(frozen=True)
class Document:
    """A text with its units. Units do not overlap, except that one may be in the markup of another."""

    text: str
    units: tuple[Unit, ...]
    bom: bytes = b""
    form: str = ""  # a key of FORMATS

    @classmethod
    def read(cls, data: bytes, form: str, name: str = "document", columns: Sequence[str | int] = ()) -> Document:
        """Find the units of a document.

        `form`: a key of FORMATS. `name`: the name of the document in messages. `columns`: the columns of a table to
        translate, by name or number; all of them if empty.
        """
        if form not in FORMATS:
            raise RequestError(f"--format: expected one of {', '.join(FORMATS)}; got {form!r}")
        check_columns(columns, form)
        bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
        try:
            text = data[len(bom) :].decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, len(bom) + error.start) + 1
            raise DataError(
                f"{name}:{line}: expected UTF-8; got byte 0x{error.object[error.start]:02x}",
                "convert the file, for example: iconv -f GB18030 -t UTF-8",
            ) from None
        try:
            units = TABLES[form](text, columns) if columns else FORMATS[form].parse(text)
        except UnreadableError as error:
            where = name if error.line is None else f"{name}:{error.line}"
            raise DataError(f"{where}: {error.message}", error.hint) from None
        return cls(text, tuple(sorted(units, key=lambda unit: (unit.span[0], -unit.span[1]))), bom, form)

    def line_of(self, position: int) -> int:
        """Return the number of the line, from 1, that a position of the text is in."""
        return bisect_left(self._line_ends, position) + 1

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.span[0] for unit in self.units]

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    def write(self, translations: Mapping[int, UnitTranslation]) -> bytes:
        """Return the document with translations in the place of some units, by their index."""
        return self.bom + self._render((0, len(self.text)), 0, translations).encode()

    def _render(self, span: Span, first: int, translations: Mapping[int, UnitTranslation]) -> str:
        """Return a part of the document with its translations; no unit before index `first` is in that part."""
        parts, position = [], span[0]
        for index in range(max(first, bisect_left(self._starts, position)), len(self.units)):
            start, end = self.units[index].span
            if start >= span[1]:
                break
            if index in translations and start >= position:
                parts += [self.text[position:start], self._render_unit(index, translations)]
                position = end
        return "".join([*parts, self.text[position : span[1]]])

    def _render_unit(self, index: int, translations: Mapping[int, UnitTranslation]) -> str:
        unit, translation = self.units[index], translations[index]
        parts, text, position = [], "", 0
        for insert in translation.inserts:
            text += translation.text[position : insert.target[0]] + insert.left
            position = insert.target[1]
            if insert.source is None:
                text += insert.raw + insert.right
            else:
                parts += [unit.escape(text) if text else "", self._render(insert.source, index + 1, translations)]
                text = insert.right
        before, after = unit.around
        rest = text + translation.text[position:]
        return "".join([before, *parts, unit.escape(rest) if rest else "", after])


def format_of(path: Path, forced: str | None = None) -> str | None:
    """Return the format of a file by its name, or `forced`; None: lines of text."""
    if forced is not None:
        if forced != "text" and forced not in FORMATS:
            raise RequestError(f"--format: expected one of text, {', '.join(FORMATS)}; got {forced!r}")
        return None if forced == "text" else forced
    return next((name for name, form in FORMATS.items() if path.suffix.lower() in form.suffixes), None)


def check_columns(columns: Sequence[str | int], form: str | None) -> None:
    """Raise RequestError if columns are chosen in a format without columns."""
    if columns and form not in TABLES:
        tables = " or ".join(TABLES)
        raise RequestError(
            f"--columns: expected a table, {tables}; got {form or 'text'}", "add --format csv if it is a table"
        )


def read_parts(
    data: bytes, form: str, name: str, columns: Sequence[str | int] = (), max_unpacked_bytes: int = docx.MAX_TEXT_BYTES
) -> dict[str, Document]:
    """Return the parts of a document: several of a DOCX file, one of any other.

    The parts of a DOCX file may have at most `max_unpacked_bytes` bytes.
    """
    if form != "docx":
        return {name: Document.read(data, form, name, columns)}
    check_columns(columns, form)
    parts = {part: docx.preserve_spaces(text) for part, text in docx.read(data, name, max_unpacked_bytes).items()}
    return {part: Document.read(text, form, f"{name}: {part}") for part, text in parts.items()}


def prose_of(parts: Mapping[str, Document]) -> str:
    """Return the text of a document without its markup."""
    return "\n".join(unit.text for part in parts.values() for unit in part.units)


def write_parts(
    parts: Mapping[str, Document], data: bytes, translations: Mapping[str, Mapping[int, UnitTranslation]]
) -> bytes:
    """Return a document with the translations of its units, by part and index; `data` is the original."""
    changed = {part: parts[part].write(of_part) for part, of_part in translations.items() if of_part}
    if not changed:
        return data
    if docx.MAIN_PART in parts:
        return docx.write(data, changed)
    (document,) = changed.values()
    return document
