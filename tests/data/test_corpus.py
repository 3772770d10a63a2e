"""Pairs come out of every format alike, and every damage is one line that names the file."""

import gzip
import json
import lzma
import os
import sys

import pytest
import zstandard

from sixfold.data import corpus as module
from sixfold.data.corpus import Corpus, Fingerprint, Pair
from sixfold.errors import ConfigError, DataError
from sixfold.recipe import CorpusConfig

PAIRS = [("机器学习", "machine learning"), ("你好，世界", "hello, world"), ("猫", "cat")]
EXPECTED = [Pair(line, *pair) for line, pair in enumerate(PAIRS, start=1)]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstandard.compress}
CONTENTS = {
    "x.tsv": "".join(f"{zh}\t{en}\n" for zh, en in PAIRS),
    "x.txt": "".join(f"{zh}\t{en}\n" for zh, en in PAIRS),
    "x.jsonl": "".join(json.dumps({"source": zh, "target": en}) + "\n" for zh, en in PAIRS),
    "x.json": "".join(json.dumps({"id": 1, "zh": zh, "en": en}) + "\n" for zh, en in PAIRS),
    "y.jsonl": "".join(json.dumps({"translation": {"en": en, "zh": zh}}) + "\n" for zh, en in PAIRS),
}


def corpus_of(folder, *contents, names=("a.zh", "a.en"), **more):
    """A corpus of files with these contents."""
    for name, content in zip(names, contents, strict=False):
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return Corpus.from_config(CorpusConfig(tuple(names[: len(contents)]), **more), folder, ("zh", "en"))


def complaint(corpus):
    with pytest.raises(DataError) as caught:
        list(corpus.pairs())
    assert "\n" not in str(caught.value)
    return f"{caught.value} | {caught.value.hint}"


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize("name", CONTENTS)
def test_every_format_gives_the_same_pairs(name, packing, tmp_path):
    corpus = corpus_of(tmp_path, PACK[packing](CONTENTS[name].encode()), names=(name + packing,))
    assert list(corpus.pairs()) == EXPECTED
    assert corpus.name == name[0]
    assert corpus.where(2) == f"{name}{packing}:2"


@pytest.mark.parametrize("packing", PACK)
def test_two_files_of_lines_are_read_side_by_side(packing, tmp_path):
    sides = [PACK[packing]("".join(pair[side] + "\n" for pair in PAIRS).encode()) for side in (0, 1)]
    corpus = corpus_of(tmp_path, *sides, names=(f"train.zh{packing}", f"train.en{packing}"))
    assert list(corpus.pairs()) == EXPECTED
    assert (corpus.name, corpus.where(12)) == ("train", f"train.zh{packing}:12")


@pytest.mark.parametrize("packing", PACK)
def test_progress_adds_up_to_the_size_on_disk(packing, tmp_path):
    corpus = corpus_of(tmp_path, PACK[packing]("猫\tcat\n".encode() * 50_000), names=(f"x.tsv{packing}",))
    steps = []
    assert sum(1 for _ in corpus.pairs(steps.append)) == 50_000
    assert sum(steps) == corpus.size == (tmp_path / f"x.tsv{packing}").stat().st_size
    assert len(steps) > 10


def test_lines_end_at_line_feeds_only(tmp_path):
    odd = "a\u2028b\x0bc\x0cd\x85e\rf"
    corpus = corpus_of(tmp_path, f"{odd}\r\nzwei\r\n", "1\n2")
    assert list(corpus.pairs()) == [Pair(1, odd, "1"), Pair(2, "zwei", "2")]


def test_a_byte_order_mark_and_outer_space_are_dropped(tmp_path):
    corpus = corpus_of(tmp_path, b"\xef\xbb\xbf\xe7\x8c\xab\n\xe3\x80\x80x \n", b"  cat\t\n\xef\xbb\xbfy\n")
    assert list(corpus.pairs()) == [Pair(1, "猫", "cat"), Pair(2, "x", "\ufeffy")]


def test_bytes_that_are_not_utf8_become_replacement_characters(tmp_path):
    assert list(corpus_of(tmp_path, b"a \xff\xfe\n", b"x\n").pairs()) == [Pair(1, "a \ufffd\ufffd", "x")]


def test_json_holds_what_a_line_can_hold(tmp_path):
    record = '{"source": "a\\nb\\r\\nc", "target": "\\ud83d x \\ud83d\\ude00"}\n'
    corpus = corpus_of(tmp_path, record, names=("x.jsonl",))
    assert list(corpus.pairs()) == [Pair(1, "a b  c", "\ufffd x 😀")]


def test_columns_are_chosen_by_number_or_by_name(tmp_path):
    table = corpus_of(tmp_path, "1\ten\t\tzh\n", names=("x.tsv",), columns=("4", "2"))
    assert list(table.pairs()) == [Pair(1, "zh", "en")]
    records = corpus_of(tmp_path, '{"a": "1", "b": "2", "c": "3"}\n', names=("x.json",), columns=("c", "a"))
    assert list(records.pairs()) == [Pair(1, "3", "1")]


def test_an_empty_column_and_a_blank_line_are_empty_texts(tmp_path):
    assert list(corpus_of(tmp_path, "\tx\ny\t\n\n", names=("x.tsv",)).pairs()) == [
        Pair(1, "", "x"), Pair(2, "y", ""), Pair(3, "", ""),
    ]  # fmt: skip
    assert list(corpus_of(tmp_path, "\n", names=("x.jsonl",)).pairs()) == [Pair(1, "", "")]


@pytest.mark.parametrize("packing", PACK)
def test_an_empty_file_has_no_pairs(packing, tmp_path):
    assert list(corpus_of(tmp_path, PACK[packing](b""), names=(f"x.tsv{packing}",)).pairs()) == []
    assert list(corpus_of(tmp_path, b"", b"").pairs()) == []


@pytest.mark.parametrize("packing", [".gz", ".xz", ".zst"])
def test_packed_files_may_be_joined_and_padded(packing, tmp_path):
    packed = PACK[packing](b"a\tb\n") + bytes(8) + PACK[packing](b"c\td\n") + bytes(4)
    assert list(corpus_of(tmp_path, packed, names=(f"x.tsv{packing}",)).pairs()) == [
        Pair(1, "a", "b"),
        Pair(2, "c", "d"),
    ]


@pytest.mark.parametrize("packing", [".gz", ".xz", ".zst"])
@pytest.mark.parametrize("cut", [1, 100, 20_000])
def test_a_packed_file_that_is_cut_short_is_damaged(packing, cut, tmp_path):
    packed = PACK[packing](os.urandom(30_000).hex().encode() + b"\n")
    message = complaint(corpus_of(tmp_path, packed[:-cut], b"x\n", names=(f"a.zh{packing}", "a.en")))
    assert f"a.zh{packing}: damaged or not compressed: it ends too early | copy or download" in message


@pytest.mark.parametrize("packing", [".gz", ".xz", ".zst"])
def test_what_is_not_packed_says_so(packing, tmp_path):
    assert f"x.tsv{packing}: damaged" in complaint(corpus_of(tmp_path, b"plain\ttext\n", names=(f"x.tsv{packing}",)))


def test_a_file_packed_small_does_not_fill_the_memory(tmp_path):
    corpus = corpus_of(tmp_path, lzma.compress(b"x" * (40 * 2**20)), names=("x.tsv.xz",))
    assert "x.tsv.xz:1: expected lines of at most 16777216 bytes" in complaint(corpus)


def test_without_zstandard_its_name_is_the_hint(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert "not installed | pip install zstandard" in complaint(corpus_of(tmp_path, b"x", names=("x.tsv.zst",)))


def test_a_long_line_is_read_and_an_endless_one_is_not(tmp_path):
    assert len(next(corpus_of(tmp_path, "x" * 2**20 + "\n", "y\n").pairs()).source) == 2**20
    endless = corpus_of(tmp_path, b"fine\n" + b"x" * (module.MAX_LINE_BYTES + 1), b"a\nb\n")
    assert "a.zh:2: expected lines of at most 16777216 bytes" in complaint(endless)


@pytest.mark.parametrize(("first", "second", "shorter", "longer"), [(3, 7, "zh", "en"), (7, 3, "en", "zh")])
def test_sides_of_different_length_are_counted_to_the_end(first, second, shorter, longer, tmp_path):
    message = complaint(corpus_of(tmp_path, "x\n" * first, "y\n" * second))
    assert f"a.{shorter}: expected as many lines as" in message
    assert f"a.{longer} (7); got 3" in message
    assert "the translation of line n" in message


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.tsv", "a\tb\nonly one\n", "x.tsv:2: expected 2 columns or more; got 1 | columns are separated by tabs"),
        ("x.txt", "no tabs here\n", "x.txt:1: expected 2 columns or more; got 1"),
        ("x.jsonl", '{"source": "a"\n', "x.jsonl:1: not valid JSON"),
        ("x.jsonl", "[" * 100_000, "x.jsonl:1: not valid JSON"),
        ("x.jsonl", '["a", "b"]\n', "x.jsonl:1: expected a JSON object; got"),
        ("x.jsonl", '{"a": "b"}\n', "x.jsonl:1: expected two fields of text; got a | choose two"),
        ("x.jsonl", "{}", "got none"),
        ("x.jsonl", '{"zh": "a", "en": null}\n', "x.jsonl:1: en: expected a string; got null"),
        ("x.jsonl", '{"source": 1, "target": "b"}\n', "x.jsonl:1: source: expected a string; got 1"),
    ],
)
def test_a_line_that_holds_no_pair_is_named(name, content, words, tmp_path):
    assert words in complaint(corpus_of(tmp_path, content, names=(name,)))


def test_files_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "folder.tsv").mkdir()
    for name, words in [("none.tsv", "No such file"), ("folder.tsv", "a folder or a device")]:
        corpus = Corpus("x", (tmp_path / name,))
        assert f"{name}: " in complaint(corpus)
        for act in (corpus.digest, corpus.stamp, lambda corpus=corpus: corpus.size):
            with pytest.raises(DataError, match=words):
                act()


def test_a_read_that_fails_is_one_line(tmp_path, monkeypatch):
    corpus = corpus_of(tmp_path, "a\tb\n", names=("x.tsv",))

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    assert "x.tsv: Permission denied" in complaint(corpus)


def test_an_unknown_format_asks_for_both_files(tmp_path):
    with pytest.raises(DataError, match=r"x\.doc: expected one file of pairs to end in \.tsv, \.txt"):
        Corpus("x", (tmp_path / "x.doc",))


@pytest.mark.parametrize(
    ("files", "columns"), [(("x.tsv",), ("zh", "en")), (("x.tsv",), ("0", "1")), (("a.zh", "a.en"), ("1", "2"))]
)
def test_columns_must_fit_the_format(files, columns, tmp_path):
    with pytest.raises(ConfigError, match=r"corpus\.columns: expected"):
        Corpus.from_config(CorpusConfig(files, columns=columns), tmp_path)


def test_a_change_while_reading_is_noticed(tmp_path):
    corpus = corpus_of(tmp_path, "a\tb\nc\td\n", names=("x.tsv",))
    pairs = corpus.pairs()
    next(pairs)
    with (tmp_path / "x.tsv").open("ab") as file:
        file.write(b"e\tf\n")
    with pytest.raises(DataError, match=r"x\.tsv: changed while it was read"):
        list(pairs)


def test_the_digest_tells_files_and_their_order_apart(tmp_path):
    first = corpus_of(tmp_path, "a\nb\n", "c\n")
    before, stamp = first.digest(), first.stamp()
    assert before == Corpus("other", first.files, weight=2.0).digest()
    assert before != Corpus("x", first.files[::-1]).digest()
    assert before != corpus_of(tmp_path, "a\n", "b\nc\n").digest()
    assert stamp != first.stamp()
    assert json.loads(json.dumps(stamp)) == stamp


@pytest.mark.parametrize("packed", [False, True])
def test_a_digest_can_be_made_while_the_pairs_are_read(tmp_path, packed):
    texts = ["a\nb\nc" * 99, "d\ne\nf" * 99]
    files = [gzip.compress(text.encode()) if packed else text for text in texts]
    names = [f"x.{language}{'.gz' if packed else ''}" for language in ("zh", "en")]
    corpus = corpus_of(tmp_path, *files, names=names)
    fingerprint = Fingerprint()
    assert len(list(corpus.pairs(fingerprint=fingerprint))) == 199
    assert fingerprint.digest(corpus.files) == corpus.digest()


def test_one_file_for_both_sides_is_refused(tmp_path):
    (tmp_path / "x.de").write_text("eins\n")
    (tmp_path / "link.en").symlink_to(tmp_path / "x.de")
    for other in ("x.de", "./x.de", "link.en"):
        with pytest.raises(DataError, match=r"x\.de: expected a file of translations beside it; got the same file"):
            Corpus("x", (tmp_path / "x.de", tmp_path / other))


def test_the_configured_name_and_weight_are_kept(tmp_path):
    corpus = corpus_of(tmp_path, "a\tb\n", names=("news.2019.tsv",), name="news", weight=0.5)
    assert (corpus.name, corpus.weight, corpus.size) == ("news", 0.5, 4)


def test_a_reader_that_stops_early_closes_its_files(tmp_path):
    pairs = corpus_of(tmp_path, gzip.compress(b"a\tb\n" * 9), names=("x.tsv.gz",)).pairs()
    next(pairs)
    pairs.close()  # an open file would be a warning, and warnings are errors


def test_json_of_two_texts_needs_no_word_about_their_names(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1, "zh": "一", "en": "one"}\n{"en": "two", "zh": "二"}\n', encoding="utf-8")
    assert list(Corpus("x", (path,)).pairs()) == [Pair(1, "一", "one"), Pair(2, "二", "two")]
    path.write_text('{"translation": {"de": "eins", "en": "one"}}\n', encoding="utf-8")
    assert list(Corpus("x", (path,)).pairs()) == [Pair(1, "eins", "one")]


def test_a_table_of_three_columns_is_not_guessed_at(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("1\t一\tone\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"x\.tsv:1: expected two columns; got 3"):
        list(Corpus("x", (path,)).pairs())
    assert list(Corpus("x", (path,), columns=("2", "3")).pairs()) == [Pair(1, "一", "one")]


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs.jsonl.gz", "recipe.toml"])
def test_a_file_of_pairs_is_not_taken_for_one_of_lines(tmp_path, name):
    with pytest.raises(DataError, match=f"{name}: expected a file of lines beside another"):
        Corpus("x", (tmp_path / "a.zh", tmp_path / name))
