"""Which values of JSON and YAML are translated: those whose keys a user chose, without what is evidently no prose."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sixfold.errors import RequestError
from sixfold.translation.protection import remove_protected

MAX_DATA = 500  # characters of a value that is looked at

# Values of one word that programs read: colours, languages, dates, hashes, types of media, ranges of versions.
_DATA = re.compile(
    r"\s*(?:#[\da-fA-F]{3,8}|(?:rgb|hsl|var|calc|url)a?\([^()]*\)|[a-z]{2,3}[-_](?:[A-Z]{2}|[A-Z][a-z]{3}|\d{3})"
    r"|\d{4}-\d\d-\d\d(?:[T ][\d:.]+(?:Z|[+-][\d:]+)?)?|(?=\S*\d)[A-Za-z\d+/_-]{24,}={0,2}"
    r"|(?:application|audio|font|image|multipart|text|video)/[\w.+*-]+|[~^<>=v]{0,2}\d+(?:\.[\dx*]+)+\S*"
    r"|-?\d+(?:\.\d+)?(?:px|r?em|pt|vh|vw|ms|s|%)|data:\S+|[a-z][a-z\d]*(?:-[a-z\d]+)*-\d[a-z\d-]*"
    r"|[a-z]\w*(?:(?:__|--)\w+)+(?:-\w+)*|[\w./-]*\*[\w.*/-]*[./][\w.*/-]*"
    r"|[A-Z][A-Z\d]*(?:_[A-Z\d]+)+|[a-z]+(?::[a-z-]+)+|[.#][a-z][\w-]*(?:-[\w-]+)+)\s*"
)

# A JSON Schema says by which key it follows. Of its values only these are prose, and not below those with `!`.
_SCHEMA = re.compile(r"""\$schema["']?\s*:\s*["']?https?://json-schema\.org/""")
_SCHEMA_KEYS = (
    "title", "description", "$comment", "markdownDescription", "errorMessage",
    "!type", "!format", "!pattern", "!enum", "!const", "!default", "!required", "!examples", "!$ref", "!$id",
)  # fmt: skip


class KeyPatterns:
    """Patterns such as title, page.*.text or !page.id, which choose values by the keys that lead to them.

    A pattern without a dot is the name of a key anywhere; with dots, the keys from the root on. A star stands for any
    part of one key, two stars for any keys. Places in lists are no keys. What is below a chosen key is chosen too.
    A key that has dots itself counts as several. Patterns with ! leave out what the others choose, or a part of all.
    """

    def __init__(self, patterns: Sequence[str]) -> None:
        self._wanted = [_compiled(pattern) for pattern in patterns if not pattern.startswith("!")]
        self._unwanted = [_compiled(pattern[1:]) for pattern in patterns if pattern.startswith("!")]

    def choose(self, path: Sequence[str]) -> bool:
        """Return whether the value that these keys lead to is translated."""
        if not self._wanted and not self._unwanted:
            return True
        joined = "\n".join(part for key in path for part in key.replace("\n", " ").split("."))
        if any(pattern.match(joined) for pattern in self._unwanted):
            return False
        return not self._wanted or any(pattern.match(joined) for pattern in self._wanted)


def key_patterns(keys: Sequence[str], text: str) -> KeyPatterns:
    """Return the patterns of a user, or those for a JSON Schema, whose keywords and types are no prose."""
    return KeyPatterns(keys or (_SCHEMA_KEYS if _SCHEMA.search(text, 0, 4 * MAX_DATA) else ()))


def _compiled(pattern: str) -> re.Pattern[str]:
    parts = pattern.strip().split(".")
    if not all(parts):
        raise RequestError(f"--keys: expected a pattern such as title, page.*.text or !id; got {pattern!r}")
    if len(parts) == 1:
        parts = ["**", *parts]
    expressions = ["" if part == "**" else _expression(part) for part in parts]
    joined = "".join(
        r"(?:[^\n]*\n)*?" if not expression else expression + (r"\n" if index < len(parts) - 1 else r"(?:\n|\Z)")
        for index, expression in enumerate(expressions)
    )
    return re.compile(joined)


def _expression(part: str) -> str:
    return "".join(r"[^\n]*" if char == "*" else r"[^\n]" if char == "?" else re.escape(char) for char in part)


def is_data(value: str) -> bool:
    """Return whether a value is evidently read by programs and not by people, such as #ff0000 or en-US."""
    return len(value) <= MAX_DATA and _DATA.fullmatch(value) is not None


def text_item(value: str) -> str:
    """Return the item of a text in a structure: the text itself if it is all placeholders, addresses and marks."""
    return "a text" if any(char.isalnum() for char in remove_protected(value)) else f"the text {value!r}"
