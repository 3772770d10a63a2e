"""What a model costs on a CPU: its file, opening it, memory, a sentence by itself and a file of them; models in turn.

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

ALONE = 60  # sentences that are timed one by one
BULK = 500  # together


def measure(model: Path, data: Path) -> dict[str, float]:
    """In this process, which has done nothing else."""
    began = time.perf_counter()
    from sixfold import Translator

    with Translator(model, "cpu") as translator:
        translator.translate("你好。", "zh", "en")
        opened = time.perf_counter() - began
        lines = (data / "dev" / "flores-dev.zh").read_text(encoding="utf-8").splitlines()
        alone = []
        for line in lines[:ALONE]:
            start = time.perf_counter()
            translator.translate(line, "zh", "en")
            alone.append(time.perf_counter() - start)
        start = time.perf_counter()
        translator.translate_batch(lines[:BULK], "zh", "en")
        together = time.perf_counter() - start
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines())
    return {
        "seconds to the first translation": opened,
        "MiB of memory at most": int(status["VmHWM"].split()[0]) / 1024,
        "ms a sentence": 1000 * statistics.median(alone),
        "sentences/s": BULK / together,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--one", action="store_true", help="measure here and print JSON")
    args = parser.parse_args()
    if args.one:
        print(json.dumps(measure(args.models[0], args.data)))
        return
    found: dict[Path, list[dict[str, float]]] = {model: [] for model in args.models}
    command = [sys.executable, __file__, str(args.data), "--one"]
    for _ in range(args.rounds + 1):  # the first fills the cache of converted models
        for model, its in found.items():
            its.append(json.loads(subprocess.run([*command, str(model)], capture_output=True, check=True).stdout))
    for model, its in found.items():
        print(f"{model.name}: {model.stat().st_size / 2**20:.1f} MiB")
        for name in its[0]:
            values = [each[name] for each in its[1:]]
            print(f"  {name:34} {statistics.median(values):8.2f}  ({min(values):.2f} to {max(values):.2f})")


if __name__ == "__main__":
    main()
