"""How well the guard tells faults from good translations: planted faults of twelve kinds, and false alarms on dev sets.

python benchmarks/guard.py DATA     # DATA/dev/flores-dev.zh and .en, tatoeba, written, wmt17: references are good ones
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from sixfold.translation.guard import check

SETS = ("flores-dev", "tatoeba", "written", "wmt17")
Plant = Callable[[str, str, random.Random, str], str | None]  # source, target, chance, language of the target
JOINTS = {"en": " ", "zh": ""}
NUMBER = re.compile(r"(?<![\dA-Za-z.,])\d{3,}(?![\dA-Za-z.,])")


def words(text: str, language: str) -> list[str]:
    return text.split() if language == "en" else list(text)


def phrase(target: str, chance: random.Random, language: str, size: int) -> tuple[list[str], int]:
    units = words(target, language)
    return units, chance.randrange(max(1, len(units) - size))


def loop(size: int, times: int) -> Plant:
    def plant(_source: str, target: str, chance: random.Random, language: str) -> str | None:
        units, at = phrase(target, chance, language, size)
        run = units[at : at + size]
        if not all(any(char.isalpha() for char in unit) for unit in run) or len(run) < size:
            return None
        return JOINTS[language].join([*units[: at + size], *run * times, *units[at + size :]])

    return plant


def doubled(_source: str, target: str, _chance: random.Random, language: str) -> str | None:
    return target + JOINTS[language] + target if len(words(target, language)) >= 5 else None


def cut(_source: str, target: str, _chance: random.Random, language: str) -> str | None:
    units = words(target, language)
    kept = units[: len(units) // 2]
    return JOINTS[language].join(kept).rstrip(",，") if len(units) >= 8 else None


def copied(source: str, _target: str, _chance: random.Random, _language: str) -> str | None:
    return source if len(source) >= 12 else None


def left(source: str, target: str, chance: random.Random, language: str) -> str | None:
    """Some words of the source stay."""
    other = "zh" if language == "en" else "en"
    size = 4 if other == "zh" else 5
    units, at = phrase(source, chance, other, size)
    run = JOINTS[other].join(units[at : at + size])
    plain = r"[a-z]+(?: [a-z]+){4}" if other == "en" else r"[\u4e00-\u9fff]{4}"
    mine = words(target, language)
    middle = len(mine) // 2
    if not re.fullmatch(plain, run) or len(mine) < 6:
        return None
    return JOINTS[language].join([*mine[:middle], f" {run} " if language == "zh" else run, *mine[middle:]])


def number(how: str) -> Plant:
    def plant(source: str, target: str, chance: random.Random, _language: str) -> str | None:
        shared = [each for each in NUMBER.findall(target) if each in NUMBER.findall(source)]
        if not shared:
            return None
        if how == "lost":
            return target.replace(shared[0], "", 1)
        other = str(int(shared[0]) + chance.choice([1, 7, 90, 100]))
        return target.replace(shared[0], other, 1)

    return plant


def name(source: str, target: str, _chance: random.Random, language: str) -> str | None:
    """A word that both sides have in Latin letters."""
    capitals = r"|[A-Z]{3,6}" if language == "en" else ""  # in English they are often spelt out
    made = r"[A-Z][a-z]+[A-Z][A-Za-z]+|[a-z]+[A-Z][A-Za-z]+|[A-Za-z]+\d+"
    pattern = rf"(?<![A-Za-z\d.-])(?!Ma?c[A-Z])(?:{made}{capitals})(?![A-Za-z\d-])"
    shared = [each for each in re.findall(pattern, source) if target.casefold().count(each.casefold()) == 1]
    return target.replace(shared[0], "", 1) if shared else None


def placeholder(source: str, target: str, _chance: random.Random, _language: str) -> str | None:
    return target if "{" not in source else None  # the source gets one, see `main`


PLANTS: dict[str, Plant] = {
    "nothing said": lambda *_: " ",
    "a word six times more": loop(1, 6),
    "two words four times more": loop(2, 4),
    "five words three times more": loop(5, 3),
    "said twice": doubled,
    "cut in half": cut,
    "the source copied": copied,
    "words of the source left": left,
    "a number changed": number("changed"),
    "a number lost": number("lost"),
    "a name lost": name,
    "a placeholder lost": placeholder,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", type=int, default=0, help="so many false alarms of each kind")
    parser.add_argument("--missed", choices=list(PLANTS), help="show what was not found of a kind")
    args = parser.parse_args()
    read = {
        (each, language): (args.data / "dev" / f"{each}.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for each in SETS
        for language in ("zh", "en")
    }
    planted: Counter[tuple[str, str]] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    alarms: dict[str, list[tuple[str, str, str]]] = {}
    lines: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    seconds: list[float] = []
    chance = random.Random(1)
    for one, other in (("zh", "en"), ("en", "zh")):
        way = f"{one}→{other}"
        for each in SETS:
            for source, target in zip(read[each, one], read[each, other], strict=True):
                began = time.perf_counter()
                faults = check(source, target, (one, other))
                seconds.append(time.perf_counter() - began)
                lines[each] += 1
                bad[each] += bool(faults)
                for fault in faults:
                    alarms.setdefault(fault.kind, []).append((source, target, fault.message))
                if faults:
                    continue
                for kind, plant in PLANTS.items():
                    said = plant(source, target, chance, other)
                    if said is not None:
                        given = f"{source} {{user_name}}" if kind == "a placeholder lost" else source
                        planted[kind, way] += 1
                        caught = bool(check(given, said, (one, other)))
                        found[kind, way] += caught
                        if args.missed == kind and not caught:
                            print(f"  missed, {way}: {given} → {said}")
    for kind in PLANTS:
        cells = [f"{found[kind, way]:5} of {planted[kind, way]:5} {found[kind, way] / max(1, planted[kind, way]):7.1%}"
                 for way in ("zh→en", "en→zh")]  # fmt: skip
        print(f"{kind:28} {'   '.join(cells)}")
    for each in SETS:
        print(f"false alarms, {each:12} {bad[each]:5} of {lines[each]:5} {bad[each] / lines[each]:7.2%}")
    print(f"of all kinds: { {kind: len(some) for kind, some in alarms.items()} }")
    print(f"one check of a good translation: {1000 * sum(seconds) / len(seconds):.2f} ms")
    for kind, some in alarms.items():
        for source, target, message in some[: args.show]:
            print(f"  {kind}: {message} | {source} → {target}")


if __name__ == "__main__":
    main()
