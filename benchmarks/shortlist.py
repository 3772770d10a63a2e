"""How much of the references a lexical shortlist covers, how many candidates it leaves, and what it costs to build.

References say things that a model would not; what a model writes is covered better. Sentences are batched by length.

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
from sixfold.data.shortlist import Options, Shortlist, build
from sixfold.data.tokens import Part, Store
from sixfold.text.tokenizer import Tokenizer
from sixfold.training.display import Display
from sixfold.training.evaluate import TextSet
from sixfold.training.interrupt import Interrupt
from sixfold.training.prepare import Preparation, find, with_tags

RECIPE = Path(__file__).parents[1] / "recipes" / "zh-en-base.toml"
BATCHES = (1, 8, 32)
Pairs = list[tuple[list[int], list[int]]]


def prepare(args: argparse.Namespace) -> tuple[Store, Tokenizer, tuple[TextSet, ...]]:
    """What `sixfold train --output DIR` reads; made here where it is not there."""
    recipe = recipes.changed(recipes.load(args.recipe), "", args.set)
    preparation = Preparation(find(recipe, args.data), args.work / "data", Display(Interrupt()))
    kept = preparation.clean(recipe.config.data)
    dev = preparation.dev_sets(kept, recipe.config)
    left_out = {source for texts in dev for source in texts.sources}
    settings = with_tags(recipe.config.tokenizer, preparation.sources, recipe.config.data.both_ways)
    tokenizer = preparation.learn_tokenizer(kept, left_out, settings)
    return preparation.tokenize(kept, tokenizer, left_out, recipe.config.data), tokenizer, dev


def turned(store: Store) -> Store:
    """The other direction."""
    return replace(store, readings=tuple(Part(number, back=True) for number in range(len(store.corpora))))


def peak() -> float:
    """GB of this process at its largest."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def coverage(shortlist: Shortlist, pairs: Pairs, eos: int) -> str:
    """Tokens and whole sentences of the references that are candidates, and how many candidates there are."""
    found = [np.isin([*target, eos], shortlist.candidates(source)) for source, target in pairs]
    sources = sorted((source for source, _ in pairs), key=len)
    cells = [f"{np.concatenate(found).mean():8.2%}", f"{np.mean([one.all() for one in found]):8.1%}"]
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
    store, tokenizer, dev = prepare(args)
    eos = tokenizer.specials["eos"]
    sets: dict[str, Pairs] = {}
    for texts in dev:
        sides = [tokenizer.encode_batch(list(side)) for side in (texts.sources, texts.references)]
        sets[texts.name] = list(zip(*reversed(sides) if args.reverse else sides, strict=True))
    if args.reverse:
        store = turned(store)
    print(f"{len(store):,} pairs, {tokenizer.vocab:,} pieces; peak before building {peak():.2f} GB")
    batches = " ".join(f"{f'batch {size}':>8}" for size in BATCHES)
    print(f"wanted set        tokens   whole {batches}")
    for wanted in args.candidates:
        began, before = time.perf_counter(), time.process_time()
        shortlist = build(store, tokenizer.vocab, eos, options=[Options(candidates=wanted)])
        wall, used = time.perf_counter() - began, time.process_time() - before
        for name, pairs in sets.items():
            print(f"{wanted:6} {name:11}{coverage(shortlist, pairs, eos)}")
        size = sum(each.nbytes for each in (shortlist.always, shortlist.begins, shortlist.targets))
        print(f"       {size:,} bytes; {wall:.0f} s ({used:.0f} s of one core), peak {peak():.2f} GB", flush=True)


if __name__ == "__main__":
    main()
