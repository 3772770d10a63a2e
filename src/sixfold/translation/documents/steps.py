"""The translation of a document in steps, so that a translator and a server can both carry them out."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from sixfold.text.languages import SCRIPTS, letters
from sixfold.text.sentences import is_spaced
from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.direction import language_notices
from sixfold.translation.documents.document import Document, prose_of, read_parts, write_parts
from sixfold.translation.documents.placement import UnitTranslation, atoms_to_marks, missing_atoms, place_markup
from sixfold.translation.documents.units import Unit
from sixfold.translation.glossary import Glossary
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import has_words
from sixfold.translation.request import TranslationRequest
from sixfold.translation.result import Notice, Translation
from sixfold.translation.translator import Progress, Translator

LOST_MARKUP = Notice("markup", "a tag lost the words that it stood around, and was put where they would be")
Key = tuple[str, int]  # the part that a unit is in, and its index there


@dataclass
class Report:
    """The number of units of a document, and the notices about their translations with the lines of the document."""

    units: int = 0
    notices: list[tuple[int, Notice]] = field(default_factory=list)


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
) -> tuple[bytes, Report]:
    """Return a document with its prose translated; the whole document has one direction.

    `form`: a key of FORMATS. `columns`: the columns of a table to translate, by name or by number from 1. If one is
    given by name, the first row is a header, which stays.
    """
    parts = read_parts(data, form, name, columns)
    request = TranslationRequest(source, target, options or TranslateOptions(), glossary, memory)
    return translate_read_document(translator, parts, data, request)


def translate_read_document(
    translator: Translator,
    parts: Mapping[str, Document],
    data: bytes,
    request: TranslationRequest,
    progress: Progress | None = None,
) -> tuple[bytes, Report]:
    """Return a document, of which `parts` is `read_parts`, with its prose translated, as `translate_document` does."""
    source, target = translator.route(prose_of(parts), request).languages
    steps = translate_parts(parts, data, replace(request, source=source, target=target))
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


def translate_parts(parts: Mapping[str, Document], data: bytes, request: TranslationRequest) -> DocumentSteps:
    """Translate the prose of a document; `parts` is `read_parts` of `data`, and the request names both languages.

    1. All units of prose are translated.
    2. Units whose translations lack atoms are translated again, up to three times, with these atoms as marks.
    3. Markup is put into the translations, and these into the document.
    """
    assert request.source is not None
    assert request.target is not None
    languages = request.source, request.target
    units = {(part, index): unit for part, document in parts.items() for index, unit in enumerate(document.units)}
    prose = {key: unit for key, unit in units.items() if is_prose(unit.text, languages)}
    translated = yield from _translate_units(prose, request)
    translated = yield from _restore_atoms(translated, request)
    report = Report(len(units))
    written: dict[str, dict[int, UnitTranslation]] = {part: {} for part in parts}
    for (part, index), original in units.items():
        check_cancelled()
        unit, translation = translated.get((part, index), (original, None))
        if translation is None:  # it stays as it is, perhaps because it is in another language
            notices = language_notices(unit.text, languages) if has_words(unit.text) else []
        elif translation.text == original.text:
            notices = [*translation.warnings]
        else:
            written[part][index], has_words_inside = place_markup(unit, translation, is_spaced(languages[1]))
            notices = [*translation.warnings, *([] if has_words_inside else [LOST_MARKUP])]
        line = parts[part].line_of(unit.span[0]) if notices else 0
        report.notices += [(line, notice) for notice in notices]
    return write_parts(parts, data, written), report


TranslatedUnits = dict[Key, tuple[Unit, Translation]]


def _translate_units(
    units: Mapping[Key, Unit], request: TranslationRequest
) -> Generator[list[TextBatch], Translated, TranslatedUnits]:
    """Translate units in two batches: those with markup, with alignment and without the memory, and the others.

    A memory cannot say which words the markup belongs to.
    """
    with_markup = {key: unit for key, unit in units.items() if unit.marks or unit.atoms}
    others = {key: unit for key, unit in units.items() if key not in with_markup}
    own_request = replace(request, memory=None, details=any(unit.marks for unit in with_markup.values()))
    batches = [
        TextBatch([unit.text for unit in group.values()], of_group)
        for group, of_group in ((with_markup, own_request), (others, request))
    ]
    translations = yield batches
    return {
        key: (unit, translation)
        for group, of_group in zip((with_markup, others), translations, strict=True)
        for (key, unit), translation in zip(group.items(), of_group, strict=True)
    }


def _restore_atoms(
    translated: TranslatedUnits, request: TranslationRequest
) -> Generator[list[TextBatch], Translated, TranslatedUnits]:
    """Translate units again whose translations lack atoms: these become marks, which the model cannot lose.

    In the third round all atoms become marks. A unit whose translation is the unit itself is left alone.
    """
    result = dict(translated)
    remaining = [key for key, (unit, translation) in translated.items() if translation.text != unit.text]
    for is_last in (False, False, True):
        again: dict[Key, Unit] = {}
        for key in remaining:
            check_cancelled()
            unit, translation = result[key]
            missing = missing_atoms(unit, translation.text)
            if missing:
                again[key] = atoms_to_marks(unit, unit.all_atoms() if is_last else missing)
        if again:
            own = replace(request, memory=None, details=True)
            (translations,) = yield [TextBatch([unit.text for unit in again.values()], own)]
            result |= dict(zip(again, zip(again.values(), translations, strict=True), strict=True))
        remaining = list(again)
    return result


def is_prose(text: str, languages: tuple[str, str]) -> bool:
    """Return whether a text has something to translate.

    It needs letters, and letters of the source's script if the target has another script.
    """
    if not has_words(text):
        return False
    source, target = (SCRIPTS.get(re.split("[-_]", language.lower())[0], ()) for language in languages)
    return not source or not set(source).isdisjoint(target) or letters(*source).search(text) is not None
