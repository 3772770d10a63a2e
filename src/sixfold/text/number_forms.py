"""Writes a quantity in English or in Chinese, as a translation may have it: 12.5亿元 is "1.25 billion yuan"."""

from __future__ import annotations

from fractions import Fraction

from sixfold.text.quantities import Quantity
from sixfold.text.units import CHINESE_NAMES, ENGLISH_NAMES, PERCENT, PREFIX_SIGNS

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
RANKS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
ENGLISH_SCALES = ((10**12, " trillion"), (10**9, " billion"), (10**6, " million"))
CHINESE_SCALES = ((10**8, "亿"), (10**4, "万"))
MAX_DECIMALS = 3  # behind the point of a number of millions
MAX_DENOMINATOR = 20


def quantity_forms(quantity: Quantity, language: str) -> list[str]:
    """Return how a quantity may be written in `zh` or `en`, the usual form first; an empty list if that is unknown."""
    value = quantity.values[0]
    if quantity.kind in ("month", "weekday"):
        names = MONTHS if quantity.kind == "month" else WEEKDAYS
        if not 1 <= value <= len(names):
            return []
        return [names[int(value) - 1]] if language == "en" else [_chinese_date(quantity.kind, int(value))]
    if quantity.kind == "time":
        return _time_forms(value, quantity.unit, language)
    if quantity.kind == "day":
        return [f"{value:g}" if language == "en" else f"{value:g}日"]
    if quantity.kind == "year":
        return [f"{value:g}" if language == "en" else f"{value:g}年"]
    if quantity.kind == "ordinal":
        return _ordinal_forms(int(value), language)
    if quantity.kind == "fraction":
        return _fraction_forms(value, language)
    return [_with_unit(number, quantity.unit, language) for number in number_forms(value, language)]


def number_forms(value: float, language: str) -> list[str]:
    """Return how a number is written: with a word for millions if that is short, and in digits."""
    digits = f"{value:,.9g}" if value % 1 else f"{value:,.0f}"
    forms = [digits if language == "en" else digits.replace(",", "")]
    for scale, name in ENGLISH_SCALES if language == "en" else CHINESE_SCALES:
        short = f"{value / scale:.9g}"
        if value >= scale and len(short.partition(".")[2]) <= MAX_DECIMALS:
            return [f"{short}{name}", *forms]
    return forms


def _with_unit(number: str, unit: str, language: str) -> str:
    if unit == PERCENT:
        return f"{number}%"
    if language == "zh":
        return number + CHINESE_NAMES.get(unit, "")
    if unit in PREFIX_SIGNS:
        return PREFIX_SIGNS[unit] + number
    name = ENGLISH_NAMES.get(unit, "")
    return f"{number} {name}" if name else number


def _chinese_date(kind: str, value: int) -> str:
    return f"{value}月" if kind == "month" else f"星期{'一二三四五六日'[value - 1]}"


def _time_forms(minutes: float, half: str, language: str) -> list[str]:
    """Return a time of day, given in minutes after midnight or noon."""
    hour, minute = divmod(int(minutes), 60)
    hour = hour or 12
    if language == "en":
        suffix = {"am": " a.m.", "pm": " p.m."}.get(half, "")
        return [f"{hour}:{minute:02d}{suffix}" if minute or not suffix else f"{hour}{suffix}"]
    part = {"am": "上午", "pm": "下午"}.get(half, "")
    return [f"{part}{hour}点" + (f"{minute:02d}分" if minute else "")]


def _ordinal_forms(value: int, language: str) -> list[str]:
    if language == "zh":
        return [f"第{value}"]
    if 0 < value < len(RANKS):
        return [RANKS[value]]
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return [f"{value}{ending}"]


def _fraction_forms(value: float, language: str) -> list[str]:
    """Return a fraction with a small denominator, or no form."""
    fraction = Fraction(value).limit_denominator(MAX_DENOMINATOR)
    above, below = fraction.numerator, fraction.denominator
    if abs(fraction - value) > 1e-6 or below == 1:
        return []
    if language == "zh":
        numerals = "零一二三四五六七八九十"
        return [f"{numerals[below]}分之{numerals[above]}" if max(above, below) <= 10 else f"{below}分之{above}"]
    rank = {2: "half", 4: "quarter"}.get(below) or _ordinal_forms(below, "en")[0]
    return [f"{'a' if rank[0] not in 'e' else 'an'} {rank}" if above == 1 else f"{above} {rank}s"]
