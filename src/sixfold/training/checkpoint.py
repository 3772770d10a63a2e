"""Checkpoints: the whole state of a run in one safetensors file, which appears complete or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sixfold import tensorfile
from sixfold.data.loader import Cursor
from sixfold.errors import ModelFileError
from sixfold.training.distributed import full_tensor, set_full_tensor
from sixfold.training.state import State
from sixfold.weights import check_weights

FORMAT = "sixfold-checkpoint"
VERSION = "1"
MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass
class Progress:
    """The state of a run besides its tensors."""

    cursor: Cursor = field(default_factory=Cursor)
    micro_tokens: int = 0  # tokens of a micro-batch that fit the device; another number would cut batches differently
    best: list[float] = field(default_factory=list)  # the rank of the best validation, see Task.rank
    best_step: int = 0
    stale: int = 0  # validations since the best one
    steps: int = 0  # length of the run when this was saved; 0: saved by an older version without this field
    owes_validation: bool = False  # this step is still to be validated
    tokens: int = 0  # target tokens learnt from
    seconds: float = 0.0  # of training, over all starts of the run
    bad_steps: int = 0  # skipped in a row
    returns: int = 0  # times that the run went back to a checkpoint
    history: list[dict[str, Any]] = field(default_factory=list)  # validations

    def to_json(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Progress:
        values = json.loads(text)
        return cls(**{**values, "cursor": Cursor(**values["cursor"])})


def save(folder: Path, state: State, progress: Progress, keep: int) -> Path:
    """Write the checkpoint of this step, then delete all but the last `keep`."""
    path = folder / f"step-{state.step:09}.safetensors"
    arrays = {name: array(tensor) for name, tensor in tensors_of(state).items()}  # all processes take part in this
    if not state.group.is_leader:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensorfile.Tensor.of(each) for name, each in arrays.items()}
    metadata = {"format": FORMAT, "version": VERSION, "step": str(state.step), "progress": progress.to_json()}
    tensorfile.write(path, tensors, metadata)
    written = steps(folder)
    index = written.index(path)
    # Checkpoints of later steps are damaged, or from before the run went back.
    for old in (*written[: max(0, index + 1 - keep)], *written[index + 1 :]):
        old.unlink(missing_ok=True)
    return path


def tensors_of(state: State) -> dict[str, Tensor]:
    """Return every tensor of a state by name: weights, average, guard and optimizer moments."""
    tensors: dict[str, Tensor] = {f"weight/{name}": weight for name, weight in state.weights.items()}
    tensors |= {f"average/{name}": weight for name, weight in state.average.items()}
    tensors |= {"guard/mean": state.guard.mean, "guard/seen": state.guard.good_steps}
    for name, weight in state.weights.items():
        for kind, tensor in state.optimizer.state.get(weight, {}).items():
            tensors[f"{kind}/{name}"] = tensor
    return tensors


def array(tensor: Tensor) -> np.ndarray:
    converted: np.ndarray = full_tensor(tensor.detach()).float().cpu().numpy()
    return converted


def restore_latest(folder: Path, state: State, say: Callable[[str], None]) -> Progress | None:
    """Set `state` from the newest checkpoint that can be read; return None if there is no checkpoint."""
    paths = steps(folder)
    for path in reversed(paths):
        try:
            return restore(path, state)
        except ModelFileError as error:
            say(f"{error}; trying the one before it")
    if paths:
        raise ModelFileError(f"{folder}: none of {len(paths)} checkpoints can be read", "use another --output")
    return None


def restore(path: Path, state: State) -> Progress:
    """Set all of `state` from one checkpoint, after checking that it is complete and has the right shapes."""
    stored, metadata = tensorfile.read(path)
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path}: expected a checkpoint; got another kind of file")
    if metadata.get("version") != VERSION:
        raise ModelFileError(f"{path}: expected version {VERSION}; got {metadata.get('version')!r}", "upgrade sixfold")
    try:
        step, progress = int(metadata["step"]), Progress.from_json(metadata["progress"])
    except (KeyError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path}: its progress cannot be read: {error}") from None
    if step and not state.optimizer.state:
        _make_moments(state)
    if not step:
        state.optimizer.state.clear()
    expected = tensors_of(state)
    shapes = {name: tensor.shape for name, tensor in stored.items()}
    check_weights(str(path), {name: tuple(tensor.shape) for name, tensor in expected.items()}, shapes)
    for name, tensor in expected.items():
        set_full_tensor(tensor, torch.from_numpy(np.array(stored.pop(name).data)))
    state.step = step
    return progress


def _make_moments(state: State) -> None:
    """Create the moments that AdamW otherwise creates in its first step."""
    for weight in state.weights.values():
        moments = {kind: torch.zeros_like(weight) for kind in MOMENTS}
        state.optimizer.state[weight] = {"step": torch.zeros((), device=weight.device), **moments}


def steps(folder: Path) -> list[Path]:
    """Return the checkpoints of a run, oldest first."""
    return sorted(folder.glob(f"step-{'[0-9]' * 9}.safetensors"))
