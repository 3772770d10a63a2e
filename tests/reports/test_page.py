import math
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sixfold.reports import charts, page
from sixfold.reports.charts import Interval, Series
from sixfold.reports.formatting import format_number
from sixfold.reports.page import Markup, Section

HOSTILE = """<script>alert(1)</script>"><img src=x onerror=alert(1)>' onload='alert(1)' </style></title>&lt;b&gt;"""
OUR_ELEMENTS = (
    "html head meta link title style body header main section h1 h2 p dl dt dd div table thead tbody tr th td details "
    "summary pre code figure figcaption svg g path circle rect line text ul li"
)
finite = st.floats(-1e9, 1e9, allow_nan=False)


class Reader(HTMLParser):
    """Collects the elements, attributes and texts that a browser would find."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.attributes, self.texts = set(), [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.texts.append(data)


def page_with_everything(text):
    """Return a page that has this text wherever a page takes text."""
    series = [Series(text, [1, 2, 3], [1.0, 2.0, 3.0]), Series(text + "2", [1, 2, 3], [3.0, None, 1.0])]
    parts = [
        text, page.paragraph(text), page.note(text), page.code(text), page.key_values({text: text}),
        page.table([text, text], [[text, text]] * 20), page.collapsible(text, text),
        page.definition_list([(text, text)]),
        page.side_by_side(
            charts.lines(text, series, text), charts.bars(text, [text], [(text, [1.0]), (text, [2.0])]),
            charts.histogram(text, [0, 1], [3], text), charts.intervals(text, [Interval(text, 1, 2, 3)]),
        ),
    ]  # fmt: skip
    return page.render(text, text, [Section(text, parts)])


def test_text_never_becomes_markup():
    html = Reader(page_with_everything(HOSTILE))
    assert html.elements <= set(OUR_ELEMENTS.split())
    assert not [name for name, _ in html.attributes if name.startswith("on") or name == "src"]
    assert sum(HOSTILE in text for text in html.texts) > 30
    assert "<script" not in page_with_everything(HOSTILE)


def test_control_characters_are_replaced():
    assert page.escape("a\0b\x1b\ud800") == "a�b��"
    assert page.escape("a\tb\nc 机器 😀") == "a\tb\nc 机器 😀"


def test_a_page_loads_nothing():
    text = page_with_everything("a")
    html = Reader(text)
    assert "script" not in html.elements
    assert [value for name, value in html.attributes if name in ("href", "src")] == ["data:,"]
    assert "url(" not in text
    assert "@import" not in text
    assert """content="default-src 'none'; style-src 'unsafe-inline'; img-src data:\"""" in text


def test_columns_of_numbers_are_aligned_to_the_right():
    text = page.table(
        ["name", "n", "range", "p"], [["a1", "1,200", "1.0–2.5", Markup("<b>0.001</b>")], ["b", "-3.5%", "–", ""]]
    )
    assert re.findall(r'<th scope="col" class="(.*?)">', text) == ["", "number", "number", "number"]


def test_no_row_of_a_long_table_is_lost():
    text = page.table(["n"], [[f"row {number}"] for number in range(100)])
    assert re.findall(r"row (\d+)", text) == [str(number) for number in range(100)]
    assert "88 more of 100" in text


def test_a_table_without_rows_keeps_its_head():
    assert "<th" in page.table(["one", "two"], [])


@given(finite, finite)
def test_ticks_are_few_and_round(low, high):
    low, high = min(low, high), max(low, high)
    if high - low < 1e-6 * max(1, abs(high), abs(low)):
        return
    ticks = charts.ticks(low, high)
    assert 2 <= len(ticks) <= 6
    step = ticks[1] - ticks[0]
    mantissa = float(f"{step:.6e}"[0:8])
    assert min(abs(mantissa - factor) for factor in (1, 2, 5, 10)) < 1e-3
    assert all(low - step * 1e-6 <= tick <= high + step * 1e-6 for tick in ticks)


@given(st.lists(finite, min_size=1, max_size=20), st.booleans())
def test_an_axis_contains_all_its_values(values, from_zero):
    axis = charts.axis_of(values, 0, 100, from_zero)
    assert axis.low < axis.high
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values)
    assert max(values) <= axis.high + slack
    if from_zero:
        assert axis.low - slack <= 0 <= axis.high + slack


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.05, "0.05"), (0.0007, "7e-4"), (1200, "1,200"), (15000, "15k"), (3e6, "3M"), (-2.5, "-2.5")],
)
def test_numbers_are_short(value, text):
    assert format_number(value) == text


def test_numbers_of_an_axis_share_a_unit():
    assert [format_number(value, 15000) for value in (0, 5000, 15000)] == ["0", "5k", "15k"]


def test_missing_and_infinite_values_leave_a_gap():
    text = charts.lines("loss", [Series("a", [1, 2, 3, 4, 5], [1.0, 2.0, None, math.nan, 3.0])])
    path = re.search(r'<path d="(.*?)"', text)[1]
    assert path.count("M") == 2
    assert path.count("L") == 1


def test_a_long_line_is_averaged_and_not_cut():
    steps = list(range(1, 100_001))
    xs, ys = charts.thin_out(Series("a", steps, [float(step) for step in steps]))
    assert len(xs) <= charts.MAX_POINTS
    assert xs[-1] == 100_000
    assert sum(ys) / len(ys) == pytest.approx(50_000.5, rel=1e-3)


@pytest.mark.parametrize("series", [[], [Series("a", [], [])], [Series("a", [1], [None])]])
def test_a_chart_of_nothing_says_so(series):
    assert "nothing to show" in charts.lines("loss", series)


def test_a_chart_of_one_point_is_a_dot():
    assert "h0.1" in charts.lines("loss", [Series("a", [5], [2.0])])


def test_bars_are_as_long_as_their_values():
    text = charts.bars("BLEU", ["short", "long"], [("a", [10.0, 20.0]), ("b", [None, 5.0])])
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', text)]
    assert widths[1] == pytest.approx(2 * widths[0], abs=0.2)
    assert widths[2] == pytest.approx(widths[0] / 2, abs=0.2)
    assert len(widths) == 3


def test_labels_that_do_not_fit_end_in_dots():
    assert charts.clip_text("机器学习", 30).endswith("…")
    assert charts.clip_text("ab", 30) == "ab"


def test_a_page_is_written_whole_or_not_at_all(tmp_path):
    page.write(tmp_path / "a.html", "機械 <p>")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == "機械 <p>"
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
