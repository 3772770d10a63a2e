"""The token store: what goes in comes out, wherever its making was interrupted, and memory stays flat."""

import json
import os
import random
from contextlib import contextmanager
from itertools import chain
from typing import NamedTuple

import numpy as np
import pytest

from sixfold.config import DataConfig, TokenizerConfig
from sixfold.data import cleaned, workers
from sixfold.data import store as stores
from sixfold.data.array_log import ArrayLog
from sixfold.data.cleaned import CleanedCorpora, Digests
from sixfold.data.cleaning import CleaningReport
from sixfold.data.corpus import Corpus, read_corpus_lines
from sixfold.data.examples import ExampleSet
from sixfold.data.store import tokenize
from sixfold.errors import DataError
from sixfold.tasks.translation import TranslationTask
from sixfold.text.learn import train_tokenizer

LANGUAGES = ("zh", "en")


@pytest.fixture
def corpora(tmp_path):
    pick = random.Random(3)
    made = []
    for name, count in (("one", 700), ("two", 900)):
        pairs = [(f"我有{pick.randrange(400)}本书", f"I have {pick.randrange(400)} books") for _ in range(count)]
        pairs[5] = ("", "nothing")
        path = tmp_path / f"{name}.tsv"
        path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")
        made.append(Corpus(name, (path,)))
    return made


@pytest.fixture
def tokenizer(corpora):
    texts = chain.from_iterable(pair[1:] for corpus in corpora for pair in corpus.pairs())
    return train_tokenizer(texts, TokenizerConfig(vocab=330))


def clean(corpora, folder, config=None, advance=lambda _: None):
    config = config or DataConfig()
    return cleaned.clean(corpora, TranslationTask(LANGUAGES, config), config.dev_pairs, folder, advance)


def both(tokenizer):
    return {"source": tokenizer, "target": tokenizer}


def build(corpora, tokenizer, folder, advance=lambda _: None, excluded=frozenset()):
    kept = clean(corpora, folder, advance=advance)
    return kept, tokenize(kept, both(tokenizer), set(excluded), ("source",), 40, folder, advance)


@pytest.fixture
def short_parts(monkeypatch):
    for module in (cleaned, stores):
        monkeypatch.setattr(module, "ROWS_PER_COMMIT", 64)


def test_the_store_holds_the_tokens_of_what_was_kept(corpora, tokenizer, tmp_path):
    kept, store = build(corpora, tokenizer, tmp_path / "data")
    pairs = list(kept.records())
    assert len(store) == len(kept) == len(pairs) == kept.report.kept
    for row in (0, 3, 600, len(store) - 1):
        texts = {name: tokenizer.decode(column.take(np.array([row])).values) for name, column in store.columns.items()}
        assert texts == {"source": pairs[row].source, "target": pairs[row].target}
    examples = ExampleSet.of_store(store, (1, 1))
    assert examples.where(0) == "one.tsv:1"
    assert examples.where(len(store) - 1).startswith("two.tsv:")
    assert kept.report.dropped["empty"] == 2


@pytest.fixture
def several_processes(monkeypatch):
    monkeypatch.setattr(workers, "MIN_SHARED_BYTES", 0)
    monkeypatch.setattr(workers.os, "sched_getaffinity", lambda _: {0, 1, 2})


@pytest.mark.usefixtures("short_parts")
def test_several_processes_write_the_same_bytes_as_one(corpora, tokenizer, tmp_path, request):
    empty = tmp_path / "empty.tsv"
    empty.write_text("", encoding="utf-8")
    everything = [corpora[0], Corpus("none", (empty,)), corpora[1]]
    files = {}
    for folder in ("one", "several"):
        if folder == "several":
            request.getfixturevalue("several_processes")
        assert workers.processes_for(1) == (3 if folder == "several" else 1)
        kept, _ = build(everything, tokenizer, tmp_path / folder, excluded={"我有7本书"})
        paths = [path for path in (tmp_path / folder).rglob("*") if path.is_file()]
        files[folder] = {path.relative_to(tmp_path / folder): path.read_bytes() for path in paths}, dict(kept.sample)
    assert files["one"] == files["several"]
    assert len(files["one"][0]) > 8


class StopHere(Exception):  # noqa: N818
    pass


@pytest.mark.usefixtures("short_parts")
@pytest.mark.parametrize("processes", [1, 3])
def test_a_store_that_was_interrupted_anywhere_is_the_same_in_the_end(corpora, tokenizer, tmp_path, processes, request):
    _, whole = build(corpora, tokenizer, tmp_path / "whole")
    if processes > 1:
        request.getfixturevalue("several_processes")
    pick = random.Random(1)
    for _ in range(200):
        left = pick.randrange(1, 900)

        def advance(_, left=[left]):  # noqa: B006
            left[0] -= 1
            if not left[0]:
                raise StopHere

        try:
            _, pieced = build(corpora, tokenizer, tmp_path / "pieced", advance)
            break
        except StopHere:
            continue
    for name, column in whole.columns.items():
        assert np.array_equal(column.ids, pieced.columns[name].ids), name
        assert np.array_equal(column.ends, pieced.columns[name].ends), name
    assert np.array_equal(whole.lines, pieced.lines)
    assert whole.corpus_ends == pieced.corpus_ends


def test_what_is_made_once_is_not_made_again(corpora, tokenizer, tmp_path):
    build(corpora, tokenizer, tmp_path / "data")

    def advance(_):
        raise AssertionError("read again")

    build(corpora, tokenizer, tmp_path / "data", advance)


def test_another_text_or_rule_makes_another_store(corpora, tokenizer, tmp_path):
    first, _ = build(corpora, tokenizer, tmp_path / "data")
    with corpora[0].files[0].open("a", encoding="utf-8") as file:
        file.write("新的\tnew\n")
    second, _ = build(corpora, tokenizer, tmp_path / "data")
    assert len(second) == len(first) + 1
    third = clean(corpora, tmp_path / "data", DataConfig(skip=("duplicate",)))
    assert len(third) > len(second)


def test_dev_sentences_and_long_pairs_are_left_out(corpora, tokenizer, tmp_path):
    kept, store = build(corpora, tokenizer, tmp_path / "data", excluded={next(corpora[0].pairs()).source})
    same = sum(pair.source == next(corpora[0].pairs()).source for pair in kept.records())
    assert len(store) == len(kept) - same
    short = tokenize(kept, both(tokenizer), set(), (), 5, tmp_path / "data", lambda _: None)
    assert short.too_long + len(short) == len(kept)
    assert short.too_long > 0


def test_a_corpus_without_a_kept_pair_takes_no_room(corpora, tokenizer, tmp_path):
    empty = tmp_path / "empty.tsv"
    empty.write_text("", encoding="utf-8")
    everything = [Corpus("none", (empty,)), corpora[0], Corpus("none", (empty,)), corpora[1]]
    kept, store = build(everything, tokenizer, tmp_path / "data")
    assert store.corpus_ends == [0, kept.ends[1], kept.ends[1], len(kept)]
    assert ExampleSet.of_store(store, (1, 1)).where(0) == "one.tsv:1"


def test_an_array_log_forgets_what_was_not_committed(tmp_path):
    with ArrayLog(tmp_path / "l", {"a": np.int32}) as log:
        log.append("a", np.array([1, 2]))
        log.commit({"note": 1})
        log.append("a", np.array([3]))
    with ArrayLog(tmp_path / "l", {"a": np.int32}) as log:
        assert log.notes == {"note": 1}
        log.append("a", np.array([4]))
        log.commit({}, done=True)
    assert ArrayLog(tmp_path / "l", {"a": np.int32}).read("a").tolist() == [1, 2, 4]


def test_a_damaged_array_log_says_what_to_delete(tmp_path):
    with ArrayLog(tmp_path / "l", {"a": np.int32}) as log:
        log.append("a", np.array([1, 2]))
        log.commit({}, done=True)
    (tmp_path / "l" / "a.bin").write_bytes(b"123")
    with pytest.raises(DataError, match=r"a\.bin: missing or cut short"):
        ArrayLog(tmp_path / "l", {"a": np.int32}).read("a")
    (tmp_path / "l" / "ledger.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        ArrayLog(tmp_path / "l", {"a": np.int32})


@pytest.mark.usefixtures("short_parts")
def test_cleaning_makes_the_digests_and_a_sample_while_it_reads(corpora, tmp_path, monkeypatch):
    expected = [corpus.digest() for corpus in corpora]
    monkeypatch.setattr(Corpus, "digest", lambda self: pytest.fail("it is read for its digest alone"))
    kept = clean(corpora, tmp_path / "data", DataConfig(dev_pairs=30))
    assert [Digests(tmp_path / "data").of(corpus) for corpus in corpora] == expected
    parts = [range(kept.ends[0]), range(kept.ends[0], len(kept))]
    numbers = kept.smallest_hashes(parts, 30)
    pairs = list(kept.records())
    assert len(set(numbers)) == 30
    assert max(kept.hashes[numbers]) == sorted(kept.hashes)[29]
    monkeypatch.setattr(CleanedCorpora, "records", lambda *_: pytest.fail("it is read once more"))
    assert kept.records_at(numbers) == [pairs[number] for number in numbers]
    assert kept.records_at(kept.smallest_hashes(parts[1:], 30))[0] in pairs[kept.ends[0] :]


@contextmanager
def stopped_after(count, monkeypatch):
    """What is done inside ends after so many commits of an array log."""
    honest, calls = ArrayLog.commit, []

    def commit(self, *arguments, **named):
        honest(self, *arguments, **named)
        calls.append(1)
        if len(calls) == count:
            raise StopHere

    with monkeypatch.context() as patch:
        patch.setattr(ArrayLog, "commit", commit)
        with pytest.raises(StopHere):
            yield


@pytest.mark.usefixtures("short_parts")
def test_a_sample_is_the_same_where_cleaning_was_interrupted(corpora, tmp_path, monkeypatch):

    def sample(folder):
        kept = clean(corpora, folder, DataConfig(dev_pairs=30))
        return kept.key, kept.records_at(kept.smallest_hashes([range(len(kept))], 30))

    with stopped_after(15, monkeypatch):
        sample(tmp_path / "killed")
    assert sample(tmp_path / "killed") == sample(tmp_path / "whole")
    assert sample(tmp_path / "killed") == sample(tmp_path / "whole"), "nor where it had ended before"
    names = [[path.name for path in (tmp_path / each).iterdir()] for each in ("killed", "whole")]
    assert sorted(names[0]) == sorted(names[1])


def test_the_same_text_under_another_time_of_change_is_cleaned_to_the_same_place(corpora, tmp_path):
    first = clean(corpora, tmp_path / "data")
    os.utime(corpora[0].files[0], (1, 1))
    again = clean(corpora, tmp_path / "data")
    assert again.key == first.key
    assert np.array_equal(again.lines, first.lines)
    assert len(list((tmp_path / "data").glob("clean-*"))) == 1


@pytest.mark.usefixtures("short_parts")
def test_an_interrupted_cleaning_is_not_taken_for_a_complete_one(corpora, tmp_path, monkeypatch):
    other = DataConfig(max_ratio=3.5)
    expected = clean(corpora, tmp_path / "whole", other)
    clean(corpora, tmp_path / "data")  # so that the digests are known
    with stopped_after(3, monkeypatch):
        clean(corpora, tmp_path / "data", other)
    os.utime(corpora[0].files[0], (1, 1))  # so that they are not
    kept = clean(corpora, tmp_path / "data", other)
    assert np.array_equal(kept.lines, expected.lines)
    assert kept.ends == expected.ends


def test_a_store_of_the_first_format_whose_sources_end_in_eos_reads_the_same(corpora, tokenizer, tmp_path):
    _, store = build(corpora, tokenizer, tmp_path / "new")
    build(corpora, tokenizer, tmp_path / "old")
    folder = tmp_path / "old" / f"tokens-{store.key}"
    log = json.loads((folder / "ledger.json").read_text())
    source, eos = store.columns["source"], tokenizer.specials["eos"]
    old_ids = np.insert(np.array(source.ids), source.ends, eos)
    old_ids.tofile(folder / "source.bin")
    (np.array(source.ends) + np.arange(1, len(store) + 1)).tofile(folder / "source_end.bin")
    log["lengths"]["source"] = len(old_ids)
    del log["notes"]["format"]
    (folder / "ledger.json").write_text(json.dumps(log))
    _, old = build(corpora, tokenizer, tmp_path / "old")
    rows = np.array([7, 0, 600])
    assert np.array_equal(old.columns["source"].lengths(), store.columns["source"].lengths())
    for name in ("source", "target"):
        for new_array, old_array in zip(store.columns[name].take(rows), old.columns[name].take(rows), strict=True):
            assert np.array_equal(new_array, old_array)


def test_a_store_may_have_one_column_or_three(tmp_path, tokenizer):
    class Words(NamedTuple):
        line: int
        first: str
        second: str
        third: str

    class Reader:
        columns = ("first", "second", "third")
        cleaning_key = ("words",)

        def read(self, corpus, advance=None, fingerprint=None):
            for number, line in enumerate(read_corpus_lines(corpus.files[0], advance, fingerprint), start=1):
                yield Words(number, *line.split())

        def cleaner(self, _seen):
            return AnyRecord()

    path = tmp_path / "words.txt"
    path.write_text("one two three\nbooks have I\n", encoding="utf-8")
    kept = cleaned.clean([Corpus("words", (path,))], Reader(), 0, tmp_path / "data", lambda _: None)
    store = tokenize(
        kept, dict.fromkeys(Reader.columns, tokenizer), {"two"}, ("second",), 40, tmp_path / "data", lambda _: None
    )
    texts = {name: tokenizer.decode(column.take(np.array([0])).values) for name, column in store.columns.items()}
    assert texts == {"first": "books", "second": "have", "third": "I"}
    assert store.lines.tolist() == [2]


class AnyRecord:
    """Keeps everything."""

    def __init__(self):
        self.report = CleaningReport()

    def apply_filters(self, records):
        return np.arange(len(records), dtype=np.uint64)

    def select(self, _corpus, records, hashes):
        return records, hashes
