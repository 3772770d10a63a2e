"""The model families of Hugging Face transformers: their weight names, as literal tables, and their settings.

The rows of a table read `our name: their name`. Where they have several names, their matrices are stacked into ours.
`{}` is the number of the layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sixfold.errors import ConfigError

Settings = Mapping[str, Any]


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
SEPARATE_EMBEDDINGS = {
    f"{stack}.embedding.token.weight": (f"model.{stack}.embed_tokens.weight",) for stack in ("encoder", "decoder")
}
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

ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu", "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh", "gelu_fast": "gelu-tanh",
}  # fmt: skip


def _same(settings: Settings, *keys: str) -> Any:
    """Return the value of settings that must be equal, because our config has one setting for them."""
    values = {settings[key] for key in keys if settings.get(key) is not None}
    if len(values) != 1:
        raise ConfigError(f"config.json: expected one value for {' and '.join(keys)}; got {sorted(values)}")
    return values.pop()


def _choose(settings: Settings, key: str, table: Mapping[Any, Any]) -> Any:
    if settings[key] not in table:
        raise ConfigError(f"config.json: {key}: expected one of {', '.join(map(str, table))}; got {settings[key]!r}")
    return table[settings[key]]


def _translation_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    """Return what Marian, M2M100 and mBART have in common.

    If the output is not tied, no embeddings are, and a checkpoint has those of each side.
    """
    has_both = {name for (name,) in SEPARATE_EMBEDDINGS.values()} <= names
    return {
        "kind": "encoder-decoder",
        "vocab": settings["vocab_size"],
        "d_model": settings["d_model"],
        "heads": _same(settings, "encoder_attention_heads", "decoder_attention_heads"),
        "d_ff": _same(settings, "encoder_ffn_dim", "decoder_ffn_dim"),
        "encoder_layers": settings["encoder_layers"],
        "decoder_layers": settings["decoder_layers"],
        "max_length": settings["max_position_embeddings"],
        "feed_forward": _choose(settings, "activation_function", ACTIVATIONS),
        "scale_embeddings": settings["scale_embedding"],
        "tie_output": settings["tie_word_embeddings"],
        "share_embeddings": settings["tie_word_embeddings"] or not has_both,
        "dropout": settings["dropout"],
        "pad": settings["pad_token_id"],
        "eos": _first(settings["eos_token_id"]),
        "bos": _id_or(settings["decoder_start_token_id"], _first(settings["eos_token_id"])),
        "unk": 3,
    }


def _marian_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    shared = settings["share_encoder_decoder_embeddings"]
    target = settings["decoder_vocab_size"] or settings["vocab_size"]
    if shared:
        target = _same(settings, "vocab_size", "decoder_vocab_size")
    common = _translation_config(settings, names)
    return common | {
        "vocab": target,
        "source_vocab": 0 if target == settings["vocab_size"] else settings["vocab_size"],
        "share_embeddings": shared and common["share_embeddings"],
        "positions": "sinusoidal",
        "position_layout": "halves",
        "output_bias": True,
        "unk": settings.get("unk_token_id") or 1,  # Marian's vocabularies list it second, and no config says so
    }


def _m2m100_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    return _translation_config(settings, names) | {
        "positions": "sinusoidal",
        "position_layout": "halves",
        "position_spacing": "closed",
        "position_offset": settings["pad_token_id"] + 1,
        "norm_position": "pre",
    }


def _mbart_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    return _translation_config(settings, names) | {
        "positions": "learned",
        "position_offset": 2,
        "norm_position": "pre",
        "embedding_norm": True,
        "output_bias": True,
    }


def _bert_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    head = "cls.predictions.transform.dense.weight" in names
    has_published_ids = settings["vocab_size"] > 102  # the published vocabularies put their specials at 100 to 102
    return {
        "kind": "encoder",
        "vocab": settings["vocab_size"],
        "d_model": settings["hidden_size"],
        "heads": settings["num_attention_heads"],
        "d_ff": settings["intermediate_size"],
        "encoder_layers": settings["num_hidden_layers"],
        "positions": "learned",
        "max_length": settings["max_position_embeddings"],
        "feed_forward": _choose(settings, "hidden_act", ACTIVATIONS),
        "norm_eps": settings["layer_norm_eps"],
        "dropout": settings["hidden_dropout_prob"],
        "scale_embeddings": False,
        "embedding_norm": True,
        "token_types": settings["type_vocab_size"],
        "output_transform": head,
        "output_bias": head,
        "pad": settings["pad_token_id"],
        "bos": 101 if has_published_ids else 0,
        "eos": 102 if has_published_ids else 0,
        "unk": 100 if has_published_ids else 0,
    }


def _gpt2_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    eos = _first(settings["eos_token_id"])
    return {
        "kind": "decoder",
        "vocab": settings["vocab_size"],
        "d_model": settings["n_embd"],
        "heads": settings["n_head"],
        "d_ff": settings["n_inner"] or 4 * settings["n_embd"],
        "decoder_layers": settings["n_layer"],
        "positions": "learned",
        "max_length": settings["n_positions"],
        "feed_forward": _choose(settings, "activation_function", ACTIVATIONS),
        "norm_position": "pre",
        "norm_eps": settings["layer_norm_epsilon"],
        "dropout": settings["resid_pdrop"],
        "scale_embeddings": False,
        "tie_output": settings["tie_word_embeddings"],
        "pad": eos, "bos": _id_or(settings["bos_token_id"], eos), "eos": eos, "unk": eos,
    }  # fmt: skip


def _llama_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    if settings["mlp_bias"] != settings["attention_bias"]:
        raise ConfigError("config.json: expected biases in attention and feed-forward, or in neither")
    return _rotary_decoder(settings) | {"bias": settings["attention_bias"]}


def _qwen2_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    """Return the config of Qwen2 and Qwen2.5, which have biases of query, key and value alone.

    Its window, which no published model uses, may be that of upper layers only.
    """
    windowed = settings["use_sliding_window"] and settings.get("sliding_window", 4096) is not None
    kinds = settings.get("layer_types") or [
        "sliding_attention" if windowed and index >= settings["max_window_layers"] else "full_attention"
        for index in range(settings["num_hidden_layers"])
    ]
    if len(set(kinds)) > 1:
        raise ConfigError(
            f"config.json: layer_types: expected one kind for all layers; got {', '.join(sorted(map(str, set(kinds))))}"
        )
    window = _window(settings) if windowed and kinds[0] == "sliding_attention" else 0
    return _rotary_decoder(settings) | {"query_key_value_bias": True, "sliding_window": window}


def _mistral_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    return _rotary_decoder(settings) | {"sliding_window": _window(settings)}


def _rotary_decoder(settings: Settings) -> dict[str, Any]:
    """Return what LLaMA, Qwen2 and Mistral have in common."""
    eos = _first(settings["eos_token_id"])
    if settings["hidden_size"] % settings["num_attention_heads"] and not settings["head_dim"]:
        raise ConfigError("config.json: expected a head_dim, or a hidden_size that num_attention_heads divides")
    is_usual = settings["head_dim"] in (None, settings["hidden_size"] / settings["num_attention_heads"])
    return _rotary(settings) | {
        "kind": "decoder",
        "vocab": settings["vocab_size"],
        "d_model": settings["hidden_size"],
        "heads": settings["num_attention_heads"],
        "head_width": 0 if is_usual else settings["head_dim"],
        "kv_heads": settings["num_key_value_heads"] or settings["num_attention_heads"],
        "d_ff": settings["intermediate_size"],
        "decoder_layers": settings["num_hidden_layers"],
        "max_length": settings["max_position_embeddings"],
        "feed_forward": _choose(settings, "hidden_act", {"silu": "swiglu"}),
        "bias": False,
        "norm": "rms",
        "norm_position": "pre",
        "norm_eps": settings["rms_norm_eps"],
        "dropout": 0.0,
        "scale_embeddings": False,
        "tie_output": settings["tie_word_embeddings"],
        "bos": _id_or(_first(settings["bos_token_id"]), eos), "eos": eos, "unk": 0,
        "pad": _id_or(settings["pad_token_id"], eos),
    }  # fmt: skip


# Names of transformers for settings of scaled angles, by the name of the scaling.
ROTARY_SCALINGS: Mapping[str, Mapping[str, str]] = {
    "default": {},
    "linear": {"rotary_factor": "factor"},
    "llama3": {
        "rotary_factor": "factor", "rotary_low": "low_freq_factor", "rotary_high": "high_freq_factor",
        "rotary_original_length": "original_max_position_embeddings",
    },
}  # fmt: skip


def _rotary(settings: Settings) -> dict[str, Any]:
    """Return the settings of rotary positions: `rope_parameters`, or in older files `rope_scaling` and `rope_theta`."""
    rope = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind not in ROTARY_SCALINGS:
        raise ConfigError(f"config.json: rope type: expected one of {', '.join(ROTARY_SCALINGS)}; got {kind!r}")
    missing = [name for name in ROTARY_SCALINGS[kind].values() if name not in rope]
    if missing:
        raise ConfigError(f"config.json: rope type {kind}: expected {', '.join(missing)}; found none")
    partial = rope.get("partial_rotary_factor", settings.get("partial_rotary_factor", 1.0))
    if partial != 1:
        raise ConfigError(f"config.json: partial_rotary_factor: expected 1; got {partial!r}")
    scaled = {ours: rope[theirs] for ours, theirs in ROTARY_SCALINGS[kind].items()}
    return {
        "positions": "rotary",
        "position_layout": "halves",
        "rotary_base": float(rope.get("rope_theta") or settings.get("rope_theta", 10000.0)),
        "rotary_scaling": "none" if kind == "default" else kind,
        **{name: value if name == "rotary_original_length" else float(value) for name, value in scaled.items()},
    }


def _window(settings: Settings) -> int:
    """Return the sliding window, or 0 for one that no text of the model reaches."""
    window = settings.get("sliding_window", 4096)
    return 0 if window is None or window >= settings["max_position_embeddings"] else window


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, list) else value


def _id_or(value: Any, default: Any) -> Any:
    """Return a token id, or `default` where the settings have none."""
    return default if value is None or value < 0 else value


_FAIRSEQ_DEFAULTS = {
    "d_model": 1024, "encoder_layers": 12, "decoder_layers": 12, "encoder_ffn_dim": 4096, "decoder_ffn_dim": 4096,
    "encoder_attention_heads": 16, "decoder_attention_heads": 16, "max_position_embeddings": 1024, "pad_token_id": 1,
    "eos_token_id": 2, "tie_word_embeddings": True,
}  # fmt: skip

FAMILIES = {
    "marian": Family(
        _marian_config, MARIAN, "model.",
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
        _m2m100_config, M2M100, "model.",
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
        _mbart_config, MBART, "model.",
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
        _bert_config, BERT, "bert.",
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
        _gpt2_config, GPT2, "transformer.",
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
        _llama_config, LLAMA, "model.",
        defaults={
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": None, "head_dim": None, "hidden_act": "silu",
            "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "attention_bias": False, "mlp_bias": False,
            "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": None, "tie_word_embeddings": False,
        },
        required={}, head="lm_head.", ignored=(".rotary_emb.inv_freq",),
    ),
    "qwen2": Family(
        _qwen2_config, LLAMA, "model.",
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
        _mistral_config, LLAMA, "model.",
        defaults={
            "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
            "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": None, "hidden_act": "silu",
            "max_position_embeddings": 131072, "rms_norm_eps": 1e-6, "sliding_window": 4096, "bos_token_id": 1,
            "eos_token_id": 2, "pad_token_id": None, "tie_word_embeddings": False,
        },
        required={}, head="lm_head.", ignored=(".rotary_emb.inv_freq",),
    ),
}  # fmt: skip
