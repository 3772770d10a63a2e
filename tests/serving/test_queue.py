"""The sentences of all requests share batches; nobody waits longer than the batches that run, and nothing is lost."""

import asyncio
import threading
import time
from collections import Counter
from contextlib import asynccontextmanager

import pytest
from event_loops import run_async
from small_servers import multipart
from starlette.testclient import TestClient

from sixfold.serving.app import make_app
from sixfold.serving.metrics import Metrics
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions
from sixfold.serving.responses import HttpError
from sixfold.serving.sentence_queue import BatchSize, DecodingRate, QueueFull, SentenceQueue
from sixfold.serving.service import Caller, Service
from sixfold.serving.turns import SENTENCE_TOKENS
from sixfold.translation.prepare import SourceSentence
from sixfold.translation.request import TranslationRequest

BATCH = 10  # sentences in a full batch of these tests
TOKENS = SENTENCE_TOKENS + 2  # of each sentence


def sentences(name, count):
    """Return different sentences of two tokens each."""
    return [SourceSentence(f"{name} {number}", (number, number)) for number in range(count)]


class Decoder:
    """Records batches. Each waits until it is let through, so that a test decides what is in the queue meanwhile.

    They are let through in the order in which they came.
    """

    def __init__(self, is_open=False, bad=()):
        self.batches, self.bad = [], bad
        self._open = 10**9 if is_open else 0  # batches that may pass
        self._changed = threading.Condition()

    def __call__(self, _key, batch):
        with self._changed:
            self.batches.append([sentence.text for sentence in batch])
            number = len(self.batches)
            self._changed.wait_for(lambda: number <= self._open)
        if any(sentence.text in self.bad for sentence in batch):
            raise ValueError("bad sentence")
        return list(batch)

    def let_through(self, count):
        with self._changed:
            self._open += count
            self._changed.notify_all()


@asynccontextmanager
async def open_queue(decoder, workers=1, max_sentences=10**6):
    queue = SentenceQueue(decoder, workers, BatchSize(BATCH * TOKENS, BATCH * TOKENS), max_sentences)
    try:
        yield queue
    finally:
        decoder.let_through(10**6)
        await queue.close()


def start(queue, name, count, client, key=0):
    """Return a task that decodes sentences and returns their texts."""

    async def decode():
        return [result.text async for result in queue.decode(key, sentences(name, count), client)]

    return asyncio.create_task(decode())


async def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("client", ["bert", "anna"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_short_text_waits_only_for_the_batches_that_run(client, workers):
    """Anna has a long text. A short one has its turn next, from another client or in another request of her own."""

    async def main():
        decoder = Decoder()
        async with open_queue(decoder, workers) as queue:
            long = start(queue, "long", 5000, "anna")
            await until(lambda: len(decoder.batches) == workers)
            short = start(queue, "short", 1, client)
            await asyncio.sleep(0.01)
            decoder.let_through(workers + 1)
            await until(lambda: len(decoder.batches) > workers)
            assert "short 0" in decoder.batches[workers]
            decoder.let_through(workers)
            assert await short == ["short 0"]
            assert not long.done()
            decoder.let_through(10**6)
            assert await long == [sentence.text for sentence in sentences("long", 5000)]

    run_async(main())


def test_every_client_adds_one_sentence_before_any_adds_a_second():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            tasks = [start(queue, "first", 50, "zoe")]
            await until(lambda: decoder.batches)
            tasks += [start(queue, client, count, client) for client, count in (("a", 50), ("b", 50), ("c", 12))]
            await asyncio.sleep(0.01)
            decoder.let_through(10**6)
            await asyncio.gather(*tasks)
        clients = [[text.split()[0] for text in batch] for batch in decoder.batches]
        assert Counter(Counter(clients[1]).values()) == {3: 2, 4: 1}  # ten sentences of three clients
        assert set(clients[1][:3]) == set(clients[1][3:6]) == {"a", "b", "c"}

    run_async(main())


def test_short_requests_share_batches_without_long_ones_and_have_a_worker_of_their_own():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            long = start(queue, "long", 50, "anna")
            await until(lambda: decoder.batches)  # the only worker for long requests is busy
            short = [start(queue, name, 2, name) for name in ("bert", "cleo")]
            await until(lambda: len(decoder.batches) == 2)
            assert set(decoder.batches[1]) <= {"bert 0", "bert 1", "cleo 0", "cleo 1"}
            decoder.let_through(10**6)
            await asyncio.gather(long, *short)
        kinds = [{text.split()[0] == "long" for text in batch} for batch in decoder.batches]
        assert all(len(kind) == 1 for kind in kinds)

    run_async(main())


def test_requests_of_one_client_take_turns_too():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            tasks = [start(queue, "first", 1, "zoe")]
            await until(lambda: decoder.batches)
            tasks += [start(queue, name, 20, "anna") for name in ("page", "note")]
            tasks.append(start(queue, "own", 20, "bert"))
            await asyncio.sleep(0.01)
            decoder.let_through(10**6)
            await asyncio.gather(*tasks)
        names = [text.split()[0] for text in decoder.batches[1]]
        assert [names.count(name) for name in ("page", "note", "own")] == [3, 2, 5]  # Anna's two share her turns

    run_async(main())


def test_a_batch_has_sentences_of_many_requests_but_of_one_key():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            tasks = [start(queue, "first", 1, "zoe")]
            await until(lambda: decoder.batches)
            tasks += [start(queue, f"{number}", 1, f"client {number % 3}", key=number % 2) for number in range(40)]
            await asyncio.sleep(0.01)
            decoder.let_through(10**6)
            await asyncio.gather(*tasks)
        assert [len(batch) for batch in decoder.batches] == [1, 10, 10, 10, 10]
        for batch in decoder.batches[1:]:
            assert len({int(text.split()[0]) % 2 for text in batch}) == 1

    run_async(main())


def test_sentences_of_a_cancelled_request_leave_the_queue():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            gone = start(queue, "gone", 1000, "anna")
            stays = start(queue, "stays", 3, "bert")
            await until(lambda: decoder.batches)
            assert (queue.sentences, queue.tokens) == (1003, 1003 * TOKENS)
            gone.cancel()
            await asyncio.wait([gone])
            assert (queue.sentences, queue.tokens) == (3, 3 * TOKENS)
            decoder.let_through(10**6)
            assert await stays == ["stays 0", "stays 1", "stays 2"]
            assert await start(queue, "later", 1, "anna") == ["later 0"]
            assert (queue.sentences, queue.tokens) == (0, 0)
        decoded = [text for batch in decoder.batches for text in batch]
        assert sum(text.startswith("gone") for text in decoded) <= BATCH  # those of the batch that was running

    run_async(main())


def test_a_batch_that_fails_is_decoded_again_sentence_by_sentence():
    async def main():
        decoder = Decoder(bad=("bert 0",))
        async with open_queue(decoder) as queue:
            first = start(queue, "first", 1, "zoe")
            await until(lambda: decoder.batches)
            good, bad = start(queue, "anna", 3, "anna"), start(queue, "bert", 1, "bert")
            await asyncio.sleep(0.01)
            decoder.let_through(10**6)
            assert await good == ["anna 0", "anna 1", "anna 2"]
            with pytest.raises(ValueError, match="bad sentence"):
                await bad
            await first
            assert queue.sentences == queue.tokens == 0
        assert [len(batch) for batch in decoder.batches] == [1, 4, 1, 1, 1, 1]

    run_async(main())


def test_a_request_that_the_queue_has_no_space_for_is_refused_at_once():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder, max_sentences=20) as queue:
            alone = start(queue, "alone", 100, "anna")  # a request alone may have any number of sentences
            await until(lambda: decoder.batches)
            with pytest.raises(QueueFull):
                await start(queue, "second", 1, "bert")
            assert queue.sentences == 100
            decoder.let_through(10**6)
            assert len(await alone) == 100
            assert await start(queue, "second", 1, "bert") == ["second 0"]

    run_async(main())


def test_the_time_of_a_request_is_foreseen_from_what_has_its_turn_before_it():
    async def main():
        decoder = Decoder()
        async with open_queue(decoder) as queue:
            assert queue.seconds_for("anna", 100) == 0  # nothing has been measured
            queue.rate.add(1000, 1.0)
            assert queue.seconds_for("anna", 100) == pytest.approx(0.1)
            long = start(queue, "long", 5000, "anna")
            await until(lambda: decoder.batches)
            # Of the long text as many tokens come first as the short one has, whoever sends it.
            assert queue.seconds_for("bert", 100) == pytest.approx(0.2)
            assert queue.seconds_for("anna", 100) == pytest.approx(0.2)
            assert queue.seconds_for("bert", 10**6) == pytest.approx(1000 + 5000 * TOKENS / 1000)
            long.cancel()
            await asyncio.wait([long])
            assert queue.seconds_for("bert", 100) == pytest.approx(0.1)

    run_async(main())


def test_the_speed_of_decoding_follows_what_was_measured_last():
    rate = DecodingRate()
    rate.add(1000, 1.0)
    assert rate.seconds_for(500) == pytest.approx(0.5)
    for _ in range(100):
        rate.add(100, 1.0)
    assert rate.seconds_for(100) == pytest.approx(1.0, rel=0.1)


def service_of(models, **settings):
    return Service(ReloadingModels([models["zh-en"]], 1), ServeOptions(**settings), Metrics())


def test_overload_that_can_be_foreseen_is_told_at_once_and_with_a_time(models):
    async def main():
        service = service_of(models, deadline=2.0)
        request = TranslationRequest("zh", "en")
        service.queue.rate.add(10, 20.0)  # two seconds for each token
        batches = []
        service.queue.on_batch = lambda *counts: batches.append(counts)
        with pytest.raises(HttpError) as error:
            await service.translate(["我爱猫。"], request, Caller("anna", has_deadline=True))
        assert not batches
        assert error.value.status == 503
        assert 2 <= error.value.retry_after < 100
        # What has no deadline may wait, and what the cache has needs no batch.
        (translation,) = await service.translate(["我爱猫。"], request, Caller("anna"))
        service.queue.rate.add(10, 20.0)
        cached = await service.translate(["我爱猫。"], request, Caller("anna", has_deadline=True))
        assert [each.text for each in cached] == [translation.text]
        await service.close()

    run_async(main())


def batches_of(client):
    """Return the number of batches that the application has decoded."""
    lines = client.get("/metrics").text.splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("sixfold_batch_sentences_count"))


def test_the_texts_of_a_list_share_batches_whatever_their_format(models):
    app = make_app(ServeOptions(cache=0), ReloadingModels([models["zh-en"]], 1), log=lambda _: None)
    words = "你爱看猫狗水书山花"
    with TestClient(app, "http://localhost") as client:
        for form, texts in (
            ("text", [f"我{first}{second}" for first in words for second in words][:40]),
            ("html", [f"<p>我{first}<b>{second}</b></p>" for first in words for second in words][:40]),
        ):
            before = batches_of(client)
            response = client.post("/translate", json={"q": texts, "source": "zh", "target": "en", "format": form})
            assert response.status_code == 200
            assert len(set(response.json()["translatedText"])) == 40
            assert batches_of(client) - before < 20, form


def test_a_document_shares_batches_with_other_requests(models):
    """Its units are sentences in the queue like those of texts: forty paragraphs take a few batches."""
    app = make_app(ServeOptions(cache=0), ReloadingModels([models["zh-en"]], 1), log=lambda _: None)
    words = "你爱看猫狗水书山花"
    page = "".join(f"<p>我{first}<b>{second}</b>。</p>" for first in words for second in words[:4])
    with TestClient(app, "http://localhost") as client:
        body, headers = multipart("a.html", page.encode(), source="zh", target="en")
        response = client.post("/translate_file", content=body, headers=headers)
        assert response.status_code == 200
        assert batches_of(client) < 18
        translated = client.get(response.json()["translatedFileUrl"]).text
        assert translated.count("<b>") == 36
