"""The Chinese–English model as it ships: scores on every dev set both ways, and how often it fails outright.

Faults are counted on the dev sets and on lines made up here (numbers, names, lists, shouting, single words, what is
long, what repeats itself): nothing said, a loop, or the wrong script.

    python benchmarks/shipped.py DATA                    # DATA/dev/flores-dev.zh and .en, …; two CPU cores
    python benchmarks/shipped.py DATA --model MODEL --json results.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sixfold import TranslateOptions, Translator
from sixfold.evaluation.scores import score

SETS = ("flores-dev", "wmt17", "tatoeba", "lctt", "mdn", "written")
WAYS = (("zh", "en"), ("en", "zh"))
HAN = re.compile(r"[\u3400-\u9fff]")
LATIN = re.compile(r"[A-Za-z]")
WORD = re.compile(r"(?<!\S)[a-z]{2,}(?!\S)")  # of plain English, not of code
# Words and frames to make lines from: (Chinese, English).
NAMES = (("李伟", "Li Wei"), ("约翰", "John"), ("北京", "Beijing"), ("巴黎", "Paris"), ("张教授", "Professor Zhang"))
THINGS = (("苹果", "apples"), ("书", "books"), ("电脑", "computers"), ("鸡蛋", "eggs"), ("火车票", "train tickets"))
FRAMES = (
    ("{name}买了{count}个{thing}。", "{name} bought {count} {thing}."),
    ("{thing}多少钱？", "How much are the {thing}?"),
    ("请在{hour}:{minute}之前给{name}打电话。", "Please call {name} before {hour}:{minute}."),
    ("{name}说：“我不喜欢{thing}！”", '{name} said, "I don\'t like {thing}!"'),
    ("{thing}，{thing}，还是{thing}", "{thing}, {thing} and more {thing}"),
    ("{name}", "{name}"),
    ("{thing}", "{thing}"),
    ("第{count}章：{thing}", "Chapter {count}: {thing}"),
    ("2026年{month}月{day}日，{name}收到了{count}封邮件。", "On {month}/{day}/2026, {name} received {count} emails."),
    ("- {name}（{count}%）", "- {name} ({count}%)"),
    ("哈哈哈哈哈哈！！！{thing}！！！", "HAHAHAHA!!! {thing}!!!"),
    ("版本 v{count}.{minute} 修复了 {thing} 的问题", "Version v{count}.{minute} fixes the {thing} problem"),
)


def made_up(count: int, side: int, seed: int = 1) -> list[str]:
    """Lines of one language; every tenth is several joined to a long one."""
    chance = random.Random(seed)

    def line() -> str:
        frame, name, thing = (chance.choice(some)[side] for some in (FRAMES, NAMES, THINGS))
        numbers = {"count": chance.randint(2, 5000), "hour": chance.randint(1, 23), "minute": chance.randint(10, 59)}
        return frame.format(name=name, thing=thing, month=chance.randint(1, 12), day=chance.randint(1, 28), **numbers)

    joint = " " if side else ""
    return [joint.join(line() for _ in range(5)) if number % 10 == 9 else line() for number in range(count)]


def fault(source: str, said: str, target: str) -> str:
    """The name of what is plainly wrong, or nothing."""
    if not source.strip():
        return ""
    if not said.strip():
        return "empty"
    if loops(said) and not loops(source):
        return "loop"
    han, latin = len(HAN.findall(said)), len(LATIN.findall(said))
    if target == "en" and han and HAN.search(source) and han * 3 > latin:
        return "script"
    if target == "zh" and not han and len(WORD.findall(source)) >= 4:
        return "script"
    return ""


def loops(text: str) -> bool:
    """The same one to twelve words, or characters, again and again: six, four or three times by their number."""
    for units in (text.split(), list(text.replace(" ", ""))):
        for size in range(1, 13):
            times = 6 if size == 1 else 4 if size < 4 else 3
            same = 0  # units in a row that are what stood `size` before
            for one, other in zip(units, units[size:], strict=False):
                same = same + 1 if one == other else 0
                if same >= size * (times - 1) and any(char.isalpha() for char in one):
                    return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="left out: the one that ships")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--lines", type=int, default=10_000, help="of each set, at most")
    parser.add_argument("--made-up", type=int, default=500, help="lines of each language")
    parser.add_argument("--guard", action="store_true", help="what is plainly wrong is asked for again")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--card", type=Path, help="scores as `sixfold pack --card` reads them")
    args = parser.parse_args()
    options = TranslateOptions(beam=4, split=False, guard=args.guard)
    results: dict[str, Any] = {"scores": {}, "faults": []}
    faults: Counter[str] = Counter()
    seen = 0
    with Translator(args.model, "cpu") as translator:
        for name, (source, target) in itertools.product([*args.sets, "made up"], WAYS):
            files = {each: args.data / "dev" / f"{name}.{each}" for each in (source, target)}
            if name == "made up":
                sources, references = made_up(args.made_up, source == "en"), []
            else:
                sources, references = (
                    file.read_text(encoding="utf-8").split("\n")[:-1][: args.lines] for file in files.values()
                )
            began = time.perf_counter()
            said = [each.text for each in translator.translate_batch(sources, source, target, options)]
            seconds = time.perf_counter() - began
            seen += len(said)
            for one, other in zip(sources, said, strict=True):
                if found := fault(one, other, target):
                    faults[found] += 1
                    results["faults"].append({"fault": found, "source": one, "said": other})
            if references:
                scores = score(said, references, target)
                results["scores"][f"{name}.{source}-{target}"] = vars(scores) | {"seconds": seconds}
                print(f"{name:12} {source}→{target} BLEU {scores.bleu:6.2f} chrF {scores.chrf:6.2f} {seconds:5.0f} s  "
                      f"{scores.signature}", flush=True)  # fmt: skip
    share = sum(faults.values()) / max(1, seen)
    print(f"faults in {seen:,} lines: {dict(faults)}, {share:.2%}")
    for each in results["faults"][:20]:
        print(f"  {each['fault']}: {each['source'][:90]} → {each['said'][:90]}")
    if args.json:
        results |= {"lines": seen, "share": share}
        args.json.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    if args.card:
        args.card.write_text("\n".join(card(results["scores"])), encoding="utf-8")


def card(found: dict[str, dict[str, Any]]) -> Iterator[str]:
    """TOML."""
    for name, scores in found.items():
        yield f'[scores."{name}"]'
        yield from (f"{key} = {round(scores[key], 2)}" for key in ("bleu", "chrf"))
        yield from (f'{key} = "{scores[key]}"' for key in ("signature", "chrf_signature"))
        yield ""


if __name__ == "__main__":
    main()
