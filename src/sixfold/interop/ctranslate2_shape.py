"""The shape of a CTranslate2 model, from its variables; what this project cannot compute is refused by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, cast

import numpy as np

from sixfold.config import FeedForward, ModelConfig
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.ctranslate2 import ACTIVATIONS
from sixfold.interop.ctranslate2_folder import Variables

SPEC = "TransformerSpec"
# Variables that change what is computed, with the value that this project computes.
FLAGS = {
    "alibi": 0, "alibi_use_positive_positions": 0, "scale_alibi": 0, "embeddings_merge": 0, "multi_query_attention": 0,
    "sliding_window": 0, "scale_outputs": 0, "rotary_dim": None, "num_heads_kv": None, "head_dim": None,
}  # fmt: skip
# Variables that say how a model is run and not what it computes.
IGNORED = ("alignment_layer", "alignment_heads", "num_heads", "pre_norm", "activation", "scale_embeddings")
IGNORED_BY_OLD = ("with_source_bos", "with_source_eos", "with_target_bos", "user_decoder_start_tokens")
PAD_TOKENS = ("<pad>", "<blank>")


def config_of(
    variables: Variables, settings: Mapping[str, Any], source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> ModelConfig:
    """Return the shape of a model from its variables; ModelFileError names what this project cannot compute."""
    if variables.name != SPEC:
        raise ModelFileError(f"{variables.where}: expected a model that translates ({SPEC}); got {variables.name}")
    _check_flags(variables)
    try:
        layers = {stack: _count_layers(variables, stack) for stack in ("encoder", "decoder")}
        source = variables.arrays[embeddings_of(variables, "encoder")]
        target = variables.arrays[embeddings_of(variables, "decoder")]
        projection = variables.arrays["decoder/projection/weight"]
        up = variables.arrays["encoder/layer_0/ffn/linear_0/weight"]
    except KeyError as error:
        raise ModelFileError(f"{variables.where}: expected the variable {error.args[0]}; found none") from None
    if (len(source), len(target)) != (len(source_tokens), len(target_tokens)):
        raise ModelFileError(
            f"{variables.where}: expected vocabularies of {len(source)} and {len(target)} tokens, as many as the "
            f"embeddings have; got {len(source_tokens)} and {len(target_tokens)}"
        )
    heads, pre_norm, activation, scaled = (
        _shared_setting(variables, name, default)
        for name, default in (("num_heads", 8), ("pre_norm", 1), ("activation", 0), ("scale_embeddings", 1))
    )
    gated = "encoder/layer_0/ffn/linear_0_noact/weight" in variables
    names = [name for name, code in ACTIVATIONS.items() if code == activation and (name == "swiglu") == gated]
    if not names:
        raise ModelFileError(f"{variables.where}: activation: expected one of {ACTIVATIONS}; got {activation}")
    is_shared = _are_same(variables, embeddings_of(variables, "encoder"), embeddings_of(variables, "decoder"))
    attention = "encoder/layer_0/self_attention"
    norm = f"{attention}/layer_norm/beta" in variables
    bias = "encoder/layer_0/ffn/linear_0/bias" in variables
    ids = {token: index for index, token in reversed(list(enumerate(target_tokens)))}
    unk = ids.get(settings.get("unk_token", "<unk>"), 0)
    eos = ids.get(settings.get("eos_token", "</s>"), unk)
    positions, max_length = _positions(variables)
    try:
        return ModelConfig(
            vocab=len(target), source_vocab=0 if len(source) == len(target) else len(source),
            d_model=target.shape[1], heads=heads, d_ff=len(up), encoder_layers=layers["encoder"],
            decoder_layers=layers["decoder"], max_length=max_length, feed_forward=cast(FeedForward, names[0]),
            bias=bias, query_key_value_bias=not bias and f"{attention}/linear_0/bias" in variables,
            norm="layer" if norm else "rms",
            norm_position="pre" if pre_norm else "post",
            final_norm=not pre_norm and "encoder/layer_norm/gamma" in variables,
            norm_eps=float(settings.get("layer_norm_epsilon") or 1e-5), scale_embeddings=bool(scaled),
            share_embeddings=is_shared, embedding_norm="encoder/layernorm_embedding/gamma" in variables,
            tie_output=projection.shape == target.shape
            and _are_same(variables, "decoder/projection/weight", embeddings_of(variables, "decoder")),
            output_bias="decoder/projection/bias" in variables, dropout=0.1,
            pad=next((ids[token] for token in PAD_TOKENS if token in ids), unk), unk=unk, eos=eos,
            bos=ids.get(settings.get("decoder_start_token") or settings.get("bos_token", "<s>"), eos), **positions,
        )  # fmt: skip
    except (ConfigError, IndexError, TypeError) as error:
        raise ModelFileError(f"{variables.where}: {error}") from None


def _check_flags(variables: Variables) -> None:
    faults = []
    for name, array in variables.arrays.items():
        flag = name.rpartition("/")[2]
        if flag in FLAGS:
            variables.used.add(name)
            if FLAGS[flag] is None or array.reshape(-1)[0] != FLAGS[flag]:
                faults.append(f"{name} = {array.reshape(-1)[0]}")
        if flag in (*IGNORED, *IGNORED_BY_OLD):
            variables.used.add(name)
    if faults:
        raise ModelFileError(f"{variables.where}: expected options that this project computes; got {'; '.join(faults)}")


def _count_layers(variables: Variables, stack: str) -> int:
    count = 0
    while f"{stack}/layer_{count}/self_attention/linear_0/weight" in variables:
        count += 1
    return count


def embeddings_of(variables: Variables, stack: str) -> str:
    names = [f"{stack}/embeddings_0/weight", f"{stack}/embeddings/weight"]
    return next((name for name in names if name in variables), names[0])


def _are_same(variables: Variables, first: str, second: str) -> bool:
    scales = [variables.arrays.get(f"{name}_scale", np.empty(0)) for name in (first, second)]
    return np.array_equal(variables.arrays[first], variables.arrays[second]) and np.array_equal(scales[0], scales[1])


def _shared_setting(variables: Variables, name: str, default: int) -> int:
    """Return a setting that both stacks must have the same value of; old models have it once."""
    values = {variables.scalar(f"{stack}/{name}", variables.scalar(name, default)) for stack in ("encoder", "decoder")}
    if len(values) > 1:
        raise ModelFileError(f"{variables.where}: {name}: expected one value for both stacks; got {sorted(values)}")
    return int(values.pop())


def _positions(variables: Variables) -> tuple[dict[str, Any], int]:
    """Return the settings of the positions: sinusoids if the tables are some, else learned ones.

    A model without a table has those of tensor2tensor, whose first position is 1.
    """
    names = [f"{stack}/position_encodings/encodings" for stack in ("encoder", "decoder")]
    if names[0] not in variables:
        halves = {"position_layout": "halves", "position_spacing": "closed", "position_offset": 1}
        return {"positions": "sinusoidal"} | halves, 2048
    tables = [variables.arrays[name].astype(np.float32) for name in names]
    rows = min(map(len, tables))
    if not any(table.any() for table in tables):
        variables.used.update(names)
        return {"positions": "none"}, rows
    for layout, spacing, offset in product(("interleaved", "halves"), ("open", "closed"), range(3)):
        expected = sinusoid_table(rows, tables[0].shape[1], layout, spacing, offset)
        if all(np.abs(table[:rows] - expected).max() < 2e-3 for table in tables):
            variables.used.update(names)
            settings = {"position_layout": layout, "position_spacing": spacing, "position_offset": offset}
            return {"positions": "sinusoidal"} | settings, rows
    return {"positions": "learned"}, rows


def sinusoid_table(rows: int, width: int, layout: str, spacing: str, offset: int) -> np.ndarray:
    """Return the sinusoids of the first positions."""
    steps = width // 2 if spacing == "open" else max(1, width // 2 - 1)
    angles = np.arange(offset, offset + rows)[:, None] * 10000.0 ** -(np.arange(width // 2) / steps)
    parts = np.sin(angles), np.cos(angles)
    return np.stack(parts, axis=-1).reshape(rows, -1) if layout == "interleaved" else np.concatenate(parts, axis=1)
