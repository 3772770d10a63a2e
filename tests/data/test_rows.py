"""Documents are joined and cut into full rows: every token once an epoch, in an order that the seed decides."""

from itertools import islice, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_stores import make_documents

from sixfold.config import ModelConfig
from sixfold.data.batching import join_and_cut
from sixfold.data.loader import BatchPlan, Cursor, Loader
from sixfold.tasks.causal_lm import CausalTask

SHAPE = ModelConfig(kind="decoder", vocab=1004)


def make_loader(examples, row_tokens, rows=2, cursor=None, **plan):
    task = CausalTask(row_tokens=row_tokens)
    plan = BatchPlan(rows * row_tokens, **plan)
    return Loader(examples, plan, lambda batch: task.collate(batch, SHAPE), cursor=cursor)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 30), st.integers(0, 3))
def test_rows_are_full_and_no_token_is_read_twice(lengths, row_length, epoch):
    lengths = np.array(lengths)
    examples, counts, pieces = join_and_cut(np.arange(len(lengths)), lengths, row_length, 1, epoch)
    row = np.repeat(np.arange(len(counts)), counts)
    filled = np.bincount(row, pieces.lengths)
    total = lengths.sum()
    assert filled.tolist() == ([row_length] * (total // row_length) if total >= row_length else [total])
    read = np.concatenate(
        [
            example * 100 + np.arange(begin, begin + length)
            for example, begin, length in zip(examples, *pieces, strict=True)
        ]
    )
    assert len(np.unique(read)) == len(read) == filled.sum()
    assert (pieces.begins + pieces.lengths <= lengths[examples]).all()


def test_rows_differ_from_epoch_to_epoch_and_repeat_from_the_seed():
    arguments = np.arange(50), np.arange(50) % 7 + 1, 16
    first, again, other = (join_and_cut(*arguments, 1, epoch) for epoch in (0, 0, 1))
    assert first.examples.tolist() == again.examples.tolist() != other.examples.tolist()


@pytest.mark.parametrize("row_tokens", [1, 5, 16, 64])
def test_a_batch_reads_and_predicts_the_documents_as_they_are(row_tokens):
    lengths = [3, 1, 40, 7, 12, 5, 2, 30] * 2
    examples = make_documents(lengths, row_tokens)
    begins = np.cumsum([0, *lengths[:-1]]) + 4
    texts = [[SHAPE.bos, *range(begin, begin + n), SHAPE.eos] for begin, n in zip(begins, lengths, strict=True)]
    pairs = {pair for text in texts for pair in pairwise(text)}
    loader = make_loader(examples, row_tokens)
    steps = loader.epoch(0)
    batches = [batch for step in islice(loader, len(steps)) for batch in step]
    seen = []
    for batch in batches:
        assert batch.tokens.shape == (2, row_tokens)
        assert (batch.segments > 0).all()  # no padding
        assert batch.label_positions.tolist() == list(range(batch.tokens.numel()))
        seen += list(zip(batch.tokens.flatten().tolist(), batch.labels.tolist(), strict=True))
        # A segment ends where a label is <eos>, and there alone, or with the row.
        ends = (batch.labels == SHAPE.eos).reshape(batch.tokens.shape)[:, :-1]
        assert (batch.segments.diff(dim=1) == ends).all()
    assert set(seen) <= pairs
    total = sum(lengths) + len(lengths)
    assert len(seen) == total - total % (2 * row_tokens)
    assert loader.padding_share() == 0


def test_a_loader_goes_on_from_a_cursor_with_the_same_rows():
    examples = make_documents([n % 13 + 1 for n in range(200)], 32, weights=(2.0, 0.5), ends=[50, 200])
    whole = make_loader(examples, 32)
    count = len(whole.epoch(0)) + 3
    expected = [step[0].tokens.tolist() for step in islice(whole, count)]
    rest = make_loader(examples, 32, cursor=Cursor(0, 4))
    assert [step[0].tokens.tolist() for step in islice(rest, count - 4)] == expected[4:]


def test_ranks_share_the_rows_of_a_step():
    examples = make_documents([n % 13 + 1 for n in range(200)], 32)
    alone = next(iter(make_loader(examples, 32, rows=4, micro_batches=3)))
    ranks = [next(iter(make_loader(examples, 32, rows=4, micro_batches=3, rank=rank, ranks=2))) for rank in range(2)]
    assert sorted(row for batch in alone for row in batch.tokens.tolist()) == sorted(
        row for step in ranks for batch in step if batch.examples is not None for row in batch.tokens.tolist()
    )


def test_a_corpus_smaller_than_a_row_still_is_a_batch():
    (batch,) = next(iter(make_loader(make_documents([2, 1], 16), 16)))
    assert batch.tokens.shape == (2, 16)
    assert len(batch.labels) == 5
