"""Simplified and traditional Chinese: which of them a text is, and conversion from one to the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from sixfold.errors import ConfigError

Variant = Literal["simplified", "traditional", ""]

_COMMON_HAN = range(0x4E00, 0xA000)
# OpenCC copies the rest of a run without punctuation at every word, so that longer runs are converted in parts.
MAX_RUN_CHARACTERS = 200
_NOT_ASCII_RUN = re.compile(rf"[^\x00-\x7f]{{1,{MAX_RUN_CHARACTERS}}}")


def chinese_variant(text: str) -> Variant:
    """Return which kind of Chinese a text is, by the characters that only one kind has; "" if it is undecided."""
    simplified, traditional = _distinctive_characters()
    if traditional.isdisjoint(text):
        return "" if simplified.isdisjoint(text) else "simplified"
    balance = len(simplified.intersection(text)) - len(traditional.intersection(text))
    return "simplified" if balance > 0 else "traditional" if balance < 0 else ""


def count_distinctive(text: str) -> tuple[int, int]:
    """Return how many different characters of a text only Chinese has, and how many only Japanese, as in 気 and 駅."""
    chinese, japanese = _chinese_and_japanese_characters()
    return len(chinese.intersection(text)), len(japanese.intersection(text))


@cache
def _chinese_and_japanese_characters() -> tuple[frozenset[str], frozenset[str]]:
    """Return the common characters that no Japanese encoding has, and those that no Chinese one has."""
    simplified, traditional, japanese = (
        {char for char in map(chr, _COMMON_HAN) if b"" < char.encode(encoding, "ignore") < last}
        for encoding, last in (("gb2312", b"\xff"), ("big5", b"\xc9"), ("shift_jis", b"\xff"))
    )
    chinese = simplified | traditional
    return frozenset(chinese - japanese), frozenset(japanese - chinese)


@cache
def _distinctive_characters() -> tuple[frozenset[str], frozenset[str]]:
    """Return the characters that only GB 2312 (simplified Chinese) has, and those that only Big5 (traditional) has."""
    codes = {char: (char.encode("gb2312", "ignore"), char.encode("big5", "ignore")) for char in map(chr, _COMMON_HAN)}
    simplified = frozenset(char for char, (gb, big5) in codes.items() if gb and not big5)
    # From C9 on, Big5 holds rare characters, which a text of either kind may have.
    return simplified, frozenset(char for char, (gb, big5) in codes.items() if b"" < big5 < b"\xc9" and not gb)


def can_convert() -> bool:
    """Return whether `to_traditional` and `to_simplified` work here: whether the package opencc is installed."""
    return find_spec("opencc") is not None


def to_traditional(text: str) -> str:
    """Return a text in traditional Chinese, in the forms of Taiwan; words stay the same: 软件 becomes 軟件.

    Everything that is not simplified Chinese stays as it is. Needs the package opencc.
    """
    return _convert(text, "s2tw")


def to_simplified(text: str) -> str:
    """Return a text in simplified Chinese; words stay the same: 軟體 becomes 软体. Needs the package opencc.

    Everything that is not traditional Chinese stays as it is, but Japanese text, whose characters would change too.
    """
    return _convert(text, "t2s")


def _convert(text: str, conversion: str) -> str:
    """Convert the runs of a text that are not ASCII; the time is in proportion to the length of the text."""
    convert = _converter(conversion, "Chinese in the other script")
    return _NOT_ASCII_RUN.sub(lambda run: convert(run[0]), text)


def _converter(conversion: str, purpose: str) -> Callable[[str], str]:
    """Return the conversion of OpenCC with this name; `purpose` is what a user needs it for."""
    try:
        import opencc
    except ImportError:
        raise ConfigError(f"{purpose}: expected the package opencc", "pip install 'sixfold[chinese]'") from None
    return _opened(opencc.OpenCC, conversion).convert


@cache
def _opened(open_conversion: Callable[[str], Any], conversion: str) -> Any:
    """Return a conversion with its dictionaries, which are read once."""
    return open_conversion(conversion)


# Ａ is 0xFEE0 above A. Full-width punctuation is left alone, because Chinese text is written with it.
FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code).isalnum()}
RARITY_FACTOR = 50  # a form of both scripts is replaced if its simplified form is more than this many times as frequent


def simplified_forms(counts: Mapping[str, int]) -> dict[str, str]:
    """Return a map from traditional to simplified characters, and from full-width letters and digits to ASCII.

    `counts` are the frequencies of the characters in a text. Characters that this text uses in their traditional form,
    such as 乾 in 乾隆, are left out. Needs the package opencc.
    """
    han = [chr(code) for first, last in ((0x3400, 0x9FFF), (0xF900, 0xFAFF)) for code in range(first, last + 1)]
    converted = _converter("t2s", "tokenizer.simplify")("\n".join(han)).split("\n")
    pairs = [pair for pair in zip(han, converted, strict=True) if pair[0] != pair[1] and len(pair[1]) == 1]
    traditional = {
        char: simplified
        for char, simplified in pairs
        if not (_is_in_gb2312(char) and _is_frequent(char, simplified, counts))
    }
    return traditional | FULL_WIDTH


def _is_in_gb2312(char: str) -> bool:
    """Return whether simplified text may have a character; GB 2312 has some forms of both scripts, such as 後."""
    try:
        return bool(char.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def _is_frequent(char: str, simplified: str, counts: Mapping[str, int]) -> bool:
    return counts.get(char, 0) * RARITY_FACTOR >= max(1, counts.get(simplified, 0))
