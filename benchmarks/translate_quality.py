"""What int8 and the shortlist cost in quality and save in time: BLEU and chrF on dev sets, beam 4.

python benchmarks/translate_quality.py DATA MODEL     # DATA/dev/flores-dev.zh and .en, wmt17, tatoeba; two CPU cores
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from sixfold import TranslateOptions, Translator, modelfile
from sixfold.config import Compute
from sixfold.evaluation.scores import score

SETS = ("flores-dev", "wmt17", "tatoeba")
SETTINGS: dict[str, tuple[Compute, bool]] = {
    "float32": ("float32", False),
    "int8": ("int8", False),
    "int8, shortlist": ("int8", True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--lines", type=int, default=10_000, help="of each set, at most")
    parser.add_argument("--ways", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    args = parser.parse_args()
    model = modelfile.load(args.model)
    languages = [model.card["languages"][side] for side in ("source", "target")]
    sets = {
        name: [
            (args.data / "dev" / f"{name}.{language}").read_text(encoding="utf-8").split("\n")[:-1][: args.lines]
            for language in languages
        ]
        for name in SETS
    }
    options = TranslateOptions(beam=4, split=False)
    for name_of_setting in args.ways:
        compute, shortlist = SETTINGS[name_of_setting]
        cells = []
        with Translator(model, "cpu", None, compute, shortlist) as translator:
            for name, (sources, references) in sets.items():
                start = time.perf_counter()
                translations = [each.text for each in translator.translate_batch(sources, *languages, options)]
                seconds = time.perf_counter() - start
                scores = score(translations, references, languages[1])
                cells.append(f"{name} BLEU {scores.bleu:.2f} chrF {scores.chrf:.2f} in {seconds:.0f} s")
        print(f"{name_of_setting:16} {'; '.join(cells)}", flush=True)
    print(scores.signature)


if __name__ == "__main__":
    main()
