"""The numbers that stand in a text in figures, and whether two texts have the same ones."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_FIGURE = re.compile(r"\d")
_LABEL = re.compile(r"^\W*\d{1,2}[.、)）]\s*(?!\d)")  # the number of a step or an entry
_NUMBER = re.compile(
    r"(?<![A-Za-z\d])\d+(?:[.,:/]\d+|[\u00a0\u2009 ]\d{3}(?!\d))*"
    r"(?:\s?(?:[万亿千百萬億]+|(?:thousand|million|billion|trillion)\b))?"
)
_SCALES = {
    "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip


def numbers(text: str) -> Counter[str]:
    """The numbers that stand in figures: their digits alone, as languages disagree on points and commas."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return Counter(map(_digits, _NUMBER.findall(_LABEL.sub("", plain))))


def _digits(number: str) -> str:
    scale = number.lstrip("0123456789.,:/\u00a0\u2009 ")
    figures = number[: len(number) - len(scale)]
    value = 1
    for name in [scale] if scale.isascii() and scale else scale:
        value *= _SCALES[name]
    if value > 1 and figures.replace(",", "").replace(".", "", 1).strip().isdecimal():
        return f"{float(figures.replace(',', '')) * value:.0f}"
    return "".join(filter(str.isdecimal, figures)).lstrip("0") or "0"


def numbers_differ(source: str, target: str) -> str:
    """What each side says in figures that the other does not; empty where all is well, or one side has words for it."""
    if not _FIGURE.search(source) or not _FIGURE.search(target):
        return ""
    first, second = numbers(source), numbers(target)
    missing, extra = _unmatched(first, second), _unmatched(second, first)
    # Where only one side has figures left over, the other most often spells them: "1 月" is "January".
    return f"{', '.join(missing)} / {', '.join(extra)}" if missing and extra else ""


def _unmatched(ours: Counter[str], theirs: Counter[str]) -> list[str]:
    """What stands here only. Dates and versions are cut differently: parts of a longer number are no difference."""
    whole = " ".join(theirs)
    return [number for number in (ours - theirs) if number not in whole and not _made_of(number, theirs)]


def _made_of(number: str, parts: Counter[str]) -> bool:
    """Whether a number is others put together, as a date may be."""
    rest = number
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "", 1)
    return not rest.strip("0")
