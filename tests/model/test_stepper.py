from dataclasses import replace

import pytest
import torch
from small_models import SMALL, random_batch, random_model, variants

from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.errors import RequestError
from sixfold.model.stepper import Stepper, translation_stepper

SINGLE = variants(pairs=False)


class Uncached:
    """A stepper without a cache: it runs the full model on all tokens written so far."""

    def __init__(self, model, source, padding):
        self.model, self.source, self.padding = model, source, padding
        self.tokens = source.new_empty((len(source), 0))

    def step(self, tokens):
        self.tokens = torch.cat((self.tokens, tokens[:, None]), dim=1)
        return self.model(self.source, self.tokens, self.padding)[:, -1]

    def reorder(self, rows):
        self.tokens, self.source, self.padding = self.tokens[rows], self.source[rows], self.padding[rows]


@pytest.mark.parametrize("name", SINGLE)
def test_cached_steps_equal_the_whole_model(name):
    config = SINGLE[name]
    model = random_model(config)
    sources, targets, padding = random_batch(config)
    with torch.inference_mode():
        full = model(sources, targets, padding)
    stepper = translation_stepper(model, sources, padding, capacity=8)
    for step in range(targets.size(1)):
        torch.testing.assert_close(stepper.step(targets[:, step]), full[:, step], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", SINGLE)
def test_a_decoder_alone_steps_too_and_takes_a_prompt_at_once(name):
    config = replace(SINGLE[name], kind="decoder")
    model = random_model(config)
    _, tokens, _ = random_batch(config, target=7)
    with torch.inference_mode():
        full = model(tokens)
    stepper = Stepper(model, capacity=10)
    torch.testing.assert_close(stepper.feed(tokens[:, :4]), full[:, 3], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(stepper.feed(tokens[:, 4:6]), full[:, 5], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(stepper.step(tokens[:, 6]), full[:, 6], rtol=1e-4, atol=1e-4)


def test_a_reordered_cache_follows_the_survivors():
    model = random_model(SMALL)
    sources, _, padding = random_batch(SMALL)
    stepper = translation_stepper(model, sources, padding, capacity=8)
    uncached = Uncached(model, sources, padding)
    for rows in ([2, 0, 0, 1], [3, 3], [1], [0, 0, 0]):
        tokens = torch.randint(4, 23, (len(uncached.tokens),))
        with torch.inference_mode():
            torch.testing.assert_close(stepper.step(tokens), uncached.step(tokens), rtol=1e-4, atol=1e-4)
        stepper.reorder(torch.tensor(rows))
        uncached.reorder(torch.tensor(rows))


@pytest.mark.parametrize("name", ["as is", "rotary", "grouped queries", "additive", "shared layers"])
@pytest.mark.parametrize("beam", [1, 4])
def test_cached_and_uncached_searches_agree(name, beam):
    config = SINGLE[name]
    model = random_model(config)
    sources, _, padding = random_batch(config, rows=4)
    begin = torch.full((4,), config.bos)
    options = SearchOptions(beam=beam, n_best=beam, max_length=12)
    cached = beam_search(translation_stepper(model, sources, padding, 12), begin, config.eos, options)
    full = beam_search(Uncached(model, sources, padding), begin, config.eos, options)
    assert [[h.tokens for h in each] for each in cached] == [[h.tokens for h in each] for each in full]


def test_a_batch_decodes_as_each_sentence_does_alone():
    model = random_model(SMALL)
    sources, _, padding = random_batch(SMALL, rows=5)
    options = SearchOptions(max_length=12)
    batched = greedy(translation_stepper(model, sources, padding, 12), torch.full((5,), 1), 2, options)
    for row in range(5):
        real = sources[row : row + 1, : int(padding[row].sum())]
        (single,) = greedy(translation_stepper(model, real, None, 12), torch.full((1,), 1), 2, options)
        assert single.tokens == batched[row].tokens
        assert single.score == pytest.approx(batched[row].score, abs=1e-4)


def test_the_capacity_is_a_limit():
    stepper = translation_stepper(random_model(SMALL), *random_batch(SMALL)[::2], capacity=2)
    for _ in range(2):
        stepper.step(torch.full((3,), 5))
    with pytest.raises(RequestError, match="expected at most 2 tokens, the capacity of this cache; got 3"):
        stepper.step(torch.full((3,), 5))


def test_a_learned_table_limits_the_capacity():
    config = replace(SMALL, positions="learned", max_length=6)
    sources, _, padding = random_batch(config, source=5)
    with pytest.raises(RequestError, match="expected at most 6"):
        translation_stepper(random_model(config), sources, padding, capacity=7)
