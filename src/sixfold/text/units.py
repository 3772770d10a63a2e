"""Currencies and units of measure, in Chinese and in English, with their sizes."""

from __future__ import annotations

# Each row: the unit, how Chinese and English write it behind a number.
CURRENCIES: dict[str, tuple[str, str]] = {
    "US dollar": ("美元 美金 美刀", "US-dollar U.S.-dollar American-dollar usd buck"),
    "Australian dollar": ("澳元 澳币", "Australian-dollar aud"),
    "Canadian dollar": ("加元 加币", "Canadian-dollar cad"),
    "Hong Kong dollar": ("港元 港币", "Hong-Kong-dollar hkd"),
    "Singapore dollar": ("新元 新加坡元", "Singapore-dollar sgd"),
    "New Zealand dollar": ("新西兰元 纽元 纽币", "New-Zealand-dollar nzd"),
    "Taiwan dollar": ("新台币 台币", "New-Taiwan-dollar Taiwan-dollar twd"),
    "dollar": ("", "dollar"),
    "yuan": ("元 人民币 元人民币", "yuan rmb cny renminbi Chinese-yuan"),
    "euro": ("欧元", "euro eur"),
    "pound": ("英镑 镑", "pound gbp British-pound quid pound-sterling"),
    "yen": ("日元 日圆 円", "yen jpy Japanese-yen"),
    "won": ("韩元 韩圆 韩币", "won South-Korean-won"),
    "rupee": ("卢比", "rupee Indian-rupee"),
    "ruble": ("卢布", "ruble rouble"),
    "franc": ("法郎 瑞士法郎 瑞郎", "franc Swiss-franc"),
    "krona": ("克朗 瑞典克朗 挪威克朗 丹麦克朗", "krona kronor kroner krone"),
    "baht": ("泰铢 铢", "baht"),
    "peso": ("比索", "peso"),
    "real": ("雷亚尔", "reais"),
    "naira": ("奈拉", "naira"),
    "money": ("块钱", ""),  # yuan, or any dollars
}
SIGNS = {
    "$": "dollar", "US$": "US dollar", "A$": "Australian dollar", "AU$": "Australian dollar", "C$": "Canadian dollar",
    "CA$": "Canadian dollar", "HK$": "Hong Kong dollar", "S$": "Singapore dollar", "NZ$": "New Zealand dollar",
    "NT$": "Taiwan dollar", "£": "pound", "€": "euro", "¥": "yuan or yen", "RMB": "yuan", "USD": "US dollar",
    "EUR": "euro", "GBP": "pound", "CNY": "yuan", "JPY": "yen", "HKD": "Hong Kong dollar", "人民币": "yuan",
    "AUD": "Australian dollar", "CAD": "Canadian dollar", "₹": "rupee", "₽": "ruble", "₩": "won",
}  # fmt: skip

# Each row: the unit, its dimension and size in the first unit of the dimension, how Chinese and English write it.
_MEASURES: tuple[tuple[str, str, float, str, str], ...] = (
    ("m", "length", 1, "米 公尺", "metre meter m"),
    ("cm", "length", 0.01, "厘米 公分 cm", "centimetre centimeter cm"),
    ("mm", "length", 0.001, "毫米 mm", "millimetre millimeter mm"),
    ("km", "length", 1000, "公里 千米 km", "kilometre kilometer km kilometres-an-hour km/h kmh kph"),
    ("li", "length", 500, "里 华里", "li"),
    ("mile", "length", 1609.344, "英里 哩", "mile mi mph"),
    ("foot", "length", 0.3048, "英尺 呎", "foot feet ft"),
    ("chi", "length", 1 / 3, "尺", "chi"),
    ("inch", "length", 0.0254, "英寸 吋", "inch inches"),
    ("yard", "length", 0.9144, "码", "yard"),
    ("nautical mile", "length", 1852, "海里", "nautical-mile"),
    ("kg", "mass", 1, "公斤 千克 kg", "kilogram kilogramme kilo kg"),
    ("g", "mass", 0.001, "克 g", "gram gramme g"),
    ("mg", "mass", 1e-6, "毫克 mg", "milligram mg"),
    ("t", "mass", 1000, "吨 公吨", "ton tonne metric-ton metric-tonne"),
    ("jin", "mass", 0.5, "斤", "jin catty catties"),
    ("lb", "mass", 0.45359, "磅", "lb"),
    ("ounce", "mass", 0.02835, "盎司", "ounce oz"),
    ("square metre", "area", 1, "平方米 平米 m² m2", "square-metre square-meter sq-m m² m2"),
    ("square kilometre", "area", 1e6, "平方公里 平方千米 km² km2", "square-kilometre square-kilometer sq-km km² km2"),
    ("square foot", "area", 0.0929, "平方英尺", "square-foot square-feet sq-ft ft²"),
    ("square mile", "area", 2.59e6, "平方英里", "square-mile sq-mi"),
    ("hectare", "area", 1e4, "公顷", "hectare"),
    ("mu", "area", 10_000 / 15, "亩", "mu"),
    ("acre", "area", 4046.9, "英亩", "acre"),
    ("l", "volume", 1, "升 公升", "litre liter"),
    ("ml", "volume", 0.001, "毫升 ml", "millilitre milliliter ml"),
    ("gallon", "volume", 3.785, "加仑", "gallon"),
    ("cubic metre", "volume", 1000, "立方米 方 m³", "cubic-metre cubic-meter m³"),
    ("degree", "temperature", 1, "度 摄氏度 ℃ °C °", "degree degrees-Celsius °C ℃ °"),
    ("degree Fahrenheit", "Fahrenheit", 1, "华氏度 ℉ °F", "degrees-Fahrenheit °F ℉"),
    ("second", "duration", 1, "秒 秒钟", "second"),
    ("minute", "duration", 60, "分钟 分多钟", "minute min"),
    ("hour", "duration", 3600, "小时 钟头 个小时 个钟头 个半小时 多小时", "hour hr"),
    ("day", "duration", 86_400, "天 日 昼夜", "day"),
    ("week", "duration", 604_800, "周 个星期 星期 个礼拜", "week"),
    ("month", "duration", 2_629_800, "个月 个多月", "month"),
    ("year", "duration", 31_557_600, "年 岁 周岁 周年 载", "year"),
    ("kW", "power", 1000, "千瓦", "kilowatt kW"),
    ("MW", "power", 1e6, "兆瓦", "megawatt MW"),
    ("MB", "data", 1e6, "MB 兆字节", "MB megabyte"),
    ("GB", "data", 1e9, "GB G", "GB gigabyte"),
    ("TB", "data", 1e12, "TB", "TB terabyte"),
)  # fmt: skip
MEASURES = {unit: (dimension, size) for unit, dimension, size, _, _ in _MEASURES}
PERCENT = "%"

CHINESE_UNITS = {
    **{word: unit for unit, _, _, words, _ in _MEASURES for word in words.split()},
    **{word: unit for unit, (words, _) in CURRENCIES.items() for word in words.split()},
    **dict.fromkeys(("%", "个百分点", "百分点"), PERCENT),
}


def _english_units() -> dict[str, str]:
    """Return the English words for units, in lower case and with a space between words, singular and plural."""
    units = dict.fromkeys(("%", "percent", "per cent", "percentage point", "percentage points"), PERCENT)
    rows = [(unit, words) for unit, _, _, _, words in _MEASURES] + [
        (unit, words) for unit, (_, words) in CURRENCIES.items()
    ]
    for unit, words in rows:
        for word in words.replace("-", " ").split(" ") if "-" not in words else words.split(" "):
            singular = word.replace("-", " ").lower()
            units.update({singular: unit, f"{singular}s": unit})
    del units[""], units["s"]
    return units


ENGLISH_UNITS = _english_units()
# How a unit is written behind a number, or before it.
CHINESE_NAMES = {
    **{unit: words.split()[0] for unit, _, _, words, _ in _MEASURES},
    **{unit: words.split()[0] for unit, (words, _) in CURRENCIES.items() if words},
    "dollar": "美元", "yuan or yen": "元", "money": "元", "day": "天", "year": "年",
}  # fmt: skip
ENGLISH_NAMES = {
    **{unit: f"{unit}s" for unit, dimension, _, _, _ in _MEASURES if dimension == "duration"},
    **{unit: f"{words.split()[0]}s" for unit, (_, words) in CURRENCIES.items() if words},
    "m": "meters", "cm": "centimeters", "mm": "millimeters", "km": "kilometers", "mile": "miles", "foot": "feet",
    "inch": "inches", "yard": "yards", "kg": "kilograms", "g": "grams", "mg": "milligrams", "t": "tons", "jin": "jin",
    "lb": "pounds", "ounce": "ounces", "square metre": "square meters", "square kilometre": "square kilometers",
    "hectare": "hectares", "mu": "mu", "acre": "acres", "l": "liters", "ml": "milliliters", "degree": "degrees",
    "kW": "kilowatts", "MW": "megawatts", "MB": "MB", "GB": "GB", "TB": "TB", "yuan": "yuan", "yuan or yen": "yuan",
    "money": "yuan", "yen": "yen", "baht": "baht", "won": "won", "renminbi": "yuan",
    "US dollar": "U.S. dollars", "Australian dollar": "Australian dollars", "Canadian dollar": "Canadian dollars",
    "Hong Kong dollar": "Hong Kong dollars",
}  # fmt: skip
PREFIX_SIGNS = {"dollar": "$", "US dollar": "$", "pound": "£", "euro": "€"}
_DOLLARS = frozenset(unit for unit in CURRENCIES if unit.endswith("dollar"))
_MONEY_ONLY = _DOLLARS | {"yuan", "yuan or yen", "yen", "euro"}  # their names are not names of measures too


def is_currency(unit: str) -> bool:
    """Return whether a unit is one of money; a pound may be one."""
    return unit in CURRENCIES or unit == "yuan or yen"


def are_same_units(first: str, second: str) -> bool:
    """Return whether two units may mean the same: a dollar is any dollar, and ¥ stands for yuan and for yen."""
    if first == second:
        return True
    if (first in MEASURES) != (second in MEASURES):
        return _MONEY_ONLY.isdisjoint((first, second))
    if first in MEASURES:
        return MEASURES[first][0] != MEASURES[second][0]
    pair = {first, second}
    if "money" in pair:
        return pair <= {"money", "yuan", "yuan or yen", *_DOLLARS}
    if "dollar" in pair:
        return pair <= _DOLLARS
    return "yuan or yen" in pair and bool(pair & {"yuan", "yen"})
