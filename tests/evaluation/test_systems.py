import gzip
from pathlib import Path

import pytest
from small_models import random_model

from sixfold import modelfile
from sixfold.config import Config, ModelConfig, TokenizerConfig
from sixfold.errors import DataError, RequestError
from sixfold.evaluation.systems import (
    DecodingOptions,
    TestSet,
    open_model,
    read_test_set,
    read_translations,
    short_names,
    target_language,
    translate,
)
from sixfold.model.transformer import weights_of
from sixfold.text.learn import train_tokenizer

SENTENCES = ["we like tea", "the cat sat", "", "tea and a cat and a mat and much more tea than anyone can drink", "a"]


@pytest.fixture
def model(tmp_path):
    """Return a model with random weights, which translates badly."""
    tokenizer = train_tokenizer(SENTENCES * 20, TokenizerConfig(vocab=300))
    shape = tokenizer.fit(ModelConfig(d_model=16, heads=2, d_ff=32, encoder_layers=1, decoder_layers=1, max_length=24))
    weights = weights_of(random_model(shape))
    card = {"languages": {"source": "de", "target": "fr"}}
    modelfile.save(tmp_path / "m.safetensors", Config(model=shape), weights, tokenizer, card)
    return open_model(tmp_path / "m.safetensors")


def without_references(sources):
    """Return a test set without references: translating must not look at them."""
    return TestSet(sources, [], [], "fr")


def write(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding))
    return path


def test_sentences_translated_together_are_those_translated_alone(model):
    counts = []
    translations = translate(
        model, without_references(SENTENCES), DecodingOptions(beam=2, compute="float32"), counts.append
    )
    assert sum(counts) == len(SENTENCES)
    assert any(translations)
    for sentence, translation in zip(SENTENCES, translations, strict=True):
        assert translate(
            model, without_references([sentence]), DecodingOptions(beam=2, compute="float32"), counts.append
        ) == [translation]


def test_a_source_that_is_too_long_is_cut_and_not_refused(model):
    (translation,) = translate(model, without_references(["tea " * 5000]), DecodingOptions(beam=1), lambda count: None)
    assert "\n" not in translation


def test_two_files_are_read_line_by_line(tmp_path):
    source = write(tmp_path / "a.zh", "\ufeff我爱茶\r\n\r\n猫\r\n")
    test_set = read_test_set([source, write(tmp_path / "a.en", "I love tea\n\nA cat")])
    assert test_set.sources == ("我爱茶", "", "猫")
    assert test_set.references == ("I love tea", "", "A cat")
    assert test_set.language == "en"


def test_the_third_column_of_a_table_is_the_corpus(tmp_path):
    test_set = read_test_set([write(tmp_path / "t.de-en.tsv", "Tee\ttea\tnews\nKatze\tcat\n\n\n")])
    assert list(zip(test_set.sources, test_set.references, test_set.corpora, strict=True)) == [
        ("Tee", "tea", "news"),
        ("Katze", "cat", ""),
    ]
    assert test_set.language == "en"


def test_compressed_json_is_read_too(tmp_path):
    with gzip.open(tmp_path / "t.jsonl.gz", "wb") as file:
        file.write(b'{"source": "Tee", "target": "tea"}\n')
    assert read_test_set([tmp_path / "t.jsonl.gz"]).references == ("tea",)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.zh": "", "a.en": ""}, "the file is empty"),
        ({"a.tsv": "\n\n"}, "the file is empty"),
        ({"a.zh": "a\nb\n", "a.en": "a\n"}, r"a\.en: expected as many lines as .*a\.zh \(2\); got 1"),
        ({"a.tsv": "a\tb\nonly one\n"}, r"a\.tsv:2: expected source, reference and optionally a corpus; got 1"),
        ({"a.tsv": "a\tb\tc\td\n"}, "got 4 columns"),
    ],
)
def test_a_test_set_that_cannot_be_used_says_where(tmp_path, files, message):
    paths = [write(tmp_path / name, text) for name, text in files.items()]
    with pytest.raises(DataError, match=message):
        read_test_set(paths)


def test_another_encoding_is_named(tmp_path):
    source = write(tmp_path / "a.zh", "ok\n我爱茶\n", "gb18030")
    with pytest.raises(DataError, match=r"a\.zh: expected text in UTF-8; got text in GBK"):
        read_test_set([source, write(tmp_path / "a.en", "ok\nI love tea\n")])
    with pytest.raises(DataError, match=r"a\.zh: expected text in UTF-8; got text in GBK"):
        read_translations(source, 2)


def test_a_damaged_line_is_named(tmp_path):
    source = tmp_path / "a.zh"
    source.write_bytes("我爱茶\n我".encode() + b"\xff\n")
    with pytest.raises(DataError, match=r"a\.zh:2: expected UTF-8"):
        read_test_set([source, write(tmp_path / "a.en", "ok\nI love tea\n")])
    with pytest.raises(DataError, match=r"a\.zh:2: expected UTF-8"):
        read_translations(source, 2)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.zh: No such file"):
        read_test_set([tmp_path / "none.zh", tmp_path / "none.en"])


def test_a_system_has_a_line_for_every_sentence(tmp_path):
    path = write(tmp_path / "out.txt", "one\r\n\r\nthree")
    assert read_translations(path, 3) == ["one", "", "three"]
    with pytest.raises(DataError, match=r"out\.txt: expected 4 lines, as many as the test set; got 3"):
        read_translations(path, 4)


def test_a_model_that_cannot_translate_is_refused(tmp_path, model):
    path = tmp_path / "bare.safetensors"
    modelfile.save(path, model.config, model.weights())
    with pytest.raises(RequestError, match="expected a model that translates; this one has no tokeniser"):
        open_model(path)


def test_the_language_is_the_option_then_the_models_then_by_script(tmp_path, model):
    files = [write(tmp_path / "a.src", "x\n"), write(tmp_path / "a.ref", "猫很可爱\n")]
    assert target_language(read_test_set(files, "ja"), [model]) == "ja"
    assert target_language(read_test_set(files), [model]) == "fr"
    assert target_language(read_test_set(files), []) == "zh"


@pytest.mark.parametrize(
    ("paths", "names"),
    [
        (["a/model.safetensors"], ["model"]),
        (["a/model.safetensors", "b/model.safetensors"], ["a/model", "b/model"]),
        (["a/out.txt", "a/out.txt"], ["out", "out (2)"]),
        (["x/a/m.safetensors", "y/a/m.safetensors", "z.v2.en"], ["x/a/m", "y/a/m", "z.v2.en"]),
    ],
)
def test_systems_get_short_names_of_their_own(paths, names):
    assert short_names([Path(path) for path in paths]) == names
