"""A small corpus and a command that trains on it in seconds."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))
import toy_translation as toy

SMALL = [
    "model.d_model=16", "model.heads=2", "model.d_ff=32", "model.encoder_layers=1", "model.decoder_layers=1",
    "tokenizer.vocab=400", "training.batch_tokens=256", "training.micro_tokens=100", "training.warmup=4",
    "training.validate_every=10", "training.checkpoint_every=5", "training.subword_sampling=0.1", "training.patience=0",
]  # fmt: skip


@pytest.fixture
def pairs(tmp_path):
    """Two files of lines, train.zh and train.en."""
    sentences = toy.sentences()
    for side, language in enumerate(("zh", "en")):
        text = "".join(f"{pair[side]}\n" for pair in sentences)
        (tmp_path / f"train.{language}").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def command(pairs):
    """Arguments of `sixfold train`; what a test adds comes last and wins."""

    def make(*extra, steps=20, out="run"):
        settings = [*SMALL, f"training.steps={steps}"]
        files = [str(pairs / "train.zh"), str(pairs / "train.en")]
        return ["train", *files, "--out", str(pairs / out), "--preset", "tiny",
                *(word for setting in settings for word in ("--set", setting)), *extra]  # fmt: skip

    return make
