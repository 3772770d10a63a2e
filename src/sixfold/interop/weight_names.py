"""The model families of Hugging Face transformers: their weight names and the defaults of their settings, as tables.

The rows of a table read `our name: their name`. Where they have several names, their matrices are stacked into ours.
`{}` is the number of the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sixfold.interop.family_settings import (
    SEPARATE_EMBEDDINGS,
    Settings,
    bert_config,
    gpt2_config,
    llama_config,
    m2m100_config,
    marian_config,
    mbart_config,
    mistral_config,
    qwen2_config,
)


@dataclass(frozen=True)
class Family:
    """How one `model_type` of transformers names its settings and weights."""

    config: Callable[[Settings, frozenset[str]], dict[str, Any]]
    weights: Mapping[str, tuple[str, ...]]
    prefix: str  # of weight names; checkpoints that were saved without a head lack it
    defaults: Settings  # the values that transformers assumes for settings that config.json lacks
    required: Settings  # settings that change the computation, and the only value that is supported
    head: str  # the output projection, which some checkpoints store although it is tied
    transposed: tuple[str, ...] = ()  # endings of weights that are stored as (inputs, outputs)
    ignored: tuple[str, ...] = ()  # beginnings or endings of names of tensors that are not needed
    separate: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names if each side has its own embeddings


def weight_pairs(table: Mapping[str, str | tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return a table of weights and biases from a table of modules."""
    rows: dict[str, tuple[str, ...]] = {}
    for ours, theirs in table.items():
        names = (theirs,) if isinstance(theirs, str) else theirs
        for kind in ("weight", "bias"):
            rows[f"{ours}.{kind}"] = tuple(f"{name}.{kind}" for name in names)
    return rows


MARIAN = weight_pairs({
    "encoder.embedding.token": "model.shared",
    "encoder.layers.{}.self_attention.query_key_value": (
        "model.encoder.layers.{}.self_attn.q_proj",
        "model.encoder.layers.{}.self_attn.k_proj",
        "model.encoder.layers.{}.self_attn.v_proj",
    ),
    "encoder.layers.{}.self_attention.output": "model.encoder.layers.{}.self_attn.out_proj",
    "encoder.layers.{}.self_attention_norm": "model.encoder.layers.{}.self_attn_layer_norm",
    "encoder.layers.{}.feed_forward.up": "model.encoder.layers.{}.fc1",
    "encoder.layers.{}.feed_forward.down": "model.encoder.layers.{}.fc2",
    "encoder.layers.{}.feed_forward_norm": "model.encoder.layers.{}.final_layer_norm",
    "decoder.layers.{}.self_attention.query_key_value": (
        "model.decoder.layers.{}.self_attn.q_proj",
        "model.decoder.layers.{}.self_attn.k_proj",
        "model.decoder.layers.{}.self_attn.v_proj",
    ),
    "decoder.layers.{}.self_attention.output": "model.decoder.layers.{}.self_attn.out_proj",
    "decoder.layers.{}.self_attention_norm": "model.decoder.layers.{}.self_attn_layer_norm",
    "decoder.layers.{}.cross_attention.query_key_value": (
        "model.decoder.layers.{}.encoder_attn.q_proj",
        "model.decoder.layers.{}.encoder_attn.k_proj",
        "model.decoder.layers.{}.encoder_attn.v_proj",
    ),
    "decoder.layers.{}.cross_attention.output": "model.decoder.layers.{}.encoder_attn.out_proj",
    "decoder.layers.{}.cross_attention_norm": "model.decoder.layers.{}.encoder_attn_layer_norm",
    "decoder.layers.{}.feed_forward.up": "model.decoder.layers.{}.fc1",
    "decoder.layers.{}.feed_forward.down": "model.decoder.layers.{}.fc2",
    "decoder.layers.{}.feed_forward_norm": "model.decoder.layers.{}.final_layer_norm",
    "output.projection": "lm_head",
}) | {"output.projection.bias": ("final_logits_bias",)}  # fmt: skip
FINAL_NORMS = weight_pairs({"encoder.norm": "model.encoder.layer_norm", "decoder.norm": "model.decoder.layer_norm"})
M2M100 = MARIAN | FINAL_NORMS
MBART = M2M100 | weight_pairs({
    "encoder.embedding.position": "model.encoder.embed_positions",
    "decoder.embedding.position": "model.decoder.embed_positions",
    "encoder.embedding.norm": "model.encoder.layernorm_embedding",
    "decoder.embedding.norm": "model.decoder.layernorm_embedding",
})  # fmt: skip

BERT = weight_pairs({
    "encoder.embedding.token": "bert.embeddings.word_embeddings",
    "encoder.embedding.position": "bert.embeddings.position_embeddings",
    "encoder.embedding.segment": "bert.embeddings.token_type_embeddings",
    "encoder.embedding.norm": "bert.embeddings.LayerNorm",
    "encoder.layers.{}.self_attention.query_key_value": (
        "bert.encoder.layer.{}.attention.self.query",
        "bert.encoder.layer.{}.attention.self.key",
        "bert.encoder.layer.{}.attention.self.value",
    ),
    "encoder.layers.{}.self_attention.output": "bert.encoder.layer.{}.attention.output.dense",
    "encoder.layers.{}.self_attention_norm": "bert.encoder.layer.{}.attention.output.LayerNorm",
    "encoder.layers.{}.feed_forward.up": "bert.encoder.layer.{}.intermediate.dense",
    "encoder.layers.{}.feed_forward.down": "bert.encoder.layer.{}.output.dense",
    "encoder.layers.{}.feed_forward_norm": "bert.encoder.layer.{}.output.LayerNorm",
    "output.transform": "cls.predictions.transform.dense",
    "output.norm": "cls.predictions.transform.LayerNorm",
}) | {"output.projection.bias": ("cls.predictions.bias",)}  # fmt: skip

GPT2 = weight_pairs({
    "decoder.embedding.token": "transformer.wte",
    "decoder.embedding.position": "transformer.wpe",
    "decoder.layers.{}.self_attention.query_key_value": "transformer.h.{}.attn.c_attn",
    "decoder.layers.{}.self_attention.output": "transformer.h.{}.attn.c_proj",
    "decoder.layers.{}.self_attention_norm": "transformer.h.{}.ln_1",
    "decoder.layers.{}.feed_forward.up": "transformer.h.{}.mlp.c_fc",
    "decoder.layers.{}.feed_forward.down": "transformer.h.{}.mlp.c_proj",
    "decoder.layers.{}.feed_forward_norm": "transformer.h.{}.ln_2",
    "decoder.norm": "transformer.ln_f",
    "output.projection": "lm_head",
})  # fmt: skip

LLAMA = weight_pairs({
    "decoder.embedding.token": "model.embed_tokens",
    "decoder.layers.{}.self_attention.query_key_value": (
        "model.layers.{}.self_attn.q_proj",
        "model.layers.{}.self_attn.k_proj",
        "model.layers.{}.self_attn.v_proj",
    ),
    "decoder.layers.{}.self_attention.output": "model.layers.{}.self_attn.o_proj",
    "decoder.layers.{}.self_attention_norm": "model.layers.{}.input_layernorm",
    "decoder.layers.{}.feed_forward.gate": "model.layers.{}.mlp.gate_proj",
    "decoder.layers.{}.feed_forward.up": "model.layers.{}.mlp.up_proj",
    "decoder.layers.{}.feed_forward.down": "model.layers.{}.mlp.down_proj",
    "decoder.layers.{}.feed_forward_norm": "model.layers.{}.post_attention_layernorm",
    "decoder.norm": "model.norm",
    "output.projection": "lm_head",
})  # fmt: skip

_FAIRSEQ_DEFAULTS = {
    "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "max_position_embeddings": 1024, "pad_token_id": 1,
    "eos_token_id": 2, "tie_word_embeddings": True,
}  # fmt: skip

FAMILIES = {
    "marian": Family(
        marian_config, MARIAN, "model.",
        defaults={
            "vocab_size": 58101, "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096,
            "decoder_ffn_dim": 4096, "encoder_attention_heads": 16, "decoder_attention_heads": 16, "dropout": 0.1,
            "max_position_embeddings": 1024, "activation_function": "gelu", "scale_embedding": False,
            "pad_token_id": 58100, "eos_token_id": 0, "decoder_start_token_id": 58100, "decoder_vocab_size": None,
            "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True,
        },
        required={
            "static_position_embeddings": True, "normalize_before": False, "normalize_embedding": False,
            "add_final_layer_norm": False,
        },
        head="lm_head.", ignored=("model.shared.", "model.encoder.embed_", "model.decoder.embed_"),
        separate=SEPARATE_EMBEDDINGS,
    ),
    "m2m_100": Family(
        m2m100_config, M2M100, "model.",
        defaults=_FAIRSEQ_DEFAULTS | {
            "vocab_size": 128112, "dropout": 0.1, "activation_function": "relu", "scale_embedding": True,
            "decoder_start_token_id": 2,
        },
        required={"normalize_before": True, "static_position_embeddings": True, "normalize_embedding": False},
        head="lm_head.",
        ignored=("model.shared.", "model.encoder.embed_", "model.decoder.embed_", "final_logits_bias"),
        separate=SEPARATE_EMBEDDINGS,
    ),
    "mbart": Family(
        mbart_config, MBART, "model.",
        defaults=_FAIRSEQ_DEFAULTS | {
            "vocab_size": 50265, "dropout": 0.1, "activation_function": "gelu", "scale_embedding": False,
            "decoder_start_token_id": None,
        },
        required={
            "normalize_before": True, "normalize_embedding": True, "add_final_layer_norm": True,
            "static_position_embeddings": False,
        },
        head="lm_head.", ignored=("model.shared.", "model.encoder.embed_tokens", "model.decoder.embed_tokens"),
        separate=SEPARATE_EMBEDDINGS,
    ),
    "bert": Family(
        bert_config, BERT, "bert.",
        defaults={
            "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
            "intermediate_size": 3072, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "layer_norm_eps": 1e-12,
            "max_position_embeddings": 512, "type_vocab_size": 2, "pad_token_id": 0,
        },
        required={
            "is_decoder": False, "add_cross_attention": False, "position_embedding_type": "absolute",
            "tie_word_embeddings": True,
        },
        head="cls.predictions.decoder.weight",
        ignored=(
            "bert.pooler.", "cls.seq_relationship.", "cls.predictions.decoder.bias", "bert.embeddings.position_ids",
        ),
    ),
    "gpt2": Family(
        gpt2_config, GPT2, "transformer.",
        defaults={
            "vocab_size": 50257, "n_embd": 768, "n_layer": 12, "n_head": 12, "n_inner": None, "n_positions": 1024,
            "activation_function": "gelu_new", "resid_pdrop": 0.1, "layer_norm_epsilon": 1e-5,
            "bos_token_id": 50256, "eos_token_id": 50256, "tie_word_embeddings": True,
        },
        required={"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False},
        head="lm_head.", transposed=(".attn.c_attn.weight", ".c_proj.weight", ".mlp.c_fc.weight"),
        ignored=(".attn.bias", ".attn.masked_bias"),
    ),
    "llama": Family(
        llama_config, LLAMA, "model.",
        defaults={
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "hidden_act": "silu",
            "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "attention_bias": False, "mlp_bias": False,
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None, "tie_word_embeddings": False,
        },
        required={}, head="lm_head.", ignored=(".rotary_emb.inv_freq",),
    ),
    "qwen2": Family(
        qwen2_config, LLAMA, "model.",
        defaults={
            "vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 32, "head_dim": None, "hidden_act": "silu",
            "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "use_sliding_window": False,
            "max_window_layers": 28, "bos_token_id": None, "eos_token_id": None,
            "pad_token_id": None, "tie_word_embeddings": False,
        },
        required={}, head="lm_head.", ignored=(".rotary_emb.inv_freq",),
    ),
    "mistral": Family(
        mistral_config, LLAMA, "model.",
        defaults={
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": None, "hidden_act": "silu",
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "sliding_window": 4096, "bos_token_id": 1,
            "eos_token_id": 2, "pad_token_id": None, "tie_word_embeddings": False,
        },
        required={}, head="lm_head.", ignored=(".rotary_emb.inv_freq",),
    ),
}  # fmt: skip
