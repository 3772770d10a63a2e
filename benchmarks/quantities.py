"""Reads numbers, percentages, dates, times of day and currencies from English and Chinese text, as values.

>>> numbers("twelve and a half million people and 1.25 billion yuan", "en")
[12500000, 1250000000]
>>> numbers("三万五千人，1亿2000万元", "zh")
[35000, 120000000]

Each reader looks at the whole text by itself, so that the 5 of "March 5" is a number as well as a part of a date.
"""

from __future__ import annotations

import datetime
import re
import unicodedata
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import NamedTuple

Number = Fraction | int


class Date(NamedTuple):
    year: int | None
    month: int
    day: int | None


class Time(NamedTuple):
    """A time of day on a clock of 24 hours."""

    hour: int
    minute: int


def plain(text: str) -> str:
    """Lower case, no full-width characters, one kind of dash."""
    return re.sub("[‐‑‒–—−]", "-", unicodedata.normalize("NFKC", text)).lower()


def simplest(value: Fraction) -> Number:
    return int(value) if value.denominator == 1 else value


def scaled(parts: list[Fraction], scale: int) -> None:
    """Multiply the last parts that are smaller than a scale by it: [100, 25] and thousand give [125000]."""
    below = Fraction(0)
    while parts and parts[-1] < scale:
        below += parts.pop()
    parts.append((below or Fraction(1)) * scale)


# --- English ----------------------------------------------------------------------------------------------------------

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
WORDS = {word: value for value, word in enumerate(ONES)} | {word: 10 * at for at, word in enumerate(TENS, 2)}
SCALES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "k": 10**3, "million": 10**6, "mn": 10**6, "mln": 10**6,
    "billion": 10**9, "bn": 10**9, "trillion": 10**12, "tn": 10**12, "quadrillion": 10**15,
}  # fmt: skip
SCALES |= {f"{name}s": scale for name, scale in SCALES.items() if len(name) > 3}
DIGITS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")
ENGLISH_TOKENS = re.compile(rf"{DIGITS.pattern}|[a-z]+|[^\sa-z\d-]")
MONTHS = [datetime.date(2000, month, 1).strftime("%B").lower() for month in range(1, 13)]
MONTH = rf"(?P<month>{'|'.join(MONTHS)}|(?:{'|'.join(name[:3] for name in MONTHS)}|sept)\b\.?)"
DAY = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
YEAR = r"(?:\s*,?\s*(?:of |in )?(?P<year>\d{4}))?(?!\d)"
ENGLISH_DATES = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{MONTH}\s+(?:the\s+)?{DAY}\b{YEAR}",
        rf"\b{DAY}\s+(?:day\s+)?(?:of\s+)?{MONTH}{YEAR}",
        rf"\b{MONTH}\s*,?\s+(?:of\s+)?(?P<year>\d{{4}})\b(?P<day>)",
    )
)
NUMERIC_DATES = re.compile(r"\b(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})\b|\b(\d{1,2})[/.](\d{1,2})[/.](\d{4})\b")


def is_digits(token: str) -> bool:
    return token[:1].isdigit()


def fraction_of(token: str) -> Fraction:
    return Fraction(token.replace(",", ""))


def english_number(tokens: Sequence[str], at: int) -> tuple[Fraction, int] | None:
    """The number that begins at a token, and the place behind it."""

    def token(place: int) -> str:
        return tokens[place] if place < len(tokens) else ""

    parts: list[Fraction] = []
    last = ""  # kind of the last token read: digits, word, tens or scale
    if token(at) == "half" and token(at + 1) in ("a", "an") and token(at + 2) in SCALES:
        return Fraction(SCALES[token(at + 2)], 2), at + 3
    if token(at) == "half" and token(at + 1) in SCALES:
        return Fraction(SCALES[token(at + 1)], 2), at + 2
    if token(at) in ("a", "an") and token(at + 1) in SCALES:
        at, last = at + 1, "word"
        parts.append(Fraction(1))
    while word := token(at):
        after = token(at + 1)
        if word in SCALES and last and (last != "scale" or parts[-1] < SCALES[word]):
            scaled(parts, SCALES[word])
            last = "scale"
        elif last and word == "and" and after in ("a", "one") and token(at + 2) == "half":
            parts[-1] += Fraction(1, 2)
            at, last = at + 2, "digits"
        elif last == "scale" and word == "and" and after in WORDS and is_rest(tokens, at + 1, parts[-1]):
            last = "scale"
        elif word == "point" and last in ("word", "tens") and after in ONES[:10]:
            places = 0
            while token(at + 1) in ONES[:10]:
                at, places = at + 1, places + 1
                parts[-1] += Fraction(WORDS[token(at)], 10**places)
        elif is_digits(word) and (not last or (last == "scale" and fraction_of(word) < parts[-1] >= 1000)):
            parts.append(fraction_of(word))
            last = "digits"
        elif word in WORDS and (last in ("", "scale") or (last == "tens" and 0 < WORDS[word] < 10)):
            parts.append(Fraction(WORDS[word]))
            last = "tens" if word in TENS else "word"
        else:
            break
        at += 1
    return (sum(parts, Fraction(0)), at) if parts else None


def is_rest(tokens: Sequence[str], at: int, before: Fraction) -> bool:
    """Whether what follows "and" belongs to the number before it: not in "between one hundred and two hundred"."""
    while at < len(tokens) and tokens[at] in WORDS:
        at += 1
    scale = SCALES.get(tokens[at], 0) if at < len(tokens) else 0
    return not scale or (before < 1000 and scale > before)


def english_numbers(text: str) -> Iterator[tuple[Fraction, list[str]]]:
    """Numbers, each with the tokens that follow it."""
    text = re.sub(r"([$€£¥]\s?[\d.,]*\d)\s?m\b", r"\1 million", text)
    text = re.sub(r"([$€£¥]\s?[\d.,]*\d)\s?b\b", r"\1 billion", text)
    tokens = ENGLISH_TOKENS.findall(text)
    at = 0
    while at < len(tokens):
        if number := english_number(tokens, at):
            value, at = number
            yield value, tokens[at : at + 2]
        else:
            at += 1


def english_percents(text: str) -> Iterator[Fraction]:
    for value, after in english_numbers(text):
        if after[:1] == ["%"] or after == ["per", "cent"] or (after and after[0] in ("percent", "percentage")):
            yield value


def english_dates(text: str) -> Iterator[Date]:
    dates_read = []
    for pattern in ENGLISH_DATES:
        for match in pattern.finditer(text):
            month = next(at for at, name in enumerate(MONTHS, 1) if name.startswith(match["month"][:3]))
            year, day = match["year"], match["day"]
            dates_read.append(Date(int(year) if year else None, month, int(day) if day else None))
    whole = {date[:2] for date in dates_read if date.day}
    return (date for date in dates_read if date.day or date[:2] not in whole)  # "March 2021" stands in "5 March 2021"


def numeric_dates(text: str) -> Iterator[Date]:
    """Dates such as 2021-03-05 and 3/5/2021; the latter is read both ways."""
    for match in NUMERIC_DATES.finditer(text):
        year, month, day, first, second, last_year = (int(group or 0) for group in match.groups())
        if year:
            yield Date(year, month, day)
        else:
            yield from (Date(last_year, first, second), Date(last_year, second, first))


HOUR_WORDS = rf"(?:{'|'.join(ONES[1:13])})"
CLOCK = re.compile(r"(?<![\d.:])(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?![\d:]|\.\d|%)")
LATER_ONES = "|".join(sorted(ONES[5:], key=len, reverse=True))
MINUTE_WORDS = rf"(?:(?:{'|'.join(TENS[:4])})(?:[ -](?:{'|'.join(ONES[1:10])}))?|{LATER_ONES})"
SPOKEN = re.compile(rf"\b(?P<hour>{HOUR_WORDS}|\d{{1,2}})[ -](?P<minute>{MINUTE_WORDS})\b")
PAST = re.compile(
    rf"\b(?P<minutes>half|a quarter|quarter|{MINUTE_WORDS}|\d{{1,2}})(?: minutes?)? (?P<way>past|to|after|before) "
    rf"(?P<hour>{HOUR_WORDS}|\d{{1,2}})\b"
)
FULL_HOUR = re.compile(
    rf"\b(?P<hour>{HOUR_WORDS}|\d{{1,2}})(?= ?(?:o'clock|a\.?m\b|p\.?m\b| in the | at night| this | tonight| tomorrow|"
    rf" yesterday| every | on | sharp|[.,?!]|$))|\bat (?P<at>{HOUR_WORDS}|\d{{1,2}})\b(?![:.]\d)"
)


def word_value(text: str) -> int:
    """The value of "seven", "twenty-five" or "25"."""
    return int(text) if text.isdigit() else sum(WORDS[word] for word in re.split("[ -]", text))


def on_full_day(hour: int, minute: int, half: str) -> Time | None:
    """The time on a clock of 24 hours; half is am, pm, night or nothing, where the hour stands as it is."""
    if hour > 24 or minute > 59:
        return None
    if half == "night" and (hour == 12 or hour < 5):
        hour %= 12
    elif half in ("pm", "night") and hour < 12:
        hour += 12
    elif half == "am" and hour == 12:
        hour = 0
    return Time(hour % 24, minute)


def english_half(text: str) -> str:
    if re.search(r"\d ?p\.?m\b|\bp\.?m\b|afternoon|evening", text):
        return "pm"
    if re.search(r"\d ?a\.?m\b|\ba\.m\b|morning|\d am\b", text):
        return "am"
    return "night" if re.search(r"\b(?:to)?night\b", text) else ""


def english_times(text: str) -> Iterator[Time | None]:
    half = english_half(text)
    for match in CLOCK.finditer(text):
        yield on_full_day(int(match["hour"]), int(match["minute"]), half)
    for match in SPOKEN.finditer(text):
        yield on_full_day(word_value(match["hour"]), word_value(match["minute"]), half)
    for match in PAST.finditer(text):
        minutes = {"half": 30, "quarter": 15, "a quarter": 15}.get(match["minutes"]) or word_value(match["minutes"])
        hour = word_value(match["hour"])
        is_before = match["way"] in ("to", "before")
        yield on_full_day(hour - 1 if is_before else hour, 60 - minutes if is_before else minutes, half)
    for match in FULL_HOUR.finditer(text):
        yield on_full_day(word_value(match["hour"] or match["at"]), 0, half)
    if re.search(r"\b(?:noon|midday)\b", text):
        yield Time(12, 0)
    if "midnight" in text:
        yield Time(0, 0)


# --- Chinese ----------------------------------------------------------------------------------------------------------

CHINESE_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "○": 0, "两": 2}
CHINESE_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8, "兆": 10**12}
NUMERAL = "零〇○一二三四五六七八九两十百千万亿兆"
# 千 and 百 before a unit of measure belong to it: 5千米 is five kilometres.
NUMBER_CHARACTER = "(?:百(?!帕)|千(?![米克瓦卡赫])|[零〇○一二三四五六七八九两十万亿兆])"
CHINESE_NUMBER = re.compile(
    rf"(?:{DIGITS.pattern}|{NUMBER_CHARACTER})(?:{DIGITS.pattern}|点(?=[零〇一二三四五六七八九])|{NUMBER_CHARACTER})*"
)
CHINESE_TOKENS = re.compile(rf"{DIGITS.pattern}|.")
COUNT = rf"(?:\d+|[{NUMERAL}]+)"
CHINESE_DATE = re.compile(
    rf"(?:(?P<year>\d{{4}}|[零〇○一二三四五六七八九]{{4}})年)?(?P<month>{COUNT})月(?:份|(?P<day>{COUNT})[日号])?"
)
MINUTE = rf"(?P<minute>{COUNT})(?:分|(?![{NUMERAL}\d点]))"
CHINESE_TIME = re.compile(
    rf"(?P<hour>{COUNT})[点时](?:钟|整|过)?(?:(?P<half>半)|(?P<quarters>[一三])刻|{MINUTE})?(?!间|候|期)"
)
BEFORE_HOUR = re.compile(
    rf"差(?P<minute>{COUNT})(?P<unit>分|刻)钟?(?:到)?(?P<hour>{COUNT})点|(?P<hour2>{COUNT})点差(?P<minute2>{COUNT})(?P<unit2>分|刻)"
)
HALVES = (
    ("pm", "下午|傍晚|中午|午后|正午"),
    ("night", "晚上|今晚|昨晚|明晚|夜里|深夜|夜晚|半夜|晚间|当晚|夜间|晚"),
    ("am", "凌晨|早上|上午|清晨|早晨|今早|明早|早"),
)


def chinese_number(text: str) -> Fraction:
    """The value of 12.5亿, 三万五千, 1亿2000万, 二〇二一 or 三点五."""
    if re.fullmatch("[零〇○一二三四五六七八九]{2,}", text):
        return Fraction("".join(str(CHINESE_DIGITS[char]) for char in text))
    parts: list[Fraction] = []
    tokens = CHINESE_TOKENS.findall(text)
    at = 0
    while at < len(tokens):
        token = tokens[at]
        if token == "点":
            places = 0
            while at + 1 < len(tokens) and tokens[at + 1] in CHINESE_DIGITS:
                at, places = at + 1, places + 1
                parts[-1] += Fraction(CHINESE_DIGITS[tokens[at]], 10**places)
        elif token in CHINESE_SCALES:
            scaled(parts, CHINESE_SCALES[token])
        elif is_digits(token):
            parts.append(fraction_of(token))
        elif CHINESE_DIGITS[token]:
            # The last digit of 三万五 and 两百五 counts thousands and tens.
            is_short = len(tokens) > 2 and at == len(tokens) - 1 and tokens[at - 1] in "百千万亿"
            parts.append(Fraction(CHINESE_DIGITS[token]) * (CHINESE_SCALES[tokens[at - 1]] // 10 if is_short else 1))
        at += 1
    return sum(parts, Fraction(0))


def chinese_numbers(text: str) -> Iterator[Fraction]:
    text = re.sub("(?<=[十百千\\d])[多余](?=[万亿])", "", text)  # 七千多万 is more than 70 million
    yield from (chinese_number(match[0]) for match in CHINESE_NUMBER.finditer(text))
    for match in re.finditer(rf"({COUNT})[米块度]([一二三四五六七八九\d])(?![{NUMERAL}\d])", text):  # 四米六 is 4.6 m
        yield chinese_number(match[1]) + chinese_number(match[2]) / 10


def chinese_percents(text: str) -> Iterator[Fraction]:
    for match in re.finditer(rf"百分之({CHINESE_NUMBER.pattern})", text):
        yield chinese_number(match[1])
    for match in re.finditer(rf"({CHINESE_NUMBER.pattern})(?:%|个百分点)", text):
        yield chinese_number(match[1])
    for match in re.finditer(r"([一二三四五六七八九\d])成", text):
        yield 10 * chinese_number(match[1])
    for match in re.finditer(r"(\d(?:\.\d)?|[一二三四五六七八九])折", text):
        yield 100 - 10 * chinese_number(match[1])  # 七折 is 30% off


def chinese_dates(text: str) -> Iterator[Date]:
    for match in CHINESE_DATE.finditer(text):
        year, month, day = (
            int(chinese_number(match[name])) if match[name] else None for name in ("year", "month", "day")
        )
        yield Date(year, month or 0, day)


def chinese_times(text: str) -> Iterator[Time | None]:
    half = next((name for name, words in HALVES if re.search(words, text)), "")
    for match in CLOCK.finditer(text):
        yield on_full_day(int(match["hour"]), int(match["minute"]), half)
    for match in CHINESE_TIME.finditer(text):
        minute = 30 if match["half"] else 15 * int(chinese_number(match["quarters"])) if match["quarters"] else 0
        minute += int(chinese_number(match["minute"])) if match["minute"] else 0
        yield on_full_day(int(chinese_number(match["hour"])), minute, half)
    for match in BEFORE_HOUR.finditer(text):
        next_hour, count, unit = (match[name] or match[f"{name}2"] for name in ("hour", "minute", "unit"))
        before = int(chinese_number(count)) * (15 if unit == "刻" else 1)
        yield on_full_day(int(chinese_number(next_hour)) - 1, 60 - before, half)
    if re.search("正午|中午(?![零一二三四五六七八九十两\\d])", text):
        yield Time(12, 0)
    if re.search("午夜|零点|半夜十二点", text):
        yield Time(0, 0)


# --- Both -------------------------------------------------------------------------------------------------------------

CURRENCIES = {
    "dollars": "[$]|dollar|usd|美元|美金|美刀",
    "yuan": r"yuan|rmb|renminbi|cny|¥|人民币|(?<![美欧日港加澳单公多])元|(?<=[十百千万亿\d])块",
    "euros": "€|euro|eur|欧元",
    "pounds": "£|pound|gbp|英镑",
    "yen": "yen|jpy|¥|日元|日圆|円",
}


def numbers(text: str, language: str) -> list[Number]:
    text = plain(text)
    values = (value for value, _ in english_numbers(text)) if language == "en" else chinese_numbers(text)
    return [simplest(value) for value in values]


def percents(text: str, language: str) -> list[Number]:
    text = plain(text)
    return [simplest(value) for value in (english_percents(text) if language == "en" else chinese_percents(text))]


def dates(text: str, language: str) -> list[Date]:
    text = plain(text)
    return [*(english_dates(text) if language == "en" else chinese_dates(text)), *numeric_dates(text)]


def times(text: str, language: str) -> list[Time]:
    text = plain(text)
    return [time for time in (english_times(text) if language == "en" else chinese_times(text)) if time]


def currencies(text: str) -> set[str]:
    text = plain(text)
    return {name for name, pattern in CURRENCIES.items() if re.search(pattern, text)}
