"""What the confidence of a translation is worth: fitted on one half of the dev sets, measured on the other.

    python benchmarks/confidence.py DATA [--model MODEL] [--lines 400] [--card confidence.toml]

A translation is called fair when its chrF against the reference is at least 40 in English, 20 in Chinese. The table
shows how many are fair of those that were given each confidence; the error is the mean distance of the two.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from sixfold import TranslateOptions, Translator
from sixfold.translation.confidence import fit

SETS = ("flores-dev", "tatoeba", "written", "wmt17")
FAIR = {"en": 40, "zh": 20}
BINS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="left out: the one that ships")
    parser.add_argument("--lines", type=int, default=400, help="of each set and direction")
    parser.add_argument("--card", type=Path, help="the curves, as `sixfold pack --card` reads them")
    args = parser.parse_args()
    measure, told = CHRF(), []
    with Translator(args.model, "cpu") as translator:
        for source, target in (("zh", "en"), ("en", "zh")):
            scores, fair = [], []
            for name in SETS:
                sources, references = (
                    (args.data / "dev" / f"{name}.{each}").read_text(encoding="utf-8").split("\n")[: args.lines]
                    for each in (source, target)
                )
                said = translator.translate_batch(sources, source, target, TranslateOptions(split=False))
                for each, reference in zip(said, references, strict=True):
                    scores.append(each.score)
                    fair.append(measure.sentence_score(each.text, [reference]).score >= FAIR[target])
            curve = fit(scores[::2], fair[::2])
            told.append(f'[confidence."{source}-{target}"]\nslope = {curve.slope:.4f}\n'
                        f"intercept = {curve.intercept:.4f}\nchrf = {FAIR[target]}\n")  # fmt: skip
            chances, truth = np.array([curve.of(each) for each in scores[1::2]]), np.array(fair[1::2])
            order, distance = np.argsort(chances), 0.0
            print(f"{source}→{target}: {len(truth)} held out, {truth.mean():.1%} fair")
            for some in np.array_split(order, BINS):
                print(f"  confidence {chances[some].mean():.2f}: {truth[some].mean():.2f} fair")
                distance += abs(chances[some].mean() - truth[some].mean()) / BINS
            ranks = np.argsort(order)
            positives = truth.sum()
            area = (ranks[truth].sum() - positives * (positives - 1) / 2) / max(1, positives * (len(truth) - positives))
            print(f"  error {distance:.3f}; a fair one is given more than one that is not: {area:.1%}")
    if args.card:
        args.card.write_text("\n".join(told), encoding="utf-8")


if __name__ == "__main__":
    main()
