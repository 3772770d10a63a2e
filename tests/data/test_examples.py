"""Examples are what their rows, roles and prefixes make them; and a translation task gives the right roles."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_stores import LENGTHS, make_store

from sixfold.config import DataConfig, TokenizerConfig
from sixfold.data.corpus import Corpus
from sixfold.data.examples import ExampleSet, Part
from sixfold.data.loader import BatchPlan, Loader
from sixfold.errors import ConfigError, RequestError
from sixfold.tasks.translation import BACKWARD, FORWARD, TranslationTask
from sixfold.text.learn import train_tokenizer

TAGGED = train_tokenizer(["我爱猫。", "I love cats."] * 20, TokenizerConfig(vocab=320, tags=("zh", "en", "bt")))
PLAIN = train_tokenizer(["我爱猫。", "I love cats."] * 20, TokenizerConfig(vocab=320))
FILES = (Path("a.zh"), Path("a.en"))


def texts(examples, numbers):
    """The ids of each example, column by column."""
    columns = examples.gather(np.array(numbers)).values()
    cut = [np.split(values, np.cumsum(lengths)[:-1]) for values, lengths in columns]
    return [tuple(ids.tolist() for ids in row) for row in zip(*cut, strict=True)]


SPECIAL = st.sampled_from([(), (7,), (8, 9)])
PAIRS = st.tuples(SPECIAL, SPECIAL)
ROLES = st.sampled_from([FORWARD, BACKWARD, ("source", "source")])
PARTS = st.lists(st.builds(Part, st.integers(0, 1), ROLES, PAIRS, st.just(()) | PAIRS), min_size=1)


@given(LENGTHS, PARTS, st.data())
def test_examples_of_any_parts_are_gathered_as_they_would_be_one_by_one(lengths, parts, data):
    cut = data.draw(st.integers(0, len(lengths)))
    store = make_store(lengths, [cut, len(lengths)], [1.0, 3.0])
    examples = ExampleSet(store, FORWARD, tuple(parts), (1, 2))
    expected = []
    for part in parts:
        for row in range(*((0, cut) if part.corpus == 0 else (cut, len(lengths)))):
            stored = {name: column.take(np.array([row])).values.tolist() for name, column in store.columns.items()}
            columns = zip(part.columns, part.prefixes, part.suffixes or ((), ()), strict=True)
            sides = [[*before, *stored[name], *after] for name, before, after in columns]
            expected.append((*sides, int(store.lines[row])))
    assert len(examples) == len(expected)
    assert examples.weights == [(1.0, 3.0)[part.corpus] for part in parts]
    numbers = data.draw(st.permutations(range(len(expected))))
    assert not numbers or texts(examples, numbers) == [expected[number][:2] for number in numbers]
    assert examples.lengths()["source"].tolist() == [len(source) + 1 for source, _, _ in expected]
    assert examples.lengths()["target"].tolist() == [len(target) + 2 for _, target, _ in expected]
    for number in numbers[:5]:
        assert examples.where(number).endswith(f":{expected[number][2]}")


def examples_of(tokenizer, *corpora, both_ways=False, languages=("zh", "en")):
    """The examples of a translation task over corpora of one pair each."""
    store = make_store([(3, 4)] * len(corpora), list(range(1, len(corpora) + 1)), corpora=corpora)
    return TranslationTask(languages, DataConfig(both_ways=both_ways)).examples(
        store, {"source": tokenizer, "target": tokenizer}
    )


def test_each_corpus_goes_the_ways_it_is_good_for_and_says_where_it_is_from():
    translated = Corpus("c", FILES, way="back", tag="bt", weight=0.5)
    corpora = (Corpus("a", FILES), Corpus("b", FILES, way="forward"), translated)
    examples = examples_of(TAGGED, *corpora, both_ways=True)
    zh, en, bt = (TAGGED.tag(name) for name in ("zh", "en", "bt"))
    assert examples.parts == (
        Part(0, FORWARD, ((en,), ())),
        Part(1, FORWARD, ((en,), ())),
        Part(0, BACKWARD, ((zh,), ())),
        Part(2, BACKWARD, ((zh, bt), ())),
    )
    assert examples.weights == [1.0, 1.0, 1.0, 0.5]
    assert [source[:2] for source, _ in texts(examples, [3])] == [[zh, bt]]


def test_a_model_that_learns_one_way_is_told_the_target_where_it_has_a_tag_for_it():
    untagged = (Part(0, FORWARD, ((), ())),)
    assert examples_of(PLAIN, Corpus("a", FILES)).parts == untagged
    assert examples_of(TAGGED, Corpus("a", FILES), languages=("zh", "de")).parts == untagged
    tagged = examples_of(TAGGED, Corpus("a", FILES, tag="bt"))
    assert tagged.parts == (Part(0, FORWARD, ((TAGGED.tag("en"), TAGGED.tag("bt")), ())),)


def test_a_tag_that_the_tokeniser_lacks_is_named():
    with pytest.raises(RequestError, match="'fr'"):
        examples_of(TAGGED, Corpus("a", FILES), both_ways=True, languages=("zh", "fr"))


def test_an_epoch_holds_every_pair_both_ways():
    examples = examples_of(TAGGED, Corpus("a", FILES), Corpus("b", FILES), both_ways=True)
    for packed in (False, True):
        loader = Loader(examples, BatchPlan(64, packed=packed), lambda batch: batch)
        numbers = [number for step in loader.epoch(0) for batch in step for number in batch.examples.tolist()]
        assert sorted(numbers) == [0, 1, 2, 3]


def test_a_corpus_for_the_way_back_is_not_learnt_from_forwards():
    examples = examples_of(PLAIN, Corpus("a", FILES, way="back"), Corpus("b", FILES))
    assert examples.parts == (Part(1, FORWARD, ((), ())),)
    assert len(examples) == 1
    with pytest.raises(ConfigError, match=r"corpus\.way: expected a corpus for the direction from source to target"):
        examples_of(PLAIN, Corpus("a", FILES, way="back"))


@pytest.mark.parametrize("way", ["forward", "back"])
def test_a_model_for_both_ways_needs_pairs_for_both(way):
    with pytest.raises(ConfigError, match=r"corpus\.way: expected corpora for both directions"):
        examples_of(TAGGED, Corpus("a", FILES, way=way), both_ways=True)
