"""The cost of a request grows no faster than its length, and the memory that the server keeps for it is counted."""

import asyncio
import sys
from types import SimpleNamespace

import pytest
from event_loops import run_async
from growth import assert_linear, nested, repeated
from small_servers import multipart
from starlette.testclient import TestClient

from sixfold.serving import middleware
from sixfold.serving.app import make_app
from sixfold.serving.cache import digest, size_in_bytes
from sixfold.serving.metrics import Metrics
from sixfold.serving.middleware import BodyMemory
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.sentence_queue import BatchSize, SentenceQueue
from sixfold.serving.service import Caller, Service
from sixfold.serving.turns import BatchKey
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import SourceSentence
from sixfold.translation.request import DecodeOptions, TranslationRequest

LARGE = ServeOptions(max_body=10_000_000, max_characters=10_000_000)


@pytest.fixture(scope="module")
def client(models):
    """The application in this process, so that its CPU time can be measured. Its model does not read Latin letters."""
    with TestClient(
        make_app(LARGE, ReloadingModels([models["zh-en"]], 1), log=lambda _: None), "http://localhost"
    ) as client:
        yield client


def post_text(client, value, form="text"):
    return client.post("/translate", json={"q": value, "source": "zh", "target": "en", "format": form})


def post_document(client, value, name):
    body, headers = multipart(name, value.encode(), source="auto", target="en")
    return client.post("/translate_file", content=body, headers=headers)


def post(client, path, **fields):
    return client.post(path, json={"source": "zh", "target": "en", **fields})


ROUTES = {
    "text": (lambda client, value: post_text(client, value), 200),
    "html": (lambda client, value: post_text(client, value, "html"), 200),
    "page": (lambda client, value: post_document(client, value, "a.html"), 200),
    "subtitles": (lambda client, value: post_document(client, f"00:00:01,000 --> 00:00:02,000\n{value}", "a.srt"), 200),
    "table": (lambda client, value: post_document(client, value, "a.csv"), 200),
    "detection": (lambda client, value: client.post("/detect", json={"q": value}), 200),
    "form": (lambda client, value: client.post("/detect", data={"q": value}), 200),
    "texts": (lambda client, value: post(client, "/api/v1/translate", texts=[value]), 200),
    "score": (lambda client, value: post(client, "/api/v1/score", text=value, translation="a"), 400),
    "explorer": (lambda client, value: post(client, "/api/v1/explore", text=value), 400),
    "translation": (lambda client, value: post(client, "/api/v1/explore", text="我", translation=value), 400),
    "masks": (lambda client, value: post(client, "/api/v1/explore/masks", texts=[value]), 400),
    "lens": (lambda client, value: post(client, "/api/v1/explore/lens", text=value), 400),
    "merges": (lambda client, value: post(client, "/api/v1/explore/merges", text=value), 400),
}
INPUTS = {
    "tags": repeated("<a"), "marks": repeated("<"), "spaces": repeated(" ", "!", "!"), "full stops": repeated(". "),
    "quotation marks": repeated('"'), "nested": nested("<b>", "</b>", "!"), "references": repeated("&#"),
    "stops": repeated("。"),
}  # fmt: skip
MODELLED = ("text", "texts")  # these translate every letter: the model, not the parser, would be measured
QUICK = [
    ("text", "full stops"), ("html", "tags"), ("page", "tags"), ("page", "nested"), ("subtitles", "spaces"),
    ("table", "quotation marks"), ("detection", "tags"), ("form", "references"), ("texts", "stops"),
    ("explorer", "tags"), ("translation", "tags"), ("masks", "tags"), ("lens", "tags"), ("merges", "marks"),
]  # fmt: skip


def assert_route_linear(client, route, kind):
    send, status = ROUTES[route]
    if (route, kind) == ("translation", "spaces"):  # a translation is one line with single spaces, so this one is short
        status = 200
    statuses = []
    assert_linear(lambda value: statuses.append(send(client, value).status_code), INPUTS[kind])
    assert statuses[-1] == status


@pytest.mark.parametrize(("route", "kind"), QUICK)
def test_a_request_takes_time_in_proportion_to_its_length(client, route, kind):
    assert_route_linear(client, route, kind)


@pytest.mark.slow
@pytest.mark.parametrize("route", ROUTES)
def test_every_request_takes_time_in_proportion_to_its_length(client, route):
    for kind in INPUTS:
        if route not in MODELLED or kind not in ("tags", "nested"):
            assert_route_linear(client, route, kind)


def test_masks_are_not_made_for_what_is_refused(client):
    """The masks of 100,000 characters would take ten gigabytes."""
    response = post(client, "/api/v1/explore/masks", texts=["a" * 100_000])
    assert response.status_code == 400
    assert response.json()["error"].startswith("texts: expected at most 128 pieces each; got ")


def test_invented_methods_and_files_of_the_page_make_no_series(client):
    for number in range(20):
        client.request(f"METHOD{number}", "/health")
        client.get(f"/static/none{number}.js")
    for name in ("api.js", "app.js"):
        assert client.get(f"/static/{name}").status_code == 200
    lines = client.get("/metrics").text
    assert "METHOD" not in lines
    assert 'method="other"' in lines
    assert lines.count('route="/static/') == 1


def test_a_document_has_the_limit_of_characters_that_texts_have(models):
    options = ServeOptions(max_characters=100)
    with TestClient(
        make_app(options, ReloadingModels([models["zh-en"]], 1), log=lambda _: None), "http://localhost"
    ) as client:
        for name, value in (
            ("a.txt", "我" * 101),
            ("a.html", f"<p>{'我' * 101}</p>"),
            ("a.srt", f"1\n00:00:01,000 --> 00:00:02,000\n{'我' * 101}"),
        ):
            response = post_document(client, value, name)
            assert (response.status_code, response.json()["error"]) == (
                400,
                "Invalid request: request (101) exceeds text limit (100)",
            )
        assert post_document(client, f"<p title='{'x ' * 9}' class='{'y' * 500}'>我</p>", "a.html").status_code == 200


def test_bodies_are_counted_over_all_connections():
    memory = BodyMemory(100)
    with memory.reserve() as add_to_first, memory.reserve() as add_to_second:
        add_to_first(1000)  # a single request may have any size that its route allows
        with pytest.raises(HttpError) as error:
            add_to_second(1)
        assert (error.value.status, error.value.retry_after) == (503, 2)
    assert memory.used == 0
    with memory.reserve() as add_to_first, memory.reserve() as add_to_second:
        add_to_first(60)
        add_to_second(40)
        with pytest.raises(HttpError):
            add_to_first(1)
    assert memory.used == 0


def test_large_bodies_wait_for_each_other_and_small_ones_do_not(models):
    options = ServeOptions(max_bodies=50_000)
    app = make_app(options, ReloadingModels([models["zh-en"]], 1), log=lambda _: None)
    with TestClient(app, "http://localhost") as client:
        app._body_memory.used = 50_000  # as if the body of another request were in memory
        assert post_text(client, "我" * 6000).status_code == 503
        assert post_text(client, "我").status_code == 200
        app._body_memory.used = 0
        assert post_text(client, "。" * 6000).status_code == 200
        assert app._body_memory.used == 0
    assert middleware.UNCOUNTED_BYTES < 18_000


def service_of(models, **settings):
    return Service(ReloadingModels([models["zh-en"]], 1), ServeOptions(**settings), Metrics())


def test_the_cache_counts_all_that_it_holds(models):
    """Forty requests with their own glossaries once took 8.8 MB and were counted as 16 kB."""

    async def main():
        service = service_of(models)
        for number in range(20):
            glossary = Glossary(tuple(Term(f"{number} term {each}", "x" * 50) for each in range(500)))
            request = TranslationRequest("zh", "en", glossary=glossary, details=number % 2 == 0)
            (translation,) = await service.translate(["我爱猫"], request, Caller("anna"))
            _ = translation.alignment  # computed for the translation that was returned, not for the cached entry
        (second,) = await service.translate(["我爱猫"], request, Caller("bert"))
        assert second == translation
        assert [sentence.cached for sentence in second.sentences] == [True]
        entries, size = service._cache._results._entries, service._cache.size
        await service.close()
        return entries, size

    entries, size = run_async(main())
    assert len(entries) == 20
    assert all(isinstance(key, bytes) and len(key) == 32 for key in entries)
    needed = sum(size_in_bytes(value) + sys.getsizeof(key) for key, (value, _) in entries.items())
    assert needed <= size < 100_000
    assert sum(value.details is not None for value, _ in entries.values()) == 10


def test_the_size_of_a_result_grows_with_all_of_its_parts(models):
    async def main():
        service = service_of(models)
        sizes = []
        for count, details, text in (
            (1, False, "我爱猫"),
            (4, False, "我爱猫"),
            (4, True, "我爱猫"),
            (4, True, "我爱猫" * 9),
        ):
            request = TranslationRequest("zh", "en", TranslateOptions(4, count), details=details)
            before = service._cache.size
            await service.translate([text], request, Caller("anna"))
            sizes.append(service._cache.size - before)
        await service.close()
        return sizes

    plain, several, detailed, long = run_async(main())
    assert 0 < plain < several < detailed < long


def test_a_long_queue_is_worked_off_in_time_in_proportion_to_it():
    """A sentence is taken out of the queue without a scan of all others, whoever sent them and with what options."""

    async def drain(count):
        queue = SentenceQueue(lambda _, sentences: list(sentences), 1, BatchSize(8, 8), 10**9)
        sentences = [SourceSentence(str(number), (number,)) for number in range(count)]

        async def decode(number, client, key):
            return [result async for result in queue.decode(key, [sentences[number]], client)]

        for client, key in ((lambda number: str(number), lambda _: 0), (lambda _: "anna", lambda number: number)):
            work = (decode(number, client(number), key(number)) for number in range(count))
            assert await asyncio.gather(*work) == [[sentence] for sentence in sentences]
        assert queue.sentences == queue.tokens == 0
        await queue.close()

    assert_linear(lambda count: run_async(drain(count)), lambda size: size // 20, largest=100_000)


def test_results_are_cached_under_all_that_they_depend_on():
    direction = SimpleNamespace(header=SimpleNamespace(checksum="sha256:1"), languages=("zh", "en"))
    other = SimpleNamespace(header=SimpleNamespace(checksum="sha256:2"), languages=("zh", "en"))
    glossaries = [Glossary((Term("a", target),)) for target in "bbc"]
    keys = [BatchKey(None, direction, DecodeOptions(glossary=glossary)) for glossary in glossaries]
    assert keys[0] == keys[1] != keys[2]
    sentence = SourceSentence("x", (1,))
    assert digest(keys[0], sentence) == digest(keys[1], sentence)
    others = [
        (keys[2], sentence), (keys[0]._replace(direction=other), sentence),
        (keys[0]._replace(options=DecodeOptions(TranslateOptions(2), glossaries[0])), sentence),
        (keys[0]._replace(options=DecodeOptions(glossary=glossaries[0], details=True)), sentence),
        (keys[0], sentence._replace(text="y")), (keys[0], sentence._replace(prefix=(7,))),
    ]  # fmt: skip
    assert len({digest(*each) for each in [(keys[0], sentence), *others]}) == 1 + len(others)
