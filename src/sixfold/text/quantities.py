"""A quantity of a text: the values that it may have, its unit, and how surely a translation must have it too."""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sixfold.text.units import MEASURES, PERCENT, are_same_units, is_currency

Span = tuple[int, int]
Key = tuple[str, float]

# How surely a translation has a quantity too: surely; surely it has no other one in its place; surely it has no other
# one of its kind in its place; or perhaps.
SURE, PAIRED, LIKELY, LOOSE = 3, 2, 1, 0
DIGITS = r"(?:\d{1,3}+(?:,\d{3})++(?!\d)(?:\.\d++)?+|\d++(?:\.\d++)?+)"
NAME_BEFORE = re.compile(
    r"(?:[A-Za-z][A-Za-z\d]*[-_.]?|[\u4e00-\u9fff]-)\Z"
)  # a number behind it is a part of a name, as in COVID-19
TOLERANCE = 0.03  # of values that were converted from one unit into another, as a ratio

_PLAIN = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != 0xFF0C} | {
    ord(char): plain
    for chars, plain in (
        ("‐‑‒–—―−~～〜", "-"), ("\u00a0\u2002\u2003\u2009\u202f\u3000", " "), ("’‘", "'"), ("￥", "¥"), ("￡", "£"),
    )
    for char in chars
} | dict(zip(
    map(ord, "萬億兩點個塊鎊週禮時鐘餘幾數歲號紀員圓買○畝區這顆噸陽華級樓"),
    "万亿两点个块镑周礼时钟余几数岁号纪员元买〇亩区这颗吨阳华级楼", strict=True,
))  # fmt: skip


# The numerals of cheques. Alone, most of them are parts of words: 大陸, 退伍, 收拾.
_FORMAL = str.maketrans("壹贰貳叁參肆伍陆陸柒捌玖拾佰仟", "一二二三三四五六六七八九十百千")
_FORMAL_NUMERAL = re.compile("[壹贰貳叁參肆伍陆陸柒捌玖拾佰仟萬万億亿零]{2,}|[壹贰貳叁肆伍柒捌玖](?=[元圆])")


class Quantity(NamedTuple):
    """A number, a month, a weekday or a time of day in a text."""

    kind: str  # number, ordinal, fraction, year, month, day (of a month), weekday or time
    values: tuple[float, ...]  # the likeliest first; a time is in minutes after midnight or noon
    span: Span
    weight: int = PAIRED
    unit: str = ""
    has_own_unit: bool = True  # not the unit of its neighbour, as the 3 of "3 to 5 yuan"

    @property
    def group(self) -> str:
        """The kinds whose values are compared with each other: months, days, weekdays, times, and all the others."""
        return self.kind if self.kind in GROUPS else "number"

    @property
    def sort(self) -> tuple[str, str]:
        """The kind and what is measured; quantities of one sort may stand in each other's place."""
        if self.kind == "ordinal" and self.unit == "year":  # "the third year of Jianwu" is 建武三年
            return "number", MEASURES[self.unit][0]
        if self.kind in ("time", "year", "ordinal"):
            return self.kind, ""
        if is_currency(self.unit):
            return self.kind, "money"
        return self.kind, MEASURES[self.unit][0] if self.unit in MEASURES else self.unit

    def comparison_keys(self) -> list[Key]:
        """Return what the quantity is compared by: equal values of one group are equal keys."""
        return [(self.group, value) for value in self.values]

    def measure_key(self) -> Key | None:
        """Return the key of a measured amount, by its size and without its unit; None for other quantities."""
        if self.unit not in MEASURES or not self.values[0] > 0:
            return None
        dimension, factor = MEASURES[self.unit]
        return dimension, round(math.log(self.values[0] * factor) / TOLERANCE)


GROUPS = frozenset({"month", "day", "weekday", "time"})  # kinds whose values are compared with each other only


def plain(text: str) -> str:
    """Return a text of the same length with plain digits, dashes and spaces, and simplified Chinese numerals."""
    if text.isascii():
        return text
    return _FORMAL_NUMERAL.sub(lambda match: match[0].translate(_FORMAL), text).translate(_PLAIN)


def rounded(value: float) -> float:
    """Return a value with nine significant digits, so that 80.63e8 and 8.063e9 are equal."""
    return value if value == int(value) and value < 1e9 else float(f"{value:.9g}")


def digit_values(number: str, value: float) -> tuple[float, ...]:
    """Return what digits may mean: 42.000 is 42 in English, and 42,000 in German."""
    return (value, 1000 * value) if re.fullmatch(r"\d{1,3}\.\d{3}", number) else (value,)


_RANGE = re.compile(r" ?(?:-|to|or|and|by|至|到|或|和|乘|、|/|,) ?")


def numeric_date(date: str, start: int) -> Iterator[Quantity]:
    """Yield the year, the month and the day of a date such as 2024-03-05; in 5/3/2024 either may be the month."""
    numbers = [int(number) for number in re.split(r"[-/.]", date)]
    year = next(number for number in numbers if number > 999)
    others = [float(number) for number in numbers if number <= 999]
    span = start, start + len(date)
    yield Quantity("year", (year,), span, SURE)
    months = others[:1] if numbers[0] == year and others[0] <= 12 else others
    yield Quantity("month", tuple(number for number in months if 1 <= number <= 12), span, PAIRED)
    yield Quantity("day", tuple(others), span, LIKELY)
    yield from (Quantity("number", (number,), span, LOOSE) for number in others)


def ratio(text: str, start: int) -> Iterator[Quantity]:
    """Yield a fraction such as 2/3, and its two numbers, since it may be a date or a score."""
    first, second = map(int, text.split("/"))
    span = start, start + len(text)
    values = (rounded(first / second),) if second else ()
    yield Quantity("fraction", (*values, first), span, LOOSE)
    yield Quantity("number", (first,), span, LOOSE)
    yield Quantity("number", (second,), span, LOOSE)
    yield Quantity("month", tuple(value for value in (first, second) if 1 <= value <= 12), span, LOOSE)


def day_of_month(value: float, span: tuple[int, int], weight: int = LIKELY, unit: str = "") -> Iterator[Quantity]:
    """Yield a day of a month, and its number, since 3号 is the third, and number three; 501号 is a number only.

    `unit` is "day" where the day may also be an amount of days, as in 三日.
    """
    yield Quantity("day", (value,), span, LIKELY) if value < 100 else Quantity("number", (value,), span, weight)
    yield Quantity("number", (value,), span, LOOSE, unit)


def clock(hour: int, minute: int, half: str, span: tuple[int, int], weight: int = PAIRED) -> Iterator[Quantity]:
    """Yield a time of day, and its hour and minute as numbers that the other text may have."""
    if hour > 24 or minute > 59:  # a score, or a mistake
        yield Quantity("time", (hour * 60 + minute,), span, LIKELY)
        yield from (Quantity("number", (value,), span, LOOSE) for value in (hour, minute))
        return
    if 12 < hour < 24:
        half = "pm"
    unit = "" if hour % 12 == 0 else half
    yield Quantity("time", (hour % 12 * 60 + minute,), span, weight, unit)
    yield Quantity("number", (hour, hour % 12), span, LOOSE)
    if minute:
        yield Quantity("number", (minute,), span, LOOSE)


def shared_units(quantities: list[Quantity], text: str) -> list[Quantity]:
    """Give the unit and the scale of the last number of a range to the numbers before it, as in "3 to 5 million yuan".

    A unit in front belongs to what follows, as in "$3 to 5".
    """
    shared = [quantity for quantity in quantities if quantity.values]
    for index in range(len(shared) - 2, -1, -1):
        first, second = shared[index], shared[index + 1]
        gap = text[first.span[1] : second.span[0]]
        if len(gap) > 5 or not _RANGE.fullmatch(gap):
            continue
        if first.kind == "number" and second.kind == "ordinal" and not first.unit and first.span[1] < second.span[0]:
            shared[index] = first._replace(kind="ordinal")  # 五、六年级
        if not (first.kind == second.kind == "number") or _is_compound(text, first, second, gap):
            continue
        is_shared = not first.unit and second.unit and second.weight != LOOSE  # not in "2-a-day"
        unit, own = (second.unit, False) if is_shared else (first.unit, first.has_own_unit)
        last = second.values[0]
        scales = [
            scale
            for scale in (10**12, 10**9, 10**8, 10**6, 10**4, 1000, 100)
            if last % scale == 0 or 10**6 <= scale <= last < 1000 * scale
        ]
        values = first.values
        if scales and first.values[0] < 10_000 and first.values[0] < scales[0]:
            values += tuple(rounded(first.values[0] * scale) for scale in scales)
        shared[index] = first._replace(unit=unit, has_own_unit=own, values=values)
    for index in range(1, len(shared)):
        first, second = shared[index - 1], shared[index]
        gap = text[first.span[1] : second.span[0]]
        if _RANGE.fullmatch(gap):  # 9月26-28日, September 26-28
            is_number = first.kind == "number" and first.weight != LOOSE
            if is_number and second.kind == "day" and first.values[0] < second.values[0]:
                shared[index - 1] = first._replace(kind="day", weight=min(first.weight, LIKELY))
            is_day = index > 1 and shared[index - 2].kind == "day" and shared[index - 2].span == first.span
            if is_day and second.kind == "number" and first.values[0] < second.values[0] <= 31:
                shared[index] = second._replace(kind="day", weight=min(second.weight, LIKELY))
                continue
        if first.kind == "ordinal" and second.kind == "number" and not second.unit and _RANGE.fullmatch(gap):
            shared[index] = second._replace(kind="ordinal")  # grade five or six
            continue
        year = first.values[0]
        if gap == "-" and 100 <= year < 3000 and second.values[0] < 100 and second.kind == "number":  # 2012-13
            size = 10 if second.values[0] < 10 else 100
            years = (*second.values, year - year % size + second.values[0])
            shared[index] = second._replace(values=years, weight=min(second.weight, PAIRED))
            continue
        is_range = first.kind == second.kind == "number" and bool(_RANGE.fullmatch(gap))
        if first.unit and not second.unit and is_range and not _is_compound(text, first, second, gap):
            shared[index] = second._replace(unit=first.unit, has_own_unit=False)
    return shared


def _is_compound(text: str, first: Quantity, second: Quantity, gap: str) -> bool:
    """Return whether one of two numbers with a comma between them is in a compound: "500 million, 10-year"."""
    return "," in gap and any("-" in text[slice(*quantity.span)] for quantity in (first, second))


class Difference(NamedTuple):
    """The quantities that show that a translation has other ones than its source."""

    missing: tuple[Quantity, ...] = ()  # in the source
    extra: tuple[Quantity, ...] = ()  # in the translation


def find_difference(source: Sequence[Quantity], target: Sequence[Quantity]) -> Difference:
    """Compare the quantities of a text with those of its translation.

    One that is only in one text counts if the other text surely has it too, or if that has another one of its group in
    its place. It also counts if the other text has one of the same sort that is left over when equal ones are put
    together, as the second 5 in "5 cities, of which 5 withdrew". Equal ones differ if their units do.
    """
    missing, extra = _unmatched(source, target, is_source=True), _unmatched(target, source)
    groups = _groups(missing) & _groups(extra)
    counted = [
        [one for one in unmatched if one.weight == SURE or (one.weight == PAIRED and one.group in groups)]
        for unmatched in (missing, extra)
    ]
    if not any(counted):
        left, left_over = _left_over(source, target)
        sorts = {one.sort for one in missing} & {one.sort for one in left_over}
        sorts |= {one.sort for one in extra} & {one.sort for one in left}
        counted = [[one for one in of_text if one.sort in sorts] for of_text in (left, left_over)]
    if not any(counted):
        counted = _times_and_numbers(missing, extra)
    difference = Difference(tuple(counted[0]), tuple(counted[1]))
    return difference if any(difference) else _unit_conflict(source, target) or difference


def _times_and_numbers(missing: Sequence[Quantity], extra: Sequence[Quantity]) -> list[list[Quantity]]:
    """Return times of one text and what stands for an hour in the other: 两点 and the 3 of "between noon and three"."""
    times, hours = (
        [[one for one in unmatched if is_one(one)] for unmatched in (missing, extra)] for is_one in (_is_time, _is_hour)
    )
    if times[0] and hours[1]:
        return [times[0], hours[1]]
    return [hours[0], times[1]] if hours[0] and times[1] else [[], []]


def _is_time(quantity: Quantity) -> bool:
    return quantity.kind == "time" and quantity.weight != LOOSE and quantity.values[0] % 60 == 0


def _is_hour(quantity: Quantity) -> bool:
    is_number = quantity.kind == "number" and not quantity.unit and quantity.weight >= PAIRED
    return is_number and 1 <= quantity.values[0] <= 12


def _groups(quantities: Sequence[Quantity]) -> set[str]:
    return {quantity.group for quantity in quantities if quantity.weight >= PAIRED}


def _unmatched(quantities: Sequence[Quantity], others: Sequence[Quantity], is_source: bool = False) -> list[Quantity]:
    """Return the quantities that are not loose and that others lack.

    A translation may convert an amount, but 1040公里 does not stand for 645英里 where the source has both.
    """
    keys = {key for other in others for key in other.comparison_keys()}
    own_keys = {key for quantity in quantities for key in quantity.comparison_keys()} if is_source else set()
    measures: dict[Key, set[str]] = {}
    for other in others:
        if (key := other.measure_key()) and own_keys.isdisjoint(other.comparison_keys()):
            measures.setdefault(key, set()).add(other.unit)
    return [
        quantity
        for quantity in quantities
        if quantity.weight != LOOSE
        and keys.isdisjoint(quantity.comparison_keys())
        and not _is_converted(quantity, measures)
    ]


def _left_over(source: Sequence[Quantity], target: Sequence[Quantity]) -> tuple[list[Quantity], list[Quantity]]:
    """Return the quantities of both texts that are not loose and are left when each is put together with an equal one.

    Those of one sort are put together first.
    """
    firsts, seconds = ([each for each in of_text if each.weight != LOOSE] for of_text in (source, target))
    for is_same_sort in (True, False):
        places: dict[tuple[Key, tuple[str, str] | None], deque[int]] = {}
        for place, quantity in enumerate(seconds):
            for key in quantity.comparison_keys():
                places.setdefault((key, quantity.sort if is_same_sort else None), deque()).append(place)
        used: set[int] = set()
        left = []
        for quantity in firsts:
            for key in quantity.comparison_keys():
                equals = places.get((key, quantity.sort if is_same_sort else None), deque())
                while equals and equals[0] in used:
                    equals.popleft()
                if equals:
                    used.add(equals.popleft())
                    break
            else:
                left.append(quantity)
        firsts, seconds = left, [quantity for place, quantity in enumerate(seconds) if place not in used]
    return firsts, seconds


def _is_converted(quantity: Quantity, measures: Mapping[Key, set[str]]) -> bool:
    """Return whether measures, as units by key, have an amount of about the same size in another unit."""
    key = quantity.measure_key()
    return key is not None and any(
        measures.get((key[0], key[1] + step), set()) - {quantity.unit} for step in (-1, 0, 1)
    )


def _unit_conflict(source: Sequence[Quantity], target: Sequence[Quantity]) -> Difference | None:
    """Return the first quantity of a text whose equals in the other text all have other units, and one of these."""
    by_keys: list[dict[Key, list[Quantity]]] = []
    for quantities in (source, target):
        by_keys.append({})
        for quantity in quantities:
            for key in quantity.comparison_keys():
                by_keys[-1].setdefault(key, []).append(quantity)
    for quantity in source:
        for other in _in_place_of(quantity, *by_keys):
            return Difference((quantity,), (other,))
    for first, second, by_key in ((source, target, by_keys[1]), (target, source, by_keys[0])):
        for quantity in first:
            if not quantity.unit or not quantity.has_own_unit or quantity.weight == LOOSE:
                continue
            equals = [equal for key in quantity.comparison_keys() for equal in by_key.get(key, ())]
            units = {equal.unit for equal in second}
            if equals and not any(_has_unit_of(equal, quantity, units, first is source) for equal in equals):
                pair = (quantity,), (equals[0],)
                return Difference(*(pair if first is source else pair[::-1]))
    return None


def _in_place_of(
    quantity: Quantity, of_source: Mapping[Key, list[Quantity]], of_target: Mapping[Key, list[Quantity]]
) -> Iterator[Quantity]:
    """Yield the quantities of a translation that have another unit than an equal one of the source in their place.

    Neither text has an amount of this size in the unit of the other: "three weeks" in the place of 三个月, even where
    another 3 is in both texts.
    """
    key = (quantity.group, quantity.values[0])
    equals, same = of_target.get(key, ()), of_source.get(key, ())
    if not _measures(quantity) or any(_measures(equal) and _are_same_amounts(equal, quantity) for equal in equals):
        return
    for other in equals:
        if (
            _measures(other)
            and other.values[0] == quantity.values[0]
            and other.sort[1] == quantity.sort[1]
            and not any(_measures(equal) and _are_same_amounts(equal, other) for equal in same)
        ):
            yield other


def _are_same_amounts(first: Quantity, second: Quantity) -> bool:
    """Return whether two equal numbers measure the same, by units that may mean the same."""
    return first.sort[1] == second.sort[1] and are_same_units(first.unit, second.unit)


def _measures(quantity: Quantity) -> bool:
    """Return whether a quantity has a unit of its own and stands for itself."""
    return bool(quantity.unit) and quantity.has_own_unit and quantity.weight != LOOSE


def _has_unit_of(quantity: Quantity, other: Quantity, units: set[str], is_translation: bool) -> bool:
    """Return whether a quantity may have the unit of an equal one; `units` are those of its text.

    Only currencies and percent signs may not be left out, and where the text has them elsewhere, they may too. A source
    may have less: a translation makes 两百 "two hundred yuan".
    """
    if quantity.kind == "time" or other.kind == "time":
        return not quantity.unit or quantity.unit == other.unit
    if quantity.unit:
        same_size = quantity.measure_key(), other.measure_key()
        return are_same_units(quantity.unit, other.unit) or (None not in same_size and same_size[0] == same_size[1])
    needs_unit = is_currency(other.unit) or other.unit == PERCENT
    if not needs_unit or quantity.weight == LOOSE:
        return True
    if not quantity.has_own_unit and not (is_translation and quantity.values[0] >= 100):
        return True
    return any(unit and (is_currency(unit) or unit == PERCENT) and are_same_units(unit, other.unit) for unit in units)
