"""A store read both ways: every row is what its pair, its direction and its tags make it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_stores import LENGTHS, make_store

from sixfold.config import TokenizerConfig
from sixfold.data.corpus import Corpus
from sixfold.data.loader import Loader, Order
from sixfold.data.tokens import Part, both_ways, one_way
from sixfold.errors import ConfigError, RequestError
from sixfold.text.learn import train_tokenizer

TAGGED = train_tokenizer(["我爱猫。", "I love cats."] * 20, TokenizerConfig(vocab=320, tags=("zh", "en", "bt")))
PLAIN = train_tokenizer(["我爱猫。", "I love cats."] * 20, TokenizerConfig(vocab=320))
EOS = 2
FILES = (Path("a.zh"), Path("a.en"))


def texts(store, rows):
    source, target, *lengths = store.gather(np.array(rows))
    cut = [np.split(ids, np.cumsum(its)[:-1]) for ids, its in zip((source, target), lengths, strict=True)]
    return [(one.tolist(), other.tolist()) for one, other in zip(*cut, strict=True)]


PARTS = st.lists(st.builds(Part, st.integers(0, 1), st.booleans(), st.sampled_from([(), (7,), (8, 9)])), min_size=1)


@given(LENGTHS, PARTS, st.data())
def test_rows_of_any_parts_are_gathered_as_they_would_be_one_by_one(lengths, parts, data):
    cut = data.draw(st.integers(0, len(lengths)))
    plain = make_store(lengths, [cut, len(lengths)], [1.0, 3.0])
    store = replace(plain, readings=tuple(parts))
    expected = []
    for part in parts:
        for row in range(*((0, cut) if part.corpus == 0 else (cut, len(lengths)))):
            ((source, target),) = texts(plain, [row])
            there, back = (source[:-1], target), (target, source[:-1])
            source, target = back if part.back else there
            expected.append(([*part.tags, *source, EOS], target, int(plain.lines[row])))
    assert len(store) == len(expected)
    assert store.weights == [(1.0, 3.0)[part.corpus] for part in parts]
    rows = data.draw(st.permutations(range(len(expected))))
    assert not rows or texts(store, rows) == [expected[row][:2] for row in rows]
    source_lengths, target_lengths = store.lengths()
    assert source_lengths.tolist() == [len(source) for source, _, _ in expected]
    assert target_lengths.tolist() == [len(target) + 1 for _, target, _ in expected]
    for row in rows[:5]:
        assert store.where(row).endswith(f":{expected[row][2]}")


def store_of(*corpora):
    count = len(corpora)
    return replace(make_store([(3, 4)] * count, list(range(1, count + 1))), corpora=corpora)


def test_each_corpus_goes_the_ways_it_is_good_for_and_says_where_it_is_from():
    translated = Corpus("c", FILES, way="back", tag="bt", weight=0.5)
    store = store_of(Corpus("a", FILES), Corpus("b", FILES, way="forward"), translated)
    store = both_ways(store, TAGGED, ("zh", "en"))
    zh, en, bt = (TAGGED.tag(name) for name in ("zh", "en", "bt"))
    assert store.parts == (Part(0, False, (en,)), Part(1, False, (en,)), Part(0, True, (zh,)), Part(2, True, (zh, bt)))
    assert store.weights == [1.0, 1.0, 1.0, 0.5]
    assert [source[:2] for source, _ in texts(store, [3])] == [[zh, bt]]


def test_a_model_that_learns_one_way_is_told_the_target_where_it_has_a_tag_for_it():
    assert one_way(store_of(Corpus("a", FILES)), PLAIN, ("zh", "en")).readings == ()
    assert one_way(store_of(Corpus("a", FILES)), TAGGED, ("zh", "de")).readings == ()
    tagged = one_way(store_of(Corpus("a", FILES, tag="bt")), TAGGED, ("zh", "en"))
    assert tagged.parts == (Part(0, False, (TAGGED.tag("en"), TAGGED.tag("bt"))),)


def test_a_tag_that_the_tokeniser_lacks_is_named():
    with pytest.raises(RequestError, match="'fr'"):
        both_ways(store_of(Corpus("a", FILES)), TAGGED, ("zh", "fr"))


def test_an_epoch_holds_every_pair_both_ways():
    store = both_ways(store_of(Corpus("a", FILES), Corpus("b", FILES)), TAGGED, ("zh", "en"))
    for packed in (False, True):
        loader = Loader(store, Order(64, packed=packed), lambda examples: examples)
        assert sorted(row for step in loader.epoch(0) for batch in step for row in batch.pairs.tolist()) == [0, 1, 2, 3]


def test_a_corpus_for_the_way_back_is_not_learnt_from_forwards():
    store = one_way(store_of(Corpus("a", FILES, way="back"), Corpus("b", FILES)), PLAIN, ("zh", "en"))
    assert store.parts == (Part(1),)
    assert len(store) == 1
    with pytest.raises(ConfigError, match=r"corpus\.way: expected a corpus for the way from source to target"):
        one_way(store_of(Corpus("a", FILES, way="back")), PLAIN, ("zh", "en"))


@pytest.mark.parametrize("way", ["forward", "back"])
def test_a_model_for_both_ways_needs_pairs_for_both(way):
    with pytest.raises(ConfigError, match=r"corpus\.way: expected corpora for both directions"):
        both_ways(store_of(Corpus("a", FILES, way=way)), TAGGED, ("zh", "en"))
