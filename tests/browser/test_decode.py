"""The decode screen shows the steps, beam trees and free runs that Python computes."""

import csv
import io
import re

import numpy as np
import pytest

from sixfold.explorer.beam import free_run, search_tree
from sixfold.explorer.explore import Explorer
from sixfold.translation.translator import Translator

TEXT, GIVEN = "The cat sleeps.", "猫在睡觉。"


@pytest.fixture(scope="module")
def explorer():
    with Translator(None, "cpu") as translator:
        yield Explorer(translator)


@pytest.fixture(scope="module")
def trace(explorer):
    return explorer.explore(TEXT, None, "en", "zh")


@pytest.fixture(scope="module")
def forced(explorer):
    return explorer.explore(TEXT, GIVEN, "en", "zh")


def rows(page):
    """Return the rows of the table of tokens: rank, token, logit, probability."""
    return page.eval_on_selector_all(
        "#choices tbody tr[data-rank]",
        "rows => rows.map(row => [Number(row.dataset.rank), row.querySelector('.cell-word').textContent,"
        " ...[...row.querySelectorAll('td')].map(cell => Number(cell.dataset.value))])",
    )


def softmax(logits):
    powers = np.exp(logits.astype(float) - logits.max())
    return powers / powers.sum()


def fact_text(page, fact):
    return page.locator(f"[data-fact={fact}]").inner_text()


def test_a_step_shows_the_models_logits_and_probabilities(open_page, trace):
    page = open_page("decode", text=TEXT, step=1)
    page.wait_for_selector("#choices tbody tr")
    step = trace.steps()[1]
    assert [(rank, text) for rank, text, *_ in rows(page)] == [
        (i, choice.text) for i, choice in enumerate(step.choices)
    ]
    for (_, _, logit, probability), choice in zip(rows(page), step.choices, strict=True):
        assert logit == pytest.approx(choice.logit, rel=1e-4, abs=1e-5)
        assert probability == pytest.approx(choice.probability, rel=1e-4)
    assert fact_text(page, "wrote") == step.wrote
    assert fact_text(page, "rank") == str(step.rank)
    assert float(fact_text(page, "entropy").split()[0]) == pytest.approx(step.entropy, rel=1e-3)


def test_keys_move_the_step_slider_and_the_selected_token(open_page, trace):
    page = open_page("decode", text=TEXT)
    page.wait_for_selector("#choices tbody tr")
    for key, step in (("ArrowRight", 1), ("End", len(trace.predicted) - 1), ("Home", 0), ("ArrowRight", 1)):
        page.locator("#step").press(key)
        page.wait_for_selector(f".translation-so-far [data-index='{step}'][aria-checked=true]")
        assert wait_for_written(page, trace.predicted.texts[step])
    assert page.locator(".translation-so-far .future").count() == len(trace.predicted) - 2
    page.locator("#next").press("Enter")
    page.wait_for_selector(".translation-so-far [data-index='2'][aria-checked=true]")
    assert "step=2" in page.url
    page.locator(".translation-so-far [aria-checked=true]").press("ArrowLeft")
    page.wait_for_selector(".translation-so-far [data-index='1'][aria-checked=true]:focus")
    page.locator("#play").press("Enter")
    page.wait_for_selector(".translation-so-far [data-index='2'][aria-checked=true]")


def wait_for_written(page, text):
    page.wait_for_function("text => document.querySelector('[data-fact=wrote]')?.textContent === text", arg=text)
    return True


def test_temperature_divides_all_logits_and_the_cut_offs_are_where_they_should_be(open_page, trace):
    page = open_page("decode", text=TEXT, step=1, temperature=0.5, topK=3, topP=0.5)
    page.wait_for_selector("#choices tbody tr")
    probabilities = softmax(trace["logits"][1] / 0.5)
    best = np.argsort(-trace["logits"][1], kind="stable")[:10]
    assert [row[3] for row in rows(page)] == pytest.approx(list(probabilities[best]), rel=1e-3)
    assert float(fact_text(page, "entropy").split()[0]) == pytest.approx(
        -(probabilities * np.log2(probabilities)).sum(), rel=1e-3
    )
    row_names = page.eval_on_selector_all(
        "#choices tbody tr", "rows => rows.map(row => row.dataset.cut ?? row.dataset.rank)"
    )
    assert row_names.index("k") == row_names.index("2") + 1
    nucleus_size = int((np.cumsum(np.sort(probabilities)[::-1]) < 0.5).sum()) + 1
    assert re.search(rf"\b{nucleus_size:,}\b", page.locator("[data-cut=p]").inner_text())
    page.locator("#temperature").press("ArrowLeft")
    expected = softmax(trace["logits"][1] / 0.45)[best[0]]
    page.wait_for_function(
        "value => Math.abs(Number(document.querySelector('#choices td:last-child').dataset.value) - value) < 1e-5",
        arg=expected,
    )


def test_the_tree_shows_pythons_beam_and_is_walked_with_arrows(open_page, trace):
    page = open_page("decode", text=TEXT, beam=3, width=2600)
    page.wait_for_selector("#hypotheses tbody tr")
    tree = search_tree(trace, 3)
    shown = page.eval_on_selector_all(
        "#tree [data-best]", "nodes => nodes.map(node => [node.dataset.node, node.querySelector('text').textContent])"
    )
    best = [node for node in tree.nodes if node.is_best]
    assert [int(node) for node, _ in shown] == [node.id for node in best]
    assert page.locator("#hypotheses tbody tr td:nth-child(2)").all_inner_texts() == [
        hypothesis.text for hypothesis in tree.hypotheses
    ]
    assert tree.hypotheses[0].text == trace.translation
    assert page.locator("#tree [data-node]").count() == len(tree.nodes)

    tree_view = page.locator("#tree")
    tree_view.press("Home")
    for key, node in (("ArrowRight", best[1]), ("ArrowLeft", best[0]), ("End", best[-1]), ("ArrowLeft", best[-2])):
        tree_view.press(key)
        assert_node_text(page, node)
    tree_view.press("Home")
    tree_view.press("ArrowRight")
    step = [node.id for node in tree.nodes if node.step == 1]
    tree_view.press("ArrowDown")
    assert_node_text(page, tree.nodes[step[step.index(best[1].id) + 1]])
    page.locator("#pruned").press("Space")
    page.wait_for_function("() => !document.querySelector('#tree [data-fate=pruned]')")
    assert page.locator("#tree [data-fate=ended]").count() == len(tree.hypotheses)


def assert_node_text(page, node):
    text = page.locator("#node").inner_text().replace("−", "-")
    assert text.startswith(f"{node.text}:")
    numbers = [float(number) for number in re.findall(r"-?\d+\.?\d*(?:e-\d+)?(?=[,;])", text.removeprefix(node.text))]
    assert numbers == pytest.approx([node.logprob, node.total, node.score], rel=1e-3, abs=1e-9)


def test_teacher_forcing_and_free_running_are_shown_step_by_step(open_page, forced):
    page = open_page("decode", text=TEXT, given=GIVEN)
    free = free_run(forced)
    page.wait_for_function("() => document.querySelectorAll('#teacher tr[data-line=\"2\"] .cell-word').length > 0")
    words = [page.locator(f"#teacher tr[data-line='{line}'] .cell-word").all_inner_texts() for line in range(3)]
    steps = forced.steps()
    assert words[0] == [step.wrote for step in steps]
    assert words[1] == [step.choices[0].text.removeprefix("▁") for step in steps]
    assert words[2] == [step.wrote for step in free]
    notes = page.locator("#teacher tr[data-line='0'] .note").all_inner_texts()
    assert [int(note.rpartition(" ")[2]) for note in notes] == [step.rank for step in steps]
    differs = page.locator("#teacher tr[data-line='0'] td").evaluate_all(
        "x => x.map(y => y.classList.contains('differs'))"
    )
    assert differs[: len(steps)] == [step.rank > 0 for step in steps]
    assert True in differs


def test_every_panel_saves_a_picture_and_data(open_page, trace):
    page = open_page("decode", text=TEXT, step=1)
    page.wait_for_selector("#hypotheses tbody tr")
    for panel in page.locator("section.panel").all():
        with page.expect_download() as waiting:
            panel.locator("[data-export=svg]").click()
        saved = waiting.value.path().read_bytes()
        assert saved.startswith(b"<svg")
        assert b"var(--" not in saved
    with page.expect_download() as waiting:
        page.locator("section.panel", has=page.locator("#tree")).locator("[data-export=png]").click()
    assert waiting.value.path().read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as waiting:
        page.locator("section.panel", has=page.locator("#choices")).locator("[data-export=data]").click()
    table = list(csv.reader(io.StringIO(waiting.value.path().read_text(encoding="utf-8"))))
    assert [row[1] for row in table[1:]] == [choice.text for choice in trace.steps()[1].choices]
