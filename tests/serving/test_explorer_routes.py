"""The explorer's routes return what Python computes, and the files of the web page are served unchanged."""

import gzip
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from safetensors.numpy import load
from small_servers import in_process

from sixfold import modelfile
from sixfold.explorer.beam import free_run, search_tree
from sixfold.explorer.embeddings import neighbours, pca_projection, similar, similar_sentences
from sixfold.explorer.explore import Explorer, explore
from sixfold.explorer.forward import sinusoids
from sixfold.explorer.influence import aligners, influence
from sixfold.serving.admission import Admission
from sixfold.serving.service import MAX_EXPLORER_REQUESTS
from sixfold.serving.static_files import STATIC_FOLDER

SENTENCE = {"text": "我爱猫。", "source": "zh", "target": "en"}
EXPLORE = "/api/v1/explore"


@pytest.fixture(scope="module")
def trace(models):
    return explore("我爱猫。", model=models["tagged"], source="zh", target="en")


def test_a_sentence_is_told_as_python_finds_it(server, trace):
    status, _, response = server.ask(EXPLORE, {**SENTENCE, "top": 3})
    assert status == 200
    expected = trace.to_dict(3)
    assert set(response) == set(expected)
    assert response["source"]["texts"] == trace.source.texts
    assert response["arrays"] == expected["arrays"]
    for served, local in zip(response["steps"], expected["steps"], strict=True):
        assert served["probability"] == pytest.approx(local["probability"], abs=1e-6)
        assert [each["text"] for each in served["choices"]] == [each["text"] for each in local["choices"]]


def test_arrays_come_in_16_or_32_bits_whole_or_one_row(server, trace):
    name = "decoder.layers.0.cross_attention.weights"
    status, headers, body = server.ask(f"{EXPLORE}/arrays", {**SENTENCE, "names": [name, "logits"], "half": True})
    assert (status, headers["Content-Type"]) == (200, "application/octet-stream")
    half = load(body)
    assert half[name].dtype == np.float16
    assert np.allclose(half[name], trace[name], atol=1e-3)
    row = load(server.ask(f"{EXPLORE}/arrays", {**SENTENCE, "names": ["logits"], "row": 1})[2])
    assert np.allclose(row["logits"], trace["logits"][1], atol=1e-5)
    assert row["logits"].dtype == np.float32


def test_heads_are_switched_off(server, trace):
    _, _, response = server.ask(f"{EXPLORE}/arrays", {**SENTENCE, "translation": trace.translation, "names": ["logits"],
                                                  "off": ["cross.0.0", "encoder.0.1"]})  # fmt: skip
    off = explore(SENTENCE["text"], trace.translation, trace.model, "zh", "en", ["cross.0.0", "encoder.0.1"])
    assert np.allclose(load(response)["logits"], off["logits"], atol=1e-5)
    assert not np.allclose(off["logits"], trace["logits"], atol=1e-2)


def test_searches_are_told(server, trace):
    _, _, response = server.ask(f"{EXPLORE}/beam", {**SENTENCE, "beam": 2})
    expected = search_tree(trace, 2)
    assert response["best"] == expected.best
    assert [node["token"] for node in response["nodes"]] == [node.token for node in expected.nodes]
    _, _, response = server.ask(f"{EXPLORE}/free", SENTENCE)
    assert [step["wrote"] for step in response["steps"]] == [step.wrote for step in free_run(trace)]


def test_the_heads_that_align_are_measured(server, trace):
    _, _, response = server.ask(f"{EXPLORE}/aligners", SENTENCE)
    assert np.allclose(response["influence"], influence(trace), atol=1e-4)
    assert [each["head"] for each in response["aligners"]] == [str(each.head) for each in aligners(trace)]


def test_the_merges_of_both_sides_are_told(server, trace):
    _, _, response = server.ask(f"{EXPLORE}/merges", SENTENCE)
    pieces = [piece.strip() for word in response["target"] for piece in word["stages"][-1]]
    assert pieces == trace.predicted.texts[:-1]
    assert "".join(word["text"] for word in response["source"]) == f" {SENTENCE['text']}"


def test_the_masks_of_a_batch_are_told(server):
    _, _, response = server.ask(f"{EXPLORE}/masks", {"texts": ["我爱猫", "我"], "source": "zh", "target": "en"})
    assert response["padding"] == [[True] * 6, [True] * 4 + [False] * 2]
    assert response["both"][1][4] == [True] * 4 + [False] * 2
    assert server.ask(f"{EXPLORE}/masks", {"texts": ["我" * 200], "source": "zh", "target": "en"})[0] == 400


def test_words_are_compared(server, models):
    model = modelfile.load(models["tagged"])
    words = {"one": "cats", "other": "dogs"}
    assert server.ask(f"{EXPLORE}/similar", words)[2]["cosine"] == pytest.approx(
        similar(model, "cats", "dogs"), abs=1e-5
    )
    sentences = {"one": "I love cats", "other": "I love dogs", "sentences": True}
    expected = similar_sentences(model, sentences["one"], sentences["other"])
    assert server.ask(f"{EXPLORE}/similar", sentences)[2]["cosine"] == pytest.approx(expected, abs=1e-5)
    nearest = server.ask(f"{EXPLORE}/neighbours", {"word": "cats", "count": 3})[2]["neighbours"]
    assert [each["id"] for each in nearest] == [each.id for each in neighbours(model, "cats", 3)]
    points = server.ask(f"{EXPLORE}/plane", {"words": ["cats", "dogs", "water"]})[2]["points"]
    assert np.allclose(
        [[each["x"], each["y"]] for each in points], pca_projection(model, ["cats", "dogs", "water"]), atol=1e-4
    )


def test_the_model_itself_is_told(server, models):
    model = modelfile.load(models["tagged"])
    arrays = load(server.ask(f"{EXPLORE}/positions", {"length": 9})[2])
    table = sinusoids(np.arange(9), model.config.model.d_model, model.config.model.position_layout)
    assert np.allclose(arrays["table"], table, atol=1e-6)
    assert np.allclose(arrays["products"], table @ table.T, atol=1e-4)
    _, _, response = server.ask(f"{EXPLORE}/shapes", {})
    assert response["total"] == sum(each.size for each in model.weights().values())
    assert sum(part["count"] for part in response["parts"]) == response["total"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("", {"text": ""}, 422),
        ("", {"text": "  "}, 400),
        ("", {"text": "我" * 300, "source": "zh", "target": "en"}, 400),
        ("", {**SENTENCE, "target": "fr"}, 400),
        ("", {**SENTENCE, "off": ["cross.9.9"]}, 400),
        ("", {**SENTENCE, "model": "another"}, 400),
        ("/arrays", {**SENTENCE, "names": ["nothing"]}, 400),
        ("/arrays", {**SENTENCE, "names": []}, 422),
        ("/arrays", {**SENTENCE, "names": ["logits"], "row": 999}, 400),
        ("/beam", {**SENTENCE, "beam": 99}, 422),
        ("/positions", {"length": 10**9}, 422),
    ],
)
def test_what_cannot_be_is_refused(server, path, body, status):
    actual, _, response = server.ask(EXPLORE + path, body)
    assert actual == status
    assert response["error"]


def test_the_page_is_served_as_it_is_and_nothing_beside_it(server):
    status, headers, body = server.ask("/")
    assert (status, body) == (200, (STATIC_FOLDER / "index.html").read_bytes())
    assert "default-src 'self'" in headers["Content-Security-Policy"]
    files = [path for path in STATIC_FOLDER.rglob("*") if path.is_file() and path.name != "index.html"]
    assert len(files) > 10
    for path in files:
        status, headers, body = server.ask(f"/static/{path.relative_to(STATIC_FOLDER).as_posix()}")
        assert (status, body) == (200, path.read_bytes())
        kinds = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
        assert headers["Content-Type"].startswith(kinds[path.suffix])
    _, headers, body = server.ask("/static/app.js", headers={"Accept-Encoding": "gzip"})
    assert headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(body) == (STATIC_FOLDER / "app.js").read_bytes()
    assert server.ask("/static/app.js", headers={"If-None-Match": server.ask("/static/app.js")[1]["ETag"]})[0] == 304
    for path in ("/static/", "/static/../app.py", "/static/%2e%2e/app.py", "/static/nothing.js", "/index.html"):
        assert server.ask(path)[0] == 404


def test_the_explorer_says_when_it_is_busy_and_holds_up_nobody_else(models, monkeypatch):
    release, begun = threading.Event(), threading.Semaphore(0)
    admit = Admission.admit
    monkeypatch.setattr(Explorer, "explore", lambda *_: release.wait(60))

    def admit_and_count(*arguments, **options):
        begun.release()
        return admit(*arguments, **options)

    monkeypatch.setattr(Admission, "admit", admit_and_count)
    with in_process(models["tagged"]) as server, ThreadPoolExecutor(MAX_EXPLORER_REQUESTS) as threads:
        futures = [threads.submit(server.post, EXPLORE, json=SENTENCE) for _ in range(MAX_EXPLORER_REQUESTS)]
        try:
            assert all(begun.acquire(timeout=60) for _ in futures)
            refused = server.post(EXPLORE, json=SENTENCE)
            alternatives = server.post("/api/v1/alternatives", json={**SENTENCE, "prefix": "I"})
        finally:
            release.set()
    assert (refused.status_code, alternatives.status_code) == (503, 200)
    assert int(refused.headers["Retry-After"]) >= 1
