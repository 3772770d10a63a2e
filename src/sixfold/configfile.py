"""Reads, checks and writes settings of any kind: TOML, overrides, and suggestions for misspelt names."""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from sixfold.errors import ConfigError


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file as plain values."""
    try:
        return tomllib.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        byte = f"0x{error.object[error.start]:02x} at offset {error.start}"
        raise ConfigError(f"{path}: expected UTF-8; got byte {byte}", "save the file as UTF-8") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


Section = TypeVar("Section")


def section_from(section: type[Section], path: str, values: Mapping[str, Any]) -> Section:
    """Make a section from plain values; an unknown key is a ConfigError that suggests the closest setting."""
    hints = get_type_hints(section)
    for key in values:
        if key not in hints:
            raise ConfigError(f"{path}.{key}: no such setting", did_you_mean(key, hints))
    return section(**{key: coerce(hints[key], value) for key, value in values.items()})


# TOML allows no control character except the tab in a string; it has JSON's short escapes.
_TOML_ESCAPES = {
    **{code: f"\\u{code:04x}" for code in (*range(0x20), 0x7F)},
    ord("\b"): "\\b", ord("\t"): "\\t", ord("\n"): "\\n", ord("\f"): "\\f", ord("\r"): "\\r",
    ord('"'): '\\"', ord("\\"): "\\\\",
}  # fmt: skip


def toml_value(value: Any) -> str:
    """Return the TOML text of a boolean, number, string or list; `tomllib` reads the same value from it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise ConfigError(
                f"settings: expected text that UTF-8 can hold; got {value!r}", "remove the lone surrogate from it"
            ) from None
        return f'"{value.translate(_TOML_ESCAPES)}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    return repr(value)


def parse_value(text: str) -> Any:
    """Parse a TOML value; text that is not valid TOML is a string, so quotes may be left out."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (
        ValueError,
        RecursionError,
    ):  # TOMLDecodeError is a ValueError; so is the error for a number of 5,000 digits
        return text


def assign(tree: Mapping[str, Any], assignments: Iterable[str]) -> dict[str, Any]:
    """Return settings after changes such as `model.heads=4`."""
    changed = dict(tree)
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        section, dot, key = path.strip().partition(".")
        if not separator or not dot:
            raise ConfigError(
                f"--set: expected section.key=value; got {assignment!r}", "for example: --set model.heads=4"
            )
        changed = merge(changed, {section: {key: parse_value(text.strip())}})
    return changed


def merge(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `change`; tables are merged key by key."""
    merged = dict(base)
    for key, value in change.items():
        are_tables = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
        merged[key] = merge(merged[key], value) if are_tables else value
    return merged


def coerce(hint: Any, value: Any) -> Any:
    """Convert a list to a tuple and an int to a float where the type hint needs it; TOML and JSON have no tuples."""
    if get_origin(hint) is tuple and isinstance(value, list):
        return tuple(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value


def check_types(section: Any, path: str) -> None:
    """Raise ConfigError for the first setting of a section whose value does not have the type of its field."""
    for name, hint in get_type_hints(type(section)).items():
        value = getattr(section, name)
        where = f"{path}.{name}"
        if get_origin(hint) is Literal:
            choices = get_args(hint)
            if value not in choices:
                expected = "one of " + ", ".join(map(str, choices))
                raise ConfigError(f"{where}: expected {expected}; got {value!r}", did_you_mean(str(value), choices))
        elif get_origin(hint) is tuple:
            kind = get_args(hint)[0]
            fits = isinstance(value, tuple) and all(type(item) is kind for item in value)
            require(fits, where, "a list of strings" if kind is str else "a list of whole numbers", value)
        else:
            # The exact type, because bool is a subclass of int.
            require(type(value) is hint, where, f"{'an' if hint is int else 'a'} {hint.__name__}", value)
            require(hint is not float or math.isfinite(value), where, "a finite number", value)


def require(condition: bool, where: str, expected: str, got: object) -> None:
    """Raise ConfigError if a condition is false."""
    if not condition:
        raise ConfigError(f"{where}: expected {expected}; got {got!r}")


def did_you_mean(name: str, choices: Iterable[Any]) -> str | None:
    """Return a hint with the closest of the choices, or None if none is close."""
    matches = difflib.get_close_matches(name, [str(item) for item in choices], n=1)
    return f"did you mean {matches[0]!r}?" if matches else None


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return a line such as `beam: 4 → 1` for every value that differs."""
    return [
        f"{name}: {before.get(name, 'not set')} → {now.get(name, 'not set')}"
        for name in sorted(before.keys() | now.keys())
        if before.get(name) != now.get(name)
    ]
