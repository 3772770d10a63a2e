"""Our own interface: what Python gives, over HTTP; and that it keeps to its own description."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance, status_code_conformance

from sixfold import TranslateOptions, Translator


def test_the_answers_are_those_of_a_translator(server, models):
    texts = ["我爱猫", "你看书。\n我爱水！", ""]
    asked = {"texts": texts, "source": "zh", "target": "en", "n_best": 2, "details": True}
    status, _, said = server.ask("/api/v1/translate", asked)
    assert status == 200
    with Translator(models["tagged"], "cpu") as translator:
        found = translator.translate_batch(texts, "zh", "en", TranslateOptions(n_best=2))
        wanted = json.loads(json.dumps([each.to_dict(details=True) for each in found]))
        for one, other in zip(said["translations"], wanted, strict=True):
            assert one["translation"] == other["translation"]
            assert one["alignment"] == other["alignment"]
            assert one["score"] == pytest.approx(other["score"], abs=1e-4)
        _, _, scored = server.ask("/api/v1/score", {"text": "我爱猫", "translation": "I love cats", "target": "en"})
        wanted_score = translator.score("我爱猫", "I love cats", target="en").score
        assert scored["translations"][0]["score"] == pytest.approx(wanted_score, abs=1e-4)
        _, _, others = server.ask("/api/v1/alternatives", {"text": "我爱猫", "prefix": "I", "target": "en", "count": 3})
        wanted_others = [each.text for each in translator.alternatives("我爱猫", "I", 3, target="en")]
        assert [each["translation"] for each in others["translations"]] == wanted_others


def test_a_glossary_and_a_prefix_are_honoured(server):
    asked = {"texts": ["我爱猫"], "target": "en", "glossary": [{"source": "猫", "target": "dogs"}]}
    assert "dogs" in server.ask("/api/v1/translate", asked)[2]["translations"][0]["translation"]
    asked = {"texts": ["我爱猫"], "target": "en", "prefix": "you"}
    assert server.ask("/api/v1/translate", asked)[2]["translations"][0]["translation"].startswith("you")


def test_texts_come_one_by_one_as_events(server):
    _, headers, said = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫", "我爱狗"], "target": "en"})
    assert headers["Content-Type"].startswith("text/event-stream")
    events = [block.split("\n") for block in said.decode().strip().split("\n\n")]
    assert [event[0] for event in events] == ["event: translation", "event: translation", "event: done"]
    values = [json.loads(event[1].removeprefix("data: ")) for event in events]
    assert [value.get("translation") for value in values] == ["I love cats", "I love dogs", None]


def test_a_stream_that_cannot_begin_is_refused_and_one_that_fails_on_the_way_says_so(server):
    status, headers, said = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫"], "target": "de"})
    assert (status, headers["Content-Type"]) == (400, "application/json")
    assert "expected one of zh→en, en→zh; got to de" in said["error"]
    # Only the second text shows that nobody knows its language.
    status, _, said = server.ask("/api/v1/translate/stream", {"texts": ["我爱猫", "Я люблю"]})
    assert status == 200
    last = said.decode().strip().split("\n\n")[-1]
    assert last.startswith("event: error\n")
    assert "cannot tell which of zh→en, en→zh this text needs" in json.loads(last.partition("data: ")[2])["error"]


def test_what_is_open_is_told(server):
    _, _, said = server.ask("/api/v1/models")
    assert said["directions"] == [["zh", "en"], ["en", "zh"]]
    assert said["models"][0]["name"] == "tagged"
    assert said["models"][0]["card"]["languages"] == {"source": "zh", "target": "en"}


def test_mistakes_say_which_field(server):
    for asked, where in (
        ({"texts": []}, "texts"),
        ({"texts": ["a"], "beem": 2}, "beem"),
        ({"texts": ["a"], "beam": 99}, "beam"),
        ({"texts": "a"}, "texts"),
    ):
        status, _, said = server.ask("/api/v1/translate", asked)
        assert status == 422
        assert said["error"].startswith(where)
    status, _, said = server.ask("/api/v1/translate", {"texts": ["a"], "target": "de"})
    assert status == 400
    assert "expected one of zh→en, en→zh; got to de" in said["error"]
    deep = b'{"texts": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"
    assert server.ask("/api/v1/translate", deep, {"Content-Type": "application/json"})[0] in (400, 422)


def test_the_interface_can_be_read(server):
    _, headers, said = server.ask("/docs")
    assert headers["Content-Type"].startswith("text/html")
    assert "POST /api/v1/translate" in said.decode()
    assert "script" not in headers["Content-Security-Policy"].replace("default-src", "")


def test_no_request_made_from_the_description_breaks_it(server):
    schema = schemathesis.openapi.from_dict(server.ask("/openapi.json")[2])
    schema.config.update(base_url=server.url)
    seen = []
    checks = (not_a_server_error, response_schema_conformance, status_code_conformance)
    for operation in schema.get_all_operations():

        @settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(case=operation.ok().as_strategy())
        def one(case):
            case.call_and_validate(checks=list(checks), timeout=30)
            seen.append(case.path)

        one()
    assert len(set(seen)) >= 11
