"""Quantities are read from English by value, and compared with those of Chinese."""

import pytest

from sixfold.text.chinese_quantities import chinese_quantities
from sixfold.text.english_quantities import english_quantities
from sixfold.text.number_forms import quantity_forms
from sixfold.text.quantities import LOOSE, find_difference


def certain(text):
    """The kind, the likeliest value and the unit of each quantity that a translation must not change."""
    return [(each.kind, each.values[0], each.unit) for each in english_quantities(text) if each.weight != LOOSE]


@pytest.mark.parametrize(
    ("text", "quantities"),
    [
        ("twenty-three thousand people", [("number", 23_000, "")]),
        ("two hundred and five", [("number", 205, "")]),
        ("one hundred and two hundred", [("number", 100, ""), ("number", 200, "")]),
        ("half a million", [("number", 500_000, "")]),
        ("12.5 billion yuan", [("number", 12_500_000_000, "yuan")]),
        ("$1.25 billion", [("number", 1_250_000_000, "dollar")]),
        ("1,024 files", [("number", 1024, "")]),
        ("two point five", [("number", 2.5, "")]),
        ("nineteen ninety-eight", [("number", 1998, "")]),
        ("one in three", [("fraction", 1 / 3, "")]),
        ("two thirds", [("fraction", 2 / 3, "")]),
        ("3.5 percent", [("number", 3.5, "%")]),
        ("60 mph or 5 km", [("number", 60, "mile"), ("number", 5, "km")]),
        ("3:30 p.m.", [("time", 210, "pm")]),
        ("half past three", [("time", 210, "")]),
        ("a quarter to five", [("time", 285, "")]),
        ("on May 3, 2024", [("month", 5, ""), ("day", 3, ""), ("number", 2024, "")]),
        ("3 May", [("day", 3, ""), ("month", 5, "")]),
        ("the 1990s", [("year", 1990, "")]),
        ("the 21st century", [("ordinal", 21, "")]),
        ("twenty-first", [("ordinal", 21, "")]),
        ("Chapter 7", [("ordinal", 7, "")]),
        ("3–5 kilograms", [("number", 3, "kg"), ("number", 5, "kg")]),
        ("on Tuesday", [("weekday", 2, "")]),
        ("thirty-five hundred men", [("number", 3500, "")]),
        ("a quarter before 11 a.m.", [("time", 645, "am")]),
        ("at 11 tonight", [("time", 660, "pm")]),
        ("six tomorrow morning", [("time", 360, "am")]),
        ("by mid-March", [("month", 3, "")]),
        ("in 629, under Taizong (618)", [("number", 629, "year"), ("number", 618, "year")]),
        ("48 BC", [("number", 48, "year")]),
        ("two decades", [("number", 20, "year")]),
        ("700,000 km2", [("number", 700_000, "square kilometre")]),
        ("3 mph (6 kph)", [("number", 3, "mile"), ("number", 6, "km")]),
        ("about 200 by 100 metres", [("number", 200, "m"), ("number", 100, "m")]),
        ("a $500 million, 10-year deal", [("number", 500_000_000, "dollar"), ("number", 10, "year")]),
        ("500 million, 10-year deal", [("number", 500_000_000, ""), ("number", 10, "year")]),
        ("grades five or six", [("ordinal", 5, ""), ("ordinal", 6, "")]),
        ("a force of 38,000 won a victory", [("number", 38_000, "")]),
        ("both fast and cheap", []),
        ("a 2-a-day drug", [("number", 2, "")]),
        ("an hour and a few minutes", []),
        ("Thirdly, there is time.", [("ordinal", 3, "")]),
        ("both of them", [("number", 2, "")]),
    ],
)
def test_quantities_have_kinds_values_and_units(text, quantities):
    assert certain(text) == [(kind, pytest.approx(value), unit) for kind, value, unit in quantities]


@pytest.mark.parametrize("text", ["a man", "no one came", "the first time", "dozens of people", "COVID-19", "once"])
def test_words_that_translations_express_otherwise_are_loose(text):
    assert certain(text) == []


SAME = [
    ("公司去年亏损12.5亿元。", "The company lost 1.25 billion yuan last year."),
    ("来了二十多万人。", "More than 200,000 people came."),
    ("十几个人", "a dozen people"),
    ("两三百人", "two or three hundred people"),
    ("三分之一的人", "one in three people"),
    ("下午3点半", "15:30"),
    ("2024年5月3日", "3/5/2024"),
    ("2024年5月3日", "May 3, 2024"),
    ("90年代", "the 1990s"),
    ("他走了十六公里。", "He walked ten miles."),
    ("三到五天", "3–5 days"),
    ("两百块钱", "200 dollars"),
    ("一点五倍", "1.5 times"),
    ("半年", "six months"),
    ("21世纪", "the twenty-first century"),
    ("七成", "70 percent"),
]
OTHER = [
    ("公司去年亏损12.5亿元。", "The company lost 125 billion yuan last year."),
    ("来了二十多万人。", "More than twenty thousand people came."),
    ("共有1,024个文件。", "There are 1,204 files."),
    ("票价£300。", "The ticket costs 300."),
    ("票价300英镑。", "The ticket costs $300."),
    ("三分之一的人", "a fifth of the people"),
    ("下午3点半", "4:30 p.m."),
    ("2024年5月3日", "May 4, 2024"),
    ("他走了十六公里。", "He walked sixteen miles."),
    ("第三名", "the fourth place"),
    ("申办城市有五座，三座退出。", "There were five bidding cities, but five pulled out."),
    ("上涨3.5%", "rose by 5.3 percent"),
    ("三天以后", "three weeks later"),
]


@pytest.mark.parametrize(("chinese", "english"), SAME)
def test_texts_with_the_same_values_do_not_differ(chinese, english):
    assert not any(find_difference(chinese_quantities(chinese), english_quantities(english)))
    assert not any(find_difference(english_quantities(english), chinese_quantities(chinese)))


@pytest.mark.parametrize(("chinese", "english"), OTHER)
def test_texts_with_other_values_differ(chinese, english):
    assert any(find_difference(chinese_quantities(chinese), english_quantities(english)))


@pytest.mark.parametrize(
    "text",
    [
        "12.5亿元", "3600万人", "1024个", "3.5%", "三分之二", "下午3点半", "5月", "星期三", "第三", "第22", "五十公斤",
        "300英镑", "一百万美元", "1998年", "400", "二十公里",
    ],
)  # fmt: skip
def test_a_quantity_is_written_as_it_is_read(text):
    (quantity, *_) = [each for each in chinese_quantities(text) if each.weight != LOOSE]
    for language, read in (("en", english_quantities), ("zh", chinese_quantities)):
        forms = quantity_forms(quantity, language)
        assert forms
        for form in forms:
            assert not any(find_difference([quantity], read(f"on {form}" if language == "en" else form)))


def test_a_translation_may_name_the_currency_that_its_source_leaves_out():
    chinese, english = chinese_quantities("罚两百。"), english_quantities("It's a two-hundred-yuan fine.")
    assert not any(find_difference(chinese, english))
    assert any(find_difference(english, chinese))
