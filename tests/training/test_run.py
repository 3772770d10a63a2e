"""`sixfold train` from raw text to a model file, and what bad input gets: one line, and nothing lost."""

import json
import os
import re
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from small_models import SMALL, random_model
from small_tasks import token_loss
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from sixfold import files, modelfile, tensorfile
from sixfold.cli.main import main
from sixfold.config import TrainingConfig, to_dict
from sixfold.data import corpus
from sixfold.reports.run_record import read_runs as read_records
from sixfold.tasks.loss import TokenLoss
from sixfold.tasks.translation_validation import TranslationValidator
from sixfold.text import language_profiles
from sixfold.training import checkpoint, loop
from sixfold.training.checkpoint import Progress
from sixfold.training.run_folder import claim
from sixfold.training.schedule import learning_rate
from sixfold.training.state import State


def run(arguments, capsys, status=0):
    """Run the command in this process; what it said."""
    with pytest.raises(SystemExit) as done:
        main(arguments)
    messages = capsys.readouterr()
    assert done.value.code == status, messages.err
    assert "Traceback" not in messages.err
    return messages


def complaint(arguments, capsys):
    """The one line and the hint of a user's mistake."""
    errors = run(arguments, capsys, status=2).err.splitlines()
    first = next(number for number, line in enumerate(errors) if line.startswith("error: "))
    assert len(errors) - first <= 2
    return " ".join(errors[first:])


def test_two_files_become_one_model_file(command, pairs, capsys):
    messages = run(command("--json", steps=20), capsys)
    result = json.loads(messages.out)
    model = modelfile.load(result["model"])
    assert model.tokenizer is not None
    assert model.card["languages"] == {"source": "zh", "target": "en"}
    assert model.card["scores"]["dev"] == result["scores"]["dev"]
    assert "tok:13a" in result["scores"]["dev"]["signature"]
    assert model.card["cost"]["tokens"] > 0
    assert [each["step"] for each in model.card["validations"]] == [10, 20]
    assert "sixfold summary" in messages.err.splitlines()[-1]
    assert "336 pairs read, 336 kept" in messages.err
    assert re.search(r"padding: \d+\.\d% of what the model reads", messages.err)
    kept = {path.name for path in (pairs / "run").iterdir()}
    assert {"model.safetensors", "config.toml", "metrics.jsonl", "tensorboard", "checkpoints", "run.json"} <= kept
    steps = sorted(path.name for path in (pairs / "run" / "checkpoints").iterdir())
    assert steps == [f"step-{step:09}.safetensors" for step in (10, 15, 20)]  # the last three


def test_profiles_of_both_languages_are_learnt_and_kept_by_a_longer_run_and_by_fine_tuning(
    command, pairs, capsys, monkeypatch
):
    monkeypatch.setattr(language_profiles, "MIN_LETTERS", 1000)  # a toy corpus is shorter than real ones
    run(command(steps=5), capsys)
    profiles = modelfile.load(pairs / "run/model.safetensors").profiles
    assert set(profiles) == {"zh", "en"}
    assert profiles["zh"].scripts == ("Han",)
    assert profiles["en"].log_odds("the cat sees the dog") > profiles["en"].log_odds("der Hund läuft schnell")
    for path in (pairs / "run/data").glob("profiles-*.json"):
        path.unlink()  # as in a run that an older version began
    run(command(steps=6), capsys)
    assert modelfile.load(pairs / "run/model.safetensors").profiles == profiles
    files = [str(pairs / "train.zh"), str(pairs / "train.en")]
    finetune = ["finetune", str(pairs / "run/model.safetensors"), *files, "--set", "training.steps=1"]
    run([*finetune, "--out", str(pairs / "tuned")], capsys)
    assert modelfile.load(pairs / "tuned/model.safetensors").profiles == profiles


def test_a_model_learns_from_the_command_line(command, capsys):
    learns = ["model.d_model=64", "model.heads=4", "model.d_ff=128", "model.dropout=0.0", "training.learning_rate=5e-3"]
    settings = [word for setting in [*learns, "training.validate_every=75"] for word in ("--set", setting)]
    messages = run(command("--json", *settings, steps=150), capsys)
    assert json.loads(messages.out)["scores"]["dev"]["bleu"] > 50


def test_a_run_that_has_ended_is_not_run_again(command, capsys):
    first = json.loads(run(command("--json", steps=6), capsys).out)
    messages = run(command("--json", steps=6), capsys)
    assert json.loads(messages.out)["scores"] == first["scores"]
    assert "this run has ended" in messages.err


def test_a_changed_setting_is_refused_with_the_difference(command, capsys):
    run(command(steps=6), capsys)
    messages = complaint(command("--set", "training.learning_rate=0.5", "--set", "training.seed=7", steps=6), capsys)
    assert "training.learning_rate: not set → 0.5" in messages
    assert "training.seed: not set → 7" in messages
    assert "another --out" in messages


@pytest.fixture
def reads(monkeypatch):
    """The names of the user's files, one for each time that one is opened to be read."""
    honest, names = corpus.open_file, []

    def counted(path, *rest):
        names.append(path.name)
        return honest(path, *rest)

    monkeypatch.setattr(corpus, "open_file", counted)
    return names


def test_raw_text_is_read_three_times_and_by_no_later_start(command, pairs, capsys, reads):
    """To clean, to learn a tokeniser and to store tokens: the digest and the dev set are by-products of cleaning."""
    run(command(steps=6), capsys)
    assert sorted(reads) == ["train.en"] * 3 + ["train.zh"] * 3
    reads.clear()
    run(command(steps=6), capsys)
    forget_the_end(pairs / "run")
    run(command(steps=6), capsys)
    run(command(steps=8), capsys)
    assert reads == []


def test_a_text_that_was_touched_is_read_once_more_and_goes_on(command, pairs, capsys, reads):
    run(command(steps=6), capsys)
    known = sorted(path.name for path in (pairs / "run" / "data").iterdir())
    reads.clear()
    os.utime(pairs / "train.zh", (1, 1))
    assert "this run has ended" in run(command(steps=6), capsys).err
    assert sorted(reads) == ["train.en", "train.zh"]
    assert sorted(path.name for path in (pairs / "run" / "data").iterdir()) == known


def logged(folder):
    """The training steps of metrics.jsonl and their learning rates."""
    rows = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return {row["step"]: row["learning_rate"] for row in rows if "learning_rate" in row}


def test_a_run_that_has_ended_goes_on_when_its_steps_are_raised(command, pairs, capsys):
    """The schedule is that of the new length from there on; what was validated before still counts."""
    run(command(steps=20), capsys)
    messages = run(command("--json", steps=30), capsys)
    assert "the run is made longer: 30 steps instead of 20" in messages.err
    assert "going on from step 20" in messages.err
    result = json.loads(messages.out)
    assert result["step"] == 30
    assert [each["step"] for each in modelfile.load(result["model"]).card["validations"]] == [10, 20, 30]
    rates = logged(pairs / "run")
    assert list(rates) == list(range(1, 31))
    config = read_records([pairs / "run"])[0].config
    for length, steps in ((20, range(1, 21)), (30, range(21, 31))):
        training = TrainingConfig(
            steps=length, warmup=4, schedule="cosine", learning_rate=config["training.learning_rate"]
        )
        assert [rates[step] for step in steps] == pytest.approx([learning_rate(training, 16, step) for step in steps])
    assert config["training.steps"] == 30
    assert "this run has ended" in run(command(steps=30), capsys).err
    assert "training.steps: 30 → 20" in complaint(command(steps=20), capsys)
    assert "training.seed: not set → 7" in complaint(command("--set", "training.seed=7", steps=40), capsys)


def test_a_run_whose_patience_had_ended_goes_on_when_it_is_made_longer(command, capsys):
    settings = ["--set", "training.learning_rate=1e-9", "--set", "training.patience=1"]
    first = json.loads(run(command("--json", *settings, steps=100), capsys).out)
    assert first["step"] < 100
    longer = json.loads(run(command("--json", *settings, steps=110), capsys).out)
    assert longer["step"] > first["step"]


def test_a_corpus_that_changes_or_vanishes_is_refused_and_nothing_is_lost(command, pairs, capsys):
    run(command(steps=6), capsys)
    before = (pairs / "run" / "model.safetensors").read_bytes()
    (pairs / "run" / "run.json").write_text(
        json.dumps(json.loads((pairs / "run" / "run.json").read_text(encoding="utf-8")) | {"finished": False})
    )
    text = (pairs / "train.en").read_text(encoding="utf-8")
    (pairs / "train.en").write_text(text.replace("love", "like", 1), encoding="utf-8")
    assert "corpus train 1 (train) is another or has changed" in complaint(command(steps=6), capsys)
    (pairs / "train.en").unlink()
    assert "train.en: No such file" in complaint(command(steps=6), capsys)
    (pairs / "train.en").write_text(text, encoding="utf-8")
    run(command(steps=6), capsys)
    assert tensorfile.read(pairs / "run" / "model.safetensors")[0].keys()
    assert len((pairs / "run" / "model.safetensors").read_bytes()) == pytest.approx(len(before), abs=300)


def test_sides_of_different_length_name_both_files(command, pairs, capsys):
    with (pairs / "train.zh").open("a", encoding="utf-8") as file:
        file.write("多了一行\n")
    messages = complaint(command(), capsys)
    assert "train.en: expected as many lines as" in messages
    assert "(337); got 336" in messages


def test_an_empty_corpus_says_so(command, pairs, capsys):
    for language in ("zh", "en"):
        (pairs / f"train.{language}").write_text("")
    assert "corpus: expected pairs of text; it is empty" in complaint(command(), capsys)


def test_a_corpus_of_rubbish_names_the_filter_that_dropped_it(command, pairs, capsys):
    for language in ("zh", "en"):
        (pairs / f"train.{language}").write_text("same\n" * 50)
    messages = complaint(command("--set", "data.source=zh", "--set", "data.target=en"), capsys)
    assert "none of 50 pairs is left" in messages
    assert "data.skip" in messages


def test_a_text_that_is_its_own_translation_is_refused(command, pairs, capsys):
    """One file named twice, a copy of it under another name, and most lines of it, in one language or in two."""
    arguments = command()
    arguments[2] = arguments[1]
    assert "train.zh: expected a file of translations beside it; got the same file" in complaint(arguments, capsys)
    lines = (pairs / "train.en").read_text(encoding="utf-8").splitlines()
    other = (pairs / "train.zh").read_text(encoding="utf-8").splitlines()
    for language, text in (("en", [*lines[:-100], *other[-100:]]), ("de", [line.upper() for line in lines])):
        (pairs / f"copy.{language}").write_text("\n".join([*text, ""]), encoding="utf-8")
    arguments[1:3] = [str(pairs / "train.en"), str(pairs / "copy.en")]
    arguments += ["--set", 'data.skip=["script", "ratio"]']
    messages = complaint(arguments, capsys)
    assert "most of 336 pairs have the same text on both sides" in messages
    assert "data.skip" in messages
    arguments[1:3] = [str(pairs / "train.en"), str(pairs / "copy.de")]
    assert "dropped 336 of them" in complaint(arguments, capsys)


def test_a_line_of_a_megabyte_is_one_dropped_pair(command, pairs, capsys):
    for language, word in (("zh", "长"), ("en", "long ")):
        with (pairs / f"train.{language}").open("a", encoding="utf-8") as file:
            file.write(word * 400_000 + "\n")
    messages = run(command(steps=5), capsys).err
    assert re.search(r"long +1 +0\.3% +train\.zh:337", messages)


@pytest.mark.parametrize("out", ["/proc/nothing/run", "train.zh/run"])
def test_an_output_folder_that_cannot_be_written_is_an_error_before_anything_is_read(command, pairs, capsys, out):
    arguments = command()
    arguments[arguments.index("--out") + 1] = str(pairs / out)
    messages = complaint(arguments, capsys)
    assert "cannot write" in messages
    assert "pairs read" not in messages


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.stepz=5", "training.stepz: no such setting hint: did you mean 'steps'?"),
        ("trainin.steps=5", "'trainin': expected a section (model, tokenizer, training, data)"),
        ("training.steps=many", "training.steps: expected an int; got 'many'"),
        ("data.skip=[\"ratios\"]", "hint: did you mean 'ratio'?"),
        ("model.kind=encoder", "model.kind: expected encoder-decoder to learn from pairs"),
    ],
)  # fmt: skip
def test_a_misspelt_setting_is_an_error_with_a_suggestion(command, capsys, setting, expected):
    assert expected in complaint(command("--set", setting), capsys)


def test_more_than_two_files_or_an_unknown_device_are_refused(command, pairs, capsys):
    assert "expected two files" in complaint(["train", "a", "b", "c"], capsys)
    assert "--device: expected auto, cpu or cuda" in complaint(command("--device", "tpu"), capsys)
    if not torch.cuda.is_available():
        assert "expected a GPU" in complaint(command("--device", "cuda"), capsys)
    assert "no such file" in complaint(["train", "nothing.zh", "nothing.en", "--out", str(pairs / "x")], capsys).lower()


def test_a_damaged_checkpoint_gives_way_to_the_one_before(command, pairs, capsys):
    run(command(steps=20), capsys)
    forget_the_end(pairs / "run")
    newest = sorted((pairs / "run" / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    messages = run(command(steps=20), capsys).err
    assert "cut short" in messages
    assert "going on from step 15" in messages


def test_two_runs_cannot_share_a_folder(command, pairs, capsys):
    (pairs / "run").mkdir()
    with claim(pairs / "run"):
        assert "another process is training there" in complaint(command(), capsys)
    run(command(steps=2), capsys)


def test_a_learned_position_table_must_hold_the_longest_pair(command, capsys):
    settings = ["--set", "model.positions=learned", "--set", "model.max_length=40"]
    assert "data.max_tokens: expected at most 40, the rows" in complaint(command(*settings), capsys)
    run(command(*settings, "--set", "data.max_tokens=40", steps=4), capsys)


def forget_the_end(folder: Path):
    """As a run that was killed when its last checkpoint had just been written."""
    known = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    known.pop("finished")
    (folder / "run.json").write_text(json.dumps(known), encoding="utf-8")
    (folder / "model.safetensors").unlink()


def test_a_checkpoint_of_a_later_step_does_not_outlive_the_one_that_was_gone_on_from(tmp_path):
    """It is damaged, or of a past that the run went back from; kept by its number, it would crowd out the good ones."""
    state = State(random_model(SMALL), TrainingConfig(), token_loss(TrainingConfig()))
    (tmp_path / "step-000000030.safetensors").write_bytes(b"damaged")
    for state.step in (0, 5, 10):
        checkpoint.save(tmp_path, state, Progress(), keep=2)
    assert [path.name for path in checkpoint.steps(tmp_path)] == [
        "step-000000005.safetensors",
        "step-000000010.safetensors",
    ]


def test_what_a_killed_process_left_half_written_is_cleared_away(command, pairs, capsys):
    (pairs / "run" / "checkpoints").mkdir(parents=True)
    half = pairs / "run" / "checkpoints" / f".step-000000005.safetensors.x1{files.UNFINISHED_SUFFIX}"
    half.write_bytes(b"half")
    theirs = pairs / "run" / "best-of-mine.safetensors"
    theirs.write_bytes(b"of the user")
    run(command(steps=5), capsys)
    assert not half.exists()
    assert theirs.read_bytes() == b"of the user"


def test_the_same_text_under_names_of_other_languages_is_another_run(command, pairs, capsys):
    run(command(steps=5), capsys)
    arguments = command(steps=5)
    arguments[1:3] = [str(pairs / "train.en"), str(pairs / "train.zh")]
    assert "language.source: zh → en" in complaint(arguments, capsys)


def test_a_test_set_that_is_broken_is_found_before_training(pairs, tmp_path, capsys):
    (tmp_path / "bad.tsv").write_text("only one column\n", encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text('[[corpus]]\nfiles = ["train.zh", "train.en"]\n[[test]]\nfiles = ["bad.tsv"]\n', encoding="utf-8")
    messages = complaint(["train", str(recipe), "--out", str(pairs / "run")], capsys)
    assert "bad.tsv:1: expected 2 columns or more; got 1" in messages
    assert "pairs read" not in messages


def test_data_is_for_recipes_and_a_seed_is_a_small_number(command, pairs, capsys):
    assert "--data: expected only with a recipe" in complaint(command("--data", str(pairs)), capsys)
    assert "training.seed: expected 0 to 2**32 - 1; got -1" in complaint(command("--set", "training.seed=-1"), capsys)


def test_a_test_set_that_is_added_later_is_refused(pairs, tmp_path, capsys):
    """Its sentences were not kept out of the training, as those of the sets named from the start are."""
    recipe = tmp_path / "recipe.toml"
    text = RECIPE.split("[[corpus]]")[0] + '[[corpus]]\nfiles = ["train.zh", "train.en"]\n'
    recipe.write_text(text, encoding="utf-8")
    arguments = ["train", str(recipe), "--out", str(pairs / "run")]
    run(arguments, capsys)
    (tmp_path / "new.tsv").write_text("没有人说过的话\tNobody said this\n", encoding="utf-8")
    recipe.write_text(text + '[[test]]\nfiles = ["new.tsv"]\ncolumns = [1, 2]\n', encoding="utf-8")
    assert "corpus test 1 (new) is another or has changed" in complaint(arguments, capsys)


def test_every_pair_in_the_dev_set_leaves_nothing_to_learn(command, pairs, capsys):
    messages = complaint(command("--dev", str(pairs / "train.zh"), "--dev", str(pairs / "train.en")), capsys)
    assert "all pairs are in the dev or test sets" in messages


def test_an_interrupt_in_the_middle_of_a_validation_owes_it(command, pairs, capsys, monkeypatch):
    """Stopped, it saves and goes; started again, it validates first, and all ends as if nothing had been."""
    run(command(steps=20, out="whole"), capsys)
    original = TranslationValidator.translate
    calls = []

    def interrupted(self, texts, beam):
        calls.append(beam)
        if len(calls) == 2:
            self.check_stop.__self__.requested = True  # as Ctrl-C does
        return original(self, texts, beam)

    monkeypatch.setattr(TranslationValidator, "translate", interrupted)
    assert "stopped at step 20" in run(command(steps=20, out="stopped"), capsys).err
    run(command(steps=20, out="stopped"), capsys)
    whole, stopped = (modelfile.load(pairs / out / "model.safetensors") for out in ("whole", "stopped"))
    assert whole.card["validations"] == stopped.card["validations"]
    assert all((whole.weight(name) == stopped.weight(name)).all() for name in whole.weights())


def test_checkpoints_that_are_all_damaged_are_not_begun_again_from_nothing(command, pairs, capsys):
    run(command(steps=20), capsys)
    forget_the_end(pairs / "run")
    for path in (pairs / "run" / "checkpoints").iterdir():
        path.write_bytes(b"nonsense")
    assert "none of 3 checkpoints can be read" in complaint(command(steps=20), capsys)


RECIPE = """
preset = "tiny"
[model]
d_model = 16
heads = 2
d_ff = 32
encoder_layers = 1
decoder_layers = 1
[tokenizer]
vocab = 400
[training]
steps = 10
batch_tokens = 256
[[corpus]]
files = ["corpora/a.tsv"]
weight = 2.0
[[corpus]]
files = ["corpora/b.jsonl"]
[[dev]]
name = "held out"
files = ["corpora/dev.tsv"]
[[test]]
name = "test"
files = ["corpora/dev.tsv"]
bleu = 90.0
tolerance = 1.5
"""


def test_a_recipe_names_corpora_settings_and_what_to_expect(pairs, tmp_path, capsys):
    lines = [(pairs / f"train.{language}").read_text(encoding="utf-8").splitlines() for language in ("zh", "en")]
    both = list(zip(*lines, strict=True))
    folder = tmp_path / "data" / "corpora"
    folder.mkdir(parents=True)
    (folder / "a.tsv").write_text("".join(f"{zh}\t{en}\n" for zh, en in both[:150]), encoding="utf-8")
    (folder / "b.jsonl").write_text(
        "".join(json.dumps({"source": zh, "target": en}) + "\n" for zh, en in both[150:300]), encoding="utf-8"
    )
    (folder / "dev.tsv").write_text("".join(f"{zh}\t{en}\n" for zh, en in both[300:]), encoding="utf-8")
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(RECIPE, encoding="utf-8")
    arguments = ["train", str(recipe), "--data", str(tmp_path / "data"), "--out", str(tmp_path / "run"), "--json"]
    messages = run(arguments, capsys)
    scores = json.loads(messages.out)["scores"]
    assert set(scores) == {"held out", "test"}
    assert "test: expected BLEU 90.0 ± 1.5; got" in messages.err
    model = modelfile.load(tmp_path / "run" / "model.safetensors")
    assert [(corpus["name"], corpus["weight"]) for corpus in model.card["data"]] == [("a", 2.0), ("b", 1.0)]
    assert to_dict(model.config)["training"]["steps"] == 10
    recipe.write_text(RECIPE.replace("weight", "wheight"), encoding="utf-8")
    assert "corpus 1: corpus.wheight: no such setting" in complaint(arguments, capsys)
    recipe.write_text("corpus = 3\n" + RECIPE.split("[[corpus]]")[0], encoding="utf-8")
    assert "expected tables; got 3" in complaint(arguments, capsys)
    recipe.write_text(RECIPE.replace('"held out"', '"test"'), encoding="utf-8")
    assert "expected another name for each set" in complaint(arguments, capsys)


def test_a_bad_loss_is_skipped_then_undone_naming_the_lines(command, pairs, capsys, monkeypatch):
    """The data goes on behind the batches that did the harm, and the weights are those of the last checkpoint."""
    original = loop.add_gradient
    calls = []

    def sometimes_nan(state, *arguments):
        calls.append(state.step)
        loss = original(state, *arguments)
        if len(calls) == 4 or 12 <= len(calls) <= 16:
            for weight in state.weights.values():
                weight.grad.fill_(float("nan"))
            return loss * float("nan")
        return loss

    monkeypatch.setattr(loop, "add_gradient", sometimes_nan)
    messages = run(command("--set", "training.micro_tokens=0", steps=20), capsys).err
    assert re.search(r"step 4: loss nan: skipped; its \d+ examples begin with train\.zh:\d+, train\.zh:\d+", messages)
    assert messages.count("skipped; its") == 6
    assert "went back to step 15; the data goes on" in messages
    assert calls == [*range(1, 17), *range(16, 21)]
    (record,) = read_records([pairs / "run"])
    assert list(record.series("loss").x) == list(range(1, 21)), "each step is logged once"
    assert list(record.series("dev_bleu").x) == [10, 20]
    events = EventAccumulator(str(pairs / "run" / "tensorboard")).Reload()
    assert [point.step for point in events.Scalars("loss")] == list(range(1, 21))
    weights = modelfile.load(pairs / "run" / "model.safetensors").weights()
    assert all(np.isfinite(array).all() for array in weights.values())


def test_a_loss_that_explodes_for_ever_ends_the_run_with_a_hint(command, capsys, monkeypatch):
    def nan(_self, model, _batch, _execution):
        return sum(weight.sum() for weight in model.parameters()) * np.nan

    monkeypatch.setattr(TokenLoss, "__call__", nan)
    assert "explodes again and again" in complaint(command(steps=60), capsys)


def test_early_stopping_ends_the_run_when_the_score_stays(command, capsys):
    settings = ["--set", "training.learning_rate=1e-9", "--set", "training.patience=2"]
    result = json.loads(run(command("--json", *settings, steps=5000), capsys).out)
    assert result["finished"]
    assert result["step"] < 5000
    card = modelfile.load(result["model"]).card
    assert card["validations"][-1]["step"] == result["step"] == card["step"] + 20  # two more that did not beat it


def test_a_dev_set_of_the_user_is_used_and_never_trained_on(command, pairs, capsys):
    for language in ("zh", "en"):
        shutil.copy(pairs / f"train.{language}", pairs / f"dev.{language}")
        lines = (pairs / f"dev.{language}").read_text(encoding="utf-8").splitlines()[:40]
        (pairs / f"dev.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    messages = run(command("--dev", str(pairs / "dev.zh"), "--dev", str(pairs / "dev.en"), steps=5), capsys).err
    assert "296 pairs, zh→en" in messages


def test_the_thread_that_makes_batches_ends_with_the_run(command, capsys):
    before = threading.active_count()
    run(command(steps=5), capsys)
    assert threading.active_count() == before


@pytest.mark.parametrize("name", ["model.safetensors", "report.html", "config.toml", "metrics.jsonl"])
def test_a_folder_that_is_no_run_keeps_the_users_files(command, pairs, capsys, name):
    (pairs / "run").mkdir()
    (pairs / "run" / name).write_text("the user's")
    assert f"files that a run would replace: {name}" in complaint(command(steps=2), capsys)
    assert (pairs / "run" / name).read_text() == "the user's"
