"""The options of all commands: one spelling each, old spellings, models by name, and shell completion."""

import json
import os
import shutil
import subprocess
import sys

import pytest
import typer
from commands import complaint, run_here, sixfold

from sixfold import modelfile
from sixfold.cli.main import VERBS, make_app
from sixfold.cli.options import OLD_SPELLINGS, replace_old_spellings
from sixfold.translation.loading import find_model, shipped_models


def commands():
    """Return every command by its name, including those of `tokenizer`."""
    all_commands = {}
    for name, command in typer.main.get_command(make_app([])).commands.items():
        all_commands |= {
            f"{name} {inner}": each for inner, each in getattr(command, "commands", {name: command}).items()
        }
    return all_commands


def options(command):
    return {name for parameter in command.params for name in parameter.opts if name.startswith("-")}


def test_every_verb_spells_its_options_the_same_way():
    all_commands = commands()
    assert {name.split()[0] for name in all_commands} == set(VERBS)
    for name, command in all_commands.items():
        names = options(command)
        assert not names & set(OLD_SPELLINGS), name
        assert ("--output" in names) == ("-o" in names), name
        assert ("--model" in names) == ("-m" in names), name
        for parameter in command.params:
            assert parameter.help or parameter.param_type_name == "argument", (name, parameter.name)
    assert sum("--output" in options(command) for command in all_commands.values()) >= 11
    assert sum("--model" in options(command) for command in all_commands.values()) >= 8
    assert all(
        {"--from", "--to"} <= options(all_commands[name]) for name in ("clean clean", "see see", "translate translate")
    )


def test_old_spellings_are_read_as_the_new_ones_where_the_command_has_these():
    names = {"--output", "-o", "--model", "--from"}
    assert list(replace_old_spellings(["a", "--out", "b", "--out=c"], names)) == ["a", "--output", "b", "--output=c"]
    assert list(replace_old_spellings(["-t", "x", "--source-language", "de"], names)) == [
        "--model",
        "x",
        "--from",
        "de",
    ]
    assert list(replace_old_spellings(["--to", "x", "--target", "y"], names)) == ["--to", "x", "--target", "y"]
    assert list(replace_old_spellings(["--", "--out"], names)) == ["--", "--out"]


def test_an_old_spelling_works_and_help_shows_the_new_one_only(tmp_path, capsys):
    pairs = tmp_path / "raw.tsv"
    pairs.write_text("我爱机器学习\tI love machine learning\n", encoding="utf-8")
    run_here(capsys, "clean", pairs, "--out", tmp_path / "x.tsv", "--source-language", "zh", "--target-language", "en")
    assert (tmp_path / "x.tsv").read_text(encoding="utf-8") == pairs.read_text(encoding="utf-8")
    help_text = run_here(capsys, "clean", "--help").out
    assert "--output" in help_text
    assert "--out " not in help_text
    assert "-language" not in help_text


@pytest.fixture
def run(model, tmp_path):
    """The folder of a run, as training leaves it."""
    (tmp_path / "run").mkdir()
    shutil.copy(model, tmp_path / "run" / "model.safetensors")
    return tmp_path / "run"


def test_the_folder_of_a_run_stands_for_its_model_in_every_verb(run, tmp_path, capsys):
    text = "我爱机器学习"
    assert run_here(capsys, "translate", "-m", f"{run}/", text).out == "I love machine learning\n"
    assert text in run_here(capsys, "see", "-m", run, text).out
    assert run_here(capsys, "similar", "-m", run, "我", "爱").out
    assert run_here(capsys, "neighbours", "-m", run, "我").out
    ids = run_here(capsys, "tokenizer", "encode", "-m", run, text).out
    assert run_here(capsys, "tokenizer", "decode", "--model", run, *ids.split()).out == f"{text}\n"
    assert "sha256" in run_here(capsys, "summary", run).out
    run_here(capsys, "pack", run, "--output", tmp_path / "packed.safetensors")
    assert modelfile.load(tmp_path / "packed.safetensors").storage == "int8"
    (tmp_path / "test.zh").write_text(f"{text}\n", encoding="utf-8")
    (tmp_path / "test.toy").write_text("I love machine learning\n", encoding="utf-8")
    words = ["evaluate", run, tmp_path / "test.zh", tmp_path / "test.toy", "--samples", 40, "--json"]
    assert json.loads(run_here(capsys, *words).out)["systems"]


def test_a_folder_without_a_model_is_told(tmp_path):
    for verb in (["translate", "x", "-m"], ["summary"], ["pack", "-o", tmp_path / "x"], ["tokenizer", "encode", "-m"]):
        message = complaint(*verb, tmp_path)
        assert "a folder with model.safetensors in it; got a folder without one" in message


def test_the_shipped_model_has_a_name_and_is_the_default(capsys, tmp_path, monkeypatch):
    (path,) = shipped_models()
    assert path.stem == "zh-en"
    assert find_model("zh-en") == find_model(None) == path
    named, default = (run_here(capsys, "summary", *words, "--json").out for words in (["-m", "zh-en"], []))
    assert named == default
    assert json.loads(named)["file"]["checksum"] == modelfile.load(path).checksum
    ids = run_here(capsys, "tokenizer", "encode", "机器学习").out
    assert ids == run_here(capsys, "tokenizer", "encode", "-m", "zh-en", "机器学习").out
    assert run_here(capsys, "tokenizer", "decode", *ids.split()).out == "机器学习\n"
    # A file or a folder of that name comes first.
    monkeypatch.chdir(tmp_path)
    shutil.copy(path, tmp_path / "zh-en")
    assert str(find_model("zh-en")) == "zh-en"


def complete(line):
    """Return what a shell offers for the last word of a line, and which modules were imported."""
    words = line.split(" ")
    shell = {"_SIXFOLD_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    command = [sys.executable, "-X", "importtime", "-m", "sixfold"]
    result = subprocess.run(command, env={**os.environ, **shell}, capture_output=True, text=True, timeout=60)
    return result.stdout.split(), result.stderr


def test_a_shell_completes_verbs_and_their_options():
    verbs, loaded = complete("sixfold t")
    assert verbs == ["tokenizer", "train", "translate"]
    assert "numpy" not in loaded
    assert "sixfold.cli.translate" not in loaded
    options, loaded = complete("sixfold pack --o")
    assert options == ["--output"]
    assert "sixfold.cli.translate" not in loaded


def test_completion_is_offered_by_the_command_alone():
    assert "--install-completion" in sixfold("--help").stdout
    assert "--install-completion" not in sixfold("config", "--help").stdout
