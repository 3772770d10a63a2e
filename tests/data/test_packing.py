"""Packing: every pair in a row that has room for it, rows nearly full, and each text read as if it were alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import SMALL, random_model
from small_stores import LENGTHS, make_examples, make_store

from sixfold.config import TokenizerConfig
from sixfold.data.batching import choose_row_lengths, pack
from sixfold.data.examples import Examples, ExampleSet, Packing
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import Column, Ragged
from sixfold.model.attention import same_segment_mask
from sixfold.model.positions import positions_in_segments
from sixfold.tasks.translation import TranslationTask
from sixfold.text.learn import train_tokenizer

EXACT = replace(SMALL, dropout=0.0)


def collate(examples):
    return TranslationTask(("", "")).collate(examples, EXACT)


@given(LENGTHS, st.integers(0, 3))
def test_every_pair_is_in_one_row_that_has_room_for_both_of_its_sides(lengths, epoch):
    sides = dict(zip(("source", "target"), map(np.array, zip(*lengths, strict=True)), strict=True))
    row_lengths = choose_row_lengths(sides)
    packed = pack(np.arange(len(lengths)), sides, row_lengths, 1, epoch)
    assert sorted(packed.examples.tolist()) == list(range(len(lengths)))
    row = np.repeat(np.arange(len(packed.counts)), packed.counts)
    for name, side in sides.items():
        assert np.bincount(row, side[packed.examples]).max() <= row_lengths[name]


def test_rows_are_nearly_full():
    random = np.random.default_rng(0)
    source = np.clip(random.gamma(2, 8, 50_000).astype(int), 1, 200)
    target = np.clip((source * random.normal(1.2, 0.2, 50_000)).astype(int), 1, 240)
    lengths = {"source": source, "target": target}
    row_lengths = choose_row_lengths(lengths)
    rows = len(pack(np.arange(50_000), lengths, row_lengths, 1, 0).counts)
    assert source.sum() + target.sum() > 0.95 * rows * sum(row_lengths.values())


def test_the_packing_follows_from_seed_and_epoch_alone():
    lengths = {"text": np.arange(1, 200) % 40 + 1}

    def order(seed, epoch):
        return pack(np.arange(199), lengths, {"text": 64}, seed, epoch).examples.tolist()

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_all_batches_have_one_shape_and_an_epoch_every_pair_once():
    pairs = make_examples([(n % 30 + 1, n % 23 + 1) for n in range(500)])
    loader = Loader(pairs, BatchPlan(512, 2, packed=True), collate)
    count = len(loader.epoch(0))
    batches = [batch for _, step in zip(range(count), loader, strict=False) for batch in step]
    assert {(batch.source.shape, batch.target.shape) for batch in batches} == {((4, 128), (4, 112))}
    assert sorted(np.concatenate([batch.examples for batch in batches]).tolist()) == list(range(500))
    assert sum(len(batch.labels) for batch in batches) == pairs.lengths()["target"].sum()
    assert 0 < loader.padding_share() < 0.25


def packed_and_padded(seed):
    """The same pairs, of which some sources and targets are empty, packed and padded; a row stays empty."""
    random = np.random.default_rng(seed)
    lengths = {"source": random.integers(0, 15, 40), "target": random.integers(0, 15, 40)}
    row_lengths = {"source": 32, "target": 48}
    packed = pack(np.arange(40), {name: side + 1 for name, side in lengths.items()}, row_lengths, 1, 0)
    ordered = {name: side[packed.examples] for name, side in lengths.items()}
    columns = {name: Ragged(random.integers(4, EXACT.vocab, side.sum()), side) for name, side in ordered.items()}
    padded = Examples(columns, packed.examples)
    return collate(replace(padded, packing=Packing(packed.counts, len(packed.counts) + 1, row_lengths))), collate(
        padded
    )


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("compatibility", ["scaled-dot", "cosine", "additive"])
def test_texts_that_share_a_row_do_not_see_each_other(positions, compatibility):
    model = random_model(replace(EXACT, positions=positions, compatibility=compatibility))
    packed, padded = packed_and_padded(1)
    torch.testing.assert_close(packed.labels, padded.labels)
    hidden = [model.hidden(**batch.inputs).flatten(0, 1) for batch in (packed, padded)]
    assert hidden[0].isfinite().all()
    torch.testing.assert_close(
        hidden[0][packed.label_positions], hidden[1][padded.label_positions], rtol=1e-4, atol=2e-5
    )


def test_halves_of_a_packed_batch_are_packed_batches():
    model = random_model(EXACT)
    packed, _ = packed_and_padded(2)
    whole = model.hidden(**packed.inputs).flatten(0, 1)[packed.label_positions]
    halves = [model.hidden(**half.inputs).flatten(0, 1)[half.label_positions] for half in packed.halves()]
    torch.testing.assert_close(torch.cat(halves), whole, rtol=1e-4, atol=2e-5)


def test_positions_are_counted_in_each_text_and_padding_looks_somewhere():
    texts = torch.tensor([[1, 1, 2, 2, 2, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
    assert positions_in_segments(texts)[0].tolist() == [0, 1, 0, 1, 2, 0, 0]
    mask = same_segment_mask(texts, texts)[:, 0]
    assert mask[0, 1].tolist() == [True, True, False, False, False, False, False]
    assert mask[0, 5].tolist() == [True, True, False, False, False, False, False]
    assert mask.any(-1).all()


def test_subword_sampling_stays_within_the_rows():
    text = ["alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"] * 50
    tokenizer = train_tokenizer(text, TokenizerConfig(vocab=300))
    ids = tokenizer.encode(text[0])
    column = Column(np.tile(ids, 200), np.arange(1, 201) * len(ids))
    columns = {"source": column, "target": column}
    pairs = ExampleSet.of_store(replace(make_store([(2, 2)] * 200), columns=columns), (1, 1))
    totals = {}
    for rate in (0.0, 0.2):
        plan = BatchPlan(1024, subword_sampling=rate, packed=True)
        loader = Loader(pairs, plan, lambda examples: (examples, collate(examples)), dict.fromkeys(columns, tokenizer))
        batches = [batch for _, step in zip(range(len(loader.epoch(0))), loader, strict=False) for batch in step]
        totals[rate] = sum(len(examples.columns["target"].values) for examples, _ in batches)
        for examples, _ in batches:
            row = np.repeat(np.arange(len(examples.packing.counts)), examples.packing.counts)
            for name, length in examples.packing.lengths.items():
                assert np.bincount(row, examples.columns[name].lengths + 1).max() <= length
    assert 1.1 * totals[0.0] < totals[0.2] < 1.3 * totals[0.0]
