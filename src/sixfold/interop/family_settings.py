"""The settings of each family of transformers, as config.json has them, as settings of this project.

What a family computes that this project does not is refused by the name of the setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sixfold.errors import ConfigError

Settings = Mapping[str, Any]

SEPARATE_EMBEDDINGS = {
    f"{stack}.embedding.token.weight": (f"model.{stack}.embed_tokens.weight",) for stack in ("encoder", "decoder")
}
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


def marian_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
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


def m2m100_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    return _translation_config(settings, names) | {
        "positions": "sinusoidal",
        "position_layout": "halves",
        "position_spacing": "closed",
        "position_offset": settings["pad_token_id"] + 1,
        "norm_position": "pre",
    }


def mbart_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    return _translation_config(settings, names) | {
        "positions": "learned",
        "position_offset": 2,
        "norm_position": "pre",
        "embedding_norm": True,
        "output_bias": True,
    }


def bert_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
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


def gpt2_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
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


def llama_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
    if settings["mlp_bias"] != settings["attention_bias"]:
        raise ConfigError("config.json: expected biases in attention and feed-forward, or in neither")
    return _rotary_decoder(settings) | {"bias": settings["attention_bias"]}


def qwen2_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
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


def mistral_config(settings: Settings, names: frozenset[str]) -> dict[str, Any]:
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
