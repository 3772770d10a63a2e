"""CTranslate2 folders, read back into a model file: all stored types, among them int8 rows with scales."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np

from sixfold.alignment_heads import AligningHeads
from sixfold.config import Config, DataConfig, FeedForward, ModelConfig, TokenizerConfig
from sixfold.errors import ConfigError, ModelFileError
from sixfold.interop.ctranslate2 import ACTIVATIONS, BINARY_VERSION, DTYPES, GATED_LAYER, LAYER
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, TextParts, make_tokenizer, read_pieces
from sixfold.interop.start_token import add_start_token
from sixfold.modelfile import SCALE, ModelFile
from sixfold.quantization import dequantize, is_quantized
from sixfold.tensorfile import Tensor
from sixfold.text.foreign_codes import code_of
from sixfold.text.moses_bpe import MosesBpe
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.sequence_format import SequenceFormat
from sixfold.weights import check_weights, shapes

FIRST_VERSION = 4  # of the format; older ones do not say the type of a variable
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
SPM_NAMES = {"source": ("source.spm", "sentencepiece.model", "spm.model"), "target": ("target.spm",)}


@dataclass
class Variables:
    """The variables of a model.bin. `take` marks those that are used, so that the others can be named."""

    where: str
    arrays: dict[str, np.ndarray]
    name: str
    revision: int

    def __post_init__(self) -> None:
        self.used: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return name in self.arrays

    def take(self, name: str) -> np.ndarray:
        self.used.add(name)
        return self.arrays[name]

    def scalar(self, name: str, default: Any) -> Any:
        """Return the value of a setting."""
        return self.take(name).reshape(-1)[0].item() if name in self.arrays else default


def load_ctranslate2(
    folder: Path,
    chosen: ChosenLanguages,
    pieces: SentencePieceModel | MosesBpe | None = None,
    languages: tuple[str, str] = ("", ""),
) -> ModelFile:
    """Read a CTranslate2 folder.

    `pieces` is the piece model of both sides, if it is not in the folder; `languages` are what the user's choice
    replaces.
    """
    variables = read_variables(folder / "model.bin")
    settings = _read_settings(folder)
    source_tokens, target_tokens = read_vocabularies(folder)
    config = _config(variables, settings, source_tokens, target_tokens)
    tensors = dict(_tensors(variables, config))
    starts_from_zero = bool(variables.scalar("decoder/start_from_zero_embedding", 0))
    _check_all_used(variables)
    check_weights(
        str(folder), shapes(config), {name: each.shape for name, each in tensors.items() if SCALE not in name}
    )
    file = ModelFile(Config(model=config), tensors)
    if starts_from_zero:
        file, target_tokens = add_start_token(file, target_tokens)
        source_tokens = target_tokens if file.config.model.vocab_read == file.config.model.vocab else source_tokens
    config = file.config.model
    parts = _text_parts(folder, settings, source_tokens, target_tokens, pieces)
    names = [side[0] if len(side) == 1 else list(side) for side in (chosen.source, chosen.target)]
    stated = {
        side: name or code_of(own) for side, name, own in zip(("source", "target"), names, languages, strict=True)
    }
    card: dict[str, Any] = {"parent": f"CTranslate2 model {folder.resolve().name}", "languages": stated}
    card |= _alignment(variables, config)
    data, tokenizer = DataConfig(max_tokens=config.max_length), TokenizerConfig(vocab=config.vocab)
    return ModelFile(
        Config(config, tokenizer, data=data), file.tensors, parts.tokenizer, card,
        target_tokenizer=parts.target_tokenizer, sequence_format=parts.sequence_format,
    )  # fmt: skip


def read_variables(path: Path) -> Variables:
    """Read a model.bin: a table of named arrays, then other names of arrays in that table."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror}") from None
    try:
        return _parse(str(path), data)
    except (struct.error, IndexError, UnicodeDecodeError, ValueError, KeyError) as error:
        raise ModelFileError(
            f"{path}: expected a CTranslate2 model; it is damaged or cut short ({error})", "copy it again"
        ) from None


def _parse(where: str, data: bytes) -> Variables:
    position = 0

    def read(pattern: str) -> Any:
        nonlocal position
        values = struct.unpack_from(f"<{pattern}", data, position)
        position += struct.calcsize(f"<{pattern}")
        return values if len(values) > 1 else values[0]

    def read_string() -> str:
        nonlocal position
        size = read("H")
        text = data[position : position + size]
        if len(text) < size or text[-1:] != b"\0":
            raise ValueError("a name is cut short")
        position += size
        return text[:-1].decode()

    version = read("I")
    if not FIRST_VERSION <= version <= BINARY_VERSION:
        raise ModelFileError(
            f"{where}: expected a CTranslate2 model of the version {FIRST_VERSION} to {BINARY_VERSION}; got {version}",
            "convert the original model with a newer ctranslate2",
        )
    name, revision = read_string(), read("I")
    arrays: dict[str, np.ndarray] = {}
    for _ in range(read("I")):
        variable, rank = read_string(), read("B")
        shape = tuple(read("I") for _ in range(rank))
        code, size = read("BI")
        if code >= len(DTYPES):
            raise ValueError(f"{variable} has the unknown type {code}")
        kind = DTYPES[code]
        raw = np.frombuffer(data[position : position + size], "<u2" if kind == "bfloat16" else np.dtype(kind))
        position += size
        array = raw.reshape(shape)
        arrays[variable] = (array.astype(np.uint32) << 16).view(np.float32) if kind == "bfloat16" else array
    for _ in range(read("I")):
        alias, variable = read_string(), read_string()
        arrays[alias] = arrays[variable]
        if f"{variable}_scale" in arrays:
            arrays[f"{alias}_scale"] = arrays[f"{variable}_scale"]
    if position != len(data):
        raise ValueError(f"{len(data) - position} bytes too many")
    return Variables(where, arrays, name, revision)


def _read_settings(folder: Path) -> dict[str, Any]:
    """Return config.json, which folders of before CTranslate2 3 lack."""
    path = folder / "config.json"
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_bytes())
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path}: not valid JSON")
    return content


def read_vocabularies(folder: Path) -> tuple[list[str], list[str]]:
    """Return the tokens of source and target, from JSON or from lines of text."""
    shared = _read_vocabulary(folder, "shared_vocabulary")
    if shared is not None:
        return shared, shared
    sides = [_read_vocabulary(folder, f"{side}_vocabulary") for side in ("source", "target")]
    source, target = sides
    if source is None or target is None:
        raise ModelFileError(
            f"{folder}: expected shared_vocabulary.json, or source_vocabulary.json and target_vocabulary.json; "
            f"found {'neither' if source is target else 'one'}"
        )
    return source, target


def _read_vocabulary(folder: Path, name: str) -> list[str] | None:
    if (path := folder / f"{name}.json").exists():
        try:
            tokens = json.loads(path.read_bytes())
        except (ValueError, RecursionError):
            tokens = None
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ModelFileError(f"{path}: expected a list of tokens in JSON")
        return tokens
    if (path := folder / f"{name}.txt").exists():
        try:
            return path.read_bytes().decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError:
            raise ModelFileError(f"{path}: expected UTF-8 text, a token in each line") from None
    return None


def _config(
    variables: Variables, settings: Mapping[str, Any], source_tokens: Sequence[str], target_tokens: Sequence[str]
) -> ModelConfig:
    """Return the shape of a model from its variables; ModelFileError names what this project cannot compute."""
    if variables.name != SPEC:
        raise ModelFileError(f"{variables.where}: expected a model that translates ({SPEC}); got {variables.name}")
    _check_flags(variables)
    try:
        layers = {stack: _count_layers(variables, stack) for stack in ("encoder", "decoder")}
        source = variables.arrays[_embeddings(variables, "encoder")]
        target = variables.arrays[_embeddings(variables, "decoder")]
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
        _same(variables, name, default)
        for name, default in (("num_heads", 8), ("pre_norm", 1), ("activation", 0), ("scale_embeddings", 1))
    )
    gated = "encoder/layer_0/ffn/linear_0_noact/weight" in variables
    names = [name for name, code in ACTIVATIONS.items() if code == activation and (name == "swiglu") == gated]
    if not names:
        raise ModelFileError(f"{variables.where}: activation: expected one of {ACTIVATIONS}; got {activation}")
    is_shared = _are_same(variables, _embeddings(variables, "encoder"), _embeddings(variables, "decoder"))
    norm = "encoder/layer_0/self_attention/layer_norm/beta" in variables
    ids = {token: index for index, token in reversed(list(enumerate(target_tokens)))}
    unk = ids.get(settings.get("unk_token", "<unk>"), 0)
    eos = ids.get(settings.get("eos_token", "</s>"), unk)
    positions, max_length = _positions(variables)
    try:
        return ModelConfig(
            vocab=len(target), source_vocab=0 if len(source) == len(target) else len(source),
            d_model=target.shape[1], heads=heads, d_ff=len(up), encoder_layers=layers["encoder"],
            decoder_layers=layers["decoder"], max_length=max_length, feed_forward=cast(FeedForward, names[0]),
            bias="encoder/layer_0/ffn/linear_0/bias" in variables, norm="layer" if norm else "rms",
            norm_position="pre" if pre_norm else "post",
            final_norm=not pre_norm and "encoder/layer_norm/gamma" in variables,
            norm_eps=float(settings.get("layer_norm_epsilon") or 1e-5), scale_embeddings=bool(scaled),
            share_embeddings=is_shared, embedding_norm="encoder/layernorm_embedding/gamma" in variables,
            tie_output=projection.shape == target.shape
            and _are_same(variables, "decoder/projection/weight", _embeddings(variables, "decoder")),
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


def _embeddings(variables: Variables, stack: str) -> str:
    names = [f"{stack}/embeddings_0/weight", f"{stack}/embeddings/weight"]
    return next((name for name in names if name in variables), names[0])


def _are_same(variables: Variables, first: str, second: str) -> bool:
    scales = [variables.arrays.get(f"{name}_scale", np.empty(0)) for name in (first, second)]
    return np.array_equal(variables.arrays[first], variables.arrays[second]) and np.array_equal(scales[0], scales[1])


def _same(variables: Variables, name: str, default: int) -> int:
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


def _tensors(variables: Variables, config: ModelConfig) -> Iterator[tuple[str, Tensor]]:
    for stack in ("encoder", "decoder"):
        if stack == "encoder" or not config.share_embeddings:
            yield from _matrix(variables, f"{stack}.embedding.token", [_embeddings(variables, stack)])
        _mark(variables, _embeddings(variables, stack))
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
    if config.bias:
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


def _check_all_used(variables: Variables) -> None:
    unused = [name for name in variables.arrays if name not in variables.used]
    if unused:
        raise ModelFileError(
            f"{variables.where}: expected variables that this project computes; got {', '.join(unused)}"
        )


def _alignment(variables: Variables, config: ModelConfig) -> dict[str, Any]:
    """Return the entry of the card for the heads whose mean CTranslate2 returns as the alignment."""
    layer, count = variables.scalar("decoder/alignment_layer", -1), variables.scalar("decoder/alignment_heads", 1)
    heads = tuple(range(min(count, config.heads) if count > 0 else config.heads))
    return AligningHeads(layer % config.decoder_layers, heads, False).to_card()


def _text_parts(
    folder: Path, settings: Mapping[str, Any], source_tokens: Sequence[str],
    target_tokens: Sequence[str], pieces: SentencePieceModel | MosesBpe | None,
) -> TextParts:  # fmt: skip
    """Return the tokenisers of a folder, if it has SentencePiece models, and the special tokens around a source."""
    ids = {token: index for index, token in reversed(list(enumerate(source_tokens)))}
    wanted = [("add_source_bos", "bos_token", "<s>"), ("add_source_eos", "eos_token", "</s>")]
    before, after = (
        (ids[settings.get(name, default)],) if settings.get(flag) else () for flag, name, default in wanted
    )
    layout = SequenceFormat(before, after)
    found = {side: next((folder / each for each in names if (folder / each).exists()), None)
             for side, names in SPM_NAMES.items()}  # fmt: skip
    if pieces is None and found["source"] is not None:
        pieces = read_pieces(found["source"])
    if pieces is None:
        return TextParts(sequence_format=layout)
    algorithm = "moses-bpe" if isinstance(pieces, MosesBpe) else "sentencepiece"
    source = make_tokenizer(algorithm, pieces, source_tokens)
    if list(source_tokens) == list(target_tokens) and found["target"] is None:
        return TextParts(source, None, layout)
    target_pieces = pieces if found["target"] is None else read_pieces(found["target"])
    target = make_tokenizer(algorithm, target_pieces, target_tokens)
    return TextParts(source, target, layout)
