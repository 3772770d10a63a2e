"""Models of llama2.c, small ones that the tests write and stories15M, compared with LlamaForCausalLM."""

import struct

import numpy as np
import pytest
import sentencepiece
import small_sentencepiece
import torch
import transformers
from commands import complaint, run_here
from published_models import STORIES, needs
from small_generators import TEXTS, randomise

from sixfold import modelfile
from sixfold.errors import ModelFileError
from sixfold.explorer.forward import forward
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions
from sixfold.interop.prompt_tokenizers import from_pieces
from sixfold.interop.sources import read_source
from sixfold.model.transformer import load_model

AS_LLAMA = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "character_coverage": 1.0}


def pieces():
    model = small_sentencepiece.train(model_type="bpe", byte_fallback=True, vocab_size=520, **AS_LLAMA)
    return sentencepiece.SentencePieceProcessor(model_proto=model)


def tokenizer_bytes(library, raw_bytes=False):
    """Return tokenizer.bin as llama2.c's export writes it; its first versions wrote bytes as characters."""
    rows = []
    for index in range(library.vocab_size()):
        text = library.id_to_piece(index)
        text = {1: "\n<s>\n", 2: "\n</s>\n"}.get(index, text).replace("▁", " ")
        if raw_bytes and library.is_byte(index):
            text = chr(index - 3)
        rows.append(struct.pack("<fi", library.get_score(index), len(text.encode())) + text.encode())
    return struct.pack("<i", max(map(len, rows))) + b"".join(rows)


def neighbours(rows, heads):
    """Return the rows of a projection of transformers as llama2.c has them: 0 1 2 3 4 5 is 0 3 1 4 2 5."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def write_model(path, model):
    """Write a LlamaForCausalLM as llama2.c's export does."""
    config, state = model.config, {name: weight.numpy() for name, weight in model.state_dict().items()}

    def layers(name, heads=0):
        for index in range(config.num_hidden_layers):
            weight = state[f"model.layers.{index}.{name}.weight"]
            yield neighbours(weight, heads) if heads else weight

    sign = 1 if config.tie_word_embeddings else -1
    numbers = (
        config.hidden_size, config.intermediate_size, config.num_hidden_layers, config.num_attention_heads,
        config.num_key_value_heads, sign * config.vocab_size, 64,
    )  # fmt: skip
    arrays = [
        state["model.embed_tokens.weight"], *layers("input_layernorm"),
        *layers("self_attn.q_proj", config.num_attention_heads),
        *layers("self_attn.k_proj", config.num_key_value_heads), *layers("self_attn.v_proj"),
        *layers("self_attn.o_proj"), *layers("post_attention_layernorm"), *layers("mlp.gate_proj"),
        *layers("mlp.down_proj"), *layers("mlp.up_proj"), state["model.norm.weight"],
        np.zeros((2, 64, config.hidden_size // config.num_attention_heads // 2)),
    ]  # fmt: skip
    if not config.tie_word_embeddings:
        arrays.append(state["lm_head.weight"])
    path.write_bytes(struct.pack("<7i", *numbers) + b"".join(array.astype("<f4").tobytes() for array in arrays))


def small_llama(tie=True):
    return randomise(transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=520, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, tie_word_embeddings=tie, rms_norm_eps=1e-5, max_position_embeddings=64,
    )))  # fmt: skip


@pytest.mark.parametrize("tie", [True, False])
@torch.no_grad()
def test_a_small_model_computes_what_llama_does(tie, tmp_path, capsys):
    model, library = small_llama(tie), pieces()
    write_model(tmp_path / "small.bin", model)
    (tmp_path / "tokenizer.bin").write_bytes(tokenizer_bytes(library))
    run_here(capsys, "import", tmp_path / "small.bin", "-o", tmp_path / "m.safetensors")
    file = modelfile.load(tmp_path / "m.safetensors")
    tokens = torch.randint(0, 520, (2, 17))
    expected = model(tokens).logits
    ours = load_model(file.config.model, file.weights()).eval()
    torch.testing.assert_close(ours(tokens), expected, rtol=0, atol=1e-4)
    np.testing.assert_allclose(forward(file, target=tokens.numpy())["logits"], expected, rtol=0, atol=1e-4)
    with Generator(file, "cpu") as generator:
        for text in TEXTS:
            assert generator.encode(text) == [1, *library.encode(text)]
            assert generator.tokenizer.decode(generator.encode(text)) == text


def test_a_tokeniser_after_the_weights_is_read_too(tmp_path):
    library = pieces()
    write_model(tmp_path / "model.data", small_llama())
    weights = (tmp_path / "model.data").read_bytes()
    (tmp_path / "model.data").write_bytes(weights + tokenizer_bytes(library, raw_bytes=True))
    tokenizer = read_source(str(tmp_path / "model.data")).tokenizer
    for text in [*TEXTS, "\x07 \x00A"]:
        assert tokenizer.encode(text) == library.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_the_pair_with_the_highest_score_is_merged_first():
    pieces, kinds = ["<unk>", "a", "b", "c", "ab", "bc"], [2, 1, 1, 1, 1, 1]
    for scores, expected in (([0, 0, 0, 0, -1.0, -2.0], ["ab", "c"]), ([0, 0, 0, 0, -2.0, -1.0], ["a", "bc"])):
        assert from_pieces(pieces, scores, kinds, add_space=False).encode("abc").tokens == expected


def test_a_model_without_a_tokeniser_has_none(tmp_path):
    write_model(tmp_path / "small.bin", small_llama())
    assert read_source(str(tmp_path / "small.bin")).tokenizer is None


def test_what_is_damaged_or_of_another_version_is_one_line(tmp_path):
    write_model(tmp_path / "small.bin", small_llama())
    whole = (tmp_path / "small.bin").read_bytes()
    damages = {
        whole[:-1]: "expected 130716 bytes for its header; got 130715",
        struct.pack("<7i", 32, 48, 1000, 4, 2, 10**7, 64) + whole[28:]: "expected .* bytes for its header",
        whole + b"\0" * 40: "what follows the weights: expected a tokeniser of llama2.c",
        struct.pack("<7i", 0x616B3432, 2, 32, 48, 2, 4, 2) + whole[28:]: "of its first version; got version 2",
        struct.pack("<7i", 32, 48, 2, 5, 2, 520, 64) + whole[28:]: "got a file of another kind",
        whole[:20]: "got a file of another kind",
    }
    for data, message in damages.items():
        (tmp_path / "small.bin").write_bytes(data)
        with pytest.raises(ModelFileError, match=message):
            read_source(str(tmp_path / "small.bin"))
    assert "\n" not in complaint("import", tmp_path / "small.bin", "-o", tmp_path / "m.safetensors").strip()


@pytest.mark.parametrize(
    "damage",
    [lambda data: data[:-1], lambda data: data[:600], lambda data: data + data[4:40], lambda data: data[:4],
     lambda data: data[:4] + struct.pack("<fi", 0, -1) + data[12:], lambda data: data[:27] + b"\xff" + data[28:]],
)  # fmt: skip
def test_a_damaged_tokeniser_is_one_line(damage, tmp_path):
    write_model(tmp_path / "small.bin", small_llama())
    (tmp_path / "tokenizer.bin").write_bytes(damage(tokenizer_bytes(pieces())))
    with pytest.raises(ModelFileError, match=r"tokenizer\.bin: expected a tokeniser of"):
        read_source(str(tmp_path / "small.bin"))


@needs(STORIES)
@torch.no_grad()
def test_stories15m_writes_what_llama_writes(tmp_path, capsys):
    run_here(capsys, "import", STORIES, "-o", tmp_path / "m.safetensors")
    file = modelfile.load(tmp_path / "m.safetensors")
    shape = file.config.model
    peer = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=shape.vocab, hidden_size=shape.d_model, intermediate_size=shape.d_ff, rms_norm_eps=1e-5,
        num_hidden_layers=shape.decoder_layers, num_attention_heads=shape.heads, tie_word_embeddings=True,
        max_position_embeddings=shape.max_length,
    )).eval()  # fmt: skip
    state = {f"{name}.weight": torch.from_numpy(array) for name, array in stories_as_llama(shape).items()}
    problems = peer.load_state_dict(state, strict=False)
    assert problems.missing_keys == ["lm_head.weight"]
    with Generator(file, "cpu") as generator:
        for prompt in ("Once upon a time", "Tom and his dog", ""):
            (continuation,) = generator.generate([prompt], GenerateOptions(max_tokens=200))[0]
            ids = torch.tensor([generator.encode(prompt)])
            written = peer.generate(ids, max_new_tokens=200, do_sample=False, eos_token_id=[1, 2], pad_token_id=0)
            expected = [token for token in written[0, ids.size(1) :].tolist() if token not in (1, 2)]
            assert [token.id for token in continuation.tokens] == expected
            assert len(expected) > 100
            assert continuation.text.isascii()


def stories_as_llama(shape):
    """Return the weights of the file under the names of transformers, read by another way than that of the project."""
    data = np.fromfile(STORIES, "<f4", offset=28, count=(60_816_028 - 28) // 4)
    layers, width, hidden = shape.decoder_layers, shape.d_model, shape.d_ff
    sizes = {"embed_tokens": (shape.vocab, width), "input_layernorm": (layers, width)}
    sizes |= {f"self_attn.{name}_proj": (layers, width, width) for name in "qkvo"}
    sizes |= {
        "post_attention_layernorm": (layers, width), "mlp.gate_proj": (layers, hidden, width),
        "mlp.down_proj": (layers, width, hidden), "mlp.up_proj": (layers, hidden, width), "norm": (width,),
    }  # fmt: skip
    arrays, position = {}, 0
    for name, size in sizes.items():
        count = int(np.prod(size))
        array = data[position : position + count].reshape(size).copy()
        position += count
        if "." not in name and "layernorm" not in name:
            arrays[f"model.{name}"] = array
            continue
        for index, part in enumerate(array):
            if name.endswith(("q_proj", "k_proj")):  # neighbours to halves
                part = part.reshape(shape.heads, -1, 2, width).transpose(0, 2, 1, 3).reshape(width, width)
            arrays[f"model.layers.{index}.{name}"] = part
    return arrays
