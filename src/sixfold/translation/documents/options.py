"""The choices of a user about what of a document is translated."""

from __future__ import annotations

from dataclasses import dataclass, fields

FLAGS = {"columns": "--columns", "keys": "--keys", "header": "--header"}  # of the command line


@dataclass(frozen=True)
class DocumentOptions:
    """What of a document is translated. Empty values stand for everything that the format has."""

    columns: tuple[str | int, ...] = ()  # of a table, by name or by number from 1
    keys: tuple[str, ...] = ()  # of JSON or YAML: patterns such as title or page.*.text; with ! in front: not these
    header: bool = False  # translate the first row of a table although it is a header

    def chosen(self) -> list[str]:
        """Return the names of the options that are not empty."""
        return [field.name for field in fields(self) if getattr(self, field.name)]


NO_OPTIONS = DocumentOptions()
