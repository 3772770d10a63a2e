"""Memory and time from raw text to batches: cleaning, a tokeniser, the token store and a plan of an epoch.

Made-up pairs, as many as asked for, in two text files; then what `sixfold train` does before its first step, in a
process of its own whose peak memory is read from the system at every stage.

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
from sixfold.data.corpus import Corpus
from sixfold.data.loader import Loader, Order
from sixfold.data.store import clean, tokenize
from sixfold.text.learn import train_tokenizer

WORDS = 60_000


def write(folder: Path, pairs: int) -> None:
    """Words drawn as Zipf would have them; the sides of a pair have lengths alike."""
    random = np.random.default_rng(1)
    letters = [["".join(map(chr, random.integers(97, 123, 2 + n % 9))) for n in range(WORDS)] for _ in range(2)]
    chance = 1 / np.arange(10, WORDS + 10)
    cumulative = np.cumsum(chance / chance.sum())
    with (folder / "big.de").open("w", encoding="utf-8") as de, (folder / "big.en").open("w", encoding="utf-8") as en:
        for begin in range(0, pairs, 100_000):
            count = min(100_000, pairs - begin)
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
    """GB of this process at its largest, shared pages included."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def measure(folder: Path) -> dict:
    corpora = [Corpus("big", (folder / "big.de", folder / "big.en"))]
    result: dict = {"start_gb": peak()}
    began = time.perf_counter()

    def done(stage: str) -> None:
        nonlocal began
        now = time.perf_counter()
        result[stage] = {"seconds": round(now - began, 1), "peak_gb": round(peak(), 2)}
        print(stage, result[stage], file=sys.stderr, flush=True)
        began = now

    kept = clean(corpora, ("de", "en"), DataConfig(), folder / "data", lambda _: None)
    done("clean")
    texts = (text for pair in kept.pairs() for text in pair[1:])
    tokenizer = train_tokenizer(texts, TokenizerConfig(vocab=32000))
    done("tokeniser")
    store = tokenize(kept, tokenizer, set(), DataConfig(), folder / "data", lambda _: None)
    done("tokens")
    loader = Loader(store, Order(25_000), lambda examples: examples)
    steps = list(islice(loader, 200))
    done("200 steps of the first epoch")
    return result | {"pairs": len(store), "steps": len(steps), "token_count": len(store.source) + len(store.target)}


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
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found = json.loads(done.stdout)
        size = sum(path.stat().st_size for path in folder.glob("big.*")) / 1e9
        print(f"{pairs:,} pairs, {size:.2f} GB of text: {json.dumps(found)}")


if __name__ == "__main__":
    main()
