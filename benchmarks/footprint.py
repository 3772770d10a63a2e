"""The cost of a model on a CPU: file size, time to open, memory, time of single sentences, and speed on many.

python benchmarks/footprint.py DATA MODEL... [--rounds 3]      # the lines of DATA/dev/flores-dev.zh, into English
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

SINGLE_SENTENCES = 60  # timed one by one
BATCH_SENTENCES = 500  # translated in one call


def measure(model: Path, data: Path) -> dict[str, float]:
    """Measure a model in this process, which must have done nothing else."""
    begin = time.perf_counter()
    from sixfold import Translator

    with Translator(model, "cpu") as translator:
        translator.translate("你好。", "zh", "en")
        open_seconds = time.perf_counter() - begin
        lines = (data / "dev" / "flores-dev.zh").read_text(encoding="utf-8").splitlines()
        sentence_seconds = []
        for line in lines[:SINGLE_SENTENCES]:
            start = time.perf_counter()
            translator.translate(line, "zh", "en")
            sentence_seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        translator.translate_batch(lines[:BATCH_SENTENCES], "zh", "en")
        batch_seconds = time.perf_counter() - start
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return {
        "seconds to the first translation": open_seconds,
        "MiB of memory at peak": int(status["VmHWM"].split()[0]) / 1024,
        "ms a sentence": 1000 * statistics.median(sentence_seconds),
        "sentences/s": BATCH_SENTENCES / batch_seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", action="store_true", help="measure in this process and print JSON")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.models[0], args.data)))
        return
    results: dict[Path, list[dict[str, float]]] = {model: [] for model in args.models}
    command = [sys.executable, __file__, str(args.data), "--one"]
    for _ in range(args.rounds + 1):  # the first fills the cache of converted models
        for model, rounds in results.items():
            rounds.append(json.loads(subprocess.run([*command, str(model)], capture_output=True, check=True).stdout))
    for model, rounds in results.items():
        print(f"{model.name}: {model.stat().st_size / 2**20:.1f} MiB")
        for name in rounds[0]:
            values = [values_of_round[name] for values_of_round in rounds[1:]]
            print(f"  {name:34} {statistics.median(values):8.2f}  ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
