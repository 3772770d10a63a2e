"""How many planted faults of twelve kinds the guard finds, and how many false alarms it raises on dev sets.

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

from sixfold.translation.guard import find_faults

SETS = ("flores-dev", "tatoeba", "written", "wmt17")
Plant = Callable[[str, str, random.Random, str], str | None]  # source, target, rng, language of the target
SEPARATORS = {"en": " ", "zh": ""}
NUMBER = re.compile(r"(?<![\dA-Za-z.,])\d{3,}(?![\dA-Za-z.,])")


def words(text: str, language: str) -> list[str]:
    return text.split() if language == "en" else list(text)


def random_phrase(target: str, rng: random.Random, language: str, size: int) -> tuple[list[str], int]:
    """Return the words of a text, and the index of a random phrase of `size` words."""
    units = words(target, language)
    return units, rng.randrange(max(1, len(units) - size))


def loop(size: int, times: int) -> Plant:
    def plant(_source: str, target: str, rng: random.Random, language: str) -> str | None:
        units, index = random_phrase(target, rng, language, size)
        run = units[index : index + size]
        if not all(any(char.isalpha() for char in unit) for unit in run) or len(run) < size:
            return None
        return SEPARATORS[language].join([*units[: index + size], *run * times, *units[index + size :]])

    return plant


def doubled(_source: str, target: str, _rng: random.Random, language: str) -> str | None:
    return target + SEPARATORS[language] + target if len(words(target, language)) >= 5 else None


def cut(_source: str, target: str, _rng: random.Random, language: str) -> str | None:
    units = words(target, language)
    first_half = units[: len(units) // 2]
    return SEPARATORS[language].join(first_half).rstrip(",，") if len(units) >= 8 else None


def copied(source: str, _target: str, _rng: random.Random, _language: str) -> str | None:
    return source if len(source) >= 12 else None


def untranslated(source: str, target: str, rng: random.Random, language: str) -> str | None:
    """Leave some words of the source in the translation."""
    source_language = "zh" if language == "en" else "en"
    size = 4 if source_language == "zh" else 5
    units, index = random_phrase(source, rng, source_language, size)
    run = SEPARATORS[source_language].join(units[index : index + size])
    plain = r"[a-z]+(?: [a-z]+){4}" if source_language == "en" else r"[\u4e00-\u9fff]{4}"
    target_words = words(target, language)
    middle = len(target_words) // 2
    if not re.fullmatch(plain, run) or len(target_words) < 6:
        return None
    return SEPARATORS[language].join(
        [*target_words[:middle], f" {run} " if language == "zh" else run, *target_words[middle:]]
    )


def number(change: str) -> Plant:
    def plant(source: str, target: str, rng: random.Random, _language: str) -> str | None:
        shared = [each for each in NUMBER.findall(target) if each in NUMBER.findall(source)]
        if not shared:
            return None
        if change == "lost":
            return target.replace(shared[0], "", 1)
        wrong_number = str(int(shared[0]) + rng.choice([1, 7, 90, 100]))
        return target.replace(shared[0], wrong_number, 1)

    return plant


def name(source: str, target: str, _rng: random.Random, language: str) -> str | None:
    """Drop a name that both sides have in Latin letters."""
    capitals = r"|[A-Z]{3,6}" if language == "en" else ""  # in English they are often spelt out
    mixed_case = r"[A-Z][a-z]+[A-Z][A-Za-z]+|[a-z]+[A-Z][A-Za-z]+|[A-Za-z]+\d+"
    pattern = rf"(?<![A-Za-z\d.-])(?!Ma?c[A-Z])(?:{mixed_case}{capitals})(?![A-Za-z\d-])"
    shared = [each for each in re.findall(pattern, source) if target.casefold().count(each.casefold()) == 1]
    return target.replace(shared[0], "", 1) if shared else None


def placeholder(source: str, target: str, _rng: random.Random, _language: str) -> str | None:
    return target if "{" not in source else None  # the source gets one, see `main`


PLANTS: dict[str, Plant] = {
    "nothing said": lambda *_: " ",
    "a word six times more": loop(1, 6),
    "two words four times more": loop(2, 4),
    "five words three times more": loop(5, 3),
    "said twice": doubled,
    "cut in half": cut,
    "the source copied": copied,
    "words of the source left": untranslated,
    "a number changed": number("changed"),
    "a number lost": number("lost"),
    "a name lost": name,
    "a placeholder lost": placeholder,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--show", type=int, default=0, help="how many false alarms of each kind to print")
    parser.add_argument("--missed", choices=list(PLANTS), help="print the planted faults of a kind that were not found")
    args = parser.parse_args()
    texts = {
        (each, language): (args.data / "dev" / f"{each}.{language}").read_text(encoding="utf-8").split("\n")[:-1]
        for each in SETS
        for language in ("zh", "en")
    }
    planted: Counter[tuple[str, str]] = Counter()
    detected: Counter[tuple[str, str]] = Counter()
    alarms: dict[str, list[tuple[str, str, str]]] = {}
    lines: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    seconds: list[float] = []
    rng = random.Random(1)
    for languages in (("zh", "en"), ("en", "zh")):
        source_language, target_language = languages
        direction = "→".join(languages)
        for each in SETS:
            for source, target in zip(texts[each, source_language], texts[each, target_language], strict=True):
                start = time.perf_counter()
                faults = find_faults(source, target, languages)
                seconds.append(time.perf_counter() - start)
                lines[each] += 1
                bad[each] += bool(faults)
                for fault in faults:
                    alarms.setdefault(fault.kind, []).append((source, target, fault.message))
                if faults:
                    continue
                for kind, plant in PLANTS.items():
                    translation = plant(source, target, rng, target_language)
                    if translation is not None:
                        text = f"{source} {{user_name}}" if kind == "a placeholder lost" else source
                        planted[kind, direction] += 1
                        is_detected = bool(find_faults(text, translation, languages))
                        detected[kind, direction] += is_detected
                        if args.missed == kind and not is_detected:
                            print(f"  missed, {direction}: {text} → {translation}")
    for kind in PLANTS:
        cells = []
        for direction in ("zh→en", "en→zh"):
            count, total = detected[kind, direction], planted[kind, direction]
            cells.append(f"{count:5} of {total:5} {count / max(1, total):7.1%}")
        print(f"{kind:28} {'   '.join(cells)}")
    for each in SETS:
        print(f"false alarms, {each:12} {bad[each]:5} of {lines[each]:5} {bad[each] / lines[each]:7.2%}")
    print(f"of all kinds: { {kind: len(of_kind) for kind, of_kind in alarms.items()} }")
    print(f"one check of a good translation: {1000 * sum(seconds) / len(seconds):.2f} ms")
    for kind, of_kind in alarms.items():
        for source, target, message in of_kind[: args.show]:
            print(f"  {kind}: {message} | {source} → {target}")


if __name__ == "__main__":
    main()
