import base64
import io
import json
import re
import sys
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import matplotlib.font_manager
import matplotlib.image
import numpy as np
import pytest
from small_models import SMALL, in_memory, random_model
from small_translators import TAGS, WORDS

from sixfold import explore
from sixfold.alignment_heads import AligningHeads, word_weights
from sixfold.config import TokenizerConfig
from sixfold.errors import RequestError
from sixfold.explorer import drawing
from sixfold.explorer.beam import search_tree
from sixfold.explorer.drawing import (
    COLOUR_SCALES,
    Box,
    Curve,
    Grid,
    Label,
    Line,
    Scene,
    colormap,
    encode_png,
    from_hex,
    lightness,
    svg,
    to_hex,
)
from sixfold.explorer.heads import Head
from sixfold.explorer.trace import trace_text
from sixfold.explorer.views import SENTENCE_VIEWS, VIEW_NAMES, VIEWS, html_page, notebook, view
from sixfold.explorer.views_curves import curves
from sixfold.explorer.views_inputs import sentence_masks
from sixfold.explorer.views_layout import ViewOptions, token_index
from sixfold.explorer.views_walk import MAX_CELLS, number_text, numbers_text, stages_of
from sixfold.reports.charts import Series
from sixfold.text.learn import train_tokenizer

TEXT, TRANSLATION = "我爱猫。", "I love cats."
NAMESPACE = "{http://www.w3.org/2000/svg}"


def model_of(**changes):
    """Return a model with random weights and a tokeniser that knows a few words."""
    lines = ["".join(WORDS), " ".join(WORDS.values()), TEXT, TRANSLATION] * 20
    tokenizer = train_tokenizer(lines, TokenizerConfig(vocab=340, tags=TAGS))
    config = tokenizer.fit(replace(SMALL, max_length=64, **changes))
    return replace(
        in_memory(config, random_model(config)),
        tokenizer=tokenizer,
        card={"languages": {"source": "zh", "target": "en"}},
    )


@pytest.fixture(scope="module")
def trace():
    return explore(TEXT, TRANSLATION, model_of())


def views(trace):
    return {name: view(name, [trace]) for name in SENTENCE_VIEWS}


def texts_of(text):
    """Return the texts of an SVG; it must be well-formed XML."""
    return [label.text for label in ElementTree.fromstring(text).iter(f"{NAMESPACE}text")]


def grids(figure):
    return [part for part in figure.scene.parts if isinstance(part, Grid)]


def pixels(data):
    """Return the colours of a PNG file, without transparency."""
    return np.rint(matplotlib.image.imread(io.BytesIO(data), format="png")[..., :3] * 255).astype(np.uint8)


def png_pixels(scene):
    """Return the pixels of a scene; None on a machine without a font for it, which must raise an error."""
    installed = {font.name for font in matplotlib.font_manager.fontManager.ttflist}
    is_chinese = any(char > "\u2e7f" for text in texts_of(svg(scene)) for char in text or "")
    if not is_chinese or installed & set(drawing.CHINESE_FONTS):
        return pixels(drawing.png(scene))
    with pytest.raises(RequestError, match="a font that has its characters"):
        drawing.png(scene)
    return None


@pytest.mark.parametrize("name", SENTENCE_VIEWS)
def test_every_view_can_be_drawn_in_every_format(trace, name):
    figure = view(name, [trace])
    assert figure.scene.title in texts_of(svg(figure.scene))
    pixels = png_pixels(figure.scene)
    assert pixels is None or pixels.shape == (int(2 * figure.scene.height), int(2 * figure.scene.width), 3)
    page = html_page(figure)
    assert re.findall(r'(?:src|href)="(?!data:)|https?:|@import|url\(|<script', page) == []
    assert all(table.title in page.replace("&quot;", '"') or len(figure.tables) == 1 for table in figure.tables)
    for table in figure.tables:
        assert all(len(row) == len(table.columns) for row in table.rows)
        json.dumps(table.to_dict(), allow_nan=False)


@pytest.mark.parametrize("name", ["attention", "token", "alignment", "similarity", "masks", "beam"])
def test_chinese_pieces_are_text_in_the_picture(trace, name):
    texts = texts_of(svg(view(name, [trace]).scene))
    assert any("猫" in text for text in texts)


def test_labels_stay_inside_the_picture(trace):
    for figure in views(trace).values():
        for part in (*figure.scene.heading, *figure.scene.parts):
            if isinstance(part, Label | Box | Grid):
                assert 0 <= part.x <= figure.scene.width
                assert 0 <= part.y <= figure.scene.height


def test_a_cell_has_the_colour_of_its_number(trace):
    figure = view("attention", [trace], ViewOptions("encoder", 1, 2))
    grid, weights = grids(figure)[0], trace.attention("encoder", 1, 2)
    np.testing.assert_array_equal(grid.colours, colormap(weights))
    row, column = 1, 3
    assert figure.tables[0].rows[row][column + 1] == pytest.approx(float(weights[row, column]), abs=1e-4)
    assert grid.titles[row][column].endswith(f": {weights[row, column]:.3f}")
    x, y = grid.x + (column + 0.5) * grid.w / len(weights), grid.y + (row + 0.5) * grid.h / len(weights)
    without_labels = replace(
        figure.scene, heading=(), parts=[part for part in figure.scene.parts if not isinstance(part, Label)]
    )
    pixel = pixels(drawing.png(without_labels))[int(2 * y), int(2 * x)]
    np.testing.assert_array_equal(pixel, colormap(float(weights[row, column])))


def test_the_picture_inside_an_svg_has_a_pixel_for_each_cell(trace):
    figure = view("attention", [trace], ViewOptions("decoder", 0, 1))
    (first, *_) = re.findall(r"data:image/png;base64,([\w+/=]+)", svg(figure.scene))
    np.testing.assert_array_equal(pixels(base64.b64decode(first)), colormap(trace.attention("decoder", 0, 1)))


def test_without_a_head_it_is_the_mean_of_a_layer_and_words_are_joined(trace):
    (table,) = view("attention", [trace], ViewOptions("cross", 0)).tables
    np.testing.assert_allclose([row[1:] for row in table.rows], trace.attention("cross", 0).mean(axis=0), atol=1e-4)
    (table,) = view("attention", [trace], ViewOptions("cross", 0, words=True)).tables
    joined, rows, columns = trace.by_word("cross", trace.attention("cross", 0).mean(axis=0))
    assert ([row[0] for row in table.rows], table.columns[1:]) == (rows, columns)
    np.testing.assert_allclose([row[1:] for row in table.rows], joined, atol=1e-4)


def test_all_heads_are_drawn_in_order(trace):
    figure = view("heads", [trace], ViewOptions("cross"))
    expected = trace.attention("cross")
    for number, (layer, head) in enumerate(np.ndindex(*expected.shape[:2])):
        np.testing.assert_array_equal(grids(figure)[number].colours, colormap(expected[layer, head]))
    assert [row[0] for row in figure.tables[0].rows][:5] == [
        "cross.0.0",
        "cross.0.1",
        "cross.0.2",
        "cross.0.3",
        "cross.1.0",
    ]


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_one_token_is_a_row_of_every_head(trace, kind):
    figure = view("token", [trace], ViewOptions(kind, token="2"))
    np.testing.assert_array_equal(
        np.stack([grid.colours for grid in grids(figure)[:2]]), colormap(trace.attention(kind)[:, :, 2])
    )


def test_a_token_is_found_by_its_index_or_its_text(trace):
    texts = trace.source.texts
    assert token_index("猫", trace, "encoder") == texts.index("猫")
    assert token_index("1", trace, "encoder") == 1
    assert texts[token_index(None, trace, "encoder")].startswith("我")
    assert trace.predicted.texts[token_index("LOVE", trace, "cross")] == "love"
    with pytest.raises(RequestError, match=r"--token: expected 0 to \d+ or one of the pieces; got 'lov'") as error:
        token_index("lov", trace, "cross")
    assert error.value.hint == "did you mean 'love'?"
    with pytest.raises(RequestError, match="got '99'"):
        token_index("99", trace, "encoder")


def test_links_are_as_wide_as_their_weights(trace):
    figure = view("alignment", [trace])
    pieces, target_pieces, source_pieces = trace.alignment()
    weights = word_weights(pieces, target_pieces.words, source_pieces.words)
    targets, sources = target_pieces.word_texts, source_pieces.word_texts
    assert ("".join(targets), "".join(sources)) == ("Ilovecats.", TEXT)  # no tag, no <eos>
    widths = {part.title: part.width for part in figure.scene.parts if isinstance(part, Curve)}
    target, source = np.unravel_index(weights.argmax(), weights.shape)
    heaviest = f"{sources[source]} → {targets[target]}: {weights.max():.3f}"
    assert widths[heaviest] == max(widths.values())
    assert [row[1] for row in figure.tables[0].rows] == [sources[index] for index in weights.argmax(axis=1)]


def test_the_alignment_is_that_of_the_heads_on_the_card_unless_others_are_named(trace):
    heads = AligningHeads(0, (1, 2), True)
    with_card = replace(trace, model=replace(trace.model, card={**trace.model.card, **heads.to_card()}))
    assert with_card.aligning == heads
    steps = trace.attention("cross", 0)[[1, 2]].mean(axis=0)
    read = with_card.alignment()[2]
    shares = steps[1:, len(trace.source) - 1 - len(read) : -1] * [start < end for start, end in read.spans]
    shares = shares * shares / np.maximum(shares.sum(axis=0), 1e-12)
    np.testing.assert_allclose(with_card.alignment()[0], shares / shares.sum(axis=1, keepdims=True), atol=1e-6)
    titles = [
        view("alignment", [with_card], options).tables[1].title
        for options in (ViewOptions(), ViewOptions(layer=1), ViewOptions(head=3))
    ]
    assert titles == [
        "Alignment: cross-attention, layer 0, head 1 and 2 when a piece is read",
        "Alignment: cross-attention, layer 1, mean of all heads",
        "Alignment: cross-attention, layer 1, head 3",
    ]


def test_steps_show_the_likeliest_and_what_was_written(trace):
    figure = view("steps", [trace], ViewOptions(top=3))
    rows = figure.tables[0].rows
    assert len(rows) == 3 * len(trace.predicted)
    np.testing.assert_allclose([row[3] for row in rows[:3]], np.sort(trace["probabilities"][0])[:-4:-1], atol=1e-4)


def test_a_walk_ends_at_the_probability_of_the_next_piece(trace):
    rows = view("walk", [trace], ViewOptions("cross", 1, 2, token="0")).tables[0].rows
    names = [row[0] for row in rows]
    order = [
        "Embedding",
        "Position",
        "Query",
        "Scores, largest weight first",
        "Mask, in the same order",
        "Weights, largest first",
        "Output of the head",
        "Logits",
        "Probability",
    ]
    assert [name for name in names if name in order] == order
    assert f"{trace['probabilities'][0].max():.3f}" in rows[-1][3]
    query = dict(zip(names, (row[3] for row in rows), strict=True))["Query"]
    first = trace["decoder.layers.1.cross_attention.query"][2, 0, 0]
    assert query.split()[0] == f"{first:.3f}".replace("-", "−")


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
def test_the_bars_of_a_walk_and_its_numbers_are_in_one_order(trace, kind):
    options = ViewOptions(kind, 1, 0, token=str(len(trace.rows(kind)) - 1))
    scene = view("walk", [trace], options).scene
    stages = list(stages_of(trace, Head(kind, 1, 0), len(trace.rows(kind)) - 1, 5))
    figure = iter([part for part in scene.parts if isinstance(part, Grid)])
    for stage in stages:
        if not len(stage.numbers):
            continue
        numbers = np.where(np.isfinite(stage.numbers), stage.numbers, 0)[:MAX_CELLS]
        largest = float(np.abs(numbers).max()) or 1.0
        np.testing.assert_array_equal(next(figure).colours, colormap(numbers[None], "diverging", largest))
        for name, number, text in zip(stage.names, stage.numbers, numbers_text(stage).split("   "), strict=False):
            assert text == f"{name} {number_text(number)}"
    scores, mask, weights = (stage for stage in stages if stage.name.startswith(("Scores", "Mask", "Weights")))
    assert list(scores.names) == list(mask.names) == list(weights.names)
    assert (np.diff(weights.numbers) <= 0).all()


def test_a_walk_through_the_decoder_counts_masked_pieces(trace):
    rows = view("walk", [trace], ViewOptions("decoder", 0, 0, token="0")).tables[0].rows
    (note,) = (row[3] for row in rows if row[0].startswith("Mask"))
    assert note == f"{len(trace.target) - 1} of {len(trace.target)} pieces masked"


@pytest.mark.parametrize(
    "changes",
    [
        {"norm_position": "post"}, {"positions": "rotary"}, {"positions": "learned"}, {"kv_heads": 2},
        {"feed_forward": "swiglu", "bias": False}, {"embedding_norm": True},
    ],
    ids=str,
)  # fmt: skip
def test_every_kind_of_model_can_be_walked_through_and_has_positions(changes):
    trace = explore(TEXT, TRANSLATION, model_of(**changes))
    for kind in ("encoder", "decoder", "cross"):
        assert len(view("walk", [trace], ViewOptions(kind, 1, 3)).tables[0].rows) > 12
    (numbers, products) = view("positions", [trace]).tables
    assert len(numbers.rows) == len(products.rows) == 64


def test_models_with_one_stack_have_the_views_that_apply():
    for kind, names in (("encoder", ["attention", "heads", "token", "similarity", "walk", "positions"]),
                        ("decoder", ["attention", "heads", "token", "similarity", "walk", "steps"])):  # fmt: skip
        trace = trace_text(model_of(kind=kind), TRANSLATION)
        for name in names:
            texts_of(svg(view(name, [trace]).scene))
        assert "<svg" in notebook(trace)
        texts_of(svg(view("masks", [trace]).scene))
        with pytest.raises(RequestError, match=f"alignment: expected an encoder-decoder; got .* the kind '{kind}'"):
            view("alignment", [trace])
        with pytest.raises(RequestError, match=f"expected {kind} in a model of the kind {kind}; got cross"):
            view("attention", [trace], ViewOptions("cross"))


def test_positions_are_the_vectors_that_the_model_adds(trace):
    numbers, products = view("positions", [trace]).tables
    length = len(trace.source)
    expected = trace["encoder.embedding.position"]
    np.testing.assert_allclose([row[1:] for row in numbers.rows[:length]], expected[:, :8], atol=1e-4)
    assert products.rows[0][1] == pytest.approx(float((expected[0] ** 2).sum()), rel=1e-3)
    with pytest.raises(RequestError, match="expected a model with positions"):
        view("positions", [explore(TEXT, TRANSLATION, model_of(positions="none"))])


def test_the_similarity_of_a_piece_with_itself_is_one(trace):
    for table in view("similarity", [trace]).tables:
        values = np.array([row[1:] for row in table.rows])
        np.testing.assert_allclose(np.diagonal(values), 1, atol=1e-3)
        np.testing.assert_allclose(values, values.T, atol=1e-3)


def test_masks_show_the_sentences_as_one_batch(trace):
    short = explore("猫", "cats", trace.model)
    rows = view("masks", [trace, short]).tables[0].rows
    assert [row[1:3] for row in rows] == [
        [len(trace.source), 0],
        [len(short.source), len(trace.source) - len(short.source)],
    ]
    encoder, decoder, cross = sentence_masks(2, 4, 3).values()
    assert encoder.tolist() == [[True, True, False, False]] * 4
    assert decoder.tolist() == np.tri(3, dtype=bool).tolist()
    assert cross.tolist() == [[True, True, False, False]] * 3
    with pytest.raises(RequestError, match="heads: expected one sentence; got 2"):
        view("heads", [trace, short])


def test_the_best_path_of_a_search_is_filled(trace):
    nodes = search_tree(trace, 2).nodes
    figure = view("beam", [trace], ViewOptions(beam=2))
    boxes = [part for part in figure.scene.parts if isinstance(part, Box)]
    assert [box.fill == "accent" for box in boxes] == [node.is_best for node in nodes]
    assert [bool(box.edge) for box in boxes] == [node.fate != "pruned" for node in nodes]
    assert sum(isinstance(part, Curve) for part in figure.scene.parts) == len(nodes) - 1


def test_curves_leave_gaps_and_begin_at_zero_where_they_should():
    gap = Series("run", [1, 2, 3, 4], [3.0, 2.0, None, 1.0])
    figure = curves("Training of run", {"Loss": [gap], "Speed": [Series("run", [1], [5.0])]}, ["Speed"])
    lines = [part for part in figure.scene.parts if isinstance(part, Line) and part.stroke == "series-1"]
    assert [len(line.points) for line in lines] == [2, 2, 2]
    assert "0" in [part.text for part in figure.scene.parts if isinstance(part, Label)]
    assert figure.tables[0].rows == [[1, 3.0, 5.0], [2, 2.0, ""], [3, "", ""], [4, 1.0, ""]]
    with pytest.raises(RequestError, match="expected a run that has logged a step"):
        curves("nothing", {})


def test_the_text_of_pieces_is_escaped():
    scene = Scene(99, 99, [Label(1, 1, "<b>&\x00\"'"), Box(0, 0, 9, 9, title="</svg><script>")], "<i>")
    text = svg(scene)
    assert texts_of(text) == ["<b>&\ufffd\"'"]
    assert "<script" not in text


def test_a_page_shows_the_heading_once(trace):
    figure = view("heads", [trace])
    assert f">{figure.scene.title}</text>" in svg(figure.scene)
    assert f">{figure.scene.title}</text>" not in svg(figure.scene, themed=True)


def test_a_notebook_shows_words_and_heads(trace):
    html = trace._repr_html_()
    assert html.count("<svg") == html.count("</svg>") == 2
    assert "猫" in html
    assert "all 2 × 4 heads" in html


def test_large_grids_have_no_titles():
    def count(size):
        grid = Grid(0, 0, 9, 9, np.zeros((size, size, 3), np.uint8), [["x"] * size] * size)
        return svg(Scene(9, 9, [grid], "")).count("<title>x")

    assert (count(32), count(33)) == (1024, 0)


def test_another_library_reads_our_png():
    colours = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 9
    np.testing.assert_array_equal(pixels(encode_png(colours)), colours)


def test_scales_read_in_grey():
    steps = lightness(colormap(np.linspace(0, 1, 101)))
    assert (np.diff(steps) < 0).all()
    assert steps[0] - steps[-1] > 0.8
    for side in (-1, 1):
        assert (np.diff(lightness(colormap(side * np.linspace(0, 1, 101), "diverging"))) < 0.001).all()
    for scale, anchors in COLOUR_SCALES.items():
        assert [to_hex(colormap(position, scale)) for position, _ in anchors] == [colour for _, colour in anchors]
    assert to_hex(colormap(np.float64(-np.inf), "diverging")) == COLOUR_SCALES["diverging"][0][1]
    assert from_hex("#0aff10") == (10, 255, 16)


def test_without_a_font_for_chinese_a_png_says_what_to_install(monkeypatch):
    monkeypatch.setattr(drawing, "CHINESE_FONTS", ())
    with pytest.raises(RequestError, match="a font that has its characters") as error:
        drawing.png(Scene(99, 99, [Label(9, 9, "猫")], ""))
    assert "Noto Sans CJK" in error.value.hint
    assert drawing.png(Scene(99, 99, [Label(9, 9, "cat $ $x")], "")).startswith(b"\x89PNG")


def test_without_matplotlib_a_png_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(RequestError, match=r"\.png needs matplotlib") as error:
        drawing.png(Scene(9, 9, [], ""))
    assert "sixfold[plots]" in error.value.hint


def test_unknown_views_are_refused_with_a_suggestion(trace):
    with pytest.raises(RequestError, match=r"--view: expected one of attention, .*; got 'haeds'") as error:
        view("haeds", [trace])
    assert error.value.hint == "did you mean 'heads'?"
    assert {*VIEWS, "masks", "induction", "training"} == set(VIEW_NAMES)
