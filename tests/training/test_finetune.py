"""Fine-tuning: it starts from what the model knows, keeps its vocabulary, and shows what it gained and forgot."""

import codecs
import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_models import SMALL, random_model
from small_tasks import token_loss

from sixfold import modelfile
from sixfold.cli.main import main
from sixfold.config import TrainingConfig
from sixfold.model.transformer import load_model
from sixfold.tasks.translation_batches import pair_batch
from sixfold.training import lora
from sixfold.training.loop import train
from sixfold.training.state import State

EXACT = replace(SMALL, dropout=0.0)
PAIRS = [([5, 6, 7], [8, 9]), ([4], [10, 11, 12, 13, 14, 15]), ([6, 6], [7]), ([9, 8, 7, 6, 5, 4], [4, 5, 6])]


def run(arguments, capsys, status=0):
    with pytest.raises(SystemExit) as done:
        main(arguments)
    messages = capsys.readouterr()
    assert done.value.code == status, messages.err
    return messages


@pytest.fixture
def base(command, pairs, capsys):
    return base_model(command, pairs, capsys)


def base_model(command, pairs, capsys):
    """A model that has learnt a little, and new pairs: the same sentences as shouts."""
    run(command("--set", "model.d_model=32", steps=30, out="base"), capsys)
    for language, mark in (("zh", "！"), ("en", "!")):
        text = (pairs / f"train.{language}").read_text(encoding="utf-8").splitlines()
        shouted = "".join(f"{line.upper()}{mark}\n" for line in text[:200])
        (pairs / f"new.{language}").write_text(shouted, encoding="utf-8")
    return pairs / "base" / "model.safetensors"


def finetune(base, pairs, *more, steps=20):
    settings = ("training.batch_tokens=256", f"training.steps={steps}", "training.validate_every=10")
    return ["finetune", str(base), str(pairs / "new.zh"), str(pairs / "new.en"), "--out", str(pairs / "tuned"),
            *(word for setting in settings for word in ("--set", setting)), *more]  # fmt: skip


@pytest.mark.parametrize("rank", [0, 4])
def test_the_model_changes_the_vocabulary_stays_and_scores_are_shown_before_and_after(rank, base, pairs, capsys):
    old = ("--old", str(pairs / "train.zh"), "--old", str(pairs / "train.en"))
    messages = run(finetune(base, pairs, *old, "--lora", str(rank), "--json"), capsys)
    result = json.loads(messages.out)
    assert result["scores"].keys() == result["scores_before"].keys() == {"new", "old"}
    before, after = modelfile.load(base), modelfile.load(result["model"])
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert after.weights().keys() == before.weights().keys()
    name = "encoder.embedding.token.weight"
    assert np.array_equal(after.weights()[name], before.weights()[name]) == bool(rank)
    inner = "decoder.layers.0.feed_forward.up.weight"
    change = after.weights()[inner] - before.weights()[inner]
    assert np.linalg.matrix_rank(change, tol=1e-6) <= rank if rank else np.abs(change).max() > 1e-4
    assert np.abs(change).max() > 0
    assert after.card["validations"][0]["step"] == 0
    assert {"new_bleu", "old_bleu"} <= after.card["validations"][0].keys()


def test_old_pairs_make_up_the_share_that_was_asked_for(base, pairs, capsys):
    old = ("--old", str(pairs / "train.zh"), "--old", str(pairs / "train.en"), "--mix", "0.25")
    run(finetune(base, pairs, *old, steps=1), capsys)
    weights = {each["name"]: each["weight"] for each in modelfile.load(pairs / "tuned/model.safetensors").card["data"]}
    assert weights["new"] == 1
    assert weights["old"] * 336 == pytest.approx(200 / 3)


def test_another_model_to_start_from_is_refused(base, pairs, capsys):
    run(finetune(base, pairs, steps=3), capsys)
    model = modelfile.load(base)
    modelfile.save(base, model.config, model.weights(), model.tokenizer, {**model.card, "note": "another"})
    messages = run(finetune(base, pairs, steps=3), capsys, status=2)
    assert "model to start from is another or has changed" in messages.err


def test_one_dev_set_without_the_other_is_refused(base, pairs, capsys):
    more = ("--old", str(pairs / "train.zh"), "--old", str(pairs / "train.en"))
    more += ("--dev", str(pairs / "new.zh"), "--dev", str(pairs / "new.en"))
    assert "--dev and --old-dev: expected both or neither" in run(finetune(base, pairs, *more), capsys, status=2).err


def test_a_model_without_a_tokeniser_is_refused(base, pairs, capsys):
    model = modelfile.load(base)
    modelfile.save(base, model.config, model.weights(), None, {})
    assert "expected one with a tokeniser" in run(finetune(base, pairs), capsys, status=2).err


def test_what_lora_has_learnt_is_merged_into_the_weights_it_stands_beside():
    config = TrainingConfig(steps=5, warmup=1, learning_rate=1e-2, lora=3, ema=0.0)
    start = random_model(EXACT)
    start_weights = {name: weight.detach().clone() for name, weight in start.named_parameters()}
    state = State(start, config, token_loss(config))
    merged = lora.merge(state.model, state.weights)
    assert merged.keys() == start_weights.keys()
    assert all(torch.equal(merged[name], start_weights[name]) for name in start_weights), "it begins as it was"
    batch = pair_batch(PAIRS, EXACT)
    losses = [metrics.loss.item() for metrics in train(state, [[batch]] * 5, EXACT, config)]
    assert losses[-1] < losses[0]
    plain = load_model(EXACT, {name: weight.numpy() for name, weight in state.kept_weights.items()}).eval()
    state.model.eval()
    expected = state.model.hidden(**batch.inputs)
    torch.testing.assert_close(plain.hidden(**batch.inputs), expected, rtol=1e-4, atol=1e-5)
    learned = sum(weight.numel() for weight in state.weights.values())
    assert learned < sum(weight.numel() for weight in start_weights.values())
    assert all(name.endswith((lora.UP, lora.DOWN)) for name in state.weights)


def test_lora_without_a_model_to_start_from_is_refused(command, capsys):
    messages = run(command("--set", "training.lora=4"), capsys, status=2)
    assert "training.lora: expected 0 where no model is fine-tuned" in messages.err


def test_a_large_vocabulary_gets_a_shortlist_and_fine_tuning_adds_to_it(command, pairs, capsys, monkeypatch):
    monkeypatch.setattr("sixfold.tasks.translation.MIN_VOCAB_FOR_SHORTLIST", 1)
    path = base_model(command, pairs, capsys)
    old = modelfile.load(path).shortlist
    assert old is not None
    assert len(old.always) > 50  # so few pieces are all frequent
    run(finetune(path, pairs, steps=10), capsys)
    new = modelfile.load(pairs / "tuned" / "model.safetensors").shortlist
    for piece in range(len(old.begins) - 1):
        assert set(old.candidates([piece])) <= set(new.candidates([piece]))


def test_a_recipe_goes_on_from_a_model_and_has_no_preset_then(base, pairs, capsys):
    text = f'start = "{base}"\n[[corpus]]\nfiles = ["new.zh", "new.en"]\n[training]\nsteps = 2\nbatch_tokens = 256\n'
    (pairs / "more.toml").write_text(text, encoding="utf-8")
    (pairs / "wrong.toml").write_text(f'preset = "tiny"\n{text}', encoding="utf-8")
    messages = run(["train", str(pairs / "wrong.toml"), "--out", str(pairs / "wrong")], capsys, status=2)
    assert "preset: expected none beside a model to start from" in messages.err
    run(["train", str(pairs / "more.toml"), "--out", str(pairs / "more")], capsys)
    assert modelfile.load(pairs / "more" / "model.safetensors").config.model == modelfile.load(base).config.model


def test_sides_in_the_other_order_than_the_model_translates_are_refused(base, pairs, capsys):
    """By the names of the files, and where those say nothing by their scripts."""
    for number, language in enumerate(("zh", "en")):
        (pairs / f"{number}.txt").write_text((pairs / f"new.{language}").read_text(encoding="utf-8"), encoding="utf-8")
    for names in (("new.en", "new.zh"), ("1.txt", "0.txt")):
        arguments = finetune(base, pairs, steps=2)
        arguments[2:4] = [str(pairs / name) for name in names]
        messages = run(arguments, capsys, status=2).err
        assert "expected zh and then en, as the model to start from translates; got en and then zh" in messages
        assert "hint: name the files in the other order" in messages
    arguments[2:4] = [str(pairs / "0.txt"), str(pairs / "1.txt")]
    run(arguments, capsys)
    dev = ("--dev", str(pairs / "new.en"), "--dev", str(pairs / "new.zh"))
    assert (
        "expected zh and then en, as in the rest of the run"
        in run([*finetune(base, pairs, *dev), "--out", str(pairs / "other")], capsys, status=2).err
    )


def test_swapped_sides_of_one_script_are_told_by_the_model(command, pairs, capsys):
    """Both languages are Latin and the files have no telling names: the model writes the one and not the other."""
    english = (pairs / "train.en").read_text(encoding="utf-8")
    german = codecs.encode(english, "rot13")
    names = {"de": german, "en": english, "one.txt": german, "two.txt": english}
    for name, text in names.items():
        (pairs / (name if "." in name else f"train.{name}")).write_text(text, encoding="utf-8")
    learns = ("model.d_model=32", "model.dropout=0.0", "training.learning_rate=1e-2", "training.ema=0.0")
    arguments = command(*(word for setting in learns for word in ("--set", setting)), steps=40, out="latin")
    arguments[1] = str(pairs / "train.de")
    run(arguments, capsys)
    arguments = finetune(pairs / "latin" / "model.safetensors", pairs, steps=2)
    arguments[2:4] = [str(pairs / "two.txt"), str(pairs / "one.txt")]
    messages = run(arguments, capsys, status=2).err
    assert "two.txt, " in messages
    assert "one.txt: the two sides seem to be swapped: the model to start from has a loss of" in messages
    assert "state it: --set data.source=… --set data.target=…" in messages
    run([*arguments, "--set", "data.source=de", "--set", "data.target=en"], capsys)
    arguments[2:4] = [str(pairs / "one.txt"), str(pairs / "two.txt")]
    run([*arguments, "--out", str(pairs / "right")], capsys)
