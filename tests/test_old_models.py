"""Model files of every released format can still be read, and give the same results."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from commands import run_here

from sixfold import Translator, modelfile, tensorfile
from sixfold.errors import ModelFileError
from sixfold.explorer.forward import forward
from sixfold.model.transformer import load_model

FOLDER = Path(__file__).parent / "old_models"
sys.path.insert(0, str(FOLDER))

from make import STORAGES, TEXTS, inputs  # noqa: E402

EXPECTED = json.loads((FOLDER / "format-1.json").read_text(encoding="utf-8"))


def path_of(storage):
    return FOLDER / f"format-1-{storage}.safetensors"


@pytest.mark.parametrize("storage", STORAGES)
def test_a_model_of_format_1_computes_what_it_did(storage):
    file = modelfile.load(path_of(storage))
    source, target = inputs(file)
    expected = np.array(EXPECTED[storage]["logits"])
    logits = forward(file, source, target)["logits"][0]
    np.testing.assert_allclose(logits[:, : expected.shape[1]], expected, atol=2e-3)
    model = load_model(file.config.model, file.weights()).eval()
    with torch.no_grad():
        output = model(torch.from_numpy(source), torch.from_numpy(target), torch.ones(source.shape, dtype=torch.bool))
    np.testing.assert_allclose(output[0, :, : expected.shape[1]].numpy(), expected, atol=2e-3)


@pytest.mark.parametrize("storage", STORAGES)
def test_a_model_of_format_1_translates_as_it_did(storage):
    with Translator(path_of(storage), "cpu") as translator:
        assert translator.directions == [("zh", "en"), ("en", "zh")]
        assert [each.text for each in translator.translate_batch(TEXTS)] == EXPECTED[storage]["translations"]


def write_changed(tmp_path, section, **values):
    """Return a file of format 1 with the settings of another version."""
    tensors, metadata = tensorfile.read(path_of("int8"))
    metadata.pop("checksum")
    config = json.loads(metadata["config"])
    config[section] = {key: value for key, value in {**config.get(section, {}), **values}.items() if value is not None}
    path = tmp_path / "changed.safetensors"
    tensorfile.write(path, tensors, {**metadata, "config": json.dumps(config)})
    return path


def write_renamed(tmp_path):
    return write_changed(tmp_path, "training", learning_rate=None, rate_of_learning=0.5)


def test_a_setting_of_training_that_is_unknown_is_kept_and_not_used(tmp_path):
    file = modelfile.load(write_renamed(tmp_path))
    assert file.other_settings == {"training": {"rate_of_learning": 0.5}}
    assert file.config.training.steps == 2500
    with Translator(file, "cpu") as translator:
        assert translator.translate(TEXTS[0]).text == EXPECTED["int8"]["translations"][0]


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("training", {"steps": "many"}),
        ("training", {"schedule": "of tomorrow"}),
        ("training", {"lora": 4, "sharded": True}),
        ("data", {"skip": ["a filter of tomorrow"], "max_ratio": 0.5}),
        ("tokenizer", {"algorithm": "of tomorrow"}),
        ("section_of_tomorrow", {"one": 1}),
    ],
)
def test_what_inference_does_not_need_makes_no_file_unreadable(section, values, tmp_path):
    file = modelfile.load(write_changed(tmp_path, section, **values))
    assert file.other_settings[section].items() >= values.items()
    assert file.config.data.both_ways
    assert file.config.data.max_tokens == 30


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("model", {"gate_of_tomorrow": 2}),
        ("model", {"norm": "of tomorrow"}),
        ("data", {"both_ways": "yes"}),
        ("data", {"max_tokens": -1}),
    ],
)
def test_a_setting_that_changes_what_the_weights_mean_must_be_known(section, values, tmp_path):
    with pytest.raises(ModelFileError, match=next(iter(values))):
        modelfile.load(write_changed(tmp_path, section, **values))


def test_packing_keeps_the_settings_that_this_version_does_not_know(tmp_path, capsys):
    run_here(capsys, "pack", write_renamed(tmp_path), "--out", tmp_path / "packed.safetensors")
    assert modelfile.load(tmp_path / "packed.safetensors").other_settings == {"training": {"rate_of_learning": 0.5}}
