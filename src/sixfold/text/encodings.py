"""Recognises bytes that are not UTF-8 text from their beginning: other encodings, archives, pictures, programs."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from shlex import quote

from sixfold.errors import DataError
from sixfold.text.languages import letters

SAMPLE = 1 << 16  # bytes from the beginning of a file that are enough to tell
FOREIGN_SHARE = 0.3  # of all bytes invalid in UTF-8: such a file is refused even where no encoding is recognised
DAMAGED_SHARE = 0.01  # of all bytes zero or invalid in UTF-8: up to so many are damage in a text, more are no text

# What files of other kinds begin with, and how to get text out of them; {} is the name of the file.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a file packed by gzip", "unpack it first: gzip -dc {}"),
    (b"\xfd7zXZ", "a file packed by xz", "unpack it first: xz -dc {}"),
    (b"\x28\xb5\x2f\xfd", "a file packed by zstd", "unpack it first: zstd -dc {}"),
    (b"BZh", "a file packed by bzip2", "unpack it first: bzip2 -dc {}"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it first; of office documents, .docx files are read as they are"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"%PDF-", "a PDF document", "extract its text first: pdftotext {} -"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save it as .docx or as text"),
    (b"{\\rtf", "an RTF document", "save it as .docx or as text"),
    (b"\x7fELF", "an ELF program", "name a text file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", "name a text file"),
    (b"\xff\xd8\xff", "a JPEG picture", "name a text file"),
    (b"GIF8", "a GIF picture", "name a text file"),
    (b"SQLite format 3\0", "an SQLite database", "export its text first"),
)
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
# The commonest characters of running Chinese text, simplified and traditional: about a third of any text.
_COMMON = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发"
    "成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话"
    "這來國個說們為時後過學對裡麼沒於還發當開無經頭見長動兩樣現進與實點種聲話機電業問題間體關請"
)
_KANA, _HANGUL, _CYRILLIC = re.compile("[ぁ-ゖァ-ヺー]"), letters("Hangul"), re.compile("[а-яё]")
_WESTERN = re.compile("[À-ÖØ-öø-ÿœŒŠšŽž‘’“”–—…«»¿¡°§€£ªº]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_WRITTEN = re.compile(r"[\t\n\r -~·\u2010-\u2026\u3000-\u303f\u3041-\u30ff\u4e00-\u9fa5\uff01-\uff5e]")


def _common_share(text: str) -> float:
    return sum(char in _COMMON for char in text) / len(text)


def _share(pattern: re.Pattern[str]) -> Callable[[str], float]:
    return lambda text: sum(map(len, pattern.findall(text))) / len(text)


# Names that iconv and Python share. What share of the characters beyond ASCII is usual for text in the encoding, what
# share is too little for it; and how much of all characters, counted with ASCII, is at least beyond ASCII.
_CANDIDATES: tuple[tuple[str, Callable[[str], float], float, float, float], ...] = (
    ("GBK", _common_share, 0.3, 0.12, 0.0),
    ("BIG5", _common_share, 0.3, 0.12, 0.0),
    ("GB18030", _common_share, 0.3, 0.12, 0.0),
    ("SHIFT_JIS", _share(_KANA), 0.5, 0.25, 0.0),
    ("EUC-JP", _share(_KANA), 0.5, 0.25, 0.0),
    ("EUC-KR", _share(_HANGUL), 1.0, 0.8, 0.0),
    ("WINDOWS-1251", _share(_CYRILLIC), 0.95, 0.75, 0.3),
    ("KOI8-R", _share(_CYRILLIC), 0.95, 0.75, 0.3),
    ("WINDOWS-1252", _share(_WESTERN), 1.0, 0.9, 0.005),
)


def check_utf8(beginning: bytes, name: str) -> None:
    """Raise DataError where a file or a stream begins like something else than text in UTF-8.

    `beginning` is its first bytes, at most SAMPLE of them; it may end within a character. A few bytes that are no
    UTF-8, or a few zero bytes, are no reason: they are damage in a text.
    """
    shown = "FILE" if name.startswith("standard input") else quote(name)
    for magic, kind, hint in _MAGIC:
        if beginning.startswith(magic):
            raise DataError(f"{name}: expected text in UTF-8; got {kind}", hint.format(shown))
    encoding = other_encoding(beginning[:SAMPLE])
    if encoding == BINARY:
        raise DataError(f"{name}: expected text in UTF-8; got a binary file", "name a text file")
    if encoding:
        known = encoding if encoding != UNKNOWN else "ENCODING"
        what = f"text in {encoding}" if encoding != UNKNOWN else "text in an encoding that was not recognised"
        raise DataError(
            f"{name}: expected text in UTF-8; got {what}", f"convert it: iconv -f {known} -t UTF-8 {shown} > OUTPUT"
        )


BINARY, UNKNOWN = "binary", "unknown"


def other_encoding(data: bytes) -> str:
    """The encoding of bytes that are not UTF-8: its name for iconv, BINARY, or UNKNOWN; empty: they are UTF-8."""
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return encoding
    if 0 not in data and _is_utf8(data):
        return ""
    if wide := _wide_encoding(data):
        return wide
    # What is no UTF-8 comes out as surrogates, one for each byte.
    text = data.decode("utf-8", "surrogateescape")
    foreign = sum("\udc80" <= char <= "\udcff" for char in text[:-3]) + sum(
        "\udc80" <= char <= "\udcff" for char in text[-3:] if not _is_cut(data)
    )
    zeros = data.count(0)
    if zeros > len(data) / 2 or (zeros and foreign and zeros + foreign > DAMAGED_SHARE * len(data)):
        return BINARY
    valid = sum(not char.isascii() and not "\udc80" <= char <= "\udcff" for char in text)
    if foreign < 2 or foreign <= valid:
        return ""
    return _legacy_encoding(data) or (UNKNOWN if foreign > max(7, FOREIGN_SHARE * len(data), 2 * valid) else "")


def _is_cut(data: bytes) -> bool:
    """Whether the bytes end within a character of UTF-8, as a sample of a longer text may."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data[-4:].lstrip(bytes(range(0x80, 0xC0))))
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(data: bytes) -> str:
    """UTF-16 or UTF-32 without a byte order mark, told by where the zero bytes are, or else by common characters."""
    zeros = data.count(0)
    if 0.25 * len(data) <= zeros <= 0.8 * len(data) and len(data) >= 4:
        places = [data[start::4].count(0) for start in range(4)]
        most, quarter = max(places), len(data) / 4
        if places[0] > 0.9 * quarter and places[1] > 0.9 * quarter and zeros > 0.45 * len(data):
            return "UTF-32BE"
        if places[2] > 0.9 * quarter and places[3] > 0.9 * quarter and zeros > 0.45 * len(data):
            return "UTF-32LE"
        even, odd = places[0] + places[2], places[1] + places[3]
        if most and min(even, odd) < 0.05 * max(even, odd) + 1:
            return "UTF-16BE" if even > odd else "UTF-16LE"
    if len(data) < 8 or (len(data) % 2 and len(data) < SAMPLE):
        return ""
    for encoding in ("UTF-16LE", "UTF-16BE"):
        text = data[: len(data) & ~1].decode(encoding, "replace")
        if (
            _common_share(text) > 0.15 or (zeros > DAMAGED_SHARE * len(data) and _share(_WRITTEN)(text) > 0.95)
        ) and not _is_utf8(data):
            return encoding
    return ""


def _is_utf8(data: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data)
    except UnicodeDecodeError:
        return False
    return True


def _legacy_encoding(data: bytes) -> str:
    """The likeliest of the encodings that decode all of it, and whose usual characters it has."""
    best, best_fit = "", 0.0
    for encoding, share_of, usual, least, density in _CANDIDATES:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data)
        except UnicodeDecodeError:
            continue
        beyond = "".join(_NOT_ASCII.findall(text))
        is_dense = not density or len(beyond) > max(2, density * len(text))
        share = share_of(beyond) if is_dense else 0.0
        if share >= least and share / usual > best_fit:
            best, best_fit = encoding, share / usual
    return best


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


def mojibake(text: str) -> bool:
    """Whether a text was decoded by other rules than it was encoded by."""
    if text.isascii() or not _SUSPECT.search(text):
        return False
    if _MOJIBAKE.search(text) or len(set(_UTF_AS_GB.findall(text))) >= 2:
        return True
    found = _GB_AS_LATIN.search(text)
    return found is not None and len(set(found[0])) > 2
