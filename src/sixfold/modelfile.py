"""Model files: weights, config, tokeniser and card in one safetensors file, read without torch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np

from sixfold import tensorfile
from sixfold.config import Config, ModelConfig, from_dict, to_dict
from sixfold.configfile import merge, section_from
from sixfold.errors import ConfigError, ModelFileError
from sixfold.quantization import dequantize, is_quantized_shape, quantize
from sixfold.tensorfile import OpenFile, Tensor
from sixfold.text.language_profiles import LanguageProfile, profiles_from_json, profiles_to_json
from sixfold.text.prompt_format import PromptFormat
from sixfold.text.sequence_format import SequenceFormat
from sixfold.text.tokenizer import Tokenizer
from sixfold.weights import canonical, check_weights, shapes

FORMAT = "sixfold-model"
VERSION = 1
SCALE = "_scale"  # ends the name of the scales of an int8 weight
SHORTLIST = "shortlist."  # begins the names of the tensors of a shortlist
CONTINUED_BYTE = 255  # in a stored shortlist: a step of 255 that the next byte continues

Storage = Literal["float32", "bfloat16", "int8"]
STORED_NAMES = {"I8": "int8", "BF16": "bfloat16", "F16": "float16"}  # of the types that a file is called by


@dataclass(frozen=True)
class Shortlist:
    """The target pieces that each source piece may become, so that an engine need not score the whole vocabulary."""

    always: np.ndarray  # ids that are candidates for every source
    begins: np.ndarray  # the list of source piece i is targets[begins[i] : begins[i + 1]]
    targets: np.ndarray

    def candidates(self, source: Iterable[int]) -> np.ndarray:
        """Return the ids that the translation of a source may have, sorted."""
        lists = [self.targets[self.begins[token] : self.begins[token + 1]] for token in set(source)]
        return np.unique(np.concatenate([self.always, *lists]))

    def tensors(self) -> dict[str, Tensor]:
        """Return the tensors to store: the steps between the ids of each list, mostly in one byte each."""
        sizes = np.diff(self.begins)
        order = np.lexsort((self.targets, np.repeat(np.arange(len(sizes)), sizes)))
        steps = np.diff(self.targets[order], prepend=0)
        first = self.begins[:-1][sizes > 0]
        steps[first] = self.targets[order][first]
        ends = np.cumsum(steps // CONTINUED_BYTE + 1)
        data = np.full(ends[-1] if len(ends) else 0, CONTINUED_BYTE, np.uint8)
        data[ends - 1] = steps % CONTINUED_BYTE
        stored = {"always": self.always.astype(np.int32), "sizes": sizes.astype(np.int32), "steps": data}
        return {SHORTLIST + name: Tensor.of(array) for name, array in stored.items()}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Shortlist:
        """Return a shortlist from the result of `tensors`."""
        always, sizes, data = (tensors[SHORTLIST + name].data for name in ("always", "sizes", "steps"))
        if min(sizes, default=0) < 0:
            raise ValueError("a list of negative size")
        begins = np.cumsum(sizes, dtype=np.int64)
        targets = np.cumsum(data, dtype=np.int64)[data < CONTINUED_BYTE]
        before = np.append(0, targets)[begins - sizes]  # the sum of all steps before each list
        targets -= np.repeat(before, sizes)
        return cls(always, np.append(0, begins).astype(np.int32), targets.astype(np.int32))


class DeferredWeights(Mapping[str, Tensor]):
    """Weights that have been checked and are not in memory; all are read when one is first used."""

    def __init__(self, weights: Mapping[str, Tensor], read: Callable[[], Mapping[str, Tensor]]) -> None:
        """Remember the names and the size of `weights`, which `read` returns again."""
        self._names, self._read = list(weights), read
        self.nbytes = sum(tensor.nbytes for tensor in weights.values())
        self._weights: Mapping[str, Tensor] | None = None

    def __getitem__(self, name: str) -> Tensor:
        if self._weights is None:
            self._weights = self._read()
        return self._weights[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def cached_bytes(self) -> int:
        """The memory that they take now."""
        return 0 if self._weights is None else self.nbytes


@dataclass(frozen=True)
class ModelFile:
    """A model as it is stored. A weight is read when it is first used, and `weight` converts it to float32."""

    config: Config
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    checksum: str = ""
    shortlist: Shortlist | None = None
    name: str = "model"  # of the file, without the ending
    other_settings: Mapping[str, Any] = field(default_factory=dict)  # stored settings that this version does not have
    profiles: Mapping[str, LanguageProfile] = field(default_factory=dict)  # of its languages, to detect them by
    target_tokenizer: Tokenizer | None = None  # None: `tokenizer` is that of both sides
    sequence_format: SequenceFormat | None = None  # None: a tag before the source, and <eos> after it
    prompt_format: PromptFormat | None = None  # None: <bos> before a prompt, and <eos> after a text

    @property
    def prompts(self) -> PromptFormat:
        """How a decoder-only model is given a prompt; what a model says nothing about is <bos> and <eos>."""
        config = self.config.model
        return self.prompt_format or PromptFormat((config.bos,), (config.eos,))

    def weight(self, name: str) -> np.ndarray:
        """Return a weight in float32; a shared weight can be read by each of its names."""
        name = canonical(self.config.model, name)
        tensor = self.tensors[name]
        if tensor.dtype != "I8":
            return tensor.float32()
        return dequantize(tensor.data, self.tensors[name + SCALE].data)

    def rows(self, name: str, ids: np.ndarray) -> np.ndarray:
        """Return some rows of a weight in float32, without converting the others."""
        name = canonical(self.config.model, name)
        tensor = self.tensors[name]
        selected = Tensor(tensor.dtype, tensor.data[ids.reshape(-1)])
        if tensor.dtype != "I8":
            rows = selected.float32()
        else:
            rows = dequantize(selected.data, self.tensors[name + SCALE].data[ids.reshape(-1)])
        return rows.reshape(*ids.shape, *tensor.shape[1:])

    def weights(self) -> dict[str, np.ndarray]:
        """Return all weights in float32."""
        return {name: self.weight(name) for name in shapes(self.config.model)}

    @property
    def nbytes(self) -> int:
        """The size of all tensors, in bytes. None is read for it."""
        if isinstance(self.tensors, DeferredWeights):
            return self.tensors.nbytes
        return sum(tensor.nbytes for tensor in self.tensors.values())

    @property
    def cached_bytes(self) -> int:
        """The memory that weights take which have been read and are kept."""
        if isinstance(self.tensors, DeferredWeights):
            return self.tensors.cached_bytes
        return sum(tensor.cached_bytes for tensor in self.tensors.values())

    def header(self) -> ModelFile:
        """Return the model without its weights, tokenisers and shortlist, which take most of the memory."""
        return replace(self, tensors={}, tokenizer=None, target_tokenizer=None, shortlist=None)

    @property
    def storage(self) -> str:
        """Return the type that the weights are stored in."""
        kinds = {tensor.dtype for tensor in self.tensors.values()}
        return next((name for dtype, name in STORED_NAMES.items() if dtype in kinds), "float32")

    def stored_weights(self) -> dict[str, Tensor]:
        """Return all weights in their stored types; those in int8 are float32 when they are read."""
        weights = {}
        for name in shapes(self.config.model):
            tensor = self.tensors[name]
            if tensor.dtype == "I8":
                where = f"{self.name}: {name}"
                tensor = tensorfile.computed("F32", tensor.shape, partial(self.weight, name), where)
            weights[name] = tensor
        return weights


def save(
    path: Path | str,
    config: Config,
    weights: Mapping[str, np.ndarray | Tensor],
    tokenizer: Tokenizer | None = None,
    card: Mapping[str, Any] | None = None,
    storage: Storage | None = "float32",
    shortlist: Shortlist | None = None,
    other_settings: Mapping[str, Any] | None = None,
    profiles: Mapping[str, LanguageProfile] | None = None,
    target_tokenizer: Tokenizer | None = None,
    sequence_format: SequenceFormat | None = None,
    prompt_format: PromptFormat | None = None,
) -> str:
    """Write a model and return its checksum. The weights must be exactly those of the config.

    Weights that are tensors of a file, or computed, are read one after another. With `storage` None, those in float16
    and bfloat16 are stored as they are, and others as float32.
    `other_settings` are settings of an older or newer file that this version does not have; they are written unchanged.
    """
    check_weights(str(path), shapes(config.model), {name: array.shape for name, array in weights.items()})
    for setting, size, each in (
        ("model.vocab", config.model.vocab, target_tokenizer),
        ("model.vocab" if target_tokenizer is None else "model.source_vocab", config.model.vocab_read, tokenizer),
    ):
        if each is not None and each.vocab > size:  # fewer is fine: published models round their tables up
            raise ModelFileError(f"{path}: expected a tokeniser of at most {setting} = {size} pieces; got {each.vocab}")
    if storage is not None and storage not in STORAGES:
        raise ConfigError(f"storage: expected one of {', '.join(STORAGES)}; got {storage!r}")
    tensors: dict[str, Tensor] = {}
    store = _store_as_it_is if storage is None else STORAGES[storage]
    for name, weight in weights.items():
        tensors.update(store(name, weight if isinstance(weight, Tensor) else Tensor.of(weight)))
    if shortlist is not None:
        tensors.update(shortlist.tensors())
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": json.dumps(merge(other_settings or {}, to_dict(config))),
        "tokenizer": tokenizer.to_json() if tokenizer else "",
        "card": json.dumps(card or {}, ensure_ascii=False),
    }
    if profiles:  # a file without them is the same as before there were any
        metadata["profiles"] = profiles_to_json(profiles)
    if target_tokenizer is not None:
        metadata["target_tokenizer"] = target_tokenizer.to_json()
    if sequence_format is not None:
        metadata["sequence_format"] = sequence_format.to_json()
    if prompt_format is not None:
        metadata["prompt_format"] = prompt_format.to_json()
    return tensorfile.write(Path(path), tensors, metadata)


def load(source: Path | str | OpenFile, verify: bool = True) -> ModelFile:
    """Read a model. `verify=False` skips the checksum, for a caller that has verified the same file before."""
    path = source.path if isinstance(source, OpenFile) else Path(source)
    tensors, metadata = tensorfile.read(source if isinstance(source, OpenFile) else path, verify)
    if metadata.get("format") != FORMAT:
        raise ModelFileError(
            f"{path}: a safetensors file, but not a Sixfold model",
            "a Hugging Face folder is loaded with `sixfold import`",
        )
    version = metadata.get("version", "")
    if version != str(VERSION):
        raise ModelFileError(f"{path}: expected format {VERSION}; got {version!r}", "upgrade sixfold")
    try:
        (config, others), card = read_settings(json.loads(metadata["config"])), json.loads(metadata["card"])
        text, checksum = metadata["tokenizer"], metadata[tensorfile.CHECKSUM]
        if not isinstance(card, dict):
            raise TypeError("the card is not a table")
        profiles = profiles_from_json(metadata.get("profiles", "{}"))
        sizes = config.model.vocab_read, config.model.vocab
        stored_format = metadata.get("sequence_format")
        sequence_format = SequenceFormat.from_json(stored_format, *sizes) if stored_format else None
        stored_prompts = metadata.get("prompt_format")
        prompt_format = PromptFormat.from_json(stored_prompts, config.model.vocab) if stored_prompts else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise ModelFileError(f"{path}: its config, card or profiles cannot be read: {error}") from None
    lists = {name: tensors.pop(name) for name in list(tensors) if name.startswith(SHORTLIST)}
    shortlist = _shortlist(path, lists, config.model) if lists else None
    stored = {name: tensor.shape for name, tensor in tensors.items() if not name.endswith(SCALE)}
    check_weights(str(path), shapes(config.model), stored)
    scales = {name + SCALE: tensor.shape[:1] for name, tensor in tensors.items() if tensor.dtype == "I8"}
    check_weights(str(path), scales, {name: t.shape for name, t in tensors.items() if name.endswith(SCALE)})
    tokenizer = Tokenizer.from_json(text, f"{path}: tokenizer") if text else None
    target = metadata.get("target_tokenizer")
    target_tokenizer = Tokenizer.from_json(target, f"{path}: target tokenizer") if target else None
    return ModelFile(
        config, tensors, tokenizer, card, checksum, shortlist, path.stem, others, profiles, target_tokenizer,
        sequence_format, prompt_format,
    )  # fmt: skip


# The settings of data that inference depends on, besides all of the model's. To rename or add one of them needs a new
# VERSION and a conversion of older files. Every other setting only records how the model was trained.
INFERENCE_SETTINGS = ("both_ways", "max_tokens")


def read_settings(stored: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """Return the settings of a model file, and the stored ones that this version does not have or accept.

    An unknown or invalid model setting, or one of INFERENCE_SETTINGS, is a ConfigError, because it changes what the
    weights mean. Any other setting keeps its default, so that a model can still be read after settings are renamed.
    """
    if not isinstance(stored, Mapping):
        raise ConfigError(f"config: expected sections; got {stored!r:.60}")
    accepted: dict[str, Any] = {}
    others: dict[str, Any] = {}
    hints = get_type_hints(Config)
    for section, values in stored.items():
        if section == "model":
            accepted[section] = values
        elif section not in hints or not isinstance(values, Mapping):
            others[section] = values
        else:
            required = {key: value for key, value in values.items() if section == "data" and key in INFERENCE_SETTINGS}
            valid = {
                key: value for key, value in values.items() if key not in required and _is_valid(section, key, value)
            }
            try:
                section_from(hints[section], section, valid | required)
            except ConfigError:  # settings that are valid by themselves may contradict each other
                valid = {}
            accepted[section] = valid | required
            if rest := {key: value for key, value in values.items() if key not in accepted[section]}:
                others[section] = rest
    return from_dict(accepted), others


def _is_valid(section: str, key: str, value: Any) -> bool:
    try:
        section_from(get_type_hints(Config)[section], section, {key: value})
    except (ConfigError, TypeError):  # a TypeError comes from comparing values of different types
        return False
    return True


def _shortlist(path: Path | str, lists: Mapping[str, Tensor], config: ModelConfig) -> Shortlist:
    """Read a shortlist and check its ids: a wrong id would make an engine read beyond its weights."""
    try:
        shortlist = Shortlist.of(lists)
        is_valid = shortlist.begins.shape == (config.vocab_read + 1,) and shortlist.begins[-1] == len(shortlist.targets)
        is_valid = is_valid and all(
            ((ids >= 0) & (ids < config.vocab)).all() for ids in (shortlist.always, shortlist.targets)
        )
    except (KeyError, TypeError, ValueError, IndexError):
        is_valid = False
    if not is_valid:
        raise ModelFileError(f"{path}: its shortlist does not fit its vocabulary", tensorfile.DAMAGED)
    return shortlist


def _store_as_it_is(name: str, tensor: Tensor) -> dict[str, Tensor]:
    return {name: tensor} if tensor.dtype in ("F16", "BF16") else _store_float32(name, tensor)


def _store_float32(name: str, tensor: Tensor) -> dict[str, Tensor]:
    if tensor.dtype == "F32":
        return {name: tensor}
    tensor.check_number()
    return {name: tensorfile.computed("F32", tensor.shape, tensor.read_float32, name)}


def _store_bfloat16(name: str, tensor: Tensor) -> dict[str, Tensor]:
    if tensor.dtype == "BF16":
        return {name: tensor}
    tensor.check_number()

    def rounded() -> np.ndarray:
        return tensorfile.bfloat16(tensor.read_float32()).data

    return {name: tensorfile.computed("BF16", tensor.shape, rounded, name)}


def _store_int8(name: str, tensor: Tensor) -> dict[str, Tensor]:
    if not is_quantized_shape(name, tensor.shape):
        return _store_float32(name, tensor)
    rows, scale = quantize(tensor.read_float32())
    return {name: Tensor("I8", rows), name + SCALE: Tensor("F32", scale)}


STORAGES = {"float32": _store_float32, "bfloat16": _store_bfloat16, "int8": _store_int8}
