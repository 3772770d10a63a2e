"""A server from start to stop: models that change, signals, keys, limits, logs and metrics."""

import itertools
import json
import os
import re
import select
import shutil
import signal
import socket
import threading
import time
import urllib.error
from concurrent.futures import ThreadPoolExecutor

import pytest
from commands import complaint, sixfold
from small_servers import Server, in_process, multipart, send_request, until
from small_translators import distinct_sentences

from sixfold.serving.admission import RateLimits
from sixfold.serving.responses import HttpError
from sixfold.serving.service import DOCUMENT_THREADS, Service

GOOD = {"q": "我爱猫", "source": "zh", "target": "en"}


@pytest.fixture(scope="module")
def serial_server(models):
    """A server that allows each client one request at a time."""
    with Server(models["zh-en"], concurrent=1, cache=0, threads=1, max_characters=1_000_000) as server:
        yield server


@pytest.fixture(scope="module")
def deadline_server(models):
    """A server with a short deadline."""
    with Server(models["zh-en"], deadline=1.5, cache=0, threads=1, max_characters=1_000_000) as server:
        yield server


def page(count, length=1):
    """Return an upload of an HTML page with `count` paragraphs of `length` sentences."""
    sentences = (f"{each}。" for each in distinct_sentences(count * length))
    text = "".join(f"<p>{''.join(itertools.islice(sentences, length))}</p>" for _ in range(count))
    return multipart("a.html", text.encode(), source="zh", target="en")


def test_a_changed_model_is_opened_without_dropping_a_request(models, tmp_path):
    model = tmp_path / "model.safetensors"
    shutil.copy(models["zh-en"], model)
    with Server(model, reload=0.2) as server:
        failures, stop = [], threading.Event()
        server.ask("/translate", GOOD)

        def keep_asking():
            while not stop.is_set():
                status, _, _ = server.ask("/translate", {**GOOD, "q": f"我爱猫{time.monotonic_ns()}"})
                failures.extend([status] if status != 200 else [])

        with ThreadPoolExecutor(4) as pool:
            for _ in range(4):
                pool.submit(keep_asking)
            try:
                for number, name in enumerate(("tagged", "zh-en", "tagged"), start=1):
                    shutil.copy(models[name], tmp_path / "next")
                    (tmp_path / "next").replace(model)
                    assert until(lambda number=number: len(server.events("model")) == number), server.log[-5:]
            finally:
                stop.set()  # or else the pool would wait for ever
        assert failures == []
        assert server.ask("/api/v1/models")[2]["directions"] == [["zh", "en"], ["en", "zh"]]
        assert server.ask("/translate", GOOD)[0] == 200
        assert b"sixfold_cache_hits_total 0\n" in server.ask("/metrics")[2]  # the cache of the old model was dropped


def test_a_corrupted_model_is_told_once_and_the_old_one_goes_on(models, tmp_path):
    model = tmp_path / "model.safetensors"
    shutil.copy(models["zh-en"], model)
    with Server(model, reload=0.1) as server:
        with model.open("r+b") as file:  # overwritten in place
            file.seek(5000)
            file.write(b"\0" * 5000)
        assert until(lambda: server.events("model"))
        assert server.ask("/translate", GOOD)[2] == {"translatedText": "I love cats"}
        model.unlink()
        assert until(lambda: len(server.events("model")) == 2)
        time.sleep(0.5)
        assert len(server.events("model")) == 2
        assert all("the old one stays in use" in each["message"] for each in server.events("model"))
        assert server.ask("/translate", {**GOOD, "q": "我爱狗"})[2] == {"translatedText": "I love dogs"}


def test_a_model_that_is_cut_short_in_place_ends_no_server(models, tmp_path):
    model = tmp_path / "model.safetensors"
    shutil.copy(models["zh-en"], model)
    with Server(model, reload=0.2) as server:
        expected = server.ask("/translate", GOOD)[2]
        os.truncate(model, 8192)
        status, headers, response = server.ask("/api/v1/explore", {"text": "我爱猫"})
        assert (status, headers["Retry-After"]) == (503, "5")
        assert response == {"error": "the model's file was changed while it was in use"}
        assert server.ask("/translate", {**GOOD, "q": "我爱猫"})[0] == 200
        assert until(lambda: server.events("model")), server.log[-5:]
        assert "the old one stays in use" in server.events("model")[0]["message"]
        assert server.ask("/translate", GOOD)[2] == expected
        shutil.copy(models["zh-en"], model)
        assert until(lambda: len(server.events("model")) == 2), server.log[-5:]
        assert server.ask("/api/v1/explore", {"text": "我爱猫"})[0] == 200
        assert server.process.poll() is None


def test_what_was_accepted_is_answered_before_it_ends(models):
    with Server(models["tagged"], cache=0) as server:
        statuses, refused = [], []

        def ask(number):
            try:
                statuses.append(server.ask("/translate", {**GOOD, "q": "我爱猫。" * 20 + str(number)})[0])
            except OSError as error:  # the connection was not accepted
                refused.append(error)

        with ThreadPoolExecutor(24) as pool:
            futures = [pool.submit(ask, number) for number in range(200)]
            assert until(lambda: len(statuses) > 20)
            assert server.stop(signal.SIGTERM) == 0
            ended = time.monotonic()
            for future in futures:
                future.result()
        assert time.monotonic() - ended < 60
        assert set(statuses) == {200}
        assert len(statuses) + len(refused) == 200
        assert until(lambda: server.events("stopped"))  # the last line, which may come after the process has ended
        # Every request that the server accepted was answered.
        assert [line["status"] for line in server.log if line.get("route") == "/translate"] == [200] * len(statuses)
        with pytest.raises(urllib.error.URLError):
            server.ask("/health")


def test_after_a_kill_it_starts_again_at_the_same_address(models):
    with Server(models["zh-en"]) as server:
        server.stop(signal.SIGKILL)
        with Server(models["zh-en"], port=server.port) as second:
            assert second.ask("/health")[0] == 200


def test_an_address_that_is_taken_is_told(models):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        message = complaint("serve", "--model", models["zh-en"], "--port", listener.getsockname()[1])
    assert "address" in message.lower()


def test_keys_are_kept_hashed_and_needed(models, tmp_path):
    file = tmp_path / "keys"
    key = sixfold("serve", "--new-key", "anna", "--api-key-file", file).stdout.strip()
    assert key not in file.read_text(encoding="utf-8")
    assert "there is already a key named anna" in complaint("serve", "--new-key", "anna", "--api-key-file", file)
    with Server(models["zh-en"], api_key_file=str(file)) as server:
        assert server.ask("/translate", GOOD)[::2] == (
            400, {"error": "Please contact the server operator to get an API key"},
        )  # fmt: skip
        assert server.ask("/translate", {**GOOD, "api_key": "no"})[::2] == (403, {"error": "Invalid API key"})
        assert server.ask("/translate", {**GOOD, "api_key": key})[0] == 200
        fields = {"texts": ["我爱猫"]}
        assert server.ask("/api/v1/translate", fields, {"Authorization": f"Bearer {key}"})[0] == 200
        assert server.ask("/api/v1/translate", fields, {"Authorization": "Bearer \u00e9"})[0] == 403
        assert server.ask("/languages")[0] == 200
        assert server.ask("/frontend/settings")[2]["keyRequired"] is True
        assert all(line.get("who") in ("anna", None) for line in server.log)
        assert key not in json.dumps(server.log)


def test_who_asks_too_often_is_told_when_to_come_back(models):
    with Server(models["zh-en"], requests_per_minute=3) as server:
        two_texts = {**GOOD, "q": ["我爱猫", "我爱狗"]}
        assert [server.ask("/translate", fields)[0] for fields in (two_texts, GOOD)] == [200] * 2  # every text counts
        status, headers, response = server.ask("/translate", GOOD)
        assert (status, response) == (429, {"error": "Slowdown: 3 per 1 minute"})
        assert 1 <= int(headers["Retry-After"]) <= 20
        # Any client could claim another address with these headers.
        assert server.ask("/translate", GOOD, {"X-Forwarded-For": "10.1.2.3", "X-Real-IP": "10.1.2.3"})[0] == 429
        assert server.ask("/health")[0] == 200
        clients = until(lambda: {line["who"] for line in server.log if "who" in line})
        assert clients == {"127.0.0.1"}


def test_what_may_be_asked_fills_up_evenly_and_for_each_by_itself():
    now = 0.0
    limits = RateLimits(per_minute=60, concurrent=0, clock=lambda: now)
    limits.take("anna", 60)
    limits.take("bert", 90)  # more than the bucket holds
    for client in ("anna", "bert"):
        with pytest.raises(HttpError) as error:
            limits.take(client, 5)
        assert error.value.retry_after == 5
    now = 5.0
    limits.take("anna", 5)
    now = 1000.0
    limits.take("bert", 60)
    with pytest.raises(HttpError):  # the bucket holds no more than one minute
        limits.take("bert")


def test_who_asks_for_too_much_at_once_is_told(serial_server):
    with ThreadPoolExecutor(8) as pool:
        long = {**GOOD, "q": [f"{number}我爱猫你看书。" * 30 for number in range(20)]}
        futures = [pool.submit(serial_server.ask, "/translate", long) for _ in range(8)]
        statuses = {future.result()[0] for future in futures}
    assert {200, 429} <= statuses


def test_a_stream_that_its_client_leaves_gives_its_place_back(serial_server):
    fields = {"texts": [f"{each}。" * 14 for each in distinct_sentences(1000)], "target": "en", "beam": 1}
    for part in (b"", b"HTTP/1.1 200", b"event: sentence"):  # before the stream begins, and while it runs
        with send_request(serial_server, "/api/v1/translate/stream", fields) as connection:
            received = b""
            while part not in received:
                received += connection.recv(100)
            if part:
                assert serial_server.ask("/translate", GOOD)[0] == 429
        assert until(lambda: serial_server.ask("/translate", GOOD)[0] == 200)


def test_a_full_queue_is_told_at_once(models, monkeypatch):
    decoding, release, decode = threading.Event(), threading.Event(), Service._decode_batch

    def decode_later(*arguments):
        decoding.set()
        release.wait(60)
        return decode(*arguments)

    monkeypatch.setattr(Service, "_decode_batch", decode_later)
    long = {**GOOD, "q": "".join(f"{each}。" for each in distinct_sentences(90))}
    with in_process(models["zh-en"], queue=100, cache=0) as server, ThreadPoolExecutor(1) as threads:
        try:
            accepted = threads.submit(server.post, "/translate", json=long)
            assert decoding.wait(60)
            refused = server.post("/translate", json=long)
        finally:
            release.set()
        assert accepted.result().status_code == 200
    assert refused.status_code == 503
    assert int(refused.headers["Retry-After"]) >= 1


def test_a_document_that_takes_too_long_makes_room_for_others(deadline_server):
    long = page(10_000, 4)  # the deadline passes while it is still being read
    with ThreadPoolExecutor(DOCUMENT_THREADS) as pool:  # as many as run at the same time
        responses = pool.map(lambda _: deadline_server.ask("/translate_file", *long), range(DOCUMENT_THREADS))
        assert {status for status, _, _ in responses} == {503}
    assert until(lambda: deadline_server.ask("/translate_file", *page(1))[0] == 200)


def start_upload(server, upload):
    """Return the connection of an upload that the server has admitted.

    A request that checks for it may take the only slot first; the upload is then refused, and sent again.
    """
    for _ in range(10):
        connection = send_request(server, "/translate_file", *upload)
        if until(lambda: server.ask("/translate", GOOD)[0] == 429, seconds=5):
            return connection
        connection.close()
    raise AssertionError("the upload was never admitted")


def test_the_server_is_there_while_documents_are_read_and_stops_reading_for_who_leaves(serial_server):
    """Cancel as many uploads as are read at once. Each has ten megabytes of markup, which would take a minute."""
    long = multipart("a.html", b"<b>a</b> " * 1_100_000, source="zh", target="en")
    for _ in range(DOCUMENT_THREADS):
        with start_upload(serial_server, long):
            assert serial_server.ask("/health")[0] == 200
        assert until(lambda: serial_server.ask("/translate", GOOD)[0] == 200)
    assert serial_server.ask("/translate_file", *page(1))[0] == 200


def test_a_document_that_its_client_leaves_makes_room_for_others(serial_server):
    def batches():
        return int(re.search(rb"sixfold_batch_sentences_count (\d+)", serial_server.ask("/metrics")[2])[1])

    for _ in range(2):  # as many as run at the same time
        before, is_refused = batches(), True
        while is_refused:  # the place of the request before it may not be free yet
            with send_request(serial_server, "/translate_file", *page(1000, 8)) as upload:
                has_response = lambda upload=upload: bool(select.select([upload], [], [], 0)[0])  # noqa: E731
                assert until(lambda before=before, has_response=has_response: has_response() or batches() > before)
                is_refused = has_response()
        assert until(lambda: serial_server.ask("/translate", GOOD)[0] == 200)
    assert serial_server.ask("/translate_file", *page(1), timeout=20)[0] == 200


def test_several_models_and_the_way_through_english(models):
    with Server(models["zh-en"], models["en-de"]) as server:
        fields = {"texts": ["我爱猫"], "source": "zh", "target": "de"}
        assert server.ask("/api/v1/translate", fields)[0] == 400
        _, _, response = server.ask("/api/v1/translate", {**fields, "pivot": True})
        assert response["translations"][0]["to"] == "de"
        assert server.ask("/translate", {**GOOD, "target": "de"})[2] == {
            "error": "German (de) is not available as a target language from Chinese (zh)"
        }
    with Server(models["zh-en"], models["en-de"], pivot=True) as server:
        assert server.ask("/translate", {**GOOD, "target": "de"})[2] == {"translatedText": "我爱猫"}
        page = "<p>我爱<b>猫</b></p>"  # the model into German writes Chinese
        html = {**GOOD, "target": "de", "q": [page, "<i>你看书</i>"], "format": "html"}
        assert server.ask("/translate", html)[2] == {"translatedText": [page, "<i>你看书</i>"]}
        for path in ("/translate_file", "/api/v1/translate_file/stream"):
            upload = multipart("a.html", page.encode(), source="zh", target="de")
            status, _, response = server.ask(path, *upload)
            assert status == 200
            text = response.decode() if isinstance(response, bytes) else json.dumps(response)
            (address,) = re.findall(r'/download_file/[^"]+', text)
            assert server.ask(address)[2] == page.encode()
        assert {"code": "zh-Hans", "name": "Chinese", "targets": ["de", "en", "zh-Hans"]} in server.ask("/languages")[2]


def test_logs_and_metrics_say_what_happened_but_not_what_was_said(models):
    with Server(models["tagged"], cors=["https://example.org"]) as server:
        for _ in range(2):
            _, headers, _ = server.ask("/translate", GOOD, {"Origin": "https://example.org"})
        assert headers["Access-Control-Allow-Origin"] == "https://example.org"
        server.ask("/nothing")
        lines = (
            b'sixfold_requests_total{method="POST",route="/translate",status="200"} 2\n',
            b'sixfold_requests_total{method="GET",route="other",status="404"} 1\n',
            b"sixfold_cache_hits_total 1\n",
            b"sixfold_texts_total 2\n",
            b"sixfold_target_tokens_total 3\n",
            b"sixfold_batch_sentences_count 1\n",
        )
        # A response is counted after it has been sent.
        assert until(lambda: all(line in server.ask("/metrics")[2] for line in lines)), server.ask("/metrics")[2]
        assert server.ask("/ready")[2] == {"status": "ready"}
        line = until(lambda: next((line for line in server.log if line.get("route") == "/translate"), None))
        assert {"time", "request", "method", "route", "status", "ms", "who", "texts", "characters"} == set(line)
        assert "猫" not in json.dumps(server.log, ensure_ascii=False)
        assert "cats" not in json.dumps(server.log)


def test_settings_that_make_no_sense_are_told(tmp_path):
    config = tmp_path / "serve.toml"
    config.write_text("prot = 5\n", encoding="utf-8")
    assert "did you mean 'port'" in complaint("serve", "--config", config)
    config.write_text("queue = 0\n", encoding="utf-8")
    assert "serve.queue: expected at least 1; got 0" in complaint("serve", "--config", config)
    assert "no.safetensors" in complaint("serve", "--model", tmp_path / "no.safetensors")
