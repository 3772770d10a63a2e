"""Fine-tuning Multi30k's de→en model on 2,000 pairs of a shifted domain: what it gains there, what it forgets at home.

The other domain is captions as people type them in a hurry: no capitals, no punctuation, no umlauts on the German side,
and no articles on the English. The model has seen none of that.

    python benchmarks/finetune.py DATA MODEL --work DIR        # about fifteen minutes on two CPU cores
"""

from __future__ import annotations

import argparse
import re
import time
from pathlib import Path

from sixfold import finetune
from sixfold.evaluation.scores import score
from sixfold.evaluation.systems import DecodingOptions, open_model, read_test_set, translate

WAYS = {"all weights": (0, False), "all weights, mixed": (0, True), "LoRA": (16, False), "LoRA, mixed": (16, True)}


def write_shifted(data: Path, work: Path) -> dict[str, list[Path]]:
    """New pairs from the training set, and a test set, both as typed in a hurry."""
    work.mkdir(parents=True, exist_ok=True)
    made: dict[str, list[Path]] = {}
    for name, origin, count in (("new", "train", 2000), ("test", "test_2016_flickr", 1000)):
        for language in ("de", "en"):
            lines = (data / "multi30k" / f"{origin}.{language}").read_text(encoding="utf-8").split("\n")[:count]
            path = work / f"{name}.{language}"
            path.write_text("".join(f"{hurried(line, language)}\n" for line in lines if line), encoding="utf-8")
            made.setdefault(name, []).append(path)
    return made


def hurried(text: str, language: str) -> str:
    words = re.sub(r"[^\w\s'-]", "", text.lower()).split()
    if language == "en":
        return " ".join(word for word in words if word not in ("a", "an", "the")) or text
    return " ".join(words).translate(str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    made = write_shifted(args.data, args.work)
    home = args.data / "multi30k"
    old = [home / "train.de", home / "train.en"]
    old_test = [home / "test_2016_flickr.de", home / "test_2016_flickr.en"]
    print(f"{'as it was':20} {scores(args.model, made['test'], old_test)}", flush=True)
    changes = [f"training.steps={args.steps}", f"training.validate_every={args.steps}", "training.patience=0"]
    changes += ["training.batch_tokens=2048", "training.ema=0.98", "data.source=de", "data.target=en"]
    for name, (rank, mixed) in WAYS.items():
        began = time.perf_counter()
        out = args.work / name.replace(", ", "-").replace(" ", "-")
        # Dev sets are split off what is learnt from; without old pairs nothing keeps it from forgetting them.
        settings = [*changes, f"training.lora={rank}"]
        outcome = finetune(args.model, made["new"], out, old if mixed else (), 0.5, (), (), settings, args.device)
        assert outcome.model is not None
        seconds = time.perf_counter() - began
        print(f"{name:20} {scores(outcome.model, made['test'], old_test)}  ({seconds:.0f} s)", flush=True)


def scores(model: Path, new: list[Path], old: list[Path]) -> str:
    """BLEU of both test sets, by the CPU engine in float32 with a beam of 4."""
    found = []
    for files in (new, old):
        texts = read_test_set(files)
        translations = translate(open_model(model), texts.sources, DecodingOptions(compute="float32"), lambda _: None)
        found.append(score(translations, texts.references, "en").bleu)
    return f"new {found[0]:5.1f}  old {found[1]:5.1f}"


if __name__ == "__main__":
    main()
