"""How long a fuzzy search in a translation memory of 100,000 sentences takes, beside a comparison with each of them.

    python benchmarks/memory.py                          # made-up sentences; two languages
    python benchmarks/memory.py --file zh.txt            # the lines of a file, which needs more lines than --questions
    python benchmarks/memory.py --tmx                    # and how long TMX takes to read

Questions are sentences of the memory with a few words changed, and as many that are similar to none.
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
from sixfold.text.encodings import read_lines
from sixfold.translation.memory import MAX_INEXACT_SCORE, MAX_MATCHES, MIN_SCORE, edit_distance, split_words
from sixfold.translation.pair_files import Pair
from sixfold.translation.result import Match

VOCABULARY = 20_000  # words; the frequency of the n-th is about 1/n, as in any language
EXHAUSTIVE_QUESTIONS = 10  # questions that are compared with every sentence


def random_sentences(count: int, spaced: bool, seed: int = 1) -> list[str]:
    rng = random.Random(seed)
    letters = [chr(code) for code in (range(97, 123) if spaced else range(0x4E00, 0x4E00 + 3000))]
    size = VOCABULARY if spaced else len(letters)
    words = ["".join(rng.choices(letters, k=rng.randint(2, 9))) for _ in range(size)] if spaced else letters
    weights = [1 / (rank + 10) for rank in range(size)]
    joint, mean = (" ", 18) if spaced else ("", 25)
    lengths = [max(3, int(rng.gauss(mean, mean / 2))) for _ in range(count)]
    flat = iter(rng.choices(words, weights, k=sum(lengths)))
    return [joint.join(next(flat) for _ in range(length)) + (" ." if spaced else "。") for length in lengths]


def change_words(sentence: str, others: list[str], rng: random.Random) -> str:
    """Return a sentence with one word in six, and at least one, inserted, deleted or replaced."""
    spaced = " " in sentence
    units = sentence.split() if spaced else list(sentence)
    for _ in range(max(1, len(units) // 6)):
        index = rng.randrange(len(units))
        word = rng.choice(split_words(rng.choice(others)))
        units[index : index + rng.randint(0, 1)] = [word] if rng.random() < 0.7 else []
        units = units or [word]
    return (" " if spaced else "").join(units)


def exhaustive_search(memory: TranslationMemory, sentence: str) -> list[Match]:
    """Return what `fuzzy` returns, by a comparison with every entry."""
    words = split_words(sentence)
    scored = []
    for number, (source, target) in enumerate(memory.entries):
        source_words = split_words(source)
        longer = max(len(words), len(source_words))
        similarity = (longer - edit_distance(words, source_words)) / longer
        score = 1.0 if source == sentence else min(MAX_INEXACT_SCORE, similarity)
        if score >= MIN_SCORE:
            scored.append((-score, number, Match(source, target, score)))
    return [match for _, _, match in sorted(scored)[:MAX_MATCHES]]


def time_call(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    result = work()
    return result, time.perf_counter() - start


def measure(name: str, sentences: list[str], fresh: list[str], questions: int) -> None:
    rng = random.Random(2)
    distinct = list(dict.fromkeys(sentences))
    memory = TranslationMemory(tuple(Pair(each, "x") for each in distinct))
    _, building = time_call(lambda: (memory.exact(""), memory.fuzzy("a")))
    print(f"{name}: {len(distinct):,} sentences, index {building:.2f} s")
    questions_of_kind = {
        "similar": [change_words(rng.choice(distinct), distinct, rng) for _ in range(questions)],
        "different": fresh[:questions],
    }
    for kind, texts in questions_of_kind.items():
        fast = [time_call(lambda text=text: memory.fuzzy(text)) for text in texts]
        times = sorted(1000 * seconds for _, seconds in fast)
        hits = sum(bool(matches) for matches, _ in fast)
        print(f"  {kind}: {statistics.mean(times):.2f} ms, median {times[len(times) // 2]:.2f}, "
              f"99 of 100 in {times[int(len(times) * 0.99)]:.2f}; {hits} of {len(texts)} have a match")  # fmt: skip
        slow = [time_call(lambda text=text: exhaustive_search(memory, text)) for text in texts[:EXHAUSTIVE_QUESTIONS]]
        assert [matches for matches, _ in slow] == [matches for matches, _ in fast[:EXHAUSTIVE_QUESTIONS]]
        print(
            f"  {kind}, compared with all: {1000 * statistics.mean(seconds for _, seconds in slow):.0f} ms, same found"
        )
    _, seconds = time_call(lambda: [memory.exact(each) for each in distinct[:10_000]])
    print(f"  exact: {1e6 * seconds / len(distinct[:10_000]):.1f} µs")


def read_time(sentences: list[str]) -> None:
    variant = '<tuv xml:lang="{}"><seg>{}</seg></tuv>'
    units = "\n".join(f"<tu>{variant.format('en', each)}{variant.format('zh', each[::-1])}</tu>" for each in sentences)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.tmx"
        path.write_text(f'<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>', encoding="utf-8")
        memory, seconds = time_call(lambda: TranslationMemory.read(path))
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
        texts_by_name = {args.file.name: lines[:count]}
    else:
        texts_by_name = {"words": random_sentences(count, True), "characters": random_sentences(count, False)}
    for name, sentences in texts_by_name.items():
        measure(name, sentences[args.questions :], sentences[: args.questions], args.questions)
    if args.tmx:
        read_time(next(iter(texts_by_name.values()))[: args.entries])


if __name__ == "__main__":
    main()
