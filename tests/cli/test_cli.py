"""The command as a user runs it: a process, its output, its exit status."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from small_models import SMALL, random_model

from sixfold import modelfile
from sixfold.cli import summary
from sixfold.config import Config, to_toml
from sixfold.model.transformer import weights_of
from sixfold.presets import preset


def sixfold(*arguments, stdin=None, **more):
    return subprocess.run(
        [sys.executable, "-m", "sixfold", *map(str, arguments)], input=stdin, capture_output=True, timeout=120, **more
    )


def text(*arguments, stdin=None):
    result = sixfold(*arguments, stdin=None if stdin is None else stdin.encode())
    assert result.returncode == 0, result.stderr.decode()
    return result.stdout.decode()


def complaint(*arguments, stdin=None):
    """Run a command that must fail, and return its message: one line, perhaps a hint, and status 2."""
    result = sixfold(*arguments, stdin=stdin)
    assert result.returncode == 2, result
    assert result.stdout == b""
    error, *hint = result.stderr.decode().splitlines()
    assert error.startswith("error: ")
    assert len(hint) <= 1
    assert all(line.startswith("hint: ") for line in hint)
    return result.stderr.decode()


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    (folder / "zh.txt").write_text("机器学习很有趣\n我爱机器学习\n" * 20, encoding="utf-8")
    (folder / "en.txt").write_text("Machine learning is interesting\nI love machine learning\n" * 20, encoding="utf-8")
    arguments = ["tokenizer", "train", folder / "zh.txt", folder / "en.txt", "--output", folder / "tok.json"]
    result = sixfold(*arguments, "--vocab", 340, "--tag", "zh", "--tag", "en")
    assert result.returncode == 0
    assert b"(bpe)" in result.stderr
    assert result.stdout == b""
    return folder / "tok.json"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    card = {"languages": ["zh", "en"], "licence": "CC0-1.0"}
    modelfile.save(path, Config(model=SMALL), weights_of(random_model(SMALL)), card=card)
    return path


def test_a_tokeniser_encodes_and_decodes(tokenizer):
    ids = text("tokenizer", "encode", "-m", tokenizer, "我爱机器学习")
    assert text("tokenizer", "decode", "-m", tokenizer, *ids.split()) == "我爱机器学习\n"
    lines = "I love\n\n  machine learning  \n"
    assert (
        text("tokenizer", "decode", "-m", tokenizer, stdin=text("tokenizer", "encode", "-m", tokenizer, stdin=lines))
        == lines
    )


def test_encoding_as_json_has_tokens_and_offsets(tokenizer):
    first = json.loads(text("tokenizer", "encode", "-m", tokenizer, "--json", "I love 机器学习"))
    assert first.keys() == {"ids", "tokens", "offsets"}
    assert "".join(first["tokens"]) == " I love 机器学习"


@pytest.mark.parametrize("algorithm", ["wordpiece", "unigram"])
def test_other_algorithms_train_too(algorithm, tokenizer, tmp_path):
    out = tmp_path / "t.json"
    text("tokenizer", "train", tokenizer.parent / "zh.txt", "--output", out, "--vocab", 300, "--algorithm", algorithm)
    assert (
        text("tokenizer", "decode", "-m", out, stdin=text("tokenizer", "encode", "-m", out, "很有趣!")) == "很有趣!\n"
    )


def test_a_summary_of_a_preset_adds_up():
    facts = json.loads(text("summary", "base", "--json"))
    assert sum(part["parameters"] for part in facts["parts"].values()) == facts["parameters"]
    assert facts["bytes"]["float32"] == 4 * facts["parameters"]
    assert facts["config"]["model"]["d_model"] == 512
    table = text("summary", "base")
    assert "feed-forward" in table
    assert "6 ×" in table
    assert f"{facts['parameters']:,}" in table


def test_a_summary_of_a_file_shows_its_card(model):
    out = text("summary", model)
    assert "CC0-1.0" in out
    assert "sha256:" in out
    assert json.loads(text("summary", model, "--json"))["file"]["card"]["languages"] == ["zh", "en"]


def test_config_prints_what_it_reads(tmp_path):
    assert text("config", "tiny") == to_toml(preset("tiny"))
    (tmp_path / "r.toml").write_text(text("config", "big", "--set", "model.heads=8"))
    assert json.loads(text("config", tmp_path / "r.toml", "--json"))["model"]["heads"] == 8


def test_a_hugging_face_folder_is_imported(tmp_path):
    import transformers

    config = transformers.GPT2Config(
        vocab_size=50, n_embd=16, n_head=2, n_layer=1, n_positions=20, bos_token_id=1, eos_token_id=1
    )
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt2")
    out = tmp_path / "gpt2.safetensors"
    assert text("import", tmp_path / "gpt2", "--output", out, "--storage", "int8") == f"{out}\n"
    assert modelfile.load(out).config.model.kind == "decoder"


def test_help_and_version_need_nothing():
    assert "summary" in text("--help")
    assert text("--version").startswith("sixfold 0.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["summary", "bass"], ["preset: expected one of", "did you mean 'base'?"]),
        (["summary", "none.safetensors"], ["none.safetensors: No such file"]),
        (["config", "none.toml"], ["none.toml: No such file"]),
        (["config", "base", "--set", "model.head=2"], ["model.head: no such setting", "did you mean 'heads'?"]),
        (["tokenizer", "encode", "-m", "none.json", "x"], ["none.json: No such file"]),
        (["tokenizer", "train", "none.txt", "--output", "t.json"], ["none.txt: expected a text file; no such file"]),
        (["import", "nowhere", "--output", "x"], ["nowhere: no such file or folder"]),
        (["translat"], ["No such command 'translat'", "sixfold --help"]),
        (["tokenizer"], ["Missing command"]),
        (["summary", "--no-such-flag"], ["No such option"]),
        (["tokenizer", "train", "x.txt"], ["Missing option '--output'"]),
        (["tokenizer", "train", "x.txt", "--output", "t", "--vocab", "many"], ["Invalid value for '--vocab'"]),
        (["tokenizer", "train", "/dev/null", "--output", "t.json"], ["got a folder or a device"]),
        (["summary", "x[/bold]y.safetensors"], ["x[/bold]y.safetensors: No such file"]),
        (["summary", "x" * 5000], ["File name too long"]),
        (["summary", "base", "--set", "model.encoder_layers=100000"], ["expected 1 to 1000; got 100000"]),
        (["config", "base", "--set", f"model.heads={'9' * 5000}"], ["model.heads: expected an int"]),
        (["config", "base", "--set", "training.clip=inf"], ["training.clip: expected a finite number; got inf"]),
    ],
)
def test_mistakes_are_one_line(arguments, words):
    message = complaint(*arguments)
    assert all(word in message for word in words)


def test_text_that_is_not_utf8_is_one_line(tokenizer, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n\xff\xfe\n")
    assert "bad.txt:2: expected UTF-8; got byte 0xff" in complaint(
        "tokenizer", "train", tmp_path / "bad.txt", "--output", tmp_path / "t.json"
    )
    assert not (tmp_path / "t.json").exists()
    assert "standard input:1: expected UTF-8" in complaint("tokenizer", "encode", "-m", tokenizer, stdin=b"\xff\n")


def test_ids_that_are_no_numbers_are_one_line(tokenizer):
    assert "expected whole numbers; got 'x y'" in complaint("tokenizer", "decode", "-m", tokenizer, "x", "y")


@pytest.mark.parametrize("out", ["/dev/null", ".", "", "nowhere/t.json"])
def test_only_a_file_is_written_over(out, tokenizer):
    message = complaint("tokenizer", "train", tokenizer.parent / "zh.txt", "--vocab", 300, "--output", out)
    assert "cannot write" in message
    assert not Path("/dev/null").is_file()


def test_the_text_is_not_written_over(tokenizer):
    before = (tokenizer.parent / "zh.txt").read_bytes()
    message = complaint(
        "tokenizer", "train", tokenizer.parent / "zh.txt", "--vocab", 300, "--output", tokenizer.parent / "zh.txt"
    )
    assert "expected a file other than the input" in message
    assert (tokenizer.parent / "zh.txt").read_bytes() == before


def test_a_link_is_followed_and_a_mode_kept(tokenizer, tmp_path):
    real = tmp_path / "real.json"
    real.write_text("{}")
    real.chmod(0o640)
    (tmp_path / "link.json").symlink_to(real)
    text("tokenizer", "train", tokenizer.parent / "zh.txt", "--vocab", 300, "--output", tmp_path / "link.json")
    assert (tmp_path / "link.json").is_symlink()
    assert len(real.read_bytes()) > 100
    assert real.stat().st_mode & 0o777 == 0o640


def test_output_is_utf8_in_every_locale(tokenizer):
    ids = text("tokenizer", "encode", "-m", tokenizer, "我爱机器学习").split()
    result = sixfold(
        "tokenizer", "decode", "-m", tokenizer, *ids, env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": "src"}
    )
    assert result.stdout.decode() == "我爱机器学习\n"


def test_a_narrow_terminal_still_gets_its_table():
    assert b"feed-forward" in sixfold("summary", "base", env={"COLUMNS": "0", "PYTHONPATH": "src"}).stdout


def test_a_tag_may_not_be_a_special(tokenizer, tmp_path):
    assert "a name other than those of special tokens; got 'pad'" in complaint(
        "tokenizer", "train", tokenizer.parent / "zh.txt", "--output", tmp_path / "t.json", "--tag", "pad"
    )


def test_an_empty_file_is_one_line(tmp_path):
    (tmp_path / "empty.txt").write_bytes(b"")
    assert "expected text to learn from" in complaint(
        "tokenizer", "train", tmp_path / "empty.txt", "--output", tmp_path / "t.json"
    )


def test_a_damaged_model_is_one_line(model, tmp_path):
    (tmp_path / "cut.safetensors").write_bytes(model.read_bytes()[:-5])
    assert "cut short" in complaint("summary", tmp_path / "cut.safetensors")
    assert "holds no tokeniser" in complaint("tokenizer", "encode", "-m", model, "x")


def test_a_reader_that_leaves_is_no_error(tokenizer):
    command = f"yes 机器学习 | head -20000 | {sys.executable} -m sixfold tokenizer encode -m {tokenizer} | head -1"
    result = subprocess.run(["bash", "-c", command], capture_output=True, timeout=120)
    assert result.stderr == b""


def test_the_tokeniser_file_appears_whole_or_not_at_all(tokenizer, tmp_path):
    assert "cannot write" in complaint(
        "tokenizer", "train", tokenizer.parent / "zh.txt", "--vocab", 300, "--output", tmp_path / "none" / "t.json"
    )
    assert json.loads(tokenizer.read_text(encoding="utf-8"))["algorithm"] == "bpe"
    assert not list(tokenizer.parent.glob(".*.part"))


def test_a_card_of_a_trained_model_is_readable():
    validations = [{"step": step, "bleu": step / 3} for step in (1, 2, 3, 4)]
    card = {
        "languages": {"source": "zh", "target": "en"},
        "scores": {"dev": {"bleu": 35.159999}},
        "validations": validations,
    }
    assert list(summary.card_lines(card)) == [
        "languages: source zh, target en",
        "scores:",
        "  dev: bleu 35.16",
        "validations: 4, the last step 4, bleu 1.333",
    ]
