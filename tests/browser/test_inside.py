"""Masks, positions, embeddings and shapes: what the page shows are Python's numbers."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import pytest
from small_models import SMALL, random_model
from small_servers import Server

from sixfold import modelfile
from sixfold.config import Config, TokenizerConfig
from sixfold.explorer import embeddings
from sixfold.explorer.forward import angles, sinusoids
from sixfold.explorer.masks import masks
from sixfold.model.transformer import weights_of
from sixfold.text.learn import train_tokenizer
from sixfold.translation.loading import shipped
from sixfold.weights import shapes

BATCH = ["I am tired.", "The cat sleeps on the mat.", "Hi"]

# The colours at the middles of cells.
CELLS = """([selector, cells]) => {
    const canvas = document.querySelector(selector), { left, top, across, down } = canvas.dataset;
    return cells.map(([row, column]) => {
        const [x, y] = [+left + (column + 0.5) * across, +top + (row + 0.5) * down].map(Math.floor);
        return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3);
    });
}"""


@pytest.fixture(scope="module")
def model():
    return modelfile.load(shipped()[0])


def saved(page, panel, kind="data"):
    """What a panel gives to be kept, by the panel's place on the page."""
    with page.expect_download() as waiting:
        page.locator("section.panel").nth(panel).locator(f"[data-export={kind}]").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    return (
        json.loads(text) if waiting.value.suggested_filename.endswith("json") else list(csv.reader(io.StringIO(text)))
    )


def numbers(rows):
    """Of a table without its head and its names."""
    return np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def masked(look):
    def open_masks(**how):
        page = look("masks", batch="\n".join(BATCH), row=0, **how)
        page.wait_for_selector(".row-table")
        return page

    return open_masks


def test_the_masks_of_a_batch_are_python_s(masked, model):
    page = masked()
    config = model.config.model
    expected = masks(model.tokenizer, BATCH, [model.tokenizer.tag("zh")], eos=config.eos)
    assert expected.padding.sum(axis=1).tolist() != [expected.padding.shape[1]] * 3
    assert np.array_equal(numbers(saved(page, 0)), expected.padding)
    assert np.array_equal(numbers(saved(page, 1)), expected.causal)
    assert np.array_equal(numbers(saved(page, 2)), expected.both[0])
    assert saved(page, 2)[0][1:] == expected.pieces[0].texts
    closed = f"{(~expected.padding).sum()} of {expected.padding.size}"
    assert closed in page.locator("section.panel").nth(0).inner_text()


@pytest.mark.parametrize(("scheme", "colour", "closed"), [
    ("light", [69, 85, 174], [236, 238, 243]), ("dark", [126, 153, 227], [34, 38, 47]),
])  # fmt: skip
def test_open_cells_are_dark_and_closed_ones_are_not_drawn(masked, model, scheme, colour, closed):
    page = masked(scheme=scheme)
    length = masks(model.tokenizer, BATCH, [0], eos=0).padding.shape[1]
    cells = [[length - 1, 1], [1, length - 1], [2, 1], [length - 1, length - 1]]
    found = page.evaluate(CELLS, [".columns .panel:nth-child(2) canvas", cells])
    assert np.abs(np.array(found) - [colour, closed, colour, closed]).max() <= 2


def test_a_masked_place_has_a_weight_of_exactly_nothing(masked):
    page = masked()
    rows = numbers(saved(page, 3))
    is_closed = rows[:, 1] == -np.inf
    assert 0 < is_closed.sum() < len(rows)
    assert (rows[is_closed, 2] == 0).all()
    assert rows[:, 2].sum() == pytest.approx(1, abs=1e-5)
    assert page.locator(".row-table tr.closed").count() == is_closed.sum()
    shown = page.locator(".row-table tbody td:last-child").all_inner_texts()
    assert [text == "0" for text in shown] == is_closed.tolist()


def test_a_batch_is_typed_and_walked_by_keyboard_alone(masked):
    page = masked()
    page.focus(".batch .token-row [aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.search.includes('row=1')")
    page.focus(".columns .panel:nth-child(1) canvas")
    page.keyboard.press("ArrowRight")
    assert page.locator("#live").inner_text().endswith("may not attend to The")
    page.keyboard.press("ArrowDown")
    assert page.locator("#live").inner_text() == "The may attend to The"
    page.focus("#batch")
    page.keyboard.press("Control+A")
    page.keyboard.type("One\nAnd two")
    page.wait_for_function("() => document.querySelectorAll('.batch .token-button').length === 2")
    assert "batch=One%0AAnd+two" in page.url


# --- positions --------------------------------------------------------------------------------------------------------


def test_the_table_of_positions_is_that_of_the_forward_pass(look):
    page = look("positions")
    page.wait_for_selector(".panel canvas[data-left]")
    table = sinusoids(np.arange(128), 512, "interleaved")
    assert np.allclose(numbers(saved(page, 0)), table, atol=1e-6)
    assert np.allclose(numbers(saved(page, 1)), table @ table.T, atol=1e-3)
    lines = numbers(saved(page, 2))
    expected = [np.diag(table @ table.T, apart) for apart in range(128)]
    assert np.allclose(lines, [[each.min(), each.mean(), each.max()] for each in expected], atol=1e-3)
    assert (lines[:, 2] - lines[:, 0]).max() < 1e-3
    assert "depends on the distance alone" in page.locator(".panel").nth(2).inner_text()
    assert np.allclose(numbers(saved(page, 3)), table[:, 64:66], atol=1e-6)


def test_positive_is_blue_and_negative_is_orange(look):
    page = look("positions", view="32")
    page.wait_for_selector(".panel canvas[data-left]")
    table = sinusoids(np.arange(32), 512, "interleaved")
    cells = [[5, 0], [14, 0], [20, 511]]  # −0.96, 0.99, 1
    assert table[5, 0] < -0.9 < 0.9 < table[14, 0]
    orange, *blue = page.evaluate(CELLS, [".panel canvas", cells])
    assert orange[0] > orange[2] + 80
    assert all(each[2] > each[0] + 60 for each in blue)


def test_the_slider_walks_through_the_waves(look):
    page = look("positions", column=0)
    page.wait_for_selector(".panel canvas[data-left]")
    said = page.locator("output[for=pair]")
    assert "One wave takes 6.283 positions" in said.inner_text()
    page.focus("#pair")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.search.includes('column=1')")
    wave = f"One wave takes {2 * np.pi * 10000 ** (2 / 512):.4g} positions"
    assert "dimension 2 is the sine (solid), dimension 3 the cosine (dashed)" in said.inner_text()
    assert wave in said.inner_text()


@pytest.fixture(scope="module")
def toys(tmp_path_factory):
    """A server with models whose positions are of other kinds."""
    folder = tmp_path_factory.mktemp("toys")
    tokenizer = train_tokenizer(["hello world 你好 世界"] * 9, TokenizerConfig(vocab=300))
    files = []
    for kind in ("rotary", "none", "learned"):
        shape = tokenizer.fit(replace(SMALL, positions=kind, rotary_base=100.0, max_length=64, decoder_layers=5))
        files.append(folder / f"{kind}.safetensors")
        card = {"languages": {"source": "zh", "target": "en"}}
        modelfile.save(files[-1], Config(model=shape), weights_of(random_model(shape)), tokenizer, card)
    with Server(*files) as started:
        yield started


@pytest.fixture
def toy(browser, toys):
    page = browser.new_page()
    page.set_default_timeout(15_000)

    def open_toy(screen, **state):
        page.goto(f"{toys.url}/?{urlencode({'screen': screen, 'lang': 'en', **state})}")
        return page

    yield open_toy
    page.close()


def test_rotations_are_shown_as_the_angles_that_the_forward_pass_turns_by(toy):
    page = toy("positions", model="rotary", view="32")
    page.wait_for_selector(".panel canvas[data-left]")
    angle = angles(np.arange(32), 4, 100.0)
    table = numbers(saved(page, 0))
    assert np.allclose(table[:, 0::2], np.cos(angle), atol=1e-6)
    assert np.allclose(table[:, 1::2], np.sin(angle), atol=1e-6)
    assert np.allclose(numbers(saved(page, 1)), table @ table.T, atol=1e-5)


def test_learned_positions_are_the_rows_of_the_model_and_are_not_called_waves(toy):
    page = toy("positions", model="learned")
    page.wait_for_selector(".panel canvas[data-left]")
    assert numbers(saved(page, 0)).shape == (64, 16)  # it has no more
    assert "differ by up to" in page.locator(".panel").nth(2).inner_text()
    assert "as they were learned" in page.locator("output[for=pair]").inner_text()
    assert page.locator(".equation").count() == 0


def test_a_model_without_positions_is_said_to_have_none(toy):
    page = toy("positions", model="none")
    page.wait_for_selector("text=This model has no positions")
    assert page.locator(".panel").count() == 0


# --- embeddings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "lang"), [("black", "en"), ("黑", "zh")])
def test_the_neighbours_of_a_word_are_python_s(look, model, word, lang):
    page = look("embeddings", lang=lang)
    page.wait_for_selector(".neighbour")
    expected = embeddings.neighbours(model, word, 12)
    assert saved(page, 0)[1:] == [[each.text, str(each.cosine)] for each in expected]
    assert page.locator(".neighbour .neighbour-cosine").all_inner_texts() == [f"{each.cosine:.3f}" for each in expected]
    if word == "black":
        assert "brown" in [each.text for each in expected]


def test_one_walks_from_word_to_word_by_keyboard(look):
    page = look("embeddings")
    page.focus(".neighbour")
    second = page.locator(".neighbour").nth(1).get_attribute("data-word")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"text=Nearest to “{second}”")
    assert page.locator("#word").input_value() == second
    page.wait_for_selector(f'.point[data-word="{second}"]')
    page.focus('.point[data-word="cat"]')
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Nearest to “cat”")


def test_two_words_and_two_sentences_are_compared(look, model):
    page = look("embeddings", word="dog", other="cat")
    page.wait_for_function("() => document.querySelector('.cosine').textContent")
    shown = page.locator(".cosine").inner_text()
    assert float(shown) == pytest.approx(embeddings.similar(model, "dog", "cat"), rel=1e-3)
    page.focus(".option-row [aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#other').value === '我喜欢猫。'")
    page.wait_for_function("before => document.querySelector('.cosine').textContent !== before", arg=shown)
    kept = saved(page, 1)
    assert kept["sentences"] is True
    assert kept["cosine"] == pytest.approx(embeddings.similar_sentences(model, kept["one"], kept["other"]), abs=1e-5)


def test_the_map_has_all_words_and_no_two_labels_meet(look, model):
    page = look("embeddings", width=390, map="dog, cat, 狗, London")
    page.wait_for_selector('.point[data-word="London"]')
    words = [each.get_attribute("data-word") for each in page.locator(".point").all()]
    assert {"black", "brown", "dog", "cat", "狗", "London"} <= set(words)
    rows = saved(page, 2)
    assert [row[0] for row in rows[1:]] == words
    assert np.allclose(numbers(rows), embeddings.plane(model, words), atol=1e-4)
    boxes = [each.bounding_box() for each in page.locator(".point text").all()]
    meeting = [
        (one, other)
        for at, one in enumerate(boxes)
        for other in boxes[at + 1 :]
        if abs(one["x"] + one["width"] / 2 - other["x"] - other["width"] / 2) < (one["width"] + other["width"]) / 2 - 2
        and abs(one["y"] - other["y"]) < one["height"] - 4
    ]
    assert meeting == []


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_every_parameter_is_counted_once(look, model):
    page = look("shapes")
    page.wait_for_selector(".tree")
    config = model.config.model
    kept = saved(page, 4)
    assert {each["name"]: tuple(each["shape"]) for each in kept["weights"]} == shapes(config)
    total = sum(each["count"] for each in kept["weights"])
    assert f"{total:,} parameters" in page.locator(".lead").inner_text()
    parts = {row[0]: int(row[1]) for row in saved(page, 0)[1:]}
    assert sum(parts.values()) == total
    forward = parts["feed-forward"]
    share = forward / (forward + parts["attention"])
    said = page.locator("#feed-forward-share").inner_text()
    assert f"{share:.1%} of the parameters in layers and {forward / total:.1%} of all" in said
    widths = page.evaluate("[...document.querySelectorAll('[data-part] rect')].map(each => each.width.baseVal.value)")
    counts = np.array([count for count in parts.values() if count])
    assert np.allclose(np.array(widths) / sum(widths), counts / counts.sum(), atol=0.01)


def test_memory_is_what_the_file_would_take(look, model):
    page = look("shapes")
    page.wait_for_selector(".tree")
    rows = {row[0]: int(row[1].replace(",", "")) for row in saved(page, 2)[1:]}
    stored = {name: each.data.nbytes for name, each in model.tensors.items() if "shortlist" not in name}
    assert rows["int8"] == sum(stored.values())
    assert rows["this file, with its tokeniser"] == Path(shipped()[0]).stat().st_size
    assert rows["f32"] == 2 * rows["bf16"]


def test_the_tree_opens_by_keyboard(look):
    page = look("shapes")
    page.wait_for_selector(".tree")
    leaf = page.locator(".leaf", has_text="32000 × 512")
    assert not leaf.is_visible()
    page.locator("summary", has_text=re.compile("^embedding")).focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.press("Shift+Tab")
    page.locator("summary", has_text=re.compile("^token")).focus()
    page.keyboard.press("Enter")
    assert leaf.is_visible()


def test_the_stacks_are_drawn_from_the_config(look, toy):
    page = look("shapes")
    page.wait_for_selector(".crossing")
    assert page.locator(".crossing").count() == 2  # one to each layer of the decoder
    assert page.locator(".layer text").all_text_contents() == ["10 × layer", "layer 0", "layer 1"]
    page = toy("shapes", model="rotary")
    page.wait_for_selector(".crossing")
    assert page.locator(".layer text").all_text_contents() == ["layer 0", "layer 1", "5 × layer"]
    assert page.locator(".crossing").count() == 1
    assert page.locator("text=rotary positions").count() == 2
