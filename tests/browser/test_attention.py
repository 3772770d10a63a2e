"""The attention screen shows and saves the numbers of Python, by mouse and by keyboard."""

import csv
import io
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from xml.etree import ElementTree

import numpy as np
import pytest
from small_servers import Server
from small_translators import shared_models

import sixfold
from sixfold import modelfile
from sixfold.explorer.explore import Explorer, explore
from sixfold.explorer.heads import Head, ablate_heads
from sixfold.explorer.influence import aligners, influence

sync_api = pytest.importorskip("playwright.sync_api")
expect = sync_api.expect

TIRED = "The animal didn't cross the street because it was too tired"
WIDE = TIRED.replace("tired", "wide")
LONG_WORDS = "Photosynthesis reinvigorates chloroplasts"
SHORT = "Good morning"  # a short text, because hiding each token takes a forward pass
IT = 10  # position of “it”


@pytest.fixture(scope="module")
def explorer():
    with sixfold.Translator(None, "cpu") as translator:
        opened = Explorer(translator)
        yield opened
        opened.close()


@pytest.fixture
def screen(open_page):
    """A function that opens the attention screen and waits for its weights."""

    def open_screen(**state):
        page = open_page("attention", **{"text": TIRED, **state})
        page.wait_for_selector(".attention:not([hidden]):not([aria-busy])")
        return page

    return open_screen


def state(page):
    return {name: values[0] for name, values in parse_qs(urlsplit(page.url).query).items()}


def wait_for_state(page, **expected):
    """Wait until the address has these values."""
    for _ in range(1200):
        if all(state(page).get(name) == value for name, value in expected.items()):
            return
        page.wait_for_timeout(50)
    assert {name: state(page).get(name) for name in expected} == expected


def panel(page, title):
    return page.locator("section.panel", has=page.locator("h2", has_text=re.compile(f"^{title}")))


def download(page, title, kind):
    with page.expect_download() as got:
        panel(page, title).locator(f"[data-export={kind}]").click()
    page.wait_for_timeout(100)  # Chromium drops downloads after the tenth within a second
    return Path(got.value.path()).read_bytes()


def table(data):
    rows = list(csv.reader(io.StringIO(data.decode())))
    return rows[0][1:], [row[0] for row in rows[1:]], np.array([row[1:] for row in rows[1:]], np.float32)


def pixel(page, row, column):
    """Return the pixel in the middle of a cell of the selected head."""
    return page.evaluate(
        """([row, column]) => {
            const canvas = document.querySelector("canvas.heat-map"), { left, top, across, down } = canvas.dataset;
            const [x, y] = [+left + (column + 0.5) * across, +top + (row + 0.5) * down];
            return [...canvas.getContext("2d").getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data];
        }""",
        [row, column],
    )


def colour(page, weight):
    """Return the colour of a weight that was sent as a 16-bit number."""
    index = int(np.floor(255 * float(np.float16(weight)) + 0.5))
    rgb = page.evaluate('async (index) => (await import("/static/theme_colours.js")).sequentialScale()[index]', index)
    return [*rgb, 255]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_cell_has_the_colour_of_its_weight(screen, explorer, scheme):
    page = screen(kind="encoder", layer=6, head=6, row=0, scheme=scheme)
    weights = explorer.explore(TIRED).attention("encoder", 6, 6)
    row, column = divmod(int(weights.argmax()), weights.shape[1])
    for cell in ((row, column), (IT, 13), (IT, 14), (2, 2)):
        assert pixel(page, *cell) == colour(page, weights[cell]), cell


def test_later_tokens_are_drawn_as_masked_and_saved_as_exactly_zero(screen, explorer):
    page = screen(kind="decoder", layer=1, head=2)
    weights = explorer.explore(TIRED).attention("decoder", 1, 2)
    masked = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--masked').trim()")
    grey = [*bytes.fromhex(masked[1:]), 255]
    assert pixel(page, 3, 5) == grey
    assert pixel(page, 5, 3) == colour(page, weights[5, 3])
    _, _, exported = table(download(page, "Selected head", "data"))
    assert exported.shape == weights.shape
    assert (exported[np.triu_indices(len(exported), 1)] == 0).all()
    np.testing.assert_allclose(exported.sum(axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(exported, weights, atol=1e-5)


def test_tokens_are_joined_into_words_as_in_python(screen, explorer):
    trace = explorer.explore(LONG_WORDS)
    for kind in ("encoder", "cross"):
        page = screen(text=LONG_WORDS, kind=kind, layer=1, head=0, words=1)
        columns, rows, exported = table(download(page, "Selected head", "data"))
        weights, query_words, key_words = trace.by_word(kind, trace.attention(kind, 1, 0))
        assert (rows, columns) == (query_words, key_words)
        assert len(key_words) < len(trace.source)
        np.testing.assert_allclose(exported, weights, atol=1e-5)


def test_the_selection_is_kept_when_tokens_are_joined_into_words(screen, explorer):
    source = explorer.explore(LONG_WORDS).source
    index = source.words[-2][-1]
    page = screen(text=LONG_WORDS, kind="encoder", row=index, column=index)
    page.get_by_role("radio", name="words").click()
    wait_for_state(page, words="1", row=str(len(source.words) - 2), column=str(len(source.words) - 2))


def test_the_keyboard_reaches_tokens_layers_and_heads(screen):
    page = screen(kind="encoder")

    def tab_to(selector):
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("(selector) => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(selector)

    page.focus("#sentence")
    tab_to(".query-tokens .token-button")
    page.keyboard.press("ArrowRight")
    wait_for_state(page, row="2")
    tab_to("canvas.head-grid")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    wait_for_state(page, layer="6", head="1", row="2")
    expect(page.locator("#live")).to_have_text("layer 6, head 1")
    tab_to("canvas.heat-map")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Home")
    wait_for_state(page, row="3", column="0")
    assert page.locator(".query-tokens [aria-checked=true]").inner_text() == "didn"
    tab_to("table.token-heads button")
    page.keyboard.press("ArrowDown")
    wait_for_state(page, layer="7", head="1", row="3")


def test_a_click_chooses_a_head(screen):
    page = screen(kind="cross")
    page.locator("canvas.head-grid").click(position={"x": 26 + 4, "y": 22 + 4})
    wait_for_state(page, layer="0")
    assert "cross.0.0" in panel(page, "Selected head").inner_text()


def test_what_it_attends_to_in_every_head_equals_python(screen, explorer):
    page = screen(kind="cross")
    page.click("[data-preset=wide]")
    wait_for_state(page, text=WIDE, kind="encoder", row=str(IT))
    trace = explorer.explore(WIDE)
    weights = trace.attention("encoder")[:, :, IT]
    page.wait_for_selector(".token-heads [data-layer='7']")
    for layer, head in ((0, 0), (6, 6), (7, 7)):
        best = weights[layer, head].argmax()
        expect(page.locator(f".token-heads [data-layer='{layer}'][data-head='{head}']")).to_have_text(
            f"{trace.source.texts[best]} {weights[layer, head, best]:.2f}"
        )
    rows = list(csv.DictReader(io.StringIO(download(page, "One token across all heads", "data").decode())))
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights.max(-1).ravel(), rtol=1e-5)


def test_a_row_is_saved_in_32_bits_even_before_the_page_has_loaded_it_so(screen, explorer):
    page = screen(kind="encoder", layer=4, head=3, row=IT)
    page.wait_for_load_state("networkidle")
    page.evaluate(
        "() => { const later = setTimeout; window.setTimeout = (run, ms) => ms === 120 ? 0 : later(run, ms); }"
    )
    page.locator(".query-tokens .token-button").nth(2).click()  # its exact weights are never loaded for showing now
    wait_for_state(page, row="2")
    weights = explorer.explore(TIRED).attention("encoder")[:, :, 2]
    saved = page.locator(".token-heads [data-layer='0'][data-head='0'] small")
    expect(saved).to_have_text(f"{weights[0, 0].max():.2f}")
    _, _, exported = table(download(page, "What it attends to", "data"))
    np.testing.assert_allclose(exported[0], weights[4, 3], rtol=1e-5)
    page.locator(".query-tokens .token-button").nth(3).click()
    wait_for_state(page, row="3")
    rows = list(csv.DictReader(io.StringIO(download(page, "One token across all heads", "data").decode())))
    weights = explorer.explore(TIRED).attention("encoder")[:, :, 3]
    np.testing.assert_allclose([float(row["weight"]) for row in rows], weights.max(-1).ravel(), rtol=1e-5)


def test_the_numbers_on_arcs_come_in_32_bits(screen, explorer):
    page = screen(kind="encoder", layer=4, head=3, row=IT)
    weights = explorer.explore(TIRED).attention("encoder", 4, 3)[IT]
    for column in np.argsort(-weights)[:3]:
        expect(page.locator(f".arcs .weight[data-column='{column}']")).to_have_text(f"{weights[column]:.4g}")
    widths = [float(page.locator(f".arcs path[data-column='{column}']").get_attribute("stroke-width"))
              for column in np.argsort(-weights)[:3]]  # fmt: skip
    assert widths == sorted(widths, reverse=True)
    assert page.evaluate("""[...document.querySelectorAll('.arcs text')].every(text => {
        const box = text.getBoundingClientRect(), frame = text.closest('svg').getBoundingClientRect();
        return box.left >= frame.left && box.right <= frame.right;
    })""")
    page.locator(".arcs .token", has_text="street").first.click()
    wait_for_state(page, row="8")


def test_heads_are_switched_off_as_in_python(screen, explorer):
    page = screen(kind="cross", layer=1, head=3)
    assert "All heads are on" in page.locator("#ablation").inner_text()
    page.click("[data-action=layer]")
    wait_for_state(page, off=",".join(f"cross.1.{head}" for head in range(8)))
    without = sixfold.explore(TIRED, off=[f"cross.1.{head}" for head in range(8)]).translation
    expect(page.locator("#after")).to_have_text(without)
    expect(page.locator("#before")).to_have_text(explorer.explore(TIRED).translation)
    assert page.locator("#after mark").count() > 0
    assert page.locator("[data-action=layer]").is_disabled()
    assert json.loads(download(page, "With and without", "data"))["after"]["translation"] == without
    page.click("[data-action=on]")
    expect(page.locator("#ablation")).to_contain_text("All heads are on")
    assert "off" not in state(page)


def test_the_head_that_aligns_is_measured_as_in_python(screen, explorer):
    page = screen(text=SHORT, kind="encoder")
    page.click("#measure")
    wait_for_state(page, view="aligners")
    trace = explorer.explore(SHORT)
    drops = influence(trace)
    best, *others = aligners(trace, drops)
    tied = [str(alignment.head) for alignment in (best, *others) if alignment.agreement == best.agreement]
    expect(page.locator("#best")).to_contain_text(", ".join(tied) + (" align" if len(tied) > 1 else " aligns best"))
    shown = page.locator(".bars [data-head]").evaluate_all("all => all.map(each => each.dataset.head)")
    assert shown == [str(alignment.head) for alignment in (best, *others)][: len(shown)]
    _, rows, exported = table(download(page, "Influence", "data"))
    assert rows == trace.labels("cross")[0]
    np.testing.assert_allclose(exported, drops, atol=1e-3)
    page.locator(".bars [data-head]").first.click()
    wait_for_state(page, kind=None, layer=str(best.head.layer), head=str(best.head.head) if best.head.head else None)
    page.wait_for_selector(f".bars [data-head='{best.head}'][aria-pressed=true]")


def test_two_sentences_are_compared_in_the_same_head(screen, explorer):
    page = screen(kind="encoder", layer=6, head=6, row=IT, other=WIDE)
    page.wait_for_selector("#side-2:not([hidden]) canvas[data-left]")
    first, second = (explorer.explore(text).attention("encoder") for text in (TIRED, WIDE))
    exported = json.loads(download(page, "Compare", "data"))
    assert exported["sentences"] == [TIRED, WIDE]
    for matrix, weights in zip(exported["matrices"], (first, second, first - second), strict=True):
        np.testing.assert_allclose(matrix["values"], weights[6, 6], atol=1e-3)
    moved = np.abs(first[:, :, IT] - second[:, :, IT]).sum(-1)
    layer, head = np.unravel_index(moved.argmax(), moved.shape)
    assert page.locator("#most-different button").first.get_attribute("data-head") == f"encoder.{layer}.{head}"
    page.fill("#other", "Hello")
    expect(page.locator("#side-2")).to_be_hidden()
    assert state(page)["other"] == "Hello"


def test_two_models_are_compared_on_the_same_sentence(browser, tmp_path_factory):
    first = modelfile.load(shared_models(tmp_path_factory)["zh-en"])
    folder = tmp_path_factory.mktemp("two")
    weights = ablate_heads(first, [Head("encoder", 0, 0)]).weights()
    for name, tensors in (("first", first.weights()), ("second", weights)):
        modelfile.save(folder / f"{name}.safetensors", first.config, tensors, first.tokenizer, first.card)
    with Server(folder / "first.safetensors", folder / "second.safetensors") as server:
        page = browser.new_page()
        page.goto(f"{server.url}/?screen=attention&text=我爱猫&given=I love cats&kind=cross&head=1&otherModel=second")
        page.wait_for_selector("#side-2:not([hidden]) canvas[data-left]")
        assert "(second)" in page.locator("#side-1 h3").inner_text()
        matrices = json.loads(download(page, "Compare", "data"))["matrices"]
        page.close()
    for matrix, name in zip(matrices, ("first", "second"), strict=False):
        expected = explore("我爱猫", "I love cats", folder / f"{name}.safetensors").attention("cross", 0, 1)
        np.testing.assert_allclose(matrix["values"], expected, atol=1e-3)
    assert np.abs(np.array(matrices[2]["values"])).max() > 0.01


@pytest.mark.parametrize(
    "titles",
    [
        ("All heads", "Selected head", "One token across", "What it attends to"),
        ("With and without", "Compare", "Which head aligns", "Influence"),
    ],
)
def test_every_panel_is_saved_as_a_picture_and_as_data(screen, titles):
    page = screen(text=SHORT, kind="encoder", layer=0, other="Good evening", view="aligners")
    page.wait_for_selector("#side-0 canvas[data-left]")
    page.wait_for_selector("#best")
    for title in titles:
        assert download(page, title, "png").startswith(b"\x89PNG\r\n\x1a\n"), title
        drawing = ElementTree.fromstring(download(page, title, "svg"))
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        assert float(drawing.get("width")) > 100
        assert len(list(drawing.iter())) > 4
        assert len(download(page, title, "data")) > 40


def test_cells_that_share_a_pixel_show_the_largest(open_page):
    page = open_page("attention")
    pixels = page.evaluate("""async () => {
        const { renderCells, cellsPerPixel } = await import("/static/heat_map.js");
        const { sequentialScale } = await import("/static/theme_colours.js");
        const labels = Array.from({ length: 300 }, () => "");
        const data = { rows: labels, columns: labels, values: new Float32Array(300 * 300), max: 1, label: "" };
        data.values[150 * 300 + 7] = 1;
        data.isUnmasked = (row) => row < 200;
        const pool = cellsPerPixel(data, 100), image = renderCells(data, "light", pool);
        const at = (x, y) => [...image.getContext("2d").getImageData(x, y, 1, 1).data];
        return { pool, size: [image.width, image.height], most: at(2, 50), none: at(3, 50), masked: at(2, 80),
                 colours: [sequentialScale("light")[255], sequentialScale("light")[0]] };
    }""")
    assert (pixels["pool"], pixels["size"]) == (3, [100, 100])
    assert pixels["most"] == [*pixels["colours"][0], 255]
    assert pixels["none"] == [*pixels["colours"][1], 255]
    assert pixels["masked"][3] == 0


def test_a_comparison_on_a_phone_is_accessible(screen):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = screen(kind="decoder", lang="zh", scheme="dark", width=390, other=WIDE)
    page.wait_for_selector("#side-0 canvas[data-left]")
    assert page.locator("h1").inner_text() == "注意力"
    assert "masked" not in page.locator("#about-kind").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    violations = [
        violation
        for violation in axe.Axe().run(page).response["violations"]
        if violation["impact"] in ("serious", "critical")
    ]
    assert [(violation["id"], [node["html"][:120] for node in violation["nodes"]]) for violation in violations] == []
