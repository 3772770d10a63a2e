"""The benchmarks with accepted answers accept what they say, and their items are whole and sound."""

import lzma
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its `training` hides nothing

import everyday
import names
import number_values
from answers import (
    DIRECTIONS,
    SEPARATOR,
    Count,
    Item,
    Result,
    Table,
    expression,
    is_accepted,
    lines_in_train,
    normal_form,
    read_items,
    stands_in,
)

REQUIRED = (
    "我爱机器学习", "我爱机器学习。", "机器学习很有趣", "机器学习很有趣。", "hello", "How are you?", "I LOVE YOU",
    "习近平", "宫保鸡丁",
    *(f"The animal didn't cross the street because it was too {word}{stop}"
      for word in ("tired", "wide") for stop in ("", ".")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Good-bye!", "goodbye"),
        ("ＯＫ", "ok"),
        ("I don’t know the answer.", "I do not know answer"),
        ("It's 7.2 %", "it is 7.2%"),
        ("1,250,000", "1250000"),
        ("您在哪儿？", "你在哪里"),
        ("Café 😊", "cafe"),
    ],
)
def test_the_normal_form_ignores_how_a_text_is_written(text, same):
    assert normal_form(text) == normal_form(same)


@pytest.mark.parametrize("expected", ["7.2", "72", "he is", "she is", "我", "你", "it is not"])
def test_the_normal_form_keeps_words_and_numbers_apart(expected):
    texts = {"7.2", "72", "he is", "she is", "我", "你", "it is not"}
    assert [text for text in texts if normal_form(text) == normal_form(expected)] == [expected]


def test_a_pattern_accepts_its_alternatives_and_optional_parts_and_nothing_else():
    accepted = "how are you [doing] [today] / (nice|good) to meet you"
    assert is_accepted("How are you?", accepted)
    assert is_accepted("How are you doing today?", accepted)
    assert is_accepted("Good to meet you!", accepted)
    assert not is_accepted("How are you doing tomorrow?", accepted)
    assert not is_accepted("To meet you", accepted)
    assert not is_accepted("", accepted)


@pytest.mark.parametrize("pattern", ["(a|b", "a)", "a|b", "[a)", "(a]"])
def test_a_pattern_that_is_not_closed_is_refused(pattern):
    with pytest.raises(ValueError, match=re.escape(pattern)):
        expression(pattern)


def test_a_name_stands_in_a_translation_as_whole_words():
    assert stands_in("I met Li Na.", "li na")
    assert stands_in("Newton’s law", "[isaac] newton")
    assert stands_in("我读过阿尔伯特·爱因斯坦的书。", "爱因斯坦")
    assert not stands_in("He lives in Berlin, a city.", "li na")
    assert not stands_in("Boltzmann", "bolt")


@pytest.mark.parametrize("module", [everyday, names])
def test_the_items_are_300_and_sound(module):
    items = read_items(module.ITEMS)
    assert Counter(item.direction for item in items) == dict.fromkeys(DIRECTIONS, 150)
    assert len({(item.direction, item.source) for item in items}) == 300
    for item in items:
        for pattern in item.accepted.split(SEPARATOR):
            assert not re.fullmatch(expression(pattern), ""), item
    if module is everyday:
        assert {item.source for item in items}.issuperset(REQUIRED)
    else:
        assert all(item.entry in item.source or item.entry[1:] in item.source for item in items)
        assert sum(item.source == item.entry for item in items) == 150


def test_no_source_is_its_own_translation():
    """A system that copies its input is right only where both languages are written alike."""
    copied = [item.source for item in read_items(everyday.ITEMS) if is_accepted(item.source, item.accepted)]
    assert copied == []


def test_the_sentences_with_numbers_are_500_always_the_same_and_read_right():
    items = list(number_values.sentences())
    assert items == list(number_values.sentences())
    assert Counter(item.direction for item in items) == dict.fromkeys(DIRECTIONS, 250)
    errors = [item for item in items if not number_values.has_values(item.source, item.direction[:2], item.accepted)]
    assert errors == []


@pytest.mark.parametrize(
    ("translation", "is_right"),
    [
        ("It cost 1.25 billion yuan.", True),
        ("It cost RMB 1,250 million.", True),
        ("It cost 12.5 billion yuan.", False),
        ("It cost $1.25 billion.", False),
    ],
)
def test_money_is_judged_by_value_and_currency(translation, is_right):
    assert number_values.has_values(translation, "en", "number 1250000000; currency yuan") == is_right


def test_no_template_is_one_of_those_for_training():
    sys.path.append(str(Path(__file__).parents[2] / "recipes"))
    import zh_en_corpora

    trained = {
        re.sub("{.}", "", side)
        for pairs in (zh_en_corpora.COUNTED, zh_en_corpora.SHARED, zh_en_corpora.DATED)
        for pair in pairs
        for side in pair
    }
    tested = {
        re.sub("{.}", "", template)
        for templates in (number_values.CHINESE, number_values.ENGLISH)
        for kind in templates.values()
        for template in kind
    }
    assert not trained & tested


def test_lines_of_the_training_data_are_found_in_any_case(tmp_path):
    (tmp_path / "train").mkdir()
    with lzma.open(tmp_path / "train" / "phrases.tsv.xz", "wt", encoding="utf-8") as file:
        file.write("我爱你。\tI love you.\n你好，朋友\tHello, friend\n")
    (tmp_path / "names.tsv").write_text("巴黎\tParis\n", encoding="utf-8")
    keys = {normal_form(text) for text in ("I LOVE YOU", "我爱你", "hello", "PARIS")}
    assert lines_in_train(tmp_path, keys, own=tmp_path) == {normal_form("i love you"), "我爱你", "paris"}


def test_what_stands_in_the_training_data_is_counted_apart():
    table = Table()
    for is_right, in_train in ((True, True), (False, False), (True, False)):
        table.add(Result(Item("word", "zh-en", "水", "water"), "water", is_right, in_train))
    assert table.count("word", "zh-en", True) == Count(1, 1)
    assert table.count("word", "zh-en", False) == Count(1, 2)
    assert "2 of 3 right, 66.7%" in table.lines(with_train=True)[-1]
