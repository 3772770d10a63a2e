"""Translations on the page as they stream: sentences, progress, cancelling, and servers that fail and come back."""

import json
import re
import signal
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from small_servers import Server, until

import sixfold
from sixfold.translation.loading import shipped_models

STREAM = "**/api/v1/translate/stream"
ANIMALS = ("cat", "dog", "horse", "bird", "fish", "cow", "pig", "duck")
PLACES = ("house", "garden", "river", "school", "market", "forest", "church", "park")
LONG = [f"The {animal} is in the {place}." for animal in ANIMALS for place in PLACES]  # less than 2000 characters
BOOK = [f"On day {day} {sentence.lower()}" for day in range(8) for sentence in LONG]  # takes many seconds


@pytest.fixture(scope="module")
def server():
    """A server that keeps no translations and translates one sentence after the other."""
    with start_server() as started:
        yield started


def start_server(port=0):
    return Server(shipped_models()[0], port=port, threads=1, cache=0)


@pytest.fixture
def open_at(browser):
    """A function that opens the translate screen of a server."""
    contexts = []

    def open_screen(server, lang="en", **state):
        contexts.append(browser.new_context(locale="en-US", accept_downloads=True))
        page = contexts[-1].new_page()
        page.set_default_timeout(60_000)
        page.goto(f"{server.url}/?{urlencode({'lang': lang, **state})}")
        page.wait_for_selector("main[data-screen=translate]")
        return page

    yield open_screen
    for context in contexts:
        context.close()


@contextmanager
def suspended(server):
    """Let a server do nothing for a while, so that what the page shows does not change."""
    server.process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        server.process.send_signal(signal.SIGCONT)


def shown_text(page):
    return page.locator("#words").text_content()


def waiting_sentences(server):
    metrics = server.ask("/metrics")[2].decode()
    return float(re.search(r"^sixfold_queue_sentences (\S+)", metrics, re.M)[1])


def decoded_sentences(server):
    """Return how many sentences the server has decoded since it started."""
    metrics = server.ask("/metrics")[2].decode()
    return float(re.search(r"^sixfold_batch_sentences_sum (\S+)", metrics, re.M)[1])


def begin(page, text):
    """Type a text and wait until the first of its sentences are translated."""
    page.locator("#source").fill(text)
    page.wait_for_selector("#target .sentence-progress")


def stop_clock(page):
    """Stop the page's timers; `page.clock.run_for` lets time pass."""
    page.clock.install()
    page.clock.pause_at(page.evaluate("Date.now() + 1000"))


def answer_with(page, **response):
    """Answer every translation request of a page with this response instead of the server's."""
    page.route(STREAM, lambda route: route.fulfill(**response))


def faults(page):
    """Return the accessibility violations that axe-core rates serious or critical."""
    violations = Axe().run(page).response["violations"]
    return [violation["id"] for violation in violations if violation["impact"] in ("serious", "critical")]


def event(kind, **values):
    """Return a server-sent event."""
    return f"event: {kind}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n"


def test_sentences_appear_before_the_whole_text_is_translated(open_at, server):
    page = open_at(server)
    text = " ".join(LONG)
    begin(page, text)
    with suspended(server):
        partial = shown_text(page)
        done, total = re.fullmatch(
            r"(\d+) of (\d+) sentences", page.locator("#target .head-note").inner_text()
        ).groups()
        assert page.locator("#target progress").get_attribute("value") == done
        assert (page.locator("#target progress").get_attribute("max"), total) == (str(len(LONG)),) * 2
        assert 0 < int(done) < len(LONG)
        assert page.locator(".word").count() == 0
        assert page.locator("#target.stale").count() == 0
        assert page.locator("#target").get_attribute("aria-busy") is None
        assert faults(page) == []
    page.wait_for_selector(".word")
    with sixfold.Translator() as translator:
        assert shown_text(page) == translator.translate(text).text
    assert partial
    assert shown_text(page).startswith(partial)
    assert page.locator("#target .sentence-progress").count() == 0
    assert page.locator("#confidence").count() == page.locator("#n-best").count() == 1


def test_an_older_result_stays_and_is_marked_until_the_new_one_comes(open_at, server):
    page = open_at(server, text="Good morning.")
    page.wait_for_selector(".word")
    before, held = shown_text(page), []
    page.route(STREAM, lambda route: held.append(route))
    page.locator("#source").press_sequentially(" I love cats.", delay=10)
    expect(page.locator("#target.stale")).to_have_attribute("aria-busy", "true")
    assert until(lambda: page.wait_for_timeout(50) or held)
    assert shown_text(page) == before
    page.wait_for_function("getComputedStyle(document.querySelector('#words')).opacity == 0.65")
    assert faults(page) == []
    page.locator(".word").first.click()
    assert page.locator("#popover").count() == 0  # it would be about the older text
    held[0].continue_()
    page.wait_for_selector("#target:not(.stale):not([aria-busy])")
    assert shown_text(page).startswith(before)
    assert until(lambda: page.wait_for_timeout(50) or shown_text(page) != before)  # the second sentence
    page.locator(".word").first.click()
    page.wait_for_selector("#popover")


def test_typing_cancels_the_stream_on_the_server_too(open_at, server):
    before = decoded_sentences(server)
    page = open_at(server)
    failed = []
    page.on("requestfailed", lambda request: failed.append(request.post_data_json["texts"]))
    text = " ".join(LONG)
    begin(page, text)
    partial = shown_text(page)
    stop_clock(page)  # the new text is not sent
    page.locator("#source").press_sequentially(" Now")
    expect(page.locator("#target.stale")).to_have_attribute("aria-busy", "true")
    assert until(lambda: page.wait_for_timeout(50) or failed) == [[text]]
    assert shown_text(page).startswith(partial)
    assert until(lambda: waiting_sentences(server) == 0)
    assert decoded_sentences(server) - before < len(LONG)


def test_a_stream_goes_on_when_the_server_that_died_is_back(open_at):
    message = "The server does not answer. Is it still running? Trying again until it works."
    with start_server() as server:
        page = open_at(server)
        begin(page, " ".join(LONG))
        server.stop(signal.SIGKILL)
        expect(page.locator("#target .error-message")).to_have_text(message)
    partial = shown_text(page)
    assert partial
    page.wait_for_timeout(1500)  # it has tried again in vain
    assert shown_text(page) == partial
    expect(page.locator("#target .error-message")).to_have_text(message)
    with start_server(server.port):
        page.wait_for_selector(".word")
        assert page.locator(".error-message").count() == 0
        assert shown_text(page).startswith(partial)
        assert len(shown_text(page)) > len(partial)


FAILURES = {  # status: what the page says in Chinese, and whether it tries again
    400: ("服务器无法完成：no – 译", False),
    403: ("此服务器需要 API 密钥，请在页面顶部输入有效的密钥。", False),
    413: ("内容过大，服务器无法接受。", False),
    429: ("请求过于频繁，服务器暂时不再接受。正在自动重试。", True),
    500: ("服务器内部出错。", False),
    502: ("服务器正忙。正在自动重试。", True),
    503: ("服务器正忙。正在自动重试。", True),
}


def test_failures_are_explained_in_the_language_of_the_page(open_at, server):
    page = open_at(server, lang="zh", text="Good morning.")
    page.wait_for_selector(".word")
    for status, (message, tries_again) in FAILURES.items():
        answer_with(page, status=status, body=json.dumps({"error": "no", "hint": "译"}))
        page.locator("#source").fill(f"Number {status}.")
        expect(page.locator(".error-message")).to_have_text(message)
        assert page.locator("#target.working").count() == tries_again
        assert page.locator("#again").inner_text() == "立即重试"
        page.unroute(STREAM)
        page.locator("#again").click()
        page.wait_for_selector("#target:not(.working) .word")
        assert page.locator(".error-message").count() == 0


BUSY = {
    "response": {"status": 503, "headers": {"Retry-After": "7"}, "body": '{"error": "the server is busy"}'},
    "event": {"body": event("error", error="the server is busy", retry_after=7), "content_type": "text/event-stream"},
}


@pytest.mark.parametrize("kind", list(BUSY))
def test_a_busy_server_is_asked_again_when_it_wants(open_at, server, kind):
    page = open_at(server)
    stop_clock(page)
    requests = []

    def refuse_once(route):
        requests.append(route.request.post_data_json["texts"])
        route.fulfill(**BUSY[kind]) if len(requests) == 1 else route.continue_()

    page.route(STREAM, refuse_once)
    page.locator("#source").fill("Good evening.")
    page.clock.run_for(300)
    expect(page.locator(".error-message")).to_have_text("The server is busy. Trying again until it works.")
    page.clock.run_for(6900)
    assert len(requests) == 1
    page.clock.run_for(2000)  # up to a quarter longer
    page.wait_for_selector(".word")
    assert requests == [["Good evening."]] * 2
    assert page.locator(".error-message").count() == 0


def test_a_stream_that_always_fails_keeps_its_sentences_and_is_given_up(open_at, server):
    page = open_at(server)
    stop_clock(page)
    requests = []
    body = event("sentence", index=0, text="Eins.", done=1, total=5) + event("error", error="no luck")

    def break_off(route):
        requests.append(route)
        route.fulfill(body=body, content_type="text/event-stream")

    page.route(STREAM, break_off)
    page.locator("#source").fill("One. Two. Three. Four. Five.")
    page.clock.run_for(300)
    expect(page.locator(".error-message")).to_have_text("The translation broke off. Trying again until it works.")
    assert shown_text(page) == "Eins."
    for seconds in (1, 2, 4, 8):
        sent = len(requests)
        page.clock.run_for(1250 * seconds)
        assert until(lambda sent=sent: page.wait_for_timeout(50) or len(requests) > sent)
        page.wait_for_timeout(100)  # it sets the next timer
    expect(page.locator(".error-message")).to_have_text("The translation broke off.")
    page.clock.run_for(100_000)
    assert len(requests) == 5
    assert shown_text(page) == "Eins."
    page.unroute(STREAM)
    page.locator("#again").click()
    page.wait_for_selector(".word")


def test_a_stream_that_ends_without_a_result_has_broken_off(open_at, server):
    page = open_at(server)
    body = event("sentence", index=0, text="Eins.", done=1, total=2)
    answer_with(page, body=body, content_type="text/event-stream")
    page.locator("#source").fill("One. Two.")
    expect(page.locator(".error-message")).to_contain_text("The translation broke off.")
    assert shown_text(page) == "Eins."


def test_events_are_read_wherever_the_network_cuts_them(open_at, server):
    page = open_at(server)
    stream = ": a comment\n\n" + event("sentence", text="你好 😀") + "data: 1\n\nevent: done\ndata: {}\n\nevent: cut"
    read = """async ([text, size]) => {
        const { readEvents } = await import("/static/event_stream.js");
        const bytes = new TextEncoder().encode(text);
        const stream = new ReadableStream({ start(controller) {
            for (let at = 0; at < bytes.length; at += size) controller.enqueue(bytes.slice(at, at + size));
            controller.close();
        } });
        const events = [];
        for await (const { kind, data } of readEvents(stream)) events.push([kind, data]);
        return events;
    }"""
    expected = [["sentence", {"text": "你好 😀"}], ["message", 1], ["done", {}]]
    for size in (1, 2, 3, 7, 1000):
        assert page.evaluate(read, [stream, size]) == expected


# --- documents --------------------------------------------------------------------------------------------------------


def choose(page, sentences):
    document = {"name": "a.txt", "mimeType": "text/plain", "buffer": "\n".join(sentences).encode()}
    page.locator("#file").set_input_files(document)


def test_a_document_shows_its_progress_and_can_be_cancelled(open_at, server):
    before = decoded_sentences(server)
    page = open_at(server)
    choose(page, BOOK)
    expect(page.locator(".files .note")).to_have_text(re.compile(rf"^[1-9]\d* of {len(BOOK)} sentences$"))
    bar = page.locator(".files progress")
    assert 0 < float(bar.get_attribute("value")) <= float(bar.get_attribute("max")) == len(BOOK)
    page.get_by_role("button", name="Cancel the translation of a.txt").click()
    expect(page.locator(".files li")).to_have_count(0)
    assert until(lambda: waiting_sentences(server) == 0)
    assert decoded_sentences(server) - before < len(BOOK)
    choose(page, LONG[:5])
    expect(page.locator(".files a")).to_have_text("Download a_zh.txt")
    page.get_by_role("button", name="Remove a.txt from the list").click()
    expect(page.locator(".files li")).to_have_count(0)


def test_a_document_is_translated_when_the_server_that_died_is_back(open_at):
    with start_server() as server:
        page = open_at(server)
        choose(page, LONG)
        expect(page.locator(".files .note")).to_contain_text(" sentences")
        server.stop(signal.SIGKILL)
        expect(page.locator(".files .error")).to_contain_text("The server does not answer.")
    with start_server(server.port):
        with page.expect_download() as waiting:
            page.locator(".files a").click()
        assert page.locator(".files .error").inner_text() == ""
    assert len(waiting.value.path().read_text(encoding="utf-8").splitlines()) == len(LONG)


def test_a_document_that_is_gone_is_not_tried_again(open_at, server, tmp_path):
    page = open_at(server)
    stop_clock(page)
    page.route("**/translate_file/stream", lambda route: route.abort())
    (tmp_path / "a.txt").write_text("I love cats.", encoding="utf-8")
    page.locator("#file").set_input_files(tmp_path / "a.txt")
    expect(page.locator(".files .error")).to_contain_text("The server does not answer.")
    (tmp_path / "a.txt").unlink()
    page.clock.run_for(2000)
    expect(page.locator(".files .error")).to_have_text("this file can no longer be read")
    page.get_by_role("button", name="Remove a.txt from the list").click()
    expect(page.locator(".files li")).to_have_count(0)


def test_leaving_the_screen_cancels_its_streams(open_at, server):
    before = decoded_sentences(server)
    page = open_at(server)
    choose(page, BOOK)
    expect(page.locator(".files .note")).to_contain_text(" sentences")
    begin(page, " ".join(LONG))
    page.locator("nav a[data-screen=shapes]").click()
    assert until(lambda: waiting_sentences(server) == 0)
    assert decoded_sentences(server) - before < len(BOOK)
