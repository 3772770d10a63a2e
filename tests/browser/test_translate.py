"""The translate screen: live translation, words, alternatives, documents, and keyboard use."""

import base64
import io
import json
import math

import docx
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

import sixfold
from sixfold.translation.options import TranslateOptions

TWO = "Scientists have found water on the moon.\nI love 😀 pizza very much."
BOOK = "她打开那本旧书，开始读了起来。"
BAD = "ls cd pwd mkdir rmdir"
TRANSLATE = "**/api/v1/translate/stream"


@pytest.fixture(scope="module")
def translator(request):
    request.getfixturevalue("site")  # its cache has the model
    with sixfold.Translator() as opened:
        yield opened


@pytest.fixture(scope="module")
def result(translator):
    """The translation of TWO by Python, with as many hypotheses as the page requests."""
    return translator.translate(TWO, options=TranslateOptions(n_best=4))


@pytest.fixture
def two(open_page):
    page = open_page(text=TWO)
    page.wait_for_selector(".word")
    return page


def words(translation):
    """Return each word, its probability (the product over its tokens) and its source word."""
    result, end = [], 0
    for link in translation.alignment:
        probabilities = [token.probability for token in translation.tokens if end <= token.span[0] < link.target[1]]
        result.append(
            (translation.text[slice(*link.target)], math.prod(probabilities), translation.source[slice(*link.source)])
        )
        end = link.target[1]
    return result


def highlighted_texts(page, selector):
    return page.locator(f"{selector}.highlighted").all_inner_texts()


def hold_requests(page):
    """Hold back translation requests and return the list of them."""
    held = []
    page.route(TRANSLATE, lambda route: held.append(route))
    return held


def wait_until(page, condition):
    """Wait until a condition holds; Playwright handles events meanwhile."""
    for _ in range(1200):
        if condition():
            return
        page.wait_for_timeout(50)
    raise AssertionError("the condition never held")


def test_a_text_is_sent_after_a_pause_and_older_requests_are_aborted(open_page):
    page = open_page()
    aborted = []
    page.on("requestfailed", lambda request: aborted.append(request.post_data_json["texts"]))
    held = hold_requests(page)
    page.locator("#source").press_sequentially("I love", delay=15)
    wait_until(page, lambda: held)
    assert [route.request.post_data_json["texts"] for route in held] == [["I love"]]
    page.locator("#source").press_sequentially(" cats.", delay=15)
    wait_until(page, lambda: len(held) == 2)
    assert aborted == [["I love"]]
    expect(page.locator("#target")).to_have_attribute("aria-busy", "true")
    held[1].continue_()
    page.wait_for_selector(".word")
    assert [route.request.post_data_json["texts"] for route in held] == [["I love"], ["I love cats."]]
    assert page.locator("#target").get_attribute("aria-busy") is None
    assert "text=I+love+cats." in page.url


def test_text_that_an_input_method_is_composing_is_not_sent(open_page):
    page = open_page()
    held = hold_requests(page)
    page.locator("#source").focus()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    assert page.locator("#source").input_value() == "ni hao"
    page.wait_for_timeout(100)
    assert page.locator("#target").get_attribute("aria-busy") is None
    session.send("Input.insertText", {"text": "你好"})
    wait_until(page, lambda: held)
    assert [route.request.post_data_json["texts"] for route in held] == [["你好"]]


def test_an_empty_text_clears_the_translation_and_shows_examples(two):
    held = hold_requests(two)
    two.locator("#clear").click()
    expect(two.locator(".word")).to_have_count(0)
    expect(two.locator("#count")).to_have_text("0 of 100,000 characters")
    assert "text=" not in two.url
    two.locator(".examples button").first.click()
    wait_until(two, lambda: held)
    assert held[0].request.post_data_json["texts"] == [two.locator("#source").input_value()]
    assert held[0].request.post_data_json["details"] is True


def test_words_and_their_probabilities_are_those_of_python(two, result):
    assert two.locator("#words").inner_text() == result.text
    shown = [
        (button.inner_text(), float(button.get_attribute("data-probability")), button.get_attribute("aria-label"))
        for button in two.locator(".word").all()
    ]
    expected = words(result)
    assert [word for word, _, _ in shown] == [word for word, _, _ in expected]
    assert "😀" in [word for word, _, _ in shown]
    for (word, share, label), (_, probability, source) in zip(shown, expected, strict=True):
        assert share == pytest.approx(probability, abs=1e-4)
        assert label.startswith(f"{word}, ")
        assert label.endswith(f" %, from {source}")


def test_a_word_highlights_the_word_it_comes_from_and_the_other_way_round(two, result):
    expected = words(result)
    index = len(expected) - 2  # after the emoji, where character and UTF-16 offsets differ
    two.locator(".word").nth(index).hover()
    assert highlighted_texts(two, ".highlight-layer mark") == [expected[index][2]]
    assert highlighted_texts(two, ".word") == [expected[index][0]]
    mark = two.locator(".highlight-layer mark", has_text="pizza").bounding_box()
    two.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    assert highlighted_texts(two, ".highlight-layer mark") == ["pizza"]
    assert highlighted_texts(two, ".word") == [word for word, _, source in expected if source == "pizza"]
    two.mouse.move(1, 1)
    assert highlighted_texts(two, "") == []


def test_the_source_is_marked_exactly_where_its_words_stand(two):
    """The highlight layer and the text field must break lines at the same places."""
    field, mirror = (two.locator(selector).bounding_box() for selector in ("#source", ".highlight-layer"))
    assert field == mirror
    styles = "(e) => { const s = getComputedStyle(e); return [s.font, s.letterSpacing, s.padding, s.whiteSpace] }"
    assert two.locator("#source").evaluate(styles) == two.locator(".highlight-layer").evaluate(styles)


def test_an_alternative_is_the_one_of_python_and_can_be_undone(two, result, translator):
    first = result.sentences[0]
    sentence, translation = result.source[slice(*first.source)], result.text[slice(*first.target)]
    link = result.alignment[2]
    expected = translator.alternatives(sentence, translation[: link.target[0]], 6, *result.languages)
    two.locator(".word").nth(2).click()
    expect(two.get_by_role("dialog").locator(".alternative")).to_have_count(len(expected))
    popover = two.get_by_role("dialog")
    assert f"{100 * words(result)[2][1]:.0f} %" in popover.locator(".word-probability").inner_text()
    rest = [alternative.text[link.target[0] :].strip() for alternative in expected]
    shown = [
        alternative.inner_text().removeprefix("… ")
        for alternative in popover.locator(".alternative > span:first-child").all()
    ]
    assert shown == rest
    index = next(index for index, alternative in enumerate(expected) if alternative.text != translation)
    popover.locator(".alternative").nth(index).click()
    two.wait_for_selector("#undo")
    changed = expected[index].text + result.text[first.target[1] :]
    assert two.locator("#words").inner_text() == changed
    assert two.locator(".changed").inner_text() == expected[index].text
    assert two.evaluate("document.activeElement.dataset.index") == "2"
    scored = translator.score(sentence, expected[index].text, *result.languages)
    share = float(two.locator(".word").nth(2).get_attribute("data-probability"))
    assert share == pytest.approx(words(scored)[2][1], abs=1e-4)
    two.locator("#theme").click()  # the screen is created again and keeps the chosen alternative
    two.wait_for_selector(":root[data-theme=dark] .changed")
    two.locator("#undo").click()
    assert two.locator("#words").inner_text() == result.text
    assert two.locator("#undo").count() == 0


def test_other_translations_and_the_confidence_are_those_of_python(two, result):
    two.locator("#n-best summary").click()
    ways = [item.inner_text() for item in two.locator("#n-best .n-best-text").all()]
    assert ways == [item.text for item in result.n_best[1:]]
    assert two.locator("#n-best li .note").first.inner_text() == f"{result.n_best[1].score:.3f}"
    assert two.locator("#confidence").inner_text() == f"confidence {100 * result.confidence:.0f} %"
    assert "chance" in two.locator("#confidence").get_attribute("title")


@pytest.mark.parametrize(("lang", "words"), [("en", "Some words were not translated"), ("zh", "有些词没有翻译")])
def test_a_warning_is_shown_in_the_interface_language_and_marks_its_words(open_page, lang, words):
    page = open_page(text=BAD, lang=lang)
    expect(page.locator("#warnings li")).to_contain_text(words)
    assert page.locator("#warnings li").get_attribute("data-kind") == "script"
    assert page.locator(".word.has-warning").count() == page.locator(".word").count() > 0


def test_the_translation_is_copied(two, result):
    two.context.grant_permissions(["clipboard-read", "clipboard-write"])
    two.locator("#copy").click()
    expect(two.locator("#copy")).to_have_text("Copied ✓")
    assert two.evaluate("navigator.clipboard.readText()") == result.text


def test_the_languages_are_swapped_and_chosen(open_page):
    page = open_page(text="I love cats.", **{"from": "en", "to": "zh"})
    page.wait_for_selector(".word")
    translation = page.locator("#words").inner_text()
    page.locator("#swap").click()
    expect(page.locator("#source")).to_have_value(translation)
    expect(page.locator("#direction")).to_have_value("zh>en")
    page.locator("#direction").select_option("")
    expect(page.locator("#direction option").first).to_have_text("Detected: Chinese → English")
    assert "from=" not in page.url


def drop(page, name, data):
    """Drop a file on the page."""
    page.evaluate(
        """([name, data]) => {
            const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
            const moved = new DataTransfer();
            moved.items.add(new File([bytes], name));
            const how = { bubbles: true, cancelable: true, dataTransfer: moved };
            for (const kind of ["dragover", "drop"]) document.body.dispatchEvent(new DragEvent(kind, how));
        }""",
        [name, base64.b64encode(data).decode()],
    )


def fetched(page, row):
    with page.expect_download() as waiting:
        page.locator(".files li").nth(row).get_by_role("link").click()
    return waiting.value.suggested_filename, waiting.value.path().read_bytes()


def test_documents_are_dropped_or_picked_and_come_back_translated(open_page, translator):
    page = open_page()
    expect(page.locator(".documents > .note")).to_contain_text(".docx")
    document, buffer = docx.Document(), io.BytesIO()
    document.add_paragraph(BOOK)
    document.save(buffer)
    drop(page, "书 1.docx", buffer.getvalue())
    expect(page.locator(".drop-overlay")).to_be_hidden()
    page.locator("#file").set_input_files({"name": "a.txt", "mimeType": "text/plain", "buffer": b"I love cats."})
    drop(page, "a.md", "# 我爱猫\n\n`code`\n".encode())
    expect(page.locator(".files a")).to_have_count(3)
    name, data = fetched(page, 0)
    assert name.endswith("_1_en.docx")
    assert docx.Document(io.BytesIO(data)).paragraphs[0].text == translator.translate(BOOK).text
    assert fetched(page, 1) == ("a_zh.txt", translator.translate("I love cats.").text.encode())
    name, data = fetched(page, 2)
    assert name == "a_en.md"
    assert data.decode().startswith("# I")
    assert data.decode().endswith("\n\n`code`\n")


def test_a_file_of_an_unknown_type_is_refused_with_a_reason(open_page):
    page = open_page()
    expect(page.locator(".documents > .note")).to_contain_text(".docx")
    drop(page, "a.exe", b"MZ")
    expect(page.locator(".files .error")).to_have_text("this file type cannot be translated")
    page.locator(".files button").click()
    expect(page.locator(".files li")).to_have_count(0)


def test_everything_works_with_the_keyboard_alone(open_page, translator):
    page = open_page()
    for _ in range(30):
        if page.evaluate("document.activeElement.id") == "source":
            break
        page.keyboard.press("Tab")
    page.keyboard.type(BOOK)
    page.wait_for_selector(".word")
    for _ in range(6):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className").startswith("word"):
            break
    page.keyboard.press("End")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.index") == "1"
    assert len(highlighted_texts(page, ".highlight-layer mark")) == 1
    page.keyboard.press("Enter")
    page.wait_for_selector(".alternative")
    assert "alternatives" in page.locator(".word").nth(1).get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert page.locator("#popover").count() == 0
    assert page.evaluate("document.activeElement.dataset.index") == "1"
    page.keyboard.press("Enter")
    page.wait_for_selector(".alternative")
    page.keyboard.press("ArrowDown")
    while page.evaluate("document.activeElement.getAttribute('aria-current')"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("#undo")
    assert page.locator("#words").inner_text() != translator.translate(BOOK).text
    page.locator("#source").focus()
    page.keyboard.press("Home")
    assert len(highlighted_texts(page, ".word")) >= 1


def test_a_long_text_is_shown_at_once_and_its_words_part_by_part(open_page):
    page = open_page()
    requests = []
    page.on("request", lambda request: "/api/v1/" in request.url and requests.append(request.post_data_json))
    long = "I love cats.\n" + "The cat sat on the mat. " * 90
    page.locator("#source").fill(long)
    page.wait_for_selector(".load-words")
    (only,) = [request_body for request_body in requests if request_body]
    assert (only["details"], only["n_best"]) == (False, 1)
    assert "text=" not in page.url  # addresses have a limited length
    assert page.locator(".word").count() == 0
    full_text = page.locator("#words").inner_text().replace("⋯", "")
    page.locator(".load-words").first.click()
    page.wait_for_selector(".word")
    assert requests[-1]["texts"] == ["I love cats.\n"]
    assert page.locator(".load-words").count() == 1
    assert page.locator("#words").inner_text().replace("⋯", "").split() == full_text.split()
    page.locator("#language").click()
    page.wait_for_selector("html[lang=zh-CN] .word")
    assert page.locator("#source").input_value() == long


def test_explore_opens_the_sentence(two, result):
    two.locator("#explore").click()
    two.wait_for_selector("main[data-screen=attention]")
    assert two.locator("#sentence").input_value() == result.source[slice(*result.sentences[0].source)]


def test_errors_are_explained_and_the_request_can_be_repeated(browser, site):
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(f"{site.url}/?text=Hello.")
    page.wait_for_selector(".word")
    bad = json.dumps({"error": "no model translates this", "hint": "load one"})
    page.route(TRANSLATE, lambda route: route.fulfill(status=400, body=bad))
    page.locator("#source").fill("Good morning.")
    message = "The server cannot do this: no model translates this – load one"
    expect(page.locator(".error-message")).to_have_text(message)
    expect(page.locator(".word")).to_have_count(0)
    page.unroute(TRANSLATE)
    page.route(TRANSLATE, lambda route: route.abort())
    page.locator("#again").click()
    expect(page.locator(".error-message")).to_contain_text("The server does not answer")
    page.unroute(TRANSLATE)
    page.locator("#again").click()
    page.wait_for_selector(".word")
    expect(page.locator(".error-message")).to_have_count(0)
    page.locator("#source").fill("a" * 100_001)
    expect(page.locator(".error-message")).to_contain_text("100,000 characters at once")
    context.close()


@pytest.mark.parametrize(("lang", "width", "scheme"), [("en", 1280, "light"), ("zh", 390, "dark")])
def test_the_screen_with_an_open_popover_is_accessible(open_page, scheme, lang, width):
    page = open_page(text=BAD, scheme=scheme, lang=lang, width=width)
    page.wait_for_selector("#warnings")
    page.locator("#n-best summary").click()
    page.locator(".word").nth(1).click()
    page.wait_for_selector(".alternative")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#popover").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    violations = Axe().run(page).response["violations"]
    assert [violation["id"] for violation in violations if violation["impact"] in ("serious", "critical")] == []
