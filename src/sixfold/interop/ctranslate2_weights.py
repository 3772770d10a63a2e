"""The weights of a CTranslate2 model under the names of this project: int8 rows as they are, other types as float32."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sixfold.config import ModelConfig
from sixfold.errors import ModelFileError
from sixfold.interop.ctranslate2 import GATED_LAYER, LAYER
from sixfold.interop.ctranslate2_folder import Variables
from sixfold.interop.ctranslate2_shape import embeddings_of
from sixfold.modelfile import SCALE
from sixfold.quantization import dequantize, is_quantized
from sixfold.tensorfile import Tensor


def tensors_of(variables: Variables, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    for stack in ("encoder", "decoder"):
        if stack == "encoder" or not config.share_embeddings:
            yield from _matrix(variables, f"{stack}.embedding.token", [embeddings_of(variables, stack)])
        _mark(variables, embeddings_of(variables, stack))
        if config.positions == "learned":
            table = variables.take(f"{stack}/position_encodings/encodings").astype(np.float32)
            yield f"{stack}.embedding.position.weight", Tensor("F32", table[: config.max_length])
        if config.embedding_norm:
            yield from _norm(variables, f"{stack}.embedding.norm", f"{stack}/layernorm_embedding")
        if config.ends_in_norm:
            yield from _norm(variables, f"{stack}.norm", f"{stack}/layer_norm")
        for index in range(config.encoder_layers if stack == "encoder" else config.decoder_layers):
            yield from _layer(
                variables, config, f"{stack}.layers.{index}", f"{stack}/layer_{index}", stack == "decoder"
            )
    _mark(variables, "decoder/projection/weight")
    if not config.tie_output:
        yield from _matrix(variables, "output.projection", ["decoder/projection/weight"])
    if config.output_bias:
        yield "output.projection.bias", _float(variables, "decoder/projection/bias")


def _layer(
    variables: Variables, config: ModelConfig, ours: str, theirs: str, cross: bool
) -> Iterator[tuple[str, Tensor]]:
    for name, target in (GATED_LAYER if config.feed_forward == "swiglu" else LAYER).items():
        if name.startswith("cross_attention") and not cross:
            continue
        if name.endswith("norm"):
            yield from _norm(variables, f"{ours}.{name}", f"{theirs}/{target}")
        else:
            yield from _linear(variables, config, f"{ours}.{name}", [f"{theirs}/{target}"])
    if cross:
        parts = [f"{theirs}/attention/linear_{number}" for number in range(3)]
        yield from _linear(variables, config, f"{ours}.cross_attention.query_key_value", parts[:2])
        yield from _linear(variables, config, f"{ours}.cross_attention.output", parts[2:])


def _linear(
    variables: Variables, config: ModelConfig, ours: str, theirs: Sequence[str]
) -> Iterator[tuple[str, Tensor]]:
    """Yield the weight and the bias of a layer, which may be in several parts there. A part may lack its bias."""
    yield from _matrix(variables, ours, [f"{name}/weight" for name in theirs])
    if config.has_query_key_value_bias if ours.endswith("query_key_value") else config.bias:
        biases = [
            _float(variables, f"{name}/bias").data
            if f"{name}/bias" in variables
            else np.zeros(len(variables.arrays.get(f"{name}/weight", ())), np.float32)
            for name in theirs
        ]
        yield f"{ours}.bias", Tensor("F32", np.concatenate(biases))


def _matrix(variables: Variables, ours: str, theirs: Sequence[str]) -> Iterator[tuple[str, Tensor]]:
    """Yield a matrix as it is stored, if that is int8 with a scale for each row, else as float32."""
    missing = [name for name in theirs if name not in variables]
    if missing:
        raise ModelFileError(f"{variables.where}: expected the variables {', '.join(missing)}; found none")
    arrays = [variables.take(name) for name in theirs]
    _mark(variables, *theirs)
    scales = [variables.arrays.get(f"{name}_scale") for name in theirs]
    name = f"{ours}.weight"
    rows = [scale for array, scale in zip(arrays, scales, strict=True)
            if array.dtype == np.int8 and scale is not None and scale.shape == array.shape[:1]]  # fmt: skip
    if len(rows) == len(arrays) and is_quantized(name, arrays[0]):
        yield name, Tensor("I8", np.concatenate(arrays))
        yield name + SCALE, Tensor("F32", np.concatenate(rows).astype(np.float32))
        return
    parts = [_values(variables, *each) for each in zip(theirs, arrays, scales, strict=True)]
    yield name, Tensor("F32", np.concatenate(parts))


def _values(variables: Variables, name: str, array: np.ndarray, scale: np.ndarray | None) -> np.ndarray:
    if array.dtype in (np.int8, np.int16):
        if scale is None or scale.size not in (1, len(array)):
            raise ModelFileError(f"{variables.where}: {name}: expected a scale, or one for each row")
        return dequantize(array, np.broadcast_to(scale.reshape(-1).astype(np.float32), len(array)))
    return array.astype(np.float32)


def _norm(variables: Variables, ours: str, theirs: str) -> Iterator[tuple[str, Tensor]]:
    yield f"{ours}.weight", _float(variables, f"{theirs}/gamma")
    if f"{theirs}/beta" in variables:
        yield f"{ours}.bias", _float(variables, f"{theirs}/beta")


def _float(variables: Variables, name: str) -> Tensor:
    if name not in variables:
        raise ModelFileError(f"{variables.where}: expected the variable {name}; found none")
    return Tensor("F32", variables.take(name).astype(np.float32))


def _mark(variables: Variables, *names: str) -> None:
    variables.used.update(name for each in names for name in (each, f"{each}_scale"))


def check_all_used(variables: Variables) -> None:
    unused = [name for name in variables.arrays if name not in variables.used]
    if unused:
        raise ModelFileError(
            f"{variables.where}: expected variables that this project computes; got {', '.join(unused)}"
        )
