"""The screens of the explorer show a decoder-only model: a text that is read, and what would follow."""

import pytest
import small_generators
from small_servers import Server

from sixfold import explore
from sixfold.explorer.lens import lens

TEXT = "The quick brown fox"
HEAD_PANELS = ["One token across all heads", "What it attends to"]


def headings(page):
    """Return the titles of the panels that are shown."""
    return [each.inner_text() for each in page.query_selector_all("main h2") if each.is_visible()]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    small_generators.llama(folder / "llama")
    return small_generators.model_file(folder / "llama", folder / "llama.safetensors")


@pytest.fixture(scope="module")
def site(llama):
    """A server of a decoder-only model and of no other."""
    with Server(llama, requests_per_minute=100_000) as server:
        yield server


@pytest.fixture(scope="module")
def trace(llama):
    return explore(TEXT, model=llama)


def test_attention_is_causal_and_nothing_speaks_of_translation(open_page, trace):
    page = open_page("attention", text=TEXT)
    page.wait_for_selector(".query-tokens [aria-checked=true]")
    rows = page.eval_on_selector_all(".query-tokens [role=radio]", "items => items.map(item => item.textContent)")
    assert rows == trace.labels("decoder")[0]
    assert page.text_content(".query-tokens [aria-checked=true]") == rows[-1]
    assert page.text_content("#translation") == f"likeliest next token: {trace.predicted.texts[-1]}"
    assert not page.is_visible("#given")
    assert not page.is_visible("#direction")
    assert headings(page) == ["Query token", "All heads", "Selected head", *HEAD_PANELS, "Compare"]
    assert "translation" not in page.inner_text(".attention").lower()
    page.click('[data-value="1"]')  # words
    page.wait_for_function(
        f"document.querySelectorAll('.query-tokens [role=radio]').length == {len(trace.target.words)}"
    )
    words = page.eval_on_selector_all(".query-tokens [role=radio]", "items => items.map(item => item.textContent)")
    assert words == trace.target.word_texts


def test_the_lens_shows_the_numbers_of_python_and_follows_the_step(open_page, trace):
    found = lens(trace)
    page = open_page("decode", text=TEXT, step=2)
    page.wait_for_selector("#lens td")
    cells = page.eval_on_selector_all(
        "#lens tbody tr", "rows => rows.map(row => [...row.querySelectorAll('td')].map(cell =>"
        " [cell.querySelector('.cell-word').textContent, Number(cell.dataset.rank)]))",
    )  # fmt: skip
    expected = zip(found.texts, found.ranks.tolist(), strict=True)
    assert cells == [[list(cell) for cell in zip(*row, strict=True)] for row in expected]
    assert page.eval_on_selector_all("#lens td.current", "cells => cells.map(cell => cell.dataset.step)") == ["2"] * 3
    page.click('#lens td[data-layer="1"][data-step="4"]')
    page.wait_for_selector('#lens td.current[data-step="4"]')
    assert page.input_value("#step") == "4"
    assert headings(page) == ["The text so far", "Logits, softmax, choice", "Logit lens", "Beam tree"]


def test_a_walk_ends_in_the_probability_of_the_next_token(open_page, trace):
    page = open_page("walk", text=TEXT, stage="probabilities")
    page.wait_for_selector("[data-ready]")
    row = len(trace.target) - 1
    assert page.get_attribute("[data-ready]", "data-ready").startswith(f"decoder.layers.1.self_attention.0.{row}.")
    value = float(page.get_attribute("#stage-probabilities .value", "data-value"))
    assert value == pytest.approx(trace["probabilities"][row].max(), abs=1e-5)
    assert page.query_selector("#stage-sum") is None  # rotary positions are not added
    assert page.query_selector("#stage-query_rotated") is not None


@pytest.mark.parametrize("screen", ["masks", "positions", "shapes", "embeddings"])
def test_the_other_screens_open_without_an_error(open_page, screen):
    page = open_page(screen, text=TEXT, batch=f"The\n{TEXT}")
    page.wait_for_load_state("networkidle")
    assert [error.inner_text() for error in page.query_selector_all(".error") if error.is_visible()] == []
