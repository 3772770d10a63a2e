"""Exported models that write texts do in transformers what they do here, with their tokenisers."""

import json
from dataclasses import replace

import pytest
import small_generators as generators
import small_sentencepiece
import torch
import transformers
from commands import complaint, run_here
from small_models import random_model

from sixfold import modelfile
from sixfold.config import Config, ModelConfig, TokenizerConfig
from sixfold.errors import RequestError
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.interop.huggingface import load_folder
from sixfold.interop.huggingface_decoders import choose_family
from sixfold.model.transformer import load_model, weights_of
from sixfold.presets import preset
from sixfold.text.learn import train_tokenizer

PROMPTS = [*generators.TEXTS, " two  spaces ", "龘😀\n\ttab"]
GREEDY = GenerateOptions(max_tokens=12)


def export(capsys, file, folder):
    run_here(capsys, "export", file, folder, "--to", "huggingface")
    with torch.no_grad():
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    return model, transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def check(file, model, tokenizer):
    """Compare ids, logits, texts and greedy continuations with those of transformers."""
    with Generator(file, "cpu") as generator:
        for prompt in PROMPTS:
            assert tokenizer(prompt).input_ids == generator.encode(prompt)
        ours = load_model(file.config.model, file.weights()).eval()
        ids = torch.tensor([generator.encode(PROMPTS[0])])
        torch.testing.assert_close(ours(ids), model(ids).logits, rtol=0, atol=1e-4)
        (continuation,), *_ = generator.generate(PROMPTS[:1], GREEDY)
        written = model.generate(ids, max_new_tokens=12, do_sample=False)[0, ids.size(1) :].tolist()
        assert [token.id for token in continuation.tokens] == [each for each in written if each not in generator.ends]
        assert tokenizer.decode(ids[0], skip_special_tokens=True) == PROMPTS[0]


@pytest.mark.parametrize("family", generators.MAKERS)
def test_a_model_that_was_imported_goes_back(family, tmp_path, capsys):
    generators.MAKERS[family](tmp_path / "hf")
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "m.safetensors")
    file = modelfile.load(tmp_path / "m.safetensors")
    model, tokenizer = export(capsys, tmp_path / "m.safetensors", tmp_path / "again")
    check(file, model, tokenizer)
    again = load_folder(tmp_path / "again")
    assert again.config.model == file.config.model
    assert again.prompt_format == file.prompt_format
    assert again.tokenizer.encode_batch(PROMPTS) == file.tokenizer.encode_batch(PROMPTS)


def test_chat_templates_and_types_go_along(tmp_path, capsys):
    model, _ = generators.qwen2(tmp_path / "hf")
    model.to(torch.bfloat16).save_pretrained(tmp_path / "hf")
    path = tmp_path / "hf" / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"chat_template": generators.CHATML}))
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "m.safetensors")
    _, tokenizer = export(capsys, tmp_path / "m.safetensors", tmp_path / "again")
    conversation = [{"role": "user", "content": "How are you?"}]
    with Generator(modelfile.load(tmp_path / "m.safetensors"), "cpu") as generator:
        assert tokenizer.apply_chat_template(conversation)["input_ids"] == generator.encode(conversation)
    assert json.loads((tmp_path / "again" / "config.json").read_text())["torch_dtype"] == "bfloat16"
    assert modelfile.load(tmp_path / "m.safetensors").storage == load_folder(tmp_path / "again").storage == "bfloat16"


def own_model(path, shape, **settings):
    tokenizer = train_tokenizer(generators.TEXTS * 3, TokenizerConfig(vocab=420, **settings))
    shape = tokenizer.fit(shape)
    modelfile.save(path, Config(model=shape), weights_of(random_model(shape, spread=0.3)), tokenizer)
    return modelfile.load(path)


DECODER = replace(
    preset("decoder-tiny").model, d_model=32, heads=4, kv_heads=2, d_ff=48, decoder_layers=2, max_length=64
)
OWN = {
    "BPE": (DECODER, {}),
    "unigram": (DECODER, {"algorithm": "unigram"}),
    "neighbours": (replace(DECODER, position_layout="interleaved", sliding_window=5), {}),
    "learned positions": (
        ModelConfig(kind="decoder", d_model=32, heads=4, d_ff=48, decoder_layers=2, max_length=64, positions="learned",
                    norm_position="pre", scale_embeddings=False, feed_forward="gelu"),
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_a_model_that_was_trained_here_becomes_one_of_transformers(name, tmp_path, capsys):
    shape, settings = OWN[name]
    file = own_model(tmp_path / "m.safetensors", shape, **settings)
    model, tokenizer = export(capsys, tmp_path / "m.safetensors", tmp_path / "hf")
    check(file, model, tokenizer)
    check(load_folder(tmp_path / "hf"), model, tokenizer)


def test_a_sentencepiece_model_becomes_tokenizer_json(tmp_path, capsys):
    generators.llama(tmp_path / "hf")
    (tmp_path / "hf" / "tokenizer.json").unlink()
    as_llama = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    pieces = small_sentencepiece.train(model_type="bpe", byte_fallback=True, vocab_size=520, **as_llama)
    (tmp_path / "hf" / "tokenizer.model").write_bytes(pieces)
    run_here(capsys, "import", tmp_path / "hf", "-o", tmp_path / "m.safetensors")
    model, tokenizer = export(capsys, tmp_path / "m.safetensors", tmp_path / "again")
    check(modelfile.load(tmp_path / "m.safetensors"), model, tokenizer)


def test_what_transformers_does_not_compute_is_refused_by_name(tmp_path):
    with pytest.raises(RequestError, match=r"nearest is llama, but for model\.scale_embeddings = True"):
        choose_family(replace(DECODER, scale_embeddings=True))
    with pytest.raises(RequestError, match=r"nearest is gpt2, but for model\.kv_heads = 2"):
        choose_family(replace(OWN["learned positions"][0], kv_heads=2))
    own_model(tmp_path / "m.safetensors", DECODER, algorithm="wordpiece")
    message = complaint("export", tmp_path / "m.safetensors", tmp_path / "hf", "--to", "huggingface")
    assert "expected one that tokenizer.json can express; got WordPiece" in message
    message = complaint("export", tmp_path / "m.safetensors", tmp_path / "onnx", "--to", "onnx")
    assert "expected a model that translates texts, for --to onnx" in message
