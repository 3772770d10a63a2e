"""Export of decoder-only models to folders that transformers loads: GPT-2, LLaMA, Qwen2 or Mistral."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sixfold import tensorfile
from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.interop.family_settings import ROTARY_SCALINGS
from sixfold.interop.huggingface import export_tensors
from sixfold.interop.huggingface_export import write_json
from sixfold.interop.prompt_tokenizers import tokenizer_json
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor, computed
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.tokenizer import Tokenizer

Row = Mapping[str, tuple[Any, ...]]
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "gelu-tanh": "gelu_new", "silu": "silu"}
# What the classes of transformers compute. A model that has other values fits none of them.
COMMON: Row = {
    "kind": ("decoder",), "compatibility": ("scaled-dot",), "norm_position": ("pre",), "scale_embeddings": (False,),
    "embedding_norm": (False,), "output_bias": (False,), "output_transform": (False,), "share_layers": (False,),
}  # fmt: skip
ROTARY: Row = {"positions": ("rotary",), "norm": ("rms",), "feed_forward": ("swiglu",)}
NO_WINDOW: Row = {"sliding_window": (0,)}
FAMILIES: Mapping[str, Row] = {
    "gpt2": {
        "positions": ("learned",), "position_offset": (0,), "norm": ("layer",), "feed_forward": tuple(ACTIVATIONS),
        "bias": (True,), "head_width": (0,), **NO_WINDOW,
    },
    "llama": {**ROTARY, **NO_WINDOW, "query_key_value_bias": (False,)},
    "qwen2": {**ROTARY, "bias": (False,), "query_key_value_bias": (True,)},
    "mistral": {**ROTARY, "bias": (False,), "query_key_value_bias": (False,)},
}  # fmt: skip
CLASSES = {
    "gpt2": "GPT2LMHeadModel", "llama": "LlamaForCausalLM", "qwen2": "Qwen2ForCausalLM",
    "mistral": "MistralForCausalLM",
}  # fmt: skip
TYPES = {"BF16": "bfloat16", "F16": "float16"}


def write_decoder(file: ModelFile, folder: Path) -> list[str]:
    """Write config.json, the weights, generation_config.json and the tokeniser; return notes for the user.

    Weights keep their type; int8 becomes float32, because transformers has no such rows.
    """
    config = file.config.model
    family = choose_family(config)
    weights = {name: _in_halves(config, name, tensor) for name, tensor in file.stored_weights().items()}
    tensors = export_tensors(config, weights, family)
    tensorfile.write(folder / "model.safetensors", tensors, {"format": "pt"})
    types = {TYPES.get(tensor.dtype, "float32") for tensor in tensors.values()}
    layout = file.prompt_format or PromptFormat((config.bos,), (config.eos,))
    ids = {"bos_token_id": config.bos, "eos_token_id": _one_or_all(layout.ends), "pad_token_id": config.pad}
    named = {"torch_dtype": types.pop() if len(types) == 1 else "float32"}
    write_json(folder / "config.json", SETTINGS[family](config) | ids | named | {
        "model_type": family, "architectures": [CLASSES[family]], "vocab_size": config.vocab,
        "tie_word_embeddings": config.tie_output,
    })  # fmt: skip
    write_json(folder / "generation_config.json", ids)
    if file.tokenizer is None:
        return ["the model has no tokeniser, and the folder has none"]
    return _write_tokenizer(file.tokenizer, layout, config, folder)


def choose_family(config: ModelConfig) -> str:
    """Return the family of transformers that computes what a model computes; RequestError says what does not fit."""
    faults = {}
    for family, expected in FAMILIES.items():
        faults[family] = [
            f"model.{name} = {getattr(config, name)!r}"
            for name, values in {**COMMON, **expected}.items()
            if getattr(config, name) not in values
        ]
        if family == "gpt2" and config.groups != config.heads:
            faults[family].append(f"model.kv_heads = {config.kv_heads}")
        if not faults[family]:
            return family
    nearest = min(faults, key=lambda family: len(faults[family]))
    raise RequestError(
        f"transformers has no class for this model; nearest is {nearest}, but for {', '.join(faults[nearest])}",
        "presets such as decoder-small have a shape that transformers computes",
    )


def _in_halves(config: ModelConfig, name: str, tensor: Tensor) -> Tensor:
    """Return a weight with the rotary pairs of queries and keys in halves, as transformers has them."""
    if config.positions != "rotary" or config.position_layout == "halves" or "query_key_value" not in name:
        return tensor
    rows = np.concatenate([
        rows_in_halves(config.heads + config.groups, config.d_head),
        np.arange((config.heads + config.groups) * config.d_head, tensor.shape[0]),
    ])  # fmt: skip
    return computed(tensor.dtype, tensor.shape, lambda: tensor.read()[rows], name)


def rows_in_halves(heads: int, d_head: int) -> np.ndarray:
    """Return where each row of a projection with rotary pairs in halves is in one with pairs as neighbours.

    One head of width 6: 0 2 4 1 3 5.
    """
    order = np.r_[0:d_head:2, 1:d_head:2]
    return np.asarray((np.arange(heads)[:, None] * d_head + order).reshape(-1))


def _gpt2_settings(config: ModelConfig) -> dict[str, Any]:
    return {
        "n_embd": config.d_model, "n_layer": config.decoder_layers, "n_head": config.heads, "n_inner": config.d_ff,
        "n_positions": config.max_length, "activation_function": ACTIVATIONS[config.feed_forward],
        "layer_norm_epsilon": config.norm_eps, "resid_pdrop": config.dropout, "embd_pdrop": config.dropout,
        "attn_pdrop": 0.0,
    }  # fmt: skip


def _rotary_settings(config: ModelConfig) -> dict[str, Any]:
    kind = "default" if config.rotary_scaling == "none" else config.rotary_scaling
    scaling = {theirs: getattr(config, ours) for ours, theirs in ROTARY_SCALINGS[kind].items()} | {"rope_type": kind}
    return {
        "hidden_size": config.d_model, "num_hidden_layers": config.decoder_layers, "head_dim": config.d_head,
        "num_attention_heads": config.heads, "num_key_value_heads": config.groups, "hidden_act": "silu",
        "intermediate_size": config.d_ff, "max_position_embeddings": config.max_length,
        "rms_norm_eps": config.norm_eps, "rope_parameters": scaling | {"rope_theta": config.rotary_base},
        # The names of versions before 5.
        "rope_theta": config.rotary_base, "rope_scaling": None if kind == "default" else scaling,
    }  # fmt: skip


def _llama_settings(config: ModelConfig) -> dict[str, Any]:
    return _rotary_settings(config) | {"attention_bias": config.bias, "mlp_bias": config.bias}


def _qwen2_settings(config: ModelConfig) -> dict[str, Any]:
    has_window = config.sliding_window > 0
    return _rotary_settings(config) | {
        "use_sliding_window": has_window, "sliding_window": config.sliding_window or None,
        "max_window_layers": 0 if has_window else config.decoder_layers,
        "layer_types": ["sliding_attention" if has_window else "full_attention"] * config.decoder_layers,
    }  # fmt: skip


def _mistral_settings(config: ModelConfig) -> dict[str, Any]:
    return _rotary_settings(config) | {"sliding_window": config.sliding_window or None}


SETTINGS = {"gpt2": _gpt2_settings, "llama": _llama_settings, "qwen2": _qwen2_settings, "mistral": _mistral_settings}


def _write_tokenizer(tokenizer: Tokenizer, layout: PromptFormat, config: ModelConfig, folder: Path) -> list[str]:
    """Write tokenizer.json and tokenizer_config.json, which has the special tokens and the chat template."""
    (folder / "tokenizer.json").write_bytes(tokenizer_json(tokenizer, layout.before).encode())
    texts = dict(layout.token_texts) or {
        f"{role}_token": tokenizer.tokens[index] for role, index in tokenizer.specials.items() if role != "mask"
    }
    about: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config.max_length,
        "clean_up_tokenization_spaces": False, **texts,
    }  # fmt: skip
    if layout.chat_template:
        about["chat_template"] = layout.chat_template
    write_json(folder / "tokenizer_config.json", about)
    if tokenizer.is_foreign:
        return []
    return ["special tokens that are typed in a text, such as <eos>, are characters here and tokens in transformers"]


def _one_or_all(ids: tuple[int, ...]) -> int | list[int]:
    return ids[0] if len(ids) == 1 else list(ids)
