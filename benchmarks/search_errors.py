"""How often a search misses the model's own best translation, what that costs in BLEU, and how long each search takes.

The reference of each sentence is the best translation that any of the searches finds, a beam of 16 over the whole
vocabulary among them. All translations are scored again over the whole vocabulary, so that scores of searches with and
without a shortlist are comparable. A search error is a translation whose mean log-probability a token is lower than the
reference's by more than 0.001.

    python benchmarks/search_errors.py DATA --work DIR                   # counts; continues where it was stopped
    python benchmarks/search_errors.py DATA --work DIR --time 3          # and milliseconds, on a quiet machine
    python benchmarks/search_errors.py DATA --work DIR --model MODEL     # another model than the one that ships
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from sixfold import Translator
from sixfold.decoding.options import SearchOptions
from sixfold.evaluation.scores import score
from sixfold.translation.direction import Direction
from sixfold.translation.searches import best_hypotheses

SETS = ("flores-dev", "wmt17", "tatoeba", "lctt", "mdn", "written")
DIRECTIONS = (("zh", "en"), ("en", "zh"))
MARGIN = 1e-3  # log-probability a token; less is rounding of int8 sums in other batches
BLOCK = 50  # sentences between two saves


@dataclass(frozen=True)
class Search:
    """The settings of a search. `adaptive`: a wider beam for short and doubtful sentences, as `Translator` has it."""

    beam: int
    patience: float
    shortlist: bool
    adaptive: bool = False

    def options(self, max_length: int) -> SearchOptions:
        return SearchOptions(
            self.beam, max_length=max_length, max_ratio=2.0, ignore_shortlist=not self.shortlist, patience=self.patience
        )


REFERENCE = "beam 16, whole vocabulary"
DEFAULT = "default: beam 4, wider where short or doubtful"
SEARCHES: Mapping[str, Search] = {
    "greedy, shortlist": Search(1, 1.0, True),
    "greedy, whole vocabulary": Search(1, 1.0, False),
    "beam 2, shortlist": Search(2, 2.0, True),
    "beam 4, patience 1, shortlist": Search(4, 1.0, True),
    "beam 4, shortlist": Search(4, 2.0, True),
    "beam 4, whole vocabulary": Search(4, 2.0, False),
    "beam 6, shortlist": Search(6, 2.0, True),
    "beam 8, shortlist": Search(8, 2.0, True),
    "beam 8, whole vocabulary": Search(8, 2.0, False),
    DEFAULT: Search(4, 2.0, True, adaptive=True),
    REFERENCE: Search(16, 2.0, False),
}


class ScoredTarget(NamedTuple):
    """A translation: its tokens, and its mean log-probability a token over the whole vocabulary."""

    tokens: list[int]
    score: float


def search(direction: Direction, lines: Sequence[str], setting: Search) -> list[list[int]]:
    """Return the best tokens for each line, which is translated as one sentence."""
    sources = [
        direction.encoder_input(ids[: direction.max_source_tokens])
        for ids in direction.tokenizer.encode_batch(list(lines))
    ]
    options = setting.options(direction.max_target_tokens)
    if setting.adaptive:
        results = best_hypotheses(direction, sources, options)
    else:
        results = direction.engine.decode(sources, options)
    return [hypotheses[0].tokens for hypotheses in results]


def score_again(direction: Direction, lines: Sequence[str], targets: Sequence[list[int]]) -> Iterator[ScoredTarget]:
    sources = [
        direction.encoder_input(ids[: direction.max_source_tokens])
        for ids in direction.tokenizer.encode_batch(list(lines))
    ]
    for tokens, each in zip(targets, direction.engine.score(sources, targets), strict=True):
        yield ScoredTarget(tokens, sum(each) / len(each))


def results(direction: Direction, lines: Sequence[str], name: str, path: Path) -> list[ScoredTarget]:
    """Return the translations of all lines by one search; those in the file `path` are not searched for again."""
    if SEARCHES[name].adaptive:  # its rules may have changed since then
        path.unlink(missing_ok=True)
    targets = [ScoredTarget(*each) for each in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []
    while len(targets) < len(lines):
        block = lines[len(targets) : len(targets) + BLOCK]
        targets += score_again(direction, block, search(direction, block, SEARCHES[name]))
        path.parent.mkdir(parents=True, exist_ok=True)
        building = path.with_suffix(".building")
        building.write_text(json.dumps(targets), encoding="utf-8")
        building.replace(path)
    return targets[: len(lines)]


def read(path: Path, lines: int) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1][:lines]


def errors(targets: Sequence[ScoredTarget], best: Sequence[float]) -> list[float]:
    """Return by how much the score of each search error is below the best score."""
    gaps = [top - each.score for each, top in zip(targets, best, strict=True)]
    return [gap for gap in gaps if gap > MARGIN]


def milliseconds(direction: Direction, lines: Sequence[str], names: Sequence[str], rounds: int) -> dict[str, Any]:
    """Return the median milliseconds of a sentence, alone and in bulk; the searches alternate in every round."""
    times: dict[str, dict[str, list[float]]] = {name: {"alone": [], "bulk": []} for name in names}
    sample = lines[:: max(1, len(lines) // 20)]
    for _ in range(rounds):
        for name in names:
            start = time.perf_counter()
            for line in sample:
                search(direction, [line], SEARCHES[name])
            middle = time.perf_counter()
            search(direction, lines, SEARCHES[name])
            times[name]["alone"].append(1000 * (middle - start) / len(sample))
            times[name]["bulk"].append(1000 * (time.perf_counter() - middle) / len(lines))
    return {name: {mode: statistics.median(values) for mode, values in modes.items()} for name, modes in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True, help="the folder that keeps translations between runs")
    parser.add_argument("--model", type=Path, help="default: the model of the package")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--searches", nargs="*", default=list(SEARCHES), choices=list(SEARCHES))
    parser.add_argument("--lines", type=int, default=300, help="of each set and direction")
    parser.add_argument("--time", type=int, default=0, metavar="ROUNDS", help="measure milliseconds on the first set")
    args = parser.parse_args()
    with Translator(args.model, "cpu") as translator:
        for source, target in DIRECTIONS:
            direction = translator.direction("", source, target)
            folder = args.work / str(direction.file.checksum).replace(":", "-")
            print(f"\n{source}→{target}: search errors, mean shortfall of an error, BLEU by set")
            searches = list(dict.fromkeys([*args.searches, REFERENCE]))
            table: dict[str, list[tuple[float, float, float]]] = {name: [] for name in searches}
            for each in args.sets:
                lines, references = (
                    read(args.data / "dev" / f"{each}.{side}", args.lines) for side in (source, target)
                )
                targets_by_search = {
                    name: results(direction, lines, name, folder / f"{each}.{source}-{target}.{name}.json")
                    for name in searches
                }
                best = [max(each.score for each in line) for line in zip(*targets_by_search.values(), strict=True)]
                for name, targets in targets_by_search.items():
                    missed = errors(targets, best)
                    texts = [direction.decode_target(each.tokens) for each in targets]
                    bleu = score(texts, references, target).bleu
                    mean = statistics.fmean(missed) if missed else 0.0
                    table[name].append((len(missed) / len(lines), mean, bleu))
            for name, cells in table.items():
                share, mean, bleu = (statistics.fmean(column) for column in zip(*cells, strict=True))
                by_set = "  ".join(f"{cell[0]:5.1%} {cell[2]:5.2f}" for cell in cells)
                print(f"{name:48} {share:6.1%} {mean:6.3f} {bleu:6.2f}   {by_set}", flush=True)
            if args.time:
                lines = read(args.data / "dev" / f"{args.sets[0]}.{source}", 100)
                for name, medians in milliseconds(direction, lines, args.searches, args.time).items():
                    print(f"{name:48} {medians['alone']:7.1f} ms alone {medians['bulk']:7.1f} ms in bulk", flush=True)


if __name__ == "__main__":
    main()
