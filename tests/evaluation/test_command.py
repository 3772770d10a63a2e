import json
import subprocess
import sys

import pytest
from small_runs import train
from small_systems import reworded

from sixfold.cli.main import main

WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from sixfold.cli.main import main
main(sys.argv[1:])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a trained model, a test set and the output of two other systems."""
    folder = tmp_path_factory.mktemp("evaluate")
    train(folder, "run")
    references = (folder / "toy.en").read_text(encoding="utf-8").splitlines()
    for seed in (1, 2):
        text = "".join(f"{line}\n" for line in reworded(references, seed))
        (folder / f"system{seed}.txt").write_text(text, encoding="utf-8")
    return folder


def run(capsys, folder, monkeypatch, *arguments):
    """Return the exit status, standard output and standard error of `sixfold evaluate`."""
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as exit_info:
        main(["evaluate", *arguments])
    printed = capsys.readouterr()
    return exit_info.value.code, printed.out, printed.err


@pytest.fixture
def evaluate(capsys, folder, monkeypatch):
    return lambda *arguments: run(capsys, folder, monkeypatch, *arguments)


def test_a_model_and_another_systems_output_are_compared(evaluate, folder):
    status, out, err = evaluate("run/model.safetensors", "system1.txt", "toy.zh", "toy.en", "--output", "compared")
    assert status == 0, err
    lines = out.splitlines()
    assert lines[0].split() == ["system", "BLEU", "chrF", "TER"]
    assert lines[1].startswith("model ")
    assert "p=0.001" in lines[2]
    assert "tok:13a" in out
    translations = (folder / "compared/translations/model.txt").read_text(encoding="utf-8").splitlines()
    assert len(translations) == len((folder / "toy.en").read_text(encoding="utf-8").splitlines())
    evaluation = json.loads((folder / "compared/evaluation.json").read_text(encoding="utf-8"))
    assert evaluation["systems"] == ["model", "system1"]
    assert f"{evaluation['scores']['system1']['BLEU']['value']:.2f}" in lines[2]
    assert "system1 against model" in (folder / "compared/comparison.html").read_text(encoding="utf-8")


def test_with_json_nothing_else_is_printed(evaluate):
    status, out, _ = evaluate("system1.txt", "system2.txt", "toy.zh", "toy.en", "--json", "--no-ter", "--samples", "50")
    evaluation = json.loads(out)
    assert status == 0
    assert evaluation["samples"] == 50
    assert list(evaluation["signatures"]) == ["BLEU", "chrF"]


def test_the_baseline_may_be_any_system(evaluate):
    arguments = ["system1.txt", "system2.txt", "toy.zh", "toy.en", "--json", "--no-ter"]
    assert json.loads(evaluate(*arguments, "--baseline", "system2.txt")[1])["baseline"] == "system2"
    added = json.loads(evaluate("system1.txt", *arguments[2:], "--baseline", "system2.txt")[1])
    assert added["systems"] == ["system2", "system1"]
    assert added["scores"]["system1"]["BLEU"]["p"] is not None


def test_a_model_against_itself_is_never_significant(evaluate):
    status, out, _ = evaluate("run/model.safetensors", "run/model.safetensors", "toy.zh", "toy.en", "--json")
    assert status == 0
    assert {estimate["p"] for estimate in json.loads(out)["scores"]["model (2)"].values()} == {1.0}


def test_a_table_of_pairs_has_corpora(evaluate, folder):
    sides = [(folder / name).read_text(encoding="utf-8").splitlines() for name in ("toy.zh", "toy.en")]
    rows = [
        f"{zh}\t{en}\t{'odd' if number % 2 else 'even'}" for number, (zh, en) in enumerate(zip(*sides, strict=True))
    ]
    (folder / "toy.zh-en.tsv").write_text("\n".join(rows), encoding="utf-8")
    status, out, _ = evaluate("system1.txt", "toy.zh-en.tsv", "--json", "--no-ter")
    assert status == 0
    assert [bucket["name"] for bucket in json.loads(out)["buckets"]["corpus"]] == ["even", "odd"]


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        (["toy.zh", "toy.en"], "files: expected systems, then source and reference", "for example"),
        (["system1.txt"], "files: expected systems, then source and reference", "for example"),
        (["system1.txt", "toy.zh", "none.en"], "none.en: No such file", None),
        (["none.safetensors", "toy.zh", "toy.en"], "none.safetensors: No such file", None),
        (["system1.txt", "toy.zh", "toy.en", "--output", "toy.en"], "--output: toy.en: expected a folder", "choose"),
        (["run/config.toml", "toy.zh", "toy.en"], "run/config.toml: expected 336 lines", "a model file ends in"),
        (["run/model.safetensors", "toy.zh", "toy.en", "--compute", "int4"], "compute: expected one of", None),
        (["system1.txt", "toy.zh", "toy.en", "--comet", "no.ckpt"], "--comet: no.ckpt: expected a checkpoint", None),
    ],
)
def test_mistakes_get_one_line_and_a_hint(evaluate, arguments, message, hint):
    status, out, err = evaluate(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == (2 if hint else 1)
    assert hint is None or f"hint: {hint}" in err


def test_a_mistake_in_a_text_file_costs_no_translating(evaluate, folder, monkeypatch):
    monkeypatch.setattr("sixfold.cli.evaluate.translate_with", lambda *_: pytest.fail("translated in vain"))
    (folder / "short.txt").write_text("one line\n", encoding="utf-8")
    assert evaluate("run/model.safetensors", "short.txt", "toy.zh", "toy.en")[0] == 2


def test_without_sacrebleu_the_extra_is_named(evaluate, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert evaluate("system1.txt", "toy.zh", "toy.en")[2].endswith("hint: pip install 'sixfold[evaluate]'\n")


@pytest.mark.parametrize(
    "arguments", [["evaluate", "run/model.safetensors", "system1.txt", "toy.zh", "toy.en"], ["report", "run", "--json"]]
)
def test_it_works_without_torch(folder, arguments):
    process = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, *arguments], cwd=folder, capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout
