"""Exported graphs, run by ONNX Runtime, compared with the forward pass in NumPy."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import small_checkpoints as checkpoints
import torch
from small_models import OPTIONS, SMALL, in_memory, random_batch, random_model

from sixfold.cli.export import difference
from sixfold.decoding.constraints import no_repeat
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.search import beam_search, greedy
from sixfold.errors import RequestError, SixfoldError
from sixfold.explorer.forward import forward
from sixfold.interop.exporting import Export, export
from sixfold.interop.onnx import check_supported, write_onnx
from sixfold.interop.sources import read_source
from sixfold.model.stepper import translation_stepper
from sixfold.translation.direction import languages_of, special_tokens


def is_supported(config):
    try:
        check_supported(config)
    except RequestError:
        return False
    return True


SHAPES = {name: replace(SMALL, **change) for name, change in OPTIONS.items()}
SHAPES |= {
    "as is": SMALL,
    "several": replace(SMALL, norm="rms", norm_position="pre", kv_heads=2, feed_forward="swiglu"),
}


class Graphs:
    """The graphs of a folder, run by ONNX Runtime as a stepper of this project's searches."""

    def __init__(self, folder, source, mask):
        encoder, self.decoder = (
            onnxruntime.InferenceSession(str(folder / f"{name}.onnx")) for name in ("encoder", "decoder")
        )
        names = [each.name for each in encoder.get_outputs()]
        values = encoder.run(None, {"source": source, "mask": mask})
        self.inputs = {"mask": mask, **dict(zip(names, values, strict=True))}
        rows, heads, _, d_head = values[0].shape
        self.past = {name.replace("source", "past"): np.zeros((rows, heads, 0, d_head), np.float32) for name in names}
        self.tokens = []  # in each step

    def read(self, target):
        """Append tokens to each row and return the logits of the next."""
        self.tokens.append(target.shape[1])
        logits, *present = self.decoder.run(None, {"target": target, **self.inputs, **self.past})
        self.past = dict(zip(self.past, present, strict=True))
        return logits

    def step(self, tokens):
        return torch.tensor(self.read(tokens.numpy()[:, None]))

    def reorder(self, rows):
        for arrays in (self.inputs, self.past):
            arrays.update({name: array[rows.numpy()] for name, array in arrays.items()})


NAMES = [name for name, config in SHAPES.items() if is_supported(config)]


@pytest.mark.parametrize("name", NAMES)
def test_steps_of_any_length_compute_what_the_model_does(name, tmp_path):
    config = SHAPES[name]
    file = in_memory(config, random_model(config))
    write_onnx(file, tmp_path)
    source, target, padding = (tensor.numpy() for tensor in random_batch(config))
    expected = forward(file, source, target, padding)["logits"]
    for lengths in ((1, 1, 1, 1, 1), (3, 1, 1), (2, 3), (5,)):
        graphs, end = Graphs(tmp_path, source, padding), 0
        for length in lengths:
            logits = graphs.read(target[:, end : end + length])
            end += length
            np.testing.assert_allclose(logits, expected[:, end - 1], atol=2e-4)


@pytest.mark.parametrize("name", ["as is", "several", "separate vocabularies"])
def test_searches_with_the_graphs_find_what_they_find_with_the_model(name, tmp_path):
    config = SHAPES[name]
    model = random_model(config, spread=0.6)
    write_onnx(in_memory(config, model), tmp_path)
    source, _, padding = random_batch(config, rows=6)
    start, options = torch.full((6,), config.bos), SearchOptions(beam=3, max_length=12)
    constraints = [no_repeat(1)]  # random weights would mostly repeat a token
    for search in (greedy, beam_search):
        graphs = Graphs(tmp_path, source.numpy(), padding.numpy())
        with torch.inference_mode():
            expected = search(translation_stepper(model, source, padding, 13), start, config.eos, options, constraints)
            results = search(graphs, start, config.eos, options, constraints)
        assert set(graphs.tokens) == {1}
        pairs = list(zip(results, expected, strict=True))
        pairs = pairs if search is greedy else [(first[0], second[0]) for first, second in pairs]
        for got, best in pairs:
            assert got.tokens == best.tokens
            assert got.score == pytest.approx(best.score, abs=1e-4)
        assert len({tuple(best.tokens) for _, best in pairs}) > 1


def test_what_onnx_cannot_compute_is_refused_by_name(tmp_path):
    config = replace(SMALL, positions="rotary", compatibility="cosine")
    with pytest.raises(RequestError, match=r"model\.positions = 'rotary'; model\.compatibility = 'cosine'"):
        write_onnx(in_memory(config, random_model(config)), tmp_path)


def test_an_imported_model_is_exported_with_its_tokenisers(tmp_path):
    checkpoints.marian(tmp_path)
    file = read_source(str(tmp_path / "model"))
    (pair,) = languages_of(file)
    special = special_tokens(file, file.tokenizer, pair)
    assert export(Export(file, pair, special), "onnx", tmp_path / "onnx", difference) == []
    names = {path.name for path in (tmp_path / "onnx").iterdir()}
    assert names == {"encoder.onnx", "decoder.onnx", "source.spm", "target.spm", "special_tokens.json"}
    # Greedy decoding with the graphs alone.
    source = np.array([[*file.tokenizer.encode("The machines"), *special.after_source]])
    graphs, target = Graphs(tmp_path / "onnx", source, np.ones(source.shape, bool)), [file.config.model.bos]
    for _ in range(6):
        target.append(int(graphs.read(np.array([target[-1:]]))[0].argmax()))
    for end in range(1, 6):
        logits = forward(file, source, np.array([target[:end]]))["logits"][0, -1]
        assert logits[target[end]] == pytest.approx(logits.max(), abs=1e-3)


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SixfoldError, match="needs onnx") as caught:
        write_onnx(in_memory(SMALL, random_model(SMALL)), tmp_path)
    assert caught.value.hint == "pip install 'sixfold[onnx]'"


def test_the_loop_of_the_guide_decodes_greedily(tmp_path, monkeypatch):
    config = replace(SMALL, tie_output=False)
    model = random_model(config, spread=0.6)
    (tmp_path / "onnx").mkdir()
    write_onnx(in_memory(config, model), tmp_path / "onnx")
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "importing.md").read_text(encoding="utf-8")
    program = guide.partition("```python\n")[2].partition("```")[0]
    monkeypatch.chdir(tmp_path)
    values = {"source_ids": [5, 6, 7, config.eos], "bos": config.bos, "eos": config.eos}
    exec(program.replace("100", "12"), values)
    stepper = translation_stepper(model, torch.tensor([values["source_ids"]]), None, 13)
    (expected,) = greedy(stepper, torch.tensor([config.bos]), config.eos, SearchOptions(max_length=11))
    assert [token for token in values["target"][1:] if token != config.eos] == expected.tokens
