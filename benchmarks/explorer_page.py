"""Measure the page: time to first paint, to the first attention heat map, and to all heads of a long sentence.

    python benchmarks/explorer_page.py [--runs 7] [--bertviz PYTHON --scripts NODE_MODULES]

The server and the browser are real: `sixfold serve` with the shipped model, and Chromium, with nothing in its cache.
Each run uses a sentence that the server has not seen. PYTHON: interpreter of an environment with bertviz;
NODE_MODULES: a folder with d3 5, jquery and requirejs, which BertViz pages would load from the network. BertViz's
model_view draws all 48 heads, its head_view those of one layer; the time ends when all lines are drawn.
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

from sixfold.serving.static_files import CONTENT_TYPES, STATIC_FOLDER

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
CLAUSE = "the {} old ships that lie in the quiet harbour sail to the islands in the south"
SHORT = f"In the summer {CLAUSE}, and nobody knows when."  # 30 tokens
MATRIX_TIME_SCRIPT = """
window.matrixAt = new Promise((done, fail) => requestAnimationFrame(function check() {
  const canvas = document.querySelector(".attention:not([hidden]) canvas.heat-map");
  const error = document.querySelector("#translation.error");
  if (canvas && canvas.style.height) done(performance.now());
  else if (error) fail(new Error(error.textContent));
  else requestAnimationFrame(check);
}));
"""
DRAWING_SCRIPT = """
window.drawHeads = async (tokens, layers, heads) => {
  const { HeadGrid } = await import("/static/head_grid.js"), { HeatMap } = await import("/static/heat_map.js");
  const labels = Array.from({ length: tokens }, (_, index) => `token${index}`);
  const all = Array.from({ length: layers * heads }, () => {
    const values = new Float32Array(tokens * tokens).map(() => -Math.log(Math.random()));
    for (let row = 0; row < tokens; row++) {
      const rowWeights = values.subarray(row * tokens, (row + 1) * tokens);
      const sum = rowWeights.reduce((total, value) => total + value, 0);
      rowWeights.forEach((value, index) => (rowWeights[index] = value / sum));
    }
    return { rows: labels, columns: labels, values, max: 1, label: "" };
  });
  const heatMap = new HeatMap();
  const get = (layer, head) => all[layer * heads + head];
  const grid = new HeadGrid((layer, head) => heatMap.show(get(layer, head), [0, 0]));
  const frame = document.createElement("div");
  frame.style.width = "900px";
  frame.append(grid.element, heatMap.element);
  document.body.append(frame);
  const painted = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const start = performance.now();
  grid.show({ layers, heads, get, off: new Set(), label: "", describe: () => "" }, [0, 0]);
  await painted();
  const drawn = performance.now() - start;
  heatMap.show(get(0, 0), [0, 0]);
  await painted();
  return drawn;
};
window.measureKeys = async (selector, keys) => {
  const canvas = document.querySelector(selector), times = [];
  for (let step = 0; step < 21; step++) {
    const key = keys[step % 2], start = performance.now();
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    times.push(performance.now() - start);
    await new Promise((done) => requestAnimationFrame(done));
  }
  return times.sort((first, second) => first - second)[10];
};
window.measurePointer = (selector) => {
  const canvas = document.querySelector(selector), box = canvas.getBoundingClientRect(), times = [];
  for (let step = 0; step < 41; step++) {
    const at = { clientX: box.left + box.width / 2 + step, clientY: box.top + box.height / 2 + step, bubbles: true };
    const start = performance.now();
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    times.push(performance.now() - start);
  }
  return times.sort((first, second) => first - second)[20];
};
"""
MOVES = {  # alternating keys, so that each step changes the selection
    "next row": ("canvas.heat-map", "ArrowDown", "ArrowUp"),
    "next column": ("canvas.heat-map", "ArrowRight", "ArrowLeft"),
    "next head": ("canvas.head-grid", "ArrowRight", "ArrowLeft"),
}
BERTVIZ_SCRIPT = """
import sys, torch
import bertviz
view, tokens, layers, heads, out = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
attention = tuple(torch.rand(1, heads, tokens, tokens).softmax(-1) for _ in range(layers))
page = getattr(bertviz, view)(attention, [f"token{index}" for index in range(tokens)], html_action="return")
open(out, "w", encoding="utf-8").write("<!doctype html><meta charset=utf-8>" + page.data)
"""
PAINT_TIME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now()))))"
HEADS = {"head_view": 8, "model_view": 48}  # drawn at once: of one layer, or all


@contextmanager
def start_server() -> Iterator[str]:
    command = [sys.executable, "-m", "sixfold", "serve", "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if line.startswith("{") and json.loads(line).get("event") == "listening":
                threading.Thread(target=process.stderr.read, daemon=True).start()  # a full pipe would block the server
                yield str(json.loads(line)["url"])
                return
    finally:
        process.kill()
        process.wait()


def visit(browser: Browser, address: str, measure: Callable[[Page], Any]) -> Any:
    """Open an address in a browser with an empty cache and measure the page."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-US")
    try:
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.add_init_script(MATRIX_TIME_SCRIPT + DRAWING_SCRIPT)
        page.goto(address)
        return measure(page)
    finally:
        context.close()


def loading_times(page: Page) -> dict[str, float]:
    matrix = page.evaluate("window.matrixAt")
    paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    tokens = page.evaluate("document.querySelectorAll('.query-tokens .token-button').length")
    return {"paint": paint, "matrix": matrix, "tokens": tokens}


def selection_times(page: Page) -> dict[str, float]:
    """Return the median milliseconds to handle a key or a pointer move."""
    steps = {
        name: page.evaluate("([where, ...keys]) => window.measureKeys(where, keys)", move)
        for name, move in MOVES.items()
    }
    return {**steps, "pointer": page.evaluate("window.measurePointer('canvas.heat-map')")}


def long_sentence_times(page: Page) -> dict[str, float]:
    times = loading_times(page)
    page.wait_for_load_state("networkidle")
    return {**times, **selection_times(page)}


def drawing_times(page: Page, tokens: int) -> dict[str, float]:
    """Draw random weights with the components of the attention screen."""
    duration = page.evaluate(f"window.drawHeads({tokens}, 6, 8)")
    return {"drawing": duration, **selection_times(page)}


def sentence(clauses: int, number: int) -> str:
    """Return a sentence with this number of clauses; each `number` gives a different one."""
    indices = range(number, number + clauses)
    return "When the summer comes, " + ", and ".join(CLAUSE.format(NUMBERS[each % 12]) for each in indices) + "."


def median(runs: list[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def measure_page(browser: Browser, url: str, runs: int) -> Iterator[tuple[str, str]]:
    def address(text: str) -> str:
        return f"{url}/?{urlencode({'screen': 'attention', 'kind': 'encoder', 'text': text})}"

    files = [path for path in STATIC_FOLDER.rglob("*") if path.suffix in CONTENT_TYPES]
    yield "page, all screens", f"{sum(path.stat().st_size for path in files):,} bytes in {len(files)} files"
    visit(browser, address("Hello."), loading_times)
    short = [visit(browser, address(SHORT.format(NUMBERS[run])), loading_times) for run in range(runs)]
    yield "to the first paint", f"{median(short, 'paint'):.0f} ms"
    medium = [visit(browser, address(sentence(6, run)), loading_times) for run in range(runs)]
    for runs_of_length in (short, medium):
        name = f"to the first matrix, {median(runs_of_length, 'tokens'):.0f} tokens, 80 heads"
        yield name, f"{median(runs_of_length, 'matrix'):.0f} ms"
    long = visit(browser, address(sentence(11, 0)), long_sentence_times)
    for move in (*MOVES, "pointer"):
        yield f"{move}, {long['tokens']:.0f} tokens, the whole screen", f"{long[move]:.1f} ms"
    for size in (128, 512):
        drawings = [visit(browser, f"{url}/", partial(drawing_times, tokens=size)) for _ in range(runs)]
        yield f"draw {size} tokens × 48 heads", f"{median(drawings, 'drawing'):.0f} ms"
        for move in (*MOVES, "pointer"):
            yield f"{move}, {size} tokens, grid and matrix", f"{median(drawings, move):.1f} ms"


def measure_bertviz(browser: Browser, python: Path, scripts: Path, view: str, runs: int) -> tuple[str, str]:
    """Measure the page of BertViz for 128 tokens × 48 heads, with its libraries loaded from disk."""
    libraries = {"require": "requirejs/require.js", "d3": "d3/dist/d3.min.js", "jquery": "jquery/dist/jquery.min.js"}

    def fulfil(route: Route) -> None:
        name = next(name for name in libraries if name in route.request.url.rsplit("/", 1)[1])
        route.fulfill(path=scripts / libraries[name], content_type="text/javascript")

    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / f"{view}.html"
        subprocess.run([python, "-c", BERTVIZ_SCRIPT, view, "128", "6", "8", out], check=True)
        times = []
        for _ in range(runs):
            context = browser.new_context(viewport={"width": 1280, "height": 900})
            page = context.new_page()
            page.set_default_timeout(300_000)
            page.route(re.compile("^https://"), fulfil)
            page.goto(out.as_uri(), wait_until="commit")
            page.wait_for_function(f"document.querySelectorAll('svg line').length >= {128 * 128 * HEADS[view]}")
            times.append(page.evaluate(PAINT_TIME))
            context.close()
        size = out.stat().st_size
    return f"BertViz {view}, 128 tokens × {HEADS[view]} heads", f"{statistics.median(times):.0f} ms, {size:,} bytes"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--bertviz", type=Path, metavar="PYTHON")
    parser.add_argument("--scripts", type=Path, metavar="NODE_MODULES")
    args = parser.parse_args()
    with sync_playwright() as playwright, start_server() as url:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        for name, value in measure_page(browser, url, args.runs):
            print(f"{name:52} {value}", flush=True)
        if args.bertviz and args.scripts:
            for view in HEADS:
                name, value = measure_bertviz(browser, args.bertviz, args.scripts, view, min(3, args.runs))
                print(f"{name:52} {value}", flush=True)
        browser.close()


if __name__ == "__main__":
    main()
