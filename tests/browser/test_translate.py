"""The screen that translates: live, word by word, with alternatives, documents and the keyboard alone."""

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
BAD = "asdf jkl qwer uiop zxcv"
TRANSLATE = "**/api/v1/translate"


@pytest.fixture(scope="module")
def translator(request):
    request.getfixturevalue("site")  # whose cache has the model
    with sixfold.Translator() as opened:
        yield opened


@pytest.fixture(scope="module")
def said(translator):
    """What Python says to TWO, with as many ways as the page asks for."""
    return translator.translate(TWO, options=TranslateOptions(n_best=4))


@pytest.fixture
def two(look):
    page = look(text=TWO)
    page.wait_for_selector(".word")
    return page


def words(translation):
    """Each word, its probability as that of the pieces since the word before, and the source word."""
    found, end = [], 0
    for link in translation.alignment:
        its = [each.probability for each in translation.tokens if end <= each.span[0] < link.target[1]]
        found.append((translation.text[slice(*link.target)], math.prod(its), translation.source[slice(*link.source)]))
        end = link.target[1]
    return found


def lit(page, where):
    return page.locator(f"{where}.highlighted").all_inner_texts()


def hold(page):
    """Requests for translations that are not let through yet."""
    held = []
    page.route(TRANSLATE, lambda route: held.append(route))
    return held


def when(page, is_so):
    """Playwright's events come while it waits."""
    for _ in range(300):
        if is_so():
            return
        page.wait_for_timeout(50)
    raise AssertionError("it never was so")


def test_a_text_is_sent_once_the_keys_rest_and_what_was_asked_before_is_given_up(look):
    page = look()
    aborted = []
    page.on("requestfailed", lambda request: aborted.append(request.post_data_json["texts"]))
    held = hold(page)
    page.locator("#source").press_sequentially("I love", delay=15)
    when(page, lambda: held)
    assert [route.request.post_data_json["texts"] for route in held] == [["I love"]]
    page.locator("#source").press_sequentially(" cats.", delay=15)
    when(page, lambda: len(held) == 2)
    assert aborted == [["I love"]]
    expect(page.locator("#target")).to_have_attribute("aria-busy", "true")
    held[1].continue_()
    page.wait_for_selector(".word")
    assert [route.request.post_data_json["texts"] for route in held] == [["I love"], ["I love cats."]]
    assert page.locator("#target").get_attribute("aria-busy") is None
    assert "text=I+love+cats." in page.url


def test_letters_that_an_input_method_still_works_on_are_not_sent(look):
    page = look()
    held = hold(page)
    page.locator("#source").focus()
    session = page.context.new_cdp_session(page)
    session.send("Input.imeSetComposition", {"text": "ni hao", "selectionStart": 6, "selectionEnd": 6})
    assert page.locator("#source").input_value() == "ni hao"
    page.wait_for_timeout(100)
    assert page.locator("#target").get_attribute("aria-busy") is None
    session.send("Input.insertText", {"text": "你好"})
    when(page, lambda: held)
    assert [route.request.post_data_json["texts"] for route in held] == [["你好"]]


def test_an_empty_text_clears_the_translation_and_shows_examples(two):
    held = hold(two)
    two.locator("#clear").click()
    expect(two.locator(".word")).to_have_count(0)
    expect(two.locator("#count")).to_have_text("0 of 100,000 characters")
    assert "text=" not in two.url
    two.locator(".examples button").first.click()
    when(two, lambda: held)
    assert held[0].request.post_data_json["texts"] == [two.locator("#source").input_value()]
    assert held[0].request.post_data_json["details"] is True


def test_words_and_their_probabilities_are_those_of_python(two, said):
    assert two.locator("#words").inner_text() == said.text
    shown = [
        (each.inner_text(), float(each.get_attribute("data-probability")), each.get_attribute("aria-label"))
        for each in two.locator(".word").all()
    ]
    expected = words(said)
    assert [word for word, _, _ in shown] == [word for word, _, _ in expected]
    assert "😀" in [word for word, _, _ in shown]
    for (word, share, label), (_, probability, source) in zip(shown, expected, strict=True):
        assert share == pytest.approx(probability, abs=1e-4)
        assert label.startswith(f"{word}, ")
        assert label.endswith(f" %, from {source}")


def test_a_word_lights_the_word_it_comes_from_and_the_other_way_round(two, said):
    expected = words(said)
    place = len(expected) - 2  # behind the emoji, where characters and halves of them are counted apart
    two.locator(".word").nth(place).hover()
    assert lit(two, ".highlight-layer mark") == [expected[place][2]]
    assert lit(two, ".word") == [expected[place][0]]
    mark = two.locator(".highlight-layer mark", has_text="pizza").bounding_box()
    two.mouse.move(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    assert lit(two, ".highlight-layer mark") == ["pizza"]
    assert lit(two, ".word") == [word for word, _, source in expected if source == "pizza"]
    two.mouse.move(1, 1)
    assert lit(two, "") == []


def test_the_source_is_marked_exactly_where_its_words_stand(two):
    """The layer of marks and the field above it must break lines alike."""
    field, mirror = (two.locator(where).bounding_box() for where in ("#source", ".highlight-layer"))
    assert field == mirror
    styles = "(e) => { const s = getComputedStyle(e); return [s.font, s.letterSpacing, s.padding, s.whiteSpace] }"
    assert two.locator("#source").evaluate(styles) == two.locator(".highlight-layer").evaluate(styles)


def test_an_alternative_is_what_python_says_and_can_be_undone(two, said, translator):
    first = said.sentences[0]
    sentence, translation = said.source[slice(*first.source)], said.text[slice(*first.target)]
    link = said.alignment[2]
    expected = translator.alternatives(sentence, translation[: link.target[0]], 6, *said.languages)
    two.locator(".word").nth(2).click()
    expect(two.get_by_role("dialog").locator(".alternative")).to_have_count(len(expected))
    popover = two.get_by_role("dialog")
    assert f"{100 * words(said)[2][1]:.0f} %" in popover.locator(".word-probability").inner_text()
    rest = [each.text[link.target[0] :].strip() for each in expected]
    shown = [each.inner_text().removeprefix("… ") for each in popover.locator(".alternative > span:first-child").all()]
    assert shown == rest
    place = next(place for place, each in enumerate(expected) if each.text != translation)
    popover.locator(".alternative").nth(place).click()
    two.wait_for_selector("#undo")
    changed = expected[place].text + said.text[first.target[1] :]
    assert two.locator("#words").inner_text() == changed
    assert two.locator(".changed").inner_text() == expected[place].text
    assert two.evaluate("document.activeElement.dataset.index") == "2"
    scored = translator.score(sentence, expected[place].text, *said.languages)
    share = float(two.locator(".word").nth(2).get_attribute("data-probability"))
    assert share == pytest.approx(words(scored)[2][1], abs=1e-4)
    two.locator("#theme").click()  # the screen is made anew, with what was chosen
    two.wait_for_selector(":root[data-theme=dark] .changed")
    two.locator("#undo").click()
    assert two.locator("#words").inner_text() == said.text
    assert two.locator("#undo").count() == 0


def test_other_ways_to_say_it_and_the_confidence_are_those_of_python(two, said):
    two.locator("#n-best summary").click()
    ways = [each.inner_text() for each in two.locator("#n-best .n-best-text").all()]
    assert ways == [each.text for each in said.n_best[1:]]
    assert two.locator("#n-best li .note").first.inner_text() == f"{said.n_best[1].score:.3f}"
    assert two.locator("#confidence").inner_text() == f"confidence {100 * said.confidence:.0f} %"
    assert "chance" in two.locator("#confidence").get_attribute("title")


@pytest.mark.parametrize(("lang", "words"), [("en", "Some words were not translated"), ("zh", "有些词没有翻译")])
def test_a_warning_shows_in_the_language_of_the_page_and_where_it_is(look, lang, words):
    page = look(text=BAD, lang=lang)
    expect(page.locator("#warnings li")).to_contain_text(words)
    assert page.locator("#warnings li").get_attribute("data-kind") == "script"
    assert page.locator(".word.has-warning").count() == page.locator(".word").count() > 0


def test_the_translation_is_copied(two, said):
    two.context.grant_permissions(["clipboard-read", "clipboard-write"])
    two.locator("#copy").click()
    expect(two.locator("#copy")).to_have_text("Copied ✓")
    assert two.evaluate("navigator.clipboard.readText()") == said.text


def test_the_languages_are_swapped_and_chosen(look):
    page = look(text="I love cats.", **{"from": "en", "to": "zh"})
    page.wait_for_selector(".word")
    translation = page.locator("#words").inner_text()
    page.locator("#swap").click()
    expect(page.locator("#source")).to_have_value(translation)
    expect(page.locator("#direction")).to_have_value("zh>en")
    page.locator("#direction").select_option("")
    expect(page.locator("#direction option").first).to_have_text("Detected: Chinese → English")
    assert "from=" not in page.url


def drop(page, name, data):
    """A file let go over the page."""
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


def test_documents_are_dropped_or_picked_and_come_back_translated(look, translator):
    page = look()
    expect(page.locator(".documents > .note")).to_contain_text(".docx")
    document, kept = docx.Document(), io.BytesIO()
    document.add_paragraph(BOOK)
    document.save(kept)
    drop(page, "书 1.docx", kept.getvalue())
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


def test_a_file_of_another_kind_is_refused_kindly(look):
    page = look()
    expect(page.locator(".documents > .note")).to_contain_text(".docx")
    drop(page, "a.exe", b"MZ")
    expect(page.locator(".files .error")).to_have_text("this file type cannot be translated")
    page.locator(".files button").click()
    expect(page.locator(".files li")).to_have_count(0)


def test_everything_works_with_the_keyboard_alone(look, translator):
    page = look()
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
    assert len(lit(page, ".highlight-layer mark")) == 1
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
    assert len(lit(page, ".word")) >= 1


def test_a_long_text_is_shown_at_once_and_its_words_part_by_part(look):
    page = look()
    asked = []
    page.on("request", lambda request: "/api/v1/" in request.url and asked.append(request.post_data_json))
    long = "I love cats.\n" + "The cat sat on the mat. " * 90
    page.locator("#source").fill(long)
    page.wait_for_selector(".load-words")
    (only,) = [each for each in asked if each]
    assert (only["details"], only["n_best"]) == (False, 1)
    assert "text=" not in page.url  # an address has an end
    assert page.locator(".word").count() == 0
    whole = page.locator("#words").inner_text().replace("⋯", "")
    page.locator(".load-words").first.click()
    page.wait_for_selector(".word")
    assert asked[-1]["texts"] == ["I love cats.\n"]
    assert page.locator(".load-words").count() == 1
    assert page.locator("#words").inner_text().replace("⋯", "").split() == whole.split()
    page.locator("#language").click()
    page.wait_for_selector("html[lang=zh-CN] .word")
    assert page.locator("#source").input_value() == long


def test_looking_inside_opens_the_sentence(two, said):
    two.locator("#explore").click()
    two.wait_for_selector("main[data-screen=attention]")
    assert two.locator("#sentence").input_value() == said.source[slice(*said.sentences[0].source)]


def test_what_goes_wrong_is_said_kindly_and_can_be_tried_again(browser, site):
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    page.goto(f"{site.url}/?text=Hello.")
    page.wait_for_selector(".word")
    busy = json.dumps({"error": "the server is busy", "hint": "come back in a moment"})
    page.route(TRANSLATE, lambda route: route.fulfill(status=503, body=busy))
    page.locator("#source").fill("Good morning.")
    expect(page.locator(".error-message")).to_have_text("the server is busy – come back in a moment")
    page.unroute(TRANSLATE)
    page.route(TRANSLATE, lambda route: route.abort())
    page.locator("#again").click()
    expect(page.locator(".error-message")).to_contain_text("The server does not answer")
    page.unroute(TRANSLATE)
    page.locator("#again").click()
    page.wait_for_selector(".word")
    page.locator("#source").fill("a" * 100_001)
    expect(page.locator(".error-message")).to_contain_text("100,000 characters at once")
    context.close()


@pytest.mark.parametrize(("lang", "width", "scheme"), [("en", 1280, "light"), ("zh", 390, "dark")])
def test_nothing_is_in_the_way_of_anybody(look, scheme, lang, width):
    page = look(text=BAD, scheme=scheme, lang=lang, width=width)
    page.wait_for_selector("#warnings")
    page.locator("#n-best summary").click()
    page.locator(".word").nth(1).click()
    page.wait_for_selector(".alternative")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    box = page.locator("#popover").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    violations = Axe().run(page).response["violations"]
    assert [each["id"] for each in violations if each["impact"] in ("serious", "critical")] == []
