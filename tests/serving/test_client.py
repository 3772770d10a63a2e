"""The client returns what a translator returns, retries when a server is busy or away, and reports errors."""

import asyncio
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import httpx
import pytest
from event_loops import run_async
from small_servers import Server
from small_translators import distinct_sentences

from sixfold import AsyncClient, Client, Glossary, RequestError, TranslateOptions, Translator
from sixfold.serving import client as module
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


def test_what_is_not_done_at_the_deadline_is_sent_again_until_it_is(models):
    texts = ["".join(f"{each}。" for each in distinct_sentences(6000)), "我爱猫"]
    with Server(models["zh-en"], deadline=1.5, threads=1) as server, Client(server.url) as client:
        long, short = client.translate_batch(texts, "zh", "en", TranslateOptions(beam=16))
        with Translator(models["zh-en"], "cpu", 1) as translator:
            assert len(long.text) == pytest.approx(len(translator.translate(texts[0]).text), rel=0.02)
        assert short.text == "I love cats"
        statuses = [line["status"] for line in server.log if line.get("route") == "/api/v1/translate"]
        assert set(statuses) == {200}
        assert len(statuses) > 1


def test_a_server_that_never_finishes_a_sentence_is_told():
    unfinished = {"translations": [{"complete": False, "sentences": [{"source": [0, 1], "translation": None}]}]}
    exchange = Client("http://127.0.0.1:1")._translate_exchange(["我"], TranslationRequest())
    next(exchange)
    exchange.send(module.HttpResponse(200, unfinished))
    with pytest.raises(RequestError, match="its deadline passes before a sentence is done"):
        exchange.send(module.HttpResponse(200, unfinished))


def test_a_request_that_the_server_may_still_be_working_on_is_not_sent_again():
    requests = []

    def respond(request):
        requests.append(request)
        raise httpx.ReadTimeout("slow", request=request)

    with Client("http://127.0.0.1:1") as client:
        client._http = httpx.Client(transport=httpx.MockTransport(respond))
        with pytest.raises(RequestError, match="server: no response in time"):
            client.translate("我")
    assert len(requests) == 1
    assert 504 not in module.RETRY_STATUSES
