"""Imported models are fine-tuned, evaluated and looked into like others, or refused by name."""

import json

import numpy as np
import pytest
import small_checkpoints as checkpoints
from commands import run_here

from sixfold import Translator, explore, modelfile
from sixfold.interop.sources import read_source
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

LINES = [
    f"The machines {verb} {thing}." for verb in ("learn", "read", "love") for thing in ("text", "code", "books")
] * 12


@pytest.fixture
def imported(tmp_path, request):
    make, settings = request.param
    make(tmp_path / "checkpoint", **settings)
    file = read_source(str(tmp_path / "checkpoint" / "model"))
    modelfile.save(
        tmp_path / "m.safetensors", file.config, file.weights(), file.tokenizer, file.card,
        target_tokenizer=file.target_tokenizer, sequence_format=file.sequence_format,
    )  # fmt: skip
    for side in ("en", "fr"):
        (tmp_path / f"new.{side}").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return tmp_path / "m.safetensors"


def finetune(path, capsys, status=0):
    folder = path.parent
    settings = (
        "training.steps=12", "training.batch_tokens=256", "training.validate_every=6", "training.learning_rate=0.003",
        'data.skip=["copied", "script", "duplicate"]',
    )  # fmt: skip
    return run_here(
        capsys, "finetune", path, folder / "new.en", folder / "new.fr", "--output", folder / "tuned", "--json",
        *(word for setting in settings for word in ("--set", setting)), status=status,
    )  # fmt: skip


@pytest.mark.parametrize("imported", [(checkpoints.marian, {"one": True})], indirect=True)
def test_a_model_with_one_tokeniser_learns(imported, capsys):
    result = json.loads(finetune(imported, capsys).out)
    before, after = modelfile.load(imported), modelfile.load(result["model"])
    assert after.config.model == before.config.model
    assert after.sequence_format == before.sequence_format
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    losses = [each["loss"] for each in after.card["validations"]]
    assert losses[-1] < losses[0]
    with Translator(result["model"], "cpu") as translator:
        assert translator.directions == [("en", "fr")]
    output = run_here(capsys, "evaluate", imported, imported.parent / "new.en", imported.parent / "new.fr", "--json")
    assert json.loads(output.out)


@pytest.mark.parametrize(
    ("imported", "message"),
    [((checkpoints.marian, {}), "this one has two"), ((checkpoints.m2m100, {}), "this one has tokens of languages")],
    indirect=["imported"],
)
def test_what_training_cannot_write_is_refused(imported, message, capsys):
    assert message in finetune(imported, capsys, status=2).err


@pytest.mark.parametrize(
    ("imported", "pair"),
    [((checkpoints.marian, {}), ("en", "fr")), ((checkpoints.m2m100, {}), ("en", "zh")),
     ((checkpoints.mbart, {"fifty": False}), ("en", "ro"))],
    indirect=["imported"],
)  # fmt: skip
def test_an_imported_model_can_be_looked_into(imported, pair):
    trace = explore("The machines learn.", "machines", str(imported), *pair)
    assert [step.wrote for step in trace.steps()]
    weights, targets, sources = trace.alignment()
    assert weights.shape == (len(targets), len(sources))
    if isinstance(trace.tokenizer, VocabularyTokenizer):
        assert "".join(sources.texts).replace("▁", "") == "Themachineslearn."
    with Translator(imported, "cpu", compute="float32") as translator:
        tokens = trace.predicted.ids[trace.text_rows]
        score = translator.score("The machines learn.", "machines", *pair).score
        logprobs = trace["logits"] - trace["logits"].max(-1, keepdims=True)
        total = sum(
            float(row[token] - np.log(np.exp(row).sum()))
            for row, token in zip(logprobs[trace.text_rows], tokens, strict=True)
        )
        assert score == pytest.approx(total / len(tokens), abs=0.02)
