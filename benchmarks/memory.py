"""How long a look into a translation memory of 100,000 sentences takes, beside a look at each of them.

    python benchmarks/memory.py                          # made-up sentences; two languages
    python benchmarks/memory.py --file zh.txt            # the lines of a file, which must be more than the questions
    python benchmarks/memory.py --tmx                    # and how long TMX takes to read

Questions are sentences of the memory with a few words changed, and as many that it has nothing like.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sixfold import TranslationMemory
from sixfold.text.lines import read_lines
from sixfold.translation.memory import LEAST, MOST, NEARLY, distance, units_of
from sixfold.translation.pair_files import Pair
from sixfold.translation.result import Match

WORDS = 20_000  # the n-th has a share like 1/n, as in any language
BRUTE = 10  # questions for which every sentence is looked at


def made_up(count: int, spaced: bool, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    letters = [chr(code) for code in (range(97, 123) if spaced else range(0x4E00, 0x4E00 + 3000))]
    size = WORDS if spaced else len(letters)
    words = ["".join(chance.choices(letters, k=chance.randint(2, 9))) for _ in range(size)] if spaced else letters
    weights = [1 / (rank + 10) for rank in range(size)]
    joint, mean = (" ", 18) if spaced else ("", 25)
    lengths = [max(3, int(chance.gauss(mean, mean / 2))) for _ in range(count)]
    flat = iter(chance.choices(words, weights, k=sum(lengths)))
    return [joint.join(next(flat) for _ in range(length)) + (" ." if spaced else "。") for length in lengths]


def changed(sentence: str, others: list[str], chance: random.Random) -> str:
    """With a word in six, at least one, put in, left out or replaced."""
    spaced = " " in sentence
    units = sentence.split() if spaced else list(sentence)
    for _ in range(max(1, len(units) // 6)):
        at = chance.randrange(len(units))
        other = chance.choice(units_of(chance.choice(others)))
        units[at : at + chance.randint(0, 1)] = [other] if chance.random() < 0.7 else []
        units = units or [other]
    return (" " if spaced else "").join(units)


def brute(memory: TranslationMemory, sentence: str) -> list[Match]:
    """What `fuzzy` finds, by a look at every entry."""
    units = units_of(sentence)
    scored = []
    for number, (source, target) in enumerate(memory.entries):
        others = units_of(source)
        longer = max(len(units), len(others))
        score = 1.0 if source == sentence else min(NEARLY, (longer - distance(units, others)) / longer)
        if score >= LEAST:
            scored.append((-score, number, Match(source, target, score)))
    return [match for _, _, match in sorted(scored)[:MOST]]


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    done = work()
    return done, time.perf_counter() - began


def measure(name: str, sentences: list[str], fresh: list[str], questions: int) -> None:
    chance = random.Random(2)
    known = list(dict.fromkeys(sentences))
    memory = TranslationMemory(tuple(Pair(each, "x") for each in known))
    _, building = timed(lambda: (memory.exact(""), memory.fuzzy("a")))
    print(f"{name}: {len(known):,} sentences, index {building:.2f} s")
    asked = {
        "alike": [changed(chance.choice(known), known, chance) for _ in range(questions)],
        "unlike": fresh[:questions],
    }
    for kind, some in asked.items():
        both = [timed(lambda each=each: memory.fuzzy(each)) for each in some]
        times = sorted(1000 * seconds for _, seconds in both)
        hits = sum(bool(found) for found, _ in both)
        print(f"  {kind}: {statistics.mean(times):.2f} ms, median {times[len(times) // 2]:.2f}, "
              f"99 of 100 in {times[int(len(times) * 0.99)]:.2f}; {hits} of {len(some)} have a match")  # fmt: skip
        slow = [timed(lambda each=each: brute(memory, each)) for each in some[:BRUTE]]
        assert [found for found, _ in slow] == [found for found, _ in both[:BRUTE]]
        print(
            f"  {kind}, a look at each: {1000 * statistics.mean(seconds for _, seconds in slow):.0f} ms, the same found"
        )
    _, seconds = timed(lambda: [memory.exact(each) for each in known[:10_000]])
    print(f"  exact: {1e6 * seconds / len(known[:10_000]):.1f} µs")


def read_time(sentences: list[str]) -> None:
    variant = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
    units = "\n".join(f"<tu>{variant.format('en', each)}{variant.format('zh', each[::-1])}</tu>" for each in sentences)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.tmx"
        path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
        memory, seconds = timed(lambda: TranslationMemory.read(path))
        print(f"TMX of {len(memory.entries):,} units, {path.stat().st_size / 1e6:.0f} MB: {seconds:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    parser.add_argument("--file", type=Path, help="take its lines instead")
    parser.add_argument("--tmx", action="store_true")
    args = parser.parse_args()
    count = args.entries + args.questions
    if args.file:
        lines = list(dict.fromkeys(" ".join(line.split()) for line in read_lines(args.file) if line.strip()))
        random.Random(3).shuffle(lines)
        some = {args.file.name: lines[:count]}
    else:
        some = {"words": made_up(count, True), "characters": made_up(count, False)}
    for name, sentences in some.items():
        measure(name, sentences[args.questions :], sentences[: args.questions], args.questions)
    if args.tmx:
        read_time(next(iter(some.values()))[: args.entries])


if __name__ == "__main__":
    main()
