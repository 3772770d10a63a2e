"""Translations checked in their places: a document with them must have the structure that it had before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sixfold.translation.cancellation import check_cancelled
from sixfold.translation.documents.document import DocumentPart
from sixfold.translation.documents.placement import UnitTranslation
from sixfold.translation.documents.structure import difference
from sixfold.translation.documents.units import UnreadableError

MAX_CHECKED_CHARACTERS = 1 << 28  # that are parsed to find the faulty units of one document, after the first two checks


def find_faulty_units(
    part: DocumentPart, translations: Mapping[int, UnitTranslation], language: str | None = None
) -> dict[int, str]:
    """Return the indices of units whose translations would change the structure of a part, with the reasons.

    The part with all translations is checked first, and then halves of them, each together with all units that are
    known to be right. If that takes too long, all units that are not checked yet count as faulty.
    """
    checks = max(20, MAX_CHECKED_CHARACTERS // max(1, len(part.text)))
    correct: dict[int, UnitTranslation] = {}
    faulty: dict[int, str] = {}
    pending: list[Sequence[int]] = [list(translations)]  # groups of units, the next one last
    while pending:
        check_cancelled()
        group = pending.pop()
        candidate = {index: translations[index] for index in group}
        reason = structure_fault(part, correct | candidate, language)
        checks -= 1
        if reason is None:
            correct |= candidate
        elif len(group) <= 1 or checks <= 0:
            faulty |= dict.fromkeys(group, reason)
        else:
            middle = len(group) // 2
            pending += [group[middle:], group[:middle]]
    return faulty


def structure_fault(
    part: DocumentPart, translations: Mapping[int, UnitTranslation], language: str | None = None
) -> str | None:
    """Return how a part with translations differs in structure from the part itself; None if it does not."""
    try:
        structure = part.format.structure(part.render(translations, language))
    except UnreadableError as error:
        return error.message
    return difference(part.structure, structure)
