"""Checkpoints of fairseq. M2M100 and mBART were trained with it, so their classes in transformers compute the same."""

import argparse
import os

import numpy as np
import pytest
import small_checkpoints as checkpoints
import torch
import transformers
from small_sentencepiece import TEXT, train

from sixfold import Translator
from sixfold.errors import ModelFileError
from sixfold.explorer.forward import forward
from sixfold.interop.sources import read_source

SIZES = checkpoints.SIZES | {"tie_word_embeddings": True}
OPTIONS = {
    "arch": "transformer", "encoder_embed_dim": 32, "decoder_embed_dim": 32, "encoder_ffn_embed_dim": 48,
    "decoder_ffn_embed_dim": 48, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "max_source_positions": 128, "max_target_positions": 128, "activation_fn": "relu",
    "encoder_normalize_before": True, "decoder_normalize_before": True, "share_all_embeddings": True,
    "source_lang": "en", "target_lang": "de",
}  # fmt: skip
MBART = {
    "encoder_learned_pos": True, "decoder_learned_pos": True, "layernorm_embedding": True, "activation_fn": "gelu",
    "no_scale_embedding": True,
}  # fmt: skip


def save(folder, learned=False, fused=False, **changes):
    """Write a checkpoint, its dictionary and its pieces; return the same model in transformers."""
    folder.mkdir()
    data = train(model_type="bpe")
    (folder / checkpoints.PIECES).write_bytes(data)
    pieces = list(dict.fromkeys(checkpoints.piece_names(data, 3)))
    for language in ("en", "de"):
        lines = "".join(f"{piece} {100 - index % 90}\n" for index, piece in enumerate(pieces))
        (folder / f"dict.{language}.txt").write_text(lines, encoding="utf-8")
    vocab = len(pieces) + 4
    torch.manual_seed(1)
    if learned:
        config = transformers.MBartConfig(vocab_size=vocab, scale_embedding=False, **SIZES)
        model = transformers.MBartForConditionalGeneration(config)
    else:
        config = transformers.M2M100Config(vocab_size=vocab, encoder_layerdrop=0.0, decoder_layerdrop=0.0, **SIZES)
        model = transformers.M2M100ForConditionalGeneration(config)
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.2 * torch.randn_like(weight)
    state = {}
    for name, weight in model.state_dict().items():
        if name.startswith(("model.shared", "final_logits_bias")):
            continue
        name = "decoder.output_projection.weight" if name == "lm_head.weight" else name.removeprefix("model.")
        state[name] = weight.clone()
    state["encoder.version"] = torch.tensor([3.0])
    if not learned:
        state["encoder.embed_positions._float_tensor"] = torch.zeros(1)
    if fused:
        for name in [name for name in state if "q_proj" in name]:
            parts = [state.pop(name.replace("q_proj", f"{letter}_proj")) for letter in "qkv"]
            state[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
    options = OPTIONS | (MBART if learned else {}) | changes
    torch.save({"args": argparse.Namespace(**options), "cfg": None, "model": state}, folder / "model.pt")
    return model.eval()


@torch.no_grad()
@pytest.mark.parametrize("learned", [False, True])
@pytest.mark.parametrize("fused", [False, True])
def test_logits_and_ids_are_those_of_the_original(learned, fused, tmp_path):
    model = save(tmp_path / "x", learned, fused)
    file = read_source(str(tmp_path / "x" / "model.pt"))
    random = np.random.default_rng(1)
    source, target = (random.integers(4, file.config.model.vocab, (2, length)) for length in (9, 6))
    expected = model(input_ids=torch.tensor(source), decoder_input_ids=torch.tensor(target)).logits.numpy()
    np.testing.assert_allclose(forward(file, source, target)["logits"], expected, atol=1e-4)
    tokens = file.tokenizer.encode(TEXT[3])
    assert "".join(file.tokenizer.tokens[index] for index in tokens) == "▁The▁machines▁are▁learning."
    with Translator(read_source(str(tmp_path / "x")), "cpu") as translator:
        assert translator.translate("The machines are learning.").languages == ("en", "de")


class Evil:
    def __reduce__(self):
        return os.system, ("touch evil",)


def test_a_pickle_that_wants_to_run_code_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save(tmp_path / "x")
    torch.save({"args": argparse.Namespace(**OPTIONS), "model": {"x": Evil()}}, tmp_path / "x" / "model.pt")
    with pytest.raises(ModelFileError, match=r"model\.pt: expected .* and nothing else") as caught:
        read_source(str(tmp_path / "x" / "model.pt"))
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder_langtok": "tgt"}, "encoder_langtok = 'tgt'"),
        ({"decoder_embed_dim": 64}, "decoder_embed_dim = 64"),
        ({"encoder_ffn_embed_dim": 50, "decoder_ffn_embed_dim": 50}, r"feed_forward\.up.*layers\.1\.feed_forward\.up"),
        ({"activation_fn": "tanh"}, "do not fit: 'tanh'"),
        ({"source_lang": "xx"}, r"expected the dictionaries dict\.xx\.txt"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(changes, message, tmp_path):
    save(tmp_path / "x", **changes)
    with pytest.raises(ModelFileError, match=message):
        read_source(str(tmp_path / "x" / "model.pt"))


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04"])
def test_other_files_are_one_line(content, tmp_path):
    (tmp_path / "model.pt").write_bytes(content)
    with pytest.raises(ModelFileError, match=r"model\.pt: expected a fairseq checkpoint") as caught:
        read_source(str(tmp_path / "model.pt"))
    assert "\n" not in str(caught.value)


def test_a_damaged_dictionary_is_named(tmp_path):
    save(tmp_path / "x")
    (tmp_path / "x" / "dict.en.txt").write_text("a 1\nb\n", encoding="utf-8")
    with pytest.raises(ModelFileError, match=r"dict\.en\.txt: line 2: expected a token and a number; got 'b'"):
        read_source(str(tmp_path / "x"))
