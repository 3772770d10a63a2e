"""Reads the quantities of a Chinese text: 12.5亿元, 三万五千, 百分之三十, 三分之二, 下午三点半, 20世纪70年代."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sixfold.text.quantities import (
    DIGITS,
    LIKELY,
    LOOSE,
    NAME_BEFORE,
    PAIRED,
    SURE,
    Quantity,
    clock,
    day_of_month,
    digit_values,
    numeric_date,
    plain,
    ratio,
    rounded,
    shared_units,
)  # fmt: skip
from sixfold.text.units import CHINESE_UNITS, MEASURES, PERCENT, SIGNS, is_currency

_DIGIT_VALUES = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_SCALES = {"十": 10, "百": 100, "千": 1000, "万": 10**4, "亿": 10**8}
_ONE_TO_NINE = "一二两三四五六七八九"
_NUMERAL = f"〇零{_ONE_TO_NINE}十百千万亿"
# 千 before a unit of measure belongs to it: 5千米 is five kilometres.
_NUMBER = (
    rf"(?:{DIGITS}|[{_NUMERAL}])(?:(?<!\d)[{_ONE_TO_NINE.replace('两', '')}零〇]"
    r"|(?:(?<=\d) )?(?:[十千万亿]|百(?!帕))|两(?=[百千万亿])"
    rf"|[多余几来](?=[百千万亿])|(?<=[{_NUMERAL}])点(?=[〇零{_ONE_TO_NINE}])|(?<=[万亿千]){DIGITS})*+"
)
_SHORT_NUMBER = rf"(?:\d{{1,2}}(?!\d)|[〇零{_ONE_TO_NINE}十]{{1,3}})"
_DAY_PARTS = {
    "am": "凌晨 清早 清晨 早上 早晨 上午 今早 明早 一早 早",
    "pm": "下午 午后 傍晚 晚上 今晚 昨晚 明晚 当晚 晚间 晚",
    "": "中午 半夜 午夜 夜间 夜里 深夜",
}
_HALVES = {word: half for half, words in _DAY_PARTS.items() for word in words.split()}
_TIME = (
    rf"(?P<part>(?:{'|'.join(_HALVES)}) ?)?(?:(?<![\d.:/])(?P<clock_hour>\d{{1,2}}):(?P<clock_minute>\d\d)(?![\d:%])"
    rf"(?P<latin> ?[AaPp]\.?[Mm]\b)?"
    rf"|(?<![\d.{_NUMERAL}])(?P<hour>{_SHORT_NUMBER}) ?(?:点|时(?=[\d许整至零一二三四五])"
    r"|(?:(?<=\d)|(?(part)|(?!)))时(?![间候代期常刻速段光差数长效]))"
    rf"(?:(?P<sharp>钟|整|半)|过?(?P<quarters>[一三])刻|[过零]? ?(?P<minute>{_SHORT_NUMBER}) ?分(?!之)"
    rf"|(?P<bare_minute>\d\d|[二三四五]?十[{_ONE_TO_NINE}]?|零[{_ONE_TO_NINE}])(?![\d{_NUMERAL}%个倍])"
    rf"|(?P<vague_time>多|左右|前|后|至|到|许)?(?![\d{_NUMERAL}](?<!一(?=[直个起样定般些共律边并旦下会到])))))"
)
# Words with numerals that are no numbers, or that translations express in other ways.
_IDIOMS = (
    "千里|万里|千万(?=[别不要注记小得莫勿当请])|万一(?![千百])|五一|十一(?=长假|黄金周|假期)|双十一|三七|一一|九一一|"
    "百分百|百万富翁|千万富翁|亿万富[翁豪]|万万|千千万万|成千上万|千百[年万次]|七七八八|三三两两|四四方方|十万火急|一百八十度(?=的?大?转)|四季|四邻|四周|四处|四面|四方|四肢|"
    "腊八|五官|三角|十分(?!之|钟)|十足|十字|万分|万事|万物|百货|百姓|百科|三明治|二手|千千|百八十|万千|四六级|三百六十行|三八|二百五|"
    "十有八九|十之八九|八九不离十|一五一十|十万个为什么|大年三十|四舍五入|五十步笑百步|十二生肖|七十士|十四行|"
    "十二面体|二十面体|十六进制|八进制|二进制|十进制|五五开|九九|三十而立|半斤八两"
)
# Words that stand for a number, or that English expresses with one; a translation need not have it.
_VAGUE_WORDS: dict[str, tuple[float, ...]] = {
    "半": (0.5, 30), "双": (2,), "仨": (3,), "翻番": (2,), "翻倍": (2,), "加倍": (2,), "首": (1,),
    "初": (1,), "周末": (6, 7), "廿": (20,), "卅": (30,), "打": (12,), "次": (2,), "旬": (10,), "另": (2,),
    "再": (2,), "亚军": (2,), "季军": (3,), "冠军": (1,), "对": (2,), "零": (0,), "学期": (2,), "中午": (12, 0),
    "午夜": (12, 0), "半夜": (12, 0),
}  # fmt: skip
_CHINESE = re.compile(
    rf"(?<![{_NUMERAL}])(?P<idiom>{_IDIOMS})(?![{_NUMERAL}])"
    rf"|(?<![{_NUMERAL}几每两多\d])(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?![{_NUMERAL}次个天年直起边])"
    r"|(?P<date>(?<![\d./-])(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[/.]\d{1,2}[/.]\d{4})(?![\d./-]))"
    rf"|(?P<time>{_TIME})"
    r"|(?<=UTC )(?P<utc>\d{4})(?!\d)"
    r"|(?P<ratio>(?<![\d./,])\d{1,4}/\d{1,4}(?![\d/]|[.,]\d))"
    rf"|(?P<sign>(?:{'|'.join(map(re.escape, sorted(SIGNS, key=len, reverse=True)))}) ?)?"
    rf"(?P<before>第 ?|[十百千万亿]{{1,2}}分之|[几数上成好](?=[十百千万亿]))?(?P<number>{_NUMBER})"
    r"|(?P<two>双方|[你我他她们]俩)|半(?P<half>个?小时|个?钟头|年|天)(?![前后])"
    rf"|(?P<vague>{'|'.join(sorted(_VAGUE_WORDS, key=len, reverse=True))})"
)
_UNITS = "|".join(map(re.escape, sorted(CHINESE_UNITS, key=len, reverse=True)))
_MORE_DECADES = rf"(?:(?: ?年代)?[初中末后]?[和与及至到、-] ?{_SHORT_NUMBER})*"
_AFTER = re.compile(
    rf" ?(?:(?:又(?P<whole>{_NUMBER}))?分之(?P<numerator>{_NUMBER})"
    rf"|(?P<century>世纪)(?: ?(?P<decades>{_SHORT_NUMBER}{_MORE_DECADES}) ?年代)?"
    rf"|(?P<years>{_MORE_DECADES} ?年代|后(?![,。的来面退边者续续]))"
    r"|(?P<month>月)(?!季|饼|亮|球|光|度|底薪)|(?P<rank>年级|楼(?![梯房宇道盘市价]))|(?P<day>日(?![元圆内后游间]|之内)|号(?![桌楼线门房院车机]))"
    r"|(?P<tenths>成(?![为了立功员长就本绩果交年分])|折(?!叠|磨|断|腾|扣))(?P<more_tenths>[半五])?"
    rf"|[块元](?!一[^毛角，。、；！？])零?(?P<jiao>[{_ONE_TO_NINE}\d]{{1,2}}|[{_ONE_TO_NINE}\d][毛角](?:[{_ONE_TO_NINE}\d]分?)?)[毛角]?(?![{_NUMERAL}\d边])"
    r"|(?P<small>[毛角](?!度|色|落|巾|衣|病|泽))|(?P<piece>块(?!钱))"
    rf"|[多余几来]?[ -]?(?P<unit>{_UNITS})(?P<half>半)?"
    rf"(?P<tail>(?<=[米度秒尺])[{_ONE_TO_NINE}\d]{{1,2}}(?![{_NUMERAL}\d]))?(?![A-Za-z])"
    rf"|(?P<more>个半|[圈层](?=半))|(?P<times>倍)(?P<half_more>半)?|[多余几来]?(?P<classifier>"
    "[个名位人只条张本辆次件种家座所间层楼级部台场杯瓶支篇句门项期届队组份口匹头双对套轮局集架艘颗枚棵栋株幅封顿遍桶盒箱袋包根枝把人]))"
)
_YEAR = re.compile(r"年(?!级|代|前|来|间|后|内|以|多|之|的时间|历史|里|期)")
_KILO = "米克瓦卡赫伏帕比字焦升"
_CLASSIFIERS_OF_PAIRS = frozenset("双对")


def chinese_quantities(text: str) -> list[Quantity]:
    """Return the quantities of a Chinese text, from left to right."""
    text = plain(text)
    quantities: list[Quantity] = []
    position = 0
    while match := _CHINESE.search(text, position):
        position = match.end()
        if match["idiom"]:
            continue
        if match["weekday"]:
            value = "一二三四五六日天".index(match["weekday"]) + 1
            quantities.append(Quantity("weekday", (min(value, 7),), match.span()))
        elif match["date"]:
            quantities += numeric_date(match["date"], match.start())
        elif match["time"]:
            quantities += _time(match)
        elif match["utc"]:
            quantities += clock(int(match["utc"][:2]), int(match["utc"][2:]), "", match.span())
        elif match["ratio"]:
            quantities += ratio(match["ratio"], match.start())
        elif match["two"]:
            quantities.append(Quantity("number", (2.0,), match.span(), LIKELY))
        elif match["half"]:
            unit = CHINESE_UNITS.get(match["half"].lstrip("个"), "") or CHINESE_UNITS[match["half"]]
            quantities.append(Quantity("number", (0.5,), match.span(), LIKELY, unit, False))
        elif match["vague"]:
            quantities.append(Quantity("number", _VAGUE_WORDS[match["vague"]], match.span(), LOOSE))
            if match["vague"] in ("中午", "午夜", "半夜"):
                quantities.append(Quantity("time", (0,), match.span(), LOOSE))
        else:
            numbers = list(_number(text, match))
            if _EITHER.search(match["number"]):
                numbers = [one._replace(values=(value,)) for one in numbers for value in one.values[:2]]
            position = max([position, *(number.span[1] for number in numbers)])
            quantities += numbers
    return shared_units(quantities, text)


def _time(match: re.Match[str]) -> Iterator[Quantity]:
    """Yield a time of day, or the numbers that it may be: 三点五 is 3.5 too, and 三点 three points."""
    span, half = match.span(), _HALVES.get((match["part"] or "").strip(), "")
    if match["clock_hour"]:
        latin = (match["latin"] or "").strip().lower()[:1]
        yield from clock(int(match["clock_hour"]), int(match["clock_minute"]), f"{latin}m" if latin else half, span)
        return
    hour = int(chinese_values(match["hour"])[0])
    minutes = match["minute"] or match["bare_minute"]
    minute_values = chinese_values(minutes) if minutes else (0.0,)
    minute = int(minute_values[-1])
    if match["sharp"] == "半":
        minute = 30
    elif match["quarters"]:
        minute = 15 if match["quarters"] == "一" else 45
    is_time = bool(match["part"] or match["quarters"] or match["sharp"] or minutes or "时" in match["time"])
    if hour > 24 and (not is_time or not match["hour"].isdigit()):  # 九十九点五分 is a mark of 99.5
        yield Quantity("number", (hour, float(f"{hour}.{minute}")), span, LOOSE)
        return
    yield from clock(hour, minute, half, span, PAIRED if is_time else LIKELY)


def _number(text: str, match: re.Match[str]) -> Iterator[Quantity]:
    """Yield the quantity of a number with what stands before it and after it."""
    number, before = match["number"], (match["before"] or "").strip()
    start, end = match.span()
    is_kilo = number[-1] == "千" and text[end : end + 1] in tuple(_KILO)
    if is_kilo and number[-2:-1] in tuple("0123456789万亿多余几来"):  # 5千米 and 2250万千瓦
        number, end, is_kilo = number[:-1], end - 1, False
    values = chinese_values(number)
    if not values:
        return
    weight = _weight(text, match, values[0])
    if before.endswith("分之"):
        share = chinese_values(before[:-2])[0]
        percent = rounded(values[0] * 100 / share)
        span = start, end
        if share == 100:
            yield Quantity("number", (percent, rounded(percent / 100)), span, PAIRED, PERCENT)
        else:
            yield Quantity("fraction", (rounded(percent / 100),), span, PAIRED)
            yield Quantity("number", (percent, rounded(percent / 100), values[0], share), span, LOOSE)
        return
    if before == "第":
        after = _AFTER.match(text, end)
        unit = CHINESE_UNITS.get(after["unit"] or "", "") if after else ""
        unit = unit if unit in MEASURES and MEASURES[unit][0] == "duration" else ""
        yield Quantity("ordinal", values, (start, end), max(weight, LIKELY) if values[0] > 1 else LOOSE, unit)
        return
    if is_kilo:  # 五千米
        values = (*values, rounded(values[0] / 1000))
    sign = (match["sign"] or "").strip()
    after = _AFTER.match(text, end)
    if after is None:
        unit, is_digits = SIGNS.get(sign, ""), number[0].isascii()
        likely = digit_values(number, values[0]) if is_digits else values
        yield Quantity("number", likely, (start, end), weight, unit, is_digits)  # 十五 may be fifteen yuan
        return
    span = start, after.end()
    yield from _number_with_unit(text, number, values, weight, SIGNS.get(sign, ""), after, span, bool(before))


def _number_with_unit(
    text: str,
    number: str,
    values: tuple[float, ...],
    weight: int,
    sign: str,
    after: re.Match[str],
    span: tuple[int, int],
    is_vague: bool,
) -> Iterator[Quantity]:
    """Yield the quantity of a number by what follows it."""
    value = values[0]
    if after["numerator"]:
        yield from _fraction(values, after, span)
    elif after["century"]:
        century = (value - 1) * 100
        if after["decades"]:
            decades = _all_values(after["decades"])
            yield from (Quantity("year", (century + decade,), span, SURE) for decade in decades)
        else:
            yield Quantity("ordinal", (value, century), span, weight)
    elif after["years"]:
        weight = PAIRED if number.isascii() else LOOSE
        for decade in [*values[:2], *_all_values(after["years"])]:
            years = (decade, 1900 + decade, 2000 + decade) if decade < 100 else values
            yield Quantity("year", years, span, weight)
    elif after["month"]:
        if not 1 <= value <= 12:
            yield Quantity("number", values, span, weight)
        else:
            yield Quantity("month", (value,), span, PAIRED)
            yield Quantity("number", (value,), span, LOOSE)
    elif after["rank"]:
        yield Quantity("ordinal", values, span, max(weight, LIKELY))
    elif after["day"]:
        is_span = after["day"] == "日" and text[span[0] - 1 : span[0]] != "月"  # three days, or the third
        yield from day_of_month(value, span, weight, "day" if is_span else "")
    elif after["tenths"]:
        percent = values[-1] if values[-1] > 10 else 10 * value + (5 if after["more_tenths"] else 0)
        tenths = (percent, 100 - percent, rounded(percent / 100), value)
        yield Quantity("number", tenths, span, PAIRED, PERCENT, has_own_unit=False)
    elif after["jiao"]:
        digits = "".join(str(_DIGIT_VALUES.get(char, char)) for char in after["jiao"] if char not in "毛角分")
        yield Quantity("number", (rounded(value + float(f"0.{digits}")), value), span, weight, "money")
        yield Quantity("number", (value, float(digits), 10 * float(digits)), span, LOOSE)
    elif after["small"]:
        yield Quantity("number", (rounded(value / 10), 10 * value, value), span, weight, "money", has_own_unit=False)
    elif after["piece"]:
        yield Quantity("number", values, span, PAIRED, "money", has_own_unit=False)
    elif after["unit"]:
        unit = CHINESE_UNITS.get(after["unit"], "money")
        yield from _measured(text, number, values, weight, sign or unit, after, span, is_vague)
    elif after["more"]:
        yield Quantity("number", (value + 0.5,), span, PAIRED)
    elif after["times"]:
        times = value + 0.5 if after["half_more"] else value
        yield Quantity("number", (times, times + 1), span, weight)
    else:
        if after["classifier"] in _CLASSIFIERS_OF_PAIRS:
            values = (*values, 2 * value)
        is_counted = value > 1 and not is_vague and "几" not in number
        yield Quantity("number", values, span, max(weight, PAIRED) if is_counted else weight, sign)


def _all_values(decades: str) -> list[float]:
    """Return the values of all numbers of a text such as 七八十年代和90."""
    return [value for match in re.finditer(_SHORT_NUMBER, decades) for value in chinese_values(match[0])[:2]]


def _fraction(values: tuple[float, ...], after: re.Match[str], span: tuple[int, int]) -> Iterator[Quantity]:
    """Yield 三分之二 as 2/3, and 二又三分之一 as 7/3."""
    denominator = (chinese_values(after["whole"]) if after["whole"] else values)[0]
    numerator = (chinese_values(after["numerator"]) or (0.0,))[0]
    whole = values[0] if after["whole"] else 0
    if denominator:
        value = rounded(whole + numerator / denominator)
        yield Quantity("fraction", (value,), span, PAIRED)
        yield Quantity("number", (value, denominator, numerator), span, LOOSE)


def _measured(
    text: str,
    number: str,
    values: tuple[float, ...],
    weight: int,
    unit: str,
    after: re.Match[str],
    span: tuple[int, int],
    is_vague: bool,
) -> Iterator[Quantity]:
    """Yield a quantity with a unit, as a year if the unit is 年 and the number is one of a year."""
    value = values[0]
    if unit == "year" and after["unit"] == "年":
        if value >= 1000 and len(number) == 4:
            yield Quantity("year", values, span, SURE, unit, has_own_unit=False)
            return
        if number.isascii() and len(number) == 2 and (value >= 50 or number[0] == "0"):
            century = 1900 if value >= 30 else 2000
            weight = SURE if _YEAR.match(text, after.start()) else PAIRED
            yield Quantity("year", (value, century + value), span, weight, unit)
            return
    if after["half"] or "半" in after["unit"]:
        yield Quantity("number", (value + 0.5,), span, PAIRED, unit)
        if value.is_integer() if isinstance(value, float) else True:
            yield Quantity("number", values, span, LOOSE, unit)
        return
    if after["tail"]:
        tail = "".join(str(_DIGIT_VALUES.get(char, char)) for char in after["tail"])
        yield Quantity("number", (float(f"{int(value)}.{tail}"),), span, PAIRED, unit)
        yield Quantity("number", (value, float(tail)), span, LOOSE)
        return
    if is_currency(unit) or unit == PERCENT or value > 1:
        weight = weight if is_vague or "几" in number else max(weight, PAIRED)
    if after["unit"] == "元" and number in tuple(_ONE_TO_NINE):  # 三元 may be ternary
        yield Quantity("number", values, span, weight, "money", has_own_unit=False)
        return
    yield Quantity("number", values, span, weight, unit, has_own_unit="点" not in after["unit"])


def _weight(text: str, match: re.Match[str], value: float) -> int:
    """Return how surely a translation has a number."""
    number, start = match["number"], match.start("number")
    if (match["before"] and match["before"] in "几数上成好") or "几" in number:
        after = _AFTER.match(text, match.end())
        return LIKELY if value >= 100 or (after and after["unit"]) else LOOSE
    if number[0].isdigit():
        behind = text[match.end() : match.end() + 1]
        if NAME_BEFORE.search(text, max(0, start - 20), start) or (behind.isascii() and behind.isalpha()):
            return LOOSE
        return SURE if len(number) > 1 else PAIRED if value > 1 else LIKELY
    if len(number) == 1:
        return LIKELY if value > 1 else LOOSE
    return PAIRED if value > 10 else LIKELY


_EITHER = re.compile("(?:一两|一二|二三|两三|三四|三五|四五|五六|六七|七八|八九)(?![一二三四五六七八九])")  # one or two
_TOKEN = re.compile(rf"{DIGITS}|.")


def chinese_values(number: str) -> tuple[float, ...]:
    """Return the values that a numeral may have: 三万五 is 35,000; 三四百 is 300 or 400; 一九九八 is 1998."""
    if len(number) == 1 and number in _DIGIT_VALUES:
        return (_DIGIT_VALUES[number],)
    if number.isascii():
        return (rounded(float(number.replace(",", ""))),)
    number = number.strip("多余几来")
    tokens = _TOKEN.findall(number)
    if all(token in _DIGIT_VALUES for token in tokens):
        digits = [_DIGIT_VALUES[token] for token in tokens]
        joined = float("".join(map(str, digits)))
        is_either = len(digits) == 2 and 0 < digits[1] - digits[0] <= 2  # 三四, 三五
        return (*map(float, digits), joined) if is_either else (joined,)
    for index in range(len(tokens) - 1):  # 三四百, 十五六
        first, second = tokens[index], tokens[index + 1]
        if first in _DIGIT_VALUES and second in _DIGIT_VALUES and "零" not in (first, second) and "点" not in tokens:
            either = tokens[:index] + tokens[index + 1 :], tokens[: index + 1] + tokens[index + 2 :]
            return tuple(_scaled_value(one) for one in reversed(either))
    return (_scaled_value(tokens),)


def _scaled_value(tokens: list[str]) -> float:
    """Return the value of a numeral of digits and scales."""
    parts: list[float] = []
    index = 0
    while index < len(tokens):
        token = tokens[index]
        if token == "点":
            digits = "".join(str(_DIGIT_VALUES[char]) for char in tokens[index + 1 :] if char in _DIGIT_VALUES)
            end = index + 1
            while end < len(tokens) and tokens[end] in _DIGIT_VALUES:
                end += 1
            parts = [*(parts or [0.0])[:-1], (parts or [0.0])[-1] + float(f"0.{digits[: end - index - 1] or 0}")]
            index = end
            continue
        if token in _SCALES:
            scale = _SCALES[token]
            below = 0.0
            while parts and parts[-1] < scale:
                below += parts.pop()
            parts.append((below or 1.0) * scale)
        elif token[0].isdigit():
            parts.append(float(token.replace(",", "")))
        elif _DIGIT_VALUES.get(token):
            is_short = len(tokens) > 2 and index == len(tokens) - 1 and tokens[index - 1] in "百千万亿"
            parts.append(_DIGIT_VALUES[token] * (_SCALES[tokens[index - 1]] / 10 if is_short else 1))
        index += 1
    return rounded(sum(parts))
