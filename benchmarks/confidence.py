"""How well the confidence of a translation is calibrated: fitted on one half of the dev sets, measured on the other.

    python benchmarks/confidence.py DATA [--model MODEL] [--lines 400] [--card confidence.toml]

A translation is called fair when its chrF against the reference is at least 40 in English, 20 in Chinese. The table
shows the share of fair translations for each confidence; the error is the mean distance of the two.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sacrebleu.metrics.chrf import CHRF

from sixfold import TranslateOptions, Translator
from sixfold.translation.confidence import fit_curve

SETS = ("flores-dev", "tatoeba", "written", "wmt17")
FAIR_CHRF = {"en": 40, "zh": 20}
BINS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--model", type=Path, help="default: the model of the package")
    parser.add_argument("--lines", type=int, default=400, help="of each set and direction")
    parser.add_argument("--card", type=Path, help="the curves, as `sixfold pack --card` reads them")
    args = parser.parse_args()
    chrf, card = CHRF(), []
    with Translator(args.model, "cpu") as translator:
        for source, target in (("zh", "en"), ("en", "zh")):
            scores, fair = [], []
            for name in SETS:
                sources, references = (
                    (args.data / "dev" / f"{name}.{each}").read_text(encoding="utf-8").split("\n")[: args.lines]
                    for each in (source, target)
                )
                translations = translator.translate_batch(sources, source, target, TranslateOptions(split=False))
                for translation, reference in zip(translations, references, strict=True):
                    scores.append(translation.score)
                    fair.append(chrf.sentence_score(translation.text, [reference]).score >= FAIR_CHRF[target])
            curve = fit_curve(scores[::2], fair[::2])
            card.append(f'[confidence."{source}-{target}"]\nslope = {curve.slope:.4f}\n'
                        f"intercept = {curve.intercept:.4f}\nchrf = {FAIR_CHRF[target]}\n")  # fmt: skip
            confidences, is_fair = np.array([curve.probability(score) for score in scores[1::2]]), np.array(fair[1::2])
            order, distance = np.argsort(confidences), 0.0
            print(f"{source}→{target}: {len(is_fair)} held out, {is_fair.mean():.1%} fair")
            for indices in np.array_split(order, BINS):
                print(f"  confidence {confidences[indices].mean():.2f}: {is_fair[indices].mean():.2f} fair")
                distance += abs(confidences[indices].mean() - is_fair[indices].mean()) / BINS
            ranks = np.argsort(order)
            positives = is_fair.sum()
            pairs = positives * (len(is_fair) - positives)
            area = (ranks[is_fair].sum() - positives * (positives - 1) / 2) / max(1, pairs)
            print(f"  error {distance:.3f}; area under the ROC curve {area:.1%}")
    if args.card:
        args.card.write_text("\n".join(card), encoding="utf-8")


if __name__ == "__main__":
    main()
