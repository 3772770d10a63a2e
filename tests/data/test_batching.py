"""Batches by tokens: every pair once, within the budget, the same from the same seed, and resumable."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_stores import LENGTHS, make_examples

from sixfold.data.batching import group_steps, length_batches, padding_share, rows_of_epoch
from sixfold.data.loader import BatchPlan, Cursor, Loader
from sixfold.errors import DataError


@given(LENGTHS, st.integers(60, 500), st.integers(0, 3))
def test_an_epoch_has_every_pair_once_and_no_batch_over_budget(lengths, budget, epoch):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    batches = length_batches(np.arange(len(lengths)), {"source": source, "target": target}, budget, 1, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(rows) * max(source[rows].max(), target[rows].max()) <= budget for rows in batches)


def test_a_pair_longer_than_the_budget_gets_a_batch_of_its_own():
    batches = length_batches(np.arange(3), {"text": np.array([9, 500, 9])}, 100, 1, 0)
    assert [1] in [rows.tolist() for rows in batches]


def test_little_is_padding():
    random = np.random.default_rng(0)
    source = np.maximum(1, random.gamma(3, 9, 20_000).astype(int))
    target = np.maximum(1, (source * random.normal(1.1, 0.15, 20_000)).astype(int))
    lengths = {"source": source, "target": target}
    batches = length_batches(np.arange(20_000), lengths, 4096, 1, 0)
    assert padding_share(batches, lengths) < 0.09
    at_random = np.array_split(np.arange(20_000), len(batches))
    assert padding_share(at_random, lengths) > 0.4


def test_the_order_follows_from_seed_and_epoch_alone():
    examples = make_examples([(n % 30 + 1, n % 23 + 1) for n in range(500)])

    def order(seed, epoch):
        loader = Loader(examples, BatchPlan(200, 2, seed), lambda e: e)
        return [batch.examples.tolist() for step in loader.epoch(epoch) for batch in step]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_weights_say_how_often_a_pair_is_seen():
    seen = np.concatenate([rows_of_epoch([10, 30, 40], [1.0, 0.5, 2.25], 1, epoch) for epoch in range(4)])
    times = np.bincount(seen, minlength=40)
    assert (times[:10] == 4).all()
    assert (times[10:30] == 2).all()  # half of them an epoch, each half in turn
    assert times[30:].sum() == pytest.approx(4 * 22.5, abs=2)
    assert (times[30:] >= 8).all()


def test_ranks_share_out_the_micro_batches_of_each_step():
    examples = make_examples([(n % 30 + 1, n % 23 + 1) for n in range(500)])
    whole = Loader(examples, BatchPlan(100, 4), lambda e: e.numbers.tolist())
    parts = [
        iter(Loader(examples, BatchPlan(100, 4, rank=rank, ranks=2), lambda e: e.numbers.tolist())) for rank in range(2)
    ]
    for step, _ in zip(whole, range(20), strict=False):
        first, second = (next(part) for part in parts)
        assert sorted(first + second) == sorted(step)


@pytest.mark.parametrize("taken", [0, 1, 7, 33, 34, 70])
def test_a_loader_goes_on_from_its_cursor(taken):
    examples = make_examples([(n % 30 + 1, n % 23 + 1) for n in range(500)])

    def stream(cursor=None):
        return Loader(
            examples,
            BatchPlan(200, 2),
            lambda e: (e.numbers.tolist(), e.columns["source"].values.tolist()),
            cursor=cursor,
        )

    first = stream()
    steps = iter(first)
    for _ in range(taken):
        next(steps)
    rest = iter(stream(first.cursor))
    for _ in range(10):
        assert next(steps) == next(rest)


def test_the_cursor_is_behind_what_was_handed_out_not_what_was_made_ahead():
    loader = Loader(make_examples([(5, 5)] * 100), BatchPlan(50), lambda e: e)
    steps = iter(loader)
    assert loader.cursor == Cursor(0, 0)
    next(steps)
    next(steps)
    assert loader.cursor == Cursor(0, 2)


def test_an_error_while_a_batch_is_made_reaches_the_one_who_waits():
    def make(_):
        raise DataError("broken")

    with pytest.raises(DataError, match="broken"):
        next(iter(Loader(make_examples([(5, 5)] * 9), BatchPlan(50), make)))


def test_gathered_ids_are_those_that_were_stored():
    columns = make_examples([(3, 2), (1, 4), (2, 1)]).gather(np.array([2, 0]))
    assert columns["source"].values.tolist() == [2, 0, 1]
    assert columns["source"].lengths.tolist() == [1, 2]
    assert columns["target"].values.tolist() == [0]
    assert columns["target"].lengths.tolist() == [0, 1]


def test_steps_group_micro_batches():
    assert [len(step) for step in group_steps([np.array([n]) for n in range(7)], 3)] == [3, 3, 1]
