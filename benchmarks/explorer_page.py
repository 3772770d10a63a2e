"""How quick the page is: to its first paint, to the first attention matrix, to all heads of a long sentence.

    python benchmarks/explorer_page.py [--runs 7] [--bertviz PYTHON --scripts NODE_MODULES]

The server and the browser are real: `sixfold serve` with the shipped model, and Chromium, with nothing in its cache.
Each run asks about a sentence that the server has not seen. PYTHON: of an environment with bertviz; NODE_MODULES: a
folder with d3 5, jquery and requirejs, which its pages would fetch from the network. Its model_view draws all 48
heads, its head_view those of one layer; the time ends when all lines are there.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, Route, sync_playwright

from sixfold.serving.site import KINDS, STATIC

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
CLAUSE = "the {} old ships that lie in the quiet harbour sail to the islands in the south"
SHORT = f"In the summer {CLAUSE}, and nobody knows when."  # 30 pieces
SEEN = """
window.matrixAt = new Promise((done, fail) => requestAnimationFrame(function look() {
  const canvas = document.querySelector(".attention:not([hidden]) canvas.heat-map");
  if (canvas && canvas.style.height) done(performance.now());
  else if (document.querySelector(".translation-text.error")) fail(new Error(document.querySelector(".translation-text").textContent));
  else requestAnimationFrame(look);
}));
"""
MADE = """
window.made = async (tokens, layers, heads) => {
  const [{ HeadGrid }, { HeatMap }] = await Promise.all([import("/static/head_grid.js"), import("/static/heat_map.js")]);
  const labels = Array.from({ length: tokens }, (_, place) => `piece${place}`);
  const all = Array.from({ length: layers * heads }, () => {
    const values = new Float32Array(tokens * tokens).map(() => -Math.log(Math.random()));
    for (let row = 0; row < tokens; row++) {
      const its = values.subarray(row * tokens, (row + 1) * tokens);
      const sum = its.reduce((one, other) => one + other, 0);
      its.forEach((value, place) => (its[place] = value / sum));
    }
    return { rows: labels, columns: labels, values, max: 1, label: "" };
  });
  const matrix = new HeatMap();
  const get = (layer, head) => all[layer * heads + head];
  const grid = new HeadGrid((layer, head) => matrix.show(get(layer, head), [0, 0]));
  const frame = document.createElement("div");
  frame.style.width = "900px";
  frame.append(grid.element, matrix.element);
  document.body.append(frame);
  const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const began = performance.now();
  grid.show({ layers, heads, get, off: new Set(), label: "", describe: () => "" }, [0, 0]);
  await painted();
  const drawn = performance.now() - began;
  matrix.show(get(0, 0), [0, 0]);
  await painted();
  return drawn;
};
window.stepped = async (selector, keys) => {
  const canvas = document.querySelector(selector), took = [];
  for (let each = 0; each < 21; each++) {
    const key = keys[each % 2], began = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    took.push(performance.now() - began);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return took.sort((one, other) => one - other)[10];
};
window.pointed = (selector) => {
  const canvas = document.querySelector(selector), box = canvas.getBoundingClientRect(), took = [];
  for (let each = 0; each < 41; each++) {
    const at = { clientX: box.left + box.width / 2 + each, clientY: box.top + box.height / 2 + each, bubbles: true };
    const began = performance.now();
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    took.push(performance.now() - began);
  }
  return took.sort((one, other) => one - other)[20];
};
"""
MOVES = {  # to and fro, so that each step shows something else
    "next row": ("canvas.heat-map", "ArrowDown", "ArrowUp"),
    "next column": ("canvas.heat-map", "ArrowRight", "ArrowLeft"),
    "next head": ("canvas.head-grid", "ArrowRight", "ArrowLeft"),
}
PEER = """
import sys, torch
import bertviz
view, tokens, layers, heads, out = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
attention = tuple(torch.rand(1, heads, tokens, tokens).softmax(-1) for _ in range(layers))
page = getattr(bertviz, view)(attention, [f"piece{place}" for place in range(tokens)], html_action="return")
open(out, "w", encoding="utf-8").write("<!doctype html><meta charset=utf-8>" + page.data)
"""
PAINTED = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
HEADS = {"head_view": 8, "model_view": 48}  # that are drawn at once: of one layer, or all


@contextmanager
def served() -> Iterator[str]:
    command = [sys.executable, "-m", "sixfold", "serve", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("{") and json.loads(line).get("event") == "listening":
                threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would stop it
                yield str(json.loads(line)["url"])
                return
    finally:
        process.kill()
        process.wait()


def visited(browser: Browser, address: str, work: Callable[[Page], Any]) -> Any:
    """In a browser that has cached nothing."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.add_init_script(SEEN + MADE)
        page.goto(address)
        return work(page)
    finally:
        context.close()


def arrived(page: Page) -> dict[str, float]:
    matrix = page.evaluate("window.matrixAt")
    painted = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    pieces = page.evaluate("document.querySelectorAll('.query-tokens .token-button').length")
    return {"paint": painted, "matrix": matrix, "pieces": pieces}


def moved(page: Page) -> dict[str, float]:
    """Milliseconds until a key or the pointer has been answered, medians."""
    steps = {
        name: page.evaluate("([where, ...keys]) => window.stepped(where, keys)", move) for name, move in MOVES.items()
    }
    return {**steps, "pointer": page.evaluate("window.pointed('canvas.heat-map')")}


def long(page: Page) -> dict[str, float]:
    found = arrived(page)
    page.wait_for_load_state("networkidle")
    return {**found, **moved(page)}


def drawn(page: Page, tokens: int) -> dict[str, float]:
    """Numbers made up, by the parts that the screen is made of."""
    took = page.evaluate(f"window.made({tokens}, 6, 8)")
    return {"drawn": took, **moved(page)}


def sentence(clauses: int, number: int) -> str:
    """None is like another: each has other numbers in it."""
    places = range(number, number + clauses)
    return "When the summer comes, " + ", and ".join(CLAUSE.format(NUMBERS[each % 12]) for each in places) + "."


def middle(found: list[dict[str, float]], name: str) -> float:
    return statistics.median(each[name] for each in found)


def own(browser: Browser, url: str, runs: int) -> Iterator[tuple[str, str]]:
    def address(text: str) -> str:
        return f"{url}/?{urlencode({'screen': 'attention', 'kind': 'encoder', 'text': text})}"

    files = [path for path in STATIC.rglob("*") if path.suffix in KINDS]
    yield "page, all screens", f"{sum(path.stat().st_size for path in files):,} bytes in {len(files)} files"
    visited(browser, address("Hello."), arrived)
    short = [visited(browser, address(SHORT.format(NUMBERS[run])), arrived) for run in range(runs)]
    yield "to the first paint", f"{middle(short, 'paint'):.0f} ms"
    longer = [visited(browser, address(sentence(6, run)), arrived) for run in range(runs)]
    for its in (short, longer):
        name = f"to the first matrix, {middle(its, 'pieces'):.0f} pieces, 80 heads"
        yield name, f"{middle(its, 'matrix'):.0f} ms"
    longest = visited(browser, address(sentence(11, 0)), long)
    for move in (*MOVES, "pointer"):
        yield f"{move}, {longest['pieces']:.0f} pieces, the whole screen", f"{longest[move]:.1f} ms"
    for size in (128, 512):
        made = [visited(browser, f"{url}/", partial(drawn, tokens=size)) for _ in range(runs)]
        yield f"draw {size} tokens × 48 heads", f"{middle(made, 'drawn'):.0f} ms"
        for move in (*MOVES, "pointer"):
            yield f"{move}, {size} tokens, grid and matrix", f"{middle(made, move):.1f} ms"


def peer(browser: Browser, python: Path, scripts: Path, view: str, runs: int) -> tuple[str, str]:
    """BertViz's page for 128 tokens × 48 heads, its libraries from disk."""
    libraries = {"require": "requirejs/require.js", "d3": "d3/dist/d3.min.js", "jquery": "jquery/dist/jquery.min.js"}

    def fulfil(route: Route) -> None:
        name = next(name for name in libraries if name in route.request.url.rsplit("/", 1)[1])
        route.fulfill(path=scripts / libraries[name], content_type="text/javascript")

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"{view}.html"
        subprocess.run([python, "-c", PEER, view, "128", "6", "8", out], check=True)
        took = []
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(300_000)
            page.route(re.compile("^https://"), fulfil)
            page.goto(out.as_uri(), wait_until="commit")
            page.wait_for_function(f"document.querySelectorAll('svg line').length >= {128 * 128 * HEADS[view]}")
            took.append(page.evaluate(PAINTED))
            context.close()
        weight = out.stat().st_size
    return f"BertViz {view}, 128 tokens × {HEADS[view]} heads", f"{statistics.median(took):.0f} ms, {weight:,} bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--bertviz", type=Path, metavar="PYTHON")
    parser.add_argument("--scripts", type=Path, metavar="NODE_MODULES")
    args = parser.parse_args()
    with sync_playwright() as playwright, served() as url:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, value in own(browser, url, args.runs):
            print(f"{name:52} {value}", flush=True)
        if args.bertviz and args.scripts:
            for view in HEADS:
                name, value = peer(browser, args.bertviz, args.scripts, view, min(3, args.runs))
                print(f"{name:52} {value}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
