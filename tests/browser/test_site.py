"""What all screens share: languages, themes, keyboard, narrow windows, exports, static files."""

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
READY = {  # selectors that appear last
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
}  # minimum number of panels with exports
MAX_CHECKED_PANELS = 3  # panels per screen whose exports are checked
SHARED_NAMES = re.compile("Top-[kp]")  # written the same in both languages
ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src/sixfold/serving/static"
HAN = re.compile("[一-鿿]")


def some_screens(offset):
    """Return every third screen from `offset` on; the others are marked slow. Together the tests cover all screens."""
    return [
        screen if index % 3 == offset else pytest.param(screen, marks=pytest.mark.slow)
        for index, screen in enumerate(SCREENS)
    ]


def open_ready(open_page, screen, **options):
    """Open a screen and wait until it has loaded everything."""
    page = open_page(screen, text=TIRED, **options)
    page.wait_for_load_state("networkidle")
    for selector in READY[screen]:
        page.wait_for_selector(selector)
    return page


def faults(page):
    """Return the accessibility violations that axe-core rates serious or critical."""
    violations = axe.Axe().run(page).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]}"
        for violation in violations
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@pytest.mark.parametrize("screen", some_screens(0))
def test_a_screen_opens_in_light_english_and_changes_to_dark_chinese(open_page, screen):
    page = open_ready(open_page, screen)
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
def test_a_screen_fits_a_phone_in_dark_chinese(open_page, screen):
    page = open_ready(open_page, screen, width=390, height=800, scheme="dark", lang="zh")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults(page) == []
    texts = page.locator("h1, h2, nav a, label, main .lead, main .note").all_inner_texts()
    assert [
        text for text in texts if re.search("[A-Za-z]{2}", SHARED_NAMES.sub("", text)) and not HAN.search(text)
    ] == []


@pytest.mark.parametrize("screen", some_screens(2))
def test_a_screen_fits_a_phone_in_light_english(open_page, screen):
    page = open_ready(open_page, screen, width=390, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("screen", some_screens(1))
def test_tab_comes_to_the_skip_link_then_to_every_screen_then_to_the_first_control(open_page, screen):
    page = open_ready(open_page, screen)
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
    assert [name for name in reached if name in SCREENS] == list(SCREENS)
    assert reached[-1] == "main"
    page.focus("#skip")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_enter_on_a_link_opens_its_screen_and_back_returns(open_page):
    page = open_page("translate")
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
def test_every_panel_gives_a_picture_a_drawing_and_its_data(open_page, screen):
    page = open_ready(open_page, screen, **({"view": "aligners"} if screen == "attention" else {}))
    if screen == "attention":
        page.wait_for_selector(".bars [data-head]")
    panels = page.locator("section.panel, .exports" if screen == "translate" else "section.panel")
    panels = panels.filter(visible=True).all()
    assert len(panels) >= PANELS[screen]
    for index, panel in enumerate(panels):
        kinds = [button.get_attribute("data-export") for button in panel.locator("[data-export]").all()]
        assert kinds == ["png", "svg", "data"], screen
        for kind in kinds if index < MAX_CHECKED_PANELS else ():
            with page.expect_download() as waiting:
                panel.locator(f"[data-export={kind}]").click()
            page.wait_for_timeout(100)  # Chromium drops downloads after the tenth within a second
            CHECKS[Path(waiting.value.suggested_filename).suffix](Path(waiting.value.path()).read_bytes())


def is_png(data):
    assert data.startswith(b"\x89PNG\r\n")
    width, height = (int.from_bytes(data[offset : offset + 4], "big") for offset in (16, 20))
    assert width > 200
    assert height > 40


def is_svg(data):
    root = ElementTree.fromstring(data)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert "var(--" not in data.decode()  # colours are resolved
    assert float(root.get("width")) > 100


def is_csv(data):
    lines = data.decode().splitlines()
    assert len(lines) >= 2
    assert "," in lines[0]


def is_json(data):
    assert json.loads(data)


CHECKS = {".png": is_png, ".svg": is_svg, ".csv": is_csv, ".json": is_json}


# --- the files of static/ ---------------------------------------------------------------------------------------------

MODULES = sorted(STATIC.rglob("*.js"))
STRING = r'"((?:[^"\\]|\\.)*)"'


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_every_word_of_the_interface_is_there_in_english_and_chinese(path):
    text = path.read_text(encoding="utf-8")
    pairs = re.findall(rf"\{{\s*en:\s*{STRING},\s*zh:\s*{STRING},?\s*\}}", text)
    assert len(pairs) == len(re.findall(r'\ben:\s*"', text)) == len(re.findall(r'\bzh:\s*"', text))
    for english, chinese in pairs:
        assert english.strip()
        assert chinese.strip()
        slots = [sorted(set(re.findall(r"\{\d\}", side))) for side in (english, chinese)]
        assert slots[0] == slots[1], english
        # equal texts are names; the language button names the other language in that language
        is_wordless = not re.search("[A-Za-z]", chinese)
        assert HAN.search(chinese) or is_wordless or english == chinese or HAN.search(english), english


def test_no_file_of_the_page_refers_to_another_host():
    for path in STATIC.rglob("*"):
        if path.is_file():
            text = path.read_text(encoding="utf-8").replace("http://www.w3.org/", "")
            assert not re.search(r"""\w+://\w|["'(]//\w""", text), path


def test_the_page_is_small(site):
    """The size of all files, compressed; a visitor of one screen loads less."""
    names = [path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()]
    paths = ["/" if name == "index.html" else f"/static/{name}" for name in names]
    assert sum(len(site.ask(path, headers={"Accept-Encoding": "gzip"})[2]) for path in paths) < 200_000


def test_the_types_of_the_page_are_sound():
    installed = ROOT / ".venv/node/node_modules/.bin/tsc"
    compiler = str(installed) if installed.exists() else shutil.which("tsc")
    if compiler is None:
        pytest.skip("no TypeScript found: make browser")
    result = subprocess.run([compiler, "-p", str(ROOT)], capture_output=True, text=True)
    assert result.returncode == 0, result.stdout
