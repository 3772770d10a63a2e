"""The scores of finished Multi30k runs by both protocols: sacreBLEU on plain text, and what the papers report.

Papers on Multi30k lower-case and tokenise both sides and count with multi-bleu. `sacremoses` must be installed.

    sixfold train recipes/multi30k-en-de.toml --data DATA --output runs/multi30k-en-de
    python benchmarks/multi30k.py DATA runs/multi30k-en-de de
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sixfold.evaluation.scores import score, tokenized_lowercase_bleu

SETS = {
    "test2016": "test_2016_flickr",
    "test2017": "test_2017_flickr",
    "test2017-coco": "test_2017_mscoco",
    "test2018": "test_2018_flickr",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("language", help="of the target")
    args = parser.parse_args()
    for name, file in SETS.items():
        translated = (args.run / f"{name}.translated.txt").read_text(encoding="utf-8").split("\n")[:-1]
        reference = args.data / "multi30k" / f"{file}.{args.language}"
        references = reference.read_text(encoding="utf-8").split("\n")[:-1]
        found = score(translated, references, args.language)
        papers = tokenized_lowercase_bleu(translated, references, args.language)
        print(f"{name:14} BLEU {found.bleu:5.2f}  chrF {found.chrf:5.2f}  lower-cased, tokenised {papers:5.2f}")
    print(found.signature)


if __name__ == "__main__":
    main()
