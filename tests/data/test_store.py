"""The token store: what goes in comes out, wherever its making was interrupted, and memory stays flat."""

import os
import random
from contextlib import contextmanager
from itertools import chain

import numpy as np
import pytest

from sixfold.config import DataConfig, TokenizerConfig
from sixfold.data import store as stores
from sixfold.data.array_log import Ledger
from sixfold.data.corpus import Corpus
from sixfold.data.store import Digests, Kept, clean, tokenize
from sixfold.errors import DataError
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


def build(corpora, tokenizer, folder, advance=lambda _: None, left_out=frozenset()):
    kept = clean(corpora, LANGUAGES, DataConfig(), folder, advance)
    return kept, tokenize(kept, tokenizer, set(left_out), DataConfig(max_tokens=40), folder, advance)


def test_the_store_holds_the_tokens_of_what_was_kept(corpora, tokenizer, tmp_path):
    kept, store = build(corpora, tokenizer, tmp_path / "data")
    pairs = list(kept.pairs())
    assert len(store) == len(kept) == len(pairs) == kept.report.kept
    for row in (0, 3, 600, len(store) - 1):
        source, target, _, _ = store.gather(np.array([row]))
        assert tokenizer.decode(source[:-1]) == pairs[row].source
        assert source[-1] == tokenizer.specials["eos"]
        assert tokenizer.decode(target) == pairs[row].target
    assert store.where(0) == "one.tsv:1"
    assert store.where(len(store) - 1).startswith("two.tsv:")
    assert kept.report.dropped["empty"] == 2


class StopHere(Exception):  # noqa: N818
    pass


def test_a_store_that_was_interrupted_anywhere_is_the_same_in_the_end(corpora, tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "PART", 64)
    _, whole = build(corpora, tokenizer, tmp_path / "whole")
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
    for name in ("source", "target", "source_ends", "target_ends", "lines"):
        assert np.array_equal(getattr(whole, name), getattr(pieced, name)), name
    assert whole.ends == pieced.ends


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
    third = clean(corpora, LANGUAGES, DataConfig(skip=("duplicate",)), tmp_path / "data", lambda _: None)
    assert len(third) > len(second)


def test_dev_sentences_and_long_pairs_are_left_out(corpora, tokenizer, tmp_path):
    kept, store = build(corpora, tokenizer, tmp_path / "data", left_out={next(corpora[0].pairs()).source})
    same = sum(pair.source == next(corpora[0].pairs()).source for pair in kept.pairs())
    assert len(store) == len(kept) - same
    short = tokenize(kept, tokenizer, set(), DataConfig(max_tokens=5), tmp_path / "data", lambda _: None)
    assert short.too_long + len(short) == len(kept)
    assert short.too_long > 0


def test_a_corpus_without_a_kept_pair_takes_no_room(corpora, tokenizer, tmp_path):
    empty = tmp_path / "empty.tsv"
    empty.write_text("", encoding="utf-8")
    everything = [Corpus("none", (empty,)), corpora[0], Corpus("none", (empty,)), corpora[1]]
    kept, store = build(everything, tokenizer, tmp_path / "data")
    assert store.ends == [0, kept.ends[1], kept.ends[1], len(kept)]
    assert store.where(0) == "one.tsv:1"


def test_a_ledger_forgets_what_was_not_committed(tmp_path):
    with Ledger(tmp_path / "l", {"a": np.int32}) as ledger:
        ledger.append("a", np.array([1, 2]))
        ledger.commit({"note": 1})
        ledger.append("a", np.array([3]))
    with Ledger(tmp_path / "l", {"a": np.int32}) as ledger:
        assert ledger.notes == {"note": 1}
        ledger.append("a", np.array([4]))
        ledger.commit({}, done=True)
    assert Ledger(tmp_path / "l", {"a": np.int32}).read("a").tolist() == [1, 2, 4]


def test_a_damaged_ledger_says_what_to_delete(tmp_path):
    with Ledger(tmp_path / "l", {"a": np.int32}) as ledger:
        ledger.append("a", np.array([1, 2]))
        ledger.commit({}, done=True)
    (tmp_path / "l" / "a.bin").write_bytes(b"123")
    with pytest.raises(DataError, match=r"a\.bin: missing or cut short"):
        Ledger(tmp_path / "l", {"a": np.int32}).read("a")
    (tmp_path / "l" / "ledger.json").write_text("{")
    with pytest.raises(DataError, match="cannot be read"):
        Ledger(tmp_path / "l", {"a": np.int32})


def test_cleaning_makes_the_digests_and_a_sample_while_it_reads(corpora, tmp_path, monkeypatch):
    expected = [corpus.digest() for corpus in corpora]
    monkeypatch.setattr(stores, "PART", 64)
    monkeypatch.setattr(Corpus, "digest", lambda self: pytest.fail("it is read for its digest alone"))
    kept = clean(corpora, LANGUAGES, DataConfig(dev_pairs=30), tmp_path / "data", lambda _: None)
    assert [Digests(tmp_path / "data").of(corpus) for corpus in corpora] == expected
    parts = [range(kept.ends[0]), range(kept.ends[0], len(kept))]
    numbers = kept.smallest(parts, 30)
    pairs = list(kept.pairs())
    assert len(set(numbers)) == 30
    assert max(kept.hashes[numbers]) == sorted(kept.hashes)[29]
    monkeypatch.setattr(Kept, "pairs", lambda *_: pytest.fail("it is read once more"))
    assert kept.some(numbers) == [pairs[number] for number in numbers]
    assert kept.some(kept.smallest(parts[1:], 30))[0] in pairs[kept.ends[0] :]


@contextmanager
def stopped_after(count, monkeypatch):
    """What is done inside ends after so many commits of a ledger."""
    honest, calls = Ledger.commit, []

    def commit(self, *arguments, **named):
        honest(self, *arguments, **named)
        calls.append(1)
        if len(calls) == count:
            raise StopHere

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", commit)
        with pytest.raises(StopHere):
            yield


def test_a_sample_is_the_same_where_cleaning_was_interrupted(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "PART", 64)

    def sample(folder):
        kept = clean(corpora, LANGUAGES, DataConfig(dev_pairs=30), folder, lambda _: None)
        return kept.key, kept.some(kept.smallest([range(len(kept))], 30))

    with stopped_after(15, monkeypatch):
        sample(tmp_path / "killed")
    assert sample(tmp_path / "killed") == sample(tmp_path / "whole")
    assert sample(tmp_path / "killed") == sample(tmp_path / "whole"), "nor where it had ended before"
    names = [[path.name for path in (tmp_path / each).iterdir()] for each in ("killed", "whole")]
    assert sorted(names[0]) == sorted(names[1])


def test_the_same_text_under_another_time_of_change_is_cleaned_to_the_same_place(corpora, tmp_path):
    first = clean(corpora, LANGUAGES, DataConfig(), tmp_path / "data", lambda _: None)
    os.utime(corpora[0].files[0], (1, 1))
    again = clean(corpora, LANGUAGES, DataConfig(), tmp_path / "data", lambda _: None)
    assert again.key == first.key
    assert np.array_equal(again.lines, first.lines)
    assert len(list((tmp_path / "data").glob("clean-*"))) == 1


def test_an_interrupted_cleaning_is_not_taken_for_a_complete_one(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(stores, "PART", 64)
    other = DataConfig(max_ratio=3.5)
    expected = clean(corpora, LANGUAGES, other, tmp_path / "whole", lambda _: None)
    clean(corpora, LANGUAGES, DataConfig(), tmp_path / "data", lambda _: None)  # so that the digests are known
    with stopped_after(3, monkeypatch):
        clean(corpora, LANGUAGES, other, tmp_path / "data", lambda _: None)
    os.utime(corpora[0].files[0], (1, 1))  # so that they are not
    kept = clean(corpora, LANGUAGES, other, tmp_path / "data", lambda _: None)
    assert np.array_equal(kept.lines, expected.lines)
    assert kept.ends == expected.ends
