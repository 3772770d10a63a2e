"""The walk screen: each number is the one of Python, and its snippet computes it again."""

import contextlib
import csv
import functools
import io
import random
from dataclasses import replace

import numpy as np
import pytest
from small_models import random_model
from small_servers import Server
from small_translators import SHAPE, pair

import sixfold
from sixfold import modelfile
from sixfold.config import Config, TokenizerConfig
from sixfold.explorer.merges import merge_stages
from sixfold.model.transformer import weights_of
from sixfold.text.learn import train_tokenizer

TEXT = "The cat didn't sleep."
CARDS = """cards => cards.filter(card => card.querySelector('.value')).map(card => ({
    stage: card.dataset.stage, value: Number(card.querySelector('.value').dataset.value),
    shown: card.querySelector('.value').textContent, where: card.querySelector('.where').textContent,
    code: card.querySelector('pre').textContent,
}))"""
SPOTS = {
    "cross": {"row": 2, "column": 3, "head": 5, "layer": 1, "stage": "query.7"},
    "decoder": {"row": 1, "column": 3, "head": 2, "layer": 0, "stage": "concatenation.300"},  # a later position: masked
    "encoder": {"row": 4, "head": 1, "layer": 7, "stage": "hidden.11"},
}
VARIANTS = {
    "modern": {
        "norm_position": "pre", "norm": "rms", "positions": "rotary", "feed_forward": "swiglu", "kv_heads": 2,
        "bias": False, "scale_embeddings": False, "tie_output": False,
    },
    "paper": {
        "norm_position": "post", "positions": "learned", "position_offset": 2, "feed_forward": "gelu",
        "embedding_norm": True, "final_norm": True, "output_bias": True,
    },
    "halves": {
        "norm_position": "post", "position_layout": "halves", "position_spacing": "closed",
        "feed_forward": "gelu-tanh", "share_layers": True,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def explore():
    """`sixfold.explore`, called once per set of arguments."""
    return functools.cache(sixfold.explore)


@pytest.fixture(scope="module")
def trace(explore):
    return explore(TEXT, source="en", target="zh")


def ready(page):
    page.wait_for_selector(".cards[data-ready]")
    return page.eval_on_selector_all(".stage", CARDS)


def printed(code, explore, monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr(sixfold, "explore", explore)
    with contextlib.redirect_stdout(output):
        exec(code, {})
    return output.getvalue().strip()


def assert_same(shown, printed_text):
    """Compare two texts of a number to four digits."""
    number = shown.replace("−", "-").replace("∞", "inf")
    assert float(printed_text) == pytest.approx(float(number), rel=1e-3, abs=2e-6)


@pytest.mark.parametrize("kind", SPOTS)
def test_every_number_is_pythons_and_its_snippet_prints_it(open_page, explore, trace, kind, monkeypatch):
    page = open_page("walk", text=TEXT, kind=kind, **SPOTS[kind])
    cards = ready(page)
    stages = [card["stage"] for card in cards]
    assert stages[:2] == ["id", "token"]
    assert stages[-1] == ("final_norm" if kind == "encoder" else "probabilities")
    assert stages.index("attention_norm") < stages.index("query") < stages.index("attention_residual")
    for card in cards:
        if card["stage"] != "product":
            assert eval(card["where"], {"trace": trace}) == pytest.approx(card["value"], rel=1e-4, abs=1e-5)
        code = card["code"]
        assert code.startswith("import numpy as np, sixfold\ntrace = sixfold.explore(")
        assert 'model="' not in code
        assert "translation=" not in code
        assert_same(card["shown"], printed(code, explore, monkeypatch))


@pytest.fixture(scope="module")
def variants(tmp_path_factory):
    """A server with untrained models that have the options which the shipped model lacks."""
    folder, chance = tmp_path_factory.mktemp("variants"), random.Random(1)
    settings = TokenizerConfig(vocab=340)
    tokenizer = train_tokenizer([side for _ in range(300) for side in pair(chance)], settings)
    files = []
    for name, options in VARIANTS.items():
        small = {"d_model": 32, "heads": 4, "d_ff": 48, "encoder_layers": 2, "decoder_layers": 2, "max_length": 32}
        config = tokenizer.fit(replace(SHAPE, **small, **options))
        files.append(folder / f"{name}.safetensors")
        card = {"languages": {"source": "zh", "target": "en"}}
        modelfile.save(files[-1], Config(config, settings), weights_of(random_model(config)), tokenizer, card)
    with Server(*files, requests_per_minute=100_000) as started:
        started.folder = folder
        yield started


@pytest.mark.parametrize("name", VARIANTS)
def test_models_with_other_options_are_walked_too(variants, browser, explore, name, monkeypatch):
    context = browser.new_context(viewport={"width": 1000, "height": 800}, locale="en-US")
    page = context.new_page()
    page.goto(
        f"{variants.url}/?screen=walk&text=我爱猫&given=I love cats&model={name}&kind=decoder&row=2&column=1&head=3"
    )
    cards = {card["stage"]: card for card in ready(page)}
    assert ("query_rotated" in cards) == ("gate" in cards) == (name == "modern")
    stages = list(cards)
    assert (stages.index("attention_norm") < stages.index("query")) == (name == "modern")
    monkeypatch.chdir(variants.folder)
    for card in cards.values():
        assert f'"I love cats", model="{name}.safetensors"' in card["code"]
        assert_same(card["shown"], printed(card["code"], explore, monkeypatch))
    context.close()


def download(page, stage, kind):
    with page.expect_download() as waiting:
        page.locator(f"#stage-{stage} [data-export={kind}]").click()
    return waiting.value.path().read_bytes()


def test_weights_sum_to_one_masked_cells_are_zero_and_every_card_is_saved(open_page, trace):
    page = open_page("walk", text=TEXT, kind="decoder", row=1, head=3, layer=1)
    ready(page)
    table = list(csv.reader(io.StringIO(download(page, "weights", "data").decode())))[1:]
    weights = [float(value) for _, value in table]
    assert weights == pytest.approx(list(trace.attention("decoder", 1, 3)[1]), rel=1e-4, abs=1e-6)
    assert sum(weights) == pytest.approx(1, abs=1e-6)
    assert weights[2:] == [0] * (len(trace.target) - 2)
    for stage in ("text", "id", "weights", "logits"):
        assert download(page, stage, "svg").startswith(b"<svg")
    assert download(page, "logits", "png").startswith(b"\x89PNG")


PIXEL = """([stage, part]) => { const canvas = document.querySelector(`#stage-${stage} canvas`);
    const x = Math.floor(part * canvas.width), y = Math.floor(12 * devicePixelRatio);
    return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3); }"""


def test_a_masked_cell_is_empty_and_a_large_weight_is_dark(open_page, trace):
    page = open_page("walk", text=TEXT, kind="decoder", row=1, column=0, head=0, layer=0)
    ready(page)
    count = len(trace.target)
    width = page.evaluate("document.querySelector('#stage-weights canvas').clientWidth")
    cell = min(56, width / count)
    later = page.evaluate(PIXEL, ["masked_scores", (count - 0.5) * cell / width])
    assert later == [0xEC, 0xEE, 0xF3]
    brightest = int(np.argmax(trace.attention("decoder", 0, 0)[1]))
    dark = page.evaluate(PIXEL, ["weights", (brightest + 0.5) * cell / width])
    assert sum(dark) < sum(page.evaluate(PIXEL, ["weights", (count - 0.5) * cell / width])) - 200


def test_keys_select_the_position_the_head_and_the_component(open_page, trace):
    page = open_page("walk", text=TEXT, row=1, column=2)
    ready(page)
    ribbon = page.locator("#stage-query canvas")
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        ribbon.press(key)
    page.wait_for_function("() => document.querySelector('#stage-query input').value === '1'")
    assert page.evaluate("new URL(location).searchParams.get('stage')") == "query.1"
    assert ribbon.get_attribute("aria-valuenow") == "1"
    page.locator("#stage-value input").fill("63")
    page.locator("#stage-value input").press("Enter")
    value = trace["decoder.layers.1.cross_attention.value"][0, 2, 63]
    page.wait_for_function(
        "x => Math.abs(document.querySelector('#stage-value .value').dataset.value / x - 1) < 1e-6",
        arg=float(value),
    )
    page.locator("#stage-weights canvas").press("ArrowRight")
    page.wait_for_selector("[data-control=column] [data-index='3'][aria-checked=true]")
    page.locator("[data-control=row] [aria-checked=true]").press("ArrowRight")
    page.wait_for_selector("[data-control=row] [data-index='2'][aria-checked=true]:focus")
    page.locator("[data-control=head] [aria-checked=true]").press("End")
    page.wait_for_selector(".cards[data-ready='decoder.layers.1.cross_attention.7.2.3']")
    page.locator(".stages [data-to=weights]").press("Enter")
    assert page.evaluate("new URL(location).searchParams.get('stage')") == "weights"


def test_a_word_is_merged_out_of_its_characters_and_the_python_is_copied(open_page, trace):
    page = open_page("walk", text=TEXT, kind="encoder", row=trace.source.texts.index("sleep"))
    cards = ready(page)
    page.wait_for_selector(".rounds .chip")
    rounds = page.locator(".rounds li").evaluate_all("x => x.map(y => [...y.children].map(z => z.textContent))")
    word = next(word for word in merge_stages(trace.tokenizer, TEXT) if word.text.strip() == "sleep")
    assert rounds == [[piece.replace(" ", "▁") for piece in stage] for stage in word.stages]
    assert len(rounds) > 3
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.locator("#stage-query .copy").press("Enter")
    page.wait_for_function("() => document.querySelector('#stage-query .copy').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == next(card["code"] for card in cards if card["stage"] == "query")
