"""Exported graphs, run by ONNX Runtime, compared with the forward pass in NumPy."""

import sys
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
import small_checkpoints as checkpoints
from small_models import OPTIONS, SMALL, in_memory, random_batch, random_model

from sixfold.cli.export import difference
from sixfold.errors import RequestError, SixfoldError
from sixfold.explorer.forward import forward
from sixfold.interop.exporting import Export, export
from sixfold.interop.onnx import check_supported, write_onnx
from sixfold.interop.sources import read_source
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


def sessions(folder):
    return [onnxruntime.InferenceSession(str(folder / f"{name}.onnx")) for name in ("encoder", "decoder")]


@pytest.mark.parametrize("name", [name for name, config in SHAPES.items() if is_supported(config)])
def test_graphs_compute_what_the_model_does(name, tmp_path):
    config = SHAPES[name]
    file = in_memory(config, random_model(config))
    write_onnx(file, tmp_path)
    encoder, decoder = sessions(tmp_path)
    source, target, padding = (tensor.numpy() for tensor in random_batch(config))
    (memory,) = encoder.run(None, {"source": source, "mask": padding})
    for length in (1, target.shape[1]):
        inputs = {"target": target[:, :length], "memory": memory, "mask": padding}
        expected = forward(file, source, target[:, :length], padding)["logits"][:, -1]
        np.testing.assert_allclose(decoder.run(None, inputs)[0], expected, atol=2e-4)


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
    encoder, decoder = sessions(tmp_path / "onnx")
    source = np.array([[*file.tokenizer.encode("The machines"), *special.after_source]])
    mask = np.ones(source.shape, bool)
    (memory,) = encoder.run(None, {"source": source, "mask": mask})
    target = [file.config.model.bos]
    for _ in range(6):
        (logits,) = decoder.run(None, {"target": np.array([target]), "memory": memory, "mask": mask})
        target.append(int(logits[0].argmax()))
    for end in range(1, 6):
        logits = forward(file, source, np.array([target[:end]]))["logits"][0, -1]
        assert logits[target[end]] == pytest.approx(logits.max(), abs=1e-3)


def test_without_onnx_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(SixfoldError, match="needs onnx") as caught:
        write_onnx(in_memory(SMALL, random_model(SMALL)), tmp_path)
    assert caught.value.hint == "pip install 'sixfold[onnx]'"
