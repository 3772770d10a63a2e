import shutil

import pytest
import small_generators as generators
from fastapi.testclient import TestClient

from sixfold import modelfile
from sixfold.engines.memory import engine_memory, file_memory, writing_memory
from sixfold.errors import RequestError
from sixfold.serving.app import make_app
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.translation.translator import Translator


@pytest.fixture
def folder(models, tmp_path):
    for name in ("zh-en", "en-zh", "en-de"):
        shutil.copy(models[name], tmp_path / f"{name}.safetensors")
    return tmp_path


def test_the_models_of_a_folder_are_served_and_opened_when_they_are_used(folder):
    file = modelfile.load(folder / "zh-en.safetensors")
    size = file_memory(file) + engine_memory(file, "int8")
    models = ReloadingModels([], 1, folder, memory=int(1.5 * size))
    pool = models._loaded.translator._pool
    with TestClient(make_app(ServeOptions(pivot=True), models, log=lambda _: None), "http://localhost") as client:
        assert pool.open_bytes == 0
        targets = {each["code"]: set(each["targets"]) for each in client.get("/languages").json()}
        assert targets["zh-Hans"] >= {"zh-Hans", "en", "de"}
        for source, target, text, expected in (
            ("zh", "en", "我爱猫", "I love cats"), ("en", "zh", "I love cats", "我爱猫"),
        ):  # fmt: skip
            response = client.post("/translate", json={"q": text, "source": source, "target": target})
            assert response.json()["translatedText"] == expected
            assert 0 < pool.open_bytes <= 1.5 * size
        response = client.post("/translate", json={"q": "我爱猫", "source": "zh", "target": "de"})
        assert response.status_code == 200
        assert pool.open_bytes <= 1.5 * size


def test_models_come_and_go_while_the_server_runs(folder, models):
    served = ReloadingModels([], 1, folder, memory=10**9)
    assert sorted(served.directions) == [("en", "de"), ("en", "zh"), ("zh", "en")]
    shutil.copy(models["de-en"], folder / "new.safetensors")
    (folder / "en-zh.safetensors").unlink()
    assert "new.safetensors" in served.refresh()
    assert sorted(served.directions) == [("de", "en"), ("en", "de"), ("zh", "en")]
    for path in folder.iterdir():
        path.unlink()
    assert "could not be loaded" in served.refresh()
    assert sorted(served.directions) == [("de", "en"), ("en", "de"), ("zh", "en")]
    served.close()


def test_a_folder_without_models_is_refused(tmp_path):
    with pytest.raises(RequestError, match="expected a folder with model files"):
        ReloadingModels([], 1, tmp_path)


def with_card(path, **entries):
    file = modelfile.load(path)
    modelfile.save(path, file.config, file.weights(), file.tokenizer, {**file.card, **entries}, profiles=file.profiles)


def test_the_pivot_of_the_best_declared_quality_is_taken(folder, models):
    """zh can become de through en, or through another language if both of its models are declared to be better."""
    for name, pair, quality in (
        ("zh-en", ("zh", "en"), 0.5), ("en-de", ("en", "de"), 0.6), ("zh-fr", ("zh", "fr"), 0.9),
        ("fr-de", ("fr", "de"), 0.8),
    ):  # fmt: skip
        original = {"zh-fr": "zh-en", "fr-de": "en-de"}.get(name, name)
        shutil.copy(models[original], folder / f"{name}.safetensors")
        languages = dict(zip(("source", "target"), pair, strict=True))
        with_card(folder / f"{name}.safetensors", languages=languages, quality={"-".join(pair): quality})

    def pivot():
        with Translator(sorted(folder.glob("*.safetensors")), "cpu", memory=10**9) as translator:
            route = translator.route("我爱猫", _request("zh", "de"))
            return route.hops[0].languages[1]

    assert pivot() == "fr"
    with_card(folder / "fr-de.safetensors", quality={})
    assert pivot() == "en"


def _request(source, target):
    from sixfold.translation.request import TranslationRequest

    return TranslationRequest(source, target, pivot=True)


def test_models_that_write_share_the_folder_and_the_memory_with_those_that_translate(folder, tmp_path_factory):
    made = tmp_path_factory.mktemp("generator")
    generators.gpt2(made)
    generators.model_file(made, folder / "gpt.safetensors")
    file = modelfile.load(folder / "gpt.safetensors")
    size = file_memory(file) + writing_memory(file)
    models = ReloadingModels([], 1, folder, memory=size)  # room for the one model or the other
    loaded = models._loaded
    with TestClient(make_app(ServeOptions(), models, log=lambda _: None), "http://localhost") as client:
        assert [each["id"] for each in client.get("/v1/models").json()["data"]] == ["gpt"]
        assert {each["name"] for each in client.get("/api/v1/models").json()["models"]} == {
            "zh-en", "en-zh", "en-de", "gpt"
        }  # fmt: skip
        generator = loaded.generators["gpt"]
        assert not generator._pooled.is_open
        body = {"model": "gpt", "prompt": "Once", "max_tokens": 4, "temperature": 0}
        texts = []
        for _ in range(2):
            texts.append(client.post("/v1/completions", json=body).json()["choices"][0]["text"])
            assert generator._pooled.is_open
            response = client.post("/translate", json={"q": "我爱猫", "source": "zh", "target": "en"})
            assert response.json()["translatedText"] == "I love cats"
            assert not generator._pooled.is_open
    assert texts[0] == texts[1]
