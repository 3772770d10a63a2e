"""Packing: every pair in a row that has room for it, rows nearly full, and each text read as if it were alone."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from small_models import SMALL, random_model
from small_stores import LENGTHS, make_store

from sixfold.config import TokenizerConfig
from sixfold.data.loader import Examples, Loader, Order, Packing
from sixfold.data.packing import Lines, line_lengths, pack
from sixfold.model.transformer import position_in_text, same_text
from sixfold.text.learn import train_tokenizer
from sixfold.training.batch import collate

EXACT = replace(SMALL, dropout=0.0)


@given(LENGTHS, st.integers(0, 3))
def test_every_pair_is_in_one_row_that_has_room_for_both_of_its_sides(lengths, epoch):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    lines = line_lengths(source, target)
    packed = pack(np.arange(len(lengths)), source, target, lines, 1, epoch)
    assert sorted(packed.pairs.tolist()) == list(range(len(lengths)))
    row = np.repeat(np.arange(len(packed.counts)), packed.counts)
    for side, room in zip((source, target), lines, strict=True):
        assert np.bincount(row, side[packed.pairs]).max() <= room


def test_rows_are_nearly_full():
    random = np.random.default_rng(0)
    source = np.clip(random.gamma(2, 8, 50_000).astype(int), 1, 200)
    target = np.clip((source * random.normal(1.2, 0.2, 50_000)).astype(int), 1, 240)
    lines = line_lengths(source, target)
    rows = len(pack(np.arange(50_000), source, target, lines, 1, 0).counts)
    assert source.sum() + target.sum() > 0.95 * rows * sum(lines)


def test_the_packing_follows_from_seed_and_epoch_alone():
    lengths = np.arange(1, 200) % 40 + 1

    def order(seed, epoch):
        return pack(np.arange(199), lengths, lengths, Lines(64, 64), seed, epoch).pairs.tolist()

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)


def test_all_batches_have_one_shape_and_an_epoch_every_pair_once():
    store = make_store([(n % 30 + 1, n % 23 + 1) for n in range(500)])
    loader = Loader(store, Order(512, 2, packed=True), lambda examples: collate(examples, EXACT))
    count = len(loader.epoch(0))
    batches = [batch for _, step in zip(range(count), loader, strict=False) for batch in step]
    assert {(batch.inputs[0].shape, batch.inputs[1].shape) for batch in batches} == {((4, 128), (4, 112))}
    assert sorted(np.concatenate([batch.rows for batch in batches]).tolist()) == list(range(500))
    assert sum(batch.tokens for batch in batches) == store.lengths()[1].sum()
    assert 0 < loader.padding_share() < 0.25


def packed_and_padded(seed):
    """The same pairs, of which one source is a bare <eos> and one target is empty, both ways; a row stays empty."""
    random = np.random.default_rng(seed)
    source, target = random.integers(1, 15, 40), random.integers(0, 15, 40)
    packed = pack(np.arange(40), source, target + 1, Lines(32, 48), 1, 0)
    order = packed.pairs
    source, target = source[order], target[order]
    ids = [random.integers(4, EXACT.vocab, side.sum()) for side in (source, target)]
    alone = Examples(*ids, source, target, order)
    together = replace(alone, packing=Packing(packed.counts, len(packed.counts) + 1, Lines(32, 48)))
    return collate(together, EXACT), collate(alone, EXACT)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary"])
@pytest.mark.parametrize("compatibility", ["scaled-dot", "cosine", "additive"])
def test_texts_that_share_a_row_do_not_see_each_other(positions, compatibility):
    model = random_model(replace(EXACT, positions=positions, compatibility=compatibility))
    packed, padded = packed_and_padded(1)
    torch.testing.assert_close(packed.labels, padded.labels)
    hidden = [model.hidden(*batch.inputs).flatten(0, 1) for batch in (packed, padded)]
    assert hidden[0].isfinite().all()
    torch.testing.assert_close(hidden[0][packed.places], hidden[1][padded.places], rtol=1e-4, atol=2e-5)


def test_halves_of_a_packed_batch_are_packed_batches():
    model = random_model(EXACT)
    packed, _ = packed_and_padded(2)
    whole = model.hidden(*packed.inputs).flatten(0, 1)[packed.places]
    halves = [model.hidden(*half.inputs).flatten(0, 1)[half.places] for half in packed.halves()]
    torch.testing.assert_close(torch.cat(halves), whole, rtol=1e-4, atol=2e-5)


def test_positions_are_counted_in_each_text_and_padding_looks_somewhere():
    texts = torch.tensor([[1, 1, 2, 2, 2, 0, 0], [0, 0, 0, 0, 0, 0, 0]])
    assert position_in_text(texts)[0].tolist() == [0, 1, 0, 1, 2, 0, 0]
    mask = same_text(texts, texts)[:, 0]
    assert mask[0, 1].tolist() == [True, True, False, False, False, False, False]
    assert mask[0, 5].tolist() == [True, True, False, False, False, False, False]
    assert mask.any(-1).all()


def test_subword_sampling_stays_within_the_rows():
    text = ["alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu"] * 50
    tokenizer = train_tokenizer(text, TokenizerConfig(vocab=300))
    ids = tokenizer.encode(text[0])
    store = make_store([(len(ids) + 1, len(ids) + 1)] * 200)
    flat = np.tile([*ids, 2], 200), np.tile(ids, 200)
    store = replace(store, source=flat[0], target=flat[1])
    whole = {}
    for rate in (0.0, 0.2):
        order = Order(1024, subword_sampling=rate, packed=True)
        loader = Loader(store, order, lambda examples: (examples, collate(examples, EXACT)), tokenizer)
        made = [each for _, step in zip(range(len(loader.epoch(0))), loader, strict=False) for each in step]
        whole[rate] = sum(len(examples.target) for examples, _ in made)
        for examples, _ in made:
            row = np.repeat(np.arange(len(examples.packing.counts)), examples.packing.counts)
            for lengths, room in zip(
                (examples.source_lengths, examples.target_lengths + 1), examples.packing.lines, strict=True
            ):
                assert np.bincount(row, lengths).max() <= room
    assert 1.1 * whole[0.0] < whole[0.2] < 1.3 * whole[0.0]
