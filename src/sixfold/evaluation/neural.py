"""COMET, for those who have installed it and name a checkpoint on their own disk."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from sixfold.errors import DataError, RequestError
from sixfold.evaluation.measures import Measure, mean


def comet(checkpoint: Path, sources: Sequence[str], references: Sequence[str]) -> Measure:
    """Opened before anything is translated, so that a wrong path costs no time."""
    if not checkpoint.is_file():
        raise DataError(f"--comet: {checkpoint}: expected a checkpoint of COMET; there is no such file")
    try:
        from comet import load_from_checkpoint  # type: ignore[import-not-found]
    except ModuleNotFoundError:
        raise RequestError("--comet needs COMET, which is not installed", "pip install unbabel-comet") from None
    model = load_from_checkpoint(str(checkpoint))

    def counts(hypotheses: Sequence[str]) -> np.ndarray:
        triples = [
            {"src": source, "mt": hypothesis, "ref": reference}
            for source, hypothesis, reference in zip(sources, hypotheses, references, strict=True)
        ]
        scores = model.predict(triples, batch_size=16, gpus=0, progress_bar=False).scores
        return np.column_stack([np.array(scores, np.float64), np.ones(len(scores))])

    signature = f"checkpoint:{checkpoint.name}|version:{version('unbabel-comet')}"
    return Measure("COMET", True, signature, counts, mean)
