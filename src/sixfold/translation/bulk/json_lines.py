"""JSON lines: the text of an object, and the same object with its translation."""

from __future__ import annotations

import json
from collections.abc import Sequence

from sixfold.errors import DataError
from sixfold.translation.prepare import replace_surrogates

SAID, WARNINGS = "translation", "warnings"


def text_of(line: str, field: str, where: str) -> str:
    """What is to be translated; nothing of a blank line."""
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
        has = f"{record[field]!r}" if field in record else names
        raise DataError(f"{where}: expected a string in the field {field!r}; got {has:.60}", "--field names the field")
    for name in (SAID, WARNINGS):
        if name in record:
            raise DataError(f"{where}: has a field {name!r} already, which would be written", "rename the field")
    # Half a character can only be in an escape, and looking for one is slow.
    return replace_surrogates(record[field]) if "\\u" in line else record[field]


def with_translation(line: str, said: str, kinds: Sequence[str]) -> str:
    """Two fields more, and nothing else changed: numbers, escapes and spaces stay as they are written."""
    if not line.strip():
        return line
    end = line.rindex("}")
    more = f", {json.dumps(SAID)}: {json.dumps(said, ensure_ascii=False)}"
    if kinds:
        more += f", {json.dumps(WARNINGS)}: {json.dumps(list(kinds))}"
    return line[:end] + more + line[end:]
