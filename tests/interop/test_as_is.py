"""CTranslate2 folders and Argos packages that translate without a model file."""

import json
import shutil

import numpy as np
import pytest
import small_checkpoints as checkpoints
from commands import complaint, run_here
from ctranslate2.converters import TransformersConverter
from fastapi.testclient import TestClient
from small_ctranslate2 import argos, check_folder, opennmt

from sixfold import Translator, explore
from sixfold.errors import SixfoldError
from sixfold.interop.as_is import open_as_is
from sixfold.interop.sources import read_source
from sixfold.serving.app import make_app
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions

TEXT = "The machines are learning."


def folder_of(path, **settings):
    data = opennmt(path, **settings)
    (path / "sentencepiece.model").write_bytes(data)
    return data


@pytest.mark.parametrize("quantization", [None, "float16", "bfloat16", "int16", "int8"])
@pytest.mark.parametrize("separate", [True, False])
def test_a_folder_translates_as_ctranslate2_does(quantization, separate, tmp_path):
    data = folder_of(tmp_path / "ct2-en-es", quantization=quantization, separate=separate)
    file = open_as_is(tmp_path / "ct2-en-es")
    check_folder(tmp_path / "ct2-en-es", data, file, 1e-4)
    assert file.cached_bytes == 0
    assert file.name == "ct2-en-es"
    assert file.card["languages"] == {"source": "en", "target": "es"}


def test_a_model_that_begins_with_zeros_and_adds_tokens_translates_as_when_it_is_imported(tmp_path):
    """Marian's models begin with a vector of zeros, and the folder says which tokens CTranslate2 adds."""
    checkpoints.marian(tmp_path)
    folder = tmp_path / "en-fr"
    TransformersConverter(str(tmp_path / "model")).convert(str(folder))
    for name in ("source.spm", "target.spm"):
        shutil.copy(tmp_path / "model" / name, folder)
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | {"add_source_eos": True}))
    texts = [TEXT, "I love machine learning", "double spaces"]
    imported = read_source(str(folder))
    results, expected = [], []
    for model, translations in ((folder, results), (imported, expected)):
        with Translator(model, "cpu", compute="float32") as translator:
            translations += translator.translate_batch(texts)
    for got, best in zip(results, expected, strict=True):
        assert (got.text, got.score) == (best.text, pytest.approx(best.score, abs=1e-4))
    assert len({each.text for each in results}) > 1


@pytest.fixture
def package(tmp_path):
    data = opennmt(tmp_path / "model", "int8")
    return argos(tmp_path / "translate-en_es-1_9.argosmodel", tmp_path / "model", data)


def test_a_package_translates_and_is_looked_into(package, capsys):
    imported = read_source(str(package))
    with Translator(imported, "cpu") as translator:
        expected = translator.translate(TEXT).text
    assert run_here(capsys, "translate", TEXT, "--model", package).out == f"{expected}\n"
    file = open_as_is(package)
    with Translator(file, "cpu") as translator:
        assert translator.translate(TEXT).text == expected
    assert file.cached_bytes == 0
    logits = [explore(TEXT, "uno", model)["logits"] for model in (file, imported)]
    np.testing.assert_allclose(*logits, atol=1e-5)
    assert file.cached_bytes == file.nbytes > 0


def test_packages_and_folders_are_served_beside_model_files(package, tmp_path):
    models = tmp_path / "models"
    models.mkdir()
    shutil.move(package, models)
    folder_of(models / "ct2-en-fr", seed=2)
    (models / "notes.txt").write_text("no model")
    served = ReloadingModels([], 1, models, memory=10**9)
    with TestClient(make_app(ServeOptions(), served, log=lambda _: None), "http://localhost") as client:
        for target in ("es", "fr"):
            response = client.post("/translate", json={"q": TEXT, "source": "en", "target": target})
            assert response.json()["translatedText"]
        names = {each["name"]: each["bytes"] for each in client.get("/api/v1/models").json()["models"]}
        assert names.keys() == {"translate-en_es-1_9", "ct2-en-fr"}
        assert min(names.values()) > 10_000
        (models / "ct2-en-fr" / "config.json").write_text("[]")
        assert "could not be loaded" in served.refresh()
        response = client.post("/translate", json={"q": TEXT, "source": "en", "target": "es"})
        assert response.json()["translatedText"]


def test_what_needs_a_model_file_says_how_to_make_one(package, tmp_path):
    message = complaint("export", package, tmp_path / "out", "--to", "onnx")
    assert "got an Argos package" in message
    assert f"sixfold import {package}" in message


def test_a_folder_without_a_tokeniser_is_refused(tmp_path):
    opennmt(tmp_path / "model")
    with pytest.raises(SixfoldError, match="expected a model that translates; this one has no tokeniser"):
        Translator(tmp_path / "model", "cpu")
