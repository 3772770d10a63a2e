"""Weights of Hugging Face folders are stored as they are, one tensor after another."""

import tracemalloc

import numpy as np
import pytest
import small_generators as generators
import torch
import transformers
from commands import run_here

from sixfold import modelfile
from sixfold.explorer.forward import forward
from sixfold.interop.huggingface import load_folder

TYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


@pytest.mark.parametrize("name", TYPES)
def test_weights_of_two_bytes_stay_what_they_are(name, tmp_path, capsys):
    model, _ = generators.mistral(tmp_path / "hf")
    model.to(TYPES[name]).save_pretrained(tmp_path / "hf", max_shard_size="20KB")
    assert (tmp_path / "hf" / "model.safetensors.index.json").exists()
    (tmp_path / "hf" / "model.safetensors").unlink()
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "m.safetensors")
    file = modelfile.load(tmp_path / "m.safetensors")
    assert file.storage == name
    assert {tensor.dtype for tensor in file.tensors.values()} == {{"bfloat16": "BF16", "float16": "F16"}[name]}
    tokens = torch.randint(0, file.config.model.vocab, (2, 11))
    with torch.no_grad():  # read again, because `to` has rounded the frequencies of the angles too
        expected = type(model).from_pretrained(tmp_path / "hf", dtype=torch.float32)(tokens).logits
    np.testing.assert_allclose(forward(file, target=tokens.numpy())["logits"], expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", TYPES)
def test_pickled_weights_of_two_bytes_stay_what_they_are(name, tmp_path):
    model, _ = generators.qwen2(tmp_path)
    expected = load_folder(tmp_path).weights()
    (tmp_path / "model.safetensors").unlink()
    state = {weight: value.to(TYPES[name]) for weight, value in model.state_dict().items()}
    torch.save(state, tmp_path / "pytorch_model.bin")
    file = load_folder(tmp_path)
    assert file.storage == name
    for weight, array in file.weights().items():
        np.testing.assert_allclose(array, expected[weight], rtol=0.01)


def test_an_import_needs_the_memory_of_a_few_tensors(tmp_path, capsys):
    config = transformers.LlamaConfig(
        vocab_size=300, hidden_size=256, num_attention_heads=4, num_hidden_layers=16, intermediate_size=256
    )
    model = transformers.LlamaForCausalLM(config).to(torch.bfloat16)
    model.save_pretrained(tmp_path / "hf", max_shard_size="1MB")
    stored = sum(path.stat().st_size for path in (tmp_path / "hf").glob("*.safetensors"))
    largest = max(weight.numel() * 2 for weight in model.parameters())
    (tmp_path / "warm").mkdir()  # imports of modules are no part of what is measured
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "warm" / "m.safetensors")
    tracemalloc.start()
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "m.safetensors")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stored > 30 * largest
    assert peak < 12 * largest  # a stacked matrix and its three parts, and what a command needs


def test_an_index_that_names_other_folders_is_refused(tmp_path):
    generators.qwen2(tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path.parent / "elsewhere.safetensors")
    (tmp_path / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../elsewhere.safetensors"}}')
    with pytest.raises(modelfile.ModelFileError, match="expected a weight_map of file names"):
        load_folder(tmp_path)
