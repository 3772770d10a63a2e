"""What `sixfold import` refuses, by name, and what it writes."""

import json
import shutil
from pathlib import Path

import pytest
import small_checkpoints as checkpoints
from commands import complaint, run_here

from sixfold import Translator, modelfile
from sixfold.cli.import_ import default_output
from sixfold.errors import SixfoldError
from sixfold.interop.huggingface_tokenizers import ChosenLanguages
from sixfold.interop.sources import read_source


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    folder = tmp_path_factory.mktemp("marian")
    checkpoints.marian(folder, tags=(">>fra<<", ">>ron<<"))
    return folder / "model"


@pytest.fixture(scope="module")
def m2m100(tmp_path_factory):
    folder = tmp_path_factory.mktemp("m2m100")
    checkpoints.m2m100(folder)
    return folder / "model"


@pytest.fixture
def copy(marian, tmp_path):
    return shutil.copytree(marian, tmp_path / "copy")


def edit(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_model_of_many_languages_keeps_those_that_are_chosen(m2m100):
    file = read_source(str(m2m100), ChosenLanguages(("en", "zh-CN"), ("zh", "fr")))
    assert file.card["languages"] == {"source": ["en", "zh"], "target": ["zh", "fr"]}
    with Translator(file, "cpu") as translator:
        assert translator.directions == [("en", "zh"), ("en", "fr"), ("zh", "fr")]
    with pytest.raises(SixfoldError, match=r"--to: expected languages of the model \(af, am, .*; got 'xx'"):
        read_source(str(m2m100), ChosenLanguages((), ("xx",)))


def test_the_card_says_where_a_model_comes_from(copy):
    (copy / "README.md").write_text("---\nlanguage: en\nlicense: cc-by-4.0\n---\n# A model\n")
    card = read_source(str(copy)).card
    assert card["licence"] == "cc-by-4.0"
    assert card["parent"] == "marian checkpoint copy"
    assert card["languages"] == {"source": "en", "target": ["fr", "ro"]}


def test_the_command_writes_a_file_that_translates(marian, tmp_path, capsys):
    out = tmp_path / "m.safetensors"
    run_here(capsys, "import", marian, "-o", out, "--storage", "int8", "--to", "fr")
    file = modelfile.load(out)
    assert file.card["languages"] == {"source": "en", "target": "fr"}
    assert file.storage == "int8"
    with Translator(out, "cpu") as translator:
        assert translator.directions == [("en", "fr")]
        assert translator.translate("The machines are learning.").languages == ("en", "fr")


def test_without_an_output_a_new_file_gets_the_name_of_the_source(copy, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    copy.rename("opus-1.5-en-fr")
    expected = "opus-1.5-en-fr.safetensors"
    assert run_here(capsys, "import", "opus-1.5-en-fr/", "--storage", "int8").out == f"{expected}\n"
    assert modelfile.load(expected).storage == "int8"
    written = Path(expected).read_bytes()
    message = complaint("import", "opus-1.5-en-fr")
    assert f"{expected}: expected no such file" in message
    assert f"--output {expected} replaces it" in message
    assert Path(expected).read_bytes() == written
    monkeypatch.chdir("opus-1.5-en-fr")
    assert default_output(".").name == expected
    Path("model.npz.best.npz").touch()
    assert default_output("model.npz.best.npz").name == "model.npz.best.safetensors"
    assert default_output("Owner/nllb-1.3B").name == "nllb-1.3B.safetensors"
    with pytest.raises(SixfoldError, match="/ has no name"):
        default_output("/")


def test_a_forbidden_token_is_never_written(copy):
    pad = json.loads((copy / "vocab.json").read_text())["<pad>"]
    edit(copy / "config.json", bad_words_ids=[[pad], [5, 6]])
    file = read_source(str(copy))
    bias = file.weight("output.projection.bias")
    assert bias[pad] < -1000
    assert (bias < -1000).sum() == 1


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: (folder / "target.spm").unlink(), r"target\.spm: No such file"),
        (lambda folder: (folder / "vocab.json").unlink(), r"vocab\.json: No such file"),
        (lambda folder: (folder / "source.spm").write_bytes(b"PK\x03\x04"), r"source\.spm: expected a SentencePiece"),
        (lambda folder: (folder / "vocab.json").write_text('{"a": 10000000, "b": "x"}'), "got 2 others of 2: a, b"),
        (lambda folder: (folder / "vocab.json").write_text('{"a": 0}'), "expected <unk> among its tokens"),
        (lambda folder: (folder / "model.safetensors").unlink(), r"expected model\.safetensors or pytorch_model\.bin"),
        (lambda folder: edit(folder / "config.json", model_type="t5"), "expected a model_type of .*; got 't5'"),
        (lambda folder: edit(folder / "config.json", d_model=48, encoder_ffn_dim=50, decoder_ffn_dim=50),
         r"layers\.0\.self_attention.*feed_forward.*layers\.1"),
    ],
)  # fmt: skip
def test_a_damaged_folder_is_refused_by_name(copy, damage, message):
    damage(copy)
    with pytest.raises(SixfoldError, match=message) as caught:
        read_source(str(copy))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_text("hello"), "expected a Hugging Face folder .*; got a file of another kind"),
        (lambda path: path.mkdir(), "expected a Hugging Face folder .*; got a folder with nothing"),
        (lambda path: None, "no such file or folder"),
    ],
)
def test_what_no_reader_knows_is_refused(tmp_path, make, message):
    make(tmp_path / "x")
    with pytest.raises(SixfoldError, match=message):
        read_source(str(tmp_path / "x"))


def test_a_name_on_the_hub_without_a_network_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")  # nothing listens there
    message = complaint("import", "owner/name", "-o", tmp_path / "m.safetensors")
    assert "owner/name: no such file or folder, and the Hub could not be read: " in message
