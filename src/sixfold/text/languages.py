"""Languages and their scripts: which language the script of a text or the name of a file shows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

# The letters of each script, vowel signs included, as character classes of a regular expression. They are written as
# code points, because an editor may normalise some of these letters. Marks that several scripts share are left out,
# such as the middle dot of the Katakana block, which is used in Chinese names too.
EAST_ASIAN = frozenset(["zh", "ja", "ko", "yue"])
RIGHT_TO_LEFT = frozenset(["ar", "arc", "ckb", "dv", "fa", "he", "ks", "ps", "sd", "ug", "ur", "yi"])
LETTERS = {
    "Latin": r"A-Za-z\xaa\xba\xc0-\xd6\xd8-\xf6\xf8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a",
    "Han": r"\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af",
    "Hiragana": r"\u3041-\u3096\u309d-\u309f",
    "Katakana": r"\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Hangul": r"\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "Cyrillic": r"\u0400-\u0481\u048a-\u052f",
    "Greek": r"\u0370-\u0373\u0376\u0377\u0386\u0388-\u03e1\u1f00-\u1fbc\u1fc2-\u1ffc",
    "Arabic": r"\u0620-\u064a\u066e-\u06d3\u06fa-\u06fc\u0750-\u077f\ufb50-\ufbb1\ufbd3-\ufd3d\ufe70-\ufefc",
    "Hebrew": r"\u05d0-\u05ea",
    "Armenian": r"\u0531-\u0556\u0561-\u0587",
    "Georgian": r"\u10a0-\u10fa\u10fc-\u10ff\u1c90-\u1cbf",
    "Devanagari": r"\u0900-\u0963\u0971-\u097f",
    "Bengali": r"\u0980-\u09e3\u09f0\u09f1",
    "Gurmukhi": r"\u0a01-\u0a5e\u0a70-\u0a75",
    "Gujarati": r"\u0a81-\u0ae3\u0af9-\u0aff",
    "Tamil": r"\u0b82-\u0bd7",
    "Telugu": r"\u0c00-\u0c63",
    "Kannada": r"\u0c80-\u0ce3",
    "Malayalam": r"\u0d00-\u0d63\u0d7a-\u0d7f",
    "Sinhala": r"\u0d81-\u0ddf",
    "Thai": r"\u0e01-\u0e3a\u0e40-\u0e4e",
    "Lao": r"\u0e81-\u0ece\u0edc-\u0edf",
    "Khmer": r"\u1780-\u17d3",
    "Myanmar": r"\u1000-\u103f\u1050-\u108f",
    "Ethiopic": r"\u1200-\u135f",
    "Tibetan": r"\u0f00\u0f40-\u0fbc",
}

_LANGUAGES_BY_SCRIPT = {
    "Latin": "af az bs ca cs cy da de en eo es et eu fi fr ga gl ha hr ht hu id ig is it jv la lb lt lv mg mi ms mt nb "
    "nl nn no pl pt ro rw sk sl so sq su sv sw tl tr uz vi xh yo zu",
    "Cyrillic": "be bg kk ky mk mn ru tg tt uk",
    "Arabic": "ar fa ps sd ug ur",
    "Devanagari": "hi mr ne sa",
    "Hebrew": "he yi",
    "Han": "zh yue",
}
SCRIPTS: dict[str, tuple[str, ...]] = {
    **{language: (script,) for script, languages in _LANGUAGES_BY_SCRIPT.items() for language in languages.split()},
    "ja": ("Han", "Hiragana", "Katakana"),
    "ko": ("Hangul", "Han"),
    "sr": ("Cyrillic", "Latin"),
    "el": ("Greek",),
    "hy": ("Armenian",),
    "ka": ("Georgian",),
    "bn": ("Bengali",),
    "pa": ("Gurmukhi",),
    "gu": ("Gujarati",),
    "ta": ("Tamil",),
    "te": ("Telugu",),
    "kn": ("Kannada",),
    "ml": ("Malayalam",),
    "si": ("Sinhala",),
    "th": ("Thai",),
    "lo": ("Lao",),
    "km": ("Khmer",),
    "my": ("Myanmar",),
    "am": ("Ethiopic",),
    "bo": ("Tibetan",),
}

# The language that is written most in each script, used if nothing but the script is known.
LIKELY_LANGUAGE = {
    "Latin": "en", "Han": "zh", "Hiragana": "ja", "Katakana": "ja", "Hangul": "ko", "Cyrillic": "ru", "Greek": "el",
    "Arabic": "ar", "Hebrew": "he", "Armenian": "hy", "Georgian": "ka", "Devanagari": "hi", "Bengali": "bn",
    "Gurmukhi": "pa", "Gujarati": "gu", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Khmer": "km", "Myanmar": "my", "Ethiopic": "am", "Tibetan": "bo",
}  # fmt: skip
UNSPACED = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")  # no space between words
DENSE = ("Han", "Hiragana", "Katakana", "Hangul")  # one character says about as much as three Latin letters

SAMPLE_CHARACTERS = 2000  # from the beginning of a text, that its language is detected by
_QUOTED_CODE = re.compile(r"`[^`]*`")
_CODE_OR_ADDRESS = re.compile(r"[@\\/_<>{}=\d]|\w\.\w|[a-z][A-Z]|\w\(")  # in code, e-mail addresses and paths
_WESTERN_RUN = re.compile(f"[!-~{LETTERS['Latin']}]+")

# File endings of formats and compressions, which are removed before a file name is searched for languages.
_FORMAT_ENDINGS = re.compile(r"(\.(txt|tsv|jsonl|json|gz|xz|zst))+$")
_LANGUAGE_ENDING = re.compile(r"(?:^|\.)([a-z]{2,3})(?:[-_](?:[a-z]{2}|[a-z]{4}))?$")
_LANGUAGE_PAIR_ENDING = re.compile(r"(?:^|[._-])([a-z]{2,3})[-_]([a-z]{2,3})$")


@cache
def letters(*scripts: str) -> re.Pattern[str]:
    """Return a pattern that matches runs of letters of any of these scripts."""
    return re.compile(f"[{''.join(LETTERS[script] for script in scripts)}]+")


def count_characters(pattern: re.Pattern[str], text: str) -> int:
    """Return the number of characters in all matches of a pattern. Patterns that match whole runs are fast."""
    return sum(map(len, pattern.findall(text)))


def weighted_length(text: str) -> int:
    """Return the number of characters of a text, where a Chinese, Japanese or Korean character counts as three."""
    return len(text) if text.isascii() else len(text) + 2 * count_characters(letters(*DENSE), text)


def prose_of(text: str) -> str:
    """Return a text without code, addresses and numbers, which are of no language."""
    if "`" in text:
        text = _QUOTED_CODE.sub(" ", text)
    return _WESTERN_RUN.sub(lambda run: " " if _CODE_OR_ADDRESS.search(run[0]) else run[0], text)


def language_of(path: Path) -> str:
    """Return the language that a file name ends in, as in `train.zh`, `news.de.xz` or `zh.txt`; "" if there is none."""
    match = _LANGUAGE_ENDING.search(_without_format(path))
    first, second = languages_of(path)
    return match[1] if match and match[1] in SCRIPTS and first == second else ""


def languages_of(path: Path) -> tuple[str, str]:
    """Return the two languages in the name of a file of pairs, as in `news.zh-en.tsv.xz`, or ("", "")."""
    match = _LANGUAGE_PAIR_ENDING.search(_without_format(path))
    return (match[1], match[2]) if match and {match[1], match[2]} <= SCRIPTS.keys() else ("", "")


def _without_format(path: Path) -> str:
    return _FORMAT_ENDINGS.sub("", path.name.lower())


def guess_language(texts: Iterable[str]) -> str:
    """Return the likeliest language of texts by their script alone, or "" if they have no letters."""
    weights: Counter[str] = Counter()
    for text in texts:
        for script, language in LIKELY_LANGUAGE.items():
            # Chinese characters weigh more, because technical Chinese has many names in Latin letters.
            weights[language] += count_characters(letters(script), text) * (3 if script in DENSE else 1)
    if weights["ja"] > weights["zh"] / 20:  # a few kana occur in Chinese texts too
        weights["ja"] += weights.pop("zh")
    language = max(weights, key=weights.__getitem__, default="")
    return language if weights[language] else ""


def is_right_to_left(language: str) -> bool:
    """Return whether a language, by its code, is usually written from right to left."""
    return re.split("[-_]", language.lower())[0] in RIGHT_TO_LEFT
