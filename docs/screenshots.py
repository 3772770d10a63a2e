"""Write pictures of every screen, and every picture of the concepts page, to docs/images: `make screenshots`.

The server runs with the shipped model. Sentences, window sizes and themes are fixed, so a picture changes only when
the page does.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from playwright.sync_api import Browser, sync_playwright

IMAGES = Path(__file__).parent / "images"
CONCEPTS_PAGE = Path(__file__).parent / "concepts" / "transformer.md"
MAX_BYTES = 200_000  # of one picture
TIRED = "The animal didn't cross the street because it was too tired"
RAIN = "It rained all day, so we stayed at home and read."
CHINESE = "今天下了一整天的雨，所以我们待在家里看书。"
WIDE, TALL, PHONE = (1200, 800), (1200, 1300), (390, 800)

# The selector that each screen shows last.
READY = {
    "translate": ".word", "attention": "canvas.heat-map[data-left]", "decode": "#hypotheses tbody tr",
    "walk": ".cards[data-ready]", "masks": ".row-table", "positions": ".panel canvas[data-left]",
    "embeddings": ".point", "shapes": ".tree",
}  # fmt: skip

# name: state in the address, theme, window size
PICTURES: dict[str, tuple[dict[str, str], str, tuple[int, int]]] = {
    "translate": ({"screen": "translate", "text": RAIN}, "light", WIDE),
    "translate-phone": ({"screen": "translate", "text": RAIN}, "light", PHONE),
    "translate-zh": ({"screen": "translate", "text": CHINESE, "lang": "zh"}, "light", WIDE),
    "attention": ({"screen": "attention", "text": TIRED}, "light", TALL),
    "attention-dark": ({"screen": "attention", "text": TIRED}, "dark", TALL),
    "decode": ({"screen": "decode", "text": TIRED}, "light", WIDE),
    "walk": ({"screen": "walk", "text": TIRED}, "light", WIDE),
    "masks": ({"screen": "masks"}, "light", WIDE),
    "positions": ({"screen": "positions"}, "light", WIDE),
    "embeddings": ({"screen": "embeddings", "word": "black"}, "light", WIDE),
    "shapes": ({"screen": "shapes"}, "light", WIDE),
}


def main() -> None:
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("no Chromium found: apt-get install chromium fonts-noto-cjk")
    IMAGES.mkdir(exist_ok=True)
    write_concept_pictures()
    command = [sys.executable, "-m", "sixfold", "serve", "--port", "0"]
    with tempfile.TemporaryDirectory() as cache, sync_playwright() as playwright:
        server = subprocess.Popen(
            command, stderr=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, "SIXFOLD_CACHE": cache}
        )
        try:
            address = wait_for_address(server)
            browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
            for name in PICTURES:
                size = take_picture(browser, address, name)
                print(f"{name}.png {size:,} bytes")
                if size > MAX_BYTES:
                    sys.exit(f"{name}.png: expected at most {MAX_BYTES:,} bytes")
            browser.close()
        finally:
            server.terminate()
            server.wait()


def write_concept_pictures() -> None:
    """Run each command of the concepts page that writes a picture."""
    for line in CONCEPTS_PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("`sixfold see "):
            subprocess.run([sys.executable, "-m", *shlex.split(line.strip("`"))], cwd=IMAGES, check=True)


def wait_for_address(server: subprocess.Popen[str]) -> str:
    """Return the address of the server once it listens."""
    assert server.stderr is not None
    for line in server.stderr:
        event: dict[str, Any] = json.loads(line) if line.startswith("{") else {}
        if event.get("event") == "listening":
            return str(event["url"])
    sys.exit("the server did not start")


def take_picture(browser: Browser, address: str, name: str) -> int:
    state, scheme, (width, height) = PICTURES[name]
    context = browser.new_context(
        viewport={"width": width, "height": height}, device_scale_factor=1, locale="en-US", reduced_motion="reduce",
        color_scheme="dark" if scheme == "dark" else "light",
    )  # fmt: skip
    page = context.new_page()
    page.goto(f"{address}/?{urlencode(state)}")
    page.wait_for_selector(f'main[data-screen="{state["screen"]}"]')
    page.wait_for_selector(READY[state["screen"]])
    page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement?.blur()")  # no blinking cursor
    before, data = b"", page.screenshot(animations="disabled", caret="hide")
    while data != before:  # until two pictures are equal
        page.wait_for_timeout(1000)
        before, data = data, page.screenshot(animations="disabled", caret="hide")
    (IMAGES / f"{name}.png").write_bytes(data)
    context.close()
    return len(data)


if __name__ == "__main__":
    main()
