import json

import numpy as np
import pytest

from sixfold.errors import RequestError
from sixfold.explorer.masks import batch_masks


def test_short_texts_are_padded_and_padding_is_masked(tokenizer):
    masks = batch_masks(tokenizer, ["the dog", "a cat saw the black dog", ""], [7], [2])
    ids = [tokenizer.encode(text) for text in ("the dog", "a cat saw the black dog", "")]
    length = len(ids[1]) + 2
    for row, pieces, real in zip(masks.padding, masks.pieces, ids, strict=True):
        assert pieces.ids == [7, *real, 2, *[0] * (length - len(real) - 2)]
        assert row.tolist() == [True] * (len(real) + 2) + [False] * (length - len(real) - 2)
        assert len(pieces.texts) == length
    assert masks.pieces[2].texts[1:3] == ["<eos>", "<pad>"]


def test_the_combined_mask_is_the_causal_and_the_padding_mask(tokenizer):
    masks = batch_masks(tokenizer, ["the dog", "a cat"], after=[2])
    length = len(masks.causal)
    for row, query, key in np.ndindex(2, length, length):
        assert masks.causal[query, key] == (key <= query)
        assert masks.combined[row, query, key] == (masks.padding[row, key] and key <= query)


def test_masks_can_be_written_as_json(tokenizer):
    parsed = json.loads(json.dumps(batch_masks(tokenizer, ["the dog", "a"], after=[2]).to_dict()))
    assert parsed["padding"][1][-1] is False
    assert np.shape(parsed["both"]) == (2, len(parsed["causal"]), len(parsed["causal"]))


def test_a_batch_of_nothing_is_refused(tokenizer):
    with pytest.raises(RequestError, match="texts: expected at least one"):
        batch_masks(tokenizer, [], after=[2])
