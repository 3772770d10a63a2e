"""A shortlist holds the translations of a source, is as long as asked for, and is generous where little is known."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from sixfold.data.examples import ExampleSet, Part
from sixfold.data.shortlist import Cooccurrences, Options, build, learn, merge, options_for, steps
from sixfold.data.store import Column, TokenStore

EOS, NAME = 2, 5
VOCAB = 700
SOURCES, TARGETS = range(10, 310), range(310, 610)  # source piece i is translated as i + 300
FILLERS = range(610, 620)  # stand in targets for no reason


def store_of(pairs):
    """Examples of these pairs, as `tokenize` stores them."""
    columns = {}
    for side, name in enumerate(("source", "target")):
        ids = np.array([piece for pair in pairs for piece in pair[side]], np.uint16)
        columns[name] = Column(ids, np.cumsum([len(pair[side]) for pair in pairs], dtype=np.int64))
    return ExampleSet.of_store(TokenStore(columns, np.arange(1, len(pairs) + 1), (), [len(pairs)]), (1, 1))


def made_up(count, seed=1, longest=12):
    """Word by word, in another order, with fillers between; the frequencies fall as Zipf would have them."""
    random = np.random.default_rng(seed)
    chance = 1 / np.arange(5, 5 + len(SOURCES))
    pairs = []
    for _ in range(count):
        source = random.choice(SOURCES, random.integers(3, longest), p=chance / chance.sum())
        pairs.append((source.tolist(), random.permutation([*(source + 300), *random.choice(FILLERS, 3)]).tolist()))
    return pairs


@pytest.fixture(scope="module")
def learnt():
    return store_of(made_up(4000))


def listed(shortlist, piece):
    return set(shortlist.targets[shortlist.begins[piece] : shortlist.begins[piece + 1]].tolist())


def covered(shortlist, pairs):
    return np.mean([np.isin(target, shortlist.candidates(source)).mean() for source, target in pairs])


def test_rates_are_those_of_plain_loops():
    pairs = [({*source, EOS}, set(target)) for source, target in made_up(60)]
    rates = {(piece, word): 1.0 for source, target in pairs for piece in source for word in target}
    for _ in range(3):
        linked = dict.fromkeys(rates, 0.0)
        for source, target in pairs:
            for word in target:
                called = sum(rates[piece, word] for piece in source)
                for piece in source:
                    linked[piece, word] += rates[piece, word] / called
        seen = Counter(piece for source, _ in pairs for piece in source)
        rates = {link: count / seen[link[0]] for link, count in linked.items()}
    cooccurrences = Cooccurrences.of(
        store_of(made_up(60)), np.arange(60), VOCAB, EOS, np.array([EOS]), np.empty(0, int)
    )
    found = [dict(zip(*each, strict=True)) for each in learn(cooccurrences, VOCAB, 3, lambda _: None)]
    for (piece, word), rate in rates.items():
        assert found[piece].get(word, 0.0) == pytest.approx(rate, rel=1e-3, abs=2e-5)
    assert sum(map(len, found)) <= len(rates)


def test_short_lists_hold_the_translations(learnt):
    shortlist = build(learnt, VOCAB, EOS, options=[Options(frequent=20, candidates=40)])
    fresh = made_up(500, seed=2)
    assert covered(shortlist, fresh) > 0.99
    assert np.mean([len(shortlist.candidates(source)) for source, _ in fresh]) < 45


def test_a_target_that_another_piece_explains_is_not_listed():
    random = np.random.default_rng(1)
    pairs = [random.choice(SOURCES[:19], 2, replace=False) for _ in range(2000)]
    pairs += [np.array([10, 29])] * 100  # 29 never stands without 10
    store = store_of([(pair.tolist(), (pair + 300).tolist()) for pair in pairs])
    once, often = (
        build(store, VOCAB, EOS, options=[Options(frequent=0, candidates=3, tried=3000, rounds=rounds)])
        for rounds in (1, 6)
    )
    assert listed(often, 29) == {329}
    assert listed(once, 29) in ({310, 329}, set())  # they met equally often


@pytest.mark.parametrize("expected_count", [30, 40, 50])
def test_a_sentence_of_the_corpus_has_as_many_candidates_as_asked_for(learnt, expected_count):
    shortlist = build(learnt, VOCAB, EOS, options=[Options(frequent=20, candidates=expected_count, tried=4000)])
    sizes = [len(shortlist.candidates(source)) for source, _ in made_up(4000)]
    assert np.mean(sizes) == pytest.approx(expected_count, rel=0.05)


def test_a_small_corpus_lists_all_that_ever_met():
    pairs = made_up(20)
    shortlist = build(store_of(pairs), VOCAB, EOS)
    for source, target in pairs:
        assert set(target) <= set(shortlist.candidates(source).tolist())
    alone = build(store_of([([10, 11], [310, 311])]), VOCAB, EOS, options=[Options(frequent=0)])
    assert listed(alone, 10) == listed(alone, 11) == {310, 311}
    assert listed(alone, 12) == listed(alone, EOS) == set()


def test_an_empty_corpus_leaves_the_end_of_sentence():
    shortlist = build(store_of([]), VOCAB, EOS)
    assert shortlist.candidates([10, 11, EOS]).tolist() == [EOS]
    assert len(shortlist.begins) == VOCAB + 1


def test_pieces_that_targets_hold_may_be_copied():
    pairs = made_up(3000)
    seen = [*pairs, ([NAME, *pairs[0][0]], [NAME, *pairs[0][1]]), ([10], [NAME + 1])]
    shortlist = build(store_of(seen), VOCAB, EOS, options=[Options(frequent=12, candidates=13)])
    assert NAME in shortlist.candidates([NAME])
    assert NAME + 1 in shortlist.candidates([NAME + 1])  # in a target, but in no source
    assert listed(shortlist, 10) == set()  # in no target; and there is no room for anything else


def test_the_most_frequent_targets_and_eos_are_always_there(learnt):
    shortlist = build(learnt, VOCAB, EOS, options=[Options(frequent=10)])
    most = [piece for piece, _ in Counter(learnt.store.columns["target"].ids.tolist()).most_common(10)]
    assert shortlist.always.tolist() == sorted([EOS, *most])
    assert shortlist.candidates([]).tolist() == sorted([EOS, *most])
    assert not np.isin(shortlist.targets, shortlist.always).any()


def test_candidates_are_the_lists_of_all_pieces_together(learnt):
    shortlist = build(learnt, VOCAB, EOS, options=[Options(frequent=20, candidates=60)])
    expected = listed(shortlist, 10) | listed(shortlist, 200) | set(shortlist.always.tolist())
    assert shortlist.candidates([200, 10, 200, EOS]).tolist() == sorted(expected)
    assert {shortlist.always.dtype, shortlist.begins.dtype, shortlist.targets.dtype} == {np.dtype(np.int32)}


def test_the_same_store_gives_the_same_lists_and_tells_how_far_it_is(learnt):
    told = []
    first, second = (build(learnt, VOCAB, EOS, told.append) for _ in range(2))
    assert np.array_equal(first.begins, second.begins)
    assert np.array_equal(first.targets, second.targets)
    assert sum(told) == 2 * steps(learnt, VOCAB)


def test_short_pairs_are_learnt_from_first():
    pairs = made_up(200)
    links = int(np.sum(np.prod(list(store_of(pairs).lengths().values()), axis=0, dtype=np.int64)))
    long = store_of([([630, *range(10, 200)], [640, *range(310, 500)]), *pairs])
    enough, spent = (
        build(long, VOCAB, EOS, options=[Options(frequent=0, links=links + more)]) for more in (192 * 192, 0)
    )
    assert 640 in listed(enough, 630)
    assert listed(spent, 630) == set()
    assert 310 in listed(spent, 10)


def test_no_more_pairs_are_read_than_asked_for():
    pairs = made_up(300)
    few = build(store_of(pairs), VOCAB, EOS, options=[Options(pairs=100, frequent=0)])
    same = build(store_of(pairs[::3]), VOCAB, EOS, options=[Options(frequent=0)])
    assert np.array_equal(few.targets, same.targets)


def test_merged_lists_hold_what_either_holds(learnt):
    one, other = build(learnt, VOCAB, EOS), build(store_of(made_up(30, seed=9)), VOCAB, EOS)
    both = merge(one, other)
    for piece in range(VOCAB):
        assert listed(both, piece) == listed(one, piece) | listed(other, piece)
    assert set(both.always) == set(one.always) | set(other.always)


def test_both_directions_have_lists_of_their_own_and_the_tag_brings_what_is_always_there(learnt):
    there, back = 6, 7  # the tags
    forward, backward = ("source", "target"), ("target", "source")
    store = replace(learnt, parts=(Part(0, forward, ((there,), ())), Part(0, backward, ((back,), ()))))
    told: list[int] = []
    both = build(store, VOCAB, EOS, told.append)
    assert sum(told) == steps(store, VOCAB) == 2 * steps(learnt, VOCAB)
    alone = build(learnt, VOCAB, EOS)
    turned = build(replace(learnt, parts=(Part(0, backward, ((), ())),)), VOCAB, EOS)
    for piece in SOURCES:
        assert listed(both, piece) == listed(alone, piece)  # a source of the one is never a source of the other
    assert set(both.always) == set(alone.always) & set(turned.always)
    for tag, one in ((there, alone), (back, turned)):
        assert listed(both, tag) == set(one.always)
    pairs = made_up(200, seed=2)
    forwards = [([there, *source], target) for source, target in pairs]
    backwards = [([back, *target], source) for source, target in pairs]
    assert covered(both, forwards) == covered(alone, pairs)
    assert covered(both, backwards) == covered(turned, [(target, source) for source, target in pairs])
    sizes = [len(both.candidates(source)) for source, _ in forwards]
    assert sizes == [len(set(alone.candidates(source))) for source, _ in pairs]


def test_lists_grow_with_the_vocabulary_and_for_what_is_written_without_spaces():
    assert [options_for(vocab, "en").candidates for vocab in (4000, 16000, 32000)] == [400, 400, 800]
    assert [options_for(vocab, "zh").candidates for vocab in (4000, 16000, 32000)] == [640, 640, 1280]
