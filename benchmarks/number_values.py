"""How many of 500 sentences with numbers, money, dates, times and measures keep their values in translation.

The sentences are from a fixed seed, 250 in either direction. A translation is right if it has every value of its
source, however it is written: 12.5亿 may become 1.25 billion, 1,250 million or 1,250,000,000 (`quantities.py`). Money
must keep its currency too. Nothing else about the translation is judged.

    python benchmarks/number_values.py                      # the model that ships
    python benchmarks/number_values.py DATA --show          # what stands in DATA/train counted apart; what is wrong
    python benchmarks/number_values.py --model MODEL --json results.json
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from fractions import Fraction

from answers import DIRECTIONS, Item, add_options, run
from quantities import ONES, TENS, currencies, dates, numbers, percents, times

SEED = 20
# Sentences of each kind in either direction.
COUNTS = {"count": 60, "money": 60, "percent": 30, "date": 35, "time": 30, "measure": 35}
# {n} {m}: whole numbers, {c} money, {p} {q} percentages, {d} date, {y} month, {t} time, {x} measure, {z} speed.
CHINESE = {
    "count": (
        "这款游戏的注册玩家已经达到{n}名。",
        "全省有{n}户农民用上了自来水。",
        "这次活动一共收到了{n}封来信。",
        "仓库里还剩{n}箱口罩。",
        "据说那座森林里有{n}棵树。",
        "每年约有{n}只候鸟飞过这片湿地。",
        "今年的毕业生比去年多了{n}人。",
        "他的粉丝数从{n}变成了{m}。",
        "这台机器一小时能数{n}张纸币。",
        "人脑里大约有{n}个神经细胞。",
        "网站每天的访问量是{n}次。",
        "东部有{n}名居民，西部有{m}名居民。",
    ),
    "money": (
        "爷爷把{c}捐给了母校。",
        "他们花了{c}装修办公室。",
        "这家初创企业刚刚拿到{c}的融资。",
        "保险公司赔了他{c}。",
        "修这座桥一共用了{c}。",
        "她中了{c}的大奖。",
        "我们今年的预算只有{c}。",
        "法院判他赔偿{c}。",
        "听说那套别墅卖到了{c}。",
        "集团上半年的收入为{c}。",
        "球队用{c}买下了那名前锋。",
    ),
    "percent": (
        "考试的通过率是{p}。",
        "电池还剩{p}的电。",
        "水果的价格比上个月贵了{p}。",
        "我们班有{p}的同学戴眼镜。",
        "今天所有鞋子都便宜{p}。",
        "海洋覆盖了地球表面的{p}。",
        "支持率从{p}变成了{q}。",
        "这种果汁含糖{p}。",
    ),
    "date": (
        "我奶奶的生日是{d}。",
        "这张照片拍摄于{d}。",
        "新机场从{d}开始使用。",
        "他们在{d}领了结婚证。",
        "签证的有效期到{d}为止。",
        "{d}那天下了一场大雪。",
        "这本杂志创刊于{y}。",
        "他{y}搬到了这座城市。",
    ),
    "time": (
        "我每天{t}起床。",
        "下一班船{t}开。",
        "电影{t}开始，别迟到。",
        "牙医约我{t}过去。",
        "我们{t}在门口集合吧。",
        "他们的火车{t}到站。",
        "昨天他{t}才睡。",
    ),
    "measure": (
        "从我家到公司有{x}公里。",
        "这条蛇长{x}米。",
        "这只西瓜重{x}公斤。",
        "明天的最高气温是{x}摄氏度。",
        "这个水箱能装{x}升水。",
        "那块地有{n}平方米。",
        "这艘船能装{n}吨货。",
        "他一口气游了{x}公里。",
        "飞机正以每小时{z}公里的速度飞行。",
    ),
}
ENGLISH = {
    "count": (
        "The game already has {n} registered players.",
        "About {n} birds cross this lake every spring.",
        "The charity received {n} letters from children.",
        "There are {n} boxes of masks left in the warehouse.",
        "Our website gets {n} visits a day.",
        "They say that the forest has {n} trees.",
        "His channel went from {n} followers to {m}.",
        "More than {n} tourists came to the island this summer.",
        "The brain has roughly {n} nerve cells.",
        "The east has {n} residents and the west has {m}.",
        "The union has {n} members.",
        "Farmers in the north keep {n} sheep.",
    ),
    "money": (
        "Grandpa gave {c} to his old school.",
        "They spent {c} on the new office.",
        "The start-up has just raised {c}.",
        "The insurance company paid him {c}.",
        "She won {c} in the lottery.",
        "Our budget for this year is only {c}.",
        "The court ordered him to pay {c}.",
        "I heard the villa went for {c}.",
        "The group's income in the first half was {c}.",
        "The club bought the striker for {c}.",
        "Building the bridge took {c}.",
    ),
    "percent": (
        "The pass rate of the exam is {p}.",
        "My battery is at {p}.",
        "Fruit is {p} more expensive than last month.",
        "In our class {p} of the pupils wear glasses.",
        "All shoes are {p} off today.",
        "Oceans cover {p} of the surface.",
        "Support for him went from {p} to {q}.",
        "This juice contains {p} sugar.",
    ),
    "date": (
        "My grandmother's birthday is {d}.",
        "This photo was taken on {d}.",
        "The new airport has been in use since {d}.",
        "They got married on {d}.",
        "Your visa is valid until {d}.",
        "It snowed heavily on {d}.",
        "The magazine first came out in {y}.",
        "He moved to this city in {y}.",
    ),
    "time": (
        "I get up at {t} every day.",
        "The next boat leaves at {t}.",
        "The film starts at {t}, so don't be late.",
        "My appointment with the dentist is at {t}.",
        "Let's meet at the gate at {t}.",
        "Their train gets in at {t}.",
        "He didn't go to bed until {t}.",
    ),
    "measure": (
        "It is {x} kilometres from my home to the office.",
        "The snake is {x} metres long.",
        "This watermelon weighs {x} kilograms.",
        "Tomorrow's high will be {x} degrees Celsius.",
        "The tank holds {x} litres of water.",
        "The plot measures {n} square metres.",
        "The ship can carry {n} tonnes of cargo.",
        "She swam {x} kilometres without a break.",
        "The plane is flying at {z} kilometres per hour.",
    ),
}
CURRENCY = {
    "yuan": ("{}元", "{} yuan"),
    "dollars": ("{}美元", "${}"),
    "euros": ("{}欧元", "€{}"),
    "pounds": ("{}英镑", "{} pounds"),
    "yen": ("{}日元", "{} yen"),
}
Written = tuple[str, str]  # the value as the sentence has it, and what to look for in its translation


def exact(value: int, unit: int) -> str:
    """How often a unit goes into a value, as a decimal number without loss."""
    quotient = Fraction(value, unit)
    return str(quotient.numerator) if quotient.denominator == 1 else f"{float(quotient):.12g}"


def whole_number(chance: random.Random, smallest: int = 3, largest: int = 12) -> int:
    """A number with one to three digits that are not zero in front, and `smallest` to `largest` digits behind."""
    return chance.randrange(1, 10 ** chance.choice((1, 2, 2, 3))) * 10 ** chance.randint(smallest, largest - 2)


def in_characters(value: int) -> str:
    """A whole number below 10**16 as Chinese characters: 35000 is 三万五千, 205 二百零五."""
    for scale, name in ((10**8, "亿"), (10**4, "万")):
        if value >= scale:
            front, rest = divmod(value, scale)
            zero = "零" if 0 < rest < scale // 10 else ""
            return in_characters(front) + name + zero + (in_characters(rest) if rest else "")
    written = ""
    for place, name in zip(str(value).zfill(4), ("千", "百", "十", ""), strict=True):
        written += "零一二三四五六七八九"[int(place)] + (name if place != "0" else "")
    written = re.sub("零+", "零", written).strip("零")
    return re.sub("^一十", "十", written) or "零"


def in_words(value: int) -> str:
    """A whole number below 10**15 as English words."""
    for scale, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand")):
        if value >= scale:
            front, rest = divmod(value, scale)
            return f"{in_words(front)} {name}{' ' + in_words(rest) if rest else ''}"
    if value >= 100:
        hundreds, rest = divmod(value, 100)
        return f"{ONES[hundreds]} hundred{' and ' + in_words(rest) if rest else ''}"
    if value < 20:
        return ONES[value]
    return TENS[value // 10 - 2] + (f"-{ONES[value % 10]}" if value % 10 else "")


def write_number(value: int, language: str, chance: random.Random) -> str:
    """One of the ways in which people write a number."""
    short = len(str(value).rstrip("0")) <= 2 and chance.random() < 0.2
    if language == "zh":
        if short:
            return in_characters(value)
        if value >= 10**12:
            return f"{exact(value, 10**12)}万亿"
        if value >= 10**8:
            front, rest = divmod(value, 10**8)
            if rest and rest % 10**4 == 0 and chance.random() < 0.25:
                return f"{front}亿{rest // 10**4}万"
            return f"{exact(value, 10**8)}亿"
        if value >= 10**4:
            return chance.choice((f"{exact(value, 10**4)}万",) * 3 + (f"{value:,}", str(value)))
        return chance.choice((str(value), f"{value:,}"))
    if short:
        return in_words(value)
    for scale, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if value >= scale:
            return f"{value:,}" if value < 10**9 and chance.random() < 0.2 else f"{exact(value, scale)} {name}"
    return f"{value:,}"


def write_count(language: str, chance: random.Random) -> Written:
    value = whole_number(chance)
    return write_number(value, language, chance), f"number {value}"


def write_money(language: str, chance: random.Random) -> Written:
    value, name = whole_number(chance), chance.choice(list(CURRENCY))
    number, form = write_number(value, language, chance), CURRENCY[name][language == "en"]
    if form[0] in "$€" and not number[0].isdigit():
        form = f"{{}} {name}"
    return form.format(number), f"number {value}; currency {name}"


def write_percent(language: str, chance: random.Random) -> Written:
    value = chance.choice((str(chance.randint(2, 99)), f"{chance.randint(0, 99)}.{chance.randint(1, 9)}"))
    if language == "zh":
        spelt = in_characters(int(value)) if value.isdigit() else value
        return chance.choice((f"{value}%", f"{value}%", f"百分之{spelt}")), f"percent {value}"
    spelt = in_words(int(value)) if value.isdigit() and chance.random() < 0.3 else value
    return chance.choice((f"{value}%", f"{value}%", f"{spelt} percent")), f"percent {value}"


def write_date(language: str, chance: random.Random) -> Written:
    day = date(1900, 1, 1) + timedelta(days=chance.randrange(130 * 365))
    name = day.strftime("%B")
    has_year = chance.random() < 0.7
    if language == "zh":
        written = f"{day.month}月{day.day}{chance.choice('日日号')}"
        if has_year:
            digits = chance.random() < 0.8
            year = str(day.year) if digits else "".join("〇一二三四五六七八九"[int(char)] for char in str(day.year))
            written = (
                f"{year}年{written if digits else in_characters(day.month) + '月' + in_characters(day.day) + '日'}"
            )
    else:
        written = chance.choice((f"{name} {day.day}", f"{day.day} {name}"))
        if has_year:
            written += f", {day.year}" if written[0].isalpha() else f" {day.year}"
    return written, f"date {day.year if has_year else '-'} {day.month} {day.day}"


def write_month(language: str, chance: random.Random) -> Written:
    year, month = chance.randint(1900, 2030), chance.randint(1, 12)
    written = f"{year}年{month}月" if language == "zh" else f"{date(year, month, 1):%B} {year}"
    return written, f"date {year} {month} -"


def write_time(language: str, chance: random.Random) -> Written:
    """A time from 5:00 to 23:59, on a clock of 24 hours or with its half of the day."""
    hour, minute = chance.randint(5, 23), chance.choice((0, 0, 15, 30, 45, 5 * chance.randrange(12)))
    expected = f"time {hour} {minute}"
    if chance.random() < 0.3:
        return f"{hour:02}:{minute:02}", expected
    dial = (hour - 1) % 12 + 1
    if language == "zh":
        part = (
            "早上" if hour < 8 else "上午" if hour < 12 else "中午" if hour == 12 else "下午" if hour < 18 else "晚上"
        )
        if chance.random() < 0.5:
            past = "" if not minute else "半" if minute == 30 else f"{minute}分"
            return f"{part}{dial}点{past}", expected
        past = {0: "", 15: "一刻", 30: "半"}.get(minute, ("零" if minute < 10 else "") + in_characters(minute) + "分")
        return f"{part}{'两' if dial == 2 else in_characters(dial)}点{past}", expected
    if minute == 30 and chance.random() < 0.5:
        part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
        return f"half past {ONES[dial]} {part}", expected
    return f"{dial}:{minute:02} {'a.m.' if hour < 12 else 'p.m.'}" if minute else (
        f"{dial} {'a.m.' if hour < 12 else 'p.m.'}"
    ), expected  # fmt: skip


def write_measure(language: str, chance: random.Random) -> Written:
    value = chance.choice((str(chance.randint(2, 45)), f"{chance.randint(1, 45)}.{chance.randint(1, 9)}"))
    if value.isdigit() and chance.random() < 0.2:
        return (in_characters(int(value)) if language == "zh" else in_words(int(value))), f"number {value}"
    return value, f"number {value}"


def write_speed(language: str, chance: random.Random) -> Written:
    value = chance.randint(61, 99) * 10
    return (in_characters(value) if language == "zh" and chance.random() < 0.3 else str(value)), f"number {value}"


WRITERS: dict[str, Callable[[str, random.Random], Written]] = {
    "n": write_count, "m": write_count, "c": write_money, "p": write_percent, "q": write_percent, "d": write_date,
    "y": write_month, "t": write_time, "x": write_measure, "z": write_speed,
}  # fmt: skip


def sentences(seed: int = SEED) -> Iterator[Item]:
    for direction in DIRECTIONS:
        language = direction[:2]
        chance = random.Random(f"{seed} {direction}")
        for kind, count in COUNTS.items():
            templates = (CHINESE if language == "zh" else ENGLISH)[kind]
            texts: set[str] = set()
            while len(texts) < count:
                template = templates[len(texts) % len(templates)]
                written = {name: WRITERS[name](language, chance) for name in re.findall(r"{(\w)}", template)}
                text = template.format(**{name: value for name, (value, _) in written.items()})
                text = re.sub(r"m\.\.", "m.", text)
                if text not in texts:
                    texts.add(text)
                    yield Item(kind, direction, text, "; ".join(expected for _, expected in written.values()))


def has_values(translation: str, language: str, expected: str) -> bool:
    """Whether all values that are expected, as "number 35000; currency yuan", stand in a translation."""
    for each in expected.split("; "):
        kind, *fields = each.split()
        values = tuple(None if field == "-" else field for field in fields)
        if kind == "currency":
            is_right = fields[0] in currencies(translation)
        elif kind == "date":
            is_right = tuple(int(value) if value else None for value in values) in dates(translation, language)
        elif kind == "time":
            is_right = tuple(map(int, fields)) in times(translation, language)
        else:
            readings = percents(translation, language) if kind == "percent" else numbers(translation, language)
            is_right = Fraction(fields[0]) in readings
        if not is_right:
            return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser)
    run(
        list(sentences()),
        lambda item, text: has_values(text, item.direction[-2:], item.accepted),
        parser.parse_args(),
    )


if __name__ == "__main__":
    main()
