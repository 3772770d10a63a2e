import math
import tomllib
from dataclasses import fields

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sixfold.config import (
    Config,
    DataConfig,
    ModelConfig,
    TokenizerConfig,
    TrainingConfig,
    from_dict,
    override,
    to_dict,
    to_toml,
)
from sixfold.configfile import toml_value
from sixfold.decoding.options import SearchOptions
from sixfold.decoding.sampling import SamplingOptions
from sixfold.errors import ConfigError
from sixfold.presets import PRESETS, load, preset
from sixfold.recipe import CorpusConfig
from sixfold.serving.options import ServeOptions
from sixfold.translation.options import TranslateOptions


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_survives_toml_and_json(name, tmp_path):
    config = preset(name)
    file = tmp_path / "recipe.toml"
    file.write_text(to_toml(config), encoding="utf-8")
    assert load(file) == config
    assert from_dict(to_dict(config)) == config


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_prints_every_setting(name):
    text = to_toml(preset(name))
    assert all(f"{key} = " in text for section in to_dict(preset(name)).values() for key in section)


TEXTS = st.text(st.characters(exclude_categories=("Cs",)))
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(), st.floats(allow_nan=False))


@given(st.one_of(VALUES, st.lists(VALUES)))
@example("two\nlines\r\n")
@example('\x00\x1f\x7f\t\\"')
def test_toml_reads_back_every_value_that_was_written(value):
    assert tomllib.loads(f"value = {toml_value(value)}") == {"value": value}


def test_a_setting_with_a_line_end_survives_its_file(tmp_path):
    config = from_dict({"data": {"source": "two\nlines"}})
    (tmp_path / "config.toml").write_text(to_toml(config), encoding="utf-8")
    assert load(tmp_path / "config.toml") == config


def test_text_that_no_file_can_hold_is_refused_when_it_is_written():
    with pytest.raises(ConfigError, match="UTF-8 can hold"):
        toml_value("half a pair: \ud800")


def test_base_is_the_papers_base():
    model = preset("base").model
    assert (model.encoder_layers, model.decoder_layers, model.d_model, model.heads, model.d_ff) == (6, 6, 512, 8, 2048)
    big = preset("big").model
    assert (big.d_model, big.heads, big.d_ff) == (1024, 16, 4096)


def test_a_recipe_starts_from_its_preset(tmp_path):
    file = tmp_path / "recipe.toml"
    file.write_text('preset = "big"\n[model]\nheads = 8\n', encoding="utf-8")
    assert load(file).model.heads == 8
    assert load(file).model.d_model == 1024


def test_overrides_apply_in_order_and_are_checked_together():
    config = override(
        Config(), ["model.d_model=24", "model.heads=6", "model.positions=rotary", "tokenizer.tags=['zh']"]
    )
    assert (config.model.d_model, config.model.heads, config.model.positions) == (24, 6, "rotary")
    assert config.tokenizer.tags == ("zh",)


def test_a_whole_number_will_do_for_a_float():
    assert override(Config(), ["training.clip=2"]).training.clip == 2.0


@pytest.mark.parametrize(
    ("change", "message", "hint"),
    [
        ("model.head=4", "model.head: no such setting", "did you mean 'heads'?"),
        ("modle.heads=4", "'modle': expected a section (model", "did you mean 'model'?"),
        ("model.heads=many", "model.heads: expected an int; got 'many'", None),
        ("model.heads=true", "model.heads: expected an int; got True", None),
        ("model.bias=1", "model.bias: expected a bool; got 1", None),
        ("model.positions=sinusodal", "model.positions: expected one of sinusoidal", "did you mean 'sinusoidal'?"),
        ("model.heads=7", "model.heads: expected a divisor of d_model = 512; got 7", None),
        ("model.head_width=-1", "model.head_width: expected 0 or more; got -1", None),
        ("model.sliding_window=-1", "model.sliding_window: expected 0 or more; got -1", None),
        ("model.rotary_scaling=yarn", "model.rotary_scaling: expected one of", None),
        ("model.rotary_factor=0.5", "model.rotary_factor: expected at least 1; got 0.5", None),
        ("model.rotary_low=4", "model.rotary_low: expected above 0 and below rotary_high = 4.0; got 4", None),
        ("model.kv_heads=3", "model.kv_heads: expected a divisor of heads = 8; got 3", None),
        ("model.encoder_layers=0", "model.encoder_layers: expected 1 to 1000; got 0", None),
        ("model.dropout=1.5", "model.dropout: expected from 0 to below 1; got 1.5", None),
        ("model.eos=99999", "model.eos: expected an id in the vocabulary; got 99999", None),
        ("tokenizer.tags=['a b']", "tokenizer.tags: expected a letter, then", None),
        ("heads=4", "--set: expected section.key=value; got 'heads=4'", "for example: --set model.heads=4"),
        ("model.heads", "--set: expected section.key=value", "for example: --set model.heads=4"),
    ],
)
def test_a_bad_setting_is_named_with_what_was_expected(change, message, hint):
    with pytest.raises(ConfigError) as caught:
        override(Config(), [change])
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert caught.value.hint == hint


def test_rotary_needs_even_heads():
    with pytest.raises(ConfigError, match="heads of an even width for rotary positions; got 3"):
        ModelConfig(d_model=12, heads=4, positions="rotary")


def test_an_unknown_preset_is_refused_with_the_closest_name():
    with pytest.raises(ConfigError) as caught:
        preset("bert-bas")
    assert caught.value.hint == "did you mean 'bert-base'?"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[model\n", "not valid TOML"),
        (b"x = '\xff'", "expected UTF-8; got byte 0xff at offset 5"),
        (b"model = 3", "model: expected a section; got 3"),
        (b"preset = 3", "preset: expected a name; got 3"),
    ],
)
def test_a_broken_recipe_is_one_line(content, message, tmp_path):
    file = tmp_path / "recipe.toml"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as caught:
        load(file)
    assert "\n" not in str(caught.value)


def test_a_missing_recipe_is_one_line(tmp_path):
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.toml")


def test_a_tag_may_stand_once_only():
    with pytest.raises(ConfigError, match="no tag twice"):
        TokenizerConfig(tags=("zh", "zh"))


SECTIONS = (
    ModelConfig, TokenizerConfig, TrainingConfig, DataConfig, SearchOptions, TranslateOptions, SamplingOptions,
    CorpusConfig, ServeOptions,
)  # fmt: skip
FLOATS = [(section, field.name) for section in SECTIONS for field in fields(section) if field.type == "float"]


@pytest.mark.parametrize(("section", "name"), FLOATS, ids=lambda each: getattr(each, "__name__", each))
def test_no_setting_takes_what_is_not_a_finite_number(section, name):
    required = {"files": ("pairs.tsv",)} if section is CorpusConfig else {}
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(ConfigError, match=rf"\.{name}: expected a finite number; got {value}"):
            section(**required, **{name: value})


def test_every_kind_of_settings_has_such_a_number():
    assert {section for section, _ in FLOATS} >= {SearchOptions, TranslateOptions, SamplingOptions, TrainingConfig}
