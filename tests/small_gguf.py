"""Small GGUF files, written by the `gguf` package from models of transformers, in any of its number types."""

import json

import gguf
import numpy as np
import torch
from gguf import GGMLQuantizationType as Kind
from gguf import quants

NAMES = {
    "llama": {
        "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output",
        "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
        "self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm",
        "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
    },
    "gpt2": {
        "transformer.wte": "token_embd", "transformer.wpe": "position_embd", "transformer.ln_f": "output_norm",
        "lm_head": "output", "attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "ln_1": "attn_norm",
        "ln_2": "ffn_norm", "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down",
    },
}  # fmt: skip
NAMES["qwen2"] = NAMES["llama"]


def neighbours(rows, heads):
    """Return the rows of a projection of transformers as files of LLaMA have them: 0 1 2 3 4 5 is 0 3 1 4 2 5."""
    return rows.reshape(heads, 2, -1, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def name_of(weight, kind):
    """Return the name of a weight of transformers in a file."""
    stem, _, suffix = weight.rpartition(".")
    parts = stem.split(".")
    number = next((part for part in parts if part.isdecimal()), None)
    if number is None:
        return f"{NAMES[kind][stem]}.{suffix}"
    return f"blk.{number}.{NAMES[kind]['.'.join(parts[parts.index(number) + 1 :])]}.{suffix}"


def write(path, model, kind, quantization=Kind.F32, tokenizer=None, settings=None):
    """Write a model, and put into it the weights that the file has, rounded as its numbers are.

    Vectors stay in float32, as in published files. `tokenizer` writes its part of the settings.
    """
    writer = gguf.GGUFWriter(str(path), kind)
    write_shape(writer, model.config, kind)
    for name, value in (settings or {}).items():
        {str: writer.add_string, int: writer.add_uint32, float: writer.add_float32}[type(value)](name, value)
    if tokenizer is not None:
        tokenizer(writer)
    is_tied = model.config.tie_word_embeddings
    for name, weight in model.state_dict().items():
        if is_tied and name == "lm_head.weight":
            continue
        is_transposed = kind == "gpt2" and name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        array = np.ascontiguousarray((weight.T if is_transposed else weight).float().numpy())
        stored = Kind.F32 if array.ndim == 1 else quantization
        rounded = quants.dequantize(quants.quantize(array, stored), stored)
        with torch.no_grad():
            weight.copy_(torch.from_numpy(rounded.T if is_transposed else rounded))
        heads = {"q_proj": model.config.num_attention_heads, "k_proj": getattr(model.config, "num_key_value_heads", 0)}
        part = name.split(".")[-2]
        if kind == "llama" and part in heads:
            array = np.ascontiguousarray(neighbours(array, heads[part]))
        writer.add_tensor(name_of(name, kind), quants.quantize(array, stored), raw_dtype=stored)
    if kind == "llama" and model.config.rope_parameters["rope_type"] == "llama3":
        plain = model.config.rope_parameters["rope_theta"] ** -(
            np.arange(0, model.config.head_dim, 2) / model.config.head_dim
        )
        writer.add_tensor("rope_freqs.weight", (plain / model.model.rotary_emb.inv_freq.numpy()).astype(np.float32))
    for step in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file, writer.close):
        step()


def write_shape(writer, config, kind):
    """Write the settings of the shape of a model."""
    writer.add_name("small")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    if kind == "gpt2":
        writer.add_feed_forward_length(config.n_inner or 4 * config.n_embd)
        writer.add_layer_norm_eps(config.layer_norm_epsilon)
        return
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    if getattr(config, "head_dim", None):
        writer.add_key_length(config.head_dim)
        writer.add_value_length(config.head_dim)


def byte_level(rust, words, bos, eos, template=""):
    """Return a function that writes a byte-level BPE."""
    state = json.loads(rust.to_str())
    tokens = [rust.id_to_token(index) for index in range(rust.get_vocab_size())]
    special = {token["id"] for token in state["added_tokens"]}

    def write(writer):
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(words)
        writer.add_token_list(tokens)
        writer.add_token_types([3 if index in special else 1 for index in range(len(tokens))])
        writer.add_token_merges([" ".join(pair) for pair in state["model"]["merges"]])
        writer.add_bos_token_id(bos)
        writer.add_eos_token_id(eos[0])
        for token in eos[1:]:
            writer.add_eot_token_id(token)
        if template:
            writer.add_chat_template(template)

    return write


def pieces(library):
    """Return a function that writes the pieces and scores of a SentencePiece model."""

    def kind(index):
        names = {"unknown": 2, "control": 3, "byte": 6}
        return next((code for name, code in names.items() if getattr(library, f"is_{name}")(index)), 1)

    def write(writer):
        ids = range(library.vocab_size())
        writer.add_tokenizer_model("llama")
        writer.add_token_list([library.id_to_piece(index) for index in ids])
        writer.add_token_scores([library.get_score(index) for index in ids])
        writer.add_token_types([kind(index) for index in ids])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)

    return write
