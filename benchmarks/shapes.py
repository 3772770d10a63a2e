"""BLEU against milliseconds: the shapes that decisions.py has trained, timed on this CPU.

Weights are random and every sentence has 25 tokens in and 25 out, beam 4, int8, batch 1, with as many candidates as
a shortlist leaves. The shapes are timed in turn; medians are reported.

    python benchmarks/decisions.py DATA --work DIR >> scores.jsonl      # GPU
    python benchmarks/shapes.py scores.jsonl --plot docs/concepts/shapes.svg
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
from decisions import VARIANTS, Variant

from sixfold import modelfile
from sixfold.config import Config
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.model.transformer import build, weights_of
from sixfold.presets import preset

LENGTH = 25  # tokens of source and target
CANDIDATES = 1000  # pieces on the shortlist
CALLS_PER_ROUND = 5  # of each shape


def make_engine(variant: Variant, folder: Path) -> tuple[CpuEngine, int]:
    """Return an engine with random weights of this shape, and the size of its file in bytes."""
    settings = dict(setting.split("=") for setting in variant.settings)
    config = replace(
        preset("base").model, d_model=variant.width, heads=variant.width // 64, d_ff=4 * variant.width, dropout=0.0,
        encoder_layers=variant.layers[0], decoder_layers=variant.layers[1], norm_position="pre",
        vocab=int(settings.get("tokenizer.vocab", 32000)),
    )  # fmt: skip
    always = np.arange(0, config.vocab, config.vocab // CANDIDATES)
    shortlist = modelfile.Shortlist(np.union1d(always, [config.eos]), np.zeros(config.vocab + 1, int), always[:0])
    path = folder / "model.safetensors"
    modelfile.save(path, Config(model=config), weights_of(build(config)), storage="int8", shortlist=shortlist)
    return CpuEngine(modelfile.load(path), threads=1), path.stat().st_size


def measure(variants: dict[str, Variant], rounds: int) -> dict[str, tuple[float, float]]:
    """Return milliseconds a sentence and the size in MiB of each shape."""
    engines = {}
    for name, variant in variants.items():
        with tempfile.TemporaryDirectory() as folder:
            engines[name] = make_engine(variant, Path(folder))
    options = SearchOptions(beam=4, min_length=LENGTH, max_length=LENGTH)
    source = list(range(100, 100 + LENGTH))
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    for _ in range(rounds):
        for name, (engine, _) in engines.items():
            for _ in range(CALLS_PER_ROUND):
                start = time.perf_counter()
                engine.decode([source], options)
                seconds[name].append(time.perf_counter() - start)
    return {name: (1000 * statistics.median(seconds[name]), size / 2**20) for name, (_, size) in engines.items()}


def plot(rows: list[tuple[str, float, float, float]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "shapes"  # the same plot, the same bytes
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4), layout="constrained")
    for name, bleu, milliseconds, size in rows:
        axes.scatter(milliseconds, bleu, s=5 * size, alpha=0.6)
        axes.annotate(name, (milliseconds, bleu), textcoords="offset points", xytext=(9, -3), fontsize=8)
    axes.set(xlabel="milliseconds a sentence, one CPU core", ylabel="BLEU, mean of six", xlim=(0, None))
    axes.set_title("Dev scores after equal training against time; area: size of the file", fontsize=9)
    axes.margins(0.2)
    axes.grid(alpha=0.25)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scores", type=Path, help="what decisions.py printed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.scores.read_text(encoding="utf-8").splitlines()]
    scores = {row["variant"]: row["means"]["bleu"] for row in rows if "x" in row["variant"]}
    measured = measure({name: VARIANTS[name] for name in scores}, args.rounds)
    table = [(name, scores[name], *measured[name]) for name in sorted(scores, key=lambda name: measured[name][0])]
    for name, bleu, milliseconds, size in table:
        print(f"{name:26} BLEU {bleu:6.2f}  {milliseconds:7.1f} ms  {size:5.1f} MiB")
    if args.plot:
        plot(table, args.plot)


if __name__ == "__main__":
    main()
