"""The file of a SentencePiece model: its pieces, their scores and kinds, and how texts are normalised."""

from __future__ import annotations

from dataclasses import dataclass

from sixfold.text.protobuf import Value, read_fields

SPACE = "▁"  # is written for a space
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


@dataclass(frozen=True)
class NormaliserSettings:
    """How a text is normalised before it is cut into pieces. The defaults are those of the library."""

    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True
    treat_whitespace_as_suffix: bool = False


@dataclass(frozen=True)
class Contents:
    """The fields of a model file that decide about pieces."""

    pieces: list[str]
    scores: list[float]
    kinds: list[int]
    algorithm: str
    byte_fallback: bool
    unknown_surface: str
    charsmap: bytes
    settings: NormaliserSettings


def read_model(data: bytes) -> Contents:
    pieces: list[str] = []
    scores: list[float] = []
    kinds: list[int] = []
    trainer: dict[int, Value] = {}
    normaliser: dict[int, Value] = {}
    for number, value in read_fields(data):
        if number in (1, 2, 3) and not isinstance(value, bytes):
            raise ValueError(f"field {number} is no message")
        if number == 1:
            fields = dict(read_fields(_bytes(value)))
            pieces.append(_bytes(fields.get(1, b"")).decode())
            scores.append(float(_number(fields.get(2, 0.0))))
            kinds.append(int(_number(fields.get(3, NORMAL))))
        elif number == 2:
            trainer = dict(read_fields(_bytes(value)))
        elif number == 3:
            normaliser = dict(read_fields(_bytes(value)))
    if kinds.count(UNKNOWN) != 1:
        raise ValueError(f"it has {len(pieces)} pieces, {kinds.count(UNKNOWN)} of them unknown, where one is expected")
    if len(set(pieces)) != len(pieces):
        raise ValueError("it has the same piece twice")
    kind = int(_number(trainer.get(3, 1)))
    dummy, remove, escape = (bool(normaliser.get(number, 1)) for number in (3, 4, 5))
    settings = NormaliserSettings(dummy, remove, escape, bool(trainer.get(24, 0)))
    surface = _bytes(trainer.get(44, " \u2047 ".encode())).decode()
    algorithm = MODEL_TYPES.get(kind, str(kind))
    fallback = bool(trainer.get(35, 0))
    return Contents(pieces, scores, kinds, algorithm, fallback, surface, _bytes(normaliser.get(2, b"")), settings)


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("a number where bytes are expected")
    return value


def _number(value: Value) -> int | float:
    if isinstance(value, bytes):
        raise TypeError("bytes where a number is expected")
    return value
