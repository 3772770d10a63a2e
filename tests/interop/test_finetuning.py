"""Imported models are fine-tuned, evaluated and looked into like others, or refused by name."""

import json

import numpy as np
import pytest
import small_checkpoints as checkpoints
from commands import run_here

from sixfold import Translator, explore, modelfile
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.interop.sources import read_source
from sixfold.model.transformer import load_model
from sixfold.tasks.translation_validation import DevSet, TranslationValidator
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer
from sixfold.training.distributed import SINGLE_PROCESS
from sixfold.training.recipe_models import tokenizers_of
from sixfold.translation.direction import directions_of

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


def finetune(path, capsys, *more, status=0, out="tuned", steps=12):
    folder = path.parent
    settings = (
        f"training.steps={steps}", "training.batch_tokens=256", "training.validate_every=6",
        "training.learning_rate=0.003", 'data.skip=["copied", "script", "duplicate"]',
    )  # fmt: skip
    return run_here(
        capsys, "finetune", path, folder / "new.en", folder / "new.fr", "--output", folder / out, "--json",
        *(word for setting in settings for word in ("--set", setting)), *more, status=status,
    )  # fmt: skip


KINDS = [
    ((checkpoints.marian, {"one": True}), ("en", "fr")),
    ((checkpoints.marian, {}), ("en", "fr")),
    ((checkpoints.marian, {"separate": True}), ("en", "fr")),
    ((checkpoints.m2m100, {}), ("en", "fr")),
    ((checkpoints.mbart, {"fifty": False}), ("en", "ro")),
]


@pytest.mark.parametrize(("imported", "pair"), KINDS, indirect=["imported"])
def test_an_imported_model_learns_and_is_used_like_any_other(imported, pair, capsys, tmp_path):
    languages = ("--set", f"data.source={pair[0]}", "--set", f"data.target={pair[1]}")
    result = json.loads(finetune(imported, capsys, *languages).out)
    before, after = modelfile.load(imported), modelfile.load(result["model"])
    assert after.config.model == before.config.model
    assert after.config.data.max_tokens == before.config.data.max_tokens - (pair[1] == "ro")
    assert after.sequence_format == before.sequence_format
    for side in ("tokenizer", "target_tokenizer"):
        old, new = getattr(before, side), getattr(after, side)
        assert (new and new.to_json()) == (old and old.to_json())
    losses = [each["loss"] for each in after.card["validations"]]
    assert losses[-1] < losses[0] - 0.5
    small = tmp_path / "small.safetensors"
    run_here(capsys, "pack", result["model"], "--output", small)
    assert "fr" in (tmp_path / "tuned" / "report.html").read_text(encoding="utf-8")
    for model in (result["model"], small):
        with Translator(model, "cpu") as translator:
            assert translator.directions == [pair]
            assert translator.translate("The machines learn text.").text


SEPARATE = (checkpoints.marian, {"separate": True})


@pytest.mark.parametrize("imported", [SEPARATE], indirect=True)
@pytest.mark.parametrize("more", [(), ("--lora", "2"), ("--set", "training.packing=on")])
def test_a_run_that_stopped_goes_on_exactly(imported, more, capsys):
    more = (*more, "--set", "training.schedule=constant")
    whole = json.loads(finetune(imported, capsys, *more, out="whole").out)
    finetune(imported, capsys, *more, steps=6, out="halves")
    halves = json.loads(finetune(imported, capsys, *more, out="halves").out)
    first, second, before = (modelfile.load(path).weights() for path in (whole["model"], halves["model"], imported))
    for name, weight in first.items():
        assert np.array_equal(weight, second[name]), name
    for stack in ("encoder", "decoder"):
        name = f"{stack}.embedding.token.weight"
        assert np.array_equal(first[name], before[name]) == ("--lora" in more)
    assert whole["scores"] == halves["scores"]


@pytest.mark.parametrize(
    ("imported", "pair"),
    [(SEPARATE, ("en", "fr")), ((checkpoints.m2m100, {}), ("en", "zh")), ((checkpoints.mbart, {}), ("en", "ro"))],
    indirect=["imported"],
)
def test_validation_translates_as_the_engine_does(imported, pair):
    file = modelfile.load(imported)
    texts = ["The machines learn.", "I love code", "机器学习", "x y z"]
    validator = TranslationValidator(
        load_model(file.config.model, file.weights()), file.config.model, tokenizers_of(file), file.config.training,
        SINGLE_PROCESS, sequence_format=file.sequence_format,
    )  # fmt: skip
    directions = directions_of(file, CpuEngine(file, "float32", threads=1), file.tokenizer)
    direction = next(each for each in directions if each.languages == pair)
    sources = [direction.encoder_input(direction.tokenizer.encode(text)) for text in texts]
    results = direction.engine.decode(sources, SearchOptions(beam=1, max_length=128, max_ratio=2.0))
    # One by one, because the longest source of a batch decides how long targets may become.
    dev_sets = [DevSet("dev", [text], [text], pair) for text in texts]
    assert [validator.encode_sources(dev_set)[0] for dev_set in dev_sets] == sources
    translations = [validator.translate(dev_set, beam=1)[0] for dev_set in dev_sets]
    assert translations == [direction.target_tokenizer.decode(best.tokens) for (best,) in results]
    assert any(translations)


@pytest.mark.parametrize(
    ("imported", "more", "message"),
    [
        (
            (checkpoints.m2m100, {}),
            ("data.source=en", "data.target=xx"),
            "data.target: expected a language of the model",
        ),
        (SEPARATE, ("data.both_ways=true",), "the model to start from has two tokenisers"),
        ((checkpoints.marian, {"one": True}), ("data.both_ways=true",), "has no tokens that name the target language"),
        (SEPARATE, ("training.subword_sampling=0.1",), "training.subword_sampling: expected 0 with the tokeniser of"),
    ],
    indirect=["imported"],
)
def test_what_an_imported_model_cannot_learn_is_refused(imported, more, message, capsys):
    words = (word for setting in more for word in ("--set", setting))
    assert message in finetune(imported, capsys, *words, status=2).err


@pytest.mark.parametrize("imported", [SEPARATE], indirect=True)
def test_training_from_scratch_shares_one_tokeniser(imported, capsys):
    folder = imported.parent
    corpus = '[[corpus]]\nfiles = ["new.en", "new.fr"]\n'
    (folder / "borrowed.toml").write_text(f'tokenizer_of = "{imported}"\n{corpus}', encoding="utf-8")
    (folder / "sizes.toml").write_text(f"{corpus}[model]\nsource_vocab = 500\n", encoding="utf-8")
    for name, message in (
        ("borrowed", "tokenizer_of: expected a model with one tokeniser for both sides; this one has two"),
        ("sizes", "model.source_vocab: expected 0 where no model is fine-tuned"),
    ):
        error = run_here(capsys, "train", folder / f"{name}.toml", "--output", folder / name, status=2).err
        assert message in error


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
