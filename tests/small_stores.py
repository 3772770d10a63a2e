"""Token stores and example sets of made-up pairs."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from sixfold.data.corpus import Corpus
from sixfold.data.examples import ExampleSet, Part
from sixfold.data.store import Column, TokenStore

# Of source and target, <eos> included.
LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def make_store(lengths, ends=None, weights=None, corpora=None):
    """Return a store of pairs with these lengths. The lengths include <eos>, which the store does not hold."""
    sides = {
        name: np.array(side) - 1 for name, side in zip(("source", "target"), zip(*lengths, strict=True), strict=True)
    }
    columns = {name: Column(np.arange(side.sum()) % 50, np.cumsum(side)) for name, side in sides.items()}
    corpora = corpora or [
        Corpus(f"c{number}", (Path("a.zh"), Path("a.en")), weight) for number, weight in enumerate(weights or [1.0])
    ]
    return TokenStore(columns, np.arange(1, len(lengths) + 1), corpora, ends or [len(lengths)])


def make_examples(lengths, ends=None, weights=None):
    """Return all pairs of a store made by `make_store`, from source to target."""
    return ExampleSet.of_store(make_store(lengths, ends, weights), (1, 1))


def make_documents(lengths, row_tokens, weights=(1.0,), ends=None, vocab=1004):
    """Return documents of these lengths, whose tokens are numbered on from 4, and begin again below `vocab`."""
    ids = 4 + np.arange(sum(lengths)) % (vocab - 4)
    corpora = [Corpus(f"c{number}", (Path("a.txt"),), weight) for number, weight in enumerate(weights)]
    store = TokenStore(
        {"text": Column(ids, np.cumsum(lengths))}, np.arange(len(lengths)), corpora, ends or [len(lengths)]
    )
    parts = tuple(Part(number, ("text",), ((),)) for number in range(len(corpora)))
    return ExampleSet(store, ("text",), parts, (1,), row_tokens)
