"""Conversion of a model file to the files of a CTranslate2 model.

It does not use ctranslate2.specs, which imports torch where that is installed: the first translation would wait for
that import.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from sixfold.alignment_heads import AligningHeads, aligning_heads
from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.modelfile import SCALE, ModelFile, Shortlist
from sixfold.weights import canonical, depth, has_cross_attention

BINARY_VERSION = 6
SPECS = {"encoder-decoder": ("TransformerSpec", 7), "decoder": ("TransformerDecoderSpec", 8)}
DTYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")  # in the order of their codes
ROTARY_SCALINGS = {"linear": 0, "llama3": 2}
ACTIVATIONS = {"relu": 0, "gelu-tanh": 1, "silu": 2, "swiglu": 2, "gelu": 3}

Variables = dict[str, np.ndarray]
Rows = slice | np.ndarray

# Our names: CTranslate2's names, inside one layer. There, the fused projection of cross-attention is two matrices.
LAYER = {
    "self_attention.query_key_value": "self_attention/linear_0",
    "self_attention.output": "self_attention/linear_1",
    "self_attention_norm": "self_attention/layer_norm",
    "cross_attention_norm": "attention/layer_norm",
    "feed_forward.up": "ffn/linear_0",
    "feed_forward.down": "ffn/linear_1",
    "feed_forward_norm": "ffn/layer_norm",
}
GATED_LAYER = {**LAYER, "feed_forward.gate": "ffn/linear_0", "feed_forward.up": "ffn/linear_0_noact"}


def check_supported(config: ModelConfig) -> None:
    """Raise RequestError that names every setting which CTranslate2 cannot compute."""
    reasons = {
        "model.kind": (config.kind == "encoder", "an encoder-only model has nothing to decode"),
        "model.compatibility": (config.compatibility != "scaled-dot", "it only knows scaled dot products"),
        "model.token_types": (config.token_types > 0, "its encoder adds no token types"),
        "model.sliding_window": (config.sliding_window > 0, "it leaves the window out of account in a prompt"),
        "model.output_transform": (config.output_transform, "its decoder has no layer before the projection"),
    }
    refused = [f"{name} = {getattr(config, name[6:])!r} ({why})" for name, (no, why) in reasons.items() if no]
    if refused:
        raise RequestError(
            f"CTranslate2 cannot run {'; '.join(refused)}", "use the torch engine: pip install 'sixfold[torch]'"
        )


def convert(model: ModelFile, tokens: Sequence[str], source_tokens: Sequence[str] | None = None) -> dict[str, bytes]:
    """Return the files of a CTranslate2 model by name. int8 rows are copied as they are stored.

    `tokens` has a string for each id of the vocabulary, and `source_tokens` for each that the encoder reads, if those
    are others.
    """
    config = model.config.model
    check_supported(config)
    assert len(tokens) == config.vocab
    assert len(source_tokens or tokens) == config.vocab_read
    name, revision = SPECS[config.kind]
    variables = dict(_variables(Weights(model)))
    settings = {
        "unk_token": tokens[config.unk], "bos_token": tokens[config.bos], "eos_token": tokens[config.eos],
        "layer_norm_epsilon": config.norm_eps, "multi_query_attention": config.groups != config.heads,
    }  # fmt: skip
    if config.kind == "encoder-decoder":
        settings |= {"decoder_start_token": tokens[config.bos], "add_source_bos": False, "add_source_eos": False}
    vocabularies = {"shared_vocabulary.json" if config.kind == "encoder-decoder" else "vocabulary.json": tokens}
    if source_tokens is not None:
        vocabularies = {"source_vocabulary.json": source_tokens, "target_vocabulary.json": tokens}
    files = {"model.bin": _serialise(name, revision, variables), "config.json": json.dumps(settings).encode()}
    files |= {name: json.dumps(list(each)).encode() for name, each in vocabularies.items()}
    if model.shortlist is not None:
        files["vmap.txt"] = _vocabulary_map(model.shortlist, tokens, source_tokens or tokens)
    return files


def _vocabulary_map(shortlist: Shortlist, tokens: Sequence[str], source_tokens: Sequence[str]) -> bytes:
    """Return a line for each source piece with its target pieces. The first line is for all source pieces."""
    lines = ["\t" + " ".join(tokens[target] for target in shortlist.always)]
    for source, (begin, end) in enumerate(pairwise(shortlist.begins.tolist())):
        if begin < end:
            lines.append(
                f"{source_tokens[source]}\t" + " ".join(tokens[target] for target in shortlist.targets[begin:end])
            )
    return ("\n".join(lines) + "\n").encode()


class Weights:
    """The weights of a model by name, as stored int8 rows or as float32.

    Each array is read once, so that `_serialise` recognises tied weights by their memory.
    """

    def __init__(self, model: ModelFile) -> None:
        self.config = model.config.model
        self.aligning = aligning_heads(model.card, self.config)
        self.tensors = model.tensors
        self._arrays: dict[str, np.ndarray] = {}
        self._model = model

    def __getitem__(self, name: str) -> np.ndarray:
        name = canonical(self.config, name)
        if name not in self._arrays:
            stored = self.tensors[name]
            self._arrays[name] = stored.read() if stored.dtype in ("I8", "F32") else self._model.weight(name)
        return self._arrays[name]

    def scale(self, name: str) -> np.ndarray | None:
        """Return the scales of the rows of an int8 weight, or None for other types."""
        tensor = self.tensors.get(canonical(self.config, name) + SCALE)
        return None if tensor is None else tensor.data


def _variables(model: Weights) -> Iterator[tuple[str, np.ndarray]]:
    config = model.config
    for stack in config.stacks:
        yield from _stack_settings(config, stack, model.aligning)
        embeddings = "encoder/embeddings_0" if stack == "encoder" else "decoder/embeddings"
        yield from _matrix(model, f"{stack}.embedding.token", embeddings)
        if config.positions != "rotary":
            yield f"{stack}/position_encodings/encodings", position_table(model, stack)
        if config.embedding_norm:
            yield from _norm(model, f"{stack}.embedding.norm", f"{stack}/layernorm_embedding")
        if config.ends_in_norm:
            yield from _norm(model, f"{stack}.norm", f"{stack}/layer_norm")
        for index in range(depth(config, stack)):
            yield from _layer(model, stack, index)
    yield from _matrix(model, "output.projection", "decoder/projection", bias=config.output_bias)


def _stack_settings(config: ModelConfig, stack: str, aligning: AligningHeads) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{stack}/num_heads", np.array(config.heads, np.int16)
    yield f"{stack}/pre_norm", np.array(config.norm_position == "pre", np.int8)
    yield f"{stack}/activation", np.array(ACTIVATIONS[config.feed_forward], np.int8)
    yield f"{stack}/scale_embeddings", np.array(config.scale_embeddings, np.int8)
    if stack == "encoder":
        yield f"{stack}/embeddings_merge", np.array(0, np.int8)
        yield f"{stack}/multi_query_attention", np.array(0, np.int8)
    else:
        yield f"{stack}/alignment_layer", np.array(aligning.layer, np.int16)
        yield (
            f"{stack}/alignment_heads",
            np.array(len(aligning.heads), np.int16),
        )  # it takes the mean of this many first heads
        for flag in ("alibi", "alibi_use_positive_positions", "scale_alibi", "start_from_zero_embedding"):
            yield f"{stack}/{flag}", np.array(0, np.int8)


def position_table(model: Weights, stack: str) -> np.ndarray:
    """Return the position table of a stack. CTranslate2 always adds one: zeros for a model without positions."""
    config = model.config
    offset, rows = config.position_offset, config.max_length
    if config.positions == "learned":
        return model[f"{stack}.embedding.position.weight"][offset:]
    table = np.zeros((rows, config.d_model), np.float32)
    if config.positions == "sinusoidal":
        steps = config.d_model // 2 if config.position_spacing == "open" else max(1, config.d_model // 2 - 1)
        pairs = np.arange(config.d_model // 2) / steps
        angles = np.arange(offset, offset + rows)[:, None] * 10000.0**-pairs
        half = config.d_model // 2
        first, second = (
            (np.s_[0::2], np.s_[1::2]) if config.position_layout == "interleaved" else (np.s_[:half], np.s_[half:])
        )
        table[:, first], table[:, second] = np.sin(angles), np.cos(angles)
    return table


def _layer(model: Weights, stack: str, index: int) -> Iterator[tuple[str, np.ndarray]]:
    config = model.config
    ours, theirs = f"{stack}.layers.{index}", f"{stack}/layer_{index}"
    cross = has_cross_attention(config, stack)
    for name, target in (GATED_LAYER if config.feed_forward == "swiglu" else LAYER).items():
        if name.startswith("cross_attention") and not cross:
            continue
        convert_part = _norm if name.endswith("norm") else _matrix
        yield from convert_part(model, f"{ours}.{name}", f"{theirs}/{target}")
    if cross:
        yield from _cross_attention(model, f"{ours}.cross_attention", f"{theirs}/attention", index)
    for attention in ("self_attention", "attention") if cross else ("self_attention",):
        if config.groups != config.heads:
            yield f"{theirs}/{attention}/num_heads_kv", np.array(config.groups, np.int32)
        if config.head_width:
            yield f"{theirs}/{attention}/head_dim", np.array(config.head_width, np.int32)
        if config.positions == "rotary" and attention == "self_attention":
            for name, value in _rotary(config):
                yield f"{theirs}/{attention}/{name}", value


def _rotary(config: ModelConfig) -> Iterator[tuple[str, np.ndarray]]:
    yield "rotary_dim", np.array(0, np.int32)  # 0: all of the head
    yield "rotary_interleave", np.array(config.position_layout == "interleaved", np.int8)
    yield "rotary_base", np.array(config.rotary_base, np.float32)
    if config.rotary_scaling == "none":
        return
    yield "rotary_scaling_type", np.array(ROTARY_SCALINGS[config.rotary_scaling], np.int8)
    yield "rotary_scaling_factor", np.array(config.rotary_factor, np.float32)
    if config.rotary_scaling == "llama3":
        yield "rotary_low_freq_factor", np.array(config.rotary_low, np.float32)
        yield "rotary_high_freq_factor", np.array(config.rotary_high, np.float32)
        yield "original_max_position_embeddings", np.array(config.rotary_original_length, np.int32)


def _cross_attention(model: Weights, ours: str, theirs: str, index: int) -> Iterator[tuple[str, np.ndarray]]:
    """Split the fused projection into those of queries and of keys and values. Add the output projection.

    In the alignment layer the alignment heads are moved to the front, because CTranslate2 returns the mean of the
    first heads. The order of the heads changes nothing else.
    """
    config, width = model.config, model.config.heads * model.config.d_head
    query: Rows = slice(None, width)
    keys_and_values: Rows = slice(width, None)
    columns: Rows = slice(None)
    if index == model.aligning.layer and len(model.aligning.heads) < config.heads:
        heads, groups = aligning_first(config, model.aligning.heads)
        query, keys = features_of(heads, config.d_head), width + features_of(groups, config.d_head)
        keys_and_values = np.concatenate([keys, keys + config.groups * config.d_head])
        columns = query
    yield from _matrix(model, f"{ours}.query_key_value", f"{theirs}/linear_0", query)
    yield from _matrix(model, f"{ours}.query_key_value", f"{theirs}/linear_1", keys_and_values)
    for name, array in _matrix(model, f"{ours}.output", f"{theirs}/linear_2"):
        yield name, array[:, columns] if array.ndim == 2 else array


def aligning_first(config: ModelConfig, chosen: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return an order of all heads that begins with the chosen ones, and the order of the key-value heads for it."""
    shared = config.heads // config.groups
    groups = list(dict.fromkeys([*(head // shared for head in chosen), *range(config.groups)]))
    heads = [head for group in groups for head in range(group * shared, (group + 1) * shared)]
    return sorted(heads, key=lambda head: (head not in chosen, heads.index(head))), groups


def features_of(heads: Sequence[int], d_head: int) -> np.ndarray:
    """Return the indices of the features of these heads, head by head."""
    return (np.array(heads)[:, None] * d_head + np.arange(d_head)).ravel()


def _matrix(
    model: Weights, ours: str, theirs: str, rows: Rows = slice(None), bias: bool | None = None
) -> Iterator[tuple[str, np.ndarray]]:
    name = f"{ours}.weight"
    yield f"{theirs}/weight", model[name][rows]
    scale = model.scale(name)
    if scale is not None:
        yield f"{theirs}/weight_scale", scale[rows]
    if has_bias(model.config, ours) if bias is None else bias:
        yield f"{theirs}/bias", model[f"{ours}.bias"][rows]


def has_bias(config: ModelConfig, name: str) -> bool:
    """Return whether a matrix of a layer or of an embedding has a bias."""
    if ".embedding." in name:
        return False
    return config.has_query_key_value_bias if name.endswith("query_key_value") else config.bias


def _norm(model: Weights, ours: str, theirs: str) -> Iterator[tuple[str, np.ndarray]]:
    yield f"{theirs}/gamma", model[f"{ours}.weight"]
    if model.config.norm == "layer":
        yield f"{theirs}/beta", model[f"{ours}.bias"]


def _serialise(name: str, revision: int, variables: Variables) -> bytes:
    """Return CTranslate2's binary format: a table of named arrays, then other names of arrays in that table."""
    first_names: dict[tuple[int, tuple[int, ...]], str] = {}
    aliases: list[tuple[str, str]] = []
    parts = [struct.pack("<I", BINARY_VERSION), _string(name), struct.pack("<I", revision), b""]
    count = 0
    for variable, array in variables.items():
        memory = (array.ctypes.data, array.shape)
        if array.ndim > 0 and memory in first_names:
            aliases.append((variable, first_names[memory]))
            continue
        first_names[memory] = variable
        parts += [_string(variable), struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)]
        parts += [struct.pack("<BI", DTYPES.index(array.dtype.name), array.nbytes), array.tobytes()]
        count += 1
    parts[3] = struct.pack("<I", count)
    parts.append(struct.pack("<I", len(aliases)))
    parts += [_string(alias) + _string(variable) for alias, variable in aliases]
    return b"".join(parts)


def _string(text: str) -> bytes:
    return struct.pack("<H", len(text) + 1) + text.encode() + b"\0"
