import gc
import weakref
from itertools import pairwise

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers

from sixfold.config import TokenizerConfig
from sixfold.errors import RequestError
from sixfold.explorer import merges as module
from sixfold.explorer.merges import merge_stages
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer

LINES = ["the black cat saw the lower newest dog", "黑猫看见了那只黑狗。", "newer and lowest, 1234 < 56!"] * 9
WORDS = [*LINES[0].split(), "newlow", "lowner", "thest", "黑狗看见", "了黑猫", "12!", "  "]
ANY = st.text(st.characters(codec="utf-8"), max_size=5)
TEXTS = st.lists(st.one_of(st.sampled_from(WORDS), ANY), max_size=6).map(" ".join)


def learn(algorithm):
    return train_tokenizer(LINES, TokenizerConfig(algorithm=algorithm, vocab=380))


LEARNED = {algorithm: learn(algorithm) for algorithm in ("bpe", "wordpiece", "unigram")}


def last_stages(words):
    return [piece for word in words for piece in word.stages[-1]]


@pytest.mark.parametrize("algorithm", LEARNED)
@settings(max_examples=80)
@given(text=TEXTS)
def test_the_last_stages_are_the_pieces_of_the_text(algorithm, text):
    tokenizer = LEARNED[algorithm]
    assert last_stages(merge_stages(tokenizer, text)) == tokenizer.encode_with_offsets(text).tokens


@settings(max_examples=80)
@given(text=TEXTS)
def test_each_stage_has_one_merge_more(text):
    ranks = module._bpe_of(LEARNED["bpe"]).ranks
    for word in merge_stages(LEARNED["bpe"], text):
        for before, after in zip(word.stages[:-1], word.stages[1:], strict=True):
            index = next(index for index, piece in enumerate(after) if piece != before[index])
            assert after == [*before[:index], before[index] + before[index + 1], *before[index + 2 :]]
            possible = [ranks[pair] for pair in pairwise(before) if pair in ranks]
            assert ranks[before[index], before[index + 1]] == min(possible)


def test_a_word_grows_from_its_characters():
    first, space, last = merge_stages(LEARNED["bpe"], "the 黑猫")
    assert (first.text, first.stages[0], first.stages[-1]) == (" the", [" ", "t", "h", "e"], [" the"])
    assert space.stages == [[" "]]  # a Han character shares no piece with a space
    assert last.stages[0] == ["黑", "猫"]
    assert len(first.stages) == 4


def test_an_unknown_character_begins_as_bytes():
    (word,) = merge_stages(LEARNED["bpe"], "🐱")
    assert word.stages == [[" ", "<0xF0>", "<0x9F>", "<0x90>", "<0xB1>"]]


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_without_merges_there_are_characters_and_pieces(algorithm):
    words = merge_stages(LEARNED[algorithm], "the cat")
    assert [word.stages[0] for word in words] == [list(" the"), list(" cat")]
    assert all(len(word.stages) <= 2 for word in words)


def test_a_foreign_tokeniser_has_its_own_bytes_and_words():
    rust = tokenizers.Tokenizer(models.BPE())
    rust.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    rust.train_from_iterator(LINES, tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False))  # fmt: skip
    tokenizer = Tokenizer.from_json(rust.to_str())
    for text in ("the newest cat", "黑猫 saw 🐱"):
        words = merge_stages(tokenizer, text)
        assert last_stages(words) == tokenizer.encode_with_offsets(text).tokens
        assert max(len(word.stages) for word in words) > 2


def test_a_normalised_character_is_merged_as_what_it_becomes():
    tokenizer = LEARNED["bpe"]
    folding = Tokenizer(tokenizer.rust, "bpe", (), ("貓", "猫"))
    assert last_stages(merge_stages(folding, "黑貓")) == folding.encode_with_offsets("黑貓").tokens
    assert merge_stages(folding, "黑貓") == merge_stages(tokenizer, "黑猫")


def test_the_merges_of_a_tokeniser_are_parsed_once_and_freed_with_it():
    tokenizer = learn("bpe")
    merge_stages(tokenizer, "the")
    parsed, reference = module._bpe_of(tokenizer), weakref.ref(tokenizer)
    merge_stages(tokenizer, "cat")
    assert module._bpe_of(tokenizer) is parsed
    del tokenizer
    gc.collect()
    assert reference() is None


def test_a_long_text_is_refused_and_a_lone_surrogate_is_replaced():
    with pytest.raises(RequestError, match="text: expected at most 1000 characters; got 1001"):
        merge_stages(LEARNED["bpe"], "a" * 1001)
    assert last_stages(merge_stages(LEARNED["bpe"], "a\ud800")) == LEARNED["bpe"].encode_with_offsets("a\ufffd").tokens
    assert merge_stages(LEARNED["bpe"], "") == []
