"""Faults that `guard.py` plants in good translations, each by a plain change of the text.

The patterns here were written apart from the guard's readers, though plain words of negation are in both. A quantity is
changed only where the source has it too, as far as a table of words tells: two dozen units, the numbers up to ninety,
currencies. What the source does not say cannot be found wrong.
"""

from __future__ import annotations

import random
import re

from planted_quantities import (
    CURRENCIES,
    MONTHS,
    MONTHS_IN_SOURCE,
    ORDINALS,
    SHARES,
    UNITS,
    Plant,
    currency_lost,
    digits_of,
    one_of,
    other_number,
    replace_one,
    spelt_out,
)

SEPARATORS = {"en": " ", "zh": ""}
NUMBER = re.compile(r"(?<![\dA-Za-z.,])\d{3,}(?![\dA-Za-z.,])")
NAMES = ("Zubrowka", "Kjeldsen", "Quintero", "Fujimoto", "Baggins")


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


# Turns of phrase that mean the same without their negation, or are nothing without it: tag questions, "can't help",
# "not only", "without so much as", 是不是, 要不是, 不得不, 不是…而是, 谁也没, 连一句话也没.
NO_AFFIRMATIVE = {
    "en": r"n['’]t (?:you|he|she|it|we|they|I|that|this|there)\b|\bca(?:n['’]t|nnot) (?:help|wait)|couldn['’]t help"
    r"|\bnot (?:only|just|merely|simply|so much)|so much as|\bor no\b|\bno (?:doubt|matter|wonder|sooner)\b",
    "zh": "([是会能要])不\\1|要不[是然]|不得不|不是[吗么]|不是.*而是|而不是|[也都毫再]没|[也都再]不|谁.{0,2}没",
}
# What takes the place of a negation, and of the words that only stand beside one; the first pattern that is found.
AFFIRMATIVES = {
    "en": (
        (r"\b(?:do|does|did|Do|Does|Did)(?: not|n['’]t) ", ""), (r"\b(?:can['’]t|cannot)\b", "can"),
        (r"\bwon['’]t\b", "will"), (r"n['’]t\b| not\b", ""), (r"\bno one\b", "someone"), (r"\bno longer\b", "still"),
        (r"\bno\b", "some"), (r"\bnever ", ""), (r"\bnothing\b", "something"), (r"\bnobody\b", "somebody"),
        (r"\bwithout\b", "with"),
    ),
    "zh": (
        ("从来没有?|从没有?|从未", "曾"), ("[还尚仍]没有?|[尚仍]未", "已经"), ("未能|无法", "能"), ("并不", ""),
        ("并?没有?(?=[被把用在对向给能想说看听做去来])", ""), ("并?没有", "有"),
        ("不(?=[会能是想要应]|知道|可能)", ""),
    ),
}  # fmt: skip
BESIDE_NEGATIONS = {"anyone": "someone", "anybody": "somebody", "anything": "something", "anywhere": "somewhere",
                    "any": "some", "either": "too", "yet": "already"}  # fmt: skip


def negation_lost(source: str, target: str, _rng: random.Random, language: str) -> str | None:
    """Say the opposite without the only negation of the translation, if the source has one too.

    The result is a sentence that a model might write: "nobody has called yet" becomes "somebody has called already".
    """
    english = r"\b(?:not|never|no|cannot|nothing|nobody|without)\b|n['’]t\b"
    chinese = "不[会能想要应是]|不知道|不可能|没有?|从未|尚未|仍未|未能|无法|并不"
    pattern, of_source = (english, chinese) if language == "en" else (chinese, english)
    source_language = "zh" if language == "en" else "en"
    if len(re.findall(pattern, target)) != 1 or not re.search(of_source, source):
        return None
    if re.search(NO_AFFIRMATIVE[language], target) or re.search(NO_AFFIRMATIVE[source_language], source):
        return None
    replacement = next(((each, new) for each, new in AFFIRMATIVES[language] if re.search(each, target)), None)
    if replacement is None:
        return None
    affirmative = re.sub(*replacement, target, count=1)
    if language == "zh":
        return affirmative
    return re.sub(rf"\b(?:{'|'.join(BESIDE_NEGATIONS)})\b", lambda match: BESIDE_NEGATIONS[match[0]], affirmative)


def negation_added(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Negate a verb. Questions stay, since 不能……吗 asks what 能……吗 does, and "is only", since "not only" affirms."""
    if re.search(r"[不没未无别非?？]|\b(?:not|never|no|cannot|without)\b|n['’]t\b", source + target):
        return None
    if language == "en":
        verbs = r"\b(?:is|was|are|were|will|can|has|should)\b(?= (?!(?:only|just|simply|merely|solely)\b)[a-z])"
        return replace_one(target, verbs, lambda match, _rng: f"{match[0]} not", rng)
    verbs = r"(?<![只就也都还正])是(?=[一这那个他她])|(?<![只可才])(?:会(?=[有在被让给])|能(?=[够在让给]))|应该|可以"
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
        [MONTHS], [" ".join(f"{month}月" for month in range(1, 13))],
        MONTHS_IN_SOURCE,
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
            r"(?<=\d )|(?<=two )|(?<=three )|(?<=five )|(?<=ten )|(?<=lion )",
            r"(?<![\d年]\d\d\d)(?<=[\d万千百十])(?<![^\d一二两三四五六七八九十百多余几]千)(?<!第\d)(?<!第\d\d)(?<!第十)",
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
