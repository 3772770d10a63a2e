"""Values are read from numbers, percentages, dates and times as people write them in English and in Chinese."""

import sys
from fractions import Fraction
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))  # at the end: its `training` hides nothing

from quantities import Date, Time, currencies, dates, numbers, percents, times


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1.25 billion", [1_250_000_000]),
        ("1,250,000,000 people", [1_250_000_000]),
        ("twelve and a half million", [12_500_000]),
        ("12 and a half million", [12_500_000]),
        ("half a million", [500_000]),
        ("a hundred and twenty-five thousand", [125_000]),
        ("three hundred million", [300_000_000]),
        ("3 hundred million", [300_000_000]),
        ("two point five trillion", [2_500_000_000_000]),
        ("two thousand and five", [2005]),
        ("thirty-five thousand two hundred", [35_200]),
        ("from 3 million to 5.5 million", [3_000_000, 5_500_000]),
        ("between two million and five million", [2_000_000, 5_000_000]),
        ("between one hundred and two hundred", [100, 200]),
        ("2 and 3", [2, 3]),
        ("$3m and €2.5bn", [3_000_000, 2_500_000_000]),
        ("5 m", [5]),
        ("a 12.5-kilometre road", [Fraction(25, 2)]),
        ("nothing to count", []),
    ],
)
def test_english_numbers_are_read_by_value(text, values):
    assert numbers(text, "en") == values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("12.5亿", [1_250_000_000]),
        ("三万五千", [35_000]),
        ("三万五", [35_000]),
        ("1亿2000万人", [120_000_000]),
        ("一亿两千万", [120_000_000]),
        ("3万5千", [35_000]),
        ("1.2万亿元", [1_200_000_000_000]),
        ("两千零五", [2005]),
        ("十五", [15]),
        ("一百二十", [120]),
        ("二〇二一", [2021]),
        ("３５，０００个", [35_000]),
        ("从300万到550万", [3_000_000, 5_500_000]),
        ("5千米", [5]),
        ("5千人", [5000]),
        ("三点五", [Fraction(7, 2)]),
        ("七千多万人", [70_000_000]),
        ("没有数字", []),
    ],
)
def test_chinese_numbers_are_read_by_value(text, values):
    assert numbers(text, "zh") == values


def test_a_digit_behind_a_unit_is_a_tenth_of_it():
    assert Fraction(23, 5) in numbers("蛇长四米六", "zh")


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        ("12.5%", "en", Fraction(25, 2)),
        ("12.5 per cent", "en", Fraction(25, 2)),
        ("fifteen percent", "en", 15),
        ("3 percentage points", "en", 3),
        ("百分之十五", "zh", 15),
        ("百分之12.5", "zh", Fraction(25, 2)),
        ("12.5％", "zh", Fraction(25, 2)),
        ("三成", "zh", 30),
        ("打七折", "zh", 30),
    ],
)
def test_percentages_are_read_by_value(text, language, value):
    assert percents(text, language) == [value]


def test_a_number_without_a_sign_is_no_percentage():
    assert percents("12.5 people", "en") == percents("12.5个", "zh") == []


@pytest.mark.parametrize(
    ("text", "language", "date"),
    [
        ("March 5, 2021", "en", Date(2021, 3, 5)),
        ("on March 5th 2021", "en", Date(2021, 3, 5)),
        ("the 5th of March, 2021", "en", Date(2021, 3, 5)),
        ("5 Mar. 2021", "en", Date(2021, 3, 5)),
        ("2021-03-05", "en", Date(2021, 3, 5)),
        ("March 5", "en", Date(None, 3, 5)),
        ("in March 2021", "en", Date(2021, 3, None)),
        ("2021年3月5日", "zh", Date(2021, 3, 5)),
        ("二〇二一年三月五号", "zh", Date(2021, 3, 5)),
        ("3月15日", "zh", Date(None, 3, 15)),
        ("2021年3月", "zh", Date(2021, 3, None)),
    ],
)
def test_dates_are_read(text, language, date):
    assert dates(text, language) == [date]


@pytest.mark.parametrize(
    ("text", "language", "time"),
    [
        ("at 3 p.m.", "en", Time(15, 0)),
        ("at 3pm", "en", Time(15, 0)),
        ("at 3:30 pm", "en", Time(15, 30)),
        ("15:00", "en", Time(15, 0)),
        ("three in the afternoon", "en", Time(15, 0)),
        ("half past two in the afternoon", "en", Time(14, 30)),
        ("a quarter to eight in the morning", "en", Time(7, 45)),
        ("seven forty-five in the evening", "en", Time(19, 45)),
        ("twelve at night", "en", Time(0, 0)),
        ("2 a.m.", "en", Time(2, 0)),
        ("12:15 a.m.", "en", Time(0, 15)),
        ("at noon", "en", Time(12, 0)),
        ("下午三点", "zh", Time(15, 0)),
        ("下午3点半", "zh", Time(15, 30)),
        ("15:00", "zh", Time(15, 0)),
        ("15时20分", "zh", Time(15, 20)),
        ("早上八点一刻", "zh", Time(8, 15)),
        ("晚上十二点", "zh", Time(0, 0)),
        ("晚上七点四十五", "zh", Time(19, 45)),
        ("凌晨两点", "zh", Time(2, 0)),
        ("中午十二点", "zh", Time(12, 0)),
        ("上午差一刻八点", "zh", Time(7, 45)),
    ],
)
def test_times_are_read(text, language, time):
    assert time in times(text, language)


def test_an_hour_of_the_afternoon_is_not_one_of_the_morning():
    assert Time(15, 0) not in times("at 3 a.m.", "en")
    assert Time(15, 0) not in times("早上三点", "zh")
    assert Time(15, 30) not in times("3:30", "en")


def test_minutes_are_not_hours():
    assert Time(20, 15) not in times("晚上8点15点", "zh")


def test_currencies_are_told_apart():
    assert currencies("$5 million") == {"dollars"}
    assert currencies("500万美元") == {"dollars"}
    assert currencies("500万块") == currencies("500万元") == {"yuan"}
    assert currencies("5 million pounds") == {"pounds"}
