"""Shards by Ray, once undisturbed and once with kill -9 of workers and of the driver: lines a second, the same bytes?

    python benchmarks/shards.py                                      # a toy model, learnt first; 100,000 lines, 5 kills
    python benchmarks/shards.py --model MODEL --text TEXT --lines 20000 --beam 4

Moments are drawn from the blocks that are done, so that every kill falls into the work. A worker must be replaced by
Ray; after the driver's death the same command is given again. Processes are looked for in /proc, so this runs on Linux.
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
from sixfold.translation.bulk.shards import cut

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
FILES = 8


def toy_model(path: Path) -> Path:
    """Smaller than that of the demo, and learnt in seconds."""
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


def toy_lines(count: int, chance: random.Random) -> list[str]:
    """Two sentences of the toy grammar run together, so that few are alike: a sentence is translated once a block."""
    import toy_translation as toy

    sources = [source for source, _ in toy.sentences()]
    return ["".join(chance.choices(sources, k=2)) for _ in range(count)]


def write_shards(folder: Path, lines: list[str]) -> list[Path]:
    size = -(-len(lines) // FILES)
    paths = [folder / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(paths):
        some = lines[number * size : (number + 1) * size]
        path.write_text("".join(f"{line}\n" for line in some), encoding="utf-8")
    return paths


def looked_through(path: Path, lines: list[str]) -> float:
    """Lines of JSON a second that are found to be fine, which they must be before work begins."""
    path.write_text(
        "".join(json.dumps({"id": 1, "text": line}, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8"
    )
    began = time.perf_counter()
    list(cut(path, lambda raw, where: text_of(raw.decode(errors="replace"), "text", where)))
    return len(lines) / (time.perf_counter() - began)


def blocks_done(out: Path, blocks: dict[str, int]) -> int:
    parts = Counter(path.parent.name for path in out.glob(".parts/*/*") if path.name.isdecimal())
    return sum(count if (out / name).exists() else parts[name] for name, count in blocks.items())


def session(driver: int) -> dict[int, str]:
    """The processes that a driver has started, and itself, each with its name."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, *numbers = (folder / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            if state != "Z" and int(numbers[2]) == driver:
                found[int(folder.name)] = (folder / "cmdline").read_bytes().decode(errors="replace")
    return found


def start(command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def clear(driver: subprocess.Popen[bytes]) -> None:
    """What a dead driver's Ray leaves running for a while."""
    for number in session(driver.pid):
        with suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


def calm(command: list[str]) -> float:
    began = time.perf_counter()
    driver = start(command)
    _, said = driver.communicate()
    assert driver.returncode == 0, said.decode()
    return time.perf_counter() - began


def disturbed(command: list[str], out: Path, blocks: dict[str, int], kills: int, chance: random.Random) -> float:
    """Kill at so many moments, start anew where it was the driver, and go on to the end."""
    moments = sorted(chance.sample(range(1, sum(blocks.values()) - 1), kills))
    victims = ["driver", "worker"] + [chance.choice(["driver", "worker"]) for _ in range(kills - 2)]
    chance.shuffle(victims)
    began, dead = time.perf_counter(), list[subprocess.Popen[bytes]]()
    driver = start(command)
    for moment, victim in zip(moments, victims[:kills], strict=True):
        workers: list[int] = []
        while blocks_done(out, blocks) < moment or not workers:
            assert driver.poll() is None, driver.communicate()[1].decode()
            workers = [number for number, name in session(driver.pid).items() if "MapWorker" in name]
            time.sleep(0.01)
        number = chance.choice(workers) if victim == "worker" else driver.pid
        os.kill(number, signal.SIGKILL)
        seconds, done = time.perf_counter() - began, blocks_done(out, blocks)
        print(f"  kill -9 of a {victim} after {seconds:.0f} s, with {done} blocks done", flush=True)
        if victim == "driver":
            driver.wait()
            dead.append(driver)
            driver = start(command)
    _, said = driver.communicate()
    assert driver.returncode == 0, said.decode()
    seconds = time.perf_counter() - began
    for each in dead:
        clear(each)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="left out: a toy model that is learnt first")
    parser.add_argument("--text", type=Path, help="lines for --model, over and over")
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=5)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if (args.model is None) != (args.text is None):
        parser.error("--model and --text go together")
    chance = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        model = args.model or toy_model(work / "toy.safetensors")
        text = args.text.read_text(encoding="utf-8").splitlines() if args.text else None
        lines = list(islice(cycle(text), args.lines)) if text else toy_lines(args.lines, chance)
        paths = write_shards(work, lines)
        blocks = {path.name: sum(1 for _ in cut(path)) for path in paths}
        print(
            f"{args.lines:,} lines in {FILES} shards and {sum(blocks.values())} blocks, load {os.getloadavg()[0]:.1f}"
        )
        print(f"looking through JSON: {looked_through(work / 'records.jsonl', lines):,.0f} lines/s", flush=True)
        command = [sys.executable, "-m", "sixfold", "translate", *map(str, paths), "--beam", str(args.beam)]
        command += ["--model", str(model), "--workers", "ray", "--output"]
        seconds = calm([*command, str(work / "calm")])
        print(f"undisturbed: {seconds:.1f} s, {args.lines / seconds:,.0f} lines/s", flush=True)
        seconds = disturbed([*command, str(work / "killed")], work / "killed", blocks, args.kills, chance)
        print(f"with {args.kills} kills: {seconds:.1f} s, {args.lines / seconds:,.0f} lines/s")
        same = [(work / "calm" / name).read_bytes() == (work / "killed" / name).read_bytes() for name in blocks]
        count = sum((work / "killed" / name).read_bytes().count(b"\n") for name in blocks)
        print(f"{count:,} lines came out; {sum(same)} of {len(same)} files are the same, byte for byte")
        assert all(same)


if __name__ == "__main__":
    main()
