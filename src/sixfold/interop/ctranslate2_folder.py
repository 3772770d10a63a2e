"""The files of a CTranslate2 folder: the variables of model.bin, the settings and the vocabularies."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.errors import ModelFileError
from sixfold.interop.ctranslate2 import BINARY_VERSION, DTYPES

SETTINGS: dict[str, tuple[Any, str]] = {
    **dict.fromkeys(("unk_token", "bos_token", "eos_token", "decoder_start_token"), (str, "a token")),
    **dict.fromkeys(("add_source_bos", "add_source_eos"), (bool, "true or false")),
    "layer_norm_epsilon": (int | float, "a number"),
}
FIRST_VERSION = 4  # of the format; older ones do not say the type of a variable


@dataclass
class Variables:
    """The variables of a model.bin. `take` marks those that are used, so that the others can be named."""

    where: str
    arrays: dict[str, np.ndarray]
    name: str
    revision: int

    def __post_init__(self) -> None:
        self.used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str) -> np.ndarray:
        self.used.add(name)
        return self.arrays[name]

    def scalar(self, name: str, default: Any) -> Any:
        """Return the value of a setting."""
        return self.take(name).reshape(-1)[0].item() if name in self.arrays else default


def read_variables(path: Path) -> Variables:
    """Read a model.bin: a table of named arrays, then other names of arrays in that table."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None
    try:
        return _parse(str(path), data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise ModelFileError(
            f"{path}: expected a CTranslate2 model; it is damaged or cut short ({error})", "copy it again"
        ) from None


def _parse(where: str, data: bytes) -> Variables:
    position = 0

    def read(pattern: str) -> Any:
        nonlocal position
        values = struct.unpack_from(f"<{pattern}", data, position)
        position += struct.calcsize(f"<{pattern}")
        return values if len(values) > 1 else values[0]

    def read_string() -> str:
        nonlocal position
        size = read("H")
        text = data[position : position + size]
        if len(text) < size or text[-1:] != b"\0":
            raise ValueError("a name is cut short")
        position += size
        return text[:-1].decode()

    version = read("I")
    if not FIRST_VERSION <= version <= BINARY_VERSION:
        raise ModelFileError(
            f"{where}: expected a CTranslate2 model of the version {FIRST_VERSION} to {BINARY_VERSION}; got {version}",
            "convert the original model with a newer ctranslate2",
        )
    name, revision = read_string(), read("I")
    arrays: dict[str, np.ndarray] = {}
    for _ in range(read("I")):
        variable, rank = read_string(), read("B")
        shape = tuple(read("I") for _ in range(rank))
        code, size = read("BI")
        if code >= len(DTYPES):
            raise ValueError(f"{variable} has the unknown type {code}")
        kind = DTYPES[code]
        raw = np.frombuffer(data[position : position + size], "<u2" if kind == "bfloat16" else np.dtype(kind))
        position += size
        array = raw.reshape(shape)
        arrays[variable] = (array.astype(np.uint32) << 16).view(np.float32) if kind == "bfloat16" else array
    for _ in range(read("I")):
        alias, variable = read_string(), read_string()
        arrays[alias] = arrays[variable]
        if f"{variable}_scale" in arrays:
            arrays[f"{alias}_scale"] = arrays[f"{variable}_scale"]
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes too many")
    return Variables(where, arrays, name, revision)


def read_settings(folder: Path) -> dict[str, Any]:
    """Return config.json, which folders of before CTranslate2 3 lack."""
    path = folder / "config.json"
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path}: not valid JSON")
    for name, (kinds, expected) in SETTINGS.items():
        if not isinstance(content.get(name), kinds | None):
            raise ModelFileError(f"{path}: {name}: expected {expected}; got {content[name]!r:.60}")
    return content


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """Return the tokens of source and target, from JSON or from lines of text."""
    shared = _read_vocabulary(folder, "shared_vocabulary")
    if shared is not None:
        return shared, shared
    sides = [_read_vocabulary(folder, f"{side}_vocabulary") for side in ("source", "target")]
    source, target = sides
    if source is None or target is None:
        raise ModelFileError(
            f"{folder}: expected shared_vocabulary.json, or source_vocabulary.json and target_vocabulary.json; "
            f"found {'neither' if source is target else 'one'}"
        )
    return source, target


def _read_vocabulary(folder: Path, name: str) -> list[str] | None:
    if (path := folder / f"{name}.json").exists():
        try:
            tokens = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            tokens = None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ModelFileError(f"{path}: expected a list of tokens in JSON")
        return tokens
    if (path := folder / f"{name}.txt").exists():
        try:
            return path.read_bytes().decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise ModelFileError(f"{path}: expected UTF-8 text, a token in each line") from None
    return None
