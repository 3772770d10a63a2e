"""One model, one file: weights, config, tokeniser and card in safetensors, read without torch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_type_hints

import numpy as np

from sixfold import tensorfile
from sixfold.config import Config, from_dict, to_dict
from sixfold.configfile import merge, section_from
from sixfold.errors import ConfigError, ModelFileError
from sixfold.tensorfile import Tensor
from sixfold.text.tokenizer import Tokenizer
from sixfold.weights import canonical, check_weights, shapes

FORMAT = "sixfold-model"
VERSION = 1
SCALE = "_scale"
SHORTLIST = "shortlist."
GO_ON = 255  # of the bytes that a shortlist is stored in: so much, and the next byte more

Storage = Literal["float32", "bfloat16", "int8"]


@dataclass(frozen=True)
class Shortlist:
    """The target pieces that each source piece may become, so that an engine need not weigh the whole vocabulary."""

    always: np.ndarray  # ids that any target may need
    begins: np.ndarray  # the list of source piece i is targets[begins[i] : begins[i + 1]]
    targets: np.ndarray

    def candidates(self, source: Iterable[int]) -> np.ndarray:
        """All that the target of this source may hold, in the order of the ids."""
        lists = [self.targets[self.begins[token] : self.begins[token + 1]] for token in set(source)]
        return np.unique(np.concatenate([self.always, *lists]))

    def tensors(self) -> dict[str, Tensor]:
        """To be stored: of each list the steps from id to id, mostly of a byte, a third of the ids themselves."""
        sizes = np.diff(self.begins)
        order = np.lexsort((self.targets, np.repeat(np.arange(len(sizes)), sizes)))
        steps = np.diff(self.targets[order], prepend=0)
        first = self.begins[:-1][sizes > 0]
        steps[first] = self.targets[order][first]
        ends = np.cumsum(steps // GO_ON + 1)
        data = np.full(ends[-1] if len(ends) else 0, GO_ON, np.uint8)
        data[ends - 1] = steps % GO_ON
        stored = {"always": self.always.astype(np.int32), "sizes": sizes.astype(np.int32), "steps": data}
        return {SHORTLIST + name: Tensor.of(array) for name, array in stored.items()}

    @classmethod
    def of(cls, tensors: Mapping[str, Tensor]) -> Shortlist:
        """Read what `tensors` gives."""
        always, sizes, data = (tensors[SHORTLIST + name].data for name in ("always", "sizes", "steps"))
        if min(sizes, default=0) < 0:
            raise ValueError("a list of less than nothing")
        begins = np.cumsum(sizes, dtype=np.int64)
        targets = np.cumsum(data, dtype=np.int64)[data < GO_ON]
        before = np.append(0, targets)[begins - sizes]  # what the lists before one add up to
        targets -= np.repeat(before, sizes)
        return cls(always, np.append(0, begins).astype(np.int32), targets.astype(np.int32))


@dataclass(frozen=True)
class ModelFile:
    """A model as it lies on disk. A weight is read when it is first used, and `weight` converts it to float32."""

    config: Config
    tensors: Mapping[str, Tensor]
    tokenizer: Tokenizer | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    checksum: str = ""
    shortlist: Shortlist | None = None
    name: str = "model"  # of its file, without the ending
    other_settings: Mapping[str, Any] = field(default_factory=dict)  # stored ones that this version does not know

    def weight(self, name: str) -> np.ndarray:
        """A weight in float32; shared weights answer to each of their names."""
        name = canonical(self.config.model, name)
        tensor = self.tensors[name]
        if tensor.dtype != "I8":
            return tensor.float32()
        return dequantize(tensor.data, self.tensors[name + SCALE].data)

    def rows(self, name: str, ids: np.ndarray) -> np.ndarray:
        """Some rows of a weight, without the work for all of a large table."""
        name = canonical(self.config.model, name)
        tensor = self.tensors[name]
        picked = Tensor(tensor.dtype, tensor.data[ids.reshape(-1)])
        if tensor.dtype != "I8":
            found = picked.float32()
        else:
            found = dequantize(picked.data, self.tensors[name + SCALE].data[ids.reshape(-1)])
        return found.reshape(*ids.shape, *tensor.shape[1:])

    def weights(self) -> dict[str, np.ndarray]:
        return {name: self.weight(name) for name in shapes(self.config.model)}

    @property
    def storage(self) -> str:
        kinds = {tensor.dtype for tensor in self.tensors.values()}
        return "int8" if "I8" in kinds else "bfloat16" if "BF16" in kinds else "float32"


def save(
    path: Path | str,
    config: Config,
    weights: Mapping[str, np.ndarray],
    tokenizer: Tokenizer | None = None,
    card: Mapping[str, Any] | None = None,
    storage: Storage = "float32",
    shortlist: Shortlist | None = None,
    other_settings: Mapping[str, Any] | None = None,
) -> str:
    """Write a model; returns its checksum. The weights must be those the config calls for, all of them and no more.

    `other_settings` are those of a file that this version does not know; they are written as they are.
    """
    check_weights(str(path), shapes(config.model), {name: array.shape for name, array in weights.items()})
    if tokenizer is not None and tokenizer.vocab > config.model.vocab:
        # Fewer is fine: published models round their tables up.
        raise ModelFileError(
            f"{path}: expected a tokeniser of at most model.vocab = {config.model.vocab} pieces; got {tokenizer.vocab}"
        )
    if storage not in STORAGES:
        raise ConfigError(f"storage: expected one of {', '.join(STORAGES)}; got {storage!r}")
    tensors: dict[str, Tensor] = {}
    for name, array in weights.items():
        tensors.update(STORAGES[storage](name, array))
    if shortlist is not None:
        tensors.update(shortlist.tensors())
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "config": json.dumps(merge(other_settings or {}, to_dict(config))),
        "tokenizer": tokenizer.to_json() if tokenizer else "",
        "card": json.dumps(card or {}, ensure_ascii=False),
    }
    return tensorfile.write(Path(path), tensors, metadata)


def load(path: Path | str, verify: bool = True) -> ModelFile:
    """Read a model. `verify=False` skips the checksum, for a caller that has checked this very file before."""
    tensors, metadata = tensorfile.read(Path(path), verify)
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
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ConfigError) as error:
        raise ModelFileError(f"{path}: its config or card cannot be read: {error}") from None
    lists = {name: tensors.pop(name) for name in list(tensors) if name.startswith(SHORTLIST)}
    shortlist = _shortlist(path, lists, config.model.vocab) if lists else None
    stored = {name: tensor.shape for name, tensor in tensors.items() if not name.endswith(SCALE)}
    check_weights(str(path), shapes(config.model), stored)
    scales = {name + SCALE: tensor.shape[:1] for name, tensor in tensors.items() if tensor.dtype == "I8"}
    check_weights(str(path), scales, {name: t.shape for name, t in tensors.items() if name.endswith(SCALE)})
    tokenizer = Tokenizer.from_json(text, f"{path}: tokenizer") if text else None
    return ModelFile(config, tensors, tokenizer, card, checksum, shortlist, Path(path).stem, others)


# The settings of data that inference depends on, besides all of the model's. To rename one of them, or to add one,
# needs a new VERSION and a conversion of older files; every other setting is a record of how the model was made.
NEEDED = ("both_ways", "max_tokens")


def read_settings(stored: Mapping[str, Any]) -> tuple[Config, dict[str, Any]]:
    """The settings of a model file, and those that this version does not know or does not accept, as they are stored.

    A model setting or one of NEEDED that is unknown or invalid is a ConfigError: it changes what the weights mean. Any
    other is left at its default, so that a model outlives the names of the settings that it was trained with.
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
            required = {key: value for key, value in values.items() if section == "data" and key in NEEDED}
            known = {
                key: value for key, value in values.items() if key not in required and _is_valid(section, key, value)
            }
            try:
                section_from(hints[section], section, known | required)
            except ConfigError:  # those that are fine one by one may contradict each other
                known = {}
            accepted[section] = known | required
            if left := {key: value for key, value in values.items() if key not in accepted[section]}:
                others[section] = left
    return from_dict(accepted), others


def _is_valid(section: str, key: str, value: Any) -> bool:
    try:
        section_from(get_type_hints(Config)[section], section, {key: value})
    except (ConfigError, TypeError):  # a type error comes of comparing what cannot be compared
        return False
    return True


def _shortlist(path: Path | str, lists: Mapping[str, Tensor], vocab: int) -> Shortlist:
    """Checked: a wrong id would make an engine read beyond its weights."""
    try:
        found = Shortlist.of(lists)
        fine = found.begins.shape == (vocab + 1,) and found.begins[-1] == len(found.targets)
        fine = fine and all(((ids >= 0) & (ids < vocab)).all() for ids in (found.always, found.targets))
    except (KeyError, TypeError, ValueError, IndexError):
        fine = False
    if not fine:
        raise ModelFileError(f"{path}: its shortlist does not fit its vocabulary", tensorfile.DAMAGED)
    return found


def is_quantized(name: str, array: np.ndarray) -> bool:
    """int8 is for matrices that multiply and for token tables; small tables of positions and segments stay exact."""
    exact = (".position.", ".segment.", ".compatibility.")
    return array.ndim == 2 and not any(part in name for part in exact)


def quantize(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of int8 and one scale a row: value = int8 / scale. This is CTranslate2's scheme, to the bit."""
    largest = np.abs(array).max(axis=1)
    largest[largest == 0] = 127.0
    largest = np.maximum(largest, np.float32(127) / np.finfo(np.float32).max)
    scale = (127.0 / largest).astype(np.float32)
    return np.rint(array * scale[:, None]).astype(np.int8), scale


def dequantize(rows: np.ndarray, scale: np.ndarray) -> np.ndarray:
    found = rows.astype(np.float32)
    found /= scale[:, None]  # in place: most of the time goes into memory that is touched for the first time
    return found


def _store_float32(name: str, array: np.ndarray) -> dict[str, Tensor]:
    return {name: Tensor("F32", array.astype(np.float32, copy=False))}


def _store_bfloat16(name: str, array: np.ndarray) -> dict[str, Tensor]:
    return {name: tensorfile.bfloat16(array)}


def _store_int8(name: str, array: np.ndarray) -> dict[str, Tensor]:
    if not is_quantized(name, array):
        return _store_float32(name, array)
    rows, scale = quantize(array)
    return {name: Tensor("I8", rows), name + SCALE: Tensor("F32", scale)}


STORAGES = {"float32": _store_float32, "bfloat16": _store_bfloat16, "int8": _store_int8}
