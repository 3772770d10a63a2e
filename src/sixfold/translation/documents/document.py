"""Documents in, documents out: prose is translated, and every other byte stays where it is.

1. A format module finds the units of prose (`Document.read`).
2. Their texts are translated together (`translate_units`).
3. Markup is put back into each translation (`place_markup`), and the document is written with the translations.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from sixfold.errors import DataError, RequestError
from sixfold.text.languages import SCRIPTS, letters
from sixfold.text.sentences import is_spaced
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.direction import language_notices
from sixfold.translation.documents import csv_tsv, docx, html, json_yaml, markdown, po_xliff, subtitles
from sixfold.translation.documents.inline import place_marks
from sixfold.translation.documents.units import Atom, Mark, Span, Unit, UnreadableError
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import has_words
from sixfold.translation.result import Notice, Translation
from sixfold.translation.string_search import find_strings
from sixfold.translation.translator import Translator

Parse = Callable[[str], list[Unit]]


class Format(NamedTuple):
    """A function that finds the units of prose, and the suffixes of files of the format."""

    parse: Parse
    suffixes: tuple[str, ...]


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
        return cls(text, tuple(sorted(units, key=lambda unit: (unit.span[0], -unit.span[1]))), bom)

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


class Insert(NamedTuple):
    """Markup in a translation: the part of the translation that it replaces, and where the document has it."""

    target: Span  # in the translation
    source: Span | None  # in the document; None: `raw` is written
    raw: str = ""
    left: str = ""  # a space to write before it, or nothing
    right: str = ""  # a space to write after it, or nothing


@dataclass(frozen=True)
class UnitTranslation:
    """The translation of a unit, and the markup to write into it, from left to right."""

    text: str
    inserts: tuple[Insert, ...] = ()


@dataclass
class Report:
    """The number of units of a document, and the notices about their translations with the lines of the document."""

    units: int = 0
    notices: list[tuple[int, Notice]] = field(default_factory=list)


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


def translate_document(
    translator: Translator,
    data: bytes,
    form: str,
    source: str | None = None,
    target: str | None = None,
    options: TranslateOptions | None = None,
    name: str = "document",
    glossary: Glossary | None = None,
    memory: TranslationMemory | None = None,
    columns: Sequence[str | int] = (),
) -> tuple[bytes, Report]:
    """Return a document with its prose translated; the whole document has one direction.

    `form`: a key of FORMATS. `columns`: the columns of a table to translate, by name or by number from 1. If one is
    given by name, the first row is a header, which stays.
    """
    parts = read_parts(data, form, name, columns)
    return translate_parts(translator, parts, data, source, target, options, glossary, memory)


def translate_parts(
    translator: Translator,
    parts: Mapping[str, Document],
    data: bytes,
    source: str | None = None,
    target: str | None = None,
    options: TranslateOptions | None = None,
    glossary: Glossary | None = None,
    memory: TranslationMemory | None = None,
) -> tuple[bytes, Report]:
    """Return a document with its prose translated, as `translate_document` does; `parts` is `read_parts` of `data`."""
    units = [(part, index) for part, document in parts.items() for index in range(len(document.units))]
    texts = [parts[part].units[index].text for part, index in units]
    languages = translator.direction("\n".join(texts), source, target).languages
    to_translate = [key for key, text in zip(units, texts, strict=True) if is_prose(text, languages)]
    prose = [parts[part].units[index] for part, index in to_translate]
    translated = translate_units(translator, prose, languages, options, glossary, memory)
    translation_of = dict(zip(to_translate, translated, strict=True))
    report = Report(len(units))
    translations: dict[str, dict[int, UnitTranslation]] = {part: {} for part in parts}
    lost = Notice("markup", "a tag lost the words that it stood around, and was put where they would be")
    for part, index in units:
        check_cancelled()
        unit, translation = parts[part].units[index], translation_of.get((part, index))
        if translation is None:  # it stays as it is, perhaps because it is in another language
            notices = language_notices(unit.text, languages) if has_words(unit.text) else []
        elif translation.text == unit.text:
            notices = [*translation.warnings]
        else:
            unit, translation = restore_atoms(translator, unit, translation, options, glossary)
            translations[part][index], has_words_inside = place_markup(unit, translation, is_spaced(languages[1]))
            notices = [*translation.warnings, *([] if has_words_inside else [lost])]
        line = parts[part].line_of(unit.span[0]) if notices else 0
        report.notices += [(line, notice) for notice in notices]
    changed = {part: parts[part].write(of_part) for part, of_part in translations.items() if of_part}
    if not changed:
        return data, report
    if docx.MAIN_PART in parts:
        return docx.write(data, changed), report
    (document,) = changed.values()
    return document, report


def translate_units(
    translator: Translator,
    units: Sequence[Unit],
    languages: tuple[str, str],
    options: TranslateOptions | None,
    glossary: Glossary | None,
    memory: TranslationMemory | None,
) -> list[Translation]:
    """Translate units in two batches: those with markup without the memory, the others with it.

    A memory cannot say which words the markup belongs to.
    """
    uses_memory = [memory is not None and not unit.marks and not unit.atoms for unit in units]
    batches = []
    for with_memory in (False, True):
        texts = [unit.text for unit, uses in zip(units, uses_memory, strict=True) if uses == with_memory]
        own_memory = memory if with_memory else None
        batches.append(iter(translator.translate_batch(texts, *languages, options, glossary, own_memory)))
    return [next(batches[uses]) for uses in uses_memory]


def restore_atoms(
    translator: Translator,
    unit: Unit,
    translation: Translation,
    options: TranslateOptions | None,
    glossary: Glossary | None,
) -> tuple[Unit, Translation]:
    """Translate a unit again if its translation lacks atoms: these become marks, which the model cannot lose."""
    for _ in range(2):
        missing = missing_atoms(unit, translation.text)
        if not missing:
            break
        unit = atoms_to_marks(unit, missing)
        translation = translator.translate(unit.text, *translation.languages, options, glossary)
    else:
        if missing_atoms(unit, translation.text):
            unit = atoms_to_marks(unit, unit.all_atoms())
            translation = translator.translate(unit.text, *translation.languages, options, glossary)
    return unit, translation


def is_prose(text: str, languages: tuple[str, str]) -> bool:
    """Return whether a text has something to translate.

    It needs letters, and letters of the source's script if the target has another script.
    """
    if not has_words(text):
        return False
    source, target = (SCRIPTS.get(re.split("[-_]", language.lower())[0], ()) for language in languages)
    return not source or not set(source).isdisjoint(target) or letters(*source).search(text) is not None


def missing_atoms(unit: Unit, translation: str) -> list[Atom]:
    """Return the atoms of a unit that its translation does not have as often as the unit."""
    atoms = unit.all_atoms()
    texts = [unit.text[slice(*atom.text_span)] for atom in atoms]
    expected, positions = Counter(texts), find_strings(translation, texts)
    return [atom for atom, text in zip(atoms, texts, strict=True) if text and len(positions[text]) < expected[text]]


def atoms_to_marks(unit: Unit, atoms: Sequence[Atom]) -> Unit:
    """Return a unit with some of its atoms as single marks, and without the text of these atoms."""
    chosen = set(atoms)
    removed = [atom for atom in unit.all_atoms() if atom in chosen]
    starts = [atom.text_span[0] for atom in removed]
    removed_lengths = [0, *accumulate(atom.text_span[1] - atom.text_span[0] for atom in removed)]

    def moved(position: int) -> int:
        """Return where a position is in the new text; one inside a removed atom is where the atom was."""
        before = bisect_left(starts, position)
        if before and position < removed[before - 1].text_span[1]:
            before, position = before - 1, starts[before - 1]
        return position - removed_lengths[before]

    # At one position, the marks of the unit come before the atom that becomes a mark.
    marks = [((mark.position, 0), mark) for mark in unit.marks]
    marks += [
        (
            (atom.text_span[0], 1),
            Mark(atom.text_span[0], "single", atom.span, unit.text[slice(*atom.text_span)]),
        )
        for atom in removed
    ]
    text, position = "", 0
    for atom in removed:
        text += unit.text[position : atom.text_span[0]]
        position = atom.text_span[1]
    remaining = [atom for atom in unit.atoms if atom not in chosen]
    return replace(
        unit,
        text=text + unit.text[position:],
        marks=tuple(
            mark._replace(position=moved(mark.position)) for _, mark in sorted(marks, key=lambda pair: pair[0])
        ),
        atoms=tuple(
            atom._replace(text_span=(moved(atom.text_span[0]), moved(atom.text_span[1]))) for atom in remaining
        ),
    )


def place_markup(unit: Unit, translation: Translation, spaced: bool) -> tuple[UnitTranslation, bool]:
    """Return a translation with the markup of its unit, and whether every pair of marks has words inside."""
    text = translation.text
    inserts = _place_atoms(unit, text)
    atom_spans = sorted(insert.target for insert in inserts)
    marks, has_words_inside = place_marks(unit, text, translation.alignment) if unit.marks else ([], True)
    for position, index in marks:
        mark = unit.marks[index]
        before = bisect_left(atom_spans, (position, 0))
        if before and position < atom_spans[before - 1][1]:  # inside an atom
            position = atom_spans[before - 1][0 if mark.kind == "open" else 1]
        padding = _padding(unit, mark, text, position, spaced)
        inserts.append(Insert((position, position), mark.span, mark.raw, *padding))
    order = sorted(range(len(inserts)), key=lambda index: _sort_key(inserts[index], index))
    return UnitTranslation(text, tuple(inserts[index] for index in order)), has_words_inside


def _place_atoms(unit: Unit, translation: str) -> list[Insert]:
    """Return the atoms of the markup where they are in a translation; no two of them share a character.

    The longest come first: the atom `map` must not be found inside the atom `map()`.
    """
    atoms = sorted(unit.atoms, key=lambda atom: atom.text_span[0] - atom.text_span[1])
    texts = [unit.text[slice(*atom.text_span)] for atom in atoms]
    remaining = {text: iter(positions) for text, positions in find_strings(translation, texts).items()}
    is_used = bytearray(len(translation))
    inserts = []
    for atom, text in zip(atoms, texts, strict=True):
        for start in remaining.get(text, ()):
            end = start + len(text)
            if is_used.find(1, start, end) < 0:
                is_used[start:end] = b"\1" * len(text)
                inserts.append(Insert((start, end), atom.span))
                break
    return inserts


def _padding(unit: Unit, mark: Mark, translation: str, position: int, spaced: bool) -> tuple[str, str]:
    """Return the spaces to write before and after a mark.

    An atom that became a mark must not touch a word. Where marks depend on the characters beside them, a closing mark
    after punctuation must not be followed by a letter: the asterisks of **so.**What would not be markup.
    """
    left, right = translation[max(0, position - 1) : position], translation[position : position + 1]
    if mark.raw:
        return (" " if spaced and left.isalnum() else "", " " if spaced and right.isalnum() else "")
    if unit.flanking and mark.kind == "close" and left and not left.isalnum() and right.isalnum():
        return "", " "
    if unit.flanking and mark.kind == "open" and left.isalnum() and right and not right.isalnum():
        return " ", ""
    return "", ""


def _sort_key(insert: Insert, index: int) -> tuple[int, bool, int]:
    """Sort by position; at one position marks come in the order they were added, before an atom that starts there."""
    return (insert.target[0], insert.target[1] > insert.target[0], index)
