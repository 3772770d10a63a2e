"""The shipped Chinese–English model: scores on every dev set in both directions, and how often it fails outright.

Faults are counted on the dev sets and on generated lines (numbers, names, lists, capitals, single words, long and
repetitive text): an empty translation, a loop, or the wrong script.

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
DIRECTIONS = (("zh", "en"), ("en", "zh"))
HAN = re.compile(r"[\u3400-\u9fff]")
LATIN = re.compile(r"[A-Za-z]")
WORD = re.compile(r"(?<!\S)[a-z]{2,}(?!\S)")  # an English word, not code
# Words and templates of generated lines: (Chinese, English).
NAMES = (("李伟", "Li Wei"), ("约翰", "John"), ("北京", "Beijing"), ("巴黎", "Paris"), ("张教授", "Professor Zhang"))
THINGS = (("苹果", "apples"), ("书", "books"), ("电脑", "computers"), ("鸡蛋", "eggs"), ("火车票", "train tickets"))
TEMPLATES = (
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


def generate_lines(count: int, side: int, seed: int = 1) -> list[str]:
    """Return generated lines, Chinese (side 0) or English (side 1); every tenth is five of them joined."""
    generator = random.Random(seed)

    def line() -> str:
        template, name, thing = (generator.choice(pairs)[side] for pairs in (TEMPLATES, NAMES, THINGS))
        numbers = {
            "count": generator.randint(2, 5000),
            "hour": generator.randint(1, 23),
            "minute": generator.randint(10, 59),
        }
        return template.format(
            name=name, thing=thing, month=generator.randint(1, 12), day=generator.randint(1, 28), **numbers
        )

    separator = " " if side else ""
    return [separator.join(line() for _ in range(5)) if number % 10 == 9 else line() for number in range(count)]


def find_fault(source: str, translation: str, target: str) -> str:
    """Return the name of an obvious fault of a translation, or an empty text."""
    if not source.strip():
        return ""
    if not translation.strip():
        return "empty"
    if has_loop(translation) and not has_loop(source):
        return "loop"
    han, latin = len(HAN.findall(translation)), len(LATIN.findall(translation))
    if target == "en" and han and HAN.search(source) and han * 3 > latin:
        return "script"
    if target == "zh" and not han and len(WORD.findall(source)) >= 4:
        return "script"
    return ""


def has_loop(text: str) -> bool:
    """Return whether one to twelve words, or characters, are repeated.

    A single one must occur six times in a row, two or three of them four times, and more of them three times.
    """
    for units in (text.split(), list(text.replace(" ", ""))):
        for size in range(1, 13):
            times = 6 if size == 1 else 4 if size < 4 else 3
            repeated = 0  # units in a row that equal the unit `size` before
            for earlier, unit in zip(units, units[size:], strict=False):
                repeated = repeated + 1 if earlier == unit else 0
                if repeated >= size * (times - 1) and any(char.isalpha() for char in earlier):
                    return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="default: the shipped model")
    parser.add_argument("--sets", nargs="*", default=list(SETS))
    parser.add_argument("--lines", type=int, default=10_000, help="of each set, at most")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--made-up", type=int, default=500, help="lines of each language")
    parser.add_argument("--guard", action="store_true", help="translate again what is obviously wrong")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--card", type=Path, help="scores as `sixfold pack --card` reads them")
    args = parser.parse_args()
    options = TranslateOptions(beam=args.beam, split=False, guard=args.guard)
    results: dict[str, Any] = {"scores": {}, "faults": []}
    faults: Counter[str] = Counter()
    line_count = 0
    with Translator(args.model, "cpu") as translator:
        for name, (source, target) in itertools.product([*args.sets, "made up"], DIRECTIONS):
            files = {code: args.data / "dev" / f"{name}.{code}" for code in (source, target)}
            if name == "made up":
                sources, references = generate_lines(args.made_up, source == "en"), []
            else:
                sources, references = (
                    file.read_text(encoding="utf-8").split("\n")[:-1][: args.lines] for file in files.values()
                )
            start = time.perf_counter()
            translations = [result.text for result in translator.translate_batch(sources, source, target, options)]
            seconds = time.perf_counter() - start
            line_count += len(translations)
            for text, translation in zip(sources, translations, strict=True):
                if fault := find_fault(text, translation, target):
                    faults[fault] += 1
                    results["faults"].append({"fault": fault, "source": text, "said": translation})
            if references:
                scores = score(translations, references, target)
                results["scores"][f"{name}.{source}-{target}"] = vars(scores) | {"seconds": seconds}
                print(f"{name:12} {source}→{target} BLEU {scores.bleu:6.2f} chrF {scores.chrf:6.2f} {seconds:5.0f} s  "
                      f"{scores.signature}", flush=True)  # fmt: skip
    share = sum(faults.values()) / max(1, line_count)
    print(f"faults in {line_count:,} lines: {dict(faults)}, {share:.2%}")
    for example in results["faults"][:20]:
        print(f"  {example['fault']}: {example['source'][:90]} → {example['said'][:90]}")
    if args.json:
        results |= {"lines": line_count, "share": share}
        args.json.write_text(json.dumps(results, ensure_ascii=False, indent=1), encoding="utf-8")
    if args.card:
        args.card.write_text("\n".join(card_lines(results["scores"])), encoding="utf-8")


def card_lines(results: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the lines of a TOML file with the scores of every set."""
    for name, scores in results.items():
        yield f'[scores."{name}"]'
        yield from (f"{key} = {round(scores[key], 2)}" for key in ("bleu", "chrf"))
        yield from (f'{key} = "{scores[key]}"' for key in ("signature", "chrf_signature"))
        yield ""


if __name__ == "__main__":
    main()
