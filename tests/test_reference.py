"""The reference pages say what the code does: they are generated again, without torch, and compared."""

import importlib.util
import json
import subprocess
import sys

import pytest
from commands import run_here
from document_commands import ROOT
from small_runs import SETTINGS, write_pairs

SCRIPT = ROOT / "docs" / "generate_reference.py"
PAGES = ("cli.md", "python.md", "http.md", "settings.md", "json.md", "warnings.md", "model-file.md")
WITHOUT_TORCH = """
import runpy, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
runpy.run_path(sys.argv.pop(1), run_name="__main__")
"""


@pytest.fixture(scope="module")
def generated(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-c", WITHOUT_TORCH, SCRIPT, folder]
    process = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)
    assert process.returncode == 0, process.stderr
    return folder


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("generate_reference", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_generated_and_no_other_is_there(script):
    assert set(script.PAGES) == set(PAGES) == {path.name for path in (ROOT / "docs" / "reference").iterdir()}


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_is_what_the_code_says(generated, page):
    stored = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    new = (generated / page).read_text(encoding="utf-8")
    assert new == stored, f"docs/reference/{page} is out of date; run: python docs/generate_reference.py"


@pytest.mark.parametrize(
    "value", [{"cosine": 1.0}, {"one": "a", "other": "b", "sentences": False, "cosine": 1.0, "new": 1}]
)
def test_a_field_that_is_missing_or_not_described_is_noticed(script, value):
    (output,) = (each for each in script.OUTPUTS if each.title == "similar")
    with pytest.raises(SystemExit, match="similar: fields without a meaning"):
        script.field_rows(output, [value])


@pytest.mark.slow
def test_runs_print_and_log_the_fields_that_the_reference_describes(script, tmp_path, capsys):
    files = write_pairs(tmp_path)
    settings = [word for setting in SETTINGS for word in ("--set", setting)]
    run, tuned, text = tmp_path / "run", tmp_path / "tuned", tmp_path / "text"
    new = [tmp_path / "new.zh", tmp_path / "new.en"]
    for old, copy in zip(files, new, strict=True):
        lines = old.read_text(encoding="utf-8").splitlines()
        copy.write_text("".join(f"{line.upper()}!!\n" for line in lines), encoding="utf-8")
    old_pairs = [word for file in files for word in ("--old", file)]
    outputs = {
        "train": ["train", *files, "--output", run, "--preset", "tiny", "--device", "cpu", "--json", *settings],
        "finetune": ["finetune", run, *new, *old_pairs, "--output", tuned, "--device", "cpu", "--json",
                     "--set", "training.steps=2", "--set", "training.batch_tokens=256"],
        "report": ["report", run, "--json"],
        "train --kind decoder": ["train", "--kind", "decoder", files[1], "--output", text, "--device", "cpu", "--json",
                                 *settings],
    }  # fmt: skip
    records = {name: script.parse(run_here(capsys, *words).out) for name, words in outputs.items()}
    for name in ("metrics.jsonl", "samples.jsonl"):
        for title, folder in ((name, run), (f"{name} of a decoder-only model", text)):
            records[title] = [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]
    described = {each.title: each for each in script.OUTPUTS if not each.commands}
    assert described.keys() == records.keys()
    for name, values in records.items():
        script.field_rows(described[name], values)
