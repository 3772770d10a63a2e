"""How well and how fast text is split into sentences, beside pysbd and sentencex where they are installed.

Lines of dev sets are joined by fives, Chinese without and English with a space, and split again. A boundary is right
where two lines were joined. Many lines hold several sentences, and a boundary inside a line counts as wrong, so no
splitter reaches a precision of 1; compare the F1 on the same text.

    python benchmarks/sentences.py DATA
    python benchmarks/sentences.py --hard      # the share of 300 hand-written hard cases that are split as marked
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

from sixfold.text.encodings import read_lines
from sixfold.text.sentences import split_sentences

SETS = ("flores-dev", "wmt17", "tatoeba")
GROUP = 5  # lines
ROUNDS = 3
HARD = Path(__file__).parents[1] / "tests" / "text" / "hard_sentences.tsv"
Splitter = Callable[[str], list[str]]


def splitters(language: str) -> Iterator[tuple[str, Splitter]]:
    yield "sixfold", lambda text: [sentence.text for sentence in split_sentences(text).sentences]
    if find_spec("pysbd"):
        yield "pysbd", import_module("pysbd").Segmenter(language=language, clean=False).segment
    if find_spec("sentencex"):
        segment = import_module("sentencex").segment
        yield "sentencex", lambda text: list(segment(language, text))


def ends(sentences: list[str]) -> set[int]:
    """Return where all but the last sentence end, counted without white space, which splitters may drop."""
    return set(accumulate(len("".join(sentence.split())) for sentence in sentences[:-1] if sentence.strip()))


def measure(splitter: Splitter, groups: list[list[str]], separator: str) -> dict[str, float]:
    texts = [separator.join(group) for group in groups]
    seconds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        split_texts = [splitter(text) for text in texts]
        seconds.append(time.perf_counter() - start)
    pairs = [(ends(group), ends(sentences)) for group, sentences in zip(groups, split_texts, strict=True)]
    correct, expected, predicted = (
        sum(map(len, sets)) for sets in zip(*((t & p, t, p) for t, p in pairs), strict=True)
    )
    precision, recall = correct / max(predicted, 1), correct / expected
    return {
        "precision": precision,
        "recall": recall,
        "f1": 2 * precision * recall / max(precision + recall, 1e-9),
        "speed": sum(len(text.encode()) for text in texts) / 1e6 / min(seconds),
    }


def measure_hard_cases() -> None:
    rows = [line.split("\t") for line in read_lines(HARD)]
    for language in ("en", "zh"):
        cases = [text.split("‖") for code, text in rows if code == language]
        for name, splitter in splitters(language):
            correct = sum(ends(splitter("".join(parts))) == ends(parts) for parts in cases)
            print(f"{language} {name:10} {correct} of {len(cases)} {correct / len(cases):6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?", help="a folder with dev/flores-dev.zh and the like")
    parser.add_argument("--hard", action="store_true")
    args = parser.parse_args()
    if args.hard:
        measure_hard_cases()
        return
    folder = args.data / "dev"
    print("| text | splitter | precision | recall | F1 | MB/s |\n|---|---|---|---|---|---|")
    for name in SETS:
        for language, separator in (("zh", ""), ("en", " ")):
            lines = [line.strip() for line in read_lines(folder / f"{name}.{language}") if line.strip()]
            groups = [lines[start : start + GROUP] for start in range(0, len(lines), GROUP)]
            for splitter_name, splitter in splitters(language):
                m = measure(splitter, groups, separator)
                quality = " | ".join(f"{m[key]:.3f}" for key in ("precision", "recall", "f1"))
                print(f"| {name}.{language} | {splitter_name} | {quality} | {m['speed']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
