"""Text that is not UTF-8, and files that are not text, are recognised from their first bytes."""

import random

import pytest

from sixfold.errors import DataError
from sixfold.text.encodings import BINARY, SAMPLE_BYTES, UNKNOWN, check_utf8, other_encoding, read_lines

ENGLISH = "The café’s owner said that it would open again on Monday.\nNobody knew why it had closed.\n"
CHINESE = "机器学习是一门很有意思的学问。\n我们昨天在图书馆里看了一整天的书，回家的时候已经很晚了。\n"
TRADITIONAL = "機器學習是一門很有意思的學問。\n我們昨天在圖書館裡看了一整天的書，回家的時候已經很晚了。\n"
JAPANESE = "機械学習はとても面白いです。\n昨日は図書館で一日中本を読んでいました。\n"
KOREAN = "기계 학습은 재미있다.\n오늘은 날씨가 아주 좋습니다.\n"
RUSSIAN = "Машинное обучение очень интересно.\nСегодня хорошая погода.\n"
GERMAN = "Der Künstler malt die Bäume, über die schöne Brücke läuft ein größerer Hund.\n"


@pytest.mark.parametrize(
    ("text", "encoding", "name"),
    [
        (CHINESE, "gbk", "GBK"),
        (CHINESE + "𠀀\n", "gb18030", "GB18030"),
        (TRADITIONAL, "big5", "BIG5"),
        *[(text, "utf-16", "UTF-16") for text in (CHINESE, ENGLISH)],
        *[(text, "utf-16-le", "UTF-16LE") for text in (CHINESE, ENGLISH)],
        *[(text, "utf-16-be", "UTF-16BE") for text in (CHINESE, ENGLISH)],
        *[(text, "utf-32", "UTF-32") for text in (CHINESE, ENGLISH)],
        *[(text, "utf-32-le", "UTF-32LE") for text in (CHINESE, ENGLISH)],
        (ENGLISH, "utf-32-be", "UTF-32BE"),
        (JAPANESE, "shift_jis", "SHIFT_JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        (KOREAN, "euc_kr", "EUC-KR"),
        (RUSSIAN, "cp1251", "WINDOWS-1251"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (GERMAN, "cp1252", "WINDOWS-1252"),
        ("你好", "gbk", "GBK"),
        ("你好", "big5", "BIG5"),
    ],
)
def test_an_encoding_is_named_whole_or_cut_anywhere(text, encoding, name):
    data = text.encode(encoding)
    assert other_encoding(data) == name
    for end in range(max(len(data) - 5, 4), len(data)):
        assert other_encoding(data[:end])


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, TRADITIONAL, JAPANESE, KOREAN, RUSSIAN, GERMAN, "", "é", "😀" * 9])
def test_utf8_is_utf8_wherever_it_is_cut(text):
    data = text.encode()
    for end in range(len(data) + 1):
        assert other_encoding(data[:end]) == "", data[:end]
    assert other_encoding(b"\xef\xbb\xbf" + data) == ""


@pytest.mark.parametrize(
    "data",
    [
        CHINESE.encode() + b"\xff\xfe\x80",
        ENGLISH.encode() + b"\xe9",
        ENGLISH.encode() * 40 + b"caf\xe9 \x93so\x94",
        CHINESE.encode() + b"1\x002\x00",
        ENGLISH.encode() * 40 + b"1\x002 caf\xe9 and more",
        b"\xff" + CHINESE.encode() * 40 + b"\x00",
        b"a" * 999 + b"\x00\xff\n",
    ],
)
def test_a_few_damaged_bytes_do_not_make_another_encoding(data):
    assert other_encoding(data) == ""


def test_bytes_that_are_no_text_are_binary_or_unknown():
    noise = random.Random(1).randbytes(4096)
    assert other_encoding(noise) == BINARY
    assert other_encoding(noise.replace(b"\0", b"\xff")) == UNKNOWN
    assert other_encoding(bytes(4096)) == BINARY


@pytest.mark.parametrize(
    ("beginning", "words", "hint"),
    [
        (b"\x7fELF\x02\x01", "an ELF program", "choose a text file"),
        (b"PK\x03\x04abc", "a ZIP archive", "unpack"),
        (b"%PDF-1.7", "a PDF document", "pdftotext 'my file' -"),
        (b"\x89PNG\r\n\x1a\n", "a PNG picture", "choose a text file"),
        (b"\x1f\x8b\x08", "a file compressed with gzip", "gzip -dc 'my file'"),
        (CHINESE.encode("gbk"), "text in GBK", "iconv -f GBK -t UTF-8 'my file' > "),
        (ENGLISH.encode("utf-16"), "text in UTF-16", "iconv -f UTF-16 -t UTF-8"),
    ],
)
def test_the_error_names_the_kind_of_file_and_the_fix(beginning, words, hint):
    with pytest.raises(DataError, match=f"my file: expected text in UTF-8; got {words}") as caught:
        check_utf8(beginning, "my file")
    assert hint in caught.value.hint


def test_lines_of_a_file_in_another_encoding_are_not_read(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes((CHINESE * (SAMPLE_BYTES // 50)).encode("gbk"))
    with pytest.raises(DataError, match="got text in GBK"):
        next(read_lines(path))
    path.write_text(CHINESE * (SAMPLE_BYTES // 50), encoding="utf-8")
    assert sum(1 for _ in read_lines(path)) == 2 * (SAMPLE_BYTES // 50)
