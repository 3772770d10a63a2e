"""The interface /api/v1 returns what Python returns, and keeps to its OpenAPI description."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from sixfold import TranslateOptions, Translator


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


def test_texts_come_one_by_one_as_events(server):
    _, headers, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫", "我爱狗"], "target": "en"})
    assert headers["Content-Type"].startswith("text/event-stream")
    events = [block.split("\n") for block in response.decode().strip().split("\n\n")]
    assert [event[0] for event in events] == ["event: translation", "event: translation", "event: done"]
    values = [json.loads(event[1].removeprefix("data: ")) for event in events]
    assert [value.get("translation") for value in values] == ["I love cats", "I love dogs", None]


def test_a_stream_that_cannot_begin_is_refused_and_one_that_fails_on_the_way_says_so(server):
    status, headers, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫"], "target": "de"})
    assert (status, headers["Content-Type"]) == (400, "application/json")
    assert "expected one of zh→en, en→zh; got to de" in response["error"]
    # Only the second text is in a language that no model reads.
    status, _, response = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫", "Я люблю"]})
    assert status == 200
    last = response.decode().strip().split("\n\n")[-1]
    assert last.startswith("event: error\n")
    assert "cannot tell which of zh→en, en→zh this text needs" in json.loads(last.partition("data: ")[2])["error"]


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
