"""Quantities are read from Chinese by value, with their units, and so that a good translation has them too."""

import pytest

from sixfold.text.chinese_quantities import chinese_quantities, chinese_values
from sixfold.text.quantities import LOOSE


def certain(text):
    """The kind, the likeliest value and the unit of each quantity that a translation must not change."""
    return [(each.kind, each.values[0], each.unit) for each in chinese_quantities(text) if each.weight != LOOSE]


@pytest.mark.parametrize(
    ("numeral", "values"),
    [
        ("三万五", (35_000,)),
        ("三万五千八百", (35_800,)),
        ("3万5千8百", (35_800,)),
        ("12.5亿", (1_250_000_000,)),
        ("一千零五", (1005,)),
        ("二十", (20,)),
        ("一九九八", (1998,)),
        ("二十多万", (200_000,)),
        ("两千两百", (2200,)),
        ("五点七五", (5.75,)),
        ("三四百", (300, 400)),
        ("十五六", (15, 16)),
    ],
)
def test_numerals_have_values(numeral, values):
    assert chinese_values(numeral) == values


@pytest.mark.parametrize(
    ("text", "quantities"),
    [
        ("亏损12.5亿元", [("number", 1_250_000_000, "yuan")]),
        ("来了二十多万人", [("number", 200_000, "")]),
        ("两三百辆车", [("number", 200, ""), ("number", 300, "")]),
        ("百分之三点五", [("number", 3.5, "%")]),
        ("上涨3.5%", [("number", 3.5, "%")]),
        ("三分之二", [("fraction", 0.666666667, "")]),
        ("十分之一", [("fraction", 0.1, "")]),
        ("三成五", [("number", 35, "%")]),
        ("长5千米", [("number", 5, "km")]),
        ("体重五十公斤", [("number", 50, "kg")]),
        ("一百二十英镑", [("number", 120, "pound")]),
        ("£300", [("number", 300, "pound")]),
        ("半年", [("number", 0.5, "year")]),
        ("下午3点半", [("time", 210, "pm")]),
        ("上午6时开放", [("time", 360, "am")]),
        ("15:30", [("time", 210, "pm")]),
        ("2024年5月3日", [("year", 2024, "year"), ("month", 5, ""), ("day", 3, "")]),
        ("第三名", [("ordinal", 3, "")]),
        ("21世纪", [("ordinal", 21, "")]),
        ("20世纪90年代", [("year", 1990, "")]),
        ("19世纪七八十年代", [("year", 1870, ""), ("year", 1880, "")]),
        ("20世纪60至70年代", [("year", 1960, ""), ("year", 1970, "")]),
        ("50、60年代", [("year", 50, ""), ("year", 60, "")]),
        ("80年来", [("year", 80, "year")]),
        ("绵延120余千米", [("number", 120, "km")]),
        ("上五、六年级", [("ordinal", 5, ""), ("ordinal", 6, "")]),
        ("住在五楼", [("ordinal", 5, "")]),
        ("8501号航班", [("number", 8501, "")]),
        ("三万公吨", [("number", 30_000, "t")]),
        ("六分多钟", [("number", 6, "minute")]),
        ("大陸的退伍軍人在收拾", []),
        ("伍佰元", [("number", 500, "yuan")]),
        ("三元催化", [("number", 3, "money")]),
        ("四维", [("number", 4, "")]),
        ("三到五公里", [("number", 3, "km"), ("number", 5, "km")]),
        ("周三", [("weekday", 3, "")]),
        ("他俩", [("number", 2, "")]),
    ],
)
def test_quantities_have_kinds_values_and_units(text, quantities):
    assert certain(text) == [(kind, pytest.approx(value), unit) for kind, value, unit in quantities]


@pytest.mark.parametrize(
    "text", ["一个人", "成千上万的人", "千万别去", "十分高兴", "四季如春", "百姓", "几个", "SARS-2"]
)
def test_words_that_translations_express_otherwise_are_loose(text):
    assert certain(text) == []


def test_spans_are_those_of_the_text():
    text = "他花了３００英镑。"
    (quantity,) = chinese_quantities(text)
    assert text[slice(*quantity.span)] == "３００英镑"
