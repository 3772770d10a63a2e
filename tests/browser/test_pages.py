"""Report pages open from disk in a real browser without requests and without errors."""

import pytest
from small_runs import train
from small_systems import reworded

from sixfold.cli.main import main


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """A report, a comparison of runs and a comparison of systems, each written by its command."""
    folder = tmp_path_factory.mktemp("pages")
    runs = [train(folder, "narrow"), train(folder, "wide", "model.d_model=24")]
    references = (folder / "toy.en").read_text(encoding="utf-8").splitlines()
    translations = [f"{line} <script>document.title = 'taken'</script>" for line in reworded(references, 1)]
    (folder / "gamma-mmm.txt").write_text("\n".join(translations) + "\n", encoding="utf-8")
    systems = [runs[0] / "model.safetensors", folder / "gamma-mmm.txt"]
    commands = [
        ["report", runs[0]],
        ["report", *runs, "-o", folder / "compare.html"],
        ["evaluate", *systems, folder / "toy.zh", folder / "toy.en", "--no-ter", "--out", folder],
    ]
    for command in commands:
        with pytest.raises(SystemExit) as exit_info:
            main(list(map(str, command)))
        assert exit_info.value.code == 0
    return {
        "report": runs[0] / "report.html",
        "runs": folder / "compare.html",
        "systems": folder / "comparison.html",
    }


@pytest.fixture
def open_report(browser, pages):
    """A function that opens a page and returns it with its requests and console messages."""
    contexts = []

    def open_page(name, scheme="light", width=1000):
        contexts.append(browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 800}))
        page, requests, complaints = contexts[-1].new_page(), [], []
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(pages[name].as_uri())
        return page, requests, complaints

    yield open_page
    for context in contexts:
        context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "runs", "systems"])
def test_a_page_opens_from_disk_and_asks_for_nothing_else(open_report, pages, name, scheme):
    page, requests, complaints = open_report(name, scheme)
    page.wait_for_load_state("networkidle")
    assert requests == [pages[name].as_uri()]
    assert complaints == []
    assert page.locator("svg.chart").count() >= 2


@pytest.mark.parametrize("name", ["report", "runs", "systems"])
def test_light_and_dark_are_readable(open_report, name):
    brightness = {}
    for scheme in ("light", "dark"):
        page, _, _ = open_report(name, scheme)
        colours = page.evaluate("(() => { const s = getComputedStyle(document.documentElement);"
                                "return [s.backgroundColor, s.color] })()")  # fmt: skip
        paper, ink = (luminance(colour) for colour in colours)
        assert (max(paper, ink) + 0.05) / (min(paper, ink) + 0.05) >= 7
        brightness[scheme] = paper
    assert brightness["light"] > 0.8 > 0.1 > brightness["dark"]


@pytest.mark.parametrize("name", ["report", "runs", "systems"])
def test_a_phone_needs_no_sideways_scrolling(open_report, name):
    page, _, _ = open_report(name, width=360)
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_what_a_system_said_is_shown_and_not_run(open_report):
    page, _, complaints = open_report("systems")
    assert page.title() == "Comparison"
    assert page.locator("script").count() == 0
    assert "<script>" in page.locator("main").inner_text()
    assert complaints == []


def test_text_in_charts_stays_inside_them(open_report):
    for name in ("report", "runs", "systems"):
        page, _, _ = open_report(name)
        outside = page.evaluate("""[...document.querySelectorAll('svg.chart text')].filter(text => {
            const box = text.getBoundingClientRect(), chart = text.closest('svg').getBoundingClientRect();
            return box.left < chart.left - 1 || box.right > chart.right + 1 || box.bottom > chart.bottom + 1;
        }).map(text => text.textContent)""")
        assert outside == []


def luminance(colour):
    """Relative luminance of `rgb(r, g, b)`, as WCAG defines it."""
    parts = [int(part) / 255 for part in colour.strip("rgba()").split(",")[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
