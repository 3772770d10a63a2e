"""What the writing of a text says about its language: scripts, names of files, and the two kinds of Chinese."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Literal

Variant = Literal["simplified", "traditional", ""]

# The letters of each script, vowel signs included, as classes of a regular expression. Code points, because some of
# these letters change when an editor normalises them. Marks that several scripts share are left out: the middle dot
# of the Katakana block, for one, stands in Chinese names too.
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

_FAMILIES = {
    "Latin": "af az bs ca cs cy da de en eo es et eu fi fr ga gl ha hr ht hu id ig is it jv la lb lt lv mg mi ms mt nb "
    "nl nn no pl pt ro rw sk sl so sq su sv sw tl tr uz vi xh yo zu",
    "Cyrillic": "be bg kk ky mk mn ru tg tt uk",
    "Arabic": "ar fa ps sd ug ur",
    "Devanagari": "hi mr ne sa",
    "Hebrew": "he yi",
    "Han": "zh yue",
}
SCRIPTS: dict[str, tuple[str, ...]] = {
    **{language: (script,) for script, family in _FAMILIES.items() for language in family.split()},
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

# The most written language of a script, where nothing but the script is known.
LIKELIEST = {
    "Latin": "en", "Han": "zh", "Hiragana": "ja", "Katakana": "ja", "Hangul": "ko", "Cyrillic": "ru", "Greek": "el",
    "Arabic": "ar", "Hebrew": "he", "Armenian": "hy", "Georgian": "ka", "Devanagari": "hi", "Bengali": "bn",
    "Gurmukhi": "pa", "Gujarati": "gu", "Tamil": "ta", "Telugu": "te", "Kannada": "kn", "Malayalam": "ml",
    "Sinhala": "si", "Thai": "th", "Lao": "lo", "Khmer": "km", "Myanmar": "my", "Ethiopic": "am", "Tibetan": "bo",
}  # fmt: skip
_HAN = range(0x4E00, 0xA000)
UNSPACED = ("Han", "Hiragana", "Katakana", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan")  # no space between words
DENSE = ("Han", "Hiragana", "Katakana", "Hangul")

# Endings that say how a file is packed, not what it holds.
_PACKING = re.compile(r"(\.(txt|tsv|jsonl|json|gz|xz|zst))+$")
_ONE = re.compile(r"(?:^|\.)([a-z]{2,3})(?:[-_](?:[a-z]{2}|[a-z]{4}))?$")
_TWO = re.compile(r"(?:^|[._-])([a-z]{2,3})[-_]([a-z]{2,3})$")


@cache
def letters(*scripts: str) -> re.Pattern[str]:
    """Matches runs of letters of any of these scripts."""
    return re.compile(f"[{''.join(LETTERS[script] for script in scripts)}]+")


def count(pattern: re.Pattern[str], text: str) -> int:
    """How many characters stand in the matches of a pattern; matching runs makes it quick."""
    return sum(map(len, pattern.findall(text)))


def units(text: str) -> int:
    """The length of a text in letters, where a character of Chinese, Japanese or Korean says as much as three."""
    return len(text) if text.isascii() else len(text) + 2 * count(letters(*DENSE), text)


def language_of(path: Path) -> str:
    """The language that a file name ends in: `train.zh`, `news.de.xz`, `zh.txt`; empty where it names none."""
    found = _ONE.search(_bare(path))
    first, second = languages_of(path)
    return found[1] if found and found[1] in SCRIPTS and first == second else ""


def languages_of(path: Path) -> tuple[str, str]:
    """The two languages that a file of pairs is named after, as in `news.zh-en.tsv.xz`; empty where it is not."""
    found = _TWO.search(_bare(path))
    return (found[1], found[2]) if found and {found[1], found[2]} <= SCRIPTS.keys() else ("", "")


def _bare(path: Path) -> str:
    return _PACKING.sub("", path.name.lower())


def guess_language(texts: Iterable[str]) -> str:
    """The likeliest language of texts by their script alone; empty where they have no letters."""
    weights: Counter[str] = Counter()
    for text in texts:
        for script, language in LIKELIEST.items():
            # Technical Chinese is full of Latin names, and is Chinese all the same.
            weights[language] += count(letters(script), text) * (3 if script in DENSE else 1)
    if weights["ja"] > weights["zh"] / 20:  # kana among the Han; a few stand in Chinese too
        weights["ja"] += weights.pop("zh")
    language = max(weights, key=weights.__getitem__, default="")
    return language if weights[language] else ""


def chinese_variant(text: str) -> Variant:
    """Which kind of Chinese most of the characters belong to that only one kind has; empty in doubt."""
    simplified, traditional = _distinctive()
    if traditional.isdisjoint(text):
        return "" if simplified.isdisjoint(text) else "simplified"
    balance = len(simplified.intersection(text)) - len(traditional.intersection(text))
    return "simplified" if balance > 0 else "traditional" if balance < 0 else ""


@cache
def _distinctive() -> tuple[frozenset[str], frozenset[str]]:
    """What GB 2312, made for simplified Chinese, can say and Big5, made for traditional, cannot; and the reverse."""
    codes = {char: (char.encode("gb2312", "ignore"), char.encode("big5", "ignore")) for char in map(chr, _HAN)}
    simplified = frozenset(char for char, (gb, big5) in codes.items() if gb and not big5)
    # From C9 on Big5 holds rare characters, which a text of either kind may have.
    return simplified, frozenset(char for char, (gb, big5) in codes.items() if b"" < big5 < b"\xc9" and not gb)
