"""UTF-8 text files as lines, and what bytes that are not UTF-8 are: another encoding, an archive, a picture, …"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote

from sixfold.errors import DataError
from sixfold.text.languages import letters

Progress = Callable[[int], None]

SAMPLE_BYTES = 1 << 16  # read from the beginning of a file to recognise its encoding
FOREIGN_SHARE = 0.3  # a file with a larger share of invalid bytes is refused even if no encoding is recognised
DAMAGED_SHARE = 0.01  # a larger share of zero or invalid bytes means a binary file, a smaller one damaged text

# The first bytes of other kinds of files, and how to get text out of them; {} is the name of the file.
_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"\x1f\x8b", "a file compressed with gzip", "decompress it first: gzip -dc {}"),
    (b"\xfd7zXZ", "a file compressed with xz", "decompress it first: xz -dc {}"),
    (b"\x28\xb5\x2f\xfd", "a file compressed with zstd", "decompress it first: zstd -dc {}"),
    (b"BZh", "a file compressed with bzip2", "decompress it first: bzip2 -dc {}"),
    (b"PK\x03\x04", "a ZIP archive", "unpack it first, or give an office document or a book its suffix, such as .docx"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first"),
    (b"%PDF-", "a PDF document", "extract its text first: pdftotext {} -"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document", "save it as .docx or as text"),
    (b"{\\rtf", "an RTF document", "save it as .docx or as text"),
    (b"\x7fELF", "an ELF program", "choose a text file"),
    (b"\x89PNG\r\n\x1a\n", "a PNG picture", "choose a text file"),
    (b"\xff\xd8\xff", "a JPEG picture", "choose a text file"),
    (b"GIF8", "a GIF picture", "choose a text file"),
    (b"SQLite format 3\0", "an SQLite database", "export its text first"),
)
_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
# The most frequent Chinese characters, simplified and traditional: about a third of the characters of any text.
_COMMON_CHINESE = frozenset(
    "的一是不了在人有我他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发"
    "成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话"
    "這來國個說們為時後過學對裡麼沒於還發當開無經頭見長動兩樣現進與實點種聲話機電業問題間體關請"
)
_KANA, _HANGUL, _CYRILLIC = re.compile("[ぁ-ゖァ-ヺー]"), letters("Hangul"), re.compile("[а-яё]")
_WESTERN = re.compile("[À-ÖØ-öø-ÿœŒŠšŽž‘’“”–—…«»¿¡°§€£ªº]")
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_ASCII_OR_CJK = re.compile(r"[\t\n\r -~·\u2010-\u2026\u3000-\u303f\u3041-\u30ff\u4e00-\u9fa5\uff01-\uff5e]")


def _common_chinese_share(text: str) -> float:
    return sum(char in _COMMON_CHINESE for char in text) / len(text)


def _share(pattern: re.Pattern[str]) -> Callable[[str], float]:
    """Return a function that computes the share of the characters of a text that match a pattern."""
    return lambda text: sum(map(len, pattern.findall(text))) / len(text)


# For each encoding: its name in both iconv and Python, a function that computes the share of typical characters among
# the characters beyond ASCII, the usual share, the lowest accepted share, and the lowest accepted share of characters
# beyond ASCII in the whole text.
_CANDIDATES: tuple[tuple[str, Callable[[str], float], float, float, float], ...] = (
    ("GBK", _common_chinese_share, 0.3, 0.12, 0.0),
    ("BIG5", _common_chinese_share, 0.3, 0.12, 0.0),
    ("GB18030", _common_chinese_share, 0.3, 0.12, 0.0),
    ("SHIFT_JIS", _share(_KANA), 0.5, 0.25, 0.0),
    ("EUC-JP", _share(_KANA), 0.5, 0.25, 0.0),
    ("EUC-KR", _share(_HANGUL), 1.0, 0.8, 0.0),
    ("WINDOWS-1251", _share(_CYRILLIC), 0.95, 0.75, 0.3),
    ("KOI8-R", _share(_CYRILLIC), 0.95, 0.75, 0.3),
    ("WINDOWS-1252", _share(_WESTERN), 1.0, 0.9, 0.005),
)


def check_utf8(beginning: bytes, name: str) -> None:
    """Raise DataError if the beginning of a file or a stream is not text in UTF-8.

    `beginning` holds its first bytes, at most SAMPLE_BYTES, and may end within a character. A few invalid bytes or a
    few zero bytes are accepted as damage in a text.
    """
    quoted_name = "FILE" if name.startswith("standard input") else quote(name)
    for magic, kind, hint in _MAGIC:
        if beginning.startswith(magic):
            raise DataError(f"{name}: expected text in UTF-8; got {kind}", hint.format(quoted_name))
    encoding = other_encoding(beginning[:SAMPLE_BYTES])
    if encoding == BINARY:
        raise DataError(f"{name}: expected text in UTF-8; got a binary file", "choose a text file")
    if encoding:
        iconv_name = encoding if encoding != UNKNOWN else "ENCODING"
        kind = f"text in {encoding}" if encoding != UNKNOWN else "text in an encoding that was not recognised"
        raise DataError(
            f"{name}: expected text in UTF-8; got {kind}",
            f"convert it: iconv -f {iconv_name} -t UTF-8 {quoted_name} > OUTPUT",
        )


BINARY, UNKNOWN = "binary", "unknown"


def other_encoding(data: bytes) -> str:
    """Return the encoding of bytes that are not UTF-8: its name for iconv, BINARY or UNKNOWN; "" if they are UTF-8."""
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return encoding
    if 0 not in data and _is_utf8(data):
        return ""
    if wide := _wide_encoding(data):
        return wide
    # Each invalid byte is decoded to one surrogate.
    text = data.decode("utf-8", "surrogateescape")
    invalid = sum("\udc80" <= char <= "\udcff" for char in text[:-3]) + sum(
        "\udc80" <= char <= "\udcff" for char in text[-3:] if not _is_cut(data)
    )
    zeros = data.count(0)
    if zeros > len(data) / 2 or (zeros and invalid and zeros + invalid > DAMAGED_SHARE * len(data)):
        return BINARY
    valid = sum(not char.isascii() and not "\udc80" <= char <= "\udcff" for char in text)
    if invalid < 2 or invalid <= valid:
        return ""
    return _legacy_encoding(data) or (UNKNOWN if invalid > max(7, FOREIGN_SHARE * len(data), 2 * valid) else "")


def _is_cut(data: bytes) -> bool:
    """Return whether the bytes end within a UTF-8 character, as a sample of a longer text may."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(data[-4:].lstrip(bytes(range(0x80, 0xC0))))
    except UnicodeDecodeError:
        return False
    return True


def _wide_encoding(data: bytes) -> str:
    """Return UTF-16 or UTF-32 for text without a byte order mark, or "".

    The positions of the zero bytes decide, or else the share of common characters.
    """
    zeros = data.count(0)
    if 0.25 * len(data) <= zeros <= 0.8 * len(data) and len(data) >= 4:
        zeros_at = [data[start::4].count(0) for start in range(4)]  # by the position of a byte in groups of four
        quarter = len(data) / 4
        if zeros_at[0] > 0.9 * quarter and zeros_at[1] > 0.9 * quarter and zeros > 0.45 * len(data):
            return "UTF-32BE"
        if zeros_at[2] > 0.9 * quarter and zeros_at[3] > 0.9 * quarter and zeros > 0.45 * len(data):
            return "UTF-32LE"
        even, odd = zeros_at[0] + zeros_at[2], zeros_at[1] + zeros_at[3]
        if zeros and min(even, odd) < 0.05 * max(even, odd) + 1:
            return "UTF-16BE" if even > odd else "UTF-16LE"
    if len(data) < 8 or (len(data) % 2 and len(data) < SAMPLE_BYTES):
        return ""
    for encoding in ("UTF-16LE", "UTF-16BE"):
        text = data[: len(data) & ~1].decode(encoding, "replace")
        if (
            _common_chinese_share(text) > 0.15
            or (zeros > DAMAGED_SHARE * len(data) and _share(_ASCII_OR_CJK)(text) > 0.95)
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
    """Return the likeliest encoding that decodes all bytes to enough characters that are typical of it, or ""."""
    best, best_fit = "", 0.0
    for encoding, typical_share, usual, lowest, density in _CANDIDATES:
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(data)
        except UnicodeDecodeError:
            continue
        beyond_ascii = "".join(_NOT_ASCII.findall(text))
        is_dense = not density or len(beyond_ascii) > max(2, density * len(text))
        share = typical_share(beyond_ascii) if is_dense else 0.0
        if share >= lowest and share / usual > best_fit:
            best, best_fit = encoding, share / usual
    return best


# The characters of Latin-1 and Windows-1252 for the bytes 80 to BF, the continuation bytes of UTF-8.
_CONTINUATION = "[\x80-\xbf" + bytes(set(range(0x80, 0xA0)) - {0x81, 0x8D, 0x8F, 0x90, 0x9D}).decode("cp1252") + "]"
# A single such sequence may be correct French (é, a no-break space and »), so all but the most frequent ones must
# occur twice.
_MOJIBAKE = re.compile(
    rf"[ÂÃ]{_CONTINUATION}"  # é as Ã©, £ as Â£; also if it happened twice
    rf"|â[\x80€]{_CONTINUATION}"  # quotes and dashes
    rf"|(?:[\xc4-\xdf]{_CONTINUATION}){{2}}"  # Cyrillic, Greek, Arabic, Hebrew
    rf"|(?:[\xe0-\xef]{_CONTINUATION}{{2}}){{2}}"  # Chinese, Japanese, Korean, scripts of India
    rf"|[\xf0-\xf4]{_CONTINUATION}{{3}}"  # emoji
    "|锟斤拷|烫烫烫|屯屯屯"  # replacement characters or uninitialised memory, read as GBK
)
# GB 2312 read as Latin-1: common characters begin with bytes B0 to D7, which no Latin word has in this order.
_GB_AS_LATIN1 = re.compile("(?:[\xb0-\xd7][\xa1-\xfe]){2,}")
# UTF-8 read as GBK: the rare characters that frequent characters and stops become. Two of them are enough.
_RARE_CHINESE = "锛銆鈥鐨鏄鍦涓浜鍙鏈璇浠绗鑰鍜"
_UTF8_AS_GBK = re.compile(f"[{_RARE_CHINESE}]")
_SUSPECT = re.compile(f"[\x80-\xff锟烫屯{_RARE_CHINESE}]")  # every match of the patterns above has one of these


def is_mojibake(text: str) -> bool:
    """Return whether a text was decoded with another encoding than it was encoded with."""
    if text.isascii() or not _SUSPECT.search(text):
        return False
    if _MOJIBAKE.search(text) or len(set(_UTF8_AS_GBK.findall(text))) >= 2:
        return True
    match = _GB_AS_LATIN1.search(text)
    return match is not None and len(set(match[0])) > 2


def read_lines(path: Path, advance: Progress | None = None) -> Iterator[str]:
    """Yield the lines of a UTF-8 file without their line ends; bytes that are not UTF-8 are a DataError.

    `advance` is called with the number of bytes of each line, for a progress bar.
    """
    try:
        with path.open("rb") as file:
            check_utf8(file.peek(SAMPLE_BYTES), str(path))
            for number, raw in enumerate(file, start=1):
                if advance is not None:
                    advance(len(raw))
                yield decode_line(raw, f"{path}:{number}").rstrip("\r\n")
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def decode_line(raw: bytes, where: str) -> str:
    """Decode UTF-8; raise DataError with `where` and the column of the first byte that is not UTF-8."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{where}: expected UTF-8; got byte 0x{raw[error.start]:02x} at column {error.start + 1}",
            "convert the file, for example: iconv -f GB18030 -t UTF-8",
        ) from None
