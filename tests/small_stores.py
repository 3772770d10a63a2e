"""Token stores of made-up pairs."""

from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from sixfold.data.corpus import Corpus
from sixfold.data.tokens import Store

LENGTHS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), min_size=1, max_size=200)


def make_store(lengths, ends=None, weights=None):
    source, target = (np.array(side) for side in zip(*lengths, strict=True))
    ends = ends or [len(lengths)]
    corpora = [
        Corpus(f"c{number}", (Path("a.zh"), Path("a.en")), weight) for number, weight in enumerate(weights or [1.0])
    ]
    ids = np.arange(source.sum()) % 50, np.arange((target - 1).sum()) % 50
    return Store(*ids, np.cumsum(source), np.cumsum(target - 1), np.arange(1, len(lengths) + 1), corpora, ends, 0)
