"""Texts become sentences that fit the model, and their layout stays whatever the translations are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.config import TokenizerConfig
from sixfold.text.learn import train_tokenizer
from sixfold.translation.prepare import has_words, replace_surrogates, split_texts

TOKENIZER = train_tokenizer(["the cat sat on the mat", "我爱猫"] * 9, TokenizerConfig(vocab=300))
TEXTS = st.text(st.sampled_from("a我1 .。!\n\r\t\u2028\x0b🙂\u0301,，<>/"), max_size=80)


def prepare_one(text, max_tokens=50, splits=True):
    prepared = split_texts([text], TOKENIZER, max_tokens, splits)
    return prepared.layouts[0], {text: sentence.ids for text, sentence in prepared.sentences.items()}


@given(st.lists(TEXTS, max_size=4), st.booleans(), st.integers(4, 50))
def test_nothing_is_lost_and_every_sentence_fits(texts, splits, max_tokens):
    prepared = split_texts(texts, TOKENIZER, max_tokens, splits)
    for text, layout in zip(texts, prepared.layouts, strict=True):
        assert layout.text == text
        assert "".join(line.before + "".join(map("".join, line.sentences)) for line in layout.lines) == text
        assert all(prepared.sentences[text].ids == tuple(TOKENIZER.encode(text)) for text in layout.sentences())
        assert all(sentence == sentence.strip() for sentence in layout.sentences())
    assert set(prepared.sentences) >= {sentence for layout in prepared.layouts for sentence in layout.sentences()}
    assert all(
        len(prepared.sentences[sentence].ids) <= max_tokens or len(sentence) == 1
        for layout in prepared.layouts
        for sentence in layout.sentences()
    )


def test_sentences_are_filled_in_their_order():
    layout, _ = prepare_one(" The cat sat.  The cat sat.\n12.\nThe mat  \r\n")
    assert layout.sentences() == ["The cat sat.", "The cat sat.", "The mat"]
    assert layout.fill(["One.", "Two.", "Three"], spaced=True) == " One.  Two.\n12.\nThree  \r\n"


def test_a_line_is_whole_where_nothing_is_split():
    layout, _ = prepare_one("  The cat. The mat.\t\n我爱猫。我爱猫。", splits=False)
    assert layout.sentences() == ["The cat. The mat.", "我爱猫。我爱猫。"]


def test_a_tag_over_several_lines_is_in_one_sentence():
    text = "Read <a\n  href='x'\n  class='y'>it</a> now.\nGo."
    layout, _ = prepare_one(text, 100)
    assert layout.sentences() == ["Read <a\n  href='x'\n  class='y'>it</a> now.", "Go."]
    assert layout.fill(layout.sentences(), True) == text
    layout, _ = prepare_one("a < b\nc > d <\n\n", 100)
    assert layout.sentences() == ["a < b", "c > d <"]


def test_long_sentences_are_cut_and_the_white_space_between_the_pieces_stays():
    text = "cat" + " " * 200 + "mat, " + "the cat sat on the mat " * 20 + "\n我爱猫"
    layout, ids = prepare_one(text, max_tokens=12)
    assert [notice.kind for notice in layout.notices] == ["cut"]
    assert max(len(ids[sentence]) for sentence in layout.sentences()) <= 12
    assert layout.fill(layout.sentences(), spaced=True) == text
    assert prepare_one("我爱猫")[0].notices == []


def test_only_the_text_that_needs_it_has_a_notice_about_a_cut():
    prepared = split_texts(["cat", "the cat sat on the mat " * 20], TOKENIZER, 12)
    assert [len(layout.notices) for layout in prepared.layouts] == [0, 1]


@pytest.mark.parametrize(("text", "expected"), [("1,5 € …", False), ("🙂①Ⅷ\ufffd", False), ("1a", True), ("猫", True)])
def test_letters_make_words(text, expected):
    assert has_words(text) is expected


def test_surrogates_become_characters_or_a_sign_for_what_is_missing():
    assert replace_surrogates("猫\ud83d\ude00\ud83d狗\ude00") == "猫😀\ufffd狗\ufffd"
    assert replace_surrogates("猫😀") == "猫😀"
