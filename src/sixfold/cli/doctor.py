"""`sixfold doctor`: finds what is wrong with a corpus, and estimates what training on it would take."""

from __future__ import annotations

import json
import math
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sixfold.audit.audit import audit_corpus
from sixfold.audit.findings import Audit
from sixfold.audit.leaks import HeldOut
from sixfold.cli.options import PAIR_FILES_HELP, Command, JsonOption, SetOption
from sixfold.config import Config, DataConfig, override
from sixfold.data.corpus import Corpus, detect_languages
from sixfold.engines.cpu import cores
from sixfold.errors import ConfigError
from sixfold.recipe import CorpusConfig
from sixfold.reports import page
from sixfold.reports.audit import audit_page
from sixfold.training import defaults
from sixfold.weights import cost, shapes

LETTERS_PER_TOKEN = 4.0  # of a subword; a Han character counts as three letters
# Training speed per core, as a share of the speed of small matrix products on one core: at best (on one core, see
# benchmarks/RESULTS.md), and at worst, when cores share memory bandwidth and validation takes time.
TRAINING_EFFICIENCY = (0.7, 0.3)
GPU_SPEED = 2.7e14  # operations per second of the base model on one H200 in benchmarks/RESULTS.md
BYTES_PER_WEIGHT = 20  # the weight, its gradient, its moving average, and two values of the optimizer
# What to expect from a corpus, by its number of pairs. In words, because the domain matters more than the size.
EXPECTED_QUALITY = (
    (2e4, "set phrases of its own domain; elsewhere it makes things up"),
    (1e5, "plain sentences of its own domain, with mistakes"),
    (5e5, "good in its own domain, rough outside"),
    (5e6, "good in its own domain, usable outside"),
    (math.inf, "good in general"),
)


def register(app: typer.Typer, name: str) -> None:
    app.command(name, cls=Command)(doctor)


def doctor(
    files: Annotated[list[Path], typer.Argument(help=PAIR_FILES_HELP)],
    against: Annotated[
        list[Path],
        typer.Option(help="Look for this test set in the corpus: text of one side, or pairs. Can be repeated."),
    ] = [],  # noqa: B006 -- typer reads the default and never changes it
    out: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write doctor.json and doctor.html to this folder.")
    ] = None,
    changes: SetOption = [],  # noqa: B006
    device: Annotated[str, typer.Option(help="Estimate the training on this device: auto, cpu or cuda.")] = "auto",
    as_json: JsonOption = False,
) -> None:
    """Find sentence pairs that are misaligned, damaged, repeated or leaked, before you train on them.

    Each finding has its file and line. The last line estimates what training would take.
    """
    if device not in ("auto", "cpu", "cuda"):
        raise ConfigError(f"--device: expected auto, cpu or cuda; got {device!r}")
    settings = override(Config(data=DataConfig()), changes).data
    config = CorpusConfig(tuple(map(str, files)))
    languages = detect_languages(settings, config, Path())
    corpus = Corpus.from_config(config, Path(), languages)
    if {file.resolve() for file in against} & {file.resolve() for file in files}:
        raise ConfigError("--against: expected a test set; got the corpus itself")
    held_out = HeldOut.of(against, languages) if against else None
    if out is not None:
        page.make_folder(out)
    columns = (TextColumn("examining"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("examine", total=2 * corpus.size)
        audit = audit_corpus(corpus, languages, settings, held_out, lambda size: bar.advance(task, size))
    has_pairs = audit.pairs > audit.faulty_pairs
    training = estimate(audit, device) if has_pairs else {"says": "nothing is left to train on"}
    facts = audit.to_dict() | {"training": training}
    _report(audit, facts, out, as_json)


def _report(audit: Audit, facts: dict[str, Any], out: Path | None, as_json: bool) -> None:
    """Write the findings to the folder, if there is one, and print them."""
    text = json.dumps(facts, ensure_ascii=False)
    if out is not None:
        page.write(out / "doctor.json", f"{text}\n")
        page.write(out / "doctor.html", audit_page(facts))
        print(f"wrote {out / 'doctor.json'}, {out / 'doctor.html'}", file=sys.stderr)
    print(text if as_json else "\n".join([*audit.lines(), facts["training"]["says"]]))


def estimate(audit: Audit, device: str) -> dict[str, Any]:
    """Return what `sixfold train` would choose for the good pairs of a corpus, and an estimate of time and memory."""
    if device == "auto":
        device = "cuda" if shutil.which("nvidia-smi") else "cpu"
    pairs = audit.pairs - audit.faulty_pairs
    config = defaults.choose({}, pairs, device)
    shape = replace(config.model, vocab=config.tokenizer.vocab)
    tokens = max(audit.letters) / LETTERS_PER_TOKEN * pairs / audit.pairs
    training = defaults.complete(config.training, pairs, lambda batch: math.ceil(tokens / batch), device)
    weights = sum(math.prod(size) for size in shapes(shape).values())
    on_cpu = device == "cpu"
    operations = 3 * cost(shape, max(1, round(tokens / pairs))).total  # per token, forward and backward
    core = core_speed() if on_cpu else 0.0
    speeds = [share * core * cores() for share in TRAINING_EFFICIENCY] if on_cpu else [GPU_SPEED]
    hours = [training.steps * training.batch_tokens * operations / speed / 3600 for speed in speeds]
    layers = shape.encoder_layers + shape.decoder_layers
    activations = training.batch_tokens * layers * (16 * shape.d_model + 2 * shape.d_ff)  # kept for the backward pass
    memory = BYTES_PER_WEIGHT * weights + activations * (4 if on_cpu else 2)
    measured = f"{cores()} cores, whose matrix products were just measured at {core / 1e9:.0f} GFLOP/s each by CPU time"
    basis = measured if on_cpu else "as one H200 does; a smaller card takes longer"
    duration = f"{_duration(hours[0])} to {_duration(hours[1])}" if on_cpu else f"at least {_duration(hours[0])}"
    preset = defaults.size_of(pairs).cpu_preset if on_cpu else defaults.size_of(pairs).gpu_preset
    quality = next(words for max_pairs, words in EXPECTED_QUALITY if pairs <= max_pairs)
    vocab = config.tokenizer.vocab
    advice = f"a vocabulary of {vocab:,}"
    if audit.words < vocab:
        vocab = max(500, round(audit.words, -2))
        advice = f"--set tokenizer.vocab={vocab}, as there are only about {audit.words:,} different words"
    return {
        "device": device, "pairs": pairs, "preset": preset, "vocab": vocab, "parameters": weights,
        "steps": training.steps, "batch_tokens": training.batch_tokens,
        "tokens_a_second": round(speeds[-1] / operations),
        "hours": round(hours[-1], 2), "hours_range": [round(hours[0], 2), round(hours[1], 2) if on_cpu else None],
        "bytes": memory, "quality": quality, "basis": basis,
        "says": f"training on the {pairs:,} good pairs, estimated: preset {preset}, {advice}, "
        f"{weights / 1e6:.1f} million weights; {training.steps:,} steps on {device} in {duration} "
        f"({basis}); about {max(memory / 2**30, 0.1):.1f} GiB; expect: {quality}",
    }  # fmt: skip


def _duration(hours: float) -> str:
    return f"{max(1, hours * 60):.0f} minutes" if hours < 2 else f"{hours:.0f} hours"


def core_speed(runs: int = 10, seconds: float = 0.02) -> float:
    """Return the floating-point operations per second of one core in float32 matrix products.

    It is the best of several runs, by the CPU time of this thread, so that other processes do not count. The products
    are too small for the library to split among threads, whose waiting for each other would count.
    """
    stack, square = np.ones((64, 64, 64), np.float32), np.ones((64, 64), np.float32)
    best, products = 0.0, 1
    for _ in range(runs):
        start = time.thread_time()
        for _ in range(products):
            np.matmul(stack, square)
        elapsed = time.thread_time() - start
        if elapsed > seconds / 2:  # enough for a clock that ticks every few milliseconds
            best = max(best, products * 2 * 64**4 / elapsed)
        products = max(1, round(products * min(16, seconds / max(elapsed, 1e-6))))
    return best or products * 2 * 64**4 / seconds
