"""Memory and time from raw text to batches: cleaning, a tokeniser, the token store and the plan of an epoch.

Writes random pairs into two text files, then does what `sixfold train` does before its first step, in a process of its
own whose peak memory is read from the system after every stage.

    python benchmarks/corpus.py --work DIR --pairs 1_000_000 10_000_000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from itertools import islice
from pathlib import Path

import numpy as np

from sixfold.config import DataConfig, TokenizerConfig
from sixfold.data.cleaned import clean
from sixfold.data.corpus import Corpus
from sixfold.data.loader import BatchPlan, Loader
from sixfold.data.store import tokenize
from sixfold.tasks.translation import TranslationTask
from sixfold.text.learn import train_tokenizer

WORDS = 60_000
CHUNK = 100_000  # pairs written at once


def write(folder: Path, pairs: int) -> None:
    """Write pairs of random words whose frequencies follow Zipf's law; both sides have similar lengths."""
    random = np.random.default_rng(1)
    letters = [["".join(map(chr, random.integers(97, 123, 2 + n % 9))) for n in range(WORDS)] for _ in range(2)]
    chance = 1 / np.arange(10, WORDS + 10)
    cumulative = np.cumsum(chance / chance.sum())
    with (folder / "big.de").open("w", encoding="utf-8") as de, (folder / "big.en").open("w", encoding="utf-8") as en:
        for begin in range(0, pairs, CHUNK):
            count = min(CHUNK, pairs - begin)
            lengths = random.integers(4, 24, count)
            for side, (file, words) in enumerate(zip((de, en), letters, strict=True)):
                drawn = np.searchsorted(cumulative, random.random(int(lengths.sum()) + count * side)).tolist()
                at = 0
                lines = []
                for length in (lengths + side).tolist():
                    lines.append(" ".join([words[index] for index in drawn[at : at + length]]))
                    at += length
                file.write("\n".join(lines) + "\n")


def peak() -> float:
    """Return the peak memory of this process in GB, shared pages included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(folder: Path) -> dict:
    """Run every stage and return its seconds and the peak memory after it."""
    corpora = [Corpus("big", (folder / "big.de", folder / "big.en"))]
    result: dict = {"start_gb": peak()}
    start = time.perf_counter()

    def record(stage: str) -> None:
        nonlocal start
        now = time.perf_counter()
        result[stage] = {"seconds": round(now - start, 1), "peak_gb": round(peak(), 2)}
        print(stage, result[stage], file=sys.stderr, flush=True)
        start = now

    task, data = TranslationTask(("de", "en")), DataConfig()
    cleaned = clean(corpora, task, data.dev_pairs, folder / "data", lambda _: None)
    record("clean")
    texts = (text for pair in cleaned.records() for text in pair[1:])
    tokenizer = train_tokenizer(texts, TokenizerConfig(vocab=32000))
    record("tokeniser")
    tokenizers = dict.fromkeys(task.columns, tokenizer)
    store = tokenize(cleaned, tokenizers, set(), task.columns[:1], data.max_tokens, folder / "data", lambda _: None)
    record("tokens")
    loader = Loader(task.examples(store, tokenizers), BatchPlan(25_000), lambda examples: examples)
    steps = list(islice(loader, 200))
    record("200 steps of the first epoch")
    tokens = sum(len(column.ids) for column in store.columns.values())
    return result | {"pairs": len(store), "steps": len(steps), "token_count": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pairs", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.work)))
        return
    for pairs in args.pairs:
        folder = args.work / str(pairs)
        folder.mkdir(parents=True, exist_ok=True)
        write(folder, pairs)
        command = [sys.executable, __file__, "--work", str(folder), "--measure"]
        process = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        result = json.loads(process.stdout)
        size = sum(path.stat().st_size for path in folder.glob("big.*")) / 1e9
        print(f"{pairs:,} pairs, {size:.2f} GB of text: {json.dumps(result)}")


if __name__ == "__main__":
    main()
