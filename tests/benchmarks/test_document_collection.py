"""The collector of real documents finds their languages and takes them from all packages."""

import gzip
import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its modules hide nothing

from collect_documents import (
    FETCHERS,
    KINDS,
    Candidate,
    candidates_in,
    document_language,
    kind_of,
    path_language,
    read_packages,
    select,
    text_language,
)


@pytest.mark.parametrize(
    ("path", "kind", "language"),
    [
        ("a/locale/zh_CN/LC_MESSAGES/a.po", "po", "zh"),
        ("i18n/zh-Hans.json", "json", "zh"),
        ("locales/en-US/strings.json", "json", "en"),
        ("package.json", None, None),
        ("locales/package.json", None, None),
        ("config/locales/fr.yml", "yaml", "fr"),
        ("usr/share/man/man1/ls.1", "man", None),
        ("usr/share/man/zh_CN/man1/ls.1", "man", "zh"),
        ("usr/share/man/de/man1/ls.1", None, "de"),
        ("docs/README.zh-CN.md", "markdown", "zh"),
        ("a/validators.en.xlf", "xliff", "en"),
        ("a/b.odp", "odf", None),
        ("lib/a.py", None, None),
    ],
)
def test_kinds_and_languages_follow_from_paths(path, kind, language):
    assert kind_of(path) == kind
    assert path_language(path) == language


def test_languages_follow_from_texts():
    assert text_language("This is the text that you have to read and it is for all of you. " * 9) == "en"
    assert text_language("这是你要读的文字，共有两句。") == "zh"
    assert text_language("Dies ist der Text, den alle lesen sollen. " * 9) is None
    assert text_language("これは読むべき文章です。漢字もたくさん含まれています。") is None
    assert text_language("one two") is None


def test_a_catalogue_for_a_third_language_is_not_collected():
    messages = "".join(f'msgid "This is message {number}."\nmsgstr ""\n\n' for number in range(30))
    for code, language in (("de", None), ("zh_TW", "en"), ("en_GB", "en"), ("", "en")):
        header = f'msgid ""\nmsgstr ""\n"Language: {code}\\n"\n\n'
        assert document_language("po", "messages.po", (header + messages).encode()) == language
        done = 'msgid "A color."\nmsgstr "A colour."\n'
        expected = None if code == "en_GB" else language
        assert document_language("po", "messages.po", (header + messages + done).encode()) == expected
    xliff = b'<xliff><file target-language="fr"><source>' + b"This is what you have. " * 9 + b"</source></file></xliff>"
    assert document_language("xliff", "a.xlf", xliff) is None
    assert document_language("xliff", "a.xlf", xliff.replace(b'"fr"', b'"zh-CN"')) == "en"


def test_documents_are_taken_from_all_packages_in_turn_and_once_each():
    chance = random.Random(1)

    def candidate(kind, package, number, language="en"):
        return Candidate(kind, "pypi", package, "1", f"{package}/{number}", language, f"{chance.getrandbits(256):064x}")

    large = [candidate("rst", "large", number) for number in range(200)]
    small = [candidate("rst", f"small{number}", number) for number in range(10)]
    chinese = [candidate("rst", "chinese", number, "zh") for number in range(9)]
    candidates = [*large, *small, *chinese]
    copies = [Candidate(each.kind, "npm", "copy", "1", each.path, each.language, each.sha256) for each in small]
    chosen = select([*candidates, *copies])
    counts = {
        package: sum(each.package == package for each in chosen) for package in ("large", "chinese", "small3", "copy")
    }
    assert counts == {"large": KINDS["rst"].cap, "chinese": KINDS["rst"].cap, "small3": 0, "copy": KINDS["rst"].cap}
    assert len({each.sha256 for each in chosen}) == len(chosen)
    chance.shuffle(candidates)
    assert select([*copies, *candidates]) == chosen
    many = [candidate("rst", f"package{number}", number) for number in range(99)]
    assert len(select(many)) == KINDS["rst"].count


def test_documents_of_an_unpacked_package_are_found(tmp_path):
    text = "This is the page of a command that you have for all of it. " * 5
    for name, content in {
        "docs/a.rst": text, "docs/b.rst": "short", "docs/c.rst": "Dies ist der Text. " * 20, "docs/d.md": text * 9000,
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8")
    page = tmp_path / "usr/share/man/man1/a.1.gz"
    page.parent.mkdir(parents=True)
    page.write_bytes(gzip.compress(f".TH A 1\n{text}".encode()))
    found = {each.path: each for each in candidates_in(tmp_path, "pypi", "a", "1")}
    assert list(found) == ["docs/a.rst", "usr/share/man/man1/a.1"]
    assert found["docs/a.rst"].data.decode() == text
    assert found["docs/a.rst"].name.endswith("-a.rst")


def test_the_table_of_packages_names_each_once_and_every_registry_is_known():
    rows = read_packages()
    assert len(rows) == len({(registry, package) for registry, package, _ in rows}) > 100
    assert {registry for registry, _, _ in rows} == FETCHERS.keys()
