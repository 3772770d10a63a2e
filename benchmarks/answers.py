"""What the benchmarks with accepted answers share: normal form, patterns, lines of training pairs, translation, counts.

Two texts are the same if their normal forms are. The normal form has no case, accents, punctuation, emoji, articles
(a, an, the) or spaces; full-width letters are plain ones; "don't" is "do not"; 您 is 你 and 哪儿 is 哪里.

Accepted answers are patterns, separated by " / ". In a pattern, `(a|b)` is either and `[a|b]` either or nothing:
"how are you [doing] [today]" accepts four answers. An answer is right if a pattern matches the whole of it.
"""

from __future__ import annotations

import argparse
import json
import lzma
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sixfold import Translator
from sixfold.text.encodings import read_lines

DIRECTIONS = ("zh-en", "en-zh")
OWN_PAIRS = Path(__file__).parents[1] / "recipes" / "corpora"  # written for the model that ships
SEPARATOR = " / "
ARTICLES = {"a", "an", "the"}
CONTRACTIONS = tuple(
    (re.compile(pattern), whole)
    for pattern, whole in (
        (r"\bcan't\b", "can not"),
        (r"\bwon't\b", "will not"),
        (r"n't\b", " not"),
        (r"\bi'm\b", "i am"),
        (r"\blet's\b", "let us"),
        (r"\b(it|that|this|what|where|he|she|there|here|how|who|when|why)'s\b", r"\1 is"),
        (r"'re\b", " are"),
        (r"'ll\b", " will"),
        (r"'ve\b", " have"),
        (r"'d\b", " would"),
    )
)
SAME_CHINESE = (
    ("您", "你"),
    ("哪儿", "哪里"),
    ("这儿", "这里"),
    ("那儿", "那里"),
    ("点儿", "点"),
    ("会儿", "会"),
    ("帐", "账"),
)
# A mark that stays stands between digits, as in 7.2 and 3:30.
MARKS = re.compile(r"(?<=\d),(?=\d{3})|(?P<other>(?<!\d)[.:]|[.:](?!\d)|[^\w.:%]|_)")
CLOSING = {"(": ")", "[": "]"}
TOKENS = re.compile(r"[()\[\]|]|[^()\[\]|]+")


def words(text: str) -> str:
    """The normal form with its words apart."""
    text = unicodedata.normalize("NFKD", text).casefold().replace("’", "'")
    text = "".join(char for char in text if not unicodedata.combining(char))
    for pattern, whole in CONTRACTIONS:
        text = pattern.sub(whole, text)
    for variant, usual in SAME_CHINESE:
        text = text.replace(variant, usual)
    text = MARKS.sub(lambda match: " " if match["other"] else "", text)
    return " ".join(word for word in text.split() if word not in ARTICLES)


def normal_form(text: str) -> str:
    return words(text).replace(" ", "")


def expression(pattern: str) -> str:
    """The regular expression, over `words` or `normal_form` of a text, that a pattern stands for."""
    parts: list[str] = []
    closing: list[str] = []  # of the groups that are open
    for token in TOKENS.findall(pattern):
        if token in CLOSING:
            parts.append("(?:")
            closing.append(CLOSING[token])
        elif token in CLOSING.values():
            if not closing or closing.pop() != token:
                raise ValueError(f"{pattern}: {token} without its opening")
            parts.append(")" if token == ")" else ")?")
        elif token == "|":
            if not closing:
                raise ValueError(f"{pattern}: | outside of ( ) and [ ]")
            parts.append("|")
        else:
            parts.extend(f"{re.escape(word)} ?" for word in words(token).split())
    if closing:
        raise ValueError(f"{pattern}: {closing[-1]} is missing")
    return "".join(parts)


def is_accepted(translation: str, accepted: str) -> bool:
    """Whether one of the accepted answers is the whole translation."""
    text = normal_form(translation)
    return any(re.fullmatch(expression(pattern), text) for pattern in accepted.split(SEPARATOR))


def stands_in(translation: str, accepted: str) -> bool:
    """Whether one of the accepted forms stands in the translation; a Latin one as whole words."""
    text = words(translation)
    return any(
        re.search(f"(?<![a-z])(?:{expression(pattern)})(?![a-z])", text) for pattern in accepted.split(SEPARATOR)
    )


@dataclass(frozen=True)
class Item:
    """One text to translate, what its translation must be, and what to look for in `train/`."""

    kind: str
    direction: str
    source: str
    accepted: str
    entry: str = ""  # left out: the source

    @property
    def key(self) -> str:
        return normal_form(self.entry or self.source)


def read_items(path: Path) -> list[Item]:
    """Items of a file of tab-separated lines, whose columns are the fields of `Item`."""
    return [Item(*line.split("\t")) for line in read_lines(path)]


@dataclass
class Count:
    right: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.right}/{self.total}" if self.total else "–"


@dataclass
class Result:
    item: Item
    translation: str
    is_right: bool
    in_train: bool = False


@dataclass
class Table:
    """Counts by kind and direction, those in `train/` apart."""

    counts: dict[tuple[str, str, bool], Count] = field(default_factory=dict)

    def add(self, result: Result) -> None:
        for kind in (result.item.kind, "all"):
            for direction in (result.item.direction, "both"):
                count = self.counts.setdefault((kind, direction, result.in_train), Count())
                count.total += 1
                count.right += result.is_right

    def count(self, kind: str, direction: str, *in_train: bool) -> Count:
        counts = [self.counts.get((kind, direction, each), Count()) for each in in_train]
        return Count(sum(each.right for each in counts), sum(each.total for each in counts))

    def lines(self, with_train: bool) -> list[str]:
        columns = [("zh→en", "zh-en"), ("en→zh", "en-zh"), ("both", "both")]
        header = ["", *(name for name, _ in columns), *(["in train/", "not in train/"] if with_train else [])]
        lines = [f"| {' | '.join(header)} |", "|---" * len(header) + "|"]
        kinds = dict.fromkeys(kind for kind, _, _ in self.counts if kind != "all")
        for kind in (*kinds, "all"):
            cells = [str(self.count(kind, direction, True, False)) for _, direction in columns]
            if with_train:
                cells += [str(self.count(kind, "both", True)), str(self.count(kind, "both", False))]
            lines.append(f"| {kind.replace('_', ' ')} | {' | '.join(cells)} |")
        whole = self.count("all", "both", True, False)
        return [*lines, f"{whole.right} of {whole.total} right, {whole.right / max(1, whole.total):.1%}"]


def lines_in_train(data: Path, keys: set[str], own: Path = OWN_PAIRS) -> set[str]:
    """Those normal forms that are a whole side of a pair in DATA/train/*.tsv.xz or in the files of `own`."""
    longest = 3 * max(map(len, keys), default=0) + 20  # no longer line has so short a normal form, but for rare ones
    matches: set[str] = set()
    for path in (*sorted((data / "train").glob("*.tsv.xz")), *sorted(own.glob("*.tsv"))):
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8", newline="\n") as file:
            sides = (side for line in file for side in line.rstrip("\n").split("\t") if len(side) <= longest)
            matches.update(key for key in map(normal_form, sides) if key in keys)
    return matches


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("data", type=Path, nargs="?", help="count what stands in the training pairs apart")
    parser.add_argument("--model", type=Path, help="left out: the one that ships")
    parser.add_argument("--json", type=Path, help="write every translation and its judgement to this file")
    parser.add_argument("--show", action="store_true", help="print what is wrong")


def translate(items: Sequence[Item], model: Path | None) -> list[str]:
    """Translations by the default settings, on the CPU."""
    translations = [""] * len(items)
    with Translator(model, "cpu") as translator:
        for direction in DIRECTIONS:
            places = [place for place, item in enumerate(items) if item.direction == direction]
            texts = [items[place].source for place in places]
            source, target = direction.split("-")
            for place, result in zip(places, translator.translate_batch(texts, source, target), strict=True):
                translations[place] = result.text
    return translations


def run(items: Sequence[Item], is_right: Callable[[Item, str], bool], args: argparse.Namespace) -> None:
    """Translate all items, judge the translations, and print and write the counts."""
    train_keys = lines_in_train(args.data, {item.key for item in items}) if args.data else set()
    results = [
        Result(item, text, is_right(item, text), item.key in train_keys)
        for item, text in zip(items, translate(items, args.model), strict=True)
    ]
    table = Table()
    for result in results:
        table.add(result)
    if args.show:
        show(result for result in results if not result.is_right)
    print("\n".join(table.lines(bool(args.data))))
    if args.json:
        rows = [asdict(result.item) | {key: value for key, value in vars(result).items() if key != "item"}
                for result in results]  # fmt: skip
        totals = Counter(result.item.direction for result in results if result.is_right)
        written = {"right": sum(totals.values()), "total": len(results), "right_by_direction": totals, "items": rows}
        args.json.write_text(json.dumps(written, ensure_ascii=False, indent=1), encoding="utf-8")


def show(results: Iterable[Result]) -> None:
    for result in results:
        item = result.item
        print(f"{item.kind} {item.direction}: {item.source} → {result.translation}  (accepted: {item.accepted[:80]})")
