"""Changes of a quantity in a translation, for `planted_faults.py`: digits, words, currencies, units, months and ranks.

A quantity is changed only where the source has it too, as far as these tables of words tell. Changes that were made
once and are no faults, or that the source says nothing of, are left out: May and August of people's names, "on years"
in "common years", 千 of 千克, 元 of 元人民币, the dollar of "the Australian dollar", a 2 of 2005 and "two" of "network"
as evidence for 两个, and a digit of 三四天, which is no numeral with another digit.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

Plant = Callable[[str, str, random.Random, str], str | None]  # source, target, rng, language of the target
Change = Callable[[re.Match[str], random.Random], str | None]
MONTHS = "January February March April May June July August September October November December"
MONTHS_IN_SOURCE = {f"{number}月": name[:3] for number, name in enumerate(MONTHS.split(), 1)}
_NUMERALS = ["[一元正]", *"二三四五六七八九", "(?<!二)十", "十一", "十二|腊"]
for _number, (_numeral, _name) in enumerate(zip(_NUMERALS, MONTHS.split(), strict=True), 1):
    MONTHS_IN_SOURCE[_name] = rf"(?<!\d)0?{_number}月|(?<!十)(?:{_numeral})月|(?<![\d.])0?{_number}[./-]\d"


def replace_one(target: str, pattern: str, change: Change, rng: random.Random) -> str | None:
    """Return a text with one match of a pattern changed, if the change gives another text."""
    matches = list(re.finditer(pattern, target))
    if not matches:
        return None
    match = rng.choice(matches)
    new = change(match, rng)
    return None if new is None or new == match[0] else target[: match.start()] + new + target[match.end() :]


def other_digits(text: str, rng: random.Random) -> str:
    """Return a text with its first digit, or two unequal digits that are neighbours, changed: 1,024 becomes 1,204."""
    swapped = [
        f"{text[:index]}{second}{comma}{first}{text[index + 2 + len(comma) :]}"
        for index in range(len(text) - 1)
        for comma in [text[index + 1] if text[index + 1] in ",." else ""]
        for first, second in [(text[index], text[index + 1 + len(comma) : index + 2 + len(comma)])]
        if first.isdigit() and second.isdigit() and first != second and (index or second != "0")
    ]
    if swapped:
        return rng.choice(swapped)
    return re.sub(r"\d", lambda match: rng.choice([digit for digit in "123456789" if digit != match[0]]), text, count=1)


def other_number(low: int, high: int) -> Callable[[str, random.Random], str]:
    """Return a change of the first number of a text into another one from `low` to `high`."""

    def change(text: str, rng: random.Random) -> str:
        old = int(re.findall(r"\d+", text)[0])
        start = 13 if low == 1 and high == 23 and old > 12 else low  # an hour of the afternoon stays one
        end = 12 if low == 1 and high == 23 and old <= 12 else high
        others = [number for number in range(start, end + 1) if number != old]
        return re.sub(r"\d+", str(rng.choice(others)), text, count=1)

    return change


def digits_of(
    english: str, chinese: str, change: Callable[[str, random.Random], str] = other_digits, shared: bool = False
) -> Plant:
    """Return a plant that changes the digits of what a pattern finds; if `shared`, only digits that the source has."""

    def plant(source: str, target: str, rng: random.Random, language: str) -> str | None:
        def change_match(match: re.Match[str], rng: random.Random) -> str | None:
            if shared and not all(
                re.search(rf"(?<!\d){number}(?!\d)", source) for number in re.findall(r"\d+", match[0])
            ):
                return None
            return change(match[0], rng)

        return replace_one(target, english if language == "en" else chinese, change_match, rng)

    return plant


def one_of(
    english: Sequence[str], chinese: Sequence[str], same: dict[str, str], before: Sequence[str] = ("", ""),
    after: Sequence[str] = ("", ""),
) -> Plant:  # fmt: skip
    """Return a plant that puts one word of a group in the place of another; a group is words separated by spaces.

    `same` has a pattern for each word that the source must match; words that it lacks are changed in any case.
    """

    def plant(source: str, target: str, rng: random.Random, language: str) -> str | None:
        groups = [group.split() for group in (english if language == "en" else chinese)]
        in_target = sorted({word for group in groups for word in group}, key=len, reverse=True)
        starts, ends = (each[language == "zh"] for each in (before, after))
        edge = r"\b" if language == "en" and in_target[0][0].isalpha() else ""
        alternatives = "|".join(re.escape(word).replace("_", " ") for word in in_target)
        pattern = f"(?:{starts}){edge}(?:{alternatives}){edge}(?:{ends})"

        def change(match: re.Match[str], rng: random.Random) -> str | None:
            word = match[0].replace(" ", "_")
            if word in same and not re.search(same[word], source):
                return None
            group = next(group for group in groups if word in group)
            return rng.choice([other for other in group if other != word]).replace("_", " ")

        return replace_one(target, pattern, change, rng)

    return plant


NUMERALS = "零一二三四五六七八九十百千万亿两"
# What the other text has for a digit of a numeral, or for a number in words: 12, 20 to 29, 200 and 22 for 二.
DIGIT = r"(?<![\d.,])(?:\d?{0}|{0}\d|{0}00)(?!\d|[.,]\d)"
CHINESE_DIGITS = {
    digit: rf"\b(?:{words})|" + DIGIT.format(value)
    for digit, value, words in (
        ("二", 2, "two|twe[ln]|twi[cn]|both|pair"), ("两", 2, "two|twe[ln]|twi[cn]|both|pair|couple"),
        ("三", 3, "three|thir|thrice"), ("四", 4, "four|fort[iy]|quadr"), ("五", 5, "fiv|fif"), ("六", 6, "six"),
        ("七", 7, "seven"), ("八", 8, "eigh"), ("九", 9, "nin[et]"),
    )
}  # fmt: skip
TEN = "(?<![二三四五六七八九])十(?![几来多一二三四五六七八九])"
ENGLISH_NUMBERS = {
    name: rf"{numeral}|(?<![\d.,])(?:{digits})(?!\d|[.,]\d)"
    for name, numeral, digits in (
        ("two", "[二两俩]", r"\d?2|200"), ("three", "三", r"\d?3|300"), ("four", "四", r"\d?4|400"),
        ("five", "五", r"\d?5|500"), ("six", "六", r"\d?6|600"), ("seven", "七", r"\d?7|700"),
        ("eight", "八", r"\d?8|800"), ("nine", "九", r"\d?9|900"), ("ten", TEN, "10"),
        ("eleven", "十一", "11"), ("twelve", "十二", "12"), ("thirteen", "十三", "13"), ("fourteen", "十四", "14"),
        ("fifteen", "十五", "15"), ("sixteen", "十六", "16"), ("seventeen", "十七", "17"),
        ("twenty", "二十", r"2\d"), ("thirty", "三十", r"3\d"), ("forty", "四十", r"4\d"), ("fifty", "五十", r"5\d"),
        ("sixty", "六十", r"6\d"), ("seventy", "七十", r"7\d"), ("eighty", "八十", r"8\d"),
    )
}  # fmt: skip


def spelt_out(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Change a number in words: a word of a size for another one in English, a digit of a numeral in Chinese.

    A numeral with two digits in a row, such as 三四天, stays as it is: with another digit it is no numeral.
    """
    if language == "en":
        of_a_size = [list(ENGLISH_NUMBERS)[start:end] for start, end in ((0, 11), (11, 16), (16, 23))]
        return one_of([" ".join(names) for names in of_a_size], (), ENGLISH_NUMBERS)(source, target, rng, language)

    def change(match: re.Match[str], rng: random.Random) -> str | None:
        if re.search("[二三四五六七八九两]{2}|一[二两]", match[0]):
            return None
        places = [at for at, char in enumerate(match[0]) if char in CHINESE_DIGITS]
        at = rng.choice(places)
        if not re.search(CHINESE_DIGITS[match[0][at]], source, re.IGNORECASE):
            return None
        return match[0][:at] + rng.choice("三四五六七八九".replace(match[0][at], "")) + match[0][at + 1 :]

    numeral = rf"(?=[{NUMERALS}]*[二三四五六七八九两])[{NUMERALS}]+"
    counted = rf"(?<![第几数周期{NUMERALS}\d.点]){numeral}(?=[个名位人岁年天张本辆件种家座次])"
    return replace_one(target, counted, change, rng)


CURRENCIES = {
    "dollars": r"美元|元|\$|美金|块", "$": r"美元|元|\$|美金|块", "US$": "美元|美金|元",
    "euros": "欧元|€", "€": "欧元|€",
    "pounds": "英镑|镑|£", "£": "英镑|镑|£", "yen": "日元|日圆", "yuan": "元|块|¥",
    "美元": r"dollar|\$", "欧元": "euro|€", "英镑": "pound|£", "日元": "yen|¥", "元": "yuan|RMB|¥",
}  # fmt: skip


def currency_lost(source: str, target: str, _rng: random.Random, language: str) -> str | None:
    """Drop the only currency of a translation, at its amount: £300 becomes 300.

    Where another amount has one, the translation stays right: "He bought them at 12 yuan and sold them at 18."
    """
    if language == "en":
        pattern = r"(?:US|HK|A|C|NT|S)?[$£€](?=\d)|(?:(?<=\d)|(?<=lion))[ -](?:dollars?|euros?|pounds?|yuan|yen)\b"
    else:
        pattern = r"(?<=[\d万亿千百])(?:美元|欧元|英镑|日元|元(?:人民币)?)"
    if len(re.findall(pattern, target)) != 1 or not re.search(r"[元镑块$£€]|yuan|dollar|pound|euro|yen", source):
        return None
    without = re.sub(pattern, "", target)
    has_another = re.search(r"[$£€¥元镑块]|人民币|(?i:\b(?:dollar|euro|pound|yuan|yen|rmb|usd|cents?\b))", without)
    return None if has_another else without


UNITS = {
    "kilometers": "公里|千米", "kilometres": "公里|千米", "meters": "米", "metres": "米", "centimeters": "厘米|公分",
    "centimetres": "厘米|公分", "miles": "英里", "tons": "吨", "tonnes": "吨", "kilograms": "公斤|千克",
    "grams": "(?<!千)克", "hours": "小时|钟头", "minutes": "分钟", "days": "[天日]", "weeks": "周|星期|礼拜",
    "months": "个月|个多月", "years": "[年岁]", "feet": "英尺", "inches": "英寸",
    "公里": "kilomet|km", "米": r"\bmet(?:er|re)s?\b|\d ?m\b", "厘米": "centimet|cm", "英里": "mile", "吨": r"\bton",
    "公斤": "kilo|kg", "克": r"\bgram", "小时": r"\bhours?\b", "分钟": r"\bminutes?\b", "天": r"\bdays?\b",
    "周": r"\bweeks?\b", "年": r"\byears?\b", "平方公里": "square kilo|km2|km²", "平方米": "square met|m2|m²",
}  # fmt: skip
SHARES = {
    **dict.fromkeys(("a_third", "one-third", "one_third"), "三分之一"),
    **dict.fromkeys(("a_quarter", "one-quarter", "one_quarter"), "四分之一"),
    **dict.fromkeys(("a_fifth", "one-fifth", "one_fifth"), "五分之一"),
    **dict.fromkeys(("a_tenth", "one_tenth"), "十分之一"),
    **dict.fromkeys(("two-thirds", "two_thirds"), "三分之二"),
    **dict.fromkeys(("three-quarters", "three_quarters"), "四分之三"),
    **dict.fromkeys(("two-fifths", "two_fifths"), "五分之二"),
    **dict.fromkeys(("four-fifths", "four_fifths"), "五分之四"),
    "三分之一": "third", "三分之二": "two[ -]third", "四分之一": "quarter|fourth", "四分之三": "three[ -]quarter",
    "五分之一": "fifth|one in five", "五分之二": "fifth|two in five", "五分之四": "fifth|four in five",
    "十分之一": "tenth|one in ten",
}  # fmt: skip
RANKS = ["third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"]
RANKED = r"(?:day|step|number|chapter|stage|episode) "
ORDINALS = {}
for _number, _rank, _digit, _word in zip(
    range(3, 11), RANKS, "三四五六七八九十", list(ENGLISH_NUMBERS)[1:9], strict=True
):
    ORDINALS[_rank] = rf"第(?:{_digit}|{_number})(?![十百\d])"
    ORDINALS[f"第{_digit}"] = rf"(?i){_rank}|{RANKED}(?:{_number}|{_word})"
for _number in range(10, 32):
    ORDINALS[f"第{_number}"] = rf"\b{_number}"
    ORDINALS |= {f"{_number}{suffix}": rf"(?<!\d){_number}(?!\d)" for suffix in ("st", "nd", "rd", "th")}
