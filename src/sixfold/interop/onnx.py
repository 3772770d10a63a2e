"""Export to ONNX: a graph for the encoder, and one for a step of the decoder, which takes and gives a cache.

A step takes the target tokens that are new: all so far at first, then one at a time. The keys and values of earlier
ones, and those of the source, which the encoder gives, are inputs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sixfold.config import ModelConfig
from sixfold.errors import RequestError
from sixfold.interop.ctranslate2 import Weights, position_table
from sixfold.modelfile import ModelFile

OPSET = 18
MAX_INLINE_BYTES = 1_500_000_000  # a message of protocol buffers has at most 2 GiB
FORBIDDEN = np.float32(-1e9)  # the score of a key that may not be attended to
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"

Pair = tuple[str, str]  # the names of keys and of values


def write_onnx(file: ModelFile, folder: Path) -> None:
    """Write encoder.onnx and decoder.onnx.

    Keys and values are rows × heads × tokens × d_head. The names of those of layer 0 stand for those of all layers.

    - The encoder takes `source` (rows × source, token ids) and `mask` (true for real tokens). It gives `source.0.key`
      and `source.0.value`, to which the layers of the decoder attend.
    - The decoder takes `target` (rows × new tokens; the first of all is <bos>), `mask`, all that the encoder gives, and
      `past.0.key` and `past.0.value`, which have no tokens at first. It gives `logits` (rows × vocab) of the token
      after the target, and `present.0.key` and `present.0.value`, which are `past` for the next step.
    """
    onnx = import_onnx()
    config = file.config.model
    check_supported(config)
    for name, build in ((ENCODER, _encoder), (DECODER, _decoder)):
        graph = Graph(onnx, file)
        build(graph)
        model = graph.model(name)
        size = sum(len(each.raw_data) for each in model.graph.initializer)
        onnx.checker.check_model(model, full_check=size < MAX_INLINE_BYTES)
        external = {"save_as_external_data": True, "location": f"{name}.data"} if size > MAX_INLINE_BYTES else {}
        onnx.save_model(model, str(folder / name), **external)


def import_onnx() -> Any:
    """Return the module `onnx`."""
    try:
        import onnx
        import onnx.reference
    except ImportError:
        raise RequestError("--to onnx needs onnx, which is not installed", "pip install 'sixfold[onnx]'") from None
    return onnx


def check_supported(config: ModelConfig) -> None:
    """Raise RequestError that names every setting which the graphs cannot compute."""
    reasons = {
        "model.kind": config.kind != "encoder-decoder",
        "model.positions": config.positions == "rotary",
        "model.compatibility": config.compatibility != "scaled-dot",
        "model.sliding_window": config.sliding_window > 0,
        "model.token_types": config.token_types > 0,
        "model.output_transform": config.output_transform,
    }
    refused = [f"{name} = {getattr(config, name[6:])!r}" for name, is_refused in reasons.items() if is_refused]
    if refused:
        raise RequestError(f"the export to ONNX cannot compute {'; '.join(refused)}", "export it to ctranslate2")


class OnnxModel:
    """The graphs of a folder, run by the reference evaluator of `onnx`."""

    def __init__(self, folder: Path) -> None:
        onnx = import_onnx()
        self._encoder, self._decoder = (
            onnx.reference.ReferenceEvaluator(str(folder / name)) for name in (ENCODER, DECODER)
        )

    def logits(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        """Return the logits of the token after each target, whose last token is a step of its own."""
        mask = np.ones(source.shape, bool)
        values = self._encoder.run(None, {"source": source.astype(np.int64), "mask": mask})
        memory = dict(zip(self._encoder.output_names, values, strict=True))
        key = memory["source.0.key"]
        past = [np.zeros((*key.shape[:2], 0, key.shape[3]), np.float32)] * len(memory)
        names = [name for name in self._decoder.input_names if name.startswith("past.")]
        logits = np.zeros(0)
        for tokens in filter(np.size, (target[:, :-1], target[:, -1:])):
            inputs = {"target": tokens.astype(np.int64), "mask": mask, **memory, **dict(zip(names, past, strict=True))}
            logits, *past = self._decoder.run(None, inputs)
        return np.asarray(logits)


class Graph:
    """A graph under construction: nodes, and weights as initialisers. A value is the name of what a node computes."""

    def __init__(self, onnx: Any, file: ModelFile) -> None:
        self.onnx, self.file, self.config = onnx, file, file.config.model
        self.nodes: list[Any] = []
        self.initializers: dict[str, Any] = {}
        self.inputs: list[Any] = []
        self.outputs: list[Any] = []

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node and return the name of its output."""
        name = f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, array: Any, kind: Any = np.float32) -> str:
        """Add an initialiser and return its name."""
        if name not in self.initializers:
            values = np.asarray(array, kind, order="C")  # ascontiguousarray would turn a scalar into a list
            self.initializers[name] = self.onnx.numpy_helper.from_array(values, name)
        return name

    def integers(self, *values: int) -> str:
        """Return a list of whole numbers."""
        return self.constant(f"integers_{'_'.join(map(str, values))}", values, np.int64)

    def number(self, value: float) -> str:
        """Return a number."""
        return self.constant(f"number_{value!r}", value)

    def weight(self, name: str) -> np.ndarray:
        return self.file.weight(name)

    def add_input(self, name: str, kind: Any, shape: Sequence[int | str]) -> None:
        self.inputs.append(self._info(name, kind, shape))

    def add_output(self, value: str, name: str, shape: Sequence[int | str]) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name], name=name))
        self.outputs.append(self._info(name, self.onnx.TensorProto.FLOAT, shape))

    def _info(self, name: str, kind: Any, shape: Sequence[int | str]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, kind, list(shape))

    def model(self, name: str) -> Any:
        """Return the finished model."""
        graph = self.onnx.helper.make_graph(
            self.nodes, name, self.inputs, self.outputs, list(self.initializers.values())
        )
        opset = self.onnx.helper.make_opsetid("", OPSET)
        return self.onnx.helper.make_model(graph, opset_imports=[opset], ir_version=9, producer_name="sixfold")


def _encoder(graph: Graph) -> None:
    types = graph.onnx.TensorProto
    graph.add_input("source", types.INT64, ("rows", "source"))
    graph.add_input("mask", types.BOOL, ("rows", "source"))
    mask = _padding_scores(graph)
    x = _embedding(graph, "encoder", "source", graph.integers(0))
    for index in range(graph.config.encoder_layers):
        layer = f"encoder.layers.{index}"
        x = _sublayer(
            graph, f"{layer}.self_attention", x,
            lambda y, name: _attention(graph, name, y, _keys_and_values(graph, name, y), mask),
        )  # fmt: skip
        x = _sublayer(graph, f"{layer}.feed_forward", x, lambda y, name: _feed_forward(graph, name, y))
    memory = _norm(graph, "encoder.norm", x) if graph.config.ends_in_norm else x
    names = [f"decoder.layers.{index}.cross_attention" for index in range(graph.config.decoder_layers)]
    _add_outputs(graph, "source", [_keys_and_values(graph, name, memory) for name in names], "source")


def _decoder(graph: Graph) -> None:
    types, config = graph.onnx.TensorProto, graph.config
    graph.add_input("target", types.INT64, ("rows", "target"))
    graph.add_input("mask", types.BOOL, ("rows", "source"))
    for prefix, length in (("source", "source"), ("past", "past")):
        for index in range(config.decoder_layers):
            for name in _names(prefix, index):
                graph.add_input(name, types.FLOAT, _cache_shape(graph, length))
    start = graph.op("Gather", graph.op("Shape", "past.0.key"), graph.integers(2))
    causal, padding = _causal_scores(graph, start), _padding_scores(graph)
    present: list[Pair] = []

    def attend_to_target(x: str, name: str) -> str:
        key, value = _keys_and_values(graph, name, x)
        past_key, past_value = _names("past", len(present))
        present.append((graph.op("Concat", past_key, key, axis=2), graph.op("Concat", past_value, value, axis=2)))
        return _attention(graph, name, x, present[-1], causal)

    x = _embedding(graph, "decoder", "target", start)
    for index in range(config.decoder_layers):
        layer, source = f"decoder.layers.{index}", _names("source", index)
        x = _sublayer(graph, f"{layer}.self_attention", x, attend_to_target)
        x = _sublayer(
            graph, f"{layer}.cross_attention", x,
            lambda y, name, source=source: _attention(graph, name, y, source, padding),
        )  # fmt: skip
        x = _sublayer(graph, f"{layer}.feed_forward", x, lambda y, name: _feed_forward(graph, name, y))
    x = _norm(graph, "decoder.norm", x) if config.ends_in_norm else x
    last = graph.op("Gather", x, graph.constant("last", -1, np.int64), axis=1)
    logits = _linear(graph, "output.projection", last, config.output_bias)
    graph.add_output(logits, "logits", ("rows", config.vocab))
    _add_outputs(graph, "present", present, "past + target")


def _names(prefix: str, layer: int) -> Pair:
    return f"{prefix}.{layer}.key", f"{prefix}.{layer}.value"


def _add_outputs(graph: Graph, prefix: str, pairs: Sequence[Pair], length: str) -> None:
    for layer, pair in enumerate(pairs):
        for value, name in zip(pair, _names(prefix, layer), strict=True):
            graph.add_output(value, name, _cache_shape(graph, length))


def _cache_shape(graph: Graph, length: str) -> tuple[int | str, ...]:
    return ("rows", graph.config.heads, length, graph.config.d_head)


def _padding_scores(graph: Graph) -> str:
    """Return what is added to the scores of keys: 0, or a large negative number for padding. rows × 1 × 1 × keys."""
    mask = graph.op("Unsqueeze", "mask", graph.integers(1, 2))
    return graph.op("Where", mask, graph.number(0.0), graph.number(float(FORBIDDEN)))


def _causal_scores(graph: Graph, start: str) -> str:
    """Return what is added to the scores of keys, so that none is attended to from before it: target × keys.

    `start` is the position of the first new token.
    """
    zero, one = (graph.constant(name, value, np.int64) for name, value in (("zero", 0), ("one", 1)))
    begin = graph.op("Squeeze", start)
    end = graph.op("Add", begin, graph.op("Gather", graph.op("Shape", "target"), one))
    queries = graph.op("Unsqueeze", graph.op("Range", begin, end, one), graph.integers(1))
    keys = graph.op("Unsqueeze", graph.op("Range", zero, end, one), graph.integers(0))
    allowed = graph.op("GreaterOrEqual", queries, keys)
    return graph.op("Where", allowed, graph.number(0.0), graph.number(float(FORBIDDEN)))


def _embedding(graph: Graph, stack: str, tokens: str, start: str) -> str:
    """Return the embeddings of tokens, of which `start` is the position of the first one."""
    config, name = graph.config, f"{stack}.embedding"
    table = graph.constant(f"{name}.token.weight", graph.weight(f"{name}.token.weight"))
    x = graph.op("Gather", table, tokens)
    if config.scale_embeddings:
        x = graph.op("Mul", x, graph.number(math.sqrt(config.d_model)))
    if config.positions != "none":
        positions = graph.constant(f"{name}.positions", position_table(Weights(graph.file), stack))
        length = graph.op("Gather", graph.op("Shape", tokens), graph.integers(1))
        end = graph.op("Add", start, length)
        x = graph.op("Add", x, graph.op("Slice", positions, start, end, graph.integers(0)))
    return _norm(graph, f"{name}.norm", x) if config.embedding_norm else x


def _sublayer(graph: Graph, name: str, x: str, function: Any) -> str:
    if graph.config.norm_position == "post":
        return _norm(graph, f"{name}_norm", graph.op("Add", x, function(x, name)))
    return graph.op("Add", x, function(_norm(graph, f"{name}_norm", x), name))


def _norm(graph: Graph, name: str, x: str) -> str:
    config = graph.config
    gain = graph.constant(f"{name}.weight", graph.weight(f"{name}.weight"))
    if config.norm == "layer":
        bias = graph.constant(f"{name}.bias", graph.weight(f"{name}.bias"))
        return graph.op("LayerNormalization", x, gain, bias, axis=-1, epsilon=config.norm_eps)
    mean = graph.op("ReduceMean", graph.op("Mul", x, x), graph.integers(-1), keepdims=1)
    deviation = graph.op("Sqrt", graph.op("Add", mean, graph.number(config.norm_eps)))
    return graph.op("Mul", graph.op("Div", x, deviation), gain)


def _linear(
    graph: Graph, name: str, x: str, bias: bool, rows: slice = slice(None), heads: np.ndarray | None = None
) -> str:
    """Return x Wᵀ + b for some rows of W. `heads` repeats key and value heads that several query heads share."""
    part = "" if rows == slice(None) else f".{rows.start}"
    matrix = graph.weight(f"{name}.weight")[rows]
    matrix = matrix if heads is None else matrix[heads]
    y = graph.op("MatMul", x, graph.constant(f"{name}{part}.weight.transposed", matrix.T))
    if not bias:
        return y
    vector = graph.weight(f"{name}.bias")[rows]
    vector = vector if heads is None else vector[heads]
    return graph.op("Add", y, graph.constant(f"{name}{part}.bias", vector))


def _keys_and_values(graph: Graph, name: str, x: str) -> Pair:
    """Return the keys and the values of an attention for activations. Those that heads share are repeated."""
    config = graph.config
    width, kv_width = config.heads * config.d_head, config.groups * config.d_head
    shared = np.arange(config.heads) // (config.heads // config.groups)
    features = (shared[:, None] * config.d_head + np.arange(config.d_head)).reshape(-1)
    fused, bias = f"{name}.query_key_value", config.has_query_key_value_bias
    key, value = (
        _split(graph, _linear(graph, fused, x, bias, slice(start, start + kv_width), features))
        for start in (width, width + kv_width)
    )
    return key, value


def _attention(graph: Graph, name: str, x: str, key_value: Pair, mask: str) -> str:
    config = graph.config
    width = config.heads * config.d_head
    bias = config.has_query_key_value_bias
    query = _split(graph, _linear(graph, f"{name}.query_key_value", x, bias, slice(0, width)))
    key, value = key_value
    transposed = graph.op("Transpose", key, perm=[0, 1, 3, 2])
    scores = graph.op("Mul", graph.op("MatMul", query, transposed), graph.number(1 / math.sqrt(config.d_head)))
    weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
    heads = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", heads, graph.integers(0, 0, width))
    return _linear(graph, f"{name}.output", joined, config.bias)


def _split(graph: Graph, x: str) -> str:
    """rows × length × (heads · d_head)  →  rows × heads × length × d_head."""
    split = graph.op("Reshape", x, graph.integers(0, 0, graph.config.heads, graph.config.d_head))
    return graph.op("Transpose", split, perm=[0, 2, 1, 3])


def _feed_forward(graph: Graph, name: str, x: str) -> str:
    config = graph.config
    hidden = _linear(graph, f"{name}.up", x, config.bias)
    if config.feed_forward == "swiglu":
        gate = _linear(graph, f"{name}.gate", x, config.bias)
        hidden = graph.op("Mul", _silu(graph, gate), hidden)
    else:
        hidden = ACTIVATIONS[config.feed_forward](graph, hidden)
    return _linear(graph, f"{name}.down", hidden, config.bias)


def _silu(graph: Graph, x: str) -> str:
    return graph.op("Mul", x, graph.op("Sigmoid", x))


def _gelu(graph: Graph, x: str) -> str:
    error = graph.op("Erf", graph.op("Mul", x, graph.number(1 / math.sqrt(2))))
    return graph.op("Mul", graph.op("Mul", x, graph.op("Add", error, graph.number(1.0))), graph.number(0.5))


def _gelu_tanh(graph: Graph, x: str) -> str:
    cube = graph.op("Mul", graph.op("Mul", graph.op("Mul", x, x), x), graph.number(0.044715))
    inner = graph.op("Mul", graph.op("Add", x, cube), graph.number(math.sqrt(2 / math.pi)))
    scaled = graph.op("Add", graph.op("Tanh", inner), graph.number(1.0))
    return graph.op("Mul", graph.op("Mul", x, scaled), graph.number(0.5))


ACTIVATIONS: Mapping[str, Any] = {
    "relu": lambda graph, x: graph.op("Relu", x), "gelu": _gelu, "gelu-tanh": _gelu_tanh, "silu": _silu,
}  # fmt: skip
