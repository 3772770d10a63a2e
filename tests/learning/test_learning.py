"""A correct model learns these tasks. Seeds are fixed; each task takes well under a minute on two cores."""

import math
import random
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from small_runs import shared_toy
from small_tasks import TextBatch, token_loss

from sixfold import modelfile
from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.corpus import Corpus
from sixfold.data.examples import Examples
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import Column, Ragged, TokenStore
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.sampling import SamplingOptions, sampler
from sixfold.decoding.search import beam_search, greedy, search_single_path
from sixfold.model.stepper import Stepper, translation_stepper
from sixfold.model.transformer import build, load_model
from sixfold.tasks.causal_lm import CausalTask
from sixfold.tasks.translation_batches import pair_batch
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


def test_a_decoder_learns_a_grammar_from_documents_in_rows():
    """Its loss comes close to the entropy of the grammar, and nearly all that it writes is grammatical."""
    the, stop, nouns, verbs = 4, 5, range(6, 10), range(10, 13)
    shape = ModelConfig(
        kind="decoder", vocab=16, d_model=32, heads=4, d_ff=64, decoder_layers=2, positions="rotary",
        norm="rms", norm_position="pre", feed_forward="swiglu", bias=False, dropout=0.0, max_length=64,
    )  # fmt: skip

    def document(order):
        sentences = [
            [the, order.choice(nouns), order.choice(verbs), the, order.choice(nouns), stop]
            for _ in range(order.choice((1, 2)))
        ]
        return [token for sentence in sentences for token in sentence]

    order = random.Random(1)
    learnt, unseen = ([document(order) for _ in range(count)] for count in (1000, 400))
    column = Column(np.array([token for text in learnt for token in text]), np.cumsum(list(map(len, learnt))))
    store = TokenStore({"text": column}, np.arange(1000), [Corpus("made", (Path("a.txt"),))], [1000])
    task = CausalTask(row_tokens=48)
    examples = task.examples(store, None)
    model = build(shape, seed=1)
    config = TrainingConfig(steps=150, learning_rate=1e-2, warmup=20, schedule="cosine")
    loader = Loader(examples, BatchPlan(16 * 48), lambda each: task.collate(each, shape))
    for _ in train(State(model, config, task.loss), loader, shape, config):
        pass
    model.eval()
    texts = Ragged(np.array([token for text in unseen for token in text]), np.array(list(map(len, unseen))))
    batch = task.collate(Examples({"text": texts}, np.arange(400)), shape)
    with torch.no_grad():
        loss = task.loss(model, batch).item() / len(batch.labels)
    # Of a document with n sentences: one of two lengths, and for each sentence two nouns and a verb.
    sentences = sum(text.count(stop) for text in unseen)
    entropy = (400 * math.log(2) + sentences * math.log(4 * 3 * 4)) / len(batch.labels)
    assert 0.97 * entropy < loss < 1.03 * entropy
    stepper = Stepper(model, 64)
    written = search_single_path(stepper, torch.full((200,), shape.bos), shape.eos, sampler(SamplingOptions()))
    kinds = {the: "t", stop: ".", **dict.fromkeys(nouns, "n"), **dict.fromkeys(verbs, "v")}
    forms = ["".join(kinds.get(token, "?") for token in each.tokens) for each in written]
    assert sum(form in ("tnvtn.", "tnvtn." * 2) for form in forms) >= 190


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
