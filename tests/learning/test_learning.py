"""A correct model learns these tasks. Seeds are fixed; each task takes well under a minute on two cores."""

import random
import sys
from pathlib import Path

import pytest
import torch
from small_runs import shared_toy
from small_tasks import TextBatch, token_loss

from sixfold import modelfile
from sixfold.config import ModelConfig, TrainingConfig
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.model.stepper import translation_stepper
from sixfold.model.transformer import build, load_model
from sixfold.tasks.translation import pair_batch
from sixfold.training.loop import train
from sixfold.training.state import State

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

SHAPE = ModelConfig(
    vocab=24, d_model=64, heads=4, d_ff=128, encoder_layers=2, decoder_layers=2, norm_position="pre", dropout=0.0
)


def decode(model, shape, sources, search=greedy):
    batch = pair_batch([(source, []) for source in sources], shape)
    stepper = translation_stepper(model, batch.source, batch.source_padding, 48)
    results = search(stepper, torch.full((len(sources),), shape.bos), shape.eos, SearchOptions(max_length=48))
    return [(result if search is greedy else result[0]).tokens for result in results]


def sequences(seed, shape):
    order = random.Random(seed)
    while True:
        yield [order.randrange(4, shape.vocab) for _ in range(order.randint(1, 10))]


@pytest.mark.parametrize("task", [pytest.param("copy", marks=pytest.mark.slow), "reverse"])
def test_it_learns_to(task):
    solve = (lambda tokens: tokens) if task == "copy" else (lambda tokens: tokens[::-1])
    taught, unseen = sequences(1, SHAPE), sequences(2, SHAPE)

    def batches():
        while True:
            yield [pair_batch([(source, solve(source)) for source, _ in zip(taught, range(48), strict=False)], SHAPE)]

    model = build(SHAPE, seed=1)
    config = TrainingConfig(steps=500, learning_rate=3e-3, warmup=60, schedule="cosine", label_smoothing=0.0)
    for _ in train(State(model, config, token_loss(config)), batches(), SHAPE, config):
        pass
    sources = [next(unseen) for _ in range(300)]
    is_correct = [
        output == solve(source) for output, source in zip(decode(model.eval(), SHAPE, sources), sources, strict=True)
    ]
    assert sum(is_correct) >= 297


def test_it_learns_200_sentences_and_what_they_have_in_common(tmp_path_factory):
    """The example is trained on the first 200 pairs; the others are unseen."""
    pairs = toy.sentences()
    file = modelfile.load(shared_toy(tmp_path_factory))
    shape, tokenizer = file.config.model, file.tokenizer
    model = load_model(shape, file.weights()).eval()

    def count_correct(examples):
        sources = [tokenizer.encode(source) for source, _ in examples]
        outputs = decode(model, shape, sources, beam_search)
        return sum(tokenizer.decode(output) == target for output, (_, target) in zip(outputs, examples, strict=True))

    assert count_correct(pairs[:200]) >= 198
    assert count_correct(pairs[200:]) >= 0.8 * len(pairs[200:])


def test_a_decoder_learns_to_count():
    """The model is trained to predict the next token: after 5 comes 6."""
    shape = ModelConfig(
        kind="decoder", vocab=24, d_model=32, heads=4, kv_heads=2, d_ff=64, decoder_layers=2, positions="rotary",
        norm="rms", norm_position="pre", feed_forward="swiglu", bias=False, dropout=0.0,
    )  # fmt: skip
    rows = torch.tensor([[4 + (start + step) % 20 for step in range(9)] for start in range(20)])
    model = build(shape, seed=1)
    config = TrainingConfig(steps=150, learning_rate=5e-3, warmup=20, schedule="cosine", label_smoothing=0.0)
    step = [TextBatch(tokens=rows[:, :-1], labels=rows[:, 1:].flatten(), label_positions=torch.arange(20 * 8))]
    state = State(model, config, token_loss(config))
    losses = [metrics.loss.item() for metrics in train(state, [step] * 150, shape, config)]
    assert losses[-1] < 0.1 < losses[0]


def test_an_encoder_learns_to_fill_in_a_mask():
    """The model is trained to predict a masked token: a number that is one more than its left neighbour."""
    shape = ModelConfig(
        kind="encoder", vocab=24, d_model=32, heads=4, d_ff=64, encoder_layers=2, positions="learned",
        feed_forward="gelu", embedding_norm=True, scale_embeddings=False, output_transform=True, output_bias=True,
        dropout=0.0,
    )  # fmt: skip
    tokens = torch.tensor([[4 + (start + step) % 19 for step in range(7)] for start in range(19)])
    masked = tokens.clone()
    masked[:, 3] = 3
    batch = TextBatch(tokens=masked, labels=tokens[:, 3], label_positions=3 + 7 * torch.arange(19))
    model = build(shape, seed=1)
    config = TrainingConfig(steps=150, learning_rate=3e-3, warmup=20, schedule="cosine", label_smoothing=0.0)
    state = State(model, config, token_loss(config))
    losses = [metrics.loss.item() for metrics in train(state, [[batch]] * 150, shape, config)]
    assert losses[-1] < 0.1 < losses[0]
