"""The client returns what a translator returns, retries when a server is busy or away, and reports errors."""

import asyncio
import inspect
import threading
from dataclasses import fields
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from event_loops import run_async

from sixfold import AsyncClient, Client, Glossary, RequestError, TranslateOptions, Translator
from sixfold.serving import client as module
from sixfold.serving.api import request_of
from sixfold.serving.options import ServeOptions
from sixfold.serving.schema import TranslateRequest
from sixfold.translation.glossary import Term
from sixfold.translation.request import TranslationRequest

TEXTS = ["我爱猫。", "你看书！\n\n我爱水", ""]


def assert_same(served, local):
    assert (served.source, served.text, served.languages) == (local.source, local.text, local.languages)
    assert [each.text for each in served.n_best] == [each.text for each in local.n_best]
    assert served.warnings == local.warnings
    assert served.score == pytest.approx(local.score, abs=1e-4)
    assert served.alignment == local.alignment
    assert [token.span for token in served.tokens] == [token.span for token in local.tokens]


def test_it_gives_what_a_translator_gives(server, models):
    options = TranslateOptions(beam=3, n_best=2)
    with Translator(models["tagged"], "cpu") as translator, Client(server.url) as client:
        assert client.directions == translator.directions
        local = translator.translate_batch(TEXTS, "zh", "en", options)
        served = client.translate_batch(TEXTS, "zh", "en", options, details=True)
        for pair in zip(served, local, strict=True):
            assert_same(*pair)
        to_score = ("我爱猫", "I love cats", "zh", "en")
        assert_same(client.score(*to_score), translator.score(*to_score))
        assert [each.text for each in client.alternatives("我爱猫", "I", 3, "zh", "en")] == [
            each.text for each in translator.alternatives("我爱猫", "I", 3, "zh", "en")
        ]
        glossary = Glossary((Term("猫", "dogs"),))
        assert "dogs" in client.translate("我爱猫", target="en", glossary=glossary).text
        assert client.translate_batch([]) == []


def test_every_option_reaches_the_server():
    """Each field of the options is sent, and the server reads it."""
    values = {"beam": 3, "n_best": 2, "length_penalty": 0.5, "split": False, "prefix": "I", "guard": False}
    assert {each.name for each in fields(TranslateOptions)} == set(values)
    request = TranslationRequest("zh", "en", TranslateOptions(**values), details=True, pivot=True)
    body = TranslateRequest(texts=["我"], **module.request_fields(request))
    assert request_of(body) == request


def test_the_same_awaited(server):
    async def translate():
        async with AsyncClient(server.url) as client:
            coroutines = [client.translate(f"我爱{word}", "zh", "en") for word in "猫狗水书"]
            translations = await asyncio.gather(*coroutines)
            score = await client.score("我爱猫", "I love cats", "zh", "en")
            alternatives = await client.alternatives("我爱猫", "I", 2, "zh", "en")
            return [each.text for each in translations], score.text, len(alternatives), await client.directions()

    assert run_async(translate()) == (
        ["I love cats", "I love dogs", "I love water", "I love books"], "I love cats", 2, [("zh", "en"), ("en", "zh")],
    )  # fmt: skip


def test_a_client_says_where_its_server_is_and_not_its_key():
    with Client("http://127.0.0.1:1/", key="secret") as client:
        assert repr(client) == "Client('http://127.0.0.1:1')"


def test_a_mistake_is_told_and_not_tried_again(server):
    with Client(server.url) as client:
        with pytest.raises(RequestError, match="expected one of zh→en, en→zh; got to de"):
            client.translate("我", target="de")
        with pytest.raises(RequestError, match="expected a list of strings"):
            client.translate_batch("我")


@pytest.fixture
def unreliable_server():
    """Yield the URL and the handler of a server that is busy twice, then closes the connection, then works."""

    class Handler(BaseHTTPRequestHandler):
        requests = 0

        def do_GET(self):
            Handler.requests += 1
            if Handler.requests == 3:
                self.connection.close()
                return
            self.send_response(503 if Handler.requests < 3 else 200)
            self.end_headers()
            self.wfile.write(b'{"directions": [["zh", "en"]], "error": "busy"}')

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", Handler
        server.shutdown()


def test_it_comes_back_to_a_server_that_is_busy_or_away(unreliable_server, monkeypatch):
    url, handler = unreliable_server
    pauses = []
    monkeypatch.setattr(module.time, "sleep", pauses.append)
    with Client(url) as client:
        assert client.directions == [("zh", "en")]
        assert handler.requests == 4
        assert len(pauses) == 3
        assert pauses[0] < pauses[2]
    handler.requests = 0
    with Client(url, tries=2) as client, pytest.raises(RequestError, match="server: busy"):
        _ = client.directions
    with Client("http://127.0.0.1:1", tries=2) as client, pytest.raises(RequestError, match="no response"):
        _ = client.directions


@pytest.mark.parametrize("kind", [Client, AsyncClient])
def test_it_waits_longer_than_a_server_takes_to_say_what_is_done(kind):
    timeout = inspect.signature(kind).parameters["timeout"].default
    assert timeout >= ServeOptions().deadline + 10


def test_a_request_that_the_server_may_still_be_working_on_is_not_sent_again():
    requests = []

    def respond(request):
        requests.append(request)
        raise httpx.ReadTimeout("slow", request=request)

    with Client("http://127.0.0.1:1") as client:
        client._http = httpx.Client(transport=httpx.MockTransport(respond))
        with pytest.raises(RequestError, match="server: no response in time") as error:
            client.translate("我")
    assert "the server's deadline" in error.value.hint
    assert len(requests) == 1
    assert 504 not in module.RETRY_STATUSES
