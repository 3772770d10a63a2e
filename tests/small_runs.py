"""A real training run of a few seconds, for tests of its results."""

import subprocess
import sys
from pathlib import Path

import pytest
from made_once import made_once

from sixfold.cli.main import main

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))
import toy_translation as toy

SETTINGS = [
    "model.d_model=16", "model.heads=2", "model.d_ff=32", "model.encoder_layers=1", "model.decoder_layers=1",
    "tokenizer.vocab=400", "training.batch_tokens=256", "training.micro_tokens=256", "training.warmup=4",
    "training.validate_every=5", "training.checkpoint_every=5", "training.patience=0", "training.steps=10",
]  # fmt: skip


def shared_toy(factory):
    """Return the model file that the example writes; it is run once for all tests."""

    def learn(folder):
        command = [sys.executable, toy.__file__, folder / "toy.safetensors"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert result.returncode == 0, result.stderr

    return made_once(factory, "toy", learn) / "toy.safetensors"


def write_pairs(folder):
    """Write two files of lines, toy.zh and toy.en."""
    for side, language in enumerate(("zh", "en")):
        text = "".join(f"{pair[side]}\n" for pair in toy.sentences())
        (folder / f"toy.{language}").write_text(text, encoding="utf-8")
    return folder / "toy.zh", folder / "toy.en"


def train(folder, name, *changes):
    """Train on toy sentences, and return the folder of the run; later settings override earlier ones."""
    words = [word for setting in (*SETTINGS, *changes) for word in ("--set", setting)]
    files = map(str, write_pairs(folder))
    with pytest.raises(SystemExit) as result:
        main(["train", *files, "--out", str(folder / name), "--preset", "tiny", "--device", "cpu", *words])
    assert result.value.code == 0
    return folder / name
