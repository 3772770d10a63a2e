"""Negations are told from words that only look like one, in Chinese and in English."""

import pytest

from sixfold.text.negation import is_negated, may_be_negative


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "他没有去。"), ("zh", "我不知道。"), ("zh", "这不是我的。"), ("en", "He did not go."),
        ("en", "I don't know."), ("en", "There is no bread."), ("en", "I have never seen it."), ("en", "I'm not sure"),
    ],
)  # fmt: skip
def test_plain_negations_are_found(language, text):
    assert is_negated(text, language)
    assert may_be_negative(text, language)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "你是不是病了"), ("zh", "非常好，不过很贵。"), ("zh", "我们不得不走。"), ("zh", "有没有面包？"),
        ("zh", "未来"),
        ("en", "Why don't you come?"), ("en", "Isn't it nice?"), ("en", "He can't help laughing."), ("en", "no doubt"),
        ("en", "Not only that."), ("en", "It is a knot."),
    ],
)  # fmt: skip
def test_questions_and_turns_of_phrase_are_no_negations(language, text):
    assert not is_negated(text, language)


def test_what_renders_a_negation_is_known():
    assert may_be_negative("It is impossible.", "en")
    assert may_be_negative("He hardly spoke.", "en")
    assert may_be_negative("禁止入内", "zh")
    assert not may_be_negative("He spoke.", "en")
    assert not may_be_negative("他说话了。", "zh")
