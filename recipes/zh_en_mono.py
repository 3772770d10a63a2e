"""Monolingual text for the Chinese ↔ English model: parts for its first rung to translate, and pairs of the results.

    python recipes/zh_en_mono.py parts DATA --language en --corpora openstax --spoken gum --out WORK/parts
    python recipes/zh_en_mono.py pairs WORK/by-first --originals WORK/parts --language en --part 0

`parts` writes original.en.0, original.en.1, … with the lines of the corpora in turn, so that each part begins with the
first corpora, and a last part (original.en.5) with the lines of the spoken corpora. It leaves out lines of training
pairs, repeated lines, and very short or long ones. `pairs` reads original.en.0 and translated.en.0 and writes
from-en.0.tsv: Chinese, a tab, English. Of an incomplete translation (translated.en.0.partial) it uses the lines that
exist. It leaves out translations that repeat themselves where the original does not, and those that are far too long or
short.
"""

from __future__ import annotations

import argparse
import lzma
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

LENGTHS = {"en": (12, 450), "zh": (5, 150)}  # characters of a line: minimum and maximum
RATIOS = (1.2, 7.0)  # English letters for each Chinese character: minimum and maximum
SMOOTHING = 8  # letters added before the ratio is taken, because short lines vary more
# A part that stands several times in a row: "local local local", "of the year of the year", 一个小的一个小的.
REPEATED = re.compile(
    r"(.{2,7}?)\1{3}|(.{8,30}?)\2{2}|\b(\w+)(?:,? \3\b){2}|\b(\w+ \w+(?: \w+)?) \4\b"
    r"|([\u4e00-\u9fff]{2,8})[，、]?\5[，、]?\5|([\u4e00-\u9fff]{3,8})\6"
)
TRAINING_CORPORA = ("wiki_core", "wikinews", "wiki_en", "textbooks", "wiki_zh_core", "wiki_zh", "commonvoice")


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a compressed file, with single spaces."""
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from (" ".join(line.split()) for line in file)


def read_training_lines(data: Path, language: str) -> set[str]:
    """Return the lines of one language of the training pairs that were made from monolingual text."""
    side = ("zh", "en").index(language)
    lines = set()
    for name in TRAINING_CORPORA:
        with lzma.open(data / "train" / f"{name}.tsv.xz", "rt", encoding="utf-8", newline="\n") as file:
            lines |= {" ".join(line.rstrip("\n").split("\t")[side].split()) for line in file}
    return lines


def choose_lines(data: Path, language: str, corpora: Sequence[str], seen: set[str]) -> list[str]:
    """Return the lines of these corpora that are neither in `seen` nor very short or long, and add them to `seen`."""
    shortest, longest = LENGTHS[language]
    chosen: list[str] = []
    for line in chain.from_iterable(read_lines(data / "mono" / f"{name}.{language}.xz") for name in corpora):
        if shortest <= len(line) <= longest and line not in seen:
            seen.add(line)
            chosen.append(line)
    return chosen


def write_parts(args: argparse.Namespace) -> None:
    """Write the lines to translate to parts in turn, and those of the spoken corpora to one more part."""
    seen = read_training_lines(args.folder, args.language)
    spoken = choose_lines(args.folder, args.language, args.spoken, seen)[: args.lines or None]
    chosen = choose_lines(args.folder, args.language, args.corpora, seen)[: args.lines or None]
    args.out.mkdir(parents=True, exist_ok=True)
    for number, lines in enumerate([*(chosen[part :: args.parts] for part in range(args.parts)), spoken]):
        text = "".join(f"{line}\n" for line in lines)
        (args.out / f"original.{args.language}.{number}").write_text(text, encoding="utf-8", newline="\n")
    print(f"{args.language}: {len(chosen):,} lines in {args.parts} parts, {len(spoken):,} spoken lines in one")


def is_fair(original: str, translation: str, language: str) -> bool:
    """Return whether a translation from `language` has a likely length and repeats itself only if the original does."""
    chinese, english = (original, translation) if language == "zh" else (translation, original)
    ratio = (len(english) + SMOOTHING) / (len(chinese) + SMOOTHING / 4)
    return RATIOS[0] <= ratio <= RATIOS[1] and (not REPEATED.search(translation) or bool(REPEATED.search(original)))


def write_pairs(folder: Path, originals_folder: Path, language: str, part: int) -> None:
    """Write the originals of a part beside their translations, Chinese first."""
    complete = folder / f"translated.{language}.{part}"
    translated = complete if complete.exists() else complete.with_name(f"{complete.name}.partial")
    originals = (originals_folder / f"original.{language}.{part}").read_text(encoding="utf-8").split("\n")
    translations = translated.read_text(encoding="utf-8").split("\n")[:-1] if translated.exists() else []
    unfinished = folder / f"from-{language}.{part}.unfinished"
    kept = 0
    with unfinished.open("w", encoding="utf-8", newline="\n") as out:
        for original, translation in zip(originals, translations, strict=False):
            if "\t" not in original + translation and is_fair(original, translation, language):
                kept += 1
                out.write("\t".join((original, translation) if language == "zh" else (translation, original)) + "\n")
    unfinished.replace(folder / f"from-{language}.{part}.tsv")
    print(f"from {language}, part {part}: {kept:,} of {len(translations):,} pairs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True, dest="command")
    parts, pairs = commands.add_parser("parts"), commands.add_parser("pairs")
    for each in (parts, pairs):
        each.add_argument("folder", type=Path)
        each.add_argument("--language", choices=("zh", "en"), required=True)
    pairs.add_argument("--originals", type=Path, required=True)
    pairs.add_argument("--part", type=int, required=True)
    parts.add_argument("--parts", type=int, default=5)
    parts.add_argument("--corpora", nargs="+", required=True)
    parts.add_argument("--spoken", nargs="+", required=True)
    parts.add_argument("--out", type=Path, required=True)
    parts.add_argument("--lines", type=int, default=0, help="of the corpora and of the spoken ones, at most; 0: all")
    args = parser.parse_args()
    if args.command == "parts":
        write_parts(args)
    else:
        write_pairs(args.folder, args.originals, args.language, args.part)


if __name__ == "__main__":
    main()
