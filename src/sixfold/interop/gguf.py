"""Models in GGUF, the format of llama.cpp: LLaMA (and Mistral), Qwen2 and GPT-2, with their tokenisers and templates.

The rows of tables read `our name: their name`, as in `weight_names`. Queries and keys of LLaMA have rotary pairs as
neighbours there, so that the layout of the model is another one than that of its folder of transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.configfile import section_from
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.gguf_file import read_gguf
from sixfold.interop.gguf_tokenizers import read_prompts
from sixfold.interop.huggingface import rename
from sixfold.interop.weight_names import Family, weight_pairs
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor

Settings = Mapping[str, Any]

GPT2 = weight_pairs({
    "decoder.embedding.token": "token_embd",
    "decoder.embedding.position": "position_embd",
    "decoder.layers.{}.self_attention.query_key_value": "blk.{}.attn_qkv",
    "decoder.layers.{}.self_attention.output": "blk.{}.attn_output",
    "decoder.layers.{}.self_attention_norm": "blk.{}.attn_norm",
    "decoder.layers.{}.feed_forward.up": "blk.{}.ffn_up",
    "decoder.layers.{}.feed_forward.down": "blk.{}.ffn_down",
    "decoder.layers.{}.feed_forward_norm": "blk.{}.ffn_norm",
    "decoder.norm": "output_norm",
    "output.projection": "output",
})  # fmt: skip
LLAMA = GPT2 | weight_pairs({
    "decoder.layers.{}.self_attention.query_key_value": ("blk.{}.attn_q", "blk.{}.attn_k", "blk.{}.attn_v"),
    "decoder.layers.{}.feed_forward.gate": "blk.{}.ffn_gate",
})  # fmt: skip
FACTORS = "rope_freqs.weight"  # the divisors of the rotary angles of Llama 3
LLAMA_3 = {"low": 1.0, "high": 4.0, "original_length": 8192}  # which make the divisors of every published model


def load_gguf(path: Path) -> ModelFile:
    """Read a GGUF file. Weights in blocks become float32 when they are read; others stay what they are."""
    settings, tensors = read_gguf(path)
    kind = settings.get("general.architecture")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        raise ModelFileError(
            f"{path}: expected a general.architecture of {', '.join(ARCHITECTURES)}; got {kind!r}",
            "its folder of transformers may be of a family that is supported",
        )
    if settings.get("split.count", 0) not in (0, 1):
        raise ModelFileError(
            f"{path}: expected a whole model; got a part of {settings['split.count']}",
            "join the parts with `llama-gguf-split --merge`",
        )
    read_config, names = ARCHITECTURES[kind]
    try:
        values = read_config(Keys(settings, kind), tensors) | _token_ids(settings, tensors)
        config = section_from(ModelConfig, "model", values)
    except ConfigError as error:
        raise ModelFileError(f"{path}: {error}", error.hint) from None
    except (TypeError, ValueError, ZeroDivisionError, IndexError) as error:
        raise ModelFileError(f"{path}: its settings cannot be understood: {error}") from None
    # The settings have been read, so that only the names of weights are needed of the family.
    family = Family(lambda *_: {}, names, "", {}, {}, head="output.weight", ignored=(FACTORS,))
    weights = rename(config, family, tensors, str(path))
    tokenizer, layout = read_prompts(settings, config, str(path))
    card = {"parent": f"GGUF model {settings.get('general.name') or path.stem}"}
    if isinstance(settings.get("general.license"), str):
        card["licence"] = settings["general.license"]
    full = Config(config, TokenizerConfig(vocab=config.vocab), data=DataConfig(max_tokens=config.max_length))
    return ModelFile(full, weights, tokenizer, card, prompt_format=layout)


class Keys:
    """The settings of an architecture, whose names begin with its own."""

    def __init__(self, settings: Settings, kind: str) -> None:
        self._settings, self._kind = settings, kind

    def __getitem__(self, name: str) -> Any:
        value = self.get(name)
        if value is None:
            raise ConfigError(f"{self._kind}.{name}: expected this setting; found none")
        return value

    def get(self, name: str, default: Any = None) -> Any:
        """Return a setting, or `default` where there is none."""
        return self._settings.get(f"{self._kind}.{name}", default)

    def refuse(self, name: str, usual: tuple[Any, ...]) -> None:
        """Raise ConfigError for a setting with another value than those that this project computes."""
        value = self.get(name, usual[0])
        if value not in usual:
            raise ConfigError(f"{self._kind}.{name}: expected {' or '.join(map(repr, usual))}; got {value!r}")


def _common(keys: Keys, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    if "token_embd.weight" not in tensors:
        raise ConfigError("token_embd.weight: expected this tensor; found none")
    return {
        "kind": "decoder",
        "vocab": tensors["token_embd.weight"].shape[0],
        "d_model": keys["embedding_length"],
        "heads": keys["attention.head_count"],
        "d_ff": keys["feed_forward_length"],
        "decoder_layers": keys["block_count"],
        "max_length": keys["context_length"],
        "norm_position": "pre",
        "dropout": 0.0,
        "scale_embeddings": False,
        "tie_output": "output.weight" not in tensors,
    }


def _gpt2(keys: Keys, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return _common(keys, tensors) | {
        "positions": "learned", "feed_forward": "gelu-tanh", "norm_eps": keys["attention.layer_norm_epsilon"],
    }  # fmt: skip


def _llama(keys: Keys, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    keys.refuse("expert_count", (0,))
    values = _common(keys, tensors)
    d_head = values["d_model"] // values["heads"]
    width = keys.get("attention.key_length", d_head)
    keys.refuse("attention.value_length", (width,))
    keys.refuse("rope.dimension_count", (width,))
    window = keys.get("attention.sliding_window", 0)
    has_bias = "blk.0.attn_q.bias" in tensors
    return values | _scaling(keys, tensors) | {
        "head_width": 0 if width * values["heads"] == values["d_model"] else width,
        "kv_heads": keys.get("attention.head_count_kv", values["heads"]),
        "sliding_window": window if window < values["max_length"] else 0,
        "positions": "rotary",
        "position_layout": "interleaved",
        "rotary_base": float(keys.get("rope.freq_base", 10000.0)),
        "feed_forward": "swiglu",
        "bias": False,
        "query_key_value_bias": has_bias,
        "norm": "rms",
        "norm_eps": keys["attention.layer_norm_rms_epsilon"],
    }  # fmt: skip


def _qwen2(keys: Keys, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    return _llama(keys, tensors) | {"position_layout": "halves"}


def _scaling(keys: Keys, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return how angles are scaled: by a factor in the settings, or by the divisors of Llama 3."""
    keys.refuse("rope.scaling.type", ("none", "linear"))
    factor = keys.get("rope.scaling.factor", keys.get("rope.scale_linear", 1.0))
    if keys.get("rope.scaling.type", "linear") == "linear" and factor not in (0, 1):
        return {"rotary_scaling": "linear", "rotary_factor": float(factor)}
    if FACTORS not in tensors:
        return {}
    divisors = tensors[FACTORS].read_float32().astype(np.float64)
    base, factor = keys.get("rope.freq_base", 10000.0), divisors.max().item()
    turns = LLAMA_3["original_length"] * base ** -(np.arange(len(divisors)) / len(divisors)) / (2 * np.pi)
    kept = np.clip((turns - LLAMA_3["low"]) / (LLAMA_3["high"] - LLAMA_3["low"]), 0, 1)
    if factor < 1 or not np.allclose(1 / divisors, kept + (1 - kept) / factor, rtol=1e-4):
        raise ConfigError(f"{FACTORS}: expected the divisors of Llama 3; got others")
    names = {f"rotary_{name}": value for name, value in LLAMA_3.items()}
    return {"rotary_scaling": "llama3", "rotary_factor": round(factor, 4), **names}


def _token_ids(settings: Settings, tensors: Mapping[str, Tensor]) -> dict[str, int]:
    """Return the ids of special tokens. A model that lacks one has <eos> in its place."""
    vocab = tensors["token_embd.weight"].shape[0]

    def token(role: str, default: int) -> int:
        value = settings.get(f"tokenizer.ggml.{role}_token_id")
        return value if type(value) is int and 0 <= value < vocab else default

    eos = token("eos", 0)
    return {"eos": eos, "bos": token("bos", eos), "pad": token("padding", eos), "unk": token("unknown", 0)}


Reader = Callable[[Keys, Mapping[str, Tensor]], dict[str, Any]]
ARCHITECTURES: Mapping[str, tuple[Reader, Mapping[str, tuple[str, ...]]]] = {
    "llama": (_llama, LLAMA), "qwen2": (_qwen2, LLAMA), "gpt2": (_gpt2, GPT2),
}  # fmt: skip
