"""The explorer's routes answer for decoder-only models too, with the numbers that Python computes."""

from dataclasses import replace

import numpy as np
import pytest
import small_generators
from safetensors.numpy import load
from small_servers import in_process

from sixfold import explore
from sixfold.explorer.beam import search_tree
from sixfold.explorer.embeddings import similar_sentences
from sixfold.explorer.explore import Explorer
from sixfold.explorer.lens import lens
from sixfold.modelfile import load as load_model
from sixfold.translation.translator import Translator

EXPLORE, TEXT = "/api/v1/explore", "The quick brown fox"


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    small_generators.llama(folder / "llama")
    return small_generators.model_file(folder / "llama", folder / "llama.safetensors")


@pytest.fixture(scope="module")
def client(llama, models):
    with in_process(models["tagged"], llama) as client:
        yield client


@pytest.fixture(scope="module")
def trace(llama):
    return explore(TEXT, model=llama)


def test_a_trace_has_no_source_and_its_arrays(client, trace):
    request = {"text": TEXT, "model": "llama"}
    facts = client.post(EXPLORE, json=request).json()
    assert (facts["source"], facts["kinds"], facts["translation"]) == (None, {"decoder": 2}, "")
    assert facts["target"]["texts"] == trace.target.texts
    assert facts["predicted"]["texts"] == trace.predicted.texts
    arrays = load(client.post(f"{EXPLORE}/arrays", json={**request, "names": ["logits"]}).content)
    np.testing.assert_allclose(arrays["logits"], trace["logits"], atol=1e-5)
    off = client.post(EXPLORE, json={**request, "off": ["decoder.1.2"]}).json()
    assert off["steps"][3]["probability"] == pytest.approx(
        explore(TEXT, model=trace.model, off=["decoder.1.2"]).steps(1)[3].probability, abs=1e-5
    )


def test_the_lens_and_the_search_are_those_of_python(client, trace, models):
    request = {"text": TEXT, "model": "llama"}
    found = client.post(f"{EXPLORE}/lens", json=request).json()
    expected = lens(trace)
    assert found["layers"] == expected.layers
    assert found["ranks"] == expected.ranks.tolist()
    np.testing.assert_allclose(found["following"], expected.following, atol=1e-5)
    assert client.post(f"{EXPLORE}/beam", json={**request, "beam": 2}).json()["best"] == search_tree(trace, 2).best
    assert client.post(f"{EXPLORE}/free", json=request).json()["steps"][0]["read"] == trace.target.texts[-1]
    merges = client.post(f"{EXPLORE}/merges", json=request).json()
    assert (merges["source"], "".join(word["text"] for word in merges["target"])) == ([], "▁The▁quick▁brown▁fox")
    translated = {"text": "我爱猫。", "source": "zh", "target": "en"}
    of_translation = client.post(f"{EXPLORE}/lens", json=translated).json()
    trace = explore("我爱猫。", model=models["tagged"], source="zh", target="en")
    assert of_translation["texts"] == lens(trace).texts


def test_the_routes_about_a_model_know_it(client, trace):
    masks = client.post(f"{EXPLORE}/masks", json={"texts": ["The", TEXT], "model": "llama"}).json()
    assert masks["texts"][1] == trace.target.texts
    shapes = client.post(f"{EXPLORE}/shapes", json={"model": "llama"}).json()
    assert (shapes["name"], shapes["config"]["kind"]) == ("llama", "decoder")
    table = load(client.post(f"{EXPLORE}/positions", json={"length": 8, "model": "llama"}).content)["table"]
    assert table.shape == (8, 8)
    pair = {"one": TEXT, "other": "How are you?"}
    cosine = client.post(f"{EXPLORE}/similar", json={**pair, "sentences": True, "model": "llama"}).json()["cosine"]
    assert cosine == pytest.approx(similar_sentences(trace.model, *pair.values()), abs=1e-5)


def test_what_makes_no_sense_is_refused(client):
    for path, fields, message in (
        ("", {"translation": "x"}, "translation: expected none for a model of the kind 'decoder'"),
        ("", {"source": "zh"}, "source: expected none"),
        ("/aligners", {}, "influence: expected a model that translates"),
        ("", {"off": ["cross.0.0"]}, "expected decoder in a model of the kind decoder; got cross"),
    ):
        response = client.post(f"{EXPLORE}{path}", json={"text": TEXT, "model": "llama", **fields})
        assert response.status_code == 400
        assert message in response.json()["error"]
    with_languages = {"texts": [TEXT], "model": "llama", "target": "en"}
    assert client.post(f"{EXPLORE}/masks", json=with_languages).status_code == 400


def test_a_text_whose_arrays_would_take_much_memory_is_refused(client, monkeypatch):
    monkeypatch.setattr("sixfold.explorer.explore.MAX_WEIGHTS", 2 * 4 * 8**2)  # layers × heads × length²
    request = {"model": "llama", "text": "The quick"}
    assert client.post(EXPLORE, json=request).status_code == 200
    response = client.post(EXPLORE, json={**request, "text": TEXT * 3})
    assert response.status_code == 400
    assert "text: expected at most 8 tokens; got " in response.json()["error"]


def test_without_a_model_that_translates_the_first_is_explored(llama):
    with in_process(llama) as client:
        assert client.post(EXPLORE, json={"text": TEXT}).json()["model"] == "llama"
        assert client.post(f"{EXPLORE}/shapes", json={}).json()["config"]["kind"] == "decoder"


def test_a_model_stays_open_while_it_is_read_and_traces_are_kept(llama):
    file, events = load_model(llama), []

    class Opened:
        """Records when a model is opened and closed."""

        def __enter__(self):
            events.append("open")
            return self

        def __exit__(self, *_):
            events.append("close")

    Opened.file = replace(file, name="llama")
    with Translator((), "cpu") as translator:
        explorer = Explorer(translator, text_models={"llama": Opened})
        first = explorer.explore(TEXT)
        assert explorer.explore(TEXT) is first
        assert events == ["open", "close"]
        with explorer.open_model("") as model:
            assert (events[-1], model.before, model.after) == ("open", (1,), ())
        assert events[-1] == "close"
        explorer.close()
