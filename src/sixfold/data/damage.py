"""What went wrong with single characters: text decoded by the wrong rules, and numbers that differ between sides."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

# What the bytes 80 to BF, which go on a character in UTF-8, become in Latin-1 and in Windows-1252.
_REST = "[\x80-\xbf" + bytes(set(range(0x80, 0xA0)) - {0x81, 0x8D, 0x8F, 0x90, 0x9D}).decode("cp1252") + "]"
# In these files, one such sequence alone may be good French: é, a space that does not break, and ». So but for the
# commonest it takes two.
_MOJIBAKE = re.compile(
    rf"[ÂÃ]{_REST}"  # é as Ã©, £ as Â£; and what became of them when it happened twice
    rf"|â[\x80€]{_REST}"  # quotes and dashes
    rf"|(?:[\xc4-\xdf]{_REST}){{2}}"  # Cyrillic, Greek, Arabic, Hebrew
    rf"|(?:[\xe0-\xef]{_REST}{{2}}){{2}}"  # Chinese, Japanese, Korean, scripts of India
    rf"|[\xf0-\xf4]{_REST}{{3}}"  # emoji
    "|锟斤拷|烫烫烫|屯屯屯"  # replacement characters, or memory that was never written to, read as GBK
)
# GB 2312 read as Latin-1: common characters begin with B0 to D7, and words of Latin letters do not look like this.
_GB_AS_LATIN = re.compile("(?:[\xb0-\xd7][\xa1-\xfe]){2,}")
# UTF-8 read as GBK: what the commonest characters and stops become. Each is a rare character, two make it sure.
_RARE = "锛銆鈥鐨鏄鍦涓浜鍙鏈璇浠绗鑰鍜"
_UTF_AS_GB = re.compile(f"[{_RARE}]")
_SUSPECT = re.compile(f"[\x80-\xff锟烫屯{_RARE}]")  # what none of the above can be without

_FIGURE = re.compile(r"\d")
_LABEL = re.compile(r"^\W*\d{1,2}[.、)）]\s*(?!\d)")  # the number of a step or an entry
_NUMBER = re.compile(
    r"(?<![A-Za-z\d])\d+(?:[.,:/]\d+|[\u00a0\u2009 ]\d{3}(?!\d))*"
    r"(?:\s?(?:[万亿千百萬億]+|(?:thousand|million|billion|trillion)\b))?"
)
_SCALES = {
    "百": 100, "千": 1000, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8,
    "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12,
}  # fmt: skip


def mojibake(text: str) -> bool:
    """Whether a text was decoded by other rules than it was encoded by."""
    if text.isascii() or not _SUSPECT.search(text):
        return False
    if _MOJIBAKE.search(text) or len(set(_UTF_AS_GB.findall(text))) >= 2:
        return True
    found = _GB_AS_LATIN.search(text)
    return found is not None and len(set(found[0])) > 2


def numbers(text: str) -> Counter[str]:
    """The numbers that stand in figures: their digits alone, as languages disagree on points and commas."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return Counter(map(_digits, _NUMBER.findall(_LABEL.sub("", plain))))


def _digits(number: str) -> str:
    scale = number.lstrip("0123456789.,:/\u00a0\u2009 ")
    figures = number[: len(number) - len(scale)]
    value = 1
    for name in [scale] if scale.isascii() and scale else scale:
        value *= _SCALES[name]
    if value > 1 and figures.replace(",", "").replace(".", "", 1).strip().isdecimal():
        return f"{float(figures.replace(',', '')) * value:.0f}"
    return "".join(filter(str.isdecimal, figures)).lstrip("0") or "0"


def numbers_differ(source: str, target: str) -> str:
    """What each side says in figures that the other does not; empty where all is well, or one side has words for it."""
    if not _FIGURE.search(source) or not _FIGURE.search(target):
        return ""
    first, second = numbers(source), numbers(target)
    missing, extra = _unmatched(first, second), _unmatched(second, first)
    # Where only one side has figures left over, the other most often spells them: "1 月" is "January".
    return f"{', '.join(missing)} / {', '.join(extra)}" if missing and extra else ""


def _unmatched(ours: Counter[str], theirs: Counter[str]) -> list[str]:
    """What stands here only. Dates and versions are cut differently: parts of a longer number are no difference."""
    whole = " ".join(theirs)
    return [number for number in (ours - theirs) if number not in whole and not _made_of(number, theirs)]


def _made_of(number: str, parts: Counter[str]) -> bool:
    """Whether a number is others put together, as a date may be."""
    rest = number
    for part in sorted(parts, key=len, reverse=True):
        rest = rest.replace(part, "", 1)
    return not rest.strip("0")
