"""Made-up training text for the Chinese ↔ English model, from the corpora and a seed; the same bytes every time.

    python recipes/zh_en_corpora.py DATA --out WORK/made

- `noisy-en.tsv`, `noisy-zh.tsv`: pairs with one side as people type it (zh_en_noise.py). That side is a source to
  learn from, never a target.
- `words.tsv`: dictionary words with one translation each (zh_en_words.py).
- `spans.tsv`: pairs with placeholders, or with tags around words that translate each other (`tokenizer.spans`).
- `named.tsv`: sentences whose names are replaced by other names of the same kind.
- `counted.tsv`: sentences with amounts, money, dates, times and shares that are equal by value.
"""

from __future__ import annotations

import argparse
import lzma
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import chain, islice
from pathlib import Path

from pypinyin import lazy_pinyin  # type: ignore[import-untyped]
from zh_en_noise import ENGLISH_NOISES, Homophones, Noise, chinese_noises
from zh_en_words import one_gloss_each

from sixfold.text.tokenizer import span_tokens

Pair = tuple[str, str]  # Chinese, English
OWN = Path(__file__).parent / "corpora"  # pairs written for this model
TYPOS = "typos-*.tsv"  # those with mistakes on one side
SPANS = 8  # of each kind, as recipes/zh-en-first.toml has them
GENERAL = (
    "written", "tatoeba", "phrases", "commonvoice", "wiki_core", "wikinews", "wiki_en", "textbooks", "wiki_zh_core",
    "wiki_zh", "xcopa", "storybooks", "tico19", "cdda",
)  # fmt: skip
SHORT = ("phrases", "written", "tatoeba")  # what people type without care
TECHNICAL = ("lctt", "mdn", "pydocs", "k8s", "tfdocs", "ethereum")
NAMES = ("full_names", "places", "names")  # words that a span may stand for
EMOJI = "😀😂🤣😊😍😭😅🙏👍🎉🔥💪❤️🤔😴🥳🚀✨"


def read(data: Path, names: Iterable[str]) -> Iterator[Pair]:
    for name in names:
        with lzma.open(data / "train" / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
            for line in file:
                chinese, _, english = line.rstrip("\n").partition("\t")
                if chinese and english:
                    yield chinese, english


def read_own() -> Iterator[Pair]:
    """Read the pairs that were written for this model, without those that have mistakes already."""
    for path in sorted(set(OWN.glob("*.tsv")) - set(OWN.glob(TYPOS))):
        for line in path.read_text(encoding="utf-8").splitlines():
            chinese, _, english = line.partition("\t")
            yield chinese, english


# --- As people type ---------------------------------------------------------------------------------------------------


def noisy(pairs: Iterable[Pair], side: int, kinds: Sequence[Noise], chance: random.Random) -> Iterator[Pair]:
    """Yield the pairs whose source a noise changes; one in twenty has an emoji at the end of both sides."""
    for pair in pairs:
        sides = list(pair)
        sides[side] = chance.choice(kinds)(sides[side], chance)
        if chance.random() < 0.05:
            emoji = chance.choice(EMOJI)
            sides = [f"{text} {emoji}" for text in sides]
        if sides[side] != pair[side] and all(text.strip() for text in sides):
            yield sides[0], sides[1]


def sound(text: str) -> str:
    """Return the reading of a Chinese text in pinyin, without tones."""
    return " ".join(lazy_pinyin(text))


# --- Spans ------------------------------------------------------------------------------------------------------------

COPIED = re.compile(r"(?<![A-Za-z\d])(?:[A-Za-z][\w./:@+-]*\w|\d+(?:[.,:]\d+)*%?)(?![A-Za-z\d])", re.ASCII)


def lexicon(pairs: Iterable[Pair]) -> dict[str, set[str]]:
    """Chinese words of two to eight characters, and the English words or phrases that translate them."""
    found: dict[str, set[str]] = {}
    for chinese, english in pairs:
        english = re.sub(r"^(?:to|an?|the) ", "", english)
        if 2 <= len(chinese) <= 8 and 3 <= len(english) <= 30 and not re.search(r"[();,]|\bsb\b|\bsth\b", english):
            found.setdefault(chinese, set()).add(english)
    return found


def matches(pair: Pair, words: Mapping[str, set[str]]) -> list[Pair]:
    """Parts of both sides that translate each other, each once in its side and none within another."""
    chinese, english = pair
    found = [(each, each) for each in COPIED.findall(english)]
    at = 0
    while at < len(chinese):
        for size in range(8, 1, -1):
            word = chinese[at : at + size]
            known = [each for each in words.get(word, ()) if re.search(rf"\b{re.escape(each)}\b", english)]
            if len(word) == size and known:
                found.append((word, max(known, key=len)))
                at += size - 1
                break
        at += 1
    once = [pair for pair in dict.fromkeys(found) if chinese.count(pair[0]) == 1 and english.count(pair[1]) == 1]
    return [
        one for one in once if not any(one != other and (one[0] in other[0] or one[1] in other[1]) for other in once)
    ]


def with_spans(pair: Pair, words: Mapping[str, set[str]], chance: random.Random) -> Pair | None:
    """One to three matching parts become placeholders or get tags; sometimes the whole sentence gets tags."""
    found = matches(pair, words)
    placeholders, opening, closing = (span_tokens(SPANS)[begin : begin + SPANS] for begin in range(0, 3 * SPANS, SPANS))
    if not found:
        return None
    chosen = chance.sample(found, min(len(found), chance.choice((1, 1, 2, 2, 3))))
    chosen.sort(key=lambda each: pair[0].index(each[0]))
    numbers = sorted(chance.sample(range(SPANS), len(chosen)))
    sides = list(pair)
    for number, parts in zip(numbers, chosen, strict=True):
        is_name = parts[0] == parts[1] or parts[1][:1].isupper()
        hidden = is_name and chance.random() < 0.7
        for side in (0, 1):
            new = placeholders[number] if hidden else opening[number] + parts[side] + closing[number]
            sides[side] = sides[side].replace(parts[side], new, 1)
    if chance.random() < 0.05 and (spare := sorted(set(range(SPANS)) - set(numbers))):
        sides = [opening[spare[0]] + text + closing[spare[0]] for text in sides]
    return sides[0], sides[1]


# --- Names ------------------------------------------------------------------------------------------------------------


def renamed(pairs: Iterable[Pair], kinds: Sequence[Sequence[Pair]], chance: random.Random) -> Iterator[Pair]:
    """Pairs that name somebody or some place, with another name of the same list."""
    kind_of = {
        pair: number for number, kind in enumerate(kinds) for pair in kind if len(pair[0]) > 1 and len(pair[1]) > 3
    }
    words: dict[str, list[Pair]] = {}
    for pair in kind_of:
        words.setdefault(pair[0][:2], []).append(pair)
    for chinese, english in pairs:
        known = [pair for at in range(len(chinese)) for pair in words.get(chinese[at : at + 2], ())
                 if chinese.startswith(pair[0], at)]  # fmt: skip
        known = [
            pair
            for pair in known
            if chinese.count(pair[0]) == 1 and len(re.findall(rf"\b{re.escape(pair[1])}\b", english)) == 1
        ]
        if known:
            old = max(known, key=lambda pair: len(pair[0]))
            new = chance.choice(kinds[kind_of[old]])
            yield chinese.replace(old[0], new[0]), english.replace(old[1], new[1])


# --- Numbers ----------------------------------------------------------------------------------------------------------

DIGITS = "零一二三四五六七八九"
MONTHS = [date(2000, month, 1).strftime("%B") for month in range(1, 13)]
DAY_PARTS = ((6, "凌晨"), (12, "上午"), (13, "中午"), (18, "下午"), (24, "晚上"))  # until which hour
SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]


def decimal(value: int, unit: int) -> str:
    """value / unit without loss or trailing zeros, in plain digits."""
    whole, rest = divmod(value, unit)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}" if digits else str(whole)


def spelt(value: int) -> str:
    """A number below 100,000,000 in Chinese characters."""
    if value >= 10_000:
        upper, rest = divmod(value, 10_000)
        return spelt(upper) + "万" + ("" if not rest else ("零" if rest < 1000 else "") + spelt(rest))
    text, skipped = "", False
    for unit, name in ((1000, "千"), (100, "百"), (10, "十"), (1, "")):
        digit, value = divmod(value, unit)
        if digit:
            text += ("零" if skipped and text else "") + DIGITS[digit] + name
        skipped = not digit
    return re.sub("^一十", "十", text) or "零"


def chinese_number(value: int, chance: random.Random) -> str:
    if value >= 10**8:
        return f"{decimal(value, 10**8)}亿"
    if value >= 10**4:
        forms = [f"{decimal(value, 10**4)}万"] * 3 + [f"{value:,}", str(value)]
        return chance.choice([*forms, spelt(value)] if value % 1000 == 0 else forms)
    return chance.choice([str(value), str(value), f"{value:,}", spelt(value)])


def english_number(value: int, chance: random.Random) -> str:
    for unit, name in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if value >= unit:
            return f"{decimal(value, unit)} {name}"
    return SMALL[value] if value < len(SMALL) and chance.random() < 0.5 else f"{value:,}"


def amount(chance: random.Random) -> int:
    """One to four leading digits and zeros behind them, so that both languages write it without loss."""
    return chance.randrange(1, 10 ** chance.randint(1, 4)) * 10 ** chance.randint(0, 9)


COUNTED = (
    ("该市人口为{n}。", "The city has a population of {n}."),
    ("去年共有{n}人参观了这座博物馆。", "Last year {n} people visited the museum."),
    ("公司今年卖出了{n}台手机。", "The company sold {n} phones this year."),
    ("这项工程耗资{n}元。", "The project cost {n} yuan."),
    ("该公司去年亏损{n}元。", "The company lost {n} yuan last year."),
    ("他欠银行{n}美元。", "He owes the bank ${n}."),
    ("政府将投资{n}美元改善交通。", "The government will invest ${n} to improve transport."),
    ("这幅画以{n}英镑成交。", "The painting sold for £{n}."),
    ("这份合同价值{n}欧元。", "The contract is worth €{n}."),
    ("太阳距离地球约{n}公里。", "The sun is about {n} kilometres from the earth."),
    ("全国有{n}名学生参加了考试。", "Nationwide, {n} students took the exam."),
    ("视频的播放量超过{n}次。", "The video has been viewed more than {n} times."),
    ("工厂每天生产{n}吨钢。", "The factory produces {n} tonnes of steel a day."),
    ("地震造成{n}人无家可归。", "The earthquake left {n} people homeless."),
    ("这本书已售出{n}册。", "The book has sold {n} copies."),
    ("利润从{n}元增加到{m}元。", "Profits rose from {n} yuan to {m} yuan."),
    ("{n}", "{n}"),
    ("{n}元", "{n} yuan"),
    ("{n}美元", "${n}"),
    ("{n}人", "{n} people"),
)
SHARED = (
    ("价格上涨了{p}。", "Prices rose by {p}."),
    ("失业率下降到{p}。", "The unemployment rate fell to {p}."),
    ("只有{p}的受访者表示同意。", "Only {p} of respondents agreed."),
    ("这家公司占有{p}的市场份额。", "The company has {p} of the market."),
    ("销售额同比下降{p}。", "Sales were down {p} from a year earlier."),
    ("{p}", "{p}"),
)
DATED = (
    ("会议将于{d}举行。", "The meeting will be held on {d}."),
    ("他出生于{d}。", "He was born on {d}."),
    ("{d}", "{d}"),
    ("该法律自{d}起生效。", "The law takes effect on {d}."),
    ("请在{d}{t}之前回复。", "Please reply by {t} on {d}."),
    ("飞机{t}起飞。", "The plane takes off at {t}."),
    ("商店{t}关门。", "The shop closes at {t}."),
    ("{t}", "{t}"),
)


def numbers_of(chance: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """Values for the templates, in Chinese and in English: amounts n and m, a share p, a date d and a time t."""
    chinese: dict[str, str] = {}
    english: dict[str, str] = {}
    for name in "nm":
        value = amount(chance)
        chinese[name], english[name] = chinese_number(value, chance), english_number(value, chance)
    share = chance.choice((str(chance.randint(1, 100)), decimal(chance.randrange(1, 1000), 10)))
    chinese["p"] = chance.choice((f"{share}%", f"百分之{share}"))
    english["p"] = chance.choice((f"{share}%", f"{share} percent"))
    day = date(1850, 1, 1) + timedelta(days=chance.randrange(180 * 365))
    month = MONTHS[day.month - 1]
    chinese["d"] = f"{day.year}年{day.month}月{day.day}日"
    english["d"] = chance.choice((f"{month} {day.day}, {day.year}", f"{day.day} {month} {day.year}"))
    hour, minute = chance.randrange(24), chance.choice((0, 0, 15, 30, 45, chance.randrange(60)))
    on_the_dial = (hour - 1) % 12 + 1
    if chance.random() < 0.5:
        chinese["t"] = english["t"] = f"{hour:02}:{minute:02}"
    else:
        part = next(name for end, name in DAY_PARTS if hour < end)
        past = "" if not minute else "半" if minute == 30 else f"{minute}分"
        chinese["t"] = f"{part}{on_the_dial}点{past}"
        clock = f"{on_the_dial}:{minute:02}" if minute else str(on_the_dial)
        english["t"] = f"{clock} {'a.m.' if hour < 12 else 'p.m.'}"
    return chinese, english


def counted(count: int, chance: random.Random) -> Iterator[Pair]:
    for _ in range(count):
        chinese, english = chance.choice(chance.choice((COUNTED, COUNTED, SHARED, DATED)))
        values = numbers_of(chance)
        yield chinese.format(**values[0]), re.sub(r"([ap]\.m\.)\.", r"\1", english.format(**values[1]))


def write(path: Path, pairs: Iterable[Pair]) -> None:
    building = path.with_suffix(".building")
    count = 0
    with building.open("w", encoding="utf-8", newline="\n") as file:
        for pair in pairs:
            count += file.write("\t".join(pair) + "\n") > 0
    building.replace(path)
    print(f"{path.name}: {count:,} pairs", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pairs", type=int, default=60_000, help="of each file, at most")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    own = list(read_own())
    general = [*read(args.data, GENERAL), *own]
    technical = list(read(args.data, TECHNICAL))

    def sample(pairs: Sequence[Pair], name: str) -> tuple[list[Pair], random.Random]:
        """An even sample, and the chance that makes one file; each has its own."""
        chance = random.Random(f"{args.seed} {name}")
        return chance.sample(pairs, min(len(pairs), args.pairs)), chance

    entries = list(read(args.data, ["cedict"]))
    write(args.out / "words.tsv", one_gloss_each(entries, chain(general, technical)))
    homophones = Homophones((pair[0] for pair in general), (word for word, _ in entries), sound)
    for side, (language, kinds) in enumerate((("zh", chinese_noises(homophones)), ("en", ENGLISH_NOISES))):
        some, chance = sample(general, f"noisy-{language}")
        short = [*read(args.data, SHORT), *own]
        write(args.out / f"noisy-{language}.tsv", noisy([*some, *short, *short], side, kinds, chance))
    words = lexicon(read(args.data, ["cedict", *NAMES]))
    some, chance = sample([*general, *chance.sample(technical, min(len(technical), len(general) // 2))], "spans")
    write(args.out / "spans.tsv", filter(None, (with_spans(pair, words, chance) for pair in some)))
    people = [pair for pair in read(args.data, ["full_names"]) if "·" in pair[0] and " " in pair[1]]
    kinds = (people, list(read(args.data, ["places"])))
    write(args.out / "named.tsv", islice(renamed(general, kinds, sample([], "named")[1]), args.pairs))
    write(args.out / "counted.tsv", dict.fromkeys(counted(args.pairs // 2, sample([], "counted")[1])))


if __name__ == "__main__":
    main()
