"""The translation of a document in steps, so that a translator and a server can both carry them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sixfold.errors import RequestError
from sixfold.text.foreign_codes import code_of
from sixfold.text.identification import name_of
from sixfold.text.language_codes import base_language
from sixfold.text.languages import SCRIPTS, letters
from sixfold.text.sentences import is_spaced
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.direction import language_notices
from sixfold.translation.documents.document import Document
from sixfold.translation.documents.options import DocumentOptions
from sixfold.translation.documents.placement import (
    UnitTranslation,
    place_markup,
    place_segments,
    segments_of,
    text_to_translate,
)
from sixfold.translation.documents.units import Unit
from sixfold.translation.documents.verification import find_faulty_units, structure_fault
from sixfold.translation.glossary import Glossary
from sixfold.translation.icu import has_same_frame
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import has_words
from sixfold.translation.protection import has_same_parts, protected_spans
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Notice, Translation
from sixfold.translation.translator import Progress, Translator

LOST_MARKUP = Notice("markup", "a tag lost the words that it stood around, and was put where they would be")
Key = tuple[str, int]  # the part that a unit is in, and its index there


@dataclass
class Report:
    """How many units of a document there are and how many are translated, and the notices about them."""

    units: int = 0
    translated: int = 0
    untranslated: int = 0  # because their translations would have damaged the document
    notices: list[tuple[str, Notice]] = field(default_factory=list)  # each with where it is: the line, or the part
    copied: list[str] = field(default_factory=list)  # texts that are their own translations, such as names and codes


class TextBatch(NamedTuple):
    """Texts of a document that are translated together, and how."""

    texts: list[str]
    request: TranslationRequest


# Yields lists of batches of texts, receives their translations, and returns the translated document. So the same steps
# serve a translator, which translates a batch at once, and a server, which puts its sentences into a queue.
Translated = Sequence[Sequence[Translation]]  # of each text of each batch
DocumentSteps = Generator[list[TextBatch], Translated, tuple[bytes, Report]]


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
    keys: Sequence[str] = (),
    header: bool = False,
    pivot: bool = False,
    progress: Progress | None = None,
) -> tuple[bytes, Report]:
    """Return a document with its prose translated; the whole document has one direction.

    `form`: a key of FORMATS. `columns`: the columns of a table to translate, by name or by number from 1. `keys`:
    patterns of the keys of JSON or YAML to translate. `header`: translate the header of a table too. `pivot`: translate
    through a third language where no model has the direction. `progress` is called from time to time with the number of
    sentences that are done and that of all sentences, of the texts that are translated together.
    """
    document = Document.read(data, form, name, DocumentOptions(tuple(columns), tuple(keys), header))
    request = TranslationRequest(source, target, options or TranslateOptions(), glossary, memory, pivot=pivot)
    return translate_read_document(translator, document, request, progress)


def translate_read_document(
    translator: Translator, document: Document, request: TranslationRequest, progress: Progress | None = None
) -> tuple[bytes, Report]:
    """Return a document that has been read, with its prose translated, as `translate_document` does."""
    source, target = translator.route(document.prose, request).languages
    steps = document_steps(document, replace(request, source=source, target=target))
    return run_steps(steps, lambda texts, own: translator.translate_request(texts, own, progress))


def run_steps(
    steps: DocumentSteps, translate: Callable[[Sequence[str], TranslationRequest], Sequence[Translation]]
) -> tuple[bytes, Report]:
    """Run the steps of a document with a function that translates texts."""
    try:
        batches = next(steps)
        while True:
            batches = steps.send([translate(batch.texts, batch.request) for batch in batches])
    except StopIteration as end:
        result: tuple[bytes, Report] = end.value
        return result


def document_steps(document: Document, request: TranslationRequest) -> DocumentSteps:
    """Translate the prose of a document; the request names both languages.

    1. All units of prose are translated; a private character stands for each atom. Markup is put into the translations.
    2. Units whose translations would damage the document are translated again, in the segments between their markup,
       which stays as it is.
    3. Units for which that is not enough stay as they are, with a notice.
    """
    assert request.source is not None
    assert request.target is not None
    languages = request.source, request.target
    check_target_languages(document, languages)
    units = {(name, index): unit for name, part in document.parts.items() for index, unit in enumerate(part.units)}
    prose = {key: unit for key, unit in units.items() if is_prose(text_to_translate(unit).text, languages)}
    translated = yield from _translate_units(prose, request)
    output = _Output(document, languages[1])
    notices: dict[Key, list[Notice]] = {}
    copied: list[str] = []
    for key, unit in units.items():
        check_cancelled()
        translation = translated.get(key)
        if translation is None:  # it stays as it is, perhaps because it is in another language
            notices[key] = language_notices(unit.text, languages) if has_words(unit.text) else []
            continue
        notices[key] = [*translation.warnings]
        if fault := part_fault(translation.source, translation.text):
            output.reject(key, fault)
        elif translation.text == translation.source:
            copied.append(translation.text)
        else:
            placed, has_words_inside = place_markup(unit, translation, is_spaced(languages[1]))
            notices[key] += [] if has_words_inside else [LOST_MARKUP]
            output.add(key, replace(placed, needs_review=bool(notices[key])))
    output.verify()
    again = {key: units[key] for key in output.faulty if units[key].marks or units[key].atoms}
    segments = yield from _translate_segments(again, languages, request)
    for key, translations in segments.items():
        texts = [translation.text for translation in translations]
        placed = place_segments(units[key], texts, is_spaced(languages[1]))
        if fault := part_fault(text_to_translate(units[key]).text, placed.text):
            output.reject(key, fault)
            continue
        output.add(key, replace(placed, needs_review=True))
        notices[key] = [warning for translation in translations for warning in translation.warnings]
    if segments:
        output.verify()
    for key, reason in output.faulty.items():
        notices[key] = [Notice("untranslated", f"not translated, since that would damage the document: {reason}")]
    located = [
        (document.parts[part].location(index), notice)
        for (part, index), of_unit in notices.items()
        for notice in of_unit
    ]
    for name, part in document.parts.items():
        of_part = part.format.notices(part.text, languages[1]) if output.placed[name] else []
        located += [(f"{part.line_of(position)}", notice) for position, notice in of_part]
    report = Report(len(units), sum(map(len, output.placed.values())), len(output.faulty), located, copied)
    return document.write(output.placed, output.languages, output.faulty), report


def check_target_languages(document: Document, languages: tuple[str, str]) -> None:
    """Raise RequestError if a catalogue says that its translations are in another language than the target.

    Its messages without a translation would get one in another language than the others have, or in other characters:
    zh_TW is in traditional ones. A template may name the language of its messages, but no catalogue whose messages have
    translations into it, such as en_GB.
    """
    source, target = (code_of(language) for language in languages)
    for name, part in document.parts.items():
        named = part.format.target_languages(part.text) if part.units else []
        for position, own_code, has_translations in named:
            code = code_of(own_code)
            base = base_language(code)
            is_other_script = base == "zh" != own_code and code != target
            is_template = base == base_language(source) and not has_translations
            if is_template or (base == base_language(target) and not is_other_script):
                continue
            raise RequestError(
                f"{name}:{part.line_of(position)}: expected a catalogue for translations into "
                f"{name_of(base_language(target))} ({languages[1]}); got one into {name_of(base)} ({own_code})",
                f"translate it into {code}" if base == base_language(target)
                else f"take the catalogue for {languages[1]} or the template, or change {own_code} if it is wrong",
            )  # fmt: skip


class _Output:
    """The translations that are written into a document, and why the others are not."""

    def __init__(self, document: Document, language: str) -> None:
        self._parts = document.parts
        self.placed: dict[str, dict[int, UnitTranslation]] = {name: {} for name in document.parts}
        self.faulty: dict[Key, str] = {}
        # A part whose place for the language cannot be changed keeps its language.
        self.languages = {
            name: None if structure_fault(part, {}, language) else language for name, part in document.parts.items()
        }

    def add(self, key: Key, placed: UnitTranslation) -> None:
        """Add the translation of a unit, in the place of an earlier one."""
        part, index = key
        self.faulty.pop(key, None)
        self.placed[part][index] = placed

    def reject(self, key: Key, fault: str) -> None:
        """Note why the translation of a unit cannot be written."""
        self.faulty[key] = fault

    def verify(self) -> None:
        """Take back the translations that would change the structure of the document."""
        for name, part in self._parts.items():
            faulty = find_faulty_units(part, self.placed[name], self.languages[name]) if self.placed[name] else {}
            for index, reason in faulty.items():
                del self.placed[name][index]
                self.faulty[name, index] = reason


def part_fault(text: str, translation: str) -> str | None:
    """Return which of the parts that must be copied a translation has not kept, for people; None if it has them all."""
    if not has_same_frame(text, translation):
        return "the branches of a plural or select argument differ"
    if has_same_parts(text, translation):
        return None
    parts = [text[slice(*span)] for span in protected_spans(text)]
    changed = next((part for part in parts if text.count(part) != translation.count(part)), None)
    return (
        f"{changed} is missing or doubled"
        if changed
        else "a placeholder or a control character is new, or placeholders are in another order"
    )


def _translate_units(
    units: Mapping[Key, Unit], request: TranslationRequest
) -> Generator[list[TextBatch], Translated, dict[Key, Translation]]:
    """Translate units in two batches: those with markup, with alignment and without the memory, and the others.

    A memory cannot say which words the markup belongs to.
    """
    with_markup = {key: unit for key, unit in units.items() if unit.marks or unit.atoms}
    others = {key: unit for key, unit in units.items() if key not in with_markup}
    own_request = replace(request, memory=None, details=any(unit.marks for unit in with_markup.values()))
    batches = [
        TextBatch([text_to_translate(unit).text for unit in group.values()], of_group)
        for group, of_group in ((with_markup, own_request), (others, request))
    ]
    translations = yield batches
    return {
        key: translation
        for group, of_group in zip((with_markup, others), translations, strict=True)
        for key, translation in zip(group, of_group, strict=True)
    }


def _translate_segments(
    units: Mapping[Key, Unit], languages: tuple[str, str], request: TranslationRequest
) -> Generator[list[TextBatch], Translated, dict[Key, list[Translation]]]:
    """Translate the segments of units, which are the texts between their marks and atoms, one by one."""
    segments = {
        key: [text_to_translate(unit).text[slice(*span)] for span in segments_of(unit)] for key, unit in units.items()
    }
    texts = {text: None for of_unit in segments.values() for text in of_unit if is_prose(text, languages)}
    if not texts:
        return {}
    (translations,) = yield [TextBatch(list(texts), replace(request, memory=None))]
    translated = {
        text: translation
        for text, translation in zip(texts, translations, strict=True)
        if part_fault(text, translation.text) is None
    }
    return {
        key: [translated.get(text) or Translation(text, text, 0.0, languages) for text in of_unit]
        for key, of_unit in segments.items()
    }


def is_prose(text: str, languages: tuple[str, str]) -> bool:
    """Return whether a text has something to translate.

    It needs letters, and letters of the source's script if the target has another script.
    """
    if not has_words(text):
        return False
    source, target = (SCRIPTS.get(re.split("[-_]", language.lower())[0], ()) for language in languages)
    return not source or not set(source).isdisjoint(target) or letters(*source).search(text) is not None
