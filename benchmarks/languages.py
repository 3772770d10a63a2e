"""How often the check of a text's language is wrong: false alarms on its own language, misses on others.

    python benchmarks/languages.py DATA

DATA has dev/*.en and dev/*.zh, and multi30k/val.* and test_2016_flickr.* in cs, de, en and fr, a sentence a line.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from sixfold.text.identification import other_language


def flagged(files: Sequence[Path], expected: str) -> tuple[int, int]:
    """Sentences that seem to be in another language than expected, and all sentences."""
    lines = [line.strip() for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    return sum(bool(other_language(line, expected)) for line in lines), len(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    data: Path = parser.parse_args().data
    for language in ("en", "zh"):
        found, total = flagged(sorted((data / "dev").glob(f"*.{language}")), language)
        print(f"dev sets in {language}, expected {language}: {found} of {total:,} flagged ({found / total:.2%})")
    for language in ("en", "de", "fr", "cs"):
        files = [data / "multi30k" / f"{name}.{language}" for name in ("val", "test_2016_flickr")]
        found, total = flagged(files, "en")
        print(f"Multi30k in {language}, expected en: {found:,} of {total:,} flagged ({found / total:.1%})")


if __name__ == "__main__":
    main()
