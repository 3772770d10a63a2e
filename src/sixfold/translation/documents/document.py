"""Documents read and written: units of prose are found and replaced, and every other byte stays where it is.

1. A format module finds the units of prose (`Document.read`).
2. Their texts are translated together (`steps.document_steps`), by a translator or a server.
3. Markup is put back into each translation (`placement.place_markup`).
4. The translations are checked in their places (`verification.find_faulty_units`).
5. The document is written with the translations (`Document.write`).
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.formats import FORMATS, Archive, Format, check_options
from sixfold.translation.documents.office import archive
from sixfold.translation.documents.options import NO_OPTIONS, DocumentOptions
from sixfold.translation.documents.placement import UnitTranslation
from sixfold.translation.documents.structure import Structure
from sixfold.translation.documents.units import Run, Span, Unit, UnreadableError
from sixfold.translation.protection import Edit


@dataclass(frozen=True)
class DocumentPart:
    """A text with its units: a document, or one member of an archive.

    Units do not overlap, except that one may be in the markup of another.
    """

    text: str
    units: tuple[Unit, ...]
    format: Format
    structure: Structure
    bom: bytes = b""
    member: str | None = None  # the name of the part of an archive that this is

    @classmethod
    def read(
        cls,
        data: bytes,
        form: Format,
        name: str = "document",
        options: DocumentOptions = NO_OPTIONS,
        member: str | None = None,
    ) -> DocumentPart:
        """Find the units of a text. `name`: the name of the document in messages."""
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
            structure = form.structure(text)
            text = form.normalise(text)
            units = form.parse(text, options)
        except UnreadableError as error:
            where = name if error.line is None else f"{name}:{error.line}"
            raise DataError(f"{where}: {error.message}", error.hint) from None
        in_order = tuple(sorted(units, key=lambda unit: (unit.span[0], -unit.span[1])))
        return cls(text, in_order, form, structure, bom, member)

    def without(self, texts: Collection[str]) -> DocumentPart:
        """Return the part without the units that have one of some texts."""
        if not texts:
            return self
        return replace(self, units=tuple(unit for unit in self.units if unit.text not in texts))

    def line_of(self, position: int) -> int:
        """Return the number of the line, from 1, that a position of the text is in."""
        return bisect_left(self._line_ends, position) + 1

    def location(self, index: int) -> str:
        """Return where a unit is, for people: its line, after the name of the part if it is a part of an archive."""
        line = self.line_of(self.units[index].span[0])
        return f"{line}" if self.member is None else f"{self.member}, text {index + 1}"

    @cached_property
    def _starts(self) -> list[int]:
        return [unit.span[0] for unit in self.units]

    @cached_property
    def _line_ends(self) -> list[int]:
        return [match.start() for match in re.finditer("\n", self.text)]

    def render(
        self,
        translations: Mapping[int, UnitTranslation],
        language: str | None = None,
        faulty: Collection[int] = (),
    ) -> str:
        """Return the text of the document with translations in the place of some units, by their index.

        `language`: the code to write where the format has a place for the language of the document. `faulty`: the
        indices of units whose translations failed verification.
        """
        edits = self._review_edits(translations, faulty)
        rendered = self._render((0, len(self.text)), 0, translations, edits)
        return rendered if language is None else self.format.finish(rendered, language)

    def encode(self, rendered: str) -> bytes:
        """Return the bytes of what `render` returns, with the byte order mark of the document."""
        return self.bom + rendered.encode()

    def _review_edits(self, translations: Mapping[int, UnitTranslation], faulty: Collection[int]) -> list[Edit]:
        """Return the edits outside the units that mark those for review and those that are not translated, in order."""
        marked = [self.units[index].review for index, each in translations.items() if each.needs_review]
        marked += [self.units[index].unfinished for index in faulty]  # they take the place of those for review
        return [Edit(span, text) for span, text in sorted(dict(filter(None, marked)).items())]

    def _render(
        self, span: Span, first: int, translations: Mapping[int, UnitTranslation], review: Sequence[Edit] = ()
    ) -> str:
        """Return a part of the document with its translations; no unit before index `first` is in that part."""
        parts, position, done = [], span[0], 0
        for index in range(max(first, bisect_left(self._starts, position)), len(self.units)):
            start, end = self.units[index].span
            if start >= span[1]:
                break
            if index in translations and start >= position:
                while done < len(review) and review[done].span[1] <= start:
                    (first_changed, position_after), text = review[done]
                    parts += [self.text[position:first_changed], text]
                    position, done = position_after, done + 1
                parts += [self.text[position:start], self._render_unit(index, translations)]
                position = end
        for (first_changed, position_after), text in review[done:]:
            parts += [self.text[position:first_changed], text]
            position = position_after
        return "".join([*parts, self.text[position : span[1]]])

    def _render_unit(self, index: int, translations: Mapping[int, UnitTranslation]) -> str:
        unit, translation = self.units[index], translations[index]
        text, position = "", 0
        writer = _RunWriter(unit)
        for insert in translation.inserts:
            text += translation.text[position : insert.target[0]] + insert.left
            position = insert.target[1]
            if insert.source is None:
                text += insert.raw + insert.right
                continue
            writer.add_text(text)
            if insert.ends_run:
                writer.end_run()
            writer.parts.append(self._render(insert.source, index + 1, translations))
            if insert.run is not None:
                writer.start_run(insert.run)
            text = insert.right
        writer.add_text(text + translation.text[position:])
        writer.end_run()
        before, after = unit.review_around if translation.needs_review and unit.review_around else unit.around
        return before + unit.layout("".join(writer.parts)) + after


class _RunWriter:
    """Writes the texts of a unit, each in its run; a run without any text is written too, since it is markup."""

    def __init__(self, unit: Unit) -> None:
        self.parts: list[str] = []
        self._escape = unit.escape
        self._runs: list[Run] = []
        self._is_empty: list[bool] = []  # of each of the runs around the position
        self.start_run(unit.run or Run("", ""))

    def add_text(self, text: str) -> None:
        if text:
            before, after, _ = self._runs[-1]
            self.parts += [before, self._escape(text), after]
            self._is_empty[-1] = False

    def start_run(self, run: Run) -> None:
        self._runs.append(run)
        self._is_empty.append(True)

    def end_run(self) -> None:
        """End the run that was started last."""
        before, after, _ = self._runs.pop()
        if self._is_empty.pop():
            self.parts += [before, after]


@dataclass(frozen=True)
class Document:
    """A document that has been read."""

    data: bytes
    form: str  # a key of FORMATS
    parts: Mapping[str, DocumentPart]  # by the name of the document, or by the names of the members of an archive

    @classmethod
    def read(
        cls,
        data: bytes,
        form: str,
        name: str = "document",
        options: DocumentOptions = NO_OPTIONS,
        max_unpacked_bytes: int = archive.MAX_TEXT_BYTES,
    ) -> Document:
        """Find the units of a document. `name`: its name in messages.

        The members of an archive that have text may have at most `max_unpacked_bytes` bytes.
        """
        if form not in FORMATS:
            raise RequestError(f"--format: expected one of {', '.join(FORMATS)}; got {form!r}")
        check_options(options, form)
        known = FORMATS[form]
        if isinstance(known, Format):
            return cls(data, form, {name: DocumentPart.read(data, known, name, options)})
        members = archive.read(data, name, known.title, known.required, known.is_read, max_unpacked_bytes)
        named = known.named_texts({member: content.decode(errors="replace") for member, content in members.items()})
        return cls(data, form, {
            member: DocumentPart.read(content, member_format, f"{name}: {member}", member=member).without(named)
            for member, content in members.items()
            if (member_format := known.format_of(member)) is not None
        })  # fmt: skip

    @property
    def prose(self) -> str:
        """The text of the document without its markup."""
        return "\n".join(unit.text for part in self.parts.values() for unit in part.units)

    def write(
        self,
        translations: Mapping[str, Mapping[int, UnitTranslation]],
        languages: Mapping[str, str | None],
        faulty: Collection[tuple[str, int]] = (),
    ) -> bytes:
        """Return the document with the translations of its units, by part and index.

        `languages`: the code that is written into each part as its language. `faulty`: the part and the index of each
        unit whose translation failed verification. A document without any translation comes back as it is. If an
        archive has one, the language is written into its other parts too.
        """
        faulty_of: dict[str, list[int]] = {name: [] for name in translations}
        for name, index in faulty:
            faulty_of[name].append(index)
        changed = {
            name: self.parts[name].encode(self.parts[name].render(of_part, languages[name], faulty_of[name]))
            for name, of_part in translations.items()
            if of_part
        }
        if not changed:
            return self.data
        if isinstance(FORMATS[self.form], Archive):
            for name in self.parts.keys() - changed.keys():
                part, language = self.parts[name], languages[name]
                if language is not None and part.format.finish(part.text, language) != part.text:
                    changed[name] = part.encode(part.render({}, language))
            return archive.write(self.data, changed)
        (written,) = changed.values()
        return written
