"""With a file of keys, nothing but a few listed routes answers without one, and every key has limits of its own."""

import time

import pytest
from fastapi import FastAPI
from small_servers import in_process, multipart, until

from sixfold.errors import DataError
from sixfold.serving import admission
from sixfold.serving.admission import RateLimits
from sixfold.serving.api_keys import ApiKeys, digest, read_keys
from sixfold.serving.responses import HttpError

GOOD = {"q": "我爱猫", "source": "zh", "target": "en"}
NO_KEY = {"error": "Please contact the server operator to get an API key"}
# A new route must be added here, or it needs a key.
PUBLIC = {"/", "/health", "/ready", "/languages", "/frontend/settings", "/docs", "/spec", "/openapi.json"}


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"anna {digest('key-of-anna')}\nben {digest('key-of-ben')} 2 10\n", encoding="utf-8")
    return path


@pytest.fixture
def client(models, key_file):
    with in_process(models["tagged"], api_key_file=str(key_file)) as client:
        yield client


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def routes(client):
    """Return the path and a method of every route of the application, each path with a value for its parameter."""
    app = client.app
    while not isinstance(app, FastAPI):
        app = app.app
    pending, found = list(app.routes), set()
    while pending:
        route = pending.pop()
        router = getattr(route, "original_router", None)  # newer versions of FastAPI keep included routers
        if router is not None:
            pending += router.routes
        else:
            found |= {(route.path.replace("{name}", "x"), method) for method in route.methods}
    return sorted(found)


def test_every_route_but_the_listed_ones_needs_a_key(client):
    paths = routes(client)
    assert {"/metrics", "/translate", "/api/v1/models", "/api/v1/explore", "/download_file/x"} <= {p for p, _ in paths}
    assert len(paths) > 60
    for path, method in paths:
        response = client.request(method, path)
        if path in PUBLIC or path.startswith("/static/"):
            assert response.status_code == 200, path
        elif path.startswith("/v1/"):
            assert (response.status_code, response.json()["error"]["message"]) == (401, NO_KEY["error"]), path
            assert client.request(method, path, headers=bearer("wrong")).status_code == 401, path
            assert NO_KEY["error"] not in client.request(method, path, headers=bearer("key-of-anna")).text, path
        else:
            assert (response.status_code, response.json()) == (400, NO_KEY), path
            assert client.request(method, path, headers=bearer("wrong")).status_code == 403, path
            assert NO_KEY["error"] not in client.request(method, path, headers=bearer("key-of-anna")).text, path
    assert client.get("/a-route-of-tomorrow").json() == NO_KEY


def test_a_key_comes_in_the_header_the_query_the_form_or_the_json(client):
    key = {"api_key": "key-of-anna"}
    body, headers = multipart("a.txt", "我爱猫".encode(), source="zh", target="en", api_key="key-of-anna")
    for response in (
        client.post("/translate", json=GOOD, headers=bearer("key-of-anna")),
        client.post("/translate", json=GOOD, params=key),
        client.post("/translate", json={**GOOD, **key}),
        client.post("/translate", data={**GOOD, **key}),
        client.post("/translate", params={**GOOD, **key}),
        client.post("/translate_file", content=body, headers=headers),
        client.post("/api/v1/translate", json={"texts": ["我爱猫"]}, headers=bearer("key-of-anna")),
        client.post("/api/v1/translate", json={"texts": ["我爱猫"]}, params=key),
        client.get("/metrics", headers=bearer("key-of-anna")),
        client.get("/api/v1/models", params=key),
    ):
        assert response.status_code == 200, response.text
    for wrong in ({"api_key": "no"}, {"api_key": "é"}):
        assert client.post("/translate", json={**GOOD, **wrong}).json() == {"error": "Invalid API key"}
    for nothing in ({"api_key": ""}, {"api_key": 5}, {"api_key": None}):
        assert client.post("/translate", json={**GOOD, **nothing}).json() == NO_KEY


def test_a_body_that_cannot_be_read_is_a_mistake_of_the_client_also_while_its_key_is_looked_for(client):
    for body, kind in (
        (b"{", "application/json"),
        (b"x", "multipart/form-data"),
        (b"--e\r\nbroken", "multipart/form-data; boundary=e"),
    ):
        assert client.post("/translate", content=body, headers={"Content-Type": kind}).status_code == 400


def test_a_translated_file_is_fetched_with_a_key_only(client):
    body, headers = multipart("a.txt", "我爱猫".encode(), source="zh", target="en", api_key="key-of-anna")
    url = client.post("/translate_file", content=body, headers=headers).json()["translatedFileUrl"]
    assert client.get(url).json() == NO_KEY
    assert client.get(url, headers=bearer("key-of-anna")).text == "I love cats"


def test_a_key_has_limits_of_its_own(client):
    long = {**GOOD, "q": "我爱猫。" * 4}
    assert client.post("/translate", json=long, headers=bearer("key-of-anna")).status_code == 200
    response = client.post("/translate", json=long, headers=bearer("key-of-ben"))
    assert response.json() == {"error": "Invalid request: request (16) exceeds text limit (10)"}
    body, headers = multipart("a.html", f"<p>{long['q']}</p>".encode(), source="zh", target="en")
    response = client.post("/translate_file", content=body, headers=headers | bearer("key-of-ben"))
    assert response.json() == {"error": "Invalid request: request (16) exceeds text limit (10)"}
    statuses = [client.post("/translate", json=GOOD, headers=bearer("key-of-ben")).status_code for _ in range(3)]
    assert statuses == [200, 429, 429]  # the file was counted too
    for _ in range(4):
        assert client.post("/translate", json=GOOD, headers=bearer("key-of-anna")).status_code == 200


def test_limits_in_the_file_of_keys(tmp_path):
    path = tmp_path / "keys"
    sha = digest("x")
    path.write_text(f"# comment\na {sha} 60 5000 # more\n\nb {digest('y')} - 7\nc {digest('z')} 0\n", encoding="utf-8")
    limits = [(key.name, key.requests_per_minute, key.max_characters) for key in read_keys(path).values()]
    assert limits == [("a", 60, 5000), ("b", None, 7), ("c", 0, None)]
    for line in (f"a {sha} x", f"a {sha} 5 0", f"a {sha} -5", f"a {sha} 5 5 5", "a", f"a {sha[:-1]}", f"a {sha} ５"):
        path.write_text(f"\n{line}\n", encoding="utf-8")
        with pytest.raises(DataError, match=":2: expected"):
            read_keys(path)


def test_the_file_of_keys_is_read_again_when_it_changes_and_a_mistake_keeps_the_old_keys(models, key_file):
    log = []
    settings = {"api_key_file": str(key_file), "reload": 0.05}

    def status(key):
        return client.get("/api/v1/models", headers=bearer(key)).status_code

    def messages():
        return [line["message"] for line in log if line.get("event") == "keys"]

    with in_process(models["tagged"], log=log.append, **settings) as client:
        assert (status("key-of-anna"), status("key-of-cleo")) == (200, 403)
        key_file.write_text(f"cleo {digest('key-of-cleo')}\n", encoding="utf-8")
        assert until(lambda: status("key-of-cleo") == 200)
        assert status("key-of-anna") == 403
        key_file.write_text("cleo no-digest\n", encoding="utf-8")
        assert until(lambda: len(messages()) == 2)
        assert status("key-of-cleo") == 200
        assert messages()[1].endswith("the old keys stay in use")
        key_file.unlink()
        assert until(lambda: len(messages()) == 3)
        time.sleep(0.3)
        assert len(messages()) == 3  # once
        assert status("key-of-cleo") == 200
        key_file.write_text(f"anna {digest('key-of-anna')}\n", encoding="utf-8")
        assert until(lambda: status("key-of-anna") == 200)


def test_a_file_of_keys_with_a_mistake_is_told_before_the_server_starts(key_file):
    key_file.write_text("anna\n", encoding="utf-8")
    with pytest.raises(DataError, match=":1: expected a name, a SHA-256"):
        ApiKeys(key_file)


def test_work_that_is_done_can_be_owed_for_a_minute():
    now = 0.0
    limits = RateLimits(per_minute=60, concurrent=0, clock=lambda: now)
    limits.take("anna")
    limits.charge("anna", 1000)
    with pytest.raises(HttpError) as error:
        limits.take("anna")
    assert error.value.retry_after == 61
    now = 61.0
    limits.take("anna")
    limits.charge("ben", 1000, per_minute=0)
    limits.take("ben")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/explore", {"text": "我爱猫。"}),
        ("/api/v1/explore/aligners", {"text": "我爱猫。"}),
        ("/api/v1/explore/neighbours", {"word": "cats"}),
        ("/api/v1/explore/positions", {"length": 512}),
    ],
)
def test_the_explorer_is_paid_for_by_the_time_it_takes(models, monkeypatch, path, body):
    monkeypatch.setattr(admission, "SENTENCE_SECONDS", 1e-7)  # so that any work costs more than a minute's sentences
    with in_process(models["tagged"], requests_per_minute=30) as client:
        assert client.post(path, json={**body, "source": "zh", "target": "en"}).status_code == 200
        response = client.post("/translate", json=GOOD)
        assert (response.status_code, response.json()) == (429, {"error": "Slowdown: 30 per 1 minute"})
        assert int(response.headers["Retry-After"]) > 30


def test_every_alternative_costs_a_sentence(models):
    with in_process(models["tagged"], requests_per_minute=10) as client:
        fields = {"text": "我爱猫", "prefix": "I", "count": 8, "target": "en"}
        assert client.post("/api/v1/alternatives", json=fields).status_code == 200
        assert client.post("/api/v1/alternatives", json=fields).status_code == 429
        assert client.post("/api/v1/alternatives", json={**fields, "count": 2}).status_code == 200
