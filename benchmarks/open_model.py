"""The time and the memory of opening a model of about 200 million weights in torch.

Two ways alternate, each in a process of its own: to build a model with random weights and copy those of the file into
it, and to assign those of the file to a model on the meta device (`load_model`). Medians are reported.

    python benchmarks/open_model.py                 # writes a model file of 0.8 GB to a temporary folder
    python benchmarks/open_model.py --small         # does it run?
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from sixfold import modelfile
from sixfold.config import Config
from sixfold.presets import preset
from sixfold.weights import shapes

WAYS = ("build and copy", "load_model")


def write_model(path: Path, small: bool) -> int:
    """Write a model file and return the number of its weights."""
    shape = preset("tiny").model if small else replace(preset("big").model, vocab=24_000)
    random = np.random.default_rng(1)
    weights = {name: random.standard_normal(size, np.float32) for name, size in shapes(shape).items()}
    modelfile.save(path, Config(model=shape), weights)
    return sum(math.prod(size) for size in shapes(shape).values())


def open_model(path: Path, way: str) -> dict[str, float]:
    """Open the model once. Return the seconds that it took and the peak of the memory of this process in MB."""
    from sixfold.model.transformer import build, load_model, load_weights

    file = modelfile.load(path)
    start = time.perf_counter()
    if way == "load_model":
        load_model(file.config.model, file.weights())
    else:
        load_weights(build(file.config.model), file.weights())
    seconds = time.perf_counter() - start
    return {"seconds": seconds, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--open", nargs=2, metavar=("PATH", "WAY"), help="open a model once, and print how that went")
    args = parser.parse_args()
    if args.open:
        print(json.dumps(open_model(Path(args.open[0]), args.open[1])))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        print(f"{write_model(path, args.small) / 1e6:.0f} million weights")
        results: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(args.rounds):
            for way in WAYS:
                command = [sys.executable, __file__, "--open", str(path), way]
                results[way].append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    for way, rounds in results.items():
        seconds, peak = (statistics.median(each[key] for each in rounds) for key in ("seconds", "peak_mb"))
        print(f"{way:16} {seconds:6.2f} s, peak {peak:6.0f} MB")


if __name__ == "__main__":
    main()
