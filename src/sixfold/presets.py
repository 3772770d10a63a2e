"""The named model shapes that a configuration can start from, and configuration files that name one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sixfold.config import Config, from_dict, to_dict
from sixfold.configfile import did_you_mean, merge, read_toml
from sixfold.errors import ConfigError

_BERT = {
    "kind": "encoder", "vocab": 30522, "max_length": 512, "positions": "learned", "feed_forward": "gelu",
    "scale_embeddings": False, "embedding_norm": True, "token_types": 2, "norm_eps": 1e-12,
    "output_bias": True, "output_transform": True, "unk": 100, "bos": 101, "eos": 102,
}  # fmt: skip
_GPT2 = {
    "kind": "decoder", "vocab": 50257, "max_length": 1024, "positions": "learned", "feed_forward": "gelu-tanh",
    "norm_position": "pre", "scale_embeddings": False, "bos": 50256, "eos": 50256, "pad": 50256, "unk": 50256,
}  # fmt: skip
_LLAMA = {
    "kind": "decoder", "max_length": 4096, "positions": "rotary", "position_layout": "halves",
    "feed_forward": "swiglu", "norm": "rms", "norm_position": "pre", "bias": False, "dropout": 0.0,
    "scale_embeddings": False, "tie_output": False, "pad": 0, "bos": 1, "eos": 2, "unk": 0,
}  # fmt: skip
# Small decoder-only models of the LLaMA family.
_DECODER = {**_LLAMA, "max_length": 1024, "tie_output": True, "unk": 3}

PRESETS: Mapping[str, Mapping[str, Any]] = {
    "base": {},
    "big": {"d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3},
    "small": {"vocab": 16000, "d_model": 384, "heads": 6, "d_ff": 1536, "encoder_layers": 8, "decoder_layers": 2,
              "norm_position": "pre"},
    "tiny": {"vocab": 8000, "d_model": 192, "heads": 4, "d_ff": 768, "encoder_layers": 3, "decoder_layers": 2,
             "norm_position": "pre"},
    "bert-base": {**_BERT, "d_model": 768, "heads": 12, "d_ff": 3072, "encoder_layers": 12},
    "decoder-tiny": {**_DECODER, "vocab": 4000, "d_model": 192, "heads": 4, "d_ff": 512, "decoder_layers": 4},
    "decoder-small": {**_DECODER, "vocab": 16000, "d_model": 384, "heads": 6, "d_ff": 1024, "decoder_layers": 8},
    "decoder-base": {**_DECODER, "vocab": 32000, "d_model": 768, "heads": 12, "d_ff": 2048, "decoder_layers": 12},
    "gpt2": {**_GPT2, "d_model": 768, "heads": 12, "d_ff": 3072, "decoder_layers": 12},
    "llama-7b": {**_LLAMA, "norm_eps": 1e-6, "d_model": 4096, "heads": 32, "d_ff": 11008, "decoder_layers": 32},
    "llama-tiny": {**_LLAMA, "vocab": 8000, "d_model": 256, "heads": 8, "kv_heads": 2, "d_ff": 704,
                   "decoder_layers": 6, "max_length": 1024, "tie_output": True},
}  # fmt: skip


def preset(name: str) -> Config:
    """Return the full configuration of a preset."""
    if name not in PRESETS:
        raise ConfigError(f"preset: expected one of {', '.join(PRESETS)}; got {name!r}", did_you_mean(name, PRESETS))
    return from_dict({"model": dict(PRESETS[name]), "tokenizer": {"vocab": PRESETS[name].get("vocab", 32000)}})


def load(path: Path) -> Config:
    """Read a TOML file. A top-level `preset = "small"` names the preset that its settings change."""
    return from_tree(read_toml(path), str(path))


def from_tree(tree: dict[str, Any], where: str) -> Config:
    """Return the settings of a TOML file, on top of the preset that it names."""
    name = tree.pop("preset", None)
    if name is not None and not isinstance(name, str):
        raise ConfigError(f"{where}: preset: expected a name; got {name!r}")
    base = to_dict(preset(name)) if name else {}
    return from_dict(merge(base, tree))
