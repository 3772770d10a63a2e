"""Simplified and traditional Chinese: conversion from one to the other, and what tells them apart."""

import sys

import pytest
from growth import assert_linear, repeated, seconds

from sixfold.errors import ConfigError
from sixfold.text.chinese import chinese_variant, count_distinctive, to_simplified, to_traditional

PAIRS = [
    ("我们后天去看干净的面条店", "我們後天去看乾淨的麵條店"),
    ("头发很长，发展很快。", "頭髮很長，發展很快。"),
    ("皇后在后面", "皇后在後面"),
    ("机器学习", "機器學習"),
]


@pytest.mark.parametrize(("simplified", "traditional"), PAIRS)
def test_chinese_is_converted_by_words_not_by_characters_alone(simplified, traditional):
    assert to_traditional(simplified) == traditional
    assert to_simplified(traditional) == simplified
    assert chinese_variant(traditional) in ("traditional", "")
    assert chinese_variant(simplified) in ("simplified", "")


def test_what_is_already_so_and_what_is_no_chinese_stays():
    for text in ("", "hello world\n\tok", "café 😀 12", "中文", "[x] {name} <b>", "a\r\nb", "\ud800"):
        assert to_traditional(text) == to_simplified(text) == text
    assert to_traditional("機器學習") == "機器學習"
    assert to_simplified("机器学习") == "机器学习"
    assert to_traditional("使用 Docker 运行 <b>容器</b>\n") == "使用 Docker 運行 <b>容器</b>\n"


def test_characters_that_only_chinese_or_only_japanese_has_are_counted():
    assert count_distinctive("这们这们") == (2, 0)
    assert count_distinctive("駅で気をつけて") == (0, 2)
    assert count_distinctive("東京大学 and 中文") == (0, 0)


@pytest.mark.parametrize("convert", [to_simplified, to_traditional])
def test_the_package_that_it_needs_is_named(monkeypatch, convert):
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(ConfigError, match="expected the package opencc") as caught:
        convert("中文")
    assert "sixfold[chinese]" in caught.value.hint


@pytest.mark.slow
def test_a_run_without_punctuation_is_not_copied_at_every_word():
    times = [min(seconds(to_traditional, "汉语" * size) for _ in range(2)) for size in (50_000, 200_000)]
    assert times[1] < 6 * times[0], "four times as much takes nine times as long where the whole run is copied"


@pytest.mark.parametrize("make", [repeated("后面"), repeated("龍"), repeated("a后"), repeated("后，"), repeated("a")])
def test_conversion_takes_time_in_proportion_to_the_length(make):
    assert_linear(to_traditional, make, 20_000)
    assert_linear(to_simplified, make, 20_000)
