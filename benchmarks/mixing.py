"""What the weights of the corpora do to the dev sets: the same small model, trained as long on each mixture.

python benchmarks/mixing.py DATA --work DIR                    # one mixture after another; GPU
python benchmarks/mixing.py DATA --work DIR --only general     # one; several such processes may share a GPU
python benchmarks/mixing.py DATA --work DIR --device cpu --steps 4
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

from sixfold import recipe as recipes
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.training.display import Display
from sixfold.training.folder import claim
from sixfold.training.interrupt import Interrupt
from sixfold.training.prepare import find
from sixfold.training.run import begin_run, choose_device, make_ready

RECIPE = Path(__file__).parents[1] / "recipes" / "zh-en.toml"
SMALL = ("d_model=384", "heads=6", "d_ff=1536", "encoder_layers=6", "decoder_layers=2")
LENGTH = ("warmup=200", "learning_rate=2e-3")

MIXED = {"twlaw": 0.3, "cedict": 0.3, "names": 0.3, "tatoeba": 2, "written": 3, "commonvoice": 2}
DOCUMENTATION = ("mdn", "pydocs", "k8s", "ethereum", "tfdocs", "libreoffice_help")
GENERAL = {
    **dict.fromkeys(DOCUMENTATION, 0.5), "twlaw": 0.15, "cedict": 0.3, "names": 0.3,
    "tatoeba": 4, "written": 8, "commonvoice": 6, "cdda": 2,
}  # fmt: skip
MIXTURES: dict[str, dict[str, float]] = {
    "plain": {},  # every pair once an epoch
    "mixed": MIXED,  # less law, dictionary and names, more of what is general and clean
    "general": GENERAL,  # more so, and half of the documentation
    "no dictionary": {**MIXED, "cedict": 0.001, "names": 0.001},
}


def mixture(recipe: Recipe, weights: dict[str, float]) -> Recipe:
    def weighed(corpus: CorpusConfig) -> CorpusConfig:
        return replace(corpus, weight=float(weights.get(Path(corpus.files[0]).name.split(".")[0], 1.0)))

    dev = tuple(replace(corpus, bleu=0.0, bleu_back=0.0) for corpus in recipe.dev)  # promised of another model
    return replace(recipe, corpus=tuple(map(weighed, recipe.corpus)), dev=dev)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(MIXTURES), choices=list(MIXTURES))
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    shape = [f"model.{each}" for each in SMALL]
    length = [f"training.{each}" for each in (*LENGTH, f"steps={args.steps}", f"validate_every={args.steps}")]
    recipe = recipes.changed(recipes.load(RECIPE), "", [*shape, *length])
    shared = args.work / "data"
    shared.mkdir(parents=True, exist_ok=True)
    with claim(args.work):  # cleaned and tokenised once for all
        device = choose_device(args.device)
        make_ready(recipe, find(recipe, args.data), args.work, {}, device, Display(Interrupt()))
    for name in args.only:
        out = args.work / name.replace(" ", "-")
        out.mkdir(exist_ok=True)
        if not (out / "data").exists():
            (out / "data").symlink_to(shared.absolute())
        found = begin_run(mixture(recipe, MIXTURES[name]), args.data, out, args.device).scores
        if not found:  # it was stopped
            return
        means = {key: sum(each[key] for each in found.values()) / len(found) for key in ("bleu", "chrf")}
        scores = {each: round(its["bleu"], 2) for each, its in found.items()}
        print(json.dumps({"mixture": name, "bleu": scores, "means": means}), flush=True)


if __name__ == "__main__":
    main()
