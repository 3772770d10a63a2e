"""What holds for the project as a whole: layers, imports, names, documents."""

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import get_args

import pytest
from document_commands import run_document, run_python
from small_models import SMALL, random_model

import sixfold
from sixfold import config, modelfile, presets, recipe
from sixfold.audit import findings
from sixfold.config import Config, TrainingConfig
from sixfold.data import cleaning
from sixfold.decoding import search
from sixfold.explorer import forward, views
from sixfold.interop import ctranslate2
from sixfold.model import attention, layers, stepper, transformer
from sixfold.model.transformer import weights_of
from sixfold.serving.options import ServeOptions, read_options
from sixfold.text import learn
from sixfold.training import defaults, text_defaults
from sixfold.translation.bulk import shards
from sixfold.translation.documents import formats

ROOT = Path(__file__).parents[1]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
# Settings that say what they are by their names; `sixfold config` shows them.
UNSAID = ("label_smoothing", "clip", "beta2")

WITHOUT_TORCH = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "transformers", "safetensors"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocked())
from pathlib import Path
import numpy as np
from sixfold import modelfile
from sixfold.engines.cpu import CpuEngine
from sixfold.explorer.forward import forward
from sixfold.text.learn import train_tokenizer
from sixfold import GenerateOptions, Generator, RequestError, SamplingOptions
from sixfold.config import Config, ModelConfig, TokenizerConfig
from sixfold.decoding.options import SearchOptions
from sixfold.weights import shapes
from sixfold.cli.main import main
tokenizer = train_tokenizer(["hello world"] * 9, TokenizerConfig(vocab=300))
assert tokenizer.decode(tokenizer.encode("hello 世界")) == "hello 世界"
for name in ("f", "q"):
    path = Path(sys.argv[1]) / f"{name}.safetensors"
    model = modelfile.load(path)
    trace = forward(model, np.array([[5, 6, 2]]), np.array([[1, 7]]))
    assert np.isfinite(trace["logits"]).all()
    assert CpuEngine(model).decode([[5, 6, 2]], SearchOptions(beam=2, max_length=6))[0][0].tokens
    try:
        main(["summary", str(path), "--json"])
    except SystemExit as done:
        assert done.code == 0
shape = ModelConfig(kind="decoder", vocab=tokenizer.vocab, d_model=16, heads=2, d_ff=16, decoder_layers=1)
random = np.random.default_rng(1)
weights = {name: random.normal(size=size).astype(np.float32) for name, size in shapes(shape).items()}
path = Path(sys.argv[1]) / "writer.safetensors"
modelfile.save(path, Config(model=shape), weights, tokenizer)
with Generator(path) as generator:
    assert len(generator.generate(["hello"], GenerateOptions(max_tokens=5))[0][0].tokens) == 5
    assert generator.score(["hello world"])[0]
    try:
        generator.generate(["hello"], GenerateOptions(sampling=SamplingOptions(temperature=1.0)))
    except RequestError as error:
        assert "need torch, which is not installed" in str(error)
assert "torch" not in sys.modules
"""


def test_half_of_it_works_without_torch(tmp_path):
    weights = weights_of(random_model(SMALL))
    modelfile.save(tmp_path / "f.safetensors", Config(model=SMALL), weights)
    modelfile.save(tmp_path / "q.safetensors", Config(model=SMALL), weights, storage="int8")
    result = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, tmp_path], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_training_needs_torch_and_not_what_translates_on_a_cpu():
    program = WITHOUT_TORCH.split("from pathlib")[0].replace('"torch", "transformers", "safetensors"', '"ctranslate2",')
    program += "import sixfold.cli.train, sixfold.training.run, sixfold.reports.training"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_a_verb_that_needs_torch_names_the_extra(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt2"}))
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    program = WITHOUT_TORCH.split("from pathlib")[0] + "from sixfold.cli.main import main; main(sys.argv[1:])"
    result = subprocess.run(
        [sys.executable, "-c", program, "import", tmp_path, "--output", tmp_path / "m"], capture_output=True, text=True
    )
    assert result.returncode == 2
    assert result.stderr.splitlines()[-1] == "hint: pip install 'sixfold[torch]'"


def test_what_scores_translations_names_the_smallest_extra_that_brings_it(tmp_path):
    (tmp_path / "text").write_text("one line\n")
    program = WITHOUT_TORCH.split("from pathlib")[0].replace('"torch", "transformers", "safetensors"', '"sacrebleu",')
    program += "from sixfold.cli.main import main; main(sys.argv[1:])"
    command = [sys.executable, "-c", program, "evaluate", "text", "text", "text"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "error: this command needs sacrebleu, which is not installed",
        "hint: pip install 'sixfold[evaluate]'",
    ]


def test_importing_brings_nothing_but_itself():
    """What makes an import slow is what it imports: nothing from outside until a name is used, and then no torch."""
    program = """
import sys
before = set(sys.modules)
import sixfold
outside = {name for name in set(sys.modules) - before if name.partition(".")[0] not in sys.stdlib_module_names}
assert outside == {"sixfold"}, outside
sixfold.Tokenizer, sixfold.preset
assert "torch" not in sys.modules
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


def test_public_names_are_sorted_and_real():
    assert sixfold.__all__ == sorted(sixfold.__all__) == sorted(sixfold._HOMES)
    for name in sixfold.__all__:
        assert getattr(sixfold, name).__module__.startswith("sixfold.")
    assert set(sixfold.__all__) <= set(dir(sixfold))
    assert [name for name in dir(sixfold) if not name.startswith("_")] == sixfold.__all__
    assert "__version__" in dir(sixfold)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sixfold.nothing


@pytest.mark.parametrize(
    ("table", "choices"),
    [
        (transformer.KINDS, config.Kind),
        (transformer.POSITIONS, config.Positions),
        (layers.NORMS, config.Norm),
        (layers.ACTIVATIONS, config.FeedForward),
        (forward.ACTIVATIONS, config.FeedForward),
        (ctranslate2.ACTIVATIONS, config.FeedForward),
        (attention.COMPATIBILITIES, config.Compatibility),
        (learn.MODELS, config.Algorithm),
        (learn.TRAINERS, config.Algorithm),
        (modelfile.STORAGES, modelfile.Storage),
        (cleaning.FILTERS, config.Filter),
    ],
)
def test_tables_match_what_the_config_allows(table, choices):
    assert set(table) == set(get_args(choices))


def test_a_models_stepper_is_what_decoding_asks_for():
    assert issubclass(stepper.Stepper, search.Stepper)


def test_modules_say_what_they_are_for():
    for path in SOURCES:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body:
            assert ast.get_docstring(tree), path


def test_every_file_is_opened_as_bytes_or_with_its_encoding():
    for path in SOURCES:
        for call in re.findall(r"(?<!os)\.(?:open|read_text|write_text)\([^)]*\)", path.read_text(encoding="utf-8")):
            assert "b" in call.split("open(")[-1] or "encoding=" in call, (path, call)


def test_the_tree_of_the_architecture_page_is_that_of_the_sources():
    """The page has a line for each module, made from its docstring, and no line for anything else."""
    command = [sys.executable, ROOT / "docs" / "module_tree.py", "--check"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr or "run: python docs/module_tree.py"


def test_the_architecture_page_names_files_that_exist():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    hand_written = text.partition("<!-- tree")[0] + text.partition("<!-- end of tree -->")[2]
    names = {name.rstrip("/") for name in re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", hand_written)}
    assert len(names) > 20
    folders = (ROOT, ROOT / "src" / "sixfold")
    assert [name for name in sorted(names) if not any((folder / name).exists() for folder in folders)] == []


@pytest.fixture
def follow(tmp_path_factory):
    """Run the shell commands of a document, one after another, as a reader would."""

    def run(document, folder):
        return run_document(document, folder, tmp_path_factory)

    return run


@pytest.mark.slow
def test_the_commands_of_the_training_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/training.md", tmp_path / "guide")
    model = modelfile.load(folder / "toy-run" / "model.safetensors")
    assert model.card["languages"] == {"source": "zh", "target": "en"}
    assert len((folder / "clean.zh").read_text(encoding="utf-8").splitlines()) == 336
    assert len((folder / "clean.tsv").read_text(encoding="utf-8").splitlines()) == 336


def test_the_commands_and_the_python_of_the_translating_guide_do_what_they_say(follow, tmp_path, monkeypatch, capsys):
    folder = follow("docs/guides/translating.md", tmp_path / "guide")
    translation = "Machine learning is interesting\n\nWe need mathematics\n"
    assert (folder / "letter.en").read_text(encoding="utf-8") == translation
    monkeypatch.chdir(folder)
    text = (ROOT / "docs/guides/translating.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.S)
    exec(compile(block, "translating.md", "exec"), {})
    assert "I love machine learning" in capsys.readouterr().out


@pytest.mark.slow
def test_the_commands_and_the_python_of_the_guide_to_generating_do_what_they_say(follow, tmp_path, monkeypatch, capsys):
    folder = follow("docs/guides/generating.md", tmp_path / "guide")
    monkeypatch.chdir(folder)
    run_python("docs/guides/generating.md")
    printed = capsys.readouterr().out
    assert "One day" in printed
    assert "-0.0" in printed  # a token that is nearly certain


def test_the_guide_to_generating_names_every_option_of_sampling():
    text = (ROOT / "docs/guides/generating.md").read_text(encoding="utf-8")
    options = ["--temperature", "--top-k", "--top-p", "--min-p", "--repetition-penalty", "--seed", "--stop", "--n"]
    assert all(f"`{option}" in text for option in options)


def test_the_guide_to_serving_works_as_written_and_names_every_setting(follow, tmp_path):
    folder = follow("docs/guides/serving.md", tmp_path / "guide")
    assert (folder / "keys").read_text(encoding="utf-8").startswith("anna ")
    read_options(folder / "serve.toml", {})
    text = (ROOT / "docs/guides/serving.md").read_text(encoding="utf-8")
    assert all(f"`{field.name}`" in text for field in fields(ServeOptions))


def test_the_guide_to_importing_works_as_written(follow, tmp_path):
    folder = follow("docs/guides/importing.md", tmp_path / "guide")
    assert {"model.bin", "source.spm", "target.spm"} <= {path.name for path in (folder / "ct2").iterdir()}
    assert [path.suffix for path in (folder / "argos").iterdir()] == [".argosmodel"]


def test_the_commands_of_the_documents_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/documents.md", tmp_path / "guide")
    page = (folder / "page.en.html").read_text(encoding="utf-8")
    assert re.fullmatch(r"<p>We <b>need</b> mathematics</p>\n<pre>我们</pre>\n", page)
    notes = (folder / "notes.en.md").read_text(encoding="utf-8")
    assert notes.startswith("# Machine learning is interesting\n\n- ")
    assert notes.count("`数学`") == 1
    assert (folder / "table.en.csv").read_text(encoding="utf-8") == "id,title\n我们,We need mathematics\n"
    text = (ROOT / "docs/guides/documents.md").read_text(encoding="utf-8")
    for name, form in formats.FORMATS.items():
        assert f"`{name}`" in text
        assert all(suffix in text for suffix in form.suffixes)


def test_the_commands_of_the_scale_out_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/scale-out.md", tmp_path / "guide")
    text = (ROOT / "docs/guides/scale-out.md").read_text(encoding="utf-8")
    assert f"```\n{(folder / 'translated' / 'one.jsonl').read_text(encoding='utf-8')}```\n" in text
    assert f"blocks of {shards.BLOCK_LINES:,} lines" in text


def test_the_commands_of_the_doctors_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/doctor.md", tmp_path / "guide")
    facts = json.loads((folder / "checkup" / "doctor.json").read_text(encoding="utf-8"))
    report = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    assert facts["findings"] == report["findings"]
    line_counts = [len((folder / f"{name}.zh").read_text(encoding="utf-8").splitlines()) for name in ("good", "more")]
    assert line_counts[0] == facts["pairs"] - facts["condemned"] <= line_counts[1]
    text = (ROOT / "docs/guides/doctor.md").read_text(encoding="utf-8")
    assert all(f"`{kind}`" in text for kind in findings.KINDS)


@pytest.mark.slow
def test_the_commands_of_the_finetuning_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/finetuning.md", tmp_path / "guide")
    assert modelfile.load(folder / "loud-run" / "model.safetensors").card["scores_before"].keys() == {"new", "old"}
    assert (folder / "lora-run" / "model.safetensors").exists()


def test_the_commands_and_the_python_of_the_guide_to_seeing_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/seeing.md", tmp_path / "guide")
    assert ">it</text>" in (folder / "it.svg").read_text(encoding="utf-8")
    assert "机器学习" in (folder / "alignment.html").read_text(encoding="utf-8")
    assert json.loads((folder / "steps.json").read_text(encoding="utf-8"))["sentences"][0]["off"] == ["cross.1.3"]
    text = (ROOT / "docs/guides/seeing.md").read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in views.VIEW_NAMES)
    run_python("docs/guides/seeing.md")


@pytest.mark.slow
def test_the_commands_of_the_guide_to_language_models_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/language-models.md", tmp_path / "guide")
    assert modelfile.load(folder / "stories-run" / "model.safetensors").card["task"] == "causal-lm"
    for name in ("answers-run", "lora-run"):
        card = modelfile.load(folder / name / "model.safetensors").card
        assert card["scores"]["new"]["bits_per_byte"] < card["scores_before"]["new"]["bits_per_byte"]
    assert modelfile.load(folder / "more-run" / "model.safetensors").card["documents"]


def test_the_guide_to_language_models_says_what_the_code_chooses():
    text = (ROOT / "docs/guides/language-models.md").read_text(encoding="utf-8")
    for size in text_defaults.SIZES:
        row = f"| {size.gpu_preset} | {size.cpu_preset} | {size.vocab:,} | {size.dropout} | {size.batch_tokens:,} | "
        assert f"{row}{size.epochs} |" in text


def test_the_training_guide_says_what_the_code_chooses():
    text = (ROOT / "docs/guides/training.md").read_text(encoding="utf-8")
    for size in defaults.SIZES:
        row = f"| {size.gpu_preset} | {size.cpu_preset} | {size.vocab:,} | {size.dropout} | {size.batch_tokens:,} | "
        assert f"{row}{size.epochs} |" in text
    for name in (*get_args(config.Filter), *(field.name for field in fields(TrainingConfig) if field.name != "seed")):
        assert re.search(rf"`(training\.)?{name}`", text) or name in UNSAID, name


def test_every_recipe_can_be_read():
    names = sorted(path.name for path in (ROOT / "recipes").glob("*.toml"))
    assert names == [
        "multi30k-de-en.toml",
        "multi30k-en-de.toml",
        "zh-en-base.toml",
        "zh-en-first.toml",
        "zh-en-second.toml",
        "zh-en-teacher.toml",
        "zh-en-third.toml",
        "zh-en.toml",
    ]
    for name in names:
        loaded = recipe.load(ROOT / "recipes" / name)
        assert loaded.corpus
        assert loaded.dev


@pytest.mark.slow
def test_the_commands_of_the_evaluating_guide_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/evaluating.md", tmp_path)
    compared = json.loads((folder / "compared" / "evaluation.json").read_text(encoding="utf-8"))
    assert compared["systems"] == ["run-a/model", "run-b/model"]
    for page in ("compared/comparison.html", "run-b/report.html", "runs.html"):
        assert "</html>" in (folder / page).read_text(encoding="utf-8")


def test_the_commands_of_the_guide_to_models_do_what_they_say(follow, tmp_path):
    folder = follow("docs/guides/models.md", tmp_path / "guide")
    assert (folder / "ids.txt").read_text(encoding="utf-8").strip()
    assert modelfile.load(folder / "toy-int8.safetensors").storage == "int8"
    text = (ROOT / "docs/guides/models.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in (*presets.PRESETS, *get_args(config.Algorithm)))


def test_the_guide_to_installing_works_and_names_every_extra(follow, tmp_path):
    follow("docs/guides/installing.md", tmp_path / "guide")
    text = (ROOT / "docs/guides/installing.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert all(f"'.[{name}]'" in text for name in extras if name != "dev")


def test_importing_every_module_works():
    for path in SOURCES:
        name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
        if not name.endswith("__main__"):
            try:
                importlib.import_module(name.removesuffix(".__init__"))
            except ModuleNotFoundError as error:
                if error.name != "triton":  # torch without a GPU comes without it
                    raise
