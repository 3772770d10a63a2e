"""The interface /api/v1 returns what Python returns, and keeps to its OpenAPI description."""

import asyncio
import json

import pytest
import schemathesis
from event_loops import run_async
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance
from small_servers import Server, multipart, send_request
from small_translators import distinct_sentences

from sixfold import TranslateOptions, Translator
from sixfold.errors import ModelFileError
from sixfold.serving.events import with_error_event, with_keep_alive


def test_the_answers_are_those_of_a_translator(server, models):
    texts = ["我爱猫", "你看书。\n我爱水！", ""]
    fields = {"texts": texts, "source": "zh", "target": "en", "n_best": 2, "details": True}
    status, _, response = server.ask("/api/v1/translate", fields)
    assert status == 200
    with Translator(models["tagged"], "cpu") as translator:
        translations = translator.translate_batch(texts, "zh", "en", TranslateOptions(n_best=2))
        expected = json.loads(json.dumps([each.to_dict(details=True) for each in translations]))
        for served, local in zip(response["translations"], expected, strict=True):
            assert served["translation"] == local["translation"]
            assert served["alignment"] == local["alignment"]
            assert served["score"] == pytest.approx(local["score"], abs=1e-4)
        _, _, scored = server.ask("/api/v1/score", {"text": "我爱猫", "translation": "I love cats", "target": "en"})
        expected_score = translator.score("我爱猫", "I love cats", target="en").score
        assert scored["translations"][0]["score"] == pytest.approx(expected_score, abs=1e-4)
        _, _, alternatives = server.ask(
            "/api/v1/alternatives", {"text": "我爱猫", "prefix": "I", "target": "en", "count": 3}
        )
        expected_alternatives = [each.text for each in translator.alternatives("我爱猫", "I", 3, target="en")]
        assert [each["translation"] for each in alternatives["translations"]] == expected_alternatives


def test_a_glossary_and_a_prefix_are_honoured(server):
    fields = {"texts": ["我爱猫"], "target": "en", "glossary": [{"source": "猫", "target": "dogs"}]}
    assert "dogs" in server.ask("/api/v1/translate", fields)[2]["translations"][0]["translation"]
    fields = {"texts": ["我爱猫"], "target": "en", "prefix": "you"}
    assert server.ask("/api/v1/translate", fields)[2]["translations"][0]["translation"].startswith("you")


def parse_events(response):
    """Return the kind and the values of each server-sent event."""
    blocks = [block.split("\n") for block in response.decode().strip().split("\n\n")]
    return [(kind.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for kind, data in blocks]


def test_sentences_come_one_by_one_as_events(server):
    texts = [" 我爱猫。你看书！\n\n我爱水\n\n", "我爱狗", "", "1"]
    _, headers, response = server.ask("/api/v1/translate/stream", {"texts": texts, "target": "en"})
    assert headers["Content-Type"].startswith("text/event-stream")
    events = parse_events(response)
    assert [kind for kind, _ in events if kind != "sentence"] == ["translation"] * 4 + ["done"]
    translations = [values["translation"] for kind, values in events if kind == "translation"]
    assert translations == [" I love cats. you watch books!\n\nI love water\n\n", "I love dogs", "", "1"]
    sentences = [values for kind, values in events if kind == "sentence"]
    for index, translation in enumerate(translations):
        assert "".join(each["text"] for each in sentences if each["index"] == index) == translation
    assert {each["total"] for each in sentences if each["done"]} == {4}
    assert [each["done"] for each in sentences] == sorted(each["done"] for each in sentences)
    assert sentences[-1]["done"] == 4


def test_a_stream_that_cannot_begin_is_refused(server):
    status, headers, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫"], "target": "de"})
    assert (status, headers["Content-Type"]) == (400, "application/json")
    assert "expected one of zh→en, en→zh; got to de" in response["error"]
    # Only the second text is in a language that no model reads.
    status, _, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫", "Я люблю"]})
    assert status == 400
    assert "cannot tell which of zh→en, en→zh this text needs" in response["error"]


def test_a_stream_for_which_the_queue_has_no_space_says_when_to_try_again(models):
    with Server(models["zh-en"], queue=10, cache=0, threads=1) as server:
        long = {"texts": ["".join(f"{each}。" for each in distinct_sentences(1000))], "beam": 16}
        with send_request(server, "/api/v1/translate/stream", long) as connection:
            received = b""
            while b"event: sentence" not in received:
                received += connection.recv(100)
            status, _, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫"]})
    assert status == 200  # which is sent before the sentences are put into the queue
    error = {"error": "the server is busy", "hint": "try again in a moment", "retry_after": 2}
    assert parse_events(response) == [("error", error)]


def test_a_document_comes_with_its_progress(server):
    body, headers = multipart(
        "a.html", "<p>我爱<b>猫</b>。你看书！</p><p>我爱水</p>".encode(), source="zh", target="en"
    )
    status, _, response = server.ask("/api/v1/translate_file/stream", body, headers)
    assert status == 200
    events = parse_events(response)
    assert [kind for kind, _ in events[:-1]] == ["progress"] * (len(events) - 1)
    assert (events[-2][1]["done"], events[-2][1]["total"]) == (3, 3)
    kind, values = events[-1]
    assert kind == "document"
    _, _, data = server.ask(values["translatedFileUrl"].removeprefix(server.url))
    assert data.decode() == "<p>I love <b>cats</b>. you watch books!</p><p>I love water</p>"


def test_what_is_open_is_told(server):
    _, _, response = server.ask("/api/v1/models")
    assert response["directions"] == [["zh", "en"], ["en", "zh"]]
    assert response["models"][0]["name"] == "tagged"
    assert response["models"][0]["card"]["languages"] == {"source": "zh", "target": "en"}


def test_mistakes_say_which_field(server):
    for fields, field in (
        ({"texts": []}, "texts"),
        ({"texts": ["a"], "beem": 2}, "beem"),
        ({"texts": ["a"], "beam": 99}, "beam"),
        ({"texts": "a"}, "texts"),
    ):
        status, _, response = server.ask("/api/v1/translate", fields)
        assert status == 422
        assert response["error"].startswith(field)
    status, _, response = server.ask("/api/v1/translate", {"texts": ["a"], "target": "de"})
    assert status == 400
    assert "expected one of zh→en, en→zh; got to de" in response["error"]
    deep = b'{"texts": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert server.ask("/api/v1/translate", deep, {"Content-Type": "application/json"})[0] in (400, 422)


def test_the_interface_can_be_read(server):
    _, headers, response = server.ask("/docs")
    assert headers["Content-Type"].startswith("text/html")
    assert "POST /api/v1/translate" in response.decode()
    assert "script" not in headers["Content-Security-Policy"].replace("default-src", "")


def test_no_request_made_from_the_description_breaks_it(server):
    schema = schemathesis.openapi.from_dict(server.ask("/openapi.json")[2])
    schema.config.update(base_url=server.url)
    paths = []
    checks = (not_a_server_error, response_schema_conformance, status_code_conformance)
    for operation in schema.get_all_operations():

        @settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy())
        def check(case):
            case.call_and_validate(checks=list(checks), timeout=30)
            paths.append(case.path)

        check()
    assert len(set(paths)) >= 11


def test_a_stream_of_many_texts_does_not_fill_the_queue_against_itself(models):
    texts = ["".join(f"{each}。" for each in distinct_sentences(30)[start::3]) for start in range(3)]
    with Server(models["zh-en"], queue=12) as server:
        events = parse_events(server.ask("/api/v1/translate/stream", {"texts": texts, "target": "en"})[2])
    assert [values["index"] for kind, values in events if kind == "translation"] == [0, 1, 2]
    assert events[-1] == ("done", {"count": 3})


def test_a_silent_stream_has_comments_that_keep_its_connection_open():
    async def slow():
        yield b"first"
        await asyncio.sleep(0.25)
        yield b"last"

    async def collect():
        return [each async for each in with_keep_alive(slow(), seconds=0.1)]

    first, *comments, last = run_async(collect())
    assert (first, last) == (b"first", b"last")
    assert comments
    assert set(comments) == {b": keep-alive\n\n"}


def test_a_model_file_that_cannot_be_read_is_not_named_in_an_event():
    async def failing():
        yield b"first"
        raise ModelFileError("/secret/model.safetensors: is cut short")

    async def collect():
        return [each async for each in with_error_event(failing())]

    _, error = run_async(collect())
    assert b"secret" not in error
    assert b"the model's file was changed" in error
