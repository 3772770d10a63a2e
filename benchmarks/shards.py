"""Shards translated by Ray, once undisturbed and once with kill -9 of workers and driver: speed, and the same bytes?

    python benchmarks/shards.py                                     # a toy model, trained first; 100,000 lines, 5 kills
    python benchmarks/shards.py --model MODEL --text TEXT --lines 20000 --beam 4

Kills come after random numbers of translated blocks, so that every kill interrupts the work. Ray must replace a dead
worker; after a kill of the driver the same command is started again. Processes are found in /proc, so this needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, islice
from pathlib import Path

from sixfold.translation.bulk.json_lines import text_of
from sixfold.translation.bulk.shards import cut_into_blocks

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
FILES = 8


def toy_model(path: Path) -> Path:
    """Train a model that is smaller than that of the example, in seconds."""
    import torch
    import toy_translation as toy

    from sixfold import modelfile
    from sixfold.model.transformer import weights_of

    torch.set_num_threads(1)
    toy.TRAINING = replace(toy.TRAINING, steps=150)
    toy.MODEL = replace(toy.MODEL, d_model=64, d_ff=128)
    config, tokenizer, model = toy.learn(toy.sentences())
    languages = {"languages": {"source": "zh", "target": "en"}}
    modelfile.save(path, config, weights_of(model), tokenizer, languages, storage="int8")
    return path


def toy_lines(count: int, rng: random.Random) -> list[str]:
    """Return lines of two toy sentences, of which few are equal, since a block translates equal sentences once."""
    import toy_translation as toy

    sources = [source for source, _ in toy.sentences()]
    return ["".join(rng.choices(sources, k=2)) for _ in range(count)]


def write_shards(folder: Path, lines: list[str]) -> list[Path]:
    size = -(-len(lines) // FILES)
    paths = [folder / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(paths):
        shard = lines[number * size : (number + 1) * size]
        path.write_text("".join(f"{line}\n" for line in shard), encoding="utf-8")
    return paths


def check_speed(path: Path, lines: list[str]) -> float:
    """Return how many JSON lines a second are checked, as all lines are before the first block is translated."""
    path.write_text(
        "".join(json.dumps({"id": 1, "text": line}, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )
    start = time.perf_counter()
    list(cut_into_blocks(path, lambda raw, where: text_of(raw.decode(errors="replace"), "text", where)))
    return len(lines) / (time.perf_counter() - start)


def translated_blocks(out: Path, blocks: dict[str, int]) -> int:
    parts = Counter(path.parent.name for path in out.glob(".parts/*/*") if path.name.isdecimal())
    return sum(count if (out / name).exists() else parts[name] for name, count in blocks.items())


def processes_of(driver: int) -> dict[int, str]:
    """Return the ids and command lines of a driver and of the processes that it has started."""
    processes = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, *numbers = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            if state != "Z" and int(numbers[2]) == driver:
                processes[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
    return processes


def start_driver(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def kill_remaining(driver: subprocess.Popen[bytes]) -> None:
    """Kill the processes of Ray that outlive a dead driver for a while."""
    for number in processes_of(driver.pid):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def run_undisturbed(command: list[str]) -> float:
    start = time.perf_counter()
    driver = start_driver(command)
    _, errors = driver.communicate()
    assert driver.returncode == 0, errors.decode()
    return time.perf_counter() - start


def run_with_kills(command: list[str], out: Path, blocks: dict[str, int], kills: int, rng: random.Random) -> float:
    """Kill a worker or the driver `kills` times, start again after each kill of the driver, and run to the end."""
    moments = sorted(rng.sample(range(1, sum(blocks.values()) - 1), kills))
    victims = ["driver", "worker"] + [rng.choice(["driver", "worker"]) for _ in range(kills - 2)]
    rng.shuffle(victims)
    start, dead = time.perf_counter(), list[subprocess.Popen[bytes]]()
    driver = start_driver(command)
    for moment, victim in zip(moments, victims[:kills], strict=True):
        workers: list[int] = []
        while translated_blocks(out, blocks) < moment or not workers:
            assert driver.poll() is None, driver.communicate()[1].decode()
            workers = [number for number, name in processes_of(driver.pid).items() if "MapWorker" in name]
            time.sleep(0.01)
        number = rng.choice(workers) if victim == "worker" else driver.pid
        os.kill(number, signal.SIGKILL)
        seconds, count = time.perf_counter() - start, translated_blocks(out, blocks)
        print(f"  kill -9 of a {victim} after {seconds:.0f} s, with {count} blocks done", flush=True)
        if victim == "driver":
            driver.wait()
            dead.append(driver)
            driver = start_driver(command)
    _, errors = driver.communicate()
    assert driver.returncode == 0, errors.decode()
    seconds = time.perf_counter() - start
    for process in dead:
        kill_remaining(process)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="default: a toy model that is trained first")
    parser.add_argument("--text", type=Path, help="lines for --model, repeated as needed")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if (args.model is None) != (args.text is None):
        parser.error("--model and --text go together")
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        model = args.model or toy_model(work / "toy.safetensors")
        text = args.text.read_text(encoding="utf-8").splitlines() if args.text else None
        lines = list(islice(cycle(text), args.lines)) if text else toy_lines(args.lines, rng)
        paths = write_shards(work, lines)
        blocks = {path.name: sum(1 for _ in cut_into_blocks(path)) for path in paths}
        print(
            f"{args.lines:,} lines in {FILES} shards and {sum(blocks.values())} blocks, load {os.getloadavg()[0]:.1f}"
        )
        print(f"checking JSON lines: {check_speed(work / 'records.jsonl', lines):,.0f} lines/s", flush=True)
        command = [sys.executable, "-m", "sixfold", "translate", *map(str, paths), "--beam", str(args.beam)]
        command += ["--model", str(model), "--workers", "ray", "--output"]
        seconds = run_undisturbed([*command, str(work / "calm")])
        print(f"undisturbed: {seconds:.1f} s, {args.lines / seconds:,.0f} lines/s", flush=True)
        seconds = run_with_kills([*command, str(work / "killed")], work / "killed", blocks, args.kills, rng)
        print(f"with {args.kills} kills: {seconds:.1f} s, {args.lines / seconds:,.0f} lines/s")
        is_equal = [(work / "calm" / name).read_bytes() == (work / "killed" / name).read_bytes() for name in blocks]
        count = sum((work / "killed" / name).read_bytes().count(b"\n") for name in blocks)
        print(f"{count:,} lines came out; {sum(is_equal)} of {len(is_equal)} files are the same, byte for byte")
        assert all(is_equal)


if __name__ == "__main__":
    main()
