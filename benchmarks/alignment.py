"""Alignment error rate of several methods to align words, on pairs marked by hand, and the CPU time of each.

    python benchmarks/alignment.py [--model MODEL] [--pairs tests/translation/alignments.tsv]

The heads of the model's card were measured on other sentences (`sixfold pack --align`), without any marked link.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from sixfold import modelfile
from sixfold.alignment_heads import CARD_KEY, AligningHeads, align, aligning_heads, word_weights
from sixfold.engines.cpu import CpuEngine
from sixfold.evaluation.word_alignment import AnnotatedPair, alignment_error_rate, read_annotated_pairs
from sixfold.explorer.influence import influence
from sixfold.explorer.trace import Trace, trace_pair
from sixfold.modelfile import ModelFile
from sixfold.translation.loading import shipped_models
from sixfold.translation.translator import Translator

PAIRS = Path(__file__).parents[1] / "tests" / "translation" / "alignments.tsv"
Weights = Callable[[Trace], np.ndarray]  # target pieces × source pieces, without tags and <eos>


def attention(heads: AligningHeads, normalises_columns: bool) -> Weights:
    def weights(trace: Trace) -> np.ndarray:
        shares, _, source = trace.alignment(heads)
        steps = trace.attention("cross", heads.layer)[list(heads.heads)].mean(axis=0)
        return shares if normalises_columns else heads.token_weights(steps)[:, -len(source) - 1 : -1]

    return weights


def by_influence(trace: Trace) -> np.ndarray:
    _, _, source = trace.alignment()
    return np.maximum(influence(trace)[:-1, -len(source) - 1 : -1], 0)


def is_text(trace: Trace) -> list[bool]:
    """Return which source pieces have text other than spaces."""
    return [start < end for start, end in trace.alignment()[2].spans]


def links(trace: Trace, marked: AnnotatedPair, weights: np.ndarray) -> frozenset[tuple[int, int]]:
    _, target, source = trace.alignment()
    words = word_weights(weights, target.words, source.words)
    spans = [[(side.spans[word[0]][0], side.spans[word[-1]][1]) for word in side.words] for side in (target, source)]
    return marked.links(zip(spans[0], (spans[1][index] for index in words.argmax(axis=1)), strict=True))


def measure_costs(file: ModelFile, translator: Translator, marked: Sequence[AnnotatedPair]) -> dict[str, float]:
    """Return the CPU seconds of a sentence by each method, the best of three rounds with all methods."""
    plain = {name: value for name, value in file.card.items() if name != CARD_KEY}
    mean_of_heads = CpuEngine(replace(file, card=plain, checksum=""), threads=1)
    directions = [translator.direction(each.source, *each.languages) for each in marked]
    engine = directions[0].engine
    sources = [
        direction.encoder_input(direction.tokenizer.encode(each.source))
        for direction, each in zip(directions, marked, strict=True)
    ]
    targets = [direction.encode_target(each.target) for direction, each in zip(directions, marked, strict=True)]
    pairs = list(zip(sources, targets, strict=True))
    methods: dict[str, Callable[[], object]] = {
        "aligned alone": lambda: [engine.align([source], [target]) for source, target in pairs],
        "aligned by the mean of heads, alone": lambda: [
            mean_of_heads.align([source], [target]) for source, target in pairs
        ],
        "aligned with the others": lambda: engine.align(sources, targets),
        "translated alone": lambda: [engine.decode([source]) for source in sources],
    }
    costs = dict.fromkeys(methods, math.inf)
    for _ in range(3):
        for name, method in methods.items():
            start = time.process_time()
            method()
            costs[name] = min(costs[name], (time.process_time() - start) / len(marked))
    return costs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="default: the model of the package")
    parser.add_argument("--pairs", type=Path, default=PAIRS)
    args = parser.parse_args()
    file, marked = modelfile.load(args.model or shipped_models()[0]), read_annotated_pairs(args.pairs)
    config = file.config.model
    chosen, last = aligning_heads(file.card, config), aligning_heads({}, config)
    print(f"{len(marked)} pairs; heads of the card: {chosen}" if CARD_KEY in file.card else "no heads on the card")
    methods: dict[str, Weights] = {
        "mean of all heads, last layer": attention(last, False),
        "the same, at the step that reads the token": attention(replace(last, reads_token=True), False),
        "the same as the first, with shares of columns": attention(last, True),
        "influence": by_influence,
        "influence, with shares of columns": lambda trace: align(by_influence(trace), is_text(trace)),
        "heads of the card": attention(chosen, False),
        "heads of the card, at the other step": attention(replace(chosen, reads_token=not chosen.reads_token), True),
        "heads of the card, with shares of columns": attention(chosen, True),
    }
    links_by_method: dict[str, list[frozenset[tuple[int, int]]]] = {name: [] for name in methods}
    with Translator(file, "cpu", threads=1) as translator:
        for each in marked:
            trace = trace_pair(translator.direction(each.source, *each.languages), each.source, each.target)
            for name, weights in methods.items():
                links_by_method[name].append(links(trace, each, weights(trace)))
        details = []
        for each in marked:
            translation = translator.score(each.source, each.target, *each.languages)
            details.append(each.links((link.target, link.source) for link in translation.alignment))
        links_by_method["details of the int8 engine"] = details
        costs = measure_costs(file, translator, marked)
    directions = sorted({each.languages for each in marked})
    print(f"| | all | {' | '.join('→'.join(pair) for pair in directions)} |\n|{'---|' * (2 + len(directions))}")
    for name, linked in links_by_method.items():
        rates = [alignment_error_rate(zip(marked, linked, strict=True))]
        for pair in directions:
            rates.append(alignment_error_rate(e for e in zip(marked, linked, strict=True) if e[0].languages == pair))
        print(f"| {name} | {' | '.join(f'{100 * rate:.1f}' for rate in rates)} |")
    print("CPU time of a sentence:", ", ".join(f"{name} {1000 * cost:.1f} ms" for name, cost in costs.items()))


if __name__ == "__main__":
    main()
