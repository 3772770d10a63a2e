"""How many planted faults of each kind the guard finds, and how many false alarms it raises on good translations.

python benchmarks/guard.py DATA                 # DATA/dev/flores-dev.zh and .en, tatoeba, written, wmt17
python benchmarks/guard.py DATA --sets wmt17    # the set that nothing was tuned on
python benchmarks/guard.py DATA --pairs FILE... # files with Chinese<TAB>English lines, which may be compressed with xz

`planted_faults.py` plants a fault in a reference. References with a false alarm get none. What is planted in a line
depends only on the line and the kind of fault, so that two runs plant the same. The model in the package, or `--model`,
helps to judge negations; it translates nothing here.
"""

from __future__ import annotations

import argparse
import lzma
import random
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from planted_faults import PLANTS

from sixfold import Translator
from sixfold.translation import negation_check
from sixfold.translation.direction import Direction
from sixfold.translation.guard import Fault, check
from sixfold.translation.joint_search import search_jointly

SETS = ("flores-dev", "tatoeba", "written", "wmt17")


def _dev_set(data: Path, name: str) -> list[tuple[str, str]]:
    chinese, english = (
        (data / "dev" / f"{name}.{language}").read_text(encoding="utf-8").split("\n")[:-1] for language in ("zh", "en")
    )
    return list(zip(chinese, english, strict=True))


def _pairs(file: Path) -> list[tuple[str, str]]:
    data = file.read_bytes()
    text = (lzma.decompress(data) if file.suffix == ".xz" else data).decode()
    lines = (line.split("\t") for line in text.split("\n") if line)
    return [(chinese, english) for chinese, english in lines]


def _check_all(direction: Direction, pairs: Sequence[tuple[str, str]]) -> list[list[Fault]]:
    """Return the faults of translations, each with its source."""
    return [faults for faults, _ in search_jointly(direction.engine, [check(direction, *pair) for pair in pairs])]


def _combined(planted: Counter[tuple[str, str]], detected: Counter[tuple[str, str]], kind: str) -> str:
    total = sum(planted[kind, direction] for direction in ("zh→en", "en→zh"))
    return f"   {sum(detected[kind, direction] for direction in ('zh→en', 'en→zh')) / max(1, total):7.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--pairs", nargs="+", type=Path, help="read these files instead of the sets")
    parser.add_argument("--kinds", nargs="+", choices=list(PLANTS), default=list(PLANTS), help="plant only these")
    parser.add_argument("--show", type=int, default=0, help="how many false alarms of each kind to print")
    parser.add_argument("--missed", action="store_true", help="print the planted faults that were not found")
    parser.add_argument(
        "--thresholds", nargs=3, type=float, metavar=("ZH", "EN", "BOTH"),
        help="the evidence for a negation of a Chinese text, of an English one, and where both texts have one",
    )  # fmt: skip
    parser.add_argument("--model", help="the model that judges negations (default: the one in the package)")
    args = parser.parse_args()
    if args.thresholds:
        negation_check.THRESHOLDS.update(zh=args.thresholds[0], en=args.thresholds[1])
        negation_check.MIN_GAIN = args.thresholds[2]
    translator = Translator(args.model, device="cpu") if args.model else Translator(device="cpu")
    if args.pairs:
        sets = {file.name.partition(".")[0]: _pairs(file) for file in args.pairs}
    else:
        sets = {name: _dev_set(args.data, name) for name in args.sets}
    planted: Counter[tuple[str, str]] = Counter()
    detected: Counter[tuple[str, str]] = Counter()
    alarms: dict[str, list[tuple[str, str, str]]] = {}
    lines: Counter[str] = Counter()
    bad: Counter[str] = Counter()
    bad_lines: Counter[tuple[str, str]] = Counter()  # by kind of fault and direction
    seconds = 0.0
    for languages in (("zh", "en"), ("en", "zh")):
        name = "→".join(languages)
        direction = translator.direction("", *languages)
        for each, pairs in sets.items():
            ordered = [pair if languages[0] == "zh" else pair[::-1] for pair in pairs]
            start = time.perf_counter()
            faults_of_references = _check_all(direction, ordered)
            seconds += time.perf_counter() - start
            planted_faults: list[tuple[str, str, str, str]] = []  # kind, source, translation, reference
            for (source, target), faults in zip(ordered, faults_of_references, strict=True):
                lines[each] += 1
                bad[each] += bool(faults)
                bad_lines.update({(fault.kind, name) for fault in faults})
                for fault in faults:
                    alarms.setdefault(fault.kind, []).append((source, target, fault.message))
                if faults:
                    continue
                for kind in args.kinds:
                    rng = random.Random(f"{kind}\t{source}")
                    translation = PLANTS[kind](source, target, rng, languages[1])
                    if translation is not None:
                        text = f"{source} {{user_name}}" if kind == "a placeholder lost" else source
                        planted_faults.append((kind, text, translation, target))
            found = _check_all(direction, [(source, translation) for _, source, translation, _ in planted_faults])
            for (kind, source, translation, target), faults in zip(planted_faults, found, strict=True):
                planted[kind, name] += 1
                detected[kind, name] += bool(faults)
                if args.missed and not faults:
                    print(f"  missed, {kind}, {name}: {source} → {translation} (was: {target})")
    for kind in args.kinds:
        cells = []
        for name in ("zh→en", "en→zh"):
            count, total = detected[kind, name], planted[kind, name]
            cells.append(f"{count:5} of {total:5} {count / max(1, total):7.1%}")
        print(f"{kind:28} {'   '.join(cells)}{_combined(planted, detected, kind)}")
    for each in sets:
        print(f"false alarms, {each:12} {bad[each]:5} of {lines[each]:5} {bad[each] / lines[each]:7.2%}")
    of_each_kind = {f"{kind} {direction}": count for (kind, direction), count in sorted(bad_lines.items())}
    print(f"false alarms of each kind: {of_each_kind}")
    print(f"one check of a good translation: {1000 * seconds / sum(lines.values()):.2f} ms")
    for kind, of_kind in alarms.items():
        for source, target, message in of_kind[: args.show]:
            print(f"  {kind}: {message} | {source} → {target}")


if __name__ == "__main__":
    main()
