"""Faults that `guard.py` plants in good translations, each by a plain change of the text.

The patterns here were written apart from the guard's readers, though plain words of negation are in both. A quantity is
changed only where the source has it too, as far as a table of words tells: two dozen units, the numbers up to ninety,
currencies. What the source does not say cannot be found wrong.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

Plant = Callable[[str, str, random.Random, str], str | None]  # source, target, rng, language of the target
Change = Callable[[re.Match[str], random.Random], str | None]
SEPARATORS = {"en": " ", "zh": ""}
NUMBER = re.compile(r"(?<![\dA-Za-z.,])\d{3,}(?![\dA-Za-z.,])")
NAMES = ("Zubrowka", "Kjeldsen", "Quintero", "Fujimoto", "Baggins")
MONTHS = "January February March April May June July August September October November December"


def words(text: str, language: str) -> list[str]:
    return text.split() if language == "en" else list(text)


def random_phrase(target: str, rng: random.Random, language: str, size: int) -> tuple[list[str], int]:
    """Return the words of a text, and the index of a random phrase of `size` words."""
    units = words(target, language)
    return units, rng.randrange(max(1, len(units) - size))


def loop(size: int, times: int) -> Plant:
    def plant(_source: str, target: str, rng: random.Random, language: str) -> str | None:
        units, index = random_phrase(target, rng, language, size)
        run = units[index : index + size]
        if not all(any(char.isalpha() for char in unit) for unit in run) or len(run) < size:
            return None
        return SEPARATORS[language].join([*units[: index + size], *run * times, *units[index + size :]])

    return plant


def doubled(_source: str, target: str, _rng: random.Random, language: str) -> str | None:
    return target + SEPARATORS[language] + target if len(words(target, language)) >= 5 else None


def cut(_source: str, target: str, _rng: random.Random, language: str) -> str | None:
    units = words(target, language)
    first_half = units[: len(units) // 2]
    return SEPARATORS[language].join(first_half).rstrip(",，") if len(units) >= 8 else None


def copied(source: str, _target: str, _rng: random.Random, _language: str) -> str | None:
    return source if len(source) >= 12 else None


def untranslated(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Leave some words of the source in the translation."""
    source_language = "zh" if language == "en" else "en"
    size = 4 if source_language == "zh" else 5
    units, index = random_phrase(source, rng, source_language, size)
    run = SEPARATORS[source_language].join(units[index : index + size])
    plain = r"[a-z]+(?: [a-z]+){4}" if source_language == "en" else r"[\u4e00-\u9fff]{4}"
    target_words = words(target, language)
    middle = len(target_words) // 2
    if not re.fullmatch(plain, run) or len(target_words) < 6:
        return None
    left = f" {run} " if language == "zh" else run
    return SEPARATORS[language].join([*target_words[:middle], left, *target_words[middle:]])


def number_lost(source: str, target: str, _rng: random.Random, _language: str) -> str | None:
    """Drop a number of three digits or more that is no year."""
    years = re.compile(r"(?:1[89]|20)\d\d\Z")
    shared = [each for each in NUMBER.findall(target) if each in NUMBER.findall(source) and not years.match(each)]
    return target.replace(shared[0], "", 1) if shared else None


def year_lost(source: str, target: str, _rng: random.Random, _language: str) -> str | None:
    shared = [each for each in re.findall(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)", target) if each in source]
    return target.replace(shared[0], "", 1) if shared else None


def name_lost(source: str, target: str, _rng: random.Random, language: str) -> str | None:
    """Drop a name that both sides have in Latin letters."""
    capitals = r"|[A-Z]{3,6}" if language == "en" else ""  # in English they are often spelt out
    mixed_case = r"[A-Z][a-z]+[A-Z][A-Za-z]+|[a-z]+[A-Z][A-Za-z]+|[A-Za-z]+\d+"
    pattern = rf"(?<![A-Za-z\d.-])(?!Ma?c[A-Z])(?:{mixed_case}{capitals})(?![A-Za-z\d-])"
    shared = [each for each in re.findall(pattern, source) if target.casefold().count(each.casefold()) == 1]
    return target.replace(shared[0], "", 1) if shared else None


def name_changed(source: str, target: str, rng: random.Random, _language: str) -> str | None:
    """Put another name in the place of one that both sides have in Latin letters."""
    pattern = r"(?<![A-Za-z\d.-])[A-Z][a-zA-Z]{3,}(?![A-Za-z\d-])"
    source_names, target_names = (set(re.findall(pattern, text)) for text in (source, target))
    shared = sorted(source_names & target_names)
    return target.replace(shared[0], rng.choice(NAMES)) if shared else None


def placeholder_lost(source: str, target: str, _rng: random.Random, _language: str) -> str | None:
    return target if "{" not in source else None  # the source gets one, see `guard.py`


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
CHINESE_DIGITS = {
    "二": "two|twe|twi|both|pair|2", "两": "two|twe|twi|both|pair|couple|2", "三": "three|thir|thr|3",
    "四": "four|fort|quadr|4", "五": "fiv|fif|5", "六": "six|6", "七": "seven|7", "八": "eigh|8", "九": "nin|9",
}  # fmt: skip
ENGLISH_NUMBERS = {
    "two": "[二两2俩]", "three": "[三3]", "four": "[四4]", "five": "[五5]", "six": "[六6]", "seven": "[七7]",
    "eight": "[八8]", "nine": "[九9]", "ten": "十(?![几来多])|10", "eleven": "十一|11", "twelve": "十二|12",
    "thirteen": "十三|13", "fourteen": "十四|14", "fifteen": "十五|15", "sixteen": "十六|16", "seventeen": "十七|17",
    "twenty": "二十|2", "thirty": "三十|3", "forty": "四十|4", "fifty": "五十|5", "sixty": "六十|6",
    "seventy": "七十|7", "eighty": "八十|8",
}  # fmt: skip


def spelt_out(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Change a number in words: a word of a size for another one in English, a digit of a numeral in Chinese."""
    if language == "en":
        of_a_size = [list(ENGLISH_NUMBERS)[start:end] for start, end in ((0, 11), (11, 16), (16, 23))]
        return one_of([" ".join(names) for names in of_a_size], (), ENGLISH_NUMBERS)(source, target, rng, language)

    def change(match: re.Match[str], rng: random.Random) -> str | None:
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


def currency_lost(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Drop a currency: £300 becomes 300."""
    if language == "en":
        pattern = r"(?:US|HK|A|C|NT|S)?[$£€](?=\d)|(?<=\d|n)[ -](?:dollars?|euros?|pounds?|yuan|yen)\b"
    else:
        pattern = r"(?<=[\d万亿千百])(?:美元|欧元|英镑|日元|元)"
    if len(re.findall(pattern, target)) != 1 or not re.search(r"[元镑块$£€]|yuan|dollar|pound|euro|yen", source):
        return None
    return replace_one(target, pattern, lambda _match, _rng: "", rng)


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


def negation_lost(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Drop the only negation of the translation, if the source has one too."""
    english = r"\b(?:not|never|no|cannot|nothing|nobody|without)\b|n['’]t\b"
    chinese = "不会|不能|不是|不想|不要|不知道|不可能|不应|没有|没(?=[能想说看听做去来])|从未|尚未|未能|无法|并不"
    if language == "en":
        if len(re.findall(english, target)) != 1 or not re.search(chinese, source):
            return None
        for pattern, new in (
            (r"\b(?:do|does|did)(?: not|n['’]t) ", ""), (r"\b(?:can['’]t|cannot)\b", "can"), (r"\bwon['’]t\b", "will"),
            (r"n['’]t\b| not\b", ""), (r"\b(?:never|no) ", ""), (r"\bnothing\b", "something"),
            (r"\bnobody\b", "somebody"), (r"\bwithout\b", "with"),
        ):  # fmt: skip
            if re.search(pattern, target):
                return re.sub(pattern, new, target, count=1)
        return None
    if len(re.findall(chinese, target)) != 1 or not re.search(english, source) or "是不是" in target:
        return None
    new = {"没有": "有", "没": "", "从未": "曾", "尚未": "已", "未能": "能", "无法": "能", "并不": ""}
    return replace_one(target, chinese, lambda match, _rng: new.get(match[0], match[0].replace("不", "")), rng)


def negation_added(source: str, target: str, rng: random.Random, language: str) -> str | None:
    if re.search(r"[不没未无别非]|\b(?:not|never|no|cannot|without)\b|n['’]t\b", source + target):
        return None
    if language == "en":
        verbs = r"\b(?:is|was|are|were|will|can|has|should)\b(?= [a-z])"
        return replace_one(target, verbs, lambda match, _rng: f"{match[0]} not", rng)
    verbs = "是(?=[一这那个他她])|会(?=[在被让给有])|能(?=够|在|让|给)|应该|可以"
    return replace_one(target, verbs, lambda match, _rng: f"不{match[0]}", rng)


MONTH = MONTHS.replace(" ", "|")
PLANTS: dict[str, Plant] = {
    "nothing said": lambda *_: " ",
    "a word six times more": loop(1, 6),
    "two words four times more": loop(2, 4),
    "five words three times more": loop(5, 3),
    "said twice": doubled,
    "cut in half": cut,
    "the source copied": copied,
    "words of the source left": untranslated,
    "digits": digits_of(
        r"(?<![\w.,:/$£€¥'-])\d[\d,]*\d(?!\w|[.,:/]\d|%| percent| per cent|st|nd|rd|th| [ap]\.?m|[ -]\w+(?<=year-))",
        r"(?<![\d.,:/A-Za-z$-])\d[\d,]*\d(?![\d:/%点年月日号A-Za-z]|[.,]\d)",
    ),
    "万, 亿, million": one_of(
        ["thousand million billion trillion"], ["万 亿 千"], {},
        (r"(?<=\d )|(?<=[a-z] )", r"(?<=\d)"), ("", "(?![万亿千年一])"),
    ),
    "spelt-out numbers": spelt_out,
    "percentages": digits_of(r"\d+(?:\.\d+)?(?=%| percent| per cent)", r"\d+(?:\.\d+)?(?=%)"),
    "fractions": one_of(
        [
            "two-thirds three-quarters two-fifths four-fifths", "two_thirds three_quarters two_fifths",
            "a_third a_quarter a_fifth a_tenth", "one-third one-quarter one-fifth", "one_third one_quarter one_fifth",
        ],
        ["三分之二 四分之三 五分之二 五分之四", "三分之一 四分之一 五分之一 十分之一"], SHARES, after=("(?! past)", ""),
    ),
    "money: the amount": digits_of(
        r"(?<=[$£€¥])\d[\d.,]*\d|\d[\d.,]*(?= (?:million |billion )?(?:yuan|dollars|euros|pounds))",
        r"\d[\d.,]*(?=[万亿千]*(?:元|美元|欧元|英镑))",
    ),
    "money: another currency": one_of(
        ["dollars euros pounds yen", "$ £ €", "yuan dollars euros"], ["美元 欧元 英镑 日元", "元 美元 英镑"],
        CURRENCIES,
        (r"(?<=\d )|(?<=lion )|(?=[$£€])", r"(?<=[\d万亿])"),
    ),
    "money: the currency lost": currency_lost,
    "dates: the month": one_of(
        [MONTHS], [" ".join(f"{month}月" for month in range(1, 13))], {},
        (r"(?<=\d )|(?<= [ni]n )|(?<=[a-z] )", r"(?<!\d)"),
    ),
    "dates: the day": digits_of(
        rf"\b\d\d?(?=(?:st|nd|rd|th)? (?:{MONTH})\b)|(?<=(?:ary|rch|une|uly|ber) )\d\d?\b(?!:)",
        r"(?<=月)\d\d?(?=[日号])",
        other_number(1, 28), shared=True,
    ),
    "dates: the year": digits_of(r"(?<![\w.,$£€-])(?:1[89]|20)\d\d(?![\w%-]|[.,]\d)", r"(?<!\d)(?:1[89]|20)\d\d(?=年)"),
    "times": digits_of(
        r"(?<![\d:.])\d\d?:\d\d\b(?!:)|(?<![\d:.])\d\d?(?= ?[ap]\.?m\b| o'clock)",
        r"(?<![\d.:])\d\d?(?:(?=[点时](?!间|候))|:\d\d(?![\d:]))", other_number(1, 23),
    ),
    "units": one_of(
        [
            "kilometers meters centimeters miles", "kilometres metres centimetres miles", "tons kilograms grams",
            "tonnes kilograms", "hours minutes days", "years months weeks days", "feet inches miles",
        ],
        ["公里 米 厘米 英里", "吨 公斤 克", "小时 分钟", "年 天 周", "平方公里 平方米"], UNITS,
        (
            r"(?<=\d )|(?<=two )|(?<=three )|(?<=five )|(?<=ten )|(?<=on )",
            r"(?<![\d年]\d\d\d)(?<=[\d万千百十])(?<!第\d)(?<!第\d\d)(?<!第十)",
        ),
        ("", "(?![代级月前度一])"),
    ),
    "ranges": digits_of(
        r"(?<![\w.:-])\d+(?= ?(?:to|-|–) ?\d+(?![\w:-]|[.,]\d))|(?<![\w.:-]\d[-–])(?<=\d[-–])\d+(?![\w:-]|[.,]\d)",
        r"(?<![\w.:-])\d+(?=[至到~-]\d+(?![\d:.A-Za-z-]))|(?<![\w.:-]\d[至到~-])(?<=\d[至到~-])\d+(?![\d:.A-Za-z-])",
        shared=True,
    ),
    "ordinals": one_of(
        ["third fourth fifth sixth seventh eighth ninth tenth", "13th 15th 17th 18th 19th 20th 21st 22nd 23rd 24th"],
        [" ".join(f"第{numeral}" for numeral in "三四五六七八九"), " ".join(f"第{number}" for number in range(10, 32))],
        ORDINALS, after=("", r"(?![十百\d])"),
    ),
    "a number lost": number_lost,
    "a year lost": year_lost,
    "a name lost": name_lost,
    "a name changed": name_changed,
    "a placeholder lost": placeholder_lost,
    "a negation lost": negation_lost,
    "a negation added": negation_added,
}  # fmt: skip
