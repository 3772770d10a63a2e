"""The planted faults of the guard's benchmark say something else than the source, as a model might write it."""

import random
import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its `training` hides nothing

from planted_faults import PLANTS


def planted(kind, source, target):
    return PLANTS[kind](source, target, random.Random(1), "en" if target.isascii() else "zh")


@pytest.mark.parametrize(
    ("source", "target", "affirmative"),
    [
        ("他从来没有去过广岛。", "He has never been to Hiroshima.", "He has been to Hiroshima."),
        ("还没有人来过电话。", "No damage has been seen by anyone.", None),  # "No" at the beginning stays
        (
            "没有损坏的报告。",
            "As of yet, no damage has been reported.",
            "As of already, some damage has been reported.",
        ),
        ("我也不知道。", "I don't know either.", None),  # 也不 is nothing without 不
        ("你很幸运，不是吗？", "You are lucky, aren't you?", None),
        ("I have never been to Hiroshima.", "我从来没有去过广岛。", "我曾去过广岛。"),
        ("They did not use mortar.", "他们没有用灰浆。", "他们用灰浆。"),
        ("There is no air.", "没有空气。", "有空气。"),
        ("The bridge is not finished.", "桥尚未完工。", "桥已经完工。"),
        ("Is it not too close?", "是不是太靠前了？", None),
        ("He is not rich but poor.", "他不是富人，而是穷人。", None),
    ],
)
def test_a_lost_negation_leaves_a_sentence_that_says_the_opposite(source, target, affirmative):
    assert planted("a negation lost", source, target) == affirmative


@pytest.mark.parametrize(
    ("kind", "source", "target"),
    [
        ("a negation added", "你能给我一杯水吗？", "Can you give me a glass of water?"),
        ("a negation added", "只有一个。", "There is only one."),
        ("dates: the month", "首相特雷莎·梅今天辞职。", "Prime Minister Theresa May resigned today."),
        ("units", "平年有365天。", "There is one in common years too."),
        ("units", "A kilogram is a thousand grams.", "“千克”是一千个“克”。"),
        ("money: the currency lost", "它们使用澳元。", "They use the Australian dollar."),
        ("money: the currency lost", "他以12元买入，18元卖出。", "He bought at RMB 12 and sold at 18 yuan."),
        ("spelt-out numbers", "The two were voted out of the network in 2005.", "他们后来要走三四天。"),
        ("spelt-out numbers", "The network began in 2005.", "这两个人都来了。"),
    ],
)
def test_what_is_no_fault_or_not_in_the_source_is_not_planted(kind, source, target):
    assert planted(kind, source, target) is None
