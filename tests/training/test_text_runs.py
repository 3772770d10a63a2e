"""`sixfold train --kind decoder` from text to a model file, exactly resumed, and what is fine-tuned on answers."""

import json
import math
import random
import re
import signal
import subprocess
import sys
import time

import pytest
import small_generators
import torch
import torch.nn.functional as F
from commands import run_here
from killed_runs import ENVIRONMENT, finish, start, tensors, wait_for_step

from sixfold import modelfile
from sixfold.cli.main import main
from sixfold.config import to_dict
from sixfold.data.documents import TextCorpus
from sixfold.model.transformer import load_model
from sixfold.presets import preset
from sixfold.recipe import changed, of_texts
from sixfold.training import text_defaults, text_inputs
from sixfold.training.corpora import Sources
from sixfold.training.display import Display
from sixfold.training.interrupt import Interrupt
from sixfold.training.session import TrainingSession

SETTINGS = [
    "model.d_model=16", "model.heads=2", "model.d_ff=32", "model.decoder_layers=1", "tokenizer.vocab=330",
    "training.batch_tokens=256", "training.micro_tokens=100", "training.row_tokens=32", "training.warmup=4",
    "training.validate_every=10", "training.checkpoint_every=5", "training.patience=0",
]  # fmt: skip
NOUNS, VERBS = ("cat", "dog", "bird", "fish"), ("sees", "likes", "hears")


class PowerCut(BaseException):
    """Ends a run at once, as nothing that the code catches does."""


def grammar(seed, count):
    """Return documents of one to four sentences."""
    choose = random.Random(seed).choice

    def sentence():
        return f"the {choose(NOUNS)} {choose(VERBS)} the {choose(NOUNS)} ."

    return ["\n".join(sentence() for _ in range(choose((1, 2, 3, 4)))) for _ in range(count)]


def run(arguments, capsys):
    return run_here(capsys, *arguments)


def complaint(arguments, capsys):
    return run_here(capsys, *arguments, status=2).err


@pytest.fixture
def text(tmp_path):
    """A plain text of documents between blank lines."""
    path = tmp_path / "story.txt"
    path.write_text("\n\n".join(grammar(1, 300)) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def command(text):
    """Arguments of `sixfold train --kind decoder`; what a test adds comes last and wins."""

    def make(*extra, steps=20, out="run", files=(text,)):
        settings = [*SETTINGS, f"training.steps={steps}"]
        return ["train", "--kind", "decoder", *map(str, files), "--output", str(text.parent / out), "--device", "cpu",
                *(word for setting in settings for word in ("--set", setting)), *extra]  # fmt: skip

    return make


def test_a_text_becomes_one_model_file(command, text, capsys):
    messages = run(command("--json"), capsys)
    result = json.loads(messages.out)
    model = modelfile.load(result["model"])
    assert model.config.model.kind == "decoder"
    assert model.card["task"] == "causal-lm"
    assert model.card["scores"]["dev"] == result["scores"]["dev"]
    assert model.shortlist is None
    assert re.search(r"\d+ documents, [\d,]+ tokens in rows of 32, 308 pieces", messages.err)
    assert "padding: 0.0%" in messages.err
    assert "documents left out: split off as the dev set" in messages.err
    folder = text.parent / "run"
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    validations = [row for row in rows if "dev_loss" in row]
    assert [row["step"] for row in validations] == [10, 20] == [each["step"] for each in model.card["validations"]]
    assert validations[1]["dev_bits_per_byte"] < validations[0]["dev_bits_per_byte"]
    assert validations[1]["dev_perplexity"] == pytest.approx(math.exp(validations[1]["dev_loss"]))
    samples = [json.loads(line) for line in (folder / "samples.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [len(row["samples"]) for row in samples] == [3, 3]
    page = (folder / "report.html").read_text(encoding="utf-8")
    for words in ("language model", "Bits per byte on dev", "Perplexity on dev", "bits per byte, dev", "beginning"):
        assert words in page
    assert not list(folder.glob("*.translated.txt"))


def test_bits_per_byte_of_a_run_are_those_of_a_few_lines(command, text, capsys):
    held_out = text.parent / "unseen.jsonl"
    documents = grammar(2, 30)
    held_out.write_text("".join(json.dumps({"text": each}) + "\n" for each in documents), encoding="utf-8")
    settings = ["--dev", str(held_out), "--set", "training.row_tokens=512"]
    scores = json.loads(run(command("--json", *settings, steps=10), capsys).out)["scores"]["dev"]
    file = modelfile.load(text.parent / "run" / "model.safetensors")
    model, shape = load_model(file.config.model, file.weights()).eval(), file.config.model
    nats = 0.0
    with torch.no_grad():
        for each in documents:
            ids = torch.tensor([shape.bos, *file.tokenizer.encode(each), shape.eos])
            nats += float(F.cross_entropy(model(ids[None, :-1])[0], ids[1:], reduction="sum"))
    assert scores["bits_per_byte"] == pytest.approx(nats / math.log(2) / sum(map(len, documents)), rel=1e-4)
    assert scores["bytes"] == sum(map(len, documents))


def test_a_run_that_ended_suddenly_goes_on_to_the_same_bytes(command, text, capsys, monkeypatch):
    run(command(steps=30, out="whole"), capsys)
    honest = TrainingSession.read_metrics
    for last in (3, 13, 24):  # before the first checkpoint, between two, and before a validation is due

        def dies(session, log, last=last):
            if session.state.step == last:
                raise PowerCut
            return honest(session, log)

        monkeypatch.setattr(TrainingSession, "read_metrics", dies)
        with pytest.raises(PowerCut):
            main(command(steps=30, out="stopped"))
    monkeypatch.setattr(TrainingSession, "read_metrics", honest)
    assert "going on from step 20" in run(command(steps=30, out="stopped"), capsys).err
    whole, stopped = (text.parent / out for out in ("whole", "stopped"))
    assert tensors(whole / "model.safetensors") == tensors(stopped / "model.safetensors")
    logs = [(out / "metrics.jsonl").read_text(encoding="utf-8").splitlines() for out in (whole, stopped)]
    losses = [[(row["step"], row["loss"]) for row in map(json.loads, log) if "loss" in row] for log in logs]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 30


@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bytes(command, text):
    finish(command(steps=120, out="whole"))
    pick = random.Random(3)
    for number in range(2):
        process = start(command(steps=120, out="killed"))
        wait_for_step(process, text.parent / "killed", 30 * number + pick.randint(10, 30))
        time.sleep(pick.random() * 0.05)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "the run ended before it was killed"
    assert "going on from step" in finish(command(steps=120, out="killed"))
    whole, killed = (tensors(text.parent / out / "model.safetensors") for out in ("whole", "killed"))
    assert whole == killed


@pytest.mark.slow
def test_two_processes_train_and_judge_as_one(command, capsys):
    """With a dropout of 0, which follows from the number of a micro-batch, and not from the row in it."""
    settings = ["--json", "--set", "model.dropout=0", "--set", "training.micro_tokens=128"]
    alone = json.loads(run(command(*settings, out="alone"), capsys).out)["scores"]["dev"]
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "sixfold"]
    arguments = command(*settings, out="ranks")
    done = subprocess.run([*ranks, *arguments], env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    together = json.loads(done.stdout)["scores"]["dev"]
    assert together["tokens"] == alone["tokens"]
    assert together["bits_per_byte"] == pytest.approx(alone["bits_per_byte"], rel=1e-5)


def inputs_of(text, folder, *changes):
    """Prepare the inputs of a run as `sixfold train --kind decoder` does."""
    recipe = changed(of_texts([text]), "", ["model.kind=decoder", *changes])
    sources = text_inputs.find_sources(recipe, text.parent)
    display = Display(Interrupt(), quiet=True)
    return text_inputs.prepare_inputs(recipe, sources, folder, {}, torch.device("cpu"), display), sources


def test_nothing_has_to_be_set(text, tmp_path):
    inputs, _ = inputs_of(text, tmp_path / "run")
    training, shape = inputs.config.training, inputs.config.model
    assert (training.label_smoothing, training.weight_decay, training.beta2) == (0.0, 0.1, 0.95)
    assert training.schedule == "cosine"
    assert training.min_learning_rate == pytest.approx(training.learning_rate / 10)
    assert (shape.norm_position, shape.positions, shape.feed_forward) == ("pre", "rotary", "swiglu")
    assert shape.d_model == preset("decoder-tiny").model.d_model
    assert training.steps >= 500
    assert training.row_tokens == 256
    assert inputs.preset == "decoder-tiny"


@pytest.mark.parametrize(
    ("size", "device", "name"),
    [(10**6, "cpu", "decoder-tiny"), (10**7, "cpu", "decoder-tiny"), (10**7, "cuda", "decoder-small"),
     (10**9, "cpu", "decoder-small"), (10**9, "cuda", "decoder-base")],
)  # fmt: skip
def test_a_larger_text_gets_a_larger_model(size, device, name):
    config = text_defaults.choose({"training": {"learning_rate": 0.01}}, size, device)
    assert to_dict(config.model) | {"dropout": 0.0} == to_dict(preset(name).model) | {"dropout": 0.0}
    assert config.tokenizer.vocab <= config.model.vocab
    assert config.training.min_learning_rate == pytest.approx(0.001)


def test_other_processes_make_the_same_inputs_from_what_the_leader_sends(text, tmp_path):
    inputs, sources = inputs_of(text, tmp_path / "run", *SETTINGS)
    device = torch.device("cpu")
    again = text_inputs.unpack_inputs(text_inputs.pack_inputs(inputs), sources, tmp_path / "run", device, None)
    assert again.config == inputs.config
    assert again.task.row_tokens == inputs.task.row_tokens == again.examples.row_tokens == 32
    assert [again.examples.where(number) for number in (0, 9)] == [inputs.examples.where(number) for number in (0, 9)]
    assert again.dev == inputs.dev


def test_lines_are_held_out_where_a_text_has_no_documents(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"This is line {number}.\n" for number in range(100)), encoding="utf-8")
    inputs, sources = inputs_of(path, tmp_path / "run", *SETTINGS)
    assert isinstance(sources, Sources)
    assert len(inputs.dev[0].texts) == 5
    assert all(re.fullmatch(r"This is line \d+\.", text) for text in inputs.dev[0].texts)
    assert len(inputs.examples) == 95
    held_out = {int(re.search(r"\d+", text)[0]) + 1 for text in inputs.dev[0].texts}
    assert held_out.isdisjoint(inputs.examples.store.lines.tolist())


def test_a_dev_set_of_long_documents_is_small_enough_to_be_predicted_often(tmp_path, monkeypatch):
    monkeypatch.setattr(text_inputs, "MAX_DEV_CHARACTERS", 100)
    path = tmp_path / "a.txt"
    path.write_text("\n\n".join(f"{number} {'word ' * 8}" for number in range(200)), encoding="utf-8")
    inputs, _ = inputs_of(path, tmp_path / "run", *SETTINGS)
    assert 1 <= len(inputs.dev[0].texts) <= 3
    assert len(inputs.examples) + len(inputs.dev[0].texts) == 200


def test_several_files_are_several_corpora(command, text, capsys):
    more = text.parent / "more.jsonl"
    more.write_text("".join(json.dumps({"text": each}) + "\n" for each in grammar(3, 50)), encoding="utf-8")
    result = json.loads(run(command("--json", steps=2, files=(text, more)), capsys).out)
    assert [each["name"] for each in modelfile.load(result["model"]).card["data"]] == ["story", "more"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--set", "training.row_tokens=2000"], "training.row_tokens: expected at most model.max_length = 1024"),
        (["--set", "training.packing=off"], "training.packing"),
        (["--set", "training.score=bleu"], "training.score: expected loss"),
        (["--set", "training.subword_sampling=0.1"], "training.subword_sampling"),
        (["--set", "training.lora=4"], "training.lora"),
        (["--set", "training.min_learning_rate=0.1"], "training.min_learning_rate: expected 0 to learning_rate"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message, command, capsys):
    assert message in complaint(command(*changes), capsys)


def test_texts_that_do_not_fit_are_refused(command, text, tmp_path, capsys):
    few = tmp_path / "few.txt"
    few.write_text("one\ntwo\n", encoding="utf-8")
    assert "at least 20 documents" in complaint(command(files=(few,)), capsys)
    table = tmp_path / "pairs.tsv"
    table.write_text("a\tb\n" * 30, encoding="utf-8")
    assert "expected documents to learn a language from" in complaint(command(files=(table,)), capsys)
    assert "either documents or prompts" in complaint(command(files=(text, table)), capsys)
    assert "No such file" in complaint(command(files=(tmp_path / "none.txt",)), capsys)


@pytest.fixture
def base(command, text, capsys):
    run(command(steps=20), capsys)
    return text.parent / "run" / "model.safetensors"


@pytest.mark.parametrize("rank", [0, 4])
def test_answers_are_learnt_and_scored_before_and_after(rank, base, tmp_path, capsys):
    path = tmp_path / "answers.jsonl"
    records = [{"prompt": f"What does {number} like?\nSay:", "answer": "the fish"} for number in range(60)]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    tuned = ["finetune", str(base), str(path), "--output", str(tmp_path / "tuned"), "--device", "cpu", "--json",
             "--set", "training.steps=30", "--set", "training.batch_tokens=512", "--set", "training.validate_every=10",
             "--set", "training.learning_rate=0.02", "--lora", str(rank)]  # fmt: skip
    messages = run(tuned, capsys)
    result = json.loads(messages.out)
    before, after = result["scores_before"]["new"], result["scores"]["new"]
    assert after["bits_per_byte"] < 0.6 * before["bits_per_byte"]
    assert after["bytes"] == 3 * len("the fish")
    assert "(bits per byte, perplexity)" in messages.err
    old, new = modelfile.load(base), modelfile.load(result["model"])
    assert new.card["answers"] == 57
    assert new.tokenizer.to_json() == old.tokenizer.to_json()
    is_same = (old.weight("decoder.embedding.token.weight") == new.weight("decoder.embedding.token.weight")).all()
    assert is_same == bool(rank)
    page = (tmp_path / "tuned" / "report.html").read_text(encoding="utf-8")
    assert "bits per byte before" in page


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_an_imported_model_learns_answers_after_prompts_as_it_reads_them(family, tmp_path, capsys):
    small_generators.MAKERS[family](tmp_path / "hf")
    imported = tmp_path / "imported.safetensors"
    run(["import", str(tmp_path / "hf"), "--output", str(imported)], capsys)
    path = tmp_path / "answers.tsv"
    path.write_text("".join(f"How are you {number}?\tI am fine\n" for number in range(40)), encoding="utf-8")
    tuned = ["finetune", str(imported), str(path), "--output", str(tmp_path / "tuned"), "--device", "cpu", "--json",
             "--set", "training.steps=10", "--set", "training.batch_tokens=512"]  # fmt: skip
    result = json.loads(run(tuned, capsys).out)
    assert result["scores"]["new"]["loss"] < result["scores_before"]["new"]["loss"]
    old, new = modelfile.load(imported), modelfile.load(result["model"])
    assert new.prompt_format == old.prompt_format
    assert (new.config.model, new.tokenizer.to_json()) == (old.config.model, old.tokenizer.to_json())
    before = old.prompt_format.before
    assert len(before) == (family == "llama")
    # What the scores say, from the model alone.
    model, shape = load_model(old.config.model, old.weights()).eval(), old.config.model
    texts = dict(line.split("\t") for line in path.read_text(encoding="utf-8").splitlines())
    nats = {}
    for prompt, answer in texts.items():
        given = [*before, *old.tokenizer.encode(prompt)]
        ids = torch.tensor([*given, *old.tokenizer.encode(answer), shape.eos])
        with torch.no_grad():
            logits = model(ids[None, :-1])[0, len(given) - 1 :]
        nats[prompt] = float(F.cross_entropy(logits, ids[len(given) :]))
    (held_out,) = (
        json.loads(file.read_text(encoding="utf-8")) for file in (tmp_path / "tuned/data").glob("dev-*.json")
    )
    expected = sum(nats[prompt] for prompt, _ in held_out) / len(held_out)
    assert result["scores_before"]["new"]["loss"] == pytest.approx(expected, rel=1e-4)


def test_more_text_is_learnt_beside_old_text(base, text, tmp_path, capsys):
    new = tmp_path / "new.txt"
    new.write_text("\n\n".join(each.upper() for each in grammar(5, 60)), encoding="utf-8")
    tuned = ["finetune", str(base), str(new), "--old", str(text), "--mix", "0.25", "--output", str(tmp_path / "tuned"),
             "--device", "cpu", "--json", "--set", "training.steps=4", "--set", "training.row_tokens=32",
             "--set", "training.batch_tokens=256"]  # fmt: skip
    result = json.loads(run(tuned, capsys).out)
    assert result["scores"].keys() == {"new", "old"}
    data = {each["name"]: each["weight"] for each in modelfile.load(result["model"]).card["data"]}
    share = data["old"] * text.stat().st_size / (data["old"] * text.stat().st_size + new.stat().st_size)
    assert share == pytest.approx(0.25)


def test_a_corpus_is_one_file():
    with pytest.raises(Exception, match="expected one file of text"):
        TextCorpus("a", ("a.txt", "b.txt"))
