"""The seams between the texts and the markup of a written translation, for formats where neighbours change markup.

Whether `**` is markup in reStructuredText, or where the name of a command ends in LaTeX, depends on the next character.
A format escapes each text with `mark_edges`, and its `Unit.layout` sees with `split` where texts begin and end:
`mark_edges(str)("a") + "**"` is split into `["", "a", "**"]`.
"""

from __future__ import annotations

from collections.abc import Callable

Escape = Callable[[str], str]
_EDGE = "\ufdd0"  # a noncharacter: no document has it


def mark_edges(escape: Escape) -> Escape:
    """Return a function that escapes a text, and marks where it begins and ends."""
    return lambda text: f"{_EDGE}{escape(text.replace(_EDGE, ''))}{_EDGE}"


def split(written: str) -> list[str]:
    """Return the markup and the texts of a written translation: markup has even indices, and may be empty."""
    return written.split(_EDGE)
