"""Which characters a tokeniser reads as others: traditional Chinese as simplified, full-width letters as plain ones."""

from __future__ import annotations

from collections.abc import Mapping

from sixfold.errors import ConfigError

RARER = 50  # times that a form of both scripts must be rarer than its simplified one to be read as that


# Ａ is 0xFEE0 above A. Full-width punctuation is left alone, since it is what Chinese text is written with.
FULL_WIDTH = {chr(code): chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F) if chr(code).isalnum()}


def simplified_forms(counts: Mapping[str, int]) -> dict[str, str]:
    """Traditional characters and what simplified text has instead, but for those that this text uses, as 乾 in 乾隆.

    Full-width letters and digits are among them.
    """
    try:
        from opencc import OpenCC
    except ImportError:
        raise ConfigError("tokenizer.simplify: expected the package opencc", "pip install 'sixfold[chinese]'") from None
    han = [chr(code) for first, last in ((0x3400, 0x9FFF), (0xF900, 0xFAFF)) for code in range(first, last + 1)]
    converted = OpenCC("t2s").convert("\n".join(han)).split("\n")
    pairs = [pair for pair in zip(han, converted, strict=True) if pair[0] != pair[1] and len(pair[1]) == 1]
    traditional = {one: other for one, other in pairs if not (is_simplified(one) and is_used(one, other, counts))}
    return traditional | FULL_WIDTH


def is_simplified(char: str) -> bool:
    """Whether it is in the character set of simplified text, which has some forms of both scripts: 後 is a surname."""
    try:
        return bool(char.encode("gb2312"))
    except UnicodeEncodeError:
        return False


def is_used(one: str, other: str, counts: Mapping[str, int]) -> bool:
    return counts.get(one, 0) * RARER >= max(1, counts.get(other, 0))
