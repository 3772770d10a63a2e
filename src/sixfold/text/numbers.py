"""The numbers that a text writes in digits, and whether two texts have the same ones."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_DIGIT = re.compile(r"\d")
_LABEL = re.compile(r"^\W*\d{1,2}[.、)）]\s*(?!\d)")  # the number of a list item
_NUMBER = re.compile(
    r"(?<![A-Za-z\d])\d+(?:[.,:/]\d+|[\u00a0\u2009 ]\d{3}(?!\d))*"
    r"(?:\s?(?:[万亿千百萬億]+|(?:thousand|million|billion|trillion)\b))?"
)
_SCALES = {
    "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip


def numbers(text: str) -> Counter[str]:
    """Count the numbers of a text that are written in digits. Only digits are kept: points and commas vary."""
    normalised = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return Counter(map(_digits, _NUMBER.findall(_LABEL.sub("", normalised))))


def _digits(number: str) -> str:
    """Return the digits of a number, multiplied by its scale: "1.5 million" becomes "1500000"."""
    scale = number.lstrip("0123456789.,:/\u00a0\u2009 ")
    digits = number[: len(number) - len(scale)]
    factor = 1
    for name in [scale] if scale.isascii() and scale else scale:
        factor *= _SCALES[name]
    if factor > 1 and digits.replace(",", "").replace(".", "", 1).strip().isdecimal():
        return f"{float(digits.replace(',', '')) * factor:.0f}"
    return "".join(filter(str.isdecimal, digits)).lstrip("0") or "0"


def numbers_differ(source: str, target: str) -> str:
    """Return the numbers that only the source and only the target has, as "1, 2 / 3", or "".

    If only one side has numbers left over, the result is empty: the other side probably spells them in words.
    """
    if not _DIGIT.search(source) or not _DIGIT.search(target):
        return ""
    first, second = numbers(source), numbers(target)
    missing, extra = _unmatched(first, second), _unmatched(second, first)
    # "1 月" is "January": a number without a counterpart is no fault.
    return f"{', '.join(missing)} / {', '.join(extra)}" if missing and extra else ""


def _unmatched(numbers: Counter[str], reference: Counter[str]) -> list[str]:
    """Return the numbers that the reference lacks, parts of longer numbers excepted: dates are divided differently."""
    joined = " ".join(reference)
    return [number for number in (numbers - reference) if number not in joined and not _is_made_of(number, reference)]


def _is_made_of(number: str, parts: Counter[str]) -> bool:
    """Return whether a number is other numbers joined together, as a date may be."""
    remaining = number
    for part in sorted(parts, key=len, reverse=True):
        remaining = remaining.replace(part, "", 1)
    return not remaining.strip("0")
