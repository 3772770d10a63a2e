"""How often language identification is wrong: false alarms on the expected language, misses on others.

    python benchmarks/languages.py DATA

DATA has dev/*.en and dev/*.zh, and multi30k/val.* and test_2016_flickr.* in cs, de, en and fr, a sentence a line.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sixfold.text.identification import other_language


def count_flagged(files: Sequence[Path], expected: str) -> tuple[int, int]:
    """Return the number of sentences that are identified as another language than expected, and of all sentences."""
    lines = [line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(bool(other_language(line, expected)) for line in lines), len(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data: Path = parser.parse_args().data
    for language in ("en", "zh"):
        flagged, total = count_flagged(sorted((data / "dev").glob(f"*.{language}")), language)
        print(f"dev sets in {language}, expected {language}: {flagged} of {total:,} flagged ({flagged / total:.2%})")
    for language in ("en", "de", "fr", "cs"):
        files = [data / "multi30k" / f"{name}.{language}" for name in ("val", "test_2016_flickr")]
        flagged, total = count_flagged(files, "en")
        print(f"Multi30k in {language}, expected en: {flagged:,} of {total:,} flagged ({flagged / total:.1%})")


if __name__ == "__main__":
    main()
