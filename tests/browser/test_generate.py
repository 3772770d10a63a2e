"""The generate screen shows what `Generator` writes, and the distributions that it draws from."""

import math

import pytest
import small_generators as generators
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect
from small_servers import Server, until

from sixfold.decoding.options import SamplingOptions
from sixfold.generation.generator import Generator
from sixfold.generation.options import GenerateOptions

PROMPT = "Once upon"
TOKENS = 16


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generators")
    generators.gpt2(folder / "gpt2")
    generators.llama(folder / "llama", max_position_embeddings=4000)
    return [
        generators.model_file(folder / "gpt2", folder / "gpt.safetensors", chat_template=generators.CHATML, ends=()),
        generators.model_file(folder / "llama", folder / "llama.safetensors", ends=()),
    ]


@pytest.fixture(scope="module")
def site(files):
    """A running `sixfold serve` with two models that write texts, and none that translates."""
    with Server(*files) as server:
        yield server


@pytest.fixture(scope="module")
def gpt(files):
    with Generator(files[0], "cpu", 1) as generator:
        yield generator


def write(page, prompt=PROMPT):
    page.wait_for_selector("#model option", state="attached")
    page.fill("#prompt", prompt)
    page.click("#write")
    expect(page.locator("#write")).to_have_text("Write")
    expect(page.locator("#writing-status")).not_to_be_empty()


def written(page):
    return [text if text != "·" else "" for text in page.locator("#written [data-index]").all_text_contents()]


def distribution(page):
    """Return the rows of the table: id, probability of the model, probability to be drawn."""
    return page.eval_on_selector_all(
        "#next-tokens tbody tr",
        "rows => rows.map(row => [Number(row.dataset.id), ...[...row.querySelectorAll('td')]"
        ".map(cell => Number(cell.dataset.value))])",
    )


def test_the_text_is_the_generators_for_these_options(open_page, gpt):
    page = open_page("generate", maxTokens=TOKENS, seed=7, temperature=0.8, drawK=50, drawP=0.95, penalty=1.2)
    write(page)
    options = GenerateOptions(TOKENS, sampling=SamplingOptions(1.2, 0.8, 50, 0.95, 0.0, 7))
    ((expected,),) = gpt.generate([PROMPT], options)
    assert written(page) == [token.text for token in expected.tokens]
    assert page.locator("#written .prompt-text").inner_text() == PROMPT
    assert page.locator("nav a").all_text_contents() == [
        "Generate", "Attention", "Decode", "Walk", "Masks", "Positions", "Embeddings", "Shapes"
    ]  # fmt: skip


def test_a_place_shows_both_distributions_and_the_sliders_change_what_is_drawn(open_page, gpt):
    page = open_page("generate", maxTokens=TOKENS, seed=7)
    write(page)
    page.click("#written [data-index='3']")
    page.wait_for_selector("#next-tokens .written")
    options = GenerateOptions(TOKENS, sampling=SamplingOptions(seed=7))
    tokens = [token.id for token in gpt.generate([PROMPT], options)[0][0].tokens]
    ids = [*gpt.encode(PROMPT), *tokens[:3]]

    def check(**changes):
        expected = gpt.next_tokens(ids, SamplingOptions(**changes), 20, [tokens[3]])
        rows = distribution(page)
        assert [row[0] for row in rows] == [token.id for token in expected.tokens]
        assert [row[1] for row in rows] == pytest.approx(
            [math.exp(token.logprob) for token in expected.tokens], rel=1e-3
        )
        assert [row[2] for row in rows] == pytest.approx([token.drawn for token in expected.tokens], rel=1e-3, abs=1e-9)
        return rows

    before = check()
    page.fill("#temperature", "0.4")
    page.wait_for_function(
        "drawn => Math.abs(document.querySelector('#next-tokens td:last-child').dataset.value - drawn) > 1e-6",
        arg=before[0][2],
    )
    after = check(temperature=0.4)
    assert after[0][2] > before[0][2]  # the likeliest token is drawn more often when it is colder
    page.fill("#drawK", "3")
    page.wait_for_function(
        "() => Number(document.querySelector('#next-tokens tr:last-child td:last-child').dataset.value) === 0"
    )
    assert [row[2] > 0 for row in check(temperature=0.4, top_k=3)][:4] == [True, True, True, False]
    assert "3 tokens of the vocabulary can be drawn" in page.locator("#next-note").inner_text()


def test_another_token_is_picked_and_the_text_goes_on_from_there(open_page, gpt):
    page = open_page("generate", maxTokens=TOKENS, temperature=0)
    write(page)
    before = written(page)
    page.click("#written [data-index='4']")
    page.wait_for_selector("#next-tokens .written")
    picked = int(page.locator("#next-tokens tbody tr").nth(2).get_attribute("data-id"))
    page.locator("#next-tokens tbody tr").nth(2).locator("button").click()
    expect(page.locator("#written .changed")).to_have_count(1)
    expect(page.locator("#write")).to_have_text("Write")
    expect(page.locator("#written [data-index]")).to_have_count(5 + TOKENS)
    tokens = gpt.generate([PROMPT], GenerateOptions(TOKENS))[0][0].tokens
    ids = [*gpt.encode(PROMPT), *(token.id for token in tokens[:4]), picked]
    rest = gpt.generate([ids], GenerateOptions(TOKENS))[0][0].tokens
    assert written(page)[:4] == before[:4]
    assert written(page)[5:] == [token.text for token in rest]


def test_the_arrow_at_the_end_shows_what_comes_next(open_page, gpt):
    page = open_page("generate", maxTokens=4, temperature=0)
    write(page)
    page.click("#written .next-token")
    page.wait_for_selector("#next-tokens tr[data-id]")
    tokens = gpt.generate([PROMPT], GenerateOptions(4))[0][0].tokens
    expected = gpt.next_tokens([*gpt.encode(PROMPT), *(token.id for token in tokens)], SamplingOptions(temperature=0.0))
    assert [row[0] for row in distribution(page)] == [token.id for token in expected.tokens]
    assert [row[2] for row in distribution(page)] == [1.0] + [0.0] * 19


def test_a_message_is_answered_with_the_template(open_page, gpt):
    page = open_page("generate", maxTokens=8, temperature=0)
    page.check("#chat")
    write(page, "How are you?")
    ((expected,),) = gpt.generate([[{"role": "user", "content": "How are you?"}]], GenerateOptions(8))
    assert written(page) == [token.text for token in expected.tokens]


def test_writing_is_stopped_and_a_change_of_language_keeps_the_text(open_page, site):
    page = open_page("generate", maxTokens=512, model="llama", temperature=1)
    page.wait_for_selector("#model option", state="attached")
    page.evaluate("() => { document.querySelector('#maxTokens').max = 3900; }")
    page.fill("#maxTokens", "3900")
    page.click("#write")
    page.wait_for_selector("#written [data-index='3']")
    page.click("#write")
    expect(page.locator("#writing-status")).to_have_text("Stopped.")
    assert until(lambda: b"sixfold_writing_requests 0" in site.ask("/metrics")[2])
    count = len(written(page))
    assert 3 < count < 3900
    page.click("#language")
    expect(page.locator("h1")).to_have_text("生成")
    assert len(written(page)) == count


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 390)])
def test_the_screen_is_accessible_and_fits(open_page, scheme, width):
    page = open_page("generate", maxTokens=12, seed=1, scheme=scheme, width=width)
    write(page)
    page.click("#written [data-index='2']")
    page.wait_for_selector("#next-tokens tr[data-id]")
    violations = Axe().run(page).response["violations"]
    assert violations == [], [(each["id"], each["nodes"][0]["html"]) for each in violations]
    assert page.evaluate("() => document.documentElement.scrollWidth") <= width
