"""CTranslate2 folders and Argos packages, read back and compared with what ctranslate2 makes of them."""

import shutil
import struct
import zipfile
from dataclasses import replace

import pytest
import small_checkpoints as checkpoints
from ctranslate2.converters import TransformersConverter
from small_ctranslate2 import argos, check_folder, opennmt
from small_models import SMALL, in_memory, random_model

from sixfold import Translator
from sixfold.errors import ModelFileError
from sixfold.interop.ctranslate2 import convert
from sixfold.interop.sources import read_source

QUANTIZATIONS = [None, "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16"]


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
@pytest.mark.parametrize("separate", [True, False])
def test_opennmt_models_of_every_type_come_back(quantization, separate, tmp_path):
    data = opennmt(tmp_path / "model", quantization, separate)
    (tmp_path / "model" / "sentencepiece.model").write_bytes(data)
    file = read_source(str(tmp_path / "model"))
    config = file.config.model
    assert (config.positions, config.position_layout, config.norm_position) == ("sinusoidal", "interleaved", "pre")
    assert (config.share_embeddings, config.tie_output) == (not separate, not separate)
    assert file.storage == ("int8" if quantization and "int8" in quantization else "float32")
    # Sinusoids are computed anew, which differs from a table that was rounded.
    check_folder(tmp_path / "model", data, file, 0.05 if quantization and "16" in quantization else 2e-3)


def test_what_transformers_saves_comes_back_through_ctranslate2(tmp_path):
    checkpoints.marian(tmp_path)
    TransformersConverter(str(tmp_path / "model")).convert(str(tmp_path / "ct2"), quantization="int8")
    direct, through = (read_source(str(tmp_path / name)) for name in ("model", "ct2"))
    first, second = direct.config.model, through.config.model
    for name in (
        "d_model",
        "heads",
        "positions",
        "norm_position",
        "embedding_norm",
        "feed_forward",
        "scale_embeddings",
    ):
        assert getattr(first, name) == getattr(second, name), name
    for name in direct.weights():
        if name.startswith("encoder.layers") and name in through.tensors:
            expected, got = direct.weight(name), through.weight(name)
            assert abs(expected - got).max() <= abs(expected).max() / 127


def test_a_folder_that_this_project_wrote_comes_back(tmp_path):
    file = read_source(str(tmp_path / "model")) if opennmt(tmp_path / "model", "int8") else None
    written = convert(file, *[[str(index) for index in range(size)]
                              for size in (file.config.model.vocab, file.config.model.vocab_read)])  # fmt: skip
    (tmp_path / "again").mkdir()
    for name, content in written.items():
        (tmp_path / "again" / name).write_bytes(content)
    again = read_source(str(tmp_path / "again"))
    assert again.config.model == replace(file.config.model, pad=again.config.model.pad)
    for name in file.tensors:
        assert (again.tensors[name].data == file.tensors[name].data).all(), name


def test_biases_of_query_key_and_value_alone_come_back(tmp_path):
    shape = replace(SMALL, bias=False, query_key_value_bias=True)
    file = in_memory(shape, random_model(shape))
    for name, content in convert(file, [str(index) for index in range(shape.vocab)]).items():
        (tmp_path / name).write_bytes(content)
    again = read_source(str(tmp_path))
    assert (again.config.model.bias, again.config.model.query_key_value_bias) == (False, True)
    assert again.tensors.keys() == file.tensors.keys()
    for name in file.tensors:
        assert (again.tensors[name].data == file.tensors[name].data).all(), name


def test_an_argos_package_translates(tmp_path):
    data = opennmt(tmp_path / "model", "int8")
    package = argos(tmp_path / "en_es.argosmodel", tmp_path / "model", data)
    file = read_source(str(package))
    assert file.card["languages"] == {"source": "en", "target": "es"}
    assert file.card["parent"] == "Argos package en-es 1.9"
    check_folder(tmp_path / "model", data, file)
    with Translator(file, "cpu") as translator:
        assert translator.directions == [("en", "es")]
        assert translator.translate("The machines are learning.").text
    shutil.unpack_archive(package, tmp_path / "unpacked", "zip")
    unpacked = read_source(str(tmp_path / "unpacked" / "translate-en_es-1_9"))
    assert unpacked.config == file.config
    prefixed = read_source(str(argos(tmp_path / "p.zip", tmp_path / "model", data, target_prefix="▁")))
    with Translator(prefixed, "cpu") as translator:
        assert translator.translate("The machines are learning.").text


def rewrite(package, changes):
    """Write a package again with other contents of some files; None leaves a file out."""
    with zipfile.ZipFile(package) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in contents.items():
            change = next((value for end, value in changes.items() if name.endswith(end)), content)
            change = change(content) if callable(change) else change
            if change is not None:
                archive.writestr(name, change)


def renamed(content):
    """Return a model.bin in which a variable has another name of the same length."""
    return content.replace(b"encoder/layer_0/ffn/linear_0/bias", b"encoder/layer_0/ffn/linear_0/bxas")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"metadata.json": b'{"from_code": "en", "to_code": ["es"]}'},
            r"en_es\.argosmodel/metadata\.json: to_code: .* got",
        ),
        (
            {"metadata.json": b'{"from_code": "../..", "to_code": "es"}'},
            r"from_code: expected a language such as en; got",
        ),
        ({"model.bin": None}, r"en_es\.argosmodel: expected model/model\.bin; found none"),
        ({"config.json": b'{"eos_token": {}}'}, r"config\.json: eos_token: expected a token; got {}"),
        ({"config.json": b'{"layer_norm_epsilon": "x"}'}, r"layer_norm_epsilon: expected a number; got 'x'"),
        (
            {"config.json": b'{"add_source_bos": true, "bos_token": "zz"}'},
            "expected tokens of the source vocabulary; .* 'zz'",
        ),
        ({"model.bin": bytes(50_000_000)}, r"expected at most .* bytes in it, 20 times its own size; got 50,"),
        ({"metadata.json": b"[]"}, r"metadata\.json: expected a JSON object"),
        ({"sentencepiece.model": None}, r"expected sentencepiece\.model or bpe\.model; found none"),
        ({"model.bin": lambda data: data[:5000]}, r"model\.bin: .* damaged or cut short"),
        ({"model.bin": lambda data: struct.pack("<I", 9) + data[4:]}, "of the version 4 to 6; got 9"),
        ({"model.bin": lambda data: data.replace(b"TransformerSpec", b"WhisperrrrrSpec")}, "got WhisperrrrrSpec"),
        ({"model.bin": renamed}, "linear_0/bxas"),
        ({"source_vocabulary.json": b'["a"]'}, "expected vocabularies of .* got 1 and"),
        ({"target_vocabulary.json": None}, "found one"),
    ],
)
def test_a_damaged_package_is_refused_by_name(changes, message, tmp_path):
    data = opennmt(tmp_path / "model")
    package = argos(tmp_path / "en_es.argosmodel", tmp_path / "model", data)
    rewrite(package, changes)
    with pytest.raises(ModelFileError, match=message) as caught:
        read_source(str(package))
    assert "\n" not in str(caught.value)


def test_every_cut_of_a_model_is_one_line(tmp_path):
    opennmt(tmp_path / "model", "int8")
    whole = (tmp_path / "model" / "model.bin").read_bytes()
    for cut in range(0, len(whole), len(whole) // 60):
        (tmp_path / "model" / "model.bin").write_bytes(whole[:cut])
        with pytest.raises(ModelFileError, match=r"model\.bin: "):
            read_source(str(tmp_path / "model"))


def test_an_archive_that_points_elsewhere_writes_nothing(tmp_path):
    data = opennmt(tmp_path / "model")
    package = argos(tmp_path / "evil.argosmodel", tmp_path / "model", data)
    with zipfile.ZipFile(package, "a") as archive:
        for name in ("x/../../model/evil", "/model/model/evil", "x\\..\\..\\model\\evil", "x/model/../../evil"):
            archive.writestr(name, b"evil")
    assert read_source(str(package)).tokenizer is not None
    assert not list(tmp_path.parent.rglob("evil"))
