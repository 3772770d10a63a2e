from dataclasses import replace

import pytest
import torch
from small_models import OPTIONS, SMALL, in_memory, random_batch, random_model, run, variants

from sixfold import modelfile
from sixfold.config import Config
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.engines.cpu import CpuEngine
from sixfold.errors import RequestError, SixfoldError
from sixfold.interop.ctranslate2 import check_supported, convert
from sixfold.model.stepper import Stepper, translation_stepper
from sixfold.model.transformer import load_model, weights_of

LENGTH = 12


def is_supported(config):
    try:
        check_supported(config)
        return True
    except SixfoldError:
        return False


VARIANTS = {name: config for name, config in variants().items() if is_supported(config)}


def rows_of(sources, padding):
    return [row[real].tolist() for row, real in zip(sources, padding, strict=True)]


def with_likely_eos(config, seed):
    """Return a model whose <eos> is likely, so that hypotheses end at many lengths."""
    config = replace(config, output_bias=True)
    model = random_model(config, seed)
    with torch.no_grad():
        logits = run(model, config, *random_batch(config, seed=seed))
        model.output.projection.bias[config.eos] += (logits.amax(-1) - logits[..., config.eos]).mean()
    return config, model


def compare(results, expected):
    for hypotheses, candidates in zip(results, expected, strict=True):
        assert [h.tokens for h in hypotheses] == [c.tokens for c in candidates]
        assert [h.score for h in hypotheses] == pytest.approx([c.score for c in candidates], abs=1e-3)
    return sum(len(h.tokens) < len(h.logprobs) for hypotheses in results for h in hypotheses)


def check(config, model, seed=1, patiences=(1.0, 1000.0)):
    """Compare greedy search, and beam 4 with both rules for ending. Return how many hypotheses ended in <eos>."""
    sources, _, padding = random_batch(config, seed=seed)
    engine = CpuEngine(in_memory(config, model), "float32", threads=1)
    begin = torch.full((len(sources),), config.bos)
    prompts = rows_of(sources, padding)
    greedy_options = SearchOptions(beam=1, max_length=LENGTH)
    results = greedy(translation_stepper(model, sources, padding, LENGTH), begin, config.eos, greedy_options)
    ended = compare([[each] for each in results], engine.decode(prompts, greedy_options))
    for patience in patiences:
        engine_options = SearchOptions(beam=4, n_best=2, max_length=LENGTH, patience=patience)
        # CTranslate2 cannot tell that no live hypothesis can win. With this patience it goes on and finds the same.
        options = replace(engine_options, patience=0.0) if patience == 1000.0 else engine_options
        results = beam_search(translation_stepper(model, sources, padding, LENGTH), begin, config.eos, options)
        ended += compare(results, engine.decode(prompts, engine_options))
    return ended


def sample_of(names):
    """Return single options and every third pair of options. The other pairs are marked as slow."""
    return [
        pytest.param(name, marks=pytest.mark.slow) if "+" in name and index % 3 else name
        for index, name in enumerate(names)
    ]


@pytest.mark.parametrize("name", sample_of(VARIANTS))
def test_ctranslate2_decodes_as_the_model_does(name):
    """A pair of options changes the model and not how a search ends, so it needs only one of the rules for ending."""
    patiences = (1.0,) if "+" in name else (1.0, 1000.0)
    check(VARIANTS[name], random_model(VARIANTS[name]), patiences=patiences)


@pytest.mark.parametrize("name", [name for name in VARIANTS if "+" not in name])
def test_ctranslate2_ends_as_the_model_does(name):
    config, model = with_likely_eos(VARIANTS[name], seed=1)
    assert check(config, model) >= 2


@pytest.mark.parametrize("seed", range(2, 10))
def test_ctranslate2_agrees_on_other_weights_and_patience(seed):
    config, model = with_likely_eos(SMALL, seed)
    check(config, model, seed, patiences=(0.5, 0.625, 1.0, 1.125, 1.5, 2.0, 1000.0))


@pytest.mark.parametrize("length_penalty", [0.0, 0.5, 2.0])
def test_length_penalties_agree(length_penalty):
    config, model = with_likely_eos(SMALL, 1)
    sources, _, padding = random_batch(config)
    options = SearchOptions(max_length=LENGTH, length_penalty=length_penalty)
    results = beam_search(translation_stepper(model, sources, padding, LENGTH), torch.full((3,), 1), 2, options)
    engine = CpuEngine(in_memory(config, model), "float32")
    compare(results, engine.decode(rows_of(sources, padding), replace(options, patience=1000.0)))


DECODERS = {
    name: replace(config, kind="decoder")
    for name, config in variants(pairs=False).items()
    if is_supported(replace(config, kind="decoder"))
}


@pytest.mark.parametrize("name", DECODERS)
def test_decoder_only_models_continue_alike(name):
    config, model = with_likely_eos(DECODERS[name], 1)
    _, prompts, _ = random_batch(config)
    engine = CpuEngine(in_memory(config, model), "float32")

    def stepper():
        fed = Stepper(model, 5 + LENGTH)
        fed.feed(prompts[:, :-1])
        return fed

    greedy_options = SearchOptions(beam=1, max_length=LENGTH)
    results = greedy(stepper(), prompts[:, -1], config.eos, greedy_options)
    compare([[each] for each in results], engine.decode(prompts.tolist(), greedy_options))
    four = SearchOptions(beam=4, n_best=2, max_length=LENGTH, patience=1.0)
    compare(beam_search(stepper(), prompts[:, -1], config.eos, four), engine.decode(prompts.tolist(), four))


@pytest.mark.parametrize("change", ["cosine", "additive", "token types", "output transform", "sliding window"])
def test_what_ctranslate2_cannot_run_is_refused_by_name(change):
    config = replace(SMALL, **OPTIONS[change])
    setting = next(iter(OPTIONS[change]))
    with pytest.raises(RequestError, match=rf"CTranslate2 cannot run model\.{setting} = .*\(.*\)"):
        CpuEngine(in_memory(config, random_model(config)))


def test_an_encoder_has_nothing_to_decode():
    with pytest.raises(RequestError, match=r"model\.kind = 'encoder'"):
        CpuEngine(in_memory(replace(SMALL, kind="encoder"), random_model(replace(SMALL, kind="encoder"))))


def test_all_refusals_come_at_once():
    config = replace(SMALL, compatibility="cosine", token_types=2)
    with pytest.raises(RequestError, match=r"model\.compatibility.*model\.token_types"):
        CpuEngine(in_memory(config, random_model(config)))


@pytest.mark.parametrize("storage", ["int8", "bfloat16"])
def test_stored_weights_run_as_they_are_stored(storage, tmp_path):
    """Computed in float32, CTranslate2 must give what our model gives with the weights as stored."""
    config = replace(SMALL, d_model=64, heads=4, d_ff=128)
    path = tmp_path / "m.safetensors"
    modelfile.save(path, Config(model=config), weights_of(random_model(config)), storage=storage)
    file = modelfile.load(path)
    model = load_model(config, file.weights()).eval()
    check(config, model)
    sources, _, padding = random_batch(config)
    options = SearchOptions(max_length=LENGTH, patience=1.0)
    results = beam_search(translation_stepper(model, sources, padding, LENGTH), torch.full((3,), 1), 2, options)
    compare(results, CpuEngine(file, "float32").decode(rows_of(sources, padding), options))


def test_int8_computation_scores_as_float32_does_up_to_rounding():
    config = replace(SMALL, d_model=64, heads=4, d_ff=128)
    model = random_model(config, spread=0.02)
    sources, _, padding = random_batch(config)
    rows, options = rows_of(sources, padding), SearchOptions(beam=1, max_length=1)
    exact, close = (
        CpuEngine(in_memory(config, model), compute).decode(rows, options) for compute in ("float32", "int8")
    )
    unrelated = CpuEngine(in_memory(config, random_model(config, seed=2, spread=0.02)), "float32").decode(rows, options)
    scores = [[candidate.score for (candidate,) in each] for each in (exact, close, unrelated)]
    assert scores[0] == pytest.approx(scores[1], abs=0.05)
    assert scores[0] != pytest.approx(scores[2], abs=0.05)


def test_shared_weights_are_written_once(tmp_path):
    sizes = {}
    for storage in ("float32", "bfloat16", "int8"):
        path = tmp_path / f"{storage}.safetensors"
        modelfile.save(path, Config(model=SMALL), weights_of(random_model(SMALL)), storage=storage)
        sizes[storage] = len(convert(modelfile.load(path), [str(index) for index in range(23)])["model.bin"])
    assert sizes["bfloat16"] == sizes["float32"]
    assert sizes["int8"] < 0.6 * sizes["float32"]
