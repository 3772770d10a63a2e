"""GGUF files compared with transformers, whose weights the `gguf` package has rounded alike."""

import json
import re
import struct
import tracemalloc

import numpy as np
import pytest
import small_generators as generators
import small_sentencepiece
import tokenizers
import torch
import transformers
from commands import complaint, run_here
from published_models import SMOLLM2, needs

gguf = pytest.importorskip("gguf")

import sentencepiece  # noqa: E402
import small_gguf  # noqa: E402
from gguf import GGMLQuantizationType as Kind  # noqa: E402
from gguf import quants  # noqa: E402

from sixfold import modelfile  # noqa: E402
from sixfold.errors import ModelFileError  # noqa: E402
from sixfold.explorer.forward import forward  # noqa: E402
from sixfold.generation.generator import Generator  # noqa: E402
from sixfold.generation.options import GenerateOptions  # noqa: E402
from sixfold.interop.gguf_file import read_gguf  # noqa: E402
from sixfold.interop.gguf_types import BLOCK_TYPES  # noqa: E402
from sixfold.interop.sources import read_source  # noqa: E402
from sixfold.model.transformer import load_model  # noqa: E402

# As tokenizer.json of Llama 3 has it.
LLAMA_3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
TEXTS = [
    *generators.TEXTS,
    " two  spaces ",
    "龘😀\n\ttab 1234",
    "<|im_start|>user\nhi<|im_end|>\n",
    "it's I'LL",
    "no forestry 123456",
]
LLAMA_3 = {
    "rope_type": "llama3", "rope_theta": 5e5, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 1e4}
SHAPE = {"intermediate_size": 64, "hidden_size": 64}


def with_words(words):
    rust = generators.with_words_of_qwen2()
    if words == "gpt-2":
        return generators.byte_level(["<|endoftext|>", *generators.CHAT_TOKENS])
    if words == "llama-bpe":
        rust.normalizer = None
        cut = generators.pre_tokenizers.Split(tokenizers.Regex(LLAMA_3_WORDS), "isolated")
        rust.pre_tokenizer = generators.pre_tokenizers.Sequence(
            [cut, generators.pre_tokenizers.ByteLevel(False, use_regex=False)]
        )
        # A word that is a piece although no merges lead to it, such as those that Llama 3 has.
        state = json.loads(rust.to_str())
        state["model"]["vocab"]["Ġforestry"] = len(state["model"]["vocab"])
        state["model"]["ignore_merges"] = True
        return tokenizers.Tokenizer.from_str(json.dumps(state))
    if words == "smollm":
        rust.normalizer = None
        digits = generators.pre_tokenizers.Digits(individual_digits=True)
        rust.pre_tokenizer = generators.pre_tokenizers.Sequence([digits, generators.pre_tokenizers.ByteLevel(False)])
    return rust


def make(name, folder):
    """Return a small model, which is saved in a folder too."""
    makers = {
        "llama": (generators.llama_3, SHAPE | {"rope_parameters": PLAIN, "head_dim": 24}),
        "llama 3": (generators.llama_3, SHAPE | {"rope_parameters": LLAMA_3, "head_dim": 24, "vocab_size": 421}),
        "llama tied": (generators.llama_3, SHAPE | {"rope_parameters": PLAIN, "tie_word_embeddings": True}),
        "qwen2": (generators.qwen2, SHAPE),
        "gpt2": (generators.gpt2, {"n_embd": 64}),
    }
    maker, settings = makers[name]
    return maker(folder / "hf", **settings)[0]


CASES = {
    "llama": ("llama", "smollm"), "llama 3": ("llama", "llama-bpe"), "qwen2": ("qwen2", "qwen2"),
    "gpt2": ("gpt2", "gpt-2"),
}  # fmt: skip


def small_file(name, folder, quantization=Kind.F32, template=""):
    kind, words = CASES[name]
    model, rust = make(name, folder), with_words(words)
    ends = [rust.token_to_id(token) for token in (generators.CHAT_TOKENS[1], "<|endoftext|>")]
    tokenizer = small_gguf.byte_level(rust, words, ends[1], ends, template)
    small_gguf.write(folder / "small.gguf", model, kind, quantization, tokenizer)
    return model, rust


@torch.no_grad()
def check(file, model):
    tokens = torch.randint(0, file.config.model.vocab, (2, 19), generator=torch.Generator().manual_seed(1))
    expected = model(tokens).logits
    ours = load_model(file.config.model, file.weights()).eval()
    torch.testing.assert_close(ours(tokens), expected, rtol=0, atol=2e-4)
    np.testing.assert_allclose(forward(file, target=tokens.numpy())["logits"], expected, rtol=0, atol=2e-4)


@pytest.mark.parametrize("name", CASES)
def test_models_compute_what_transformers_does_and_read_texts_alike(name, tmp_path, capsys):
    model, rust = small_file(name, tmp_path, template=generators.CHATML)
    run_here(capsys, "import", tmp_path / "small.gguf", "-o", tmp_path / "m.safetensors")
    file = modelfile.load(tmp_path / "m.safetensors")
    check(file, model)
    for text in TEXTS:
        assert file.tokenizer.encode(text) == rust.encode(text, add_special_tokens=False).ids
        assert file.tokenizer.rust.decode(file.tokenizer.encode(text), skip_special_tokens=False) == text
    decomposed = "cafe\u0301"
    assert file.tokenizer.encode(decomposed) == rust.encode(decomposed, add_special_tokens=False).ids
    assert file.prompt_format.ends == (2, 0)
    assert file.prompt_format.before == ((0,) if CASES[name][1] == "llama-bpe" else ())
    assert file.prompt_format.token_texts == {"bos_token": "<|endoftext|>", "eos_token": "<|im_end|>"}
    with Generator(file, "cpu") as generator:
        ids = generator.encode([{"role": "user", "content": "hi"}])
    assert ids == rust.encode("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n").ids


QUANTIZED = (Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1)


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_weights_of_fewer_bits_are_those_that_the_file_has(kind, tmp_path):
    model, _ = small_file("llama", tmp_path, kind)
    file = read_source(str(tmp_path / "small.gguf"))
    check(file, model)
    assert file.storage == {Kind.F16: "float16", Kind.BF16: "bfloat16"}.get(kind, "float32")


@pytest.mark.parametrize("number", BLOCK_TYPES, ids=lambda number: BLOCK_TYPES[number].name)
def test_blocks_have_the_values_that_the_package_gives_them(number):
    block, random = BLOCK_TYPES[number], np.random.default_rng(1)
    assert (Kind(number).name, gguf.GGML_QUANT_SIZES[Kind(number)]) == (
        block.name,
        (block.values, block.record.itemsize),
    )
    raw = random.integers(0, 256, (50, block.record.itemsize), dtype=np.uint8)
    records = raw.view(block.record).reshape(-1)
    for scale in {"d", "m"} & set(block.record.names):  # random bits may be no number
        records[scale] = random.normal(size=50).astype(np.float16)
    np.testing.assert_array_equal(block.dequantize(records), quants.dequantize(raw, Kind(number)))


def test_a_tokeniser_of_pieces_and_scores_is_that_of_the_library(tmp_path):
    as_llama = {"normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    model_proto = small_sentencepiece.train(model_type="bpe", byte_fallback=True, vocab_size=520, **as_llama)
    library = sentencepiece.SentencePieceProcessor(model_proto=model_proto)
    model = make("llama tied", tmp_path)
    model.resize_token_embeddings(520)
    small_gguf.write(tmp_path / "small.gguf", model, "llama", tokenizer=small_gguf.pieces(library))
    file = read_source(str(tmp_path))
    check(file, model)
    assert (file.prompt_format.before, file.prompt_format.ends) == ((1,), (2,))
    for text in [*generators.TEXTS, " two  spaces ", "龘😀\n\ttab"]:
        assert file.tokenizer.encode(text) == library.encode(text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"llama.rope.scaling.type": "yarn"}, r"llama\.rope\.scaling\.type: expected 'none' or 'linear'; got 'yarn'"),
        ({"llama.expert_count": 8}, r"llama\.expert_count: expected 0; got 8"),
        ({"llama.rope.dimension_count": 8}, r"llama\.rope\.dimension_count: expected 12; got 8"),
        ({"split.count": 3}, "expected a whole model; got a part of 3"),
        ({"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": "a"}, "expected one of gpt2, llama; got 'bert'"),
        ({"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": "a"}, r"tokenizer\.ggml\.tokens: expected up to"),
    ],
)
def test_what_is_not_supported_is_named(settings, message, tmp_path):
    small_gguf.write(tmp_path / "small.gguf", make("llama tied", tmp_path), "llama", settings=settings)
    with pytest.raises(ModelFileError, match=message):
        read_source(str(tmp_path / "small.gguf"))


def test_linear_scaling_and_windows_are_read(tmp_path):
    scaled = {"rope_type": "linear", "rope_theta": 1e4, "factor": 4.0}
    model, _ = generators.mistral(tmp_path / "hf", **SHAPE, rope_parameters=scaled, head_dim=16)
    settings = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0,
                "llama.attention.sliding_window": 6}  # fmt: skip
    small_gguf.write(tmp_path / "small.gguf", model, "llama", settings=settings)
    check(read_source(str(tmp_path / "small.gguf")), model)


def refusal(path, data):
    """Return the one line with which a damaged file is refused, with little memory."""
    path.write_bytes(data)
    tracemalloc.start()
    with pytest.raises(ModelFileError) as caught:
        read_source(str(path))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**25
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_file_that_is_cut_short_anywhere_is_refused(tmp_path):
    small_file("qwen2", tmp_path)
    whole = (tmp_path / "small.gguf").read_bytes()
    ends = [5, 20, 40, 300, *range(1000, len(whole), len(whole) // 20), len(whole) - 1]
    for end in ends:
        message = refusal(tmp_path / "small.gguf", whole[:end])
        assert "cut short" in message or "expected as many as fit" in message, end


def test_headers_that_ask_for_too_much_are_refused(tmp_path):
    small_file("gpt2", tmp_path)
    whole = (tmp_path / "small.gguf").read_bytes()
    huge = struct.pack("<Q", 2**60)
    name = whole.index(b"token_embd.weight")
    after = name + len("token_embd.weight")
    damages = {
        b"GGUX" + whole[4:]: "begins with GGUF",
        whole[:4] + struct.pack("<I", 1) + whole[8:]: "expected version 2 or 3 of GGUF; got 1",
        whole[:4] + struct.pack(">I", 3) + whole[8:]: "expected version 2 or 3 of GGUF; got 50331648",
        whole[:8] + huge + whole[16:]: "tensors: expected as many as fit",
        whole[:16] + huge + whole[24:]: "settings: expected as many as fit",
        whole[:24] + huge + whole[32:]: "a text: expected at most",
        whole[: name - 8] + huge + whole[name:]: "a text: expected at most",
        whole[:after] + struct.pack("<I", 99) + whole[after + 4 :]: "expected at most 4 dimensions; got 99",
        whole[: after + 4] + huge + whole[after + 12 :]: "token_embd.weight: cut short",
        whole[: after + 20] + struct.pack("<I", 16) + whole[after + 24 :]: "expected one of the types F32.*number 16",
        whole[: after + 24] + huge + whole[after + 32 :]: "token_embd.weight: cut short",
    }
    for data, message in damages.items():
        assert re.search(message, refusal(tmp_path / "small.gguf", data)), message
    (tmp_path / "small.gguf").write_bytes(b"GGUX" + whole[4:])
    error = complaint("import", tmp_path / "small.gguf", "-o", tmp_path / "m.safetensors")
    assert "expected a GGUF file" in error


def outcome(path):
    """Return the message with which a file is refused, or a line end if it is read. Nothing else may be raised."""
    try:
        read_source(str(path))
    except ModelFileError as error:
        return str(error).replace("\n", " LINE END ")
    return "\n"


def test_random_damage_to_a_header_is_refused_or_harmless(tmp_path):
    small_file("gpt2", tmp_path)
    whole, random = (tmp_path / "small.gguf").read_bytes(), np.random.default_rng(1)
    refused = 0
    for _ in range(200):
        data = bytearray(whole)
        for position in random.integers(0, 1500, 3):
            data[position] = random.integers(0, 256)
        (tmp_path / "small.gguf").write_bytes(bytes(data))
        message = outcome(tmp_path / "small.gguf")
        assert "LINE END" not in message
        refused += message != "\n"
    assert refused > 20


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory):
    path = tmp_path_factory.mktemp("smollm2") / "m.safetensors"
    imported = read_source(str(SMOLLM2))
    modelfile.save(
        path, imported.config, imported.stored_weights(), imported.tokenizer, prompt_format=imported.prompt_format
    )
    return modelfile.load(path)


@needs(SMOLLM2)
@torch.no_grad()
def test_smollm2_computes_what_transformers_does_with_the_same_weights(smollm2):
    shape = smollm2.config.model
    peer = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=shape.vocab, hidden_size=shape.d_model, intermediate_size=shape.d_ff, rms_norm_eps=shape.norm_eps,
        num_hidden_layers=shape.decoder_layers, num_attention_heads=shape.heads, num_key_value_heads=shape.groups,
        tie_word_embeddings=True, max_position_embeddings=shape.max_length,
        rope_parameters={"rope_type": "default", "rope_theta": 1e5},
    )).eval()  # fmt: skip
    stored = {each.name: quants.dequantize(each.data, each.tensor_type) for each in gguf.GGUFReader(SMOLLM2).tensors}
    state = peer.state_dict()
    for name in state:
        array = stored[small_gguf.name_of(name, "llama")] if name != "lm_head.weight" else stored["token_embd.weight"]
        heads = {"q_proj": shape.heads, "k_proj": shape.groups}.get(name.split(".")[-2])
        if heads:  # neighbours to halves
            array = array.reshape(heads, -1, 2, shape.d_model).swapaxes(1, 2).reshape(array.shape)
        state[name] = torch.from_numpy(np.array(array))
    peer.load_state_dict(state)
    text = "Once upon a time, in 1999, there was a café near the river. It's where I'd write:\n\n\tdef f(x): return x"
    ids = torch.tensor([smollm2.tokenizer.encode(text)])
    ours = load_model(shape, smollm2.weights()).eval()
    torch.testing.assert_close(ours(ids), peer(ids).logits, rtol=0, atol=1e-3)
    tokens = peer.generate(ids, max_new_tokens=30, do_sample=False, pad_token_id=2)[0, ids.size(1) :].tolist()
    with Generator(smollm2, "cpu") as generator:
        ((continuation,),) = generator.generate([text], GenerateOptions(max_tokens=30))
    assert [token.id for token in continuation.tokens] == [token for token in tokens if token != 2]


@needs(SMOLLM2)
@pytest.mark.parametrize("compute", ["float32", "int8"])
def test_smollm2_answers_questions(smollm2, compute):
    with Generator(smollm2, "cpu", compute=compute) as generator:
        prompts = [[{"role": "user", "content": question}] for question in ("What is the capital of France?", "Hello!")]
        answers = [each.text for (each,) in generator.generate(prompts, GenerateOptions(max_tokens=60))]
    assert "Paris" in answers[0]
    assert answers[1].strip()
    assert not any("<|im" in answer for answer in answers)


@needs(SMOLLM2)
def test_reading_smollm2_takes_little_memory():
    tracemalloc.start()
    contents = read_gguf(SMOLLM2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(contents.tensors) == 272
    assert peak < 64 * 2**20
