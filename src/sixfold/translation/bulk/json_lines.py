"""JSON lines: the text of an object, and the same object with its translation."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sixfold.errors import DataError
from sixfold.translation.prepare import replace_surrogates

TRANSLATION, WARNINGS = "translation", "warnings"  # the fields that are added


def text_of(line: str, field: str, where: str) -> str:
    """Return the text in a field of a JSON object, or an empty text for a blank line.

    Raise DataError, with the place `where`, if the line has no such text or has a field that would be added.
    """
    if not line.strip():
        return ""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON: {error}", "every line must be an object of its own") from None
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object; got {line.strip()[:60]!r}", 'for example {"text": "…"}')
    if not isinstance(record.get(field), str):
        names = f"only {', '.join(record) or 'an empty object'}"
        value = f"{record[field]!r}" if field in record else names
        message = f"{where}: expected a string in the field {field!r}; got {value:.60}"
        raise DataError(message, "--field names the field")
    for name in (TRANSLATION, WARNINGS):
        if name in record:
            raise DataError(f"{where}: has a field {name!r} already, which would be written", "rename the field")
    # Surrogates can only come from escapes, and looking for surrogates is slow.
    return replace_surrogates(record[field]) if "\\u" in line else record[field]


def with_translation(line: str, translation: str, kinds: Sequence[str]) -> str:
    """Return a line with the fields for the translation and for the kinds of its warnings, if it has any.

    Nothing else changes: numbers, escapes and spaces stay as they are written.
    """
    if not line.strip():
        return line
    end = line.rindex("}")
    fields = f", {json.dumps(TRANSLATION)}: {json.dumps(translation, ensure_ascii=False)}"
    if kinds:
        fields += f", {json.dumps(WARNINGS)}: {json.dumps(list(kinds))}"
    return line[:end] + fields + line[end:]
