"""At the deadline a server says what is done, keeps it, and the same request goes on from there until it ends."""

import asyncio
import itertools
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from event_loops import run_async
from gated_decoding import gate_decoding
from small_servers import in_process
from small_translators import WORDS, distinct_sentences

from sixfold import Client, RequestError, Translator
from sixfold.explorer.explore import Explorer
from sixfold.serving.job_pool import JobPool
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.service import Caller, Service
from sixfold.translation.prepare import SourceSentence

SENTENCES = [f"{each}。" for each in distinct_sentences(200)]
LONG = {"texts": ["我爱猫。", "".join(SENTENCES)], "target": "en"}
MAX_RESPONSES = 50  # more than a request needs that goes on with each response


@pytest.fixture
def gate(monkeypatch):
    gate_decoding(monkeypatch)


def responses_until_done(server, fields):
    """Send a request to /api/v1/translate again and again, until it is done; return the responses."""
    responses = []
    while not (responses and responses[-1]["complete"]) and len(responses) < MAX_RESPONSES:
        response = server.post("/api/v1/translate", json=fields)
        assert response.status_code == 200
        responses.append(response.json())
    return responses


def assert_goes_on(responses):
    """Check that every response has more than the one before, and that the last one has everything."""
    assert len(responses) > 2
    assert [each["complete"] for each in responses] == [False] * (len(responses) - 1) + [True]
    done = [each["done"] for each in responses]
    assert done == sorted(set(done))
    assert responses[-1]["done"] == responses[-1]["total"]


@pytest.mark.usefixtures("gate")
def test_what_is_done_is_returned_and_the_same_request_goes_on(models):
    with in_process(models["zh-en"]) as server:
        responses = responses_until_done(server, LONG)
    assert_goes_on(responses)
    short, long = responses[0]["translations"]
    assert (short["translation"], short["complete"]) == ("I love cats.", True)
    assert (long["translation"], long["complete"], long["source"]) == (None, False, LONG["texts"][1])
    assert [long["source"][slice(*each["source"])] for each in long["sentences"]] == SENTENCES
    done = [each["translation"] for each in long["sentences"]]
    count = done.index(None)
    assert 0 < count < len(SENTENCES)
    assert set(done[count:]) == {None}
    assert responses[-1]["translations"][1]["translation"].startswith(" ".join(done[:count]))


@pytest.mark.usefixtures("gate")
def test_through_a_pivot_language_both_steps_are_counted_and_spans_are_of_the_original(models):
    fields = {"texts": ["".join(SENTENCES)], "source": "zh", "target": "de", "pivot": True}
    with in_process(models["zh-en"], models["en-de"]) as server:
        responses = responses_until_done(server, fields)
    assert_goes_on(responses)
    assert responses[0]["total"] == 2 * len(SENTENCES)  # as many are expected on the second step
    assert responses[-2]["done"] > len(SENTENCES)  # on the second step too
    for response in responses[:-1]:
        (text,) = response["translations"]
        assert (text["from"], text["to"], text["translation"]) == ("zh", "de", None)
        assert [text["source"][slice(*each["source"])] for each in text["sentences"]] == SENTENCES
        assert {each["translation"] for each in text["sentences"]} == {None}


@pytest.mark.usefixtures("gate")
def test_what_is_done_is_in_the_script_of_the_target(models):
    pytest.importorskip("opencc")
    words = itertools.product(list(WORDS.values())[4:], repeat=4)
    text = " ".join(f"I love {' '.join(each)}." for each in itertools.islice(words, 150))
    with in_process(models["tagged"]) as server:
        responses = responses_until_done(server, {"texts": [text], "source": "en", "target": "zh-Hant"})
    assert_goes_on(responses)
    done = "".join(each["translation"] or "" for each in responses[0]["translations"][0]["sentences"])
    assert done.startswith("我愛")
    assert "爱" not in done
    assert responses[-1]["translations"][0]["translation"].startswith(done)


def test_a_stream_and_a_deadline_give_the_text_back_as_it_was_sent(models, monkeypatch):
    pytest.importorskip("opencc")
    fields = {**LONG, "texts": ["我愛書。", "".join(SENTENCES)], "source": "zh"}
    with in_process(models["zh-en"]) as server:
        events = server.post("/api/v1/translate/stream", json=fields).text
    first = next(each for each in events.split("\n\n") if each.startswith("event: translation"))
    assert '"index": 0, "source": "我愛書。", "translation": "I love books."' in first
    assert events.index(first) < events.rindex("event: sentence")  # it came before the end
    gate_decoding(monkeypatch)
    with in_process(models["zh-en"]) as server:
        response = server.post("/api/v1/translate", json=fields).json()
    assert [each["complete"] for each in response["translations"]] == [True, False]
    assert response["translations"][0]["source"] == "我愛書。"


def test_a_stream_may_take_longer_than_the_deadline(models, monkeypatch):
    decode, times = Service._decode_batch, iter([0.3])

    def decode_late(self, key, sentences):
        time.sleep(next(times, 0))
        return decode(self, key, sentences)

    monkeypatch.setattr(Service, "_decode_batch", decode_late)
    with in_process(models["zh-en"], deadline=0.1) as server:
        events = server.post("/api/v1/translate/stream", json=LONG).text
    assert events.endswith('event: done\ndata: {"count": 2}\n\n')


@pytest.mark.usefixtures("gate")
@pytest.mark.parametrize("pivot", [False, True])
def test_the_client_sends_again_what_is_not_done(models, pivot):
    texts, log = ["".join(SENTENCES), "我爱猫"], []
    files, target = ([models["zh-en"], models["en-de"]], "de") if pivot else ([models["zh-en"]], "en")
    with in_process(*files, log=log.append) as server, Client("http://localhost") as client:
        client._http.close()
        client._http = server
        long, short = client.translate_batch(texts, "zh", target, pivot=pivot)
    with Translator(files, "cpu", 1) as translator:
        local = translator.translate_batch(texts, "zh", target, pivot=pivot)
    assert len(long.text) == pytest.approx(len(local[0].text), rel=0.02)
    assert short.text == local[1].text
    statuses = [line["status"] for line in log if line.get("route") == "/api/v1/translate"]
    assert len(statuses) > 2
    assert set(statuses) == {200}


def test_the_client_does_not_ask_for_ever_where_nothing_is_done(models, monkeypatch):
    log = []
    gate_decoding(monkeypatch, count=0)
    with in_process(models["zh-en"], log=log.append) as server, Client("http://localhost") as client:
        client._http.close()
        client._http = server
        with pytest.raises(RequestError, match="its deadline passes before a sentence is done"):
            client.translate("我爱猫")
    assert 1 < len([line for line in log if line.get("route") == "/api/v1/translate"]) < 10


@pytest.mark.usefixtures("gate")
def test_libretranslates_routes_say_what_is_kept_and_the_same_request_ends(models):
    """20,000 characters once ended after a minute without a response, and nothing was kept."""
    fields = {"q": LONG["texts"][1], "source": "zh", "target": "en"}
    with in_process(models["zh-en"]) as server:
        responses = [server.post("/translate", json=fields)]
        while responses[-1].status_code != 200 and len(responses) < MAX_RESPONSES:
            responses.append(server.post("/translate", json=fields))
    assert {each.status_code for each in responses[:-1]} == {503}
    assert responses[-1].status_code == 200
    error = responses[0].json()
    assert re.fullmatch(r"not done within 60 s; \d+ of 200 sentences are translated and kept", error["error"])
    assert error["hint"] == "send the same again to go on"
    assert responses[0].headers["Retry-After"] == "1"


@pytest.mark.usefixtures("gate")
def test_where_there_is_no_cache_nobody_is_told_to_go_on(models):
    with in_process(models["zh-en"], cache=0) as server:
        response = server.post("/translate", json={"q": LONG["texts"][1], "source": "zh", "target": "en"})
    assert response.status_code == 503
    assert re.fullmatch(r"not done within 60 s; \d+ of 200 sentences are translated", response.json()["error"])
    assert response.json()["hint"] == "send less at once, or try again later"
    assert int(response.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("cache", [0, 1_000_000])
def test_what_would_begin_again_each_time_must_be_done_by_the_deadline(models, cache):
    """Without a cache, a request that LibreTranslate's routes cannot finish is refused before any work."""

    async def main():
        options = ServeOptions(deadline=2.0, cache=cache, threads=1)
        service = Service(ReloadingModels([models["zh-en"]], 1), options, Metrics())
        service.queue.rate.add(1000, 1.0)
        sentences = [SourceSentence(str(number), (number,)) for number in range(3000)]  # three seconds
        for caller in (Caller("anna"), Caller("anna", has_deadline=True)):
            service._check_wait(caller, sentences)
        all_or_nothing = Caller("anna", has_deadline=True, needs_all=True)
        service._check_wait(all_or_nothing, sentences[:1000])
        if cache:
            service._check_wait(all_or_nothing, sentences)
        else:
            with pytest.raises(HttpError, match="this would take 3 s, and the deadline is 2 s") as error:
                service._check_wait(all_or_nothing, sentences)
            assert (error.value.status, error.value.retry_after) == (503, None)
        await service.close()

    run_async(main())


@pytest.fixture
def pool():
    """A pool of one thread for three jobs."""
    pool = JobPool("test", 1, 3)
    yield pool
    pool.close()


def test_a_job_that_would_wait_too_long_is_refused_at_once(pool):
    release = threading.Event()

    async def main():
        pool._note(5.0)  # seconds of a job
        tasks = [asyncio.ensure_future(pool.run(lambda: release.wait(60)))]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as error:  # five seconds for the one before it, and five of its own
            await pool.run(release.wait, deadline=8.0)
        assert (error.value.status, error.value.retry_after) == (503, 2)
        tasks += [asyncio.ensure_future(pool.run(lambda: release.wait(60), deadline=60.0)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(HttpError) as error:  # three jobs run or wait
            await pool.run(release.wait)
        assert error.value.status == 503
        release.set()
        assert await asyncio.gather(*tasks) == [True] * 3
        pool._average = 1000.0
        assert await pool.run(lambda: "idle", deadline=60.0) == "idle"  # nothing comes before it

    try:
        run_async(main())
    finally:
        release.set()


def test_of_the_explorer_only_what_ran_until_the_deadline_gets_a_504(models, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr(Explorer, "explore", lambda *_: release.wait(60))
    with in_process(models["zh-en"], deadline=0.3) as server, ThreadPoolExecutor(2) as threads:
        try:
            fields = {"text": "我", "target": "en"}
            responses = list(threads.map(lambda _: server.post("/api/v1/explore", json=fields), range(2)))
        finally:
            release.set()
    by_status = {each.status_code: each for each in responses}
    assert set(by_status) == {503, 504}
    assert int(by_status[503].headers["Retry-After"]) >= 1
    assert "Retry-After" not in by_status[504].headers
