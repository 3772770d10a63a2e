"""What each decision behind the Chinese–English model does to the dev sets: small models that differ in it alone.

    python benchmarks/decisions.py DATA --work DIR                        # one after another; GPU
    python benchmarks/decisions.py DATA --work DIR --only general         # one; several such processes may share a GPU
    python benchmarks/decisions.py DATA --work DIR --device cpu --steps 4

"examined" learns from DATA/examined/train: the corpora without the lines that `sixfold doctor` reports.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import get_args

from sixfold import recipe as recipes
from sixfold.config import Filter
from sixfold.errors import ConfigError
from sixfold.recipe import CorpusConfig, Recipe
from sixfold.tasks import translation
from sixfold.training import run
from sixfold.training.corpora import find
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.run_folder import claim
from sixfold.training.translation_inputs import prepare_inputs

RECIPE = Path(__file__).parents[1] / "recipes" / "zh-en.toml"

MIXED = {"twlaw": 0.3, "cedict": 0.3, "names": 0.3, "tatoeba": 2, "written": 3, "commonvoice": 2}
DOCUMENTATION = ("mdn", "pydocs", "k8s", "ethereum", "tfdocs", "libreoffice_help")
GENERAL = {
    **dict.fromkeys(DOCUMENTATION, 0.5), "twlaw": 0.15, "cedict": 0.3, "names": 0.3,
    "tatoeba": 4, "written": 8, "commonvoice": 6, "cdda": 2,
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """The differences from the recipe."""

    weights: Mapping[str, float] | None = None  # of the corpora; None: those of the recipe
    layers: tuple[int, int] = (6, 2)
    width: int = 384
    settings: tuple[str, ...] = ()
    folder: str = ""  # of the corpora, below the data folder


VARIANTS = {
    # Which corpora, and how often.
    "plain": Variant({}),  # every pair once per epoch
    "mixed": Variant(MIXED),  # less law, dictionary and names, more of what is general and clean
    "general": Variant(GENERAL),  # even more of those, and half of the documentation
    "no dictionary": Variant({**MIXED, "cedict": 0.001, "names": 0.001}),
    # What is dropped from them.
    "6+2x384": Variant(),  # with the filters of training
    "uncleaned": Variant(settings=(f"data.skip={json.dumps(get_args(Filter))}",)),
    "examined": Variant(folder="examined"),
    # The shape.
    "10+2x384": Variant(layers=(10, 2)),
    "6+6x512": Variant(layers=(6, 6), width=512),
    "10+2x512": Variant(layers=(10, 2), width=512),
    "14+2x512, 16,000 pieces": Variant(layers=(14, 2), width=512, settings=("tokenizer.vocab=16000",)),
}


def apply(recipe: Recipe, variant: Variant, steps: int) -> Recipe:
    """Return the recipe of a variant, shortened to a number of steps."""
    width = variant.width
    settings = {
        "model.d_model": width, "model.heads": width // 64, "model.d_ff": 4 * width,
        "model.encoder_layers": variant.layers[0], "model.decoder_layers": variant.layers[1],
        "training.steps": steps, "training.validate_every": steps, "training.warmup": max(1, steps // 6),
        "training.learning_rate": round(2e-3 * (384 / width) ** 0.5, 5),
    }  # fmt: skip
    recipe = recipes.changed(recipe, "", [*(f"{name}={value}" for name, value in settings.items()), *variant.settings])

    def reweight(corpus: CorpusConfig) -> CorpusConfig:
        (file,) = corpus.files
        weights = variant.weights
        weight = corpus.weight if weights is None else float(weights.get(Path(file).name.split(".")[0], 1.0))
        return replace(corpus, weight=weight, files=(str(Path(variant.folder) / file),))

    dev = tuple(
        replace(corpus, bleu=0.0, bleu_back=0.0) for corpus in recipe.dev
    )  # the recipe expects them of another model
    return replace(recipe, corpus=tuple(map(reweight, recipe.corpus)), dev=dev)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, and wait for it while another process has locked it."""
    while True:
        try:
            with claim(folder):
                yield
                return
        except ConfigError as error:
            if "another process" not in str(error):
                raise
            time.sleep(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=list(VARIANTS), choices=list(VARIANTS))
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--prepare", action="store_true", help="only clean and tokenise")
    args = parser.parse_args()
    translation.MIN_VOCAB_FOR_SHORTLIST = 10**9  # scores are taken without a shortlist, so none is learned
    for name in args.only:
        make_recipe = partial(apply, recipes.load(RECIPE), VARIANTS[name], args.steps)
        recipe = make_recipe()
        out = args.work / "".join(letter if letter.isalnum() else "-" for letter in name)
        out.mkdir(parents=True, exist_ok=True)
        shared = args.work / "data"
        shared.mkdir(exist_ok=True)
        if not (out / "data").exists():
            (out / "data").symlink_to(shared.absolute())
        with lock_folder(args.work):  # variants with the same corpora share the cleaned and tokenised data
            device = run.choose_device(args.device)
            prepare_inputs(recipe, find(recipe, args.data), args.work, {}, device, Display(Interrupt()))
        if args.prepare:
            continue
        results = run.begin_run(make_recipe, args.data, out, args.device).scores
        if not results:  # the run was interrupted
            return
        means = {key: sum(scores[key] for scores in results.values()) / len(results) for key in ("bleu", "chrf")}
        bleu = {dev_set: round(scores["bleu"], 2) for dev_set, scores in results.items()}
        print(json.dumps({"variant": name, "bleu": bleu, "means": means}), flush=True)


if __name__ == "__main__":
    main()
