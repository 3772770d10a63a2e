"""Texts and what they become: two columns of a file, for one direction or, turned about, the other."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from sixfold.errors import DataError
from sixfold.text.encodings import SAMPLE, check_utf8

Languages = tuple[str, str]


class Pair(NamedTuple):
    """A text, and what it becomes."""

    source: str
    target: str


def read_pairs(path: Path, kind: str) -> tuple[tuple[Pair, ...], Languages | None]:
    """Two columns separated by tabs; a first line of two language codes, such as `en	zh`, says the direction.

    `kind`: what stands in the first column, in words.
    """
    pairs = []
    try:
        with path.open("rb") as raw:
            check_utf8(raw.read(SAMPLE), str(path))
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            for row in reader:
                if not any(map(str.strip, row)):
                    continue
                if len(row) < 2 or not row[0].strip() or not row[1].strip():
                    wanted = f"{kind}, a tab and its translation"
                    raise DataError(f"{path}:{reader.line_num}: expected {wanted}; got {row!r:.60}")
                pairs.append(Pair(row[0].strip(), row[1].strip()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: cannot be read: {error}") from None
    if pairs and all(re.fullmatch(r"[a-z]{2,3}(?:-\w+)?", each) for each in pairs[0]):
        return tuple(pairs[1:]), (pairs[0].source, pairs[0].target)
    return tuple(pairs), None


def is_turned(known: Languages | None, wanted: Languages) -> bool | None:
    """Whether pairs of a direction must be turned about for the one that is wanted; None: they are for neither."""
    if known is None or known == wanted:
        return False
    return True if known == wanted[::-1] else None


def turned_about(pairs: Iterable[Pair]) -> tuple[Pair, ...]:
    return tuple(Pair(target, source) for source, target in pairs)
