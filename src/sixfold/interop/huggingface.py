"""Import and export of checkpoints of Hugging Face transformers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sixfold import tensorfile
from sixfold.config import Config, DataConfig, ModelConfig, TokenizerConfig
from sixfold.configfile import section_from
from sixfold.errors import ConfigError, ModelFileError, RequestError
from sixfold.interop.family_settings import Settings
from sixfold.interop.huggingface_prompts import read_prompt_parts
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, TextParts, read_json, read_text_parts
from sixfold.interop.start_token import FORBIDDEN
from sixfold.interop.weight_names import FAMILIES, Family
from sixfold.modelfile import ModelFile
from sixfold.tensorfile import Tensor, computed
from sixfold.weights import check_weights, shapes

# Settings of a model that newer versions of transformers keep in generation_config.json.
GENERATION_SETTINGS = ("decoder_start_token_id", "bad_words_ids", "forced_bos_token_id", "eos_token_id", "pad_token_id")
MAX_README_HEAD = 20_000  # characters


def load_folder(folder: Path, chosen: ChosenLanguages | None = None) -> ModelFile:
    """Read a Hugging Face folder: config.json, the weights, and the tokenisers where there are any.

    `chosen` are the languages that a user names.
    """
    settings = read_json(folder / "config.json")
    if (folder / "generation_config.json").exists():
        generation = read_json(folder / "generation_config.json")
        settings = {**{key: generation[key] for key in GENERATION_SETTINGS if key in generation}, **settings}
    config, weights = translate(settings, _read_tensors(folder), str(folder))
    prompt_format, parts = None, TextParts()
    if config.kind == "decoder":
        tokenizer, prompt_format = read_prompt_parts(folder, settings, config)
    else:
        parts, config = read_text_parts(folder, settings, config, chosen or ChosenLanguages())
        tokenizer = parts.tokenizer
    if tokenizer is not None and config.kind == "encoder":  # config.json of an encoder lacks the special ids
        config = replace(tokenizer.fit(config), vocab=config.vocab)
    forbid_tokens(config, weights, settings)
    card: dict[str, Any] = {"parent": f"{settings['model_type']} checkpoint {folder.resolve().name}"}
    card |= card_of_readme(folder / "README.md")
    if parts.languages is not None:
        card["languages"] = parts.languages
    full = Config(
        model=config, tokenizer=TokenizerConfig(vocab=config.vocab), data=DataConfig(max_tokens=config.max_length)
    )
    return ModelFile(
        full, weights, tokenizer, card, target_tokenizer=parts.target_tokenizer, sequence_format=parts.sequence_format,
        prompt_format=prompt_format,
    )  # fmt: skip


def forbid_tokens(config: ModelConfig, weights: dict[str, Tensor], settings: Settings) -> None:
    """Make tokens that generation may never write unlikely, such as <pad> of Marian, by their bias.

    transformers leaves these tokens out after the softmax; here they have no share in it, for every engine alike.
    """
    banned = settings.get("bad_words_ids")
    if not config.output_bias or not isinstance(banned, list):
        return
    tokens = [word[0] for word in banned if isinstance(word, list) and len(word) == 1 and type(word[0]) is int]
    bias = np.array(weights["output.projection.bias"].float32())
    bias[[token for token in tokens if 0 <= token < config.vocab]] = FORBIDDEN
    weights["output.projection.bias"] = Tensor("F32", bias)


def card_of_readme(path: Path) -> dict[str, Any]:
    """Return the licence that the head of a README.md states, in the YAML of model cards."""
    try:
        head = path.read_text(encoding="utf-8", errors="replace")[:MAX_README_HEAD]
    except OSError:
        return {}
    match = re.match(r"---\n(.*?)\n---", head, re.DOTALL)
    licence = re.search(r"^license: *[\"']?([\w. +-]+)", match[1], re.MULTILINE) if match else None
    return {"licence": licence[1].strip()} if licence else {}


def translate(
    settings: Settings, arrays: Mapping[str, np.ndarray | Tensor], where: str = "checkpoint"
) -> tuple[ModelConfig, dict[str, Tensor]]:
    """Convert settings and weights of transformers to ours. Raise ModelFileError that names all unfit weights.

    No weight is read before it is used; float16 and bfloat16 stay what they are. Those that a family ignores may have
    any type.
    """
    kind = settings.get("model_type")
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise ModelFileError(f"{where}: expected a model_type of {', '.join(FAMILIES)}; got {kind!r}")
    family = FAMILIES[kind]
    arrays = {_full_name(name, family): array for name, array in arrays.items()}
    try:
        for flag, value in family.required.items():
            if settings.get(flag, value) != value:
                raise ConfigError(f"config.json: {flag}: expected {value!r}; got {settings[flag]!r}")
        config = section_from(ModelConfig, "model", family.config({**family.defaults, **settings}, frozenset(arrays)))
    except ConfigError as error:
        raise ModelFileError(f"{where}: {error}", error.hint) from None
    except (TypeError, AttributeError, ValueError, LookupError, ZeroDivisionError) as error:
        raise ModelFileError(f"{where}: config.json cannot be understood: {error}") from None
    return config, rename(config, family, arrays, where)


def export_weights(config: ModelConfig, weights: Mapping[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """Return our weights under the names of a family, tied ones once: the inverse of `translate`."""
    tensors = export_tensors(config, {name: Tensor.of(array) for name, array in weights.items()}, kind)
    return {name: tensor.read() for name, tensor in tensors.items()}


def export_tensors(config: ModelConfig, weights: Mapping[str, Tensor], kind: str) -> dict[str, Tensor]:
    """Return the same as `export_weights` as tensors in their own type, which are read when they are used."""
    family = FAMILIES[kind]
    unknown = [name for name in weights if not _their_names(family, name, config)]
    if unknown:
        raise RequestError(f"{kind}: expected a model of that family, which has no weights {', '.join(unknown)}")
    exported: dict[str, Tensor] = {}
    for ours, tensor in weights.items():
        theirs = _their_names(family, ours, config)
        # Only the attention projection is fused: it has three parts, query, key and value.
        query_width, key_width = config.heads * config.d_head, config.groups * config.d_head
        ends = (query_width, query_width + key_width, tensor.shape[0]) if len(theirs) == 3 else (tensor.shape[0],)
        for name, start, end in zip(theirs, (0, *ends), ends, strict=False):
            exported[name] = _their_part(tensor, name, (start, end), family)
    return exported


def _their_part(tensor: Tensor, name: str, rows: tuple[int, int], family: Family) -> Tensor:
    """Return some rows of a weight as the tensor that a family has of them."""
    if rows == (0, tensor.shape[0]) and name != "final_logits_bias" and not name.endswith(family.transposed or "\0"):
        return tensor

    def compute(array: np.ndarray) -> np.ndarray:
        part = array[slice(*rows)]
        return part[None] if name == "final_logits_bias" else _orient(part, name, family)

    shape = compute(np.broadcast_to(np.float32(0), tensor.shape)).shape
    return computed(tensor.dtype, shape, lambda: compute(tensor.read()), name)


def _full_name(name: str, family: Family) -> str:
    """Add the prefix that checkpoints saved without a head lack, and rename the gamma and beta of old checkpoints."""
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")
    first_parts = {theirs[0].split(".")[0] for theirs in family.weights.values()} | {
        "lm_head",
        "cls",
        "final_logits_bias",
    }
    return name if name.split(".")[0] in first_parts else family.prefix + name


def rename(
    config: ModelConfig, family: Family, arrays: Mapping[str, np.ndarray | Tensor], where: str
) -> dict[str, Tensor]:
    """Return the weights of a family under our names; ModelFileError names all that are missing or unfit."""
    weights: dict[str, Tensor] = {}
    used: set[str] = set()
    missing: list[str] = []
    for ours in shapes(config):
        theirs = _their_names(family, ours, config)
        missing += [name for name in theirs if name not in arrays]
        used.update(theirs)
        if all(name in arrays for name in theirs):
            parts = [_part(arrays[name], name, family) for name in theirs]
            fits = len({part.shape[1:] for part in parts}) == 1
            weights[ours] = join(parts, f"{where}: {theirs[0]}") if fits else parts[0]  # `check_weights` refuses this
    ignored = (*family.ignored, family.head) if config.tie_output else family.ignored
    unexpected = [
        name for name in arrays if name not in used and not name.startswith(ignored) and not name.endswith(ignored)
    ]
    if missing or unexpected:
        faults = [f"missing {name}" for name in missing] + [f"unexpected {name}" for name in unexpected]
        raise ModelFileError(f"{where}: the weights do not fit the config: {'; '.join(faults)}")
    check_weights(where, shapes(config), {name: array.shape for name, array in weights.items()})
    return weights


def _their_names(family: Family, ours: str, config: ModelConfig) -> tuple[str, ...]:
    number = next((part for part in ours.split(".") if part.isdecimal()), "")
    row = ours.replace(f".{number}.", ".{}.") if number else ours
    if row in family.separate and not config.share_embeddings:
        return family.separate[row]
    return tuple(name.format(number) for name in family.weights.get(row, ()))


def _part(array: np.ndarray | Tensor, name: str, family: Family) -> Tensor:
    """Return a tensor of a checkpoint as rows of ours."""
    tensor = array if isinstance(array, Tensor) else Tensor.of(array)
    tensor.check_number()
    empty = np.broadcast_to(np.float32(0), tensor.shape)
    shape = np.atleast_1d(_orient(empty, name, family)).shape
    if shape == tensor.shape and not name.endswith(family.transposed or "\0"):
        return tensor

    def compute() -> np.ndarray:
        return np.atleast_1d(_orient(tensor.read(), name, family))

    return computed(tensor.dtype, shape, compute, name)


def join(parts: Sequence[Tensor], where: str) -> Tensor:
    """Return one tensor with the rows of several; it has their type, or float32 if they have several types."""
    if len(parts) == 1:
        return parts[0]
    types = {part.dtype for part in parts}
    shape = (sum(part.shape[0] for part in parts), *parts[0].shape[1:])
    if len(types) == 1:
        return computed(types.pop(), shape, lambda: np.concatenate([part.read() for part in parts]), where)
    return computed("F32", shape, lambda: np.concatenate([part.read_float32() for part in parts]), where)


def _orient(array: np.ndarray, name: str, family: Family) -> np.ndarray:
    if name == "final_logits_bias":  # a matrix of one row
        return array.reshape(-1)
    return array.T if name.endswith(family.transposed or "\0") else array


def _read_tensors(folder: Path) -> dict[str, Tensor]:
    """Read the weights, in one file or in shards: safetensors, or pickles where there are none."""
    for name, read in (("model.safetensors", _read_safetensors), ("pytorch_model.bin", _read_pickle)):
        if (folder / name).exists():
            return read(folder / name)
        index = folder / f"{name}.index.json"
        if index.exists():
            shards = read_json(index).get("weight_map")
            if not isinstance(shards, dict) or not all(_is_file_name(shard) for shard in shards.values()):
                raise ModelFileError(f"{index}: expected a weight_map of file names; found none")
            return {key: value for shard in sorted(set(shards.values())) for key, value in read(folder / shard).items()}
    raise ModelFileError(
        f"{folder}: expected model.safetensors or pytorch_model.bin, whole or in shards; found neither"
    )


def _is_file_name(shard: object) -> bool:
    """Return whether this names a file in the folder itself. An index may not name files elsewhere."""
    return isinstance(shard, str) and Path(shard).name == shard


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    return tensorfile.read(path)[0]


def _read_pickle(path: Path) -> dict[str, Tensor]:
    """Read a pickled checkpoint, as old ones are, with torch's restricted loader, which runs no code."""
    try:
        import torch
    except ImportError:
        raise ModelFileError(f"{path}: reading this format needs torch", "pip install 'sixfold[torch]'") from None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {name: _of_torch(value) for name, value in state.items()}
    except Exception as error:  # a damaged or hostile pickle can make the loader raise anything
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ModelFileError(f"{path}: expected a table of tensors and nothing else: {reason}") from None


def _of_torch(value: Any) -> Tensor:
    """Return a tensor of torch in its own type if that has two bytes, else as float32."""
    import torch

    if value.dtype == torch.bfloat16:  # which NumPy lacks
        return Tensor("BF16", value.contiguous().view(torch.int16).numpy().view(np.uint16))
    return Tensor.of(value.numpy() if value.dtype == torch.float16 else value.float().numpy())
