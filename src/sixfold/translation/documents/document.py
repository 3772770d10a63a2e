"""Documents in, documents out: what is prose is translated, and every other byte stays where it is."""

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
from sixfold.translation.documents.inline import place
from sixfold.translation.documents.units import Atom, Mark, Span, Unit, UnreadableError
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import has_words
from sixfold.translation.result import Notice, Translation
from sixfold.translation.string_search import occurrences
from sixfold.translation.translator import Translator

Parse = Callable[[str], list[Unit]]


class Format(NamedTuple):
    """How to find what is prose, and the names of files that are to be read so."""

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


TABLES = {"csv": csv_tsv.parse_csv, "tsv": csv_tsv.parse_tsv}  # of which some columns may be meant


@dataclass(frozen=True)
class Document:
    """A text with its units, none of which overlap, but that one may lie in the markup of another."""

    text: str
    units: tuple[Unit, ...]
    bom: bytes = b""

    @classmethod
    def read(cls, data: bytes, form: str, name: str = "document", columns: Sequence[str | int] = ()) -> Document:
        """`form`: a key of FORMATS. `columns`: of a table, those to translate, by name or number; none: all."""
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
            found = TABLES[form](text, columns) if columns else FORMATS[form].parse(text)
        except UnreadableError as error:
            where = name if error.line is None else f"{name}:{error.line}"
            raise DataError(f"{where}: {error.message}", error.hint) from None
        units = sorted(found, key=lambda unit: (unit.span[0], -unit.span[1]))
        return cls(text, tuple(units), bom)

    def line_of(self, at: int) -> int:
        """The number of the line, from 1, that a place of the text is in."""
        return bisect_left(self._line_ends, at) + 1

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.span[0] for unit in self.units]

    @cached_property
    def _line_ends(self) -> list[int]:
        return [found.start() for found in re.finditer("\n", self.text)]

    def write(self, fillings: Mapping[int, Filling]) -> bytes:
        """With some units, by their number, replaced."""
        return self.bom + self._rendered((0, len(self.text)), 0, fillings).encode()

    def _rendered(self, span: Span, first: int, fillings: Mapping[int, Filling]) -> str:
        """What a part of the document becomes; no unit before the `first` is in it."""
        done, at = [], span[0]
        for number in range(max(first, bisect_left(self._starts, at)), len(self.units)):
            start, end = self.units[number].span
            if start >= span[1]:
                break
            if number in fillings and start >= at:
                done += [self.text[at:start], self._filled(number, fillings)]
                at = end
        return "".join([*done, self.text[at : span[1]]])

    def _filled(self, number: int, fillings: Mapping[int, Filling]) -> str:
        unit, filling = self.units[number], fillings[number]
        done, text, at = [], "", 0
        for insert in filling.inserts:
            text += filling.text[at : insert.place[0]] + insert.left
            at = insert.place[1]
            if insert.span is None:
                text += insert.raw + insert.right
            else:
                done += [unit.escape(text) if text else "", self._rendered(insert.span, number + 1, fillings)]
                text = insert.right
        before, behind = unit.around
        rest = text + filling.text[at:]
        return "".join([before, *done, unit.escape(rest) if rest else "", behind])


class Insert(NamedTuple):
    """Markup in a translation: what it stands in the place of, and what it is, with a space beside it or none."""

    place: Span  # in the translation
    span: Span | None  # in the document
    raw: str = ""
    left: str = ""
    right: str = ""


@dataclass(frozen=True)
class Filling:
    """What a unit becomes."""

    text: str
    inserts: tuple[Insert, ...] = ()


@dataclass
class Report:
    """What to be wary of, by the line of the document."""

    units: int = 0
    notices: list[tuple[int, Notice]] = field(default_factory=list)


def format_of(path: Path, forced: str | None = None) -> str | None:
    """The format of a file by its name; None: plain lines of text."""
    if forced is not None:
        if forced != "text" and forced not in FORMATS:
            raise RequestError(f"--format: expected one of text, {', '.join(FORMATS)}; got {forced!r}")
        return None if forced == "text" else forced
    return next((name for name, its in FORMATS.items() if path.suffix.lower() in its.suffixes), None)


def check_columns(columns: Sequence[str | int], form: str | None) -> None:
    if columns and form not in TABLES:
        known = " or ".join(TABLES)
        raise RequestError(f"--columns: expected a table, {known}; got {form or 'text'}", "--format csv says so")


def read_parts(
    data: bytes, form: str, name: str, columns: Sequence[str | int] = (), max_unpacked_bytes: int = docx.MAX_TEXT_BYTES
) -> dict[str, Document]:
    """A document, or the parts of one that is kept in several, which have at most so many bytes when unpacked."""
    if form != "docx":
        return {name: Document.read(data, form, name, columns)}
    check_columns(columns, form)
    parts = {part: docx.prepared(text) for part, text in docx.read(data, name, max_unpacked_bytes).items()}
    return {part: Document.read(text, form, f"{name}: {part}") for part, text in parts.items()}


def prose_of(parts: Mapping[str, Document]) -> str:
    """What a document says, without its markup."""
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
    """The document with its prose translated; the direction is that of the document as a whole.

    `columns`: of a table, those to translate, by name or by number from 1. Where one is named, the first row is a
    header, which stays.
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
    """As `translate_document`, for a document that has been read: `data` became `parts` by `read_parts`."""
    units = [(part, number) for part, each in parts.items() for number in range(len(each.units))]
    texts = [parts[part].units[number].text for part, number in units]
    pair = translator.direction("\n".join(texts), source, target).languages
    wanted = [(part, number) for (part, number), text in zip(units, texts, strict=True) if is_prose(text, pair)]
    prose = [parts[part].units[number] for part, number in wanted]
    translations = translate_units(translator, prose, pair, options, glossary, memory)
    translation_of = dict(zip(wanted, translations, strict=True))
    report = Report(len(units))
    fillings: dict[str, dict[int, Filling]] = {part: {} for part in parts}
    lost = Notice("markup", "a tag lost the words that it stood around, and was put where they would be")
    for part, number in units:
        check_cancelled()
        unit, translation = parts[part].units[number], translation_of.get((part, number))
        if translation is None:  # it stays as it is, perhaps because it is in another language
            notices = language_notices(unit.text, pair) if has_words(unit.text) else []
        elif translation.text == unit.text:
            notices = [*translation.warnings]
        else:
            unit, translation = with_atoms(translator, unit, translation, options, glossary)
            fillings[part][number], is_sure = filled(unit, translation, is_spaced(pair[1]))
            notices = [*translation.warnings, *([] if is_sure else [lost])]
        line = parts[part].line_of(unit.span[0]) if notices else 0
        report.notices += [(line, notice) for notice in notices]
    changed = {part: parts[part].write(its) for part, its in fillings.items() if its}
    if not changed:
        return data, report
    if docx.MAIN in parts:
        return docx.write(data, changed), report
    (written,) = changed.values()
    return written, report


def translate_units(
    translator: Translator,
    units: Sequence[Unit],
    pair: tuple[str, str],
    options: TranslateOptions | None,
    glossary: Glossary | None,
    memory: TranslationMemory | None,
) -> list[Translation]:
    """All together; but a memory is for those without markup, as it cannot say which words that belongs to."""
    recalls = [memory is not None and not unit.marks and not unit.atoms for unit in units]
    found = []
    for kind in (False, True):
        texts = [unit.text for unit, its in zip(units, recalls, strict=True) if its == kind]
        found.append(iter(translator.translate_batch(texts, *pair, options, glossary, memory if kind else None)))
    return [next(found[kind]) for kind in recalls]


def with_atoms(
    translator: Translator, unit: Unit, said: Translation, options: TranslateOptions | None, glossary: Glossary | None
) -> tuple[Unit, Translation]:
    """Another translation, where one has lost what must come back: without it, as a mark that needs no model."""
    for _ in range(2):
        missing = lost_atoms(unit, said.text)
        if not missing:
            break
        unit = without(unit, missing)
        said = translator.translate(unit.text, *said.languages, options, glossary)
    else:
        if lost_atoms(unit, said.text):
            unit = without(unit, unit.all_atoms())
            said = translator.translate(unit.text, *said.languages, options, glossary)
    return unit, said


def is_prose(text: str, languages: tuple[str, str]) -> bool:
    """Whether there is something to translate: letters, of the source's script where the target has another."""
    if not has_words(text):
        return False
    written, other = (SCRIPTS.get(re.split("[-_]", each.lower())[0], ()) for each in languages)
    return not written or not set(written).isdisjoint(other) or letters(*written).search(text) is not None


def lost_atoms(unit: Unit, said: str) -> list[Atom]:
    """The atoms that a translation does not have, or not often enough."""
    atoms = unit.all_atoms()
    shown = [unit.text[slice(*atom.shown)] for atom in atoms]
    wanted, places = Counter(shown), occurrences(said, shown)
    return [atom for atom, text in zip(atoms, shown, strict=True) if text and len(places[text]) < wanted[text]]


def without(unit: Unit, atoms: Sequence[Atom]) -> Unit:
    """The unit with some atoms as single marks instead, which need no model to come back."""
    chosen = set(atoms)
    gone = [atom for atom in unit.all_atoms() if atom in chosen]
    starts = [atom.shown[0] for atom in gone]
    removed = [0, *accumulate(atom.shown[1] - atom.shown[0] for atom in gone)]

    def moved(at: int) -> int:
        """Where a place is now; those inside of what is gone are where it was."""
        before = bisect_left(starts, at)
        if before and at < gone[before - 1].shown[1]:
            before, at = before - 1, starts[before - 1]
        return at - removed[before]

    # At one place, what was a mark already is before the text that becomes one.
    marks = [((mark.at, 0), mark) for mark in unit.marks]
    marks += [
        ((atom.shown[0], 1), Mark(atom.shown[0], "single", atom.span, unit.text[slice(*atom.shown)])) for atom in gone
    ]
    text, at = "", 0
    for atom in gone:
        text += unit.text[at : atom.shown[0]]
        at = atom.shown[1]
    kept = [atom for atom in unit.atoms if atom not in chosen]
    return replace(
        unit,
        text=text + unit.text[at:],
        marks=tuple(mark._replace(at=moved(mark.at)) for _, mark in sorted(marks, key=lambda pair: pair[0])),
        atoms=tuple(atom._replace(shown=(moved(atom.shown[0]), moved(atom.shown[1]))) for atom in kept),
    )


def filled(unit: Unit, said: Translation, spaced: bool) -> tuple[Filling, bool]:
    """The translation with the markup of its unit, and whether every mark found its words."""
    inserts = _atoms_placed(unit, said.text)
    taken = sorted(insert.place for insert in inserts)
    places, is_sure = place(unit, said.text, said.alignment) if unit.marks else ([], True)
    for target, number in places:
        mark = unit.marks[number]
        before = bisect_left(taken, (target, 0))
        if before and target < taken[before - 1][1]:  # inside of an atom
            target = taken[before - 1][0 if mark.kind == "open" else 1]
        inserts.append(Insert((target, target), mark.span, mark.raw, *_pads(unit, mark, said.text, target, spaced)))
    order = sorted(range(len(inserts)), key=lambda number: (inserts[number].place[0], _rank(inserts[number], number)))
    return Filling(said.text, tuple(inserts[number] for number in order)), is_sure


def _atoms_placed(unit: Unit, said: str) -> list[Insert]:
    """The atoms of the markup where they stand in a translation; no two of them share a character.

    The longest come first: of `map()` and `map`, the shorter is not to be found inside the longer.
    """
    atoms = sorted(unit.atoms, key=lambda atom: atom.shown[0] - atom.shown[1])
    shown = [unit.text[slice(*atom.shown)] for atom in atoms]
    coming = {text: iter(places) for text, places in occurrences(said, shown).items()}
    is_taken = bytearray(len(said))
    inserts = []
    for atom, text in zip(atoms, shown, strict=True):
        for start in coming.get(text, ()):
            end = start + len(text)
            if is_taken.find(1, start, end) < 0:
                is_taken[start:end] = b"\1" * len(text)
                inserts.append(Insert((start, end), atom.span))
                break
    return inserts


def _pads(unit: Unit, mark: Mark, said: str, at: int, spaced: bool) -> tuple[str, str]:
    """Spaces beside a mark.

    What was text, and is a mark because the model lost it, is not to touch a word. And where a mark is known by its
    neighbours, one that closes behind punctuation must not be followed by a letter: **so.**What would stay asterisks.
    """
    left, right = said[max(0, at - 1) : at], said[at : at + 1]
    if mark.raw:
        return (" " if spaced and left.isalnum() else "", " " if spaced and right.isalnum() else "")
    if unit.leans and mark.kind == "close" and left and not left.isalnum() and right.isalnum():
        return "", " "
    if unit.leans and mark.kind == "open" and left.isalnum() and right and not right.isalnum():
        return " ", ""
    return "", ""


def _rank(insert: Insert, number: int) -> tuple[int, int]:
    """Of two at one place: marks in the order that they were put in, before an atom that begins there."""
    return (insert.place[1] > insert.place[0], number)
