"""A draft changes how many steps a text takes, and nothing in the text."""

from dataclasses import replace

import pytest
import torch
from small_models import SMALL, in_memory, random_model

from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.engines.draft import PLAIN_STEPS, Draft, GuessCount
from sixfold.engines.sampling import SamplingEngine
from sixfold.engines.writing import WritingOptions, check_draft
from sixfold.errors import RequestError

CONFIG = replace(SMALL, kind="decoder", positions="rotary", norm_position="pre", max_length=80, tie_output=False)
DRAFT_CONFIG = replace(CONFIG, decoder_layers=1)
PROMPTS = [[5, 6, 7, 8], [9], [4] * 20]


@pytest.fixture(scope="module")
def models():
    """A model, a draft that is like it but for noise, and one that knows nothing of it."""
    model = random_model(CONFIG).eval()
    alike = random_model(CONFIG).eval()
    random = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in alike.parameters():
            weight += 0.01 * weight.std().nan_to_num() * torch.randn(weight.shape, generator=random)
    return {"model": model, "alike": (alike, CONFIG), "other": (random_model(DRAFT_CONFIG, seed=5), DRAFT_CONFIG)}


def written(engine, options):
    texts = [[] for _ in PROMPTS]
    for prompt, text in zip(PROMPTS, texts, strict=True):
        engine.write([prompt], options, lambda token, text=text: text.append((token.id, token.logprob)) or False)
    return [[each for each, _ in text] for text in texts], [logprob for text in texts for _, logprob in text]


@pytest.mark.parametrize("name", ["alike", "other"])
@pytest.mark.parametrize(
    "sampling",
    [GREEDY, SamplingOptions(seed=4), replace(GREEDY, repetition_penalty=1.3)],
    ids=["greedy", "drawn", "rep"],
)
def test_the_texts_are_those_without_a_draft(models, name, sampling):
    options = WritingOptions((11,), 50, sampling=sampling)
    plain = SamplingEngine(models["model"], CONFIG)
    expected, logprobs = written(plain, options)
    guided = SamplingEngine(models["model"], CONFIG, Draft(*models[name]))
    calls = []
    feed = guided._slots.feed
    guided._slots.feed = lambda slot, tokens, count=1: calls.append(count) or feed(slot, tokens, count)
    texts, guided_logprobs = written(guided, options)
    assert texts == expected
    assert guided_logprobs == pytest.approx(logprobs, abs=1e-4)
    if name == "alike" and sampling.is_greedy:
        assert len(calls) < 0.6 * sum(map(len, texts))


def test_the_number_of_guesses_follows_how_many_were_right():
    count = GuessCount()
    numbers = []
    for right in (4, 6, 8, 3, 4, 0, 0, 0):
        numbers.append(count.take())
        count.update(numbers[-1], min(right, numbers[-1]))
    assert numbers == [4, 6, 8, 8, 4, 6, 3, 1]
    assert [count.take() for _ in range(PLAIN_STEPS)] == [0] * PLAIN_STEPS
    assert count.take() == 1


def test_several_texts_at_once_are_written_without_the_draft_and_are_the_same(models):
    options = WritingOptions((), 20)
    expected, _ = written(SamplingEngine(models["model"], CONFIG), options)
    texts = [[] for _ in PROMPTS]
    engine = SamplingEngine(models["model"], CONFIG, Draft(*models["alike"]))
    engine.write(PROMPTS, options, lambda token: texts[token.prompt].append(token.id) or False)
    assert texts == expected


def test_a_text_longer_than_the_draft_can_read_is_written_to_its_end(models):
    short = replace(DRAFT_CONFIG, max_length=30)
    engine = SamplingEngine(models["model"], CONFIG, Draft(random_model(short), short))
    expected, _ = written(SamplingEngine(models["model"], CONFIG), WritingOptions((), 70))
    assert written(engine, WritingOptions((), 70))[0] == expected
    assert [len(text) for text in expected] == [70, 70, 60]


def test_a_draft_with_another_vocabulary_or_of_another_kind_is_refused():
    file = in_memory(CONFIG, random_model(CONFIG))
    larger = replace(CONFIG, vocab=31)
    with pytest.raises(RequestError, match="expected a model with the tokeniser of model"):
        check_draft(file, in_memory(larger, random_model(larger)))
    with pytest.raises(
        RequestError, match=r"draft: expected a decoder-only model; got model\.kind = 'encoder-decoder'"
    ):
        check_draft(file, in_memory(SMALL, random_model(SMALL)))
