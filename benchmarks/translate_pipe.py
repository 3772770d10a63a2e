"""A file far larger than memory through `sixfold translate -`: lines a second, and memory that does not grow.

    python benchmarks/translate_pipe.py TEXT --model MODEL                          # 1 GB for two minutes
    python benchmarks/translate_pipe.py TEXT --model MODEL --bytes 10000000000 --seconds 600 --json results.json

The file repeats TEXT. The output is counted and discarded; resident memory is read once a second from /proc, so this
needs Linux. The time before the first line of output counts neither for the slope nor for the speed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np


def write_text(path: Path, text: bytes, size: int) -> None:
    """Write at least `size` bytes of whole lines."""
    block = text if text.endswith(b"\n") else text + b"\n"
    block *= max(1, (1 << 20) // len(block))
    with path.open("wb") as file:
        for _ in range(-(-size // len(block))):
            file.write(block)


def resident_mb(process: int) -> float:
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class Counter(threading.Thread):
    """Reads a pipe as fast as it can, and counts its lines."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(daemon=True)
        self.descriptor, self.lines = descriptor, 0
        self.first = threading.Event()

    def run(self) -> None:
        while chunk := os.read(self.descriptor, 1 << 16):
            self.lines += chunk.count(b"\n")
            self.first.set()


def measure(command: list[str], source: Path, seconds: float) -> dict[str, float]:
    with source.open("rb") as text, subprocess.Popen(command, stdin=text, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        launch = time.perf_counter()
        counter = Counter(process.stdout.fileno())
        counter.start()
        assert counter.first.wait(120), "nothing came out"
        start, before = time.perf_counter(), counter.lines
        samples: list[tuple[float, float]] = []
        while (now := time.perf_counter() - start) < seconds and process.poll() is None:
            samples.append((now, resident_mb(process.pid)))
            time.sleep(1)
        lines, elapsed = counter.lines - before, time.perf_counter() - start
        has_ended = process.poll() is not None
        process.kill()
        counter.join()
    assert not has_ended, "the whole file was translated: give more --bytes, or fewer --seconds"
    times, memory = np.array(samples).T
    settled = times >= seconds / 4  # buffers have reached their size by then
    return {
        "first_line_s": start - launch, "seconds": elapsed, "lines": lines, "lines_per_s": lines / elapsed,
        "memory_first_mb": memory[0], "memory_median_mb": statistics.median(memory), "memory_last_mb": memory[-1],
        "memory_most_mb": memory.max(), "slope_mb_per_minute": np.polyfit(times, memory, 1)[0] * 60,
        "settled_slope_mb_per_minute": np.polyfit(times[settled], memory[settled], 1)[0] * 60,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="lines to repeat")
    parser.add_argument("--model", type=Path, help="default: the model of the package")
    parser.add_argument("--bytes", type=int, default=10**9, help="size of the file")
    parser.add_argument("--seconds", type=float, default=120.0, help="how long to watch, after the first line")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--json", type=Path, help="write the results here")
    args = parser.parse_args()
    command = [sys.executable, "-m", "sixfold", "translate", "-", "--beam", str(args.beam)]
    command += ["--model", str(args.model)] if args.model else []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "text"
        write_text(source, args.text.read_bytes(), args.bytes)
        size = source.stat().st_size
        results = {
            "bytes": size,
            "beam": args.beam,
            "load": os.getloadavg()[0],
            **measure(command, source, args.seconds),
        }
    for name, value in results.items():
        print(f"{name:28}{value:>16,.2f}")
    if args.json:
        args.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
