"""`sixfold pack`: a smaller file with the same model, and more on its card."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from commands import run_here
from small_models import SMALL, random_model
from small_profiles import chinese_lines, english_lines, profile_of

from sixfold import modelfile
from sixfold.alignment_heads import aligning_heads
from sixfold.config import Config, DataConfig, TokenizerConfig
from sixfold.explorer.influence import measure_aligning_heads
from sixfold.model.transformer import weights_of
from sixfold.quantization import dequantize, quantize
from sixfold.text.learn import train_tokenizer


@pytest.fixture
def model(tmp_path):
    tokenizer = train_tokenizer(["机器学习很有趣", "Machine learning is interesting."] * 9, TokenizerConfig(vocab=320))
    shape = tokenizer.fit(SMALL)
    card = {"languages": {"source": "zh", "target": "en"}, "scores": {"dev": {"bleu": 1.0}}}
    modelfile.save(tmp_path / "m.safetensors", Config(shape), weights_of(random_model(shape)), tokenizer, card)
    return tmp_path / "m.safetensors"


def test_weights_become_int8_and_the_rest_stays(model, tmp_path, capsys):
    facts = json.loads(run_here(capsys, "pack", model, "--output", tmp_path / "small.safetensors", "--json").out)
    before, after = modelfile.load(model), modelfile.load(tmp_path / "small.safetensors")
    assert facts["bytes"] == {"before": model.stat().st_size, "after": (tmp_path / "small.safetensors").stat().st_size}
    assert facts["bytes"]["after"] < facts["bytes"]["before"]
    assert (before.storage, after.storage) == ("float32", "int8")
    assert after.tokenizer.to_json() == before.tokenizer.to_json()
    assert after.card == before.card
    name = "encoder.embedding.token.weight"
    assert (after.weights()[name] == dequantize(*quantize(before.weights()[name]))).all()


def test_what_a_file_says_joins_the_card(model, tmp_path, capsys):
    (tmp_path / "card.toml").write_text(
        'licence = "Apache-2.0"\nfailures = ["long names"]\n[languages]\nsource = "zh-Hans"\n', encoding="utf-8"
    )
    packed = tmp_path / "packed.safetensors"
    run_here(capsys, "pack", model, "--output", packed, "--card", tmp_path / "card.toml", "--storage", "bfloat16")
    card = modelfile.load(packed).card
    assert card["languages"] == {"source": "zh-Hans", "target": "en"}
    assert (card["licence"], card["failures"], card["scores"]) == ("Apache-2.0", ["long names"], {"dev": {"bleu": 1.0}})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--storage", "int9"), "--storage: expected one of float32, bfloat16, int8; got 'int9'"),
        (("--card", "card.toml"), "expected text, numbers, lists and tables"),
        (("--card", "none.toml"), "none.toml: No such file"),
        (("--output", "nowhere/small.safetensors"), "nowhere"),
    ],
)
def test_mistakes_are_named_and_nothing_is_written(words, expected, model, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "card.toml").write_text("made = 2026-01-01\n", encoding="utf-8")
    result = run_here(capsys, "pack", model, "--output", "small.safetensors", *words, status=2)
    assert expected in result.err
    assert not (tmp_path / "small.safetensors").exists()


@pytest.mark.parametrize("spelling", ["same", "relative", "symbolic link", "hard link"])
def test_a_file_takes_the_place_of_itself_only_by_force(model, capsys, tmp_path, monkeypatch, spelling):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    out = {"same": model, "relative": Path("..") / model.name}.get(spelling, tmp_path / "link.safetensors")
    if spelling == "symbolic link":
        out.symlink_to(model)
    if spelling == "hard link":
        out.hardlink_to(model)
    before = model.read_bytes()
    result = run_here(capsys, "pack", model, "--output", out, status=2)
    assert "is the model itself" in result.err
    assert "--force" in result.err
    assert model.read_bytes() == before
    facts = json.loads(run_here(capsys, "pack", model, "--output", out, "--force", "--json").out)
    assert facts["bytes"] == {"before": len(before), "after": out.stat().st_size}
    assert modelfile.load(out).storage == "int8"


def test_the_tags_of_a_model_for_both_ways_stay_its_languages(model, tmp_path, capsys):
    file = modelfile.load(model)
    config = replace(file.config, data=DataConfig(both_ways=True))
    modelfile.save(model, config, file.weights(), file.tokenizer, file.card)
    (tmp_path / "card.toml").write_text('[languages]\nsource = "zh-Hans"\n', encoding="utf-8")
    result = run_here(
        capsys, "pack", model, "--output", tmp_path / "p.safetensors", "--card", tmp_path / "card.toml", status=2
    )
    assert "languages: expected those of the model, because they are its tags" in result.err


def test_the_summary_shows_every_source_of_a_card(model, tmp_path, capsys):
    tables = "".join(f'[[sources]]\nname = "corpus {n}"\nlicence = "CC0"\n' for n in range(5))
    (tmp_path / "card.toml").write_text(tables, encoding="utf-8")
    run_here(capsys, "pack", model, "--output", model, "--force", "--card", tmp_path / "card.toml")
    output = run_here(capsys, "summary", model).out
    assert all(f"name corpus {n}, licence CC0" in output for n in range(5))


def test_the_heads_that_align_are_measured_on_pairs_and_kept_on_the_card(model, tmp_path, capsys):
    (tmp_path / "dev.zh").write_text("机器学习\n\n学习机器\n", encoding="utf-8")
    (tmp_path / "dev.en").write_text("Machine learning\n\nLearning\n", encoding="utf-8")
    run_here(
        capsys, "pack", model, "--out", tmp_path / "p.safetensors", "--align", tmp_path / "dev.zh", tmp_path / "dev.en"
    )
    file = modelfile.load(tmp_path / "p.safetensors")
    pairs = [("机器学习", "Machine learning"), ("学习机器", "Learning")]
    assert aligning_heads(file.card, file.config.model).to_card() == {"alignment": file.card["alignment"]}
    assert aligning_heads(file.card, file.config.model) == measure_aligning_heads(modelfile.load(model), pairs)
    (tmp_path / "dev.en").write_text("Machine learning\n", encoding="utf-8")
    words = ("--align", tmp_path / "dev.zh", tmp_path / "dev.en")
    result = run_here(capsys, "pack", model, "--out", tmp_path / "q.safetensors", *words, status=2)
    assert "expected as many lines" in result.err
    assert not (tmp_path / "q.safetensors").exists()


@pytest.fixture
def texts(tmp_path):
    """Two files of lines, news.zh and b.txt.gz."""
    (tmp_path / "news.zh").write_text("\n".join(chinese_lines()), encoding="utf-8")
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress("\n".join(english_lines()).encode()))
    return tmp_path


def test_profiles_are_learnt_from_files_and_kept_by_the_next_packing(model, texts, capsys, monkeypatch):
    monkeypatch.chdir(texts)
    run_here(capsys, "pack", model, "-o", "one.safetensors", "--profile", "news.zh", "--profile", "EN-us=b.txt.gz")
    profiles = modelfile.load("one.safetensors").profiles
    assert profiles == {"zh": profile_of("zh"), "en": profile_of("en")}
    run_here(capsys, "pack", "one.safetensors", "-o", "two.safetensors", "--storage", "bfloat16")
    assert modelfile.load("two.safetensors").profiles == profiles
    (texts / "more.txt").write_text("\n".join(reversed(english_lines())), encoding="utf-8")
    run_here(capsys, "pack", "two.safetensors", "-o", "three.safetensors", "--profile", "en=more.txt")
    changed = modelfile.load("three.safetensors").profiles
    assert changed["zh"] == profiles["zh"]
    assert changed["en"] != profiles["en"]


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("de=news.zh", "--profile: expected a language of the model (zh, en); got 'de' for news.zh"),
        ("b.txt.gz", "--profile: expected LANGUAGE=FILE; got 'b.txt.gz'"),
        ("en=", "--profile: expected LANGUAGE=FILE; got 'en='"),
        ("=news.zh", "--profile: expected LANGUAGE=FILE; got '=news.zh'"),
        ("en=none.txt", "none.txt: No such file"),
        ("en=news.zh", "news.zh: expected at least 20,000 letters in en to learn from"),
    ],
)
def test_a_profile_that_cannot_be_learnt_is_an_error(option, expected, model, texts, capsys, monkeypatch):
    monkeypatch.chdir(texts)
    assert expected in run_here(capsys, "pack", model, "-o", "p.safetensors", "--profile", option, status=2).err
    assert not Path("p.safetensors").exists()
