"""Reads an English number in words or digits: 1.25 billion, twenty-one, two hundred and five, nineteen ninety-eight."""

from __future__ import annotations

import re

from sixfold.text.quantities import DIGITS, rounded

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORD_VALUES = {word: value for value, word in enumerate(_ONES)} | {word: 10 * at for at, word in enumerate(_TENS, 2)}
SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9, "trillion": 10**12,
    "mn": 10**6, "mln": 10**6, "bn": 10**9, "tn": 10**12, "lakh": 10**5, "crore": 10**7,
}  # fmt: skip
ONE = "|".join(sorted(WORD_VALUES, key=len, reverse=True))
SCALE = "|".join(SCALES)
WORD_SCALE = "|".join(name for name in SCALES if len(name) > 3)
_TOKEN = re.compile(
    r"[ -]and[ -](?:a|one)[ -](?P<share>half|third|quarter)\b"
    rf"|(?P<joint>[ -]?|[ -]and[ -])(?:(?P<digits>{DIGITS})|(?P<word>{ONE})\b|(?P<scale>{SCALE})s?\b"
    r"|(?P<article>half(?: an?)?|(?:a )?quarter (?:of )?an?|an?)(?=[ -]))"
    r"|[ -]point(?P<places>(?: (?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b)++)",
    re.IGNORECASE,
)
_SHARES = {"half": 1 / 2, "third": 1 / 3, "quarter": 1 / 4}


def read_number(text: str, position: int) -> tuple[float, int, bool]:
    """Return the value of the number at a position, its end, and whether it is written in words.

    "two hundred and five" is one number; "two hundred and three hundred" has two.
    """
    parts: list[float] = []
    last = ""  # the kind of the last word: digits, ones, tens, scale or share
    while token := _TOKEN.match(text, position):
        joint = token["joint"] or ""
        if token["share"]:
            if last not in ("digits", "ones", "tens"):
                break
            parts.append(_SHARES[token["share"].lower()])
            kind = "share"
        elif token["places"]:
            if last not in ("ones", "tens"):
                break
            digits = "".join(str(WORD_VALUES.get(word, 0)) for word in token["places"].lower().split())
            parts.append(float(f"0.{digits}"))
            kind = "share"
        elif token["scale"]:
            scale = SCALES[token["scale"].lower()]
            if "and" in joint or (last == "scale" and parts[-1] >= scale):
                break
            _multiply(parts, scale)
            kind = "scale"
        elif token["article"]:
            if parts:
                break
            article = token["article"].lower()
            parts.append(0.5 if "half" in article else 0.25 if "quarter" in article else 1.0)
            kind = "ones"
        else:
            value = float((token["digits"] or "").replace(",", "") or WORD_VALUES[token["word"].lower()])
            kind = "digits" if token["digits"] else "tens" if value >= 20 else "ones"
            is_year = last in ("ones", "tens") and joint in (" ", "-") and 13 <= parts[0] <= 20 <= 2 * value
            is_compound = last == "tens" and joint == "-"  # thirty-five hundred
            begins = bool(parts) and not is_compound and _begins_another(text, token.end(), parts[-1])
            if _continues(parts, last, value, kind, joint) and not begins:
                parts.append(value)
            elif is_year and kind != "digits":
                parts = [parts[0] * 100 + value]  # nineteen ninety-eight
            elif parts:
                break
            else:
                parts = [value]
        last, position = kind, token.end()
    return rounded(sum(parts)), position, last not in ("", "digits")


def _continues(parts: list[float], last: str, value: float, kind: str, joint: str) -> bool:
    """Return whether a word or digits add to the number before them, as in "two hundred and five" or "forty-two"."""
    if last == "scale":
        return value < parts[-1]
    return last == "tens" and kind == "ones" and 0 < value < 10 and "and" not in joint


def _multiply(parts: list[float], scale: float) -> None:
    """Multiply the last parts that are smaller than a scale by it: [100, 25] and thousand give [125000]."""
    below = 0.0
    while parts and parts[-1] < scale:
        below += parts.pop()
    parts.append((below or 1.0) * scale)


def _begins_another(text: str, position: int, before: float) -> bool:
    """Return whether what follows a word is a scale that begins another number, as in "one hundred and two hundred"."""
    token = _TOKEN.match(text, position)
    scale = SCALES[token["scale"].lower()] if token and token["scale"] else 0
    return scale == 100 if before < 1000 else before < 1000 * scale >= 10**6
