"""The torch engine compared with the reference search, on a CPU, and on a GPU where there is one."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from small_models import SMALL, in_memory, random_model, variants

from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.engines.gpu import GpuEngine
from sixfold.model.stepper import translation_stepper

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"))]
MODELS = {name: config for name, config in variants(pairs=False).items() if not config.token_types}


def random_sources(count, longest=20, seed=3):
    random = np.random.default_rng(seed)
    return [[*random.integers(4, SMALL.vocab, random.integers(1, longest)).tolist(), 2] for _ in range(count)]


def reference_search(model, config, sources, options):
    """Decode with the reference search. Sentences with the same limit share a batch."""
    device = next(model.parameters()).device
    results = [None] * len(sources)
    limits = [min(options.max_target_length(len(source)), config.max_length) for source in sources]
    for limit in set(limits):
        indices = [index for index, own_limit in enumerate(limits) if own_limit == limit]
        padded, padding = padded_batch([sources[index] for index in indices], device)
        stepper = translation_stepper(model, padded, padding, limit)
        start, limited = torch.full((len(indices),), config.bos, device=device), replace(options, max_length=limit)
        if options.beam == 1:
            decoded = [[hypothesis] for hypothesis in greedy(stepper, start, config.eos, limited)]
        else:
            decoded = beam_search(stepper, start, config.eos, limited)
        for index, hypotheses in zip(indices, decoded, strict=True):
            results[index] = hypotheses
    return results


def padded_batch(sources, device):
    lengths = torch.tensor([len(source) for source in sources], device=device)
    padded = torch.zeros(len(sources), int(lengths.max()), dtype=torch.long, device=device)
    for row, source in zip(padded, sources, strict=True):
        row[: len(source)] = torch.tensor(source)
    return padded, torch.arange(padded.size(1), device=device)[None] < lengths[:, None]


def engine_of(config, device="cpu", seed=1):
    model = random_model(config, seed).to(device)
    return GpuEngine(model, config), model


def assert_same(results, expected):
    assert len(results) == len(expected)
    for hypotheses, references in zip(results, expected, strict=True):
        assert [hypothesis.tokens for hypothesis in hypotheses] == [hypothesis.tokens for hypothesis in references]
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            assert hypothesis.score == pytest.approx(reference.score, abs=1e-4)
            assert hypothesis.logprobs == pytest.approx(reference.logprobs, abs=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "options",
    [
        SearchOptions(beam=1, max_length=10),
        SearchOptions(beam=4, n_best=3, max_length=10),
        SearchOptions(beam=3, length_penalty=0.0, max_length=10),
        SearchOptions(beam=3, length_penalty=0.6, min_length=5, max_length=10),
        SearchOptions(beam=4, n_best=2, patience=1.0, max_length=10),
        SearchOptions(beam=12, n_best=12, max_length=10),
        SearchOptions(beam=5, min_length=0, max_length=22, max_ratio=0.5),
    ],
    ids=str,
)
def test_it_finds_what_the_reference_search_finds(options, device):
    engine, model = engine_of(SMALL, device)
    sources = random_sources(20)  # more than there are slots
    assert_same(engine.search(sources, options), reference_search(model, SMALL, sources, options))


@pytest.mark.parametrize("name", MODELS)
def test_every_option_of_the_model_is_decoded(name):
    config = MODELS[name]
    engine, model = engine_of(config)
    sources = random_sources(9)
    for options in (SearchOptions(beam=1, max_length=8), SearchOptions(beam=3, n_best=2, max_length=24)):
        assert_same(engine.search(sources, options), reference_search(model, config, sources, options))


@pytest.mark.parametrize("device", DEVICES)
def test_slots_are_used_again_by_sentences_of_other_lengths(device):
    """The lengths of targets differ: long ones keep their slots while many short ones begin and end."""
    config = replace(SMALL, max_length=100)
    engine, model = engine_of(config, device, seed=5)
    sources = random_sources(60, longest=15)
    options = SearchOptions(beam=2, max_length=80, max_ratio=1.3)
    lengths = [len(hypotheses[0].tokens) for hypotheses in engine.search(sources, options)]
    assert len(set(lengths)) > 5
    assert_same(engine.search(sources, options), reference_search(model, config, sources, options))


@pytest.mark.parametrize("beam", [2, 4])
def test_hypotheses_that_end_among_others_are_traced_back(beam):
    """If a high-ranked candidate ends, the hypotheses that continue are not the first candidates."""
    config = replace(SMALL, output_bias=True)
    engine, model = engine_of(config)
    with torch.no_grad():
        model.output.projection.bias[config.eos] += 4
    options = SearchOptions(beam=beam, n_best=beam, max_length=12)
    sources = random_sources(20)
    results = engine.search(sources, options)
    assert len({len(hypothesis.tokens) for hypotheses in results for hypothesis in hypotheses}) > 5
    assert_same(results, reference_search(model, config, sources, options))


def test_two_calls_and_other_options_do_not_disturb_each_other():
    engine, model = engine_of(SMALL)
    for seed in range(4):
        sources = random_sources(5 + seed, seed=seed)
        for options in (SearchOptions(beam=1, max_length=9), SearchOptions(beam=2, max_length=9)):
            assert_same(engine.search(sources, options), reference_search(model, SMALL, sources, options))


@pytest.mark.parametrize("device", DEVICES)
def test_engines_agree_token_for_token(device):
    cpu = pytest.importorskip("sixfold.engines.cpu")
    model = random_model(SMALL)
    file = in_memory(SMALL, model)
    engines = cpu.CpuEngine(file, "float32"), GpuEngine.load(file, device, "float32")
    sources = random_sources(30)
    targets = [[5, 6, 7], [9], *[[4, 8, 15, 16, 22]] * 28]
    options = SearchOptions(beam=4, n_best=2, max_length=12, patience=2.0)
    decoded = [engine.decode(sources, options) for engine in engines]
    assert [[hypothesis.tokens for hypothesis in hypotheses] for hypotheses in decoded[0]] == [
        [hypothesis.tokens for hypothesis in hypotheses] for hypotheses in decoded[1]
    ]
    forced = [engine.decode(sources, options, [target[:2] for target in targets]) for engine in engines]
    for target, *results in zip(targets, *forced, strict=True):
        assert [hypotheses[0].tokens[: len(target[:2])] for hypotheses in results] == [target[:2]] * 2
        assert results[0][0].tokens == results[1][0].tokens
    scores = [engine.score(sources, targets) for engine in engines]
    for target, scores_cpu, scores_gpu in zip(targets, *scores, strict=True):
        assert len(scores_cpu) == len(target) + 1
        assert scores_cpu == pytest.approx(scores_gpu, abs=1e-4)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
class TestKernels:
    """The kernels give what torch computes."""

    @pytest.mark.parametrize(("queries", "heads", "kv_heads", "width"), [(1, 8, 8, 64), (4, 8, 2, 64), (3, 4, 4, 24)])
    def test_few_queries_attend_as_in_torch(self, queries, heads, kv_heads, width):
        kernels = pytest.importorskip("sixfold.engines.gpu_kernels")
        torch.manual_seed(1)
        for keys in (16, 70, 256):
            query = torch.randn(5, queries, heads, width, device="cuda").transpose(1, 2)
            key, value = (torch.randn(5, keys, kv_heads, width, device="cuda").transpose(1, 2) for _ in range(2))
            mask = torch.rand(5, 1, queries, keys, device="cuda") > 0.5
            mask[..., 0] = True
            output = kernels.attend_few_queries(query, key, value, mask, False)
            expected = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, attn_mask=mask, enable_gqa=heads != kv_heads
            )
            torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-4)

    @pytest.mark.parametrize("vocab", [32000, 6001])
    @pytest.mark.parametrize("count", [1, 8])
    def test_the_likeliest_are_found_in_one_reading(self, vocab, count):
        kernels = pytest.importorskip("sixfold.engines.gpu_kernels")
        logits = 3 * torch.randn(40, vocab, device="cuda", generator=torch.Generator("cuda").manual_seed(2))
        logprobs, tokens = kernels.top_tokens(logits, count)
        expected = logits.log_softmax(-1).topk(count)
        assert torch.equal(tokens, expected.indices)
        torch.testing.assert_close(logprobs, expected.values, rtol=1e-4, atol=1e-4)

    def test_a_larger_model_is_decoded_as_by_the_reference_search(self):
        config = replace(SMALL, vocab=3000, d_model=128, d_ff=256, max_length=64)
        engine, model = engine_of(config, "cuda")
        assert engine.kernels is not None
        random = np.random.default_rng(4)
        sources = [[*random.integers(4, 3000, random.integers(1, 30)).tolist(), 2] for _ in range(80)]
        for options in (SearchOptions(beam=1, max_ratio=2.0), SearchOptions(beam=4, n_best=2, max_ratio=2.0)):
            options = replace(options, max_length=63)
            assert_same(engine.search(sources, options), reference_search(model, config, sources, options))
