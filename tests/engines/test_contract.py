"""What the protocol `Engine` promises, checked for every engine. The GPU engine runs on a CPU here."""

import math
from dataclasses import replace
from itertools import chain

import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model

from sixfold.alignment_heads import AligningHeads
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.engines.gpu import GpuEngine
from sixfold.errors import RequestError
from sixfold.explorer.forward import forward, log_softmax

ENGINES = {
    "cpu": lambda file: CpuEngine(file, "float32"),
    "gpu": lambda file: GpuEngine.load(file, "cpu", "float32"),
}
SOURCES = [[5, 6, 7, 8, 2], [9, 2], [4, 5, 4, 5, 4, 2]]
PREFIXES = [[9, 9, 9, 4, 4], [], [10]]
TARGETS = [[7, 8], [], [4, 5, 6, 9, 8]]
SEARCH = SearchOptions(beam=4, n_best=2, max_length=9, patience=2.0)
FILE = in_memory(SMALL, random_model(SMALL))
DECODER = replace(SMALL, kind="decoder")


@pytest.fixture(scope="module", params=ENGINES)
def engine(request):
    return ENGINES[request.param](FILE)


@pytest.fixture(scope="module")
def engines():
    return [make(FILE) for make in ENGINES.values()]


@pytest.fixture(scope="module")
def decoder_only():
    return CpuEngine(in_memory(DECODER, random_model(DECODER)), "float32")


def logprobs_of(file, source, target):
    """Return the log-probability of each token of a target and of its <eos>, computed by the NumPy forward pass."""
    config = file.config.model
    if config.kind == "decoder":
        logits = forward(file, None, np.array([[*source, *target]]))["logits"][0][len(source) - 1 :]
    else:
        logits = forward(file, np.array([source]), np.array([[config.bos, *target]]))["logits"][0]
    return log_softmax(logits)[np.arange(len(target) + 1), [*target, config.eos]]


def tokens_of(results):
    return [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in results]


@pytest.mark.parametrize(
    "options",
    [SEARCH, replace(SEARCH, no_repeat=1), replace(SEARCH, no_repeat=2), replace(SEARCH, banned=(8, 9))],
    ids=["free", "no token twice", "no pair twice", "banned"],
)
@pytest.mark.parametrize("prefixes", [None, PREFIXES], ids=["whole", "from prefixes"])
def test_engines_decode_alike_under_every_constraint(engines, options, prefixes):
    results, references = (engine.decode(SOURCES, options, prefixes) for engine in engines)
    assert tokens_of(results) == tokens_of(references)
    for hypothesis, reference in zip(chain(*results), chain(*references), strict=True):
        assert hypothesis.score == pytest.approx(reference.score, abs=1e-3)


def test_constraints_hold_behind_a_prefix_that_breaks_them(engine):
    for hypothesis in engine.decode(SOURCES[:1], replace(SEARCH, banned=(9, 8)), PREFIXES[:1])[0]:
        assert hypothesis.tokens[:5] == PREFIXES[0]
        assert {9, 8}.isdisjoint(hypothesis.tokens[5:])
    for hypothesis in engine.decode(SOURCES[:1], replace(SEARCH, no_repeat=1), PREFIXES[:1])[0]:
        continuation = hypothesis.tokens[5:]
        assert hypothesis.tokens[:5] == PREFIXES[0]
        assert continuation
        assert len({9, 4, *continuation}) == 2 + len(continuation)


def test_the_score_leaves_out_the_probability_of_the_prefix_but_counts_its_length(engine):
    (best,) = engine.decode(SOURCES[:1], replace(SEARCH, n_best=1), PREFIXES[:1])[0]
    assert len(best.tokens) == SEARCH.max_length  # so it was cut, and has no <eos>
    expected = logprobs_of(FILE, SOURCES[0], best.tokens)[5:9].sum() / 9
    assert best.score == pytest.approx(expected, abs=1e-3)


def test_a_limit_below_the_length_of_a_prefix_cuts_it(engine):
    (best,) = engine.decode(SOURCES[:1], SearchOptions(beam=2, max_length=3), PREFIXES[:1])[0]
    assert best.tokens == PREFIXES[0][:3]


def test_score_is_the_log_probability_of_each_token_and_of_the_end(engine):
    for source, target, logprobs in zip(SOURCES, TARGETS, engine.score(SOURCES, TARGETS), strict=True):
        assert logprobs == pytest.approx(logprobs_of(FILE, source, target), abs=1e-4)


def test_alternatives_begin_with_the_likeliest_next_tokens(engine):
    for prefix in ([9, 10], []):
        options = replace(SEARCH, n_best=3, banned=(19,))
        alternatives = engine.alternatives(SOURCES[0], prefix, options)
        logits = forward(FILE, np.array([SOURCES[0]]), np.array([[SMALL.bos, *prefix]]))["logits"][0][-1]
        logits[[SMALL.pad, SMALL.bos, SMALL.eos, SMALL.unk, 19]] = -np.inf
        assert [target.tokens[len(prefix)] for target in alternatives] == np.argsort(-logits)[:3].tolist()
        for target in alternatives:
            assert target.tokens[: len(prefix)] == prefix
            assert 19 not in target.tokens
            logprobs = logprobs_of(FILE, SOURCES[0], target.tokens)[len(prefix) :]
            length = len(target.tokens) + (len(target.tokens) < SEARCH.max_length)
            assert target.score == pytest.approx(logprobs[: length - len(prefix)].sum() / length, abs=1e-3)


def test_engines_offer_the_same_alternatives(engines):
    for prefix in ([9, 10], [], [8, 8]):
        alternatives, references = (
            engine.alternatives(SOURCES[0], prefix, replace(SEARCH, n_best=4)) for engine in engines
        )
        assert [target.tokens for target in alternatives] == [target.tokens for target in references]


def test_no_alternatives_are_left_at_the_limit(engine):
    assert engine.alternatives(SOURCES[0], [9] * 9, SEARCH) == []


@pytest.mark.parametrize(
    ("kv_heads", "aligning"),
    [
        (4, None),
        (2, None),
        (4, AligningHeads(0, (3, 1), True)),
        (4, AligningHeads(1, (2,), False)),
        (2, AligningHeads(0, (2, 3), True)),  # a whole group that shares keys
        (2, AligningHeads(1, (3,), False)),
        (1, AligningHeads(0, (1, 3), False)),
    ],
    ids=str,
)
def test_align_is_the_attention_of_the_heads_on_the_card(kv_heads, aligning):
    config = replace(SMALL, kv_heads=kv_heads)
    file = in_memory(config, random_model(config))
    expected_targets = CpuEngine(file, "float32").decode(SOURCES, SEARCH)
    file = replace(file, card=aligning.to_card() if aligning else {})
    for make in ENGINES.values():
        engine = make(file)
        for source, target, weights in zip(SOURCES, TARGETS, engine.align(SOURCES, TARGETS), strict=True):
            trace = forward(file, np.array([source]), np.array([[SMALL.bos, *target]]))
            layer, heads, shifted = (1, (0, 1, 2, 3), False) if aligning is None else vars(aligning).values()
            steps = trace[f"decoder.layers.{layer}.cross_attention.weights"][0, list(heads)].mean(axis=0)
            expected = steps[1:] if shifted else steps[: len(target)]
            assert weights.shape == (len(target), len(source))
            np.testing.assert_allclose(weights, expected, atol=1e-5)
        # Another order of heads is the same model.
        assert tokens_of(engine.decode(SOURCES, SEARCH)) == tokens_of(expected_targets)


BAD_TARGETS = {
    "too few": ([[7]], "target: expected one for each of 3 sources; got 1"),
    "too many": ([[7]] * 4, "target: expected one for each of 3 sources; got 4"),
    "an id too large": ([[7], [23], []], "target: expected ids from 0 to 22; got 23 to 23"),
    "a negative id": ([[7], [-1, 4], []], "target: expected ids from 0 to 22; got -1 to 4"),
    "too long": ([[7], [4] * 24, []], r"target: expected at most 23 tokens \(model\.max_length = 24\); got 24"),
    "words": ([["a", "b"], [7], [8]], "target: expected a list of token ids; got"),
    "fractions": ([[1.5], [7], [8]], "target: expected a list of token ids; got"),
    "lists of lists": ([[[7], [8, 9]], [7], [8]], "target: expected a list of token ids; got"),
}


@pytest.mark.parametrize("targets", BAD_TARGETS)
def test_targets_that_do_not_fit_are_refused_before_any_work(engine, targets):
    bad_targets, message = BAD_TARGETS[targets]
    for call in (engine.score, engine.align):
        with pytest.raises(RequestError, match=message):
            call(SOURCES, bad_targets)
    with pytest.raises(RequestError, match=message.replace("target", "prefix", 1)):
        engine.decode(SOURCES, SEARCH, bad_targets)


BAD_SOURCES = {
    "empty": ([], "expected at least one token; got none"),
    "too long": ([4] * 25, r"expected at most 24 tokens \(model\.max_length\); got 25"),
    "an id too large": ([5, 23, 2], "expected ids from 0 to 22; got 2 to 23"),
    "a negative id": ([-1, 2], "expected ids from 0 to 22; got -1 to 2"),
    "words": (["a", "b"], "expected a list of token ids; got"),
}


@pytest.mark.parametrize("name", BAD_SOURCES)
def test_sources_that_do_not_fit_are_refused_by_every_call(engine, name):
    source, message = BAD_SOURCES[name]
    calls = (
        lambda: engine.decode([source]),
        lambda: engine.score([source], [[7]]),
        lambda: engine.align([source], [[7]]),
        lambda: engine.alternatives(source, [7], SEARCH),
    )
    for call in calls:
        with pytest.raises(RequestError, match=f"source: {message}"):
            call()


@pytest.mark.parametrize("banned", [(23,), (-1,)])
def test_banned_ids_outside_of_the_vocabulary_are_refused(engine, banned):
    options = replace(SEARCH, banned=banned)
    for call in (lambda: engine.decode(SOURCES, options), lambda: engine.alternatives(SOURCES[0], [7], options)):
        with pytest.raises(RequestError, match=r"decoding\.banned: expected ids from 0 to 22"):
            call()
    for prefix in ([23], [4] * 24):
        with pytest.raises(RequestError, match="prefix: expected"):
            engine.alternatives(SOURCES[0], prefix, SEARCH)


def test_the_longest_target_that_fits_is_read(engine):
    target = [4, 5] * 11 + [6]
    assert len(engine.score([SOURCES[0]], [target])[0]) == 24
    assert engine.align([SOURCES[0]], [target])[0].shape == (23, 5)


def test_nothing_in_is_nothing_out(engine):
    assert engine.decode([]) == engine.score([], []) == engine.align([], []) == []


def test_numpy_ids_are_taken_as_lists_are(engine):
    sources, targets = ([np.array(ids, np.int64) for ids in side] for side in (SOURCES, TARGETS))
    assert tokens_of(engine.decode(sources, SEARCH)) == tokens_of(engine.decode(SOURCES, SEARCH))
    assert tokens_of(engine.decode(sources, SEARCH, targets)) == tokens_of(engine.decode(SOURCES, SEARCH, TARGETS))
    assert engine.score(sources, targets) == engine.score(SOURCES, TARGETS)


def test_a_decoder_only_model_scores_what_follows_a_prompt(decoder_only):
    file = in_memory(DECODER, random_model(DECODER))
    for source, target, logprobs in zip(SOURCES, TARGETS, decoder_only.score(SOURCES, TARGETS), strict=True):
        assert logprobs == pytest.approx(logprobs_of(file, source, target), abs=1e-4)
    (best,) = decoder_only.decode(SOURCES[:1], replace(SEARCH, n_best=1))[0]
    total = math.fsum(decoder_only.score(SOURCES[:1], [best.tokens])[0][: SEARCH.max_length])
    assert len(best.tokens) == SEARCH.max_length
    assert best.score == pytest.approx(total / SEARCH.max_length, abs=1e-3)
    with pytest.raises(RequestError, match="target: expected at most 4 tokens"):
        decoder_only.score([[5] * 20], [[6] * 5])


@pytest.mark.parametrize("beam", [1, 3])
def test_a_decoder_only_model_continues_each_prompt_of_a_batch_as_if_it_were_alone(beam):
    file = in_memory(DECODER, random_model(DECODER))
    options, prompts = SearchOptions(beam=beam, max_length=6), [[5, 6, 7, 8, 9], [4], [9, 3], [8, 7]]
    for threads in (1, 2):
        engine = CpuEngine(file, "float32", threads)
        alone = [engine.decode([prompt], options)[0] for prompt in prompts]
        together = engine.decode(prompts, options)
        assert tokens_of(together) == tokens_of(alone)
        for hypotheses, references in zip(together, alone, strict=True):
            assert [each.score for each in hypotheses] == pytest.approx([each.score for each in references], abs=1e-4)


def test_a_long_text_of_a_decoder_only_model_is_scored_to_its_end():
    config = replace(DECODER, positions="rotary", max_length=1300)
    file = in_memory(config, random_model(config))
    text = [5 + index % 7 for index in range(1200)]
    (logprobs,) = CpuEngine(file, "float32").score([[4]], [text])
    assert logprobs == pytest.approx(logprobs_of(file, [4], text), abs=1e-3)


def test_what_a_decoder_only_model_cannot_do_is_refused_by_name(decoder_only):
    calls = {
        "prefixes": lambda: decoder_only.decode(SOURCES, SEARCH, PREFIXES),
        "alternatives": lambda: decoder_only.alternatives(SOURCES[0], [7], SEARCH),
        "align": lambda: decoder_only.align(SOURCES, TARGETS),
    }
    for name, call in calls.items():
        with pytest.raises(RequestError, match=f"{name}: expected an encoder-decoder; got model.kind = 'decoder'"):
            call()


@pytest.mark.parametrize(("name", "kind"), [("cpu", "encoder"), ("gpu", "encoder"), ("gpu", "decoder")])
def test_kinds_that_an_engine_cannot_run_are_refused_when_it_is_opened(name, kind):
    config = replace(SMALL, kind=kind)
    with pytest.raises(RequestError, match=f"{kind}"):
        ENGINES[name](in_memory(config, random_model(config)))
