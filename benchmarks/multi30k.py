"""The scores of finished Multi30k runs by two protocols: sacreBLEU on raw text, and the BLEU that papers report.

Papers on Multi30k lower-case and tokenise both sides and use multi-bleu. `sacremoses` must be installed.

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
    parser.add_argument("language", help="code of the target language")
    args = parser.parse_args()
    for name, file in SETS.items():
        translated = (args.run / f"{name}.translated.txt").read_text(encoding="utf-8").split("\n")[:-1]
        reference = args.data / "multi30k" / f"{file}.{args.language}"
        references = reference.read_text(encoding="utf-8").split("\n")[:-1]
        scores = score(translated, references, args.language)
        paper_bleu = tokenized_lowercase_bleu(translated, references, args.language)
        print(f"{name:14} BLEU {scores.bleu:5.2f}  chrF {scores.chrf:5.2f}  lower-cased, tokenised {paper_bleu:5.2f}")
    print(scores.signature)


if __name__ == "__main__":
    main()
