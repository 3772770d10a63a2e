"""The table by which a model knows where a token stands, as its forward pass has it."""

from __future__ import annotations

import numpy as np

from sixfold.errors import RequestError
from sixfold.explorer.forward import Array, angles, sinusoids
from sixfold.modelfile import ModelFile


def position_table(model: ModelFile, count: int) -> Array:
    """A row for each of the first places: what is added to embeddings, or the cosines and sines of rotations."""
    config = model.config.model
    if config.positions == "sinusoidal":
        return sinusoids(config.position_offset + np.arange(count), config.d_model, config.position_layout)
    if config.positions == "learned":
        rows = model.weight(f"{config.stacks[0]}.embedding.position.weight")[config.position_offset :]
        return np.ascontiguousarray(rows[:count])
    if config.positions == "rotary":
        turned = angles(np.arange(count), config.d_head, config.rotary_base)
        return np.concatenate([np.cos(turned), np.sin(turned)], axis=1).astype(np.float32)
    raise RequestError("positions: expected a model that knows where a token stands; this one does not")
