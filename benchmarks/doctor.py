"""How well `sixfold doctor` finds faults planted in clean pairs and unrelated pairs, and its time for a million pairs.

DATA is a folder of `train/NAME.tsv.xz`, Chinese and English in two columns, and of `multi30k/train.de` and `train.en`.

    python benchmarks/doctor.py --faults DATA      recall and precision of each planted fault
    python benchmarks/doctor.py --alignment DATA   pairs against shuffled pairs, corpus by corpus
    python benchmarks/doctor.py --shuffled DATA    recall and false alarms where up to 40% of the pairs are shuffled
    python benchmarks/doctor.py --training         training speed on one core as a share of what the doctor measures
    python benchmarks/doctor.py --speed DATA       seconds and peak memory for a million pairs
"""

from __future__ import annotations

import argparse
import lzma
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice, repeat
from pathlib import Path

from sixfold.audit.audit import audit_corpus
from sixfold.audit.findings import Audit
from sixfold.audit.leaks import HeldOut
from sixfold.cli.doctor import core_speed
from sixfold.config import DataConfig, ModelConfig, TrainingConfig
from sixfold.data.corpus import Corpus
from sixfold.model.transformer import build
from sixfold.presets import preset
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation import TranslationTask
from sixfold.tasks.translation_batches import pair_batch
from sixfold.training.loop import train
from sixfold.training.state import State
from sixfold.weights import cost

FAULTY = ("lctt", "tatoeba", "k8s", "written")
ALIGNED = ("tatoeba", "lctt", "k8s", "written", "mdn", "pydocs", "ethereum", "twlaw", "3am", "cedict")
SHUFFLED = ("tatoeba", "written", "lctt", "mdn", "3am", "cedict")
PAIRS_PER_CORPUS = 12_500  # of FAULTY
FAULT_SHARE = 0.02  # of all pairs, for each fault
LANGUAGES = ("zh", "en")
Row = tuple[str, str]


def rows(data: Path, name: str, limit: int) -> list[Row]:
    with lzma.open(data / "train" / f"{name}.tsv.xz", "rt", encoding="utf-8") as file:
        return [(source, target) for source, target in (line.rstrip("\n").split("\t") for line in islice(file, limit))]


def changed_number(row: Row) -> Row | None:
    """Change the first number of two or more digits in the target that the source has too; None if there is none."""
    for word in row[1].split():
        digits = word.strip(".,")
        if digits.isdecimal() and len(digits) >= 2 and digits in row[0]:
            return row[0], row[1].replace(digits, str(int(digits) * 3 + 1), 1)
    return None


def long_enough(make: Callable[[Row], Row], letters: int) -> Callable[[Row], Row | None]:
    return lambda row: make(row) if len(row[1]) >= letters else None


def one_word_changed(row: Row) -> Row:
    words = row[1].split()
    words[len(words) // 2] = "something"
    return row[0] + "！", " ".join(words)


def mojibake(row: Row) -> Row | None:
    target = row[1].replace("'", "’").encode().decode("cp1252", "ignore")
    return (row[0], target) if target != row[1].replace("'", "’") else (row[0].encode().decode("latin-1"), row[1])


# Each makes a faulty pair from a good one, or returns None if that pair is unsuitable.
FAULTS: dict[str, Callable[[Row], Row | None]] = {
    "swapped": lambda row: (row[1], row[0]),
    "truncated": long_enough(lambda row: (row[0], row[1][: len(row[1]) // 3]), 60),
    "copied": lambda row: (row[0], row[0]),
    "untranslated": lambda row: (f"Well: {row[1]}", row[1]),
    "mojibake": mojibake,
    "replacement": lambda row: (row[0], row[1][:5] + "\ufffd" + row[1][6:]),
    "markup": lambda row: (row[0], f"<p>{row[1]}&nbsp;</p>"),
    "control": lambda row: (row[0] + "\x08", row[1]),
    "empty": lambda row: (row[0], ""),
    "number": changed_number,  # last, because few pairs have one
}
# The kinds that a planted fault may be reported as.
FOUND_AS = {
    "swapped": ("swapped", "script"),
    "shuffled": ("misaligned",),
    "truncated": ("lopsided", "misaligned", "ratio"),
    "copied": ("copied", "script", "untranslated"),
    "untranslated": ("untranslated", "script"),
    "mojibake": ("mojibake",),
    "replacement": ("encoding",),
    "number": ("numbers",),
    "markup": ("markup",),
    "control": ("control",),
    "empty": ("empty",),
    "duplicate": ("duplicate",),
    "near-duplicate": ("near-duplicate", "duplicate"),
    "leaked": ("leaked",),
}


def plant(good: list[Row], chance: random.Random) -> tuple[list[Row], dict[int, str], list[str]]:
    """Return pairs with faults among them, the fault of each faulty row, and a test set that some pairs are in."""
    bad = list(good)
    number = int(FAULT_SHARE * len(good))
    order = iter(chance.sample(range(len(good)), len(good)))
    planted: dict[int, str] = {}
    shuffled = list(islice(order, number))
    for row, next_row in zip(shuffled, shuffled[1:] + shuffled[:1], strict=True):
        bad[row] = (good[row][0], good[next_row][1])
        planted[row] = "shuffled"
    for fault in ("duplicate", "near-duplicate"):
        for row in islice((row for row in order if len(good[row][1]) >= 60), number):
            planted[len(bad)] = fault
            bad.append(good[row] if fault == "duplicate" else one_word_changed(good[row]))
    leaked = list(islice((row for row in order if len(good[row][1]) >= 30), number))
    planted |= dict.fromkeys(leaked, "leaked")
    for fault, make in FAULTS.items():
        faulty = ((row, pair) for row in order if (pair := make(good[row])))
        for row, pair in islice(faulty, number):
            bad[row], planted[row] = pair, fault
    return bad, planted, [good[row][1].upper() for row in leaked]


def audit(pairs: list[Row], test: list[str], languages: tuple[str, str] = LANGUAGES) -> Audit:
    with tempfile.TemporaryDirectory() as folder:
        corpus, held_out = Path(folder, "pairs.tsv"), Path(folder, "test.en")
        corpus.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8", newline="\n")
        held_out.write_text("".join(f"{line}\n" for line in test), encoding="utf-8")
        against = HeldOut.of([held_out], languages) if test else None
        return audit_corpus(Corpus("pairs", (corpus,)), languages, DataConfig(), against, lambda size: None)


def faults(data: Path) -> None:
    """Print recall and precision of each fault. Precision counts planted faults only: the corpus has others."""
    good = [row for name in FAULTY for row in rows(data, name, PAIRS_PER_CORPUS)]
    bad, planted, test = plant(good, random.Random(1))
    before, after = audit(good, []), audit(bad, test)
    print(f"{len(bad):,} pairs, {len(planted):,} with a fault; alignment area {after.alignment['area']}")
    print("| fault | found as | planted | recall | precision | flagged before planting |\n|---|---|---|---|---|---|")
    for fault, kinds in FOUND_AS.items():
        at = {row + 1 for row, name in planted.items() if name == fault}
        flagged = {line for kind in kinds for line in after.findings[kind].lines}
        already = {line for kind in kinds for line in before.findings[kind].lines}
        false = {line for line in flagged if line - 1 not in planted}
        precision = len(flagged & at) / max(1, len(flagged & at) + len(false))
        share = len(already) / before.pairs
        figures = f"{len(at):,} | {len(flagged & at) / max(1, len(at)):.1%} | {precision:.1%} | {share:.2%}"
        print(f"| {fault} | {', '.join(kinds)} | {figures} |")


def alignment(data: Path, limit: int) -> None:
    print("| corpus | pairs | judged | area under the curve | flagged | seconds |\n|---|---|---|---|---|---|")
    for name in ALIGNED:
        start = time.perf_counter()
        result = audit(rows(data, name, limit), [])
        share = len(result.findings["misaligned"].lines) / result.pairs
        seconds = time.perf_counter() - start
        facts = f"{result.alignment['judged']:.1%} | {result.alignment['area']:.4f} | {share:.2%} | {seconds:.0f}"
        print(f"| {name} | {result.pairs:,} | {facts} |", flush=True)


def shuffled(data: Path) -> None:
    """Print recall and false alarms for the first pairs of each corpus after some have exchanged their targets."""
    german, english = (
        (data / "multi30k" / f"train.{code}").read_text(encoding="utf-8").splitlines()[:4000] for code in ("de", "en")
    )
    corpora = {"multi30k de–en": (list(zip(german, english, strict=True)), ("de", "en"))}
    corpora |= {name: (rows(data, name, 8000), LANGUAGES) for name in SHUFFLED}
    print("| corpus | pairs | shuffled | estimated | recall | false alarms |\n|---|---|---|---|---|---|")
    for name, (good, languages) in corpora.items():
        for share in (0.0, 0.05, 0.2, 0.4):
            pairs = list(good)
            chosen = random.Random(1).sample(range(len(good)), int(share * len(good)))
            for row, next_row in zip(chosen, chosen[1:] + chosen[:1], strict=True):
                pairs[row] = (good[row][0], good[next_row][1])
            result = audit(pairs, [], languages)
            flagged = {line - 1 for line in result.findings["misaligned"].lines}
            recall = f"{len(flagged & set(chosen)) / len(chosen):.1%}" if chosen else ""
            false = len(flagged - set(chosen)) / (len(good) - len(chosen))
            estimate = result.alignment["unrelated"]
            print(f"| {name} | {len(good):,} | {share:.0%} | {estimate:.1%} | {recall} | {false:.2%} |", flush=True)


def training() -> None:
    """Print the speed of the fastest of seven training steps on one thread, and its share of the speed of a core."""
    import torch

    torch.set_num_threads(1)
    chance = random.Random(1)
    config = TrainingConfig(steps=7, learning_rate=1e-3, warmup=2)
    task = TranslationTask(("", ""), loss=TokenLoss(config.label_smoothing))
    print("| preset | tokens of a side | GFLOP/s | of a core's |\n|---|---|---|---|")
    for name, tokens in (("tiny", 2048), ("small", 4096)):
        shape = preset(name).model
        for length in (14, 30):

            def side(length: int = length, shape: ModelConfig = shape) -> list[int]:
                return [chance.randint(5, shape.vocab - 1) for _ in range(length - 1)]

            batch = [pair_batch([(side(), side()) for _ in range(tokens // length)], shape)]
            seconds, last = [], time.process_time()
            for _ in train(State(build(shape, seed=1), config, task.loss), repeat(batch), shape, config):
                seconds.append(time.process_time() - last)
                last = time.process_time()
            speed = 3 * cost(shape, length).total * (tokens // length) * length / min(seconds)
            print(f"| {name} | {length} | {speed / 1e9:.0f} | {speed / core_speed():.2f} |", flush=True)


def million(data: Path) -> Iterator[str]:
    for file in sorted((data / "train").glob("*.tsv.xz")):
        with lzma.open(file, "rt", encoding="utf-8") as lines:
            yield from lines


def speed(data: Path, pairs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "million.zh-en.tsv")
        with corpus.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(islice(million(data), pairs))
        start = time.perf_counter()
        command = [sys.executable, "-m", "sixfold", "doctor", str(corpus), "--output", folder]
        process = subprocess.run(command, check=True, capture_output=True, text=True)
        seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(process.stdout.splitlines()[0], f"{seconds:.0f} seconds, peak memory {peak:.2f} GiB", sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--faults", "--alignment", "--shuffled", "--speed"):
        parser.add_argument(name, type=Path, metavar="DATA")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="for --speed; --alignment reads 50,000 at most")
    args = parser.parse_args()
    if args.faults:
        faults(args.faults)
    if args.alignment:
        alignment(args.alignment, min(args.pairs, 50_000))
    if args.shuffled:
        shuffled(args.shuffled)
    if args.training:
        training()
    if args.speed:
        speed(args.speed, args.pairs)


if __name__ == "__main__":
    main()
