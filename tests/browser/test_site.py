"""What all screens of the page have in common: languages, colours, keyboard, narrow windows, exports, plain files."""

import json
import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

axe = pytest.importorskip("axe_playwright_python.sync_playwright")

TIRED = "The animal didn't cross the street because it was too tired"
SCREENS = ("translate", "attention", "decode", "walk", "masks", "positions", "embeddings", "shapes")
READY = {  # what a screen shows last
    "translate": [".word"],
    "attention": ["canvas.heat-map[data-left]"],
    "decode": ["#choices tbody tr", "#hypotheses tbody tr"],
    "walk": [".cards[data-ready]"],
    "masks": [".row-table"],
    "positions": [".panel canvas[data-left]"],
    "embeddings": [".neighbour", ".cosine:not(:empty)", ".point"],
    "shapes": [".tree"],
}
PANELS = {
    "translate": 1,
    "attention": 5,
    "decode": 4,
    "walk": 4,
    "masks": 4,
    "positions": 4,
    "embeddings": 3,
    "shapes": 5,
}  # at least
MOST = 3  # panels of a screen whose exports are looked at; those of a walk are alike
NAMES = re.compile("Top-[kp]")  # that both languages write alike
ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/sixfold/serving/static"
HAN = re.compile("[一-鿿]")


def some_screens(offset):
    """Every third screen, from the one at `offset` on; `make slow` opens the others. Together the tests open each."""
    return [
        screen if place % 3 == offset else pytest.param(screen, marks=pytest.mark.slow)
        for place, screen in enumerate(SCREENS)
    ]


def opened(look, screen, **how):
    """A screen that has got all its answers."""
    page = look(screen, text=TIRED, **how)
    page.wait_for_load_state("networkidle")
    for selector in READY[screen]:
        page.wait_for_selector(selector)
    return page


def faults(page):
    """What axe-core finds and calls serious or critical."""
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {node['html'][:200]}"
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


@pytest.mark.parametrize("screen", some_screens(0))
def test_a_screen_opens_in_light_english_and_changes_to_dark_chinese(look, screen):
    page = opened(look, screen)
    assert page.locator("h1").count() == 1
    assert page.locator("nav a[aria-current=page]").get_attribute("data-screen") == screen
    english = page.locator("h1").inner_text()
    assert faults(page) == []
    page.click("#language")
    page.wait_for_selector(f'html[lang="zh-CN"] main[data-screen="{screen}"]')
    page.click("#theme")
    page.wait_for_selector(f'html[data-theme="dark"] main[data-screen="{screen}"]')
    chinese = page.locator("h1").inner_text()
    assert HAN.search(chinese)
    assert not HAN.search(english)


@pytest.mark.parametrize("screen", some_screens(1))
def test_a_screen_fits_a_phone_in_dark_chinese(look, screen):
    page = opened(look, screen, width=390, height=800, scheme="dark", lang="zh")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page) == []
    told = page.locator("h1, h2, nav a, label, main .lead, main .note").all_inner_texts()
    assert [each for each in told if re.search("[A-Za-z]{2}", NAMES.sub("", each)) and not HAN.search(each)] == []


@pytest.mark.parametrize("screen", some_screens(2))
def test_a_screen_fits_a_phone_in_light_english(look, screen):
    page = opened(look, screen, width=390, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("screen", some_screens(1))
def test_tab_comes_to_the_skip_link_then_to_every_screen_then_to_the_first_control(look, screen):
    page = opened(look, screen)
    reached = []
    while len(reached) < 30 and "main" not in reached:
        page.keyboard.press("Tab")
        reached.append(
            page.evaluate("""(() => {
            const at = document.activeElement;
            return at.closest('main') ? 'main' : at.id || at.dataset.screen || at.className;
        })()""")
        )
    assert reached[0] == "skip"
    assert [each for each in reached if each in SCREENS] == list(SCREENS)
    assert reached[-1] == "main"
    page.focus("#skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_enter_on_a_link_opens_its_screen_and_back_returns(look):
    page = look("translate")
    for before, screen in pairwise(SCREENS):
        page.focus(f'nav a[data-screen="{screen}"]')
        page.keyboard.press("Enter")
        page.wait_for_selector(f'main[data-screen="{screen}"]')
        assert f"screen={screen}" in page.url
        page.go_back()
        page.wait_for_selector(f'main[data-screen="{before}"]')
        page.go_forward()
        page.wait_for_selector(f'main[data-screen="{screen}"]')


@pytest.mark.parametrize("screen", some_screens(0))
def test_every_panel_gives_a_picture_a_drawing_and_its_data(look, screen):
    page = opened(look, screen, **({"view": "aligners"} if screen == "attention" else {}))
    if screen == "attention":
        page.wait_for_selector(".bars [data-head]")
    panels = page.locator("section.panel, .exports" if screen == "translate" else "section.panel")
    panels = panels.filter(visible=True).all()
    assert len(panels) >= PANELS[screen]
    for place, panel in enumerate(panels):
        kinds = [each.get_attribute("data-export") for each in panel.locator("[data-export]").all()]
        assert kinds == ["png", "svg", "data"], screen
        for kind in kinds if place < MOST else ():
            with page.expect_download() as waiting:
                panel.locator(f"[data-export={kind}]").click()
            page.wait_for_timeout(100)  # Chromium drops the eleventh download of a second
            CHECKS[Path(waiting.value.suggested_filename).suffix](Path(waiting.value.path()).read_bytes())


def is_png(data):
    assert data.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert width > 200
    assert height > 40


def is_svg(data):
    root = ElementTree.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(--" not in data.decode()  # it has its colours with it
    assert float(root.get("width")) > 100


def is_csv(data):
    lines = data.decode().splitlines()
    assert len(lines) >= 2
    assert "," in lines[0]


def is_json(data):
    assert json.loads(data)


CHECKS = {".png": is_png, ".svg": is_svg, ".csv": is_csv, ".json": is_json}


# --- what lies in static/ ---------------------------------------------------------------------------------------------

MODULES = sorted(STATIC.rglob("*.js"))
SIDE = r'"((?:[^"\\]|\\.)*)"'


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_every_word_of_the_interface_is_there_in_english_and_chinese(path):
    text = path.read_text(encoding="utf-8")
    pairs = re.findall(rf"\{{\s*en:\s*{SIDE},\s*zh:\s*{SIDE},?\s*\}}", text)
    assert len(pairs) == len(re.findall(r'\ben:\s*"', text)) == len(re.findall(r'\bzh:\s*"', text))
    for english, chinese in pairs:
        assert english.strip()
        assert chinese.strip()
        slots = [sorted(set(re.findall(r"\{\d\}", side))) for side in (english, chinese)]
        assert slots[0] == slots[1], english
        # what both write alike is a name; the language that one changes to is written in itself
        is_wordless = not re.search("[A-Za-z]", chinese)
        assert HAN.search(chinese) or is_wordless or english == chinese or HAN.search(english), english


def test_no_file_of_the_page_refers_to_another_host():
    for path in STATIC.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
            assert not re.search(r"""\w+://\w|["'(]//\w""", text), path


def test_the_page_is_small(site):
    """All of it, as it travels; a visitor of one screen fetches less."""
    names = [path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()]
    paths = ["/" if name == "index.html" else f"/static/{name}" for name in names]
    assert sum(len(site.ask(path, headers={"Accept-Encoding": "gzip"})[2]) for path in paths) < 200_000


def test_the_types_of_the_page_are_sound():
    own = ROOT / ".venv/node/node_modules/.bin/tsc"
    compiler = str(own) if own.exists() else shutil.which("tsc")
    if compiler is None:
        pytest.skip("no TypeScript here: make browser")
    done = subprocess.run([compiler, "-p", str(ROOT)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
