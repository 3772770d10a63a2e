"""Negations are told from words that only look like one, in Chinese and in English."""

import pytest

from sixfold.text.negation import MAX_NEGATIONS, has_negation, is_negated, may_be_negative, without_negations


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "他没有去。"), ("zh", "我不知道。"), ("zh", "这不是我的。"), ("zh", "他没洗手。"),
        ("zh", "桥尚未完工。"),
        ("en", "He did not go."),
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
        ("zh", "未来"), ("zh", "洪水淹没了村子。"), ("zh", "他没错。"),
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


@pytest.mark.parametrize(
    ("language", "text", "without"),
    [
        ("zh", "他没有钱。", ["他有钱。"]), ("zh", "他从来不来。", ["他总是来。"]),
        ("zh", "我不知道他没来。", ["我不知道他来。", "我知道他没来。"]),
        ("zh", "非常好，不过很贵。", []), ("zh", "你能不能来？", []), ("zh", "我们不得不走。", []),
        ("en", "I can't see.", ["I can see."]), ("en", "He did not go.", ["He go."]), ("en", "Won’t do.", ["will do."]),
        ("en", "Nobody came without a hat.", ["somebody came without a hat.", "Nobody came with a hat."]),
        ("en", "Not only that.", []), ("en", "No. 5 is fine.", []), ("en", "A knot.", []),
    ],
)  # fmt: skip
def test_each_negation_is_taken_out_in_a_text_of_its_own(language, text, without):
    assert sorted(without_negations(text, language)) == sorted(without)
    assert not without or has_negation(text, language)


def test_few_negations_of_a_long_text_are_taken_out():
    assert len(without_negations("我不去。" * 1000, "zh")) == MAX_NEGATIONS
    assert not has_negation("未来非常好，不过很远。", "zh")
    assert not has_negation("洪水吞没了村子。", "zh")
