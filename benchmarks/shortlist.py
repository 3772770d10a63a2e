"""How much of the references a lexical shortlist covers, how many candidates it has, and what it costs to build.

Translations by a model are covered better than references are. Sentences are batched by length.

    python benchmarks/shortlist.py DATA --work DIR --set tokenizer.vocab=16000     # zh→en; --reverse: en→zh
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np

from sixfold import recipe as recipes
from sixfold.data.examples import ExampleSet, Part
from sixfold.data.shortlist import Options, Shortlist, build
from sixfold.tasks.translation import BACKWARD, TranslationTask
from sixfold.tasks.translation_validation import DevSet
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.corpora import DevSplit, find, read_set
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.preparation import Preparation
from sixfold.training.recipe_models import with_tags

RECIPE = Path(__file__).parents[1] / "recipes" / "zh-en-base.toml"
BATCHES = (1, 8, 32)
Pairs = list[tuple[list[int], list[int]]]


def prepare(args: argparse.Namespace) -> tuple[ExampleSet, Tokenizer, tuple[DevSet, ...]]:
    """Return the pairs, the tokeniser and the dev sets of `sixfold train --output DIR`; what is missing is made."""
    recipe = recipes.changed(recipes.load(args.recipe), "", args.set)
    config, sources = recipe.config, find(recipe, args.data)
    task = TranslationTask(sources.languages, config.data)
    preparation = Preparation(sources.train, task, args.work / "data", Display(Interrupt()))
    cleaned = preparation.clean(config.data.dev_pairs)
    dev = tuple(read_set(corpus, sources.languages) for corpus in sources.dev)
    dev = dev or DevSplit(preparation, cleaned, config, sources.languages).sets(of_each_corpus=False)
    excluded = {source for dev_set in dev for source in dev_set.sources}
    settings = with_tags(config.tokenizer, sources, config.data.both_ways)
    tokenizer, _ = preparation.learn_tokenizer(cleaned, excluded, settings, ("", ""))
    tokenizers = dict.fromkeys(task.columns, tokenizer)
    store = preparation.tokenize(
        cleaned,
        tokenizers,
        excluded,
        task.columns[:1],
        config.data.max_tokens,
        has_dev_files=bool(sources.dev),
    )
    return ExampleSet.of_store(store, added=(1, 1)), tokenizer, dev


def reversed_pairs(pairs: ExampleSet) -> ExampleSet:
    """Return the same pairs from target to source."""
    return replace(pairs, parts=tuple(Part(part.corpus, BACKWARD, part.prefixes) for part in pairs.parts))


def peak() -> float:
    """Return the peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def coverage(shortlist: Shortlist, pairs: Pairs, eos: int) -> str:
    """Return the shares of tokens and of whole sentences that are covered, and the candidates of each batch size."""
    is_covered = [np.isin([*target, eos], shortlist.candidates(source)) for source, target in pairs]
    sources = sorted((source for source, _ in pairs), key=len)
    cells = [
        f"{np.concatenate(is_covered).mean():8.2%}",
        f"{np.mean([sentence.all() for sentence in is_covered]):8.1%}",
    ]
    for size in BATCHES:
        batches = [list(chain(*sources[begin : begin + size])) for begin in range(0, len(sources), size)]
        cells.append(f"{np.mean([len(shortlist.candidates(batch)) for batch in batches]):8,.0f}")
    return " ".join(cells)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--set", action="append", default=[], help="as for sixfold train")
    parser.add_argument("--reverse", action="store_true", help="from the target language to the source language")
    parser.add_argument("--candidates", type=int, nargs="+", default=[200, 300, 400, 500, 700, 1000])
    args = parser.parse_args()
    examples, tokenizer, dev = prepare(args)
    eos = tokenizer.specials["eos"]
    sets: dict[str, Pairs] = {}
    for dev_set in dev:
        sides = [tokenizer.encode_batch(list(side)) for side in (dev_set.sources, dev_set.references)]
        sets[dev_set.name] = list(zip(*reversed(sides) if args.reverse else sides, strict=True))
    if args.reverse:
        examples = reversed_pairs(examples)
    print(f"{len(examples):,} pairs, {tokenizer.vocab:,} pieces; peak before building {peak():.2f} GB")
    batches = " ".join(f"{f'batch {size}':>8}" for size in BATCHES)
    print(f"mean   set        tokens   whole {batches}")
    for candidates in args.candidates:
        start, cpu_start = time.perf_counter(), time.process_time()
        shortlist = build(examples, tokenizer.vocab, eos, options=[Options(candidates=candidates)])
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        for name, pairs in sets.items():
            print(f"{candidates:6} {name:11}{coverage(shortlist, pairs, eos)}")
        size = sum(array.nbytes for array in (shortlist.always, shortlist.begins, shortlist.targets))
        print(f"       {size:,} bytes; {wall:.0f} s ({cpu:.0f} s of one core), peak {peak():.2f} GB", flush=True)


if __name__ == "__main__":
    main()
