"""A trace has the arrays of the forward pass by name, with fitting labels; a head is switched off everywhere."""

from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load

import sixfold
from sixfold import modelfile
from sixfold.engines.cpu import CpuEngine
from sixfold.errors import RequestError
from sixfold.explorer.explore import Explorer, explore
from sixfold.explorer.forward import forward
from sixfold.explorer.heads import Head, ablate_heads, kinds_of
from sixfold.translation.translator import Translator


@pytest.fixture(scope="module")
def trace(trained_models):
    return explore("我爱猫。", model=trained_models["tagged"], source="zh", target="en")


def test_it_contains_the_arrays_of_the_forward_pass(trace):
    assert (trace.translation, trace.languages) == ("I love cats.", ("zh", "en"))
    assert trace.source.texts == ["<en>", "▁", "我", "爱", "猫", "。", "<eos>"]
    assert (trace.target.texts[0], trace.predicted.texts[-1]) == ("<bos>", "<eos>")
    assert trace.target.ids[1:] == trace.predicted.ids[:-1]
    arrays = forward(trace.model, np.array([trace.source.ids]), np.array([trace.target.ids]))
    assert list(arrays) == trace.names
    assert np.array_equal(arrays["logits"][0], trace["logits"])
    assert np.array_equal(arrays["encoder.embedding.position"], trace["encoder.embedding.position"])
    assert sixfold.explore is explore


def test_rows_sum_to_one_and_masked_weights_are_exactly_zero(trace):
    for kind, layers in trace.kinds.items():
        weights = trace.attention(kind)
        rows, columns = trace.labels(kind)
        assert weights.shape == (layers, trace.config.heads, len(rows), len(columns))
        assert np.abs(weights.sum(-1) - 1).max() < 1e-6
    later = np.triu(np.ones(trace.attention("decoder").shape[-2:], bool), 1)
    assert later.any()
    assert (trace.attention("decoder")[..., later] == 0).all()
    assert np.array_equal(trace.attention("cross", 0, 1), trace["decoder.layers.0.cross_attention.weights"][1])


def test_pieces_are_joined_into_words(trained_models):
    trace = explore("I love mountains and I", "我", model=trained_models["tagged"], source="en", target="zh")
    words, rows, columns = trace.by_word("encoder", trace.attention("encoder", 0, 0))
    assert {"love", "mountains", "and"} < set(columns)
    assert len(columns) < len(trace.source.texts)
    assert rows == columns
    assert words.shape == (len(rows), len(columns))
    assert np.abs(words.sum(-1) - 1).max() < 1e-6
    cross, rows, _ = trace.by_word("cross", trace.attention("cross", 0, 0))
    assert rows[-1] == "<eos>"
    assert np.abs(cross.sum(-1) - 1).max() < 1e-6


def test_steps_have_the_written_piece_and_its_alternatives(trace):
    steps = trace.steps(3)
    assert [step.read for step in steps] == trace.target.texts
    assert [step.wrote for step in steps] == trace.predicted.texts
    for index, step in enumerate(steps):
        probabilities = trace["probabilities"][index]
        assert step.probability == probabilities[trace.predicted.ids[index]]
        assert [choice.probability for choice in step.choices] == sorted(probabilities, reverse=True)[:3]
        assert step.rank == (probabilities > step.probability).sum()
        assert step.entropy == pytest.approx(-(probabilities * np.log2(probabilities + 1e-30)).sum(), abs=1e-4)
    forced = explore("我爱猫。", "you watch dogs!", trace.model, "zh", "en")
    assert forced.translation == "you watch dogs!"
    assert max(step.rank for step in forced.steps()) > 0


def test_a_head_that_is_off_adds_nothing_to_the_output(trace):
    head = Head("encoder", 0, 1)
    off = explore(trace.text, trace.translation, trace.model, "zh", "en", ["encoder.0.1"])
    assert (off.off, trace.off) == ((head,), ())
    module = f"{head.module_path}."
    assert np.array_equal(off[f"{module}weights"], trace[f"{module}weights"])
    concatenation = trace[f"{module}concatenation"].copy()
    concatenation[:, trace.config.d_head : 2 * trace.config.d_head] = 0
    weight, bias = (trace.model.weight(f"{module}output.{name}") for name in ("weight", "bias"))
    assert np.allclose(off[f"{module}output"], concatenation @ weight.T + bias, atol=1e-5)
    assert not np.allclose(off["logits"], trace["logits"], atol=1e-2)


@pytest.mark.parametrize("storage", ["float32", "int8"])
def test_every_engine_leaves_the_same_heads_out(trained_models, tmp_path, storage):
    model = modelfile.load(trained_models["zh-en"])
    modelfile.save(tmp_path / "a.safetensors", model.config, model.weights(), model.tokenizer, storage=storage)
    heads = [Head("cross", 0, 0), Head("encoder", 0, 1)]
    file = ablate_heads(modelfile.load(tmp_path / "a.safetensors"), heads)
    source, target = ([*file.tokenizer.encode(text)] for text in ("我爱猫", "I love cats"))
    source.append(file.config.model.eos)
    engine = CpuEngine(file, "float32", 1)
    (logprobs,) = engine.score([source], [target])
    engine.close()
    probabilities = forward(file, np.array([source]), np.array([[file.config.model.bos, *target]]))["probabilities"][0]
    expected = [np.log(probabilities[index, token]) for index, token in enumerate([*target, file.config.model.eos])]
    assert np.allclose(logprobs, expected, atol=2e-4)


def test_arrays_travel_as_safetensors(trace):
    name = "decoder.layers.0.self_attention.weights"
    arrays = load(trace.safetensors([name, "logits"]))
    assert np.array_equal(arrays[name], trace[name])
    mask = np.unpackbits(arrays["decoder.layers.0.self_attention.mask"], axis=-1)[:, : len(trace.target)]
    assert np.array_equal(mask.astype(bool), np.tri(len(trace.target), dtype=bool))
    half = load(trace.safetensors([name], half=True))
    assert half[name].dtype == np.float16
    assert np.allclose(half[name], trace[name], atol=1e-3)
    scores = "decoder.layers.0.self_attention.masked_scores"
    assert np.array_equal(np.isneginf(load(trace.safetensors([scores], half=True))[scores]), np.isneginf(trace[scores]))
    key = name.replace("weights", "key")
    row = load(trace.safetensors([name, key, "logits"], row=2))
    assert np.array_equal(row[name], trace[name][:, 2])
    assert np.array_equal(row["logits"], trace["logits"][2])
    assert np.array_equal(row[key], trace[key])


def test_models_with_one_stack_can_be_explored(make_model):
    encoder, _ = make_model(kind="encoder")
    encoded = explore("a black cat", model=encoder)
    assert set(encoded.kinds) == {"encoder"}
    assert (encoded.source.texts[0], encoded.source.texts[-1]) == ("<bos>", "<eos>")
    with pytest.raises(RequestError, match="a model with a decoder"):
        encoded.steps()
    decoder, _ = make_model(kind="decoder")
    decoded = explore("a black cat", model=decoder, off=["decoder.1.2"])
    assert (set(decoded.kinds), decoded.source) == ({"decoder"}, None)
    assert decoded.predicted.texts[:-1] == decoded.target.texts[1:]
    assert len(decoded.steps()) == len(decoded.target)
    with pytest.raises(RequestError, match="expected decoder in a model of the kind decoder; got cross"):
        explore("a black cat", model=decoder, off=["cross.1.2"])


def test_the_latest_trace_is_kept(trained_models):
    with Translator(trained_models["tagged"], "cpu", 1) as translator:
        explorer = Explorer(translator, max_bytes=1)
        first = explorer.explore("我爱猫", None, "zh", "en")
        assert explorer.explore("我爱猫", None, "zh", "en") is first
        off = explorer.explore("我爱猫", None, "zh", "en", [Head("cross", 0, 0)])
        assert off is not first
        assert explorer.explore("我爱猫", None, "zh", "en") is not first  # only one fits
        explorer.close()


def test_one_of_several_models_is_chosen_by_its_name(trained_models, tmp_path):
    path = tmp_path / "other.safetensors"
    file = modelfile.load(trained_models["zh-en"])
    head = Head("cross", 0, 0)
    weights = {name: ablate_heads(file, [head, Head("cross", 0, 1)]).weight(name) for name in file.weights()}
    modelfile.save(path, file.config, weights, file.tokenizer, file.card)
    with Translator([trained_models["zh-en"], path], "cpu", 1) as translator:
        explorer = Explorer(translator)
        first, second = (explorer.explore("我爱猫", "I love cats", model=name) for name in (None, "other"))
        assert (first.model.name, second.model.name) == ("zh-en", "other")
        assert not np.allclose(first["logits"], second["logits"])
        with pytest.raises(RequestError, match="expected one of zh-en, other; got 'third'"):
            explorer.explore("我爱猫", model="third")


def test_mistakes_are_named(trace, trained_models):
    for arguments, match in (
        ({"text": "  "}, "text: expected a sentence; got nothing"),
        ({"text": "我" * 200}, "expected at most 62 tokens"),
        ({"text": "我", "translation": "I " * 200}, "translation: expected at most"),
        ({"text": "我", "off": ["cross.9.0"]}, "layer: expected 0 to 0; got 9"),
        ({"text": "我", "off": ["cross.0.7"]}, "head: expected 0 to 1; got 7"),
        ({"text": "我", "off": ["across.0.7"]}, "expected a name such as"),
    ):
        with pytest.raises(RequestError, match=match):
            explore(**{"model": trained_models["tagged"], "source": "zh", "target": "en", **arguments})
    with pytest.raises(RequestError, match=r"got 'nothing\.weights'") as error:
        trace["nothing.weights"]
    assert "encoder.layers.0.self_attention.weights" in error.value.hint
    with pytest.raises(RequestError, match=r"row: expected 0 to"):
        trace.safetensors(["logits"], row=99)
    assert kinds_of(replace(trace.config, kind="encoder")) == {"encoder": 1}
