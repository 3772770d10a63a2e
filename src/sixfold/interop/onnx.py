"""Export to ONNX: a graph for the encoder, and one that gives the logits of the token after a target."""

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


def write_onnx(file: ModelFile, folder: Path) -> None:
    """Write encoder.onnx and decoder.onnx.

    The encoder takes `source` (rows × source, token ids) and `mask` (true for real tokens) and gives `memory`. The
    decoder takes `target` (rows × target, beginning with <bos>), `memory` and `mask`, and gives `logits` (rows × vocab)
    of the token after the target.
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
        """Return the logits of the token after each target."""
        mask = np.ones(source.shape, bool)
        (memory,) = self._encoder.run(None, {"source": source.astype(np.int64), "mask": mask})
        inputs = {"target": target.astype(np.int64), "memory": memory, "mask": mask}
        return np.asarray(self._decoder.run(None, inputs)[0])


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
    x = _stack(graph, "encoder", "source", _padding_scores(graph), None)
    graph.add_output(x, "memory", ("rows", "source", graph.config.d_model))


def _decoder(graph: Graph) -> None:
    types, config = graph.onnx.TensorProto, graph.config
    graph.add_input("target", types.INT64, ("rows", "target"))
    graph.add_input("memory", types.FLOAT, ("rows", "source", config.d_model))
    graph.add_input("mask", types.BOOL, ("rows", "source"))
    x = _stack(graph, "decoder", "target", _causal_scores(graph), _padding_scores(graph))
    last = graph.op("Gather", x, graph.constant("last", -1, np.int64), axis=1)
    logits = _linear(graph, "output.projection", last, config.output_bias)
    graph.add_output(logits, "logits", ("rows", config.vocab))


def _padding_scores(graph: Graph) -> str:
    """Return what is added to the scores of keys: 0, or a large negative number for padding. rows × 1 × 1 × keys."""
    mask = graph.op("Unsqueeze", "mask", graph.integers(1, 2))
    return graph.op("Where", mask, graph.number(0.0), graph.number(float(FORBIDDEN)))


def _causal_scores(graph: Graph) -> str:
    """Return what is added to the scores of keys, so that none is attended to from before it."""
    length = graph.op("Gather", graph.op("Shape", "target"), graph.constant("one", 1, np.int64))
    positions = graph.op("Range", graph.constant("zero", 0, np.int64), length, graph.constant("one", 1, np.int64))
    rows, columns = (graph.op("Unsqueeze", positions, graph.integers(axis)) for axis in (1, 0))
    allowed = graph.op("GreaterOrEqual", rows, columns)
    return graph.op("Where", allowed, graph.number(0.0), graph.number(float(FORBIDDEN)))


def _stack(graph: Graph, stack: str, tokens: str, mask: str, memory_mask: str | None) -> str:
    config = graph.config
    x = _embedding(graph, stack, tokens)
    layers = config.encoder_layers if stack == "encoder" else config.decoder_layers
    for index in range(layers):
        layer = f"{stack}.layers.{index}"
        x = _sublayer(graph, f"{layer}.self_attention", x, lambda y, name: _attention(graph, name, y, y, mask))
        if memory_mask is not None:
            x = _sublayer(
                graph, f"{layer}.cross_attention", x, lambda y, name: _attention(graph, name, y, "memory", memory_mask)
            )
        x = _sublayer(graph, f"{layer}.feed_forward", x, lambda y, name: _feed_forward(graph, name, y))
    return _norm(graph, f"{stack}.norm", x) if config.ends_in_norm else x


def _embedding(graph: Graph, stack: str, tokens: str) -> str:
    config, name = graph.config, f"{stack}.embedding"
    table = graph.constant(f"{name}.token.weight", graph.weight(f"{name}.token.weight"))
    x = graph.op("Gather", table, tokens)
    if config.scale_embeddings:
        x = graph.op("Mul", x, graph.number(math.sqrt(config.d_model)))
    if config.positions != "none":
        positions = graph.constant(f"{name}.positions", position_table(Weights(graph.file), stack))
        length = graph.op("Gather", graph.op("Shape", tokens), graph.integers(1))
        x = graph.op("Add", x, graph.op("Slice", positions, graph.integers(0), length, graph.integers(0)))
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


def _attention(graph: Graph, name: str, x: str, memory: str, mask: str) -> str:
    config = graph.config
    width, kv_width = config.heads * config.d_head, config.groups * config.d_head
    shared = np.arange(config.heads) // (config.heads // config.groups)
    features = (shared[:, None] * config.d_head + np.arange(config.d_head)).reshape(-1)
    fused = f"{name}.query_key_value"
    query = _split(graph, _linear(graph, fused, x, config.bias, slice(0, width)))
    key, value = (
        _split(graph, _linear(graph, fused, memory, config.bias, slice(start, start + kv_width), features))
        for start in (width, width + kv_width)
    )
    transposed = graph.op("Transpose", key, perm=[0, 1, 3, 2])
    scores = graph.op("Mul", graph.op("MatMul", query, transposed), graph.number(1 / math.sqrt(config.d_head)))
    weights = graph.op("Softmax", graph.op("Add", scores, mask), axis=-1)
    heads = graph.op("Transpose", graph.op("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.op("Reshape", heads, graph.integers(0, 0, config.d_model))
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
