import json

import numpy as np
import pytest

from sixfold.errors import RequestError
from sixfold.explorer.masks import batch_masks


def test_short_texts_are_filled_up_and_the_filling_is_hidden(tokenizer):
    found = batch_masks(tokenizer, ["the dog", "a cat saw the black dog", ""], [7], eos=2)
    ids = [tokenizer.encode(text) for text in ("the dog", "a cat saw the black dog", "")]
    length = len(ids[1]) + 2
    for row, pieces, real in zip(found.padding, found.pieces, ids, strict=True):
        assert pieces.ids == [7, *real, 2, *[0] * (length - len(real) - 2)]
        assert row.tolist() == [True] * (len(real) + 2) + [False] * (length - len(real) - 2)
        assert len(pieces.texts) == length
    assert found.pieces[2].texts[1:3] == ["<eos>", "<pad>"]


def test_both_masks_are_one_and_the_other(tokenizer):
    found = batch_masks(tokenizer, ["the dog", "a cat"], eos=2)
    length = len(found.causal)
    for row, query, key in np.ndindex(2, length, length):
        assert found.causal[query, key] == (key <= query)
        assert found.combined[row, query, key] == (found.padding[row, key] and key <= query)


def test_they_are_ready_for_json(tokenizer):
    told = json.loads(json.dumps(batch_masks(tokenizer, ["the dog", "a"], eos=2).to_dict()))
    assert told["padding"][1][-1] is False
    assert np.shape(told["both"]) == (2, len(told["causal"]), len(told["causal"]))


def test_a_batch_of_nothing_is_refused(tokenizer):
    with pytest.raises(RequestError, match="texts: expected at least one"):
        batch_masks(tokenizer, [], eos=2)
