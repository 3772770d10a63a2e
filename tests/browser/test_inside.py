"""The screens of masks, positions, embeddings and shapes show the numbers of Python."""

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
from sixfold.explorer.masks import batch_masks
from sixfold.model.transformer import weights_of
from sixfold.text.learn import train_tokenizer
from sixfold.translation.loading import shipped_models
from sixfold.weights import shapes

BATCH = ["I am tired.", "The cat sleeps on the mat.", "Hi"]

# Return the colours in the middle of cells.
CELLS = """([selector, cells]) => {
    const canvas = document.querySelector(selector), { left, top, across, down } = canvas.dataset;
    return cells.map(([row, column]) => {
        const [x, y] = [+left + (column + 0.5) * across, +top + (row + 0.5) * down].map(Math.floor);
        return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3);
    });
}"""


@pytest.fixture(scope="module")
def model():
    return modelfile.load(shipped_models()[0])


def download(page, panel, kind="data"):
    """Return the data that a panel saves; panels are numbered from 0."""
    with page.expect_download() as waiting:
        page.locator("section.panel").nth(panel).locator(f"[data-export={kind}]").click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    return (
        json.loads(text) if waiting.value.suggested_filename.endswith("json") else list(csv.reader(io.StringIO(text)))
    )


def numbers(rows):
    """Return the numbers of a table, without its header and row names."""
    return np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])


# --- masks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def open_masks_page(open_page):
    def open_masks(**options):
        page = open_page("masks", batch="\n".join(BATCH), row=0, **options)
        page.wait_for_selector(".row-table")
        return page

    return open_masks


def test_the_masks_of_a_batch_are_python_s(open_masks_page, model):
    page = open_masks_page()
    config = model.config.model
    expected = batch_masks(model.tokenizer, BATCH, [model.tokenizer.tag("zh")], [config.eos])
    assert expected.padding.sum(axis=1).tolist() != [expected.padding.shape[1]] * 3
    assert np.array_equal(numbers(download(page, 0)), expected.padding)
    assert np.array_equal(numbers(download(page, 1)), expected.causal)
    assert np.array_equal(numbers(download(page, 2)), expected.combined[0])
    assert download(page, 2)[0][1:] == expected.pieces[0].texts
    closed = f"{(~expected.padding).sum()} of {expected.padding.size}"
    assert closed in page.locator("section.panel").nth(0).inner_text()


@pytest.mark.parametrize(("scheme", "colour", "closed"), [
    ("light", [69, 85, 174], [236, 238, 243]), ("dark", [126, 153, 227], [34, 38, 47]),
])  # fmt: skip
def test_open_cells_are_dark_and_closed_ones_are_not_drawn(open_masks_page, model, scheme, colour, closed):
    page = open_masks_page(scheme=scheme)
    length = batch_masks(model.tokenizer, BATCH, [0], [0]).padding.shape[1]
    cells = [[length - 1, 1], [1, length - 1], [2, 1], [length - 1, length - 1]]
    pixels = page.evaluate(CELLS, [".columns .panel:nth-child(2) canvas", cells])
    assert np.abs(np.array(pixels) - [colour, closed, colour, closed]).max() <= 2


def test_a_masked_position_has_a_weight_of_exactly_zero(open_masks_page):
    page = open_masks_page()
    rows = numbers(download(page, 3))
    is_closed = rows[:, 1] == -np.inf
    assert 0 < is_closed.sum() < len(rows)
    assert (rows[is_closed, 2] == 0).all()
    assert rows[:, 2].sum() == pytest.approx(1, abs=1e-5)
    assert page.locator(".row-table tr.closed").count() == is_closed.sum()
    shown = page.locator(".row-table tbody td:last-child").all_inner_texts()
    assert [text == "0" for text in shown] == is_closed.tolist()


def test_a_batch_is_typed_and_explored_by_keyboard_alone(open_masks_page):
    page = open_masks_page()
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


def test_the_table_of_positions_is_that_of_the_forward_pass(open_page):
    page = open_page("positions")
    page.wait_for_selector(".panel canvas[data-left]")
    table = sinusoids(np.arange(128), 512, "interleaved")
    assert np.allclose(numbers(download(page, 0)), table, atol=1e-6)
    assert np.allclose(numbers(download(page, 1)), table @ table.T, atol=1e-3)
    lines = numbers(download(page, 2))
    expected = [np.diag(table @ table.T, apart) for apart in range(128)]
    assert np.allclose(lines, [[products.min(), products.mean(), products.max()] for products in expected], atol=1e-3)
    assert (lines[:, 2] - lines[:, 0]).max() < 1e-3
    assert "depends on the distance alone" in page.locator(".panel").nth(2).inner_text()
    assert np.allclose(numbers(download(page, 3)), table[:, 64:66], atol=1e-6)


def test_positive_is_blue_and_negative_is_orange(open_page):
    page = open_page("positions", view="32")
    page.wait_for_selector(".panel canvas[data-left]")
    table = sinusoids(np.arange(32), 512, "interleaved")
    cells = [[5, 0], [14, 0], [20, 511]]  # −0.96, 0.99, 1
    assert table[5, 0] < -0.9 < 0.9 < table[14, 0]
    orange, *blue = page.evaluate(CELLS, [".panel canvas", cells])
    assert orange[0] > orange[2] + 80
    assert all(colour[2] > colour[0] + 60 for colour in blue)


def test_the_slider_walks_through_the_waves(open_page):
    page = open_page("positions", column=0)
    page.wait_for_selector(".panel canvas[data-left]")
    description = page.locator("output[for=pair]")
    assert "One wave takes 6.283 positions" in description.inner_text()
    page.focus("#pair")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.search.includes('column=1')")
    wave = f"One wave takes {2 * np.pi * 10000 ** (2 / 512):.4g} positions"
    assert "dimension 2 is the sine (solid), dimension 3 the cosine (dashed)" in description.inner_text()
    assert wave in description.inner_text()


@pytest.fixture(scope="module")
def toy_server(tmp_path_factory):
    """A server with small models that have other kinds of positions."""
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
def open_toy_page(browser, toy_server):
    page = browser.new_page()
    page.set_default_timeout(60_000)

    def open_toy(screen, **state):
        page.goto(f"{toy_server.url}/?{urlencode({'screen': screen, 'lang': 'en', **state})}")
        return page

    yield open_toy
    page.close()


def test_rotations_are_shown_as_the_angles_that_the_forward_pass_turns_by(open_toy_page):
    page = open_toy_page("positions", model="rotary", view="32")
    page.wait_for_selector(".panel canvas[data-left]")
    angle = angles(np.arange(32), 4, 100.0)
    table = numbers(download(page, 0))
    assert np.allclose(table[:, 0::2], np.cos(angle), atol=1e-6)
    assert np.allclose(table[:, 1::2], np.sin(angle), atol=1e-6)
    assert np.allclose(numbers(download(page, 1)), table @ table.T, atol=1e-5)


def test_learned_positions_are_the_rows_of_the_model_and_are_not_called_waves(open_toy_page):
    page = open_toy_page("positions", model="learned")
    page.wait_for_selector(".panel canvas[data-left]")
    assert numbers(download(page, 0)).shape == (64, 16)  # the model has 64 positions
    assert "differ by up to" in page.locator(".panel").nth(2).inner_text()
    assert "as they were learned" in page.locator("output[for=pair]").inner_text()
    assert page.locator(".equation").count() == 0


def test_a_model_without_positions_is_said_to_have_none(open_toy_page):
    page = open_toy_page("positions", model="none")
    page.wait_for_selector("text=This model has no positions")
    assert page.locator(".panel").count() == 0


# --- embeddings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "lang"), [("black", "en"), ("黑", "zh")])
def test_the_neighbours_of_a_word_are_python_s(open_page, model, word, lang):
    page = open_page("embeddings", lang=lang)
    page.wait_for_selector(".neighbour")
    expected = embeddings.neighbours(model, word, 12)
    assert download(page, 0)[1:] == [[neighbour.text, str(neighbour.cosine)] for neighbour in expected]
    assert page.locator(".neighbour .neighbour-cosine").all_inner_texts() == [
        f"{neighbour.cosine:.3f}" for neighbour in expected
    ]
    if word == "black":
        assert "brown" in [neighbour.text for neighbour in expected]


def test_words_are_explored_by_keyboard(open_page):
    page = open_page("embeddings")
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


def test_two_words_and_two_sentences_are_compared(open_page, model):
    page = open_page("embeddings", word="dog", other="cat")
    page.wait_for_function("() => document.querySelector('.cosine').textContent")
    shown = page.locator(".cosine").inner_text()
    assert float(shown) == pytest.approx(embeddings.similar(model, "dog", "cat"), rel=1e-3)
    page.focus(".option-row [aria-checked=true]")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelector('#other').value === '我喜欢猫。'")
    page.wait_for_function("before => document.querySelector('.cosine').textContent !== before", arg=shown)
    exported = download(page, 1)
    assert exported["sentences"] is True
    assert exported["cosine"] == pytest.approx(
        embeddings.similar_sentences(model, exported["one"], exported["other"]), abs=1e-5
    )


def test_the_map_has_all_words_and_no_two_labels_overlap(open_page, model):
    page = open_page("embeddings", width=390, map="dog, cat, 狗, London")
    page.wait_for_selector('.point[data-word="London"]')
    words = [point.get_attribute("data-word") for point in page.locator(".point").all()]
    assert {"black", "brown", "dog", "cat", "狗", "London"} <= set(words)
    rows = download(page, 2)
    assert [row[0] for row in rows[1:]] == words
    assert np.allclose(numbers(rows), embeddings.pca_projection(model, words), atol=1e-4)
    boxes = [point.bounding_box() for point in page.locator(".point text").all()]
    overlapping = [
        (first, second)
        for index, first in enumerate(boxes)
        for second in boxes[index + 1 :]
        if abs(first["x"] + first["width"] / 2 - second["x"] - second["width"] / 2)
        < (first["width"] + second["width"]) / 2 - 2
        and abs(first["y"] - second["y"]) < first["height"] - 4
    ]
    assert overlapping == []


# --- shapes -----------------------------------------------------------------------------------------------------------


def test_every_parameter_is_counted_once(open_page, model):
    page = open_page("shapes")
    page.wait_for_selector(".tree")
    config = model.config.model
    exported = download(page, 4)
    assert {weight["name"]: tuple(weight["shape"]) for weight in exported["weights"]} == shapes(config)
    total = sum(weight["count"] for weight in exported["weights"])
    assert f"{total:,} parameters" in page.locator(".lead").inner_text()
    parts = {row[0]: int(row[1]) for row in download(page, 0)[1:]}
    assert sum(parts.values()) == total
    feed_forward = parts["feed-forward"]
    share = feed_forward / (feed_forward + parts["attention"])
    text = page.locator("#feed-forward-share").inner_text()
    assert f"{share:.1%} of the parameters in layers and {feed_forward / total:.1%} of all" in text
    widths = page.evaluate("[...document.querySelectorAll('[data-part] rect')].map(each => each.width.baseVal.value)")
    counts = np.array([count for count in parts.values() if count])
    assert np.allclose(np.array(widths) / sum(widths), counts / counts.sum(), atol=0.01)


def test_memory_is_what_the_file_would_take(open_page, model):
    page = open_page("shapes")
    page.wait_for_selector(".tree")
    rows = {row[0]: int(row[1].replace(",", "")) for row in download(page, 2)[1:]}
    stored = {name: tensor.data.nbytes for name, tensor in model.tensors.items() if "shortlist" not in name}
    assert rows["int8"] == sum(stored.values())
    assert rows["this file, with its tokeniser"] == Path(shipped_models()[0]).stat().st_size
    assert rows["f32"] == 2 * rows["bf16"]


def test_the_tree_opens_by_keyboard(open_page):
    page = open_page("shapes")
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


def test_the_stacks_are_drawn_from_the_config(open_page, open_toy_page):
    page = open_page("shapes")
    page.wait_for_selector(".crossing")
    assert page.locator(".crossing").count() == 2  # one per decoder layer
    assert page.locator(".layer text").all_text_contents() == ["8 × layer", "layer 0", "layer 1"]
    page = open_toy_page("shapes", model="rotary")
    page.wait_for_selector(".crossing")
    assert page.locator(".layer text").all_text_contents() == ["layer 0", "layer 1", "5 × layer"]
    assert page.locator(".crossing").count() == 1
    assert page.locator("text=rotary positions").count() == 2
