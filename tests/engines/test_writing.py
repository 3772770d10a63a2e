"""What the protocol `WritingEngine` promises, checked for every engine that writes texts."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model

from sixfold.decoding.options import GREEDY, SamplingOptions
from sixfold.engines import slots
from sixfold.engines.cpu import CpuEngine
from sixfold.engines.sampling import SamplingEngine
from sixfold.engines.writing import WritingOptions
from sixfold.errors import RequestError
from sixfold.explorer.forward import forward, log_softmax

CONFIG = replace(
    SMALL, kind="decoder", positions="rotary", norm_position="pre", norm="rms", feed_forward="swiglu", max_length=40,
    tie_output=False,
)  # fmt: skip
FILES = {
    "rotary": in_memory(CONFIG, random_model(CONFIG)),
    "learned": in_memory(learned := replace(CONFIG, positions="learned", norm="layer"), random_model(learned)),
}
ENGINES = {"cpu": lambda file: CpuEngine(file, "float32"), "sampling": SamplingEngine.load}
PROMPTS = [[5, 6, 7, 8, 9], [4], [9, 3], [8, 7], [10] * 20, [4]]
NO_END = WritingOptions(ends=(), max_tokens=12)


@pytest.fixture(scope="module", params=[(engine, file) for engine in ENGINES for file in FILES], ids="-".join)
def writer(request):
    engine, file = request.param
    writer = ENGINES[engine](FILES[file])
    writer.file = FILES[file]
    yield writer
    writer.close()


@pytest.fixture(scope="module")
def sampler():
    return SamplingEngine.load(FILES["rotary"])


def texts_of(engine, prompts, options, on_token=lambda token: False):
    """Return what is written: for each prompt and sample, the tokens that were reported."""
    texts = {(prompt, sample): [] for prompt in range(len(prompts)) for sample in range(options.samples)}

    def report(token):
        texts[token.prompt, token.sample].append(token)
        return on_token(token)

    engine.write(prompts, options, report)
    return texts


def ids_of(texts):
    return {key: [token.id for token in text] for key, text in texts.items()}


def greedy(file, prompt, options):
    """Return the likeliest tokens one by one, by the NumPy forward pass of the whole text, with all probabilities."""
    ids, rows = list(prompt), []
    while len(ids) - len(prompt) < min(options.max_tokens, file.config.model.max_length - len(prompt)):
        rows.append(log_softmax(forward(file, target=np.array([ids]))["logits"][0][-1]))
        ids.append(int(rows[-1].argmax()))
        if ids[-1] in options.ends:
            break
    return ids[len(prompt) :], rows


def test_greedy_texts_are_those_of_the_numpy_pass_with_their_probabilities(writer):
    texts = texts_of(writer, PROMPTS, NO_END)
    for index, prompt in enumerate(PROMPTS):
        ids, rows = greedy(writer.file, prompt, NO_END)
        assert [token.id for token in texts[index, 0]] == ids
        expected = [row[token] for row, token in zip(rows, ids, strict=True)]
        assert [token.logprob for token in texts[index, 0]] == pytest.approx(expected, abs=1e-4)
    assert len(set(texts[0, 0])) > 3


def test_the_likeliest_tokens_of_each_place_are_reported(writer):
    texts = texts_of(writer, PROMPTS[:3], replace(NO_END, likeliest=3))
    for index, prompt in enumerate(PROMPTS[:3]):
        _, rows = greedy(writer.file, prompt, NO_END)
        for token, row in zip(texts[index, 0], rows, strict=True):
            best = np.argsort(-row)[:3]
            assert [each for each, _ in token.likeliest] == best.tolist()
            assert [logprob for _, logprob in token.likeliest] == pytest.approx(row[best].tolist(), abs=1e-4)


def test_a_text_ends_with_any_of_the_tokens_that_end_it(writer):
    whole = ids_of(texts_of(writer, PROMPTS, NO_END))
    ends = (whole[0, 0][2], whole[1, 0][5])
    assert ends[0] != ends[1]
    options = replace(NO_END, ends=ends)
    for index, prompt in enumerate(PROMPTS):
        assert ids_of(texts_of(writer, PROMPTS, options))[index, 0] == greedy(writer.file, prompt, options)[0]


def test_a_text_ends_when_the_caller_says_so(writer):
    whole = ids_of(texts_of(writer, PROMPTS, NO_END))
    counts = dict.fromkeys(whole, 0)

    def count(token):
        counts[token.prompt, token.sample] += 1
        return counts[token.prompt, token.sample] == token.prompt + 1

    assert ids_of(texts_of(writer, PROMPTS, NO_END, count)) == {key: ids[: key[0] + 1] for key, ids in whole.items()}


def test_texts_end_where_the_model_ends(writer):
    options = replace(NO_END, max_tokens=100)
    lengths = [len(text) for text in texts_of(writer, PROMPTS, options).values()]
    assert lengths == [CONFIG.max_length - len(prompt) for prompt in PROMPTS]


def test_greedy_samples_are_all_the_same(writer):
    texts = ids_of(texts_of(writer, PROMPTS[:2], replace(NO_END, samples=3)))
    assert texts[0, 0] == texts[0, 1] == texts[0, 2] != texts[1, 0]


def test_an_exception_of_the_caller_reaches_the_caller(writer):
    def fail(token):
        raise KeyError(token.id)

    with pytest.raises(KeyError):
        writer.write(PROMPTS, NO_END, fail)
    assert ids_of(texts_of(writer, PROMPTS[:1], NO_END))[0, 0]  # and it still writes


def test_prompts_that_cannot_be_continued_are_refused(writer):
    for prompts, message in (
        ([[]], "expected at least one token"),
        ([[5], [99]], "expected ids from 0 to 22"),
        ([[5] * 40], r"prompt: expected fewer than 40 tokens \(model.max_length\); got 40"),
    ):
        with pytest.raises(RequestError, match=message):
            texts_of(writer, prompts, NO_END)


def test_a_model_that_translates_is_refused():
    file = in_memory(SMALL, random_model(SMALL))
    with pytest.raises(RequestError, match=r"expected a decoder-only model; got model\.kind = 'encoder-decoder'"):
        SamplingEngine.load(file)
    with pytest.raises(RequestError, match=r"expected a decoder-only model; got model\.kind = 'encoder-decoder'"):
        texts_of(CpuEngine(file, "float32"), PROMPTS, NO_END)


@pytest.mark.parametrize(
    "options",
    [
        SamplingOptions(),
        SamplingOptions(top_p=0.7, min_p=0.01, temperature=2.0),
        SamplingOptions(repetition_penalty=1.5),
    ],
    ids=["plain", "cut", "penalty"],
)
def test_a_batch_draws_for_each_prompt_what_it_draws_alone(sampler, options, monkeypatch):
    drawn = replace(NO_END, samples=2, sampling=options)
    together = ids_of(texts_of(sampler, PROMPTS, drawn))
    for index, prompt in enumerate(PROMPTS):
        alone = ids_of(texts_of(sampler, [prompt], drawn))
        assert [together[index, sample] for sample in range(2)] == [alone[0, sample] for sample in range(2)]
    assert together[0, 0] != together[0, 1]
    monkeypatch.setattr(slots, "CACHE_BYTES", 10_000)  # so that texts have to wait
    assert ids_of(texts_of(sampler, PROMPTS, drawn)) == together


def test_a_seed_decides_what_is_drawn(sampler):
    def draw(seed):
        return ids_of(texts_of(sampler, PROMPTS, replace(NO_END, sampling=SamplingOptions(seed=seed))))

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


def test_a_penalty_on_repetition_counts_the_prompt(sampler):
    strong = replace(NO_END, sampling=replace(GREEDY, repetition_penalty=1000.0), max_tokens=10)
    text = ids_of(texts_of(sampler, [[5, 6, 7]], strong))[0, 0]
    assert len({5, 6, 7, *text}) == 13


def test_the_cpu_engine_refuses_to_draw():
    engine = CpuEngine(FILES["rotary"], "float32")
    for options in (SamplingOptions(), replace(GREEDY, repetition_penalty=1.1)):
        with pytest.raises(RequestError, match="expected temperature 0 and no repetition penalty without torch"):
            texts_of(engine, PROMPTS, replace(NO_END, sampling=options))


def test_a_process_that_has_written_ends_in_order():
    """Without care it aborts: a thread of CTranslate2 would drop the callback while Python ends."""
    code = (
        "from test_writing import *\nengine = CpuEngine(FILES['rotary'], 'float32', threads=1)\n"
        "for _ in range(3):\n    texts_of(engine, PROMPTS, replace(NO_END, likeliest=2))\nprint('end')"
    )
    folders = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:0] = {folders}\n{code}"], capture_output=True, text=True
    )
    assert (result.stdout, result.returncode) == ("end\n", 0), result.stderr
