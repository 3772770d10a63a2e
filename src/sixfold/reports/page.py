"""Building blocks of a report: one self-contained HTML file that loads nothing, with a light and a dark style."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sixfold import files
from sixfold.errors import ConfigError

VISIBLE_ROWS = 12  # of a table; the rest opens on a click
# No scripts, fonts or pictures from elsewhere: text of the data cannot load anything, whatever it contains.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_NUMBER = re.compile(r"[-+−<>≈]?\d[\d,.]*(?:e-?\d+)?(?:[  ]?[%×a-zA-Z/²]{1,7})?(?: ± [\d.,]+|–\d[\d,.]*)?|–")


class Markup(str):
    """HTML that this module or `charts` has built. Every other string is text and gets escaped."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A heading and the parts below it."""

    title: str
    parts: Sequence[str]  # text becomes a paragraph


def escape(value: object) -> Markup:
    """Return a text escaped for HTML; Markup is returned as it is."""
    if isinstance(value, Markup):
        return value
    # Control characters are not allowed in HTML at all, not even escaped.
    return Markup(html.escape(re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "�", str(value))))


def element(name: str, *content: object, **attributes: object) -> Markup:
    """Return `<name attribute="…">…</name>`. Write `class_` for class and `stroke_width` for stroke-width."""
    pairs = [f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items()]
    return Markup(f"<{name}{''.join(pairs)}>{''.join(map(escape, content))}</{name}>")


def concatenate(*parts: object) -> Markup:
    """Return parts one after another; those that are text get escaped."""
    return Markup("".join(map(escape, parts)))


def paragraph(*content: object) -> Markup:
    return element("p", *content)


def note(*content: object) -> Markup:
    """Return a paragraph in small print, for signatures and sources of numbers."""
    return element("p", *content, class_="note")


def code(text: str) -> Markup:
    return element("pre", element("code", text), tabindex=0)


def key_values(values: Mapping[str, str]) -> Markup:
    """Return the most important values of a page in large type, each above its name."""
    cells = [element("div", element("dt", name), element("dd", value)) for name, value in values.items()]
    return element("dl", *cells, class_="figures")


def table(head: Sequence[str], rows: Sequence[Sequence[object]], visible_rows: int = VISIBLE_ROWS) -> Markup:
    """Return a table. Columns of numbers are aligned to the right; rows beyond `visible_rows` open on a click."""
    if len(rows) > visible_rows + 2:
        summary = f"{len(rows) - visible_rows} more of {len(rows):,}"
        rest = table(head, rows[visible_rows:], visible_rows=len(rows))
        return concatenate(table(head, rows[:visible_rows]), collapsible(summary, rest))
    classes = ["number" if all(map(_is_number, column)) else "" for column in zip(*rows, strict=True)]
    classes = classes or [""] * len(head)
    titles = [element("th", title, scope="col", class_=name) for title, name in zip(head, classes, strict=True)]
    lines = [
        element("tr", *(element("td", cell, class_=name, dir="auto") for cell, name in zip(row, classes, strict=True)))
        for row in rows
    ]
    body = element("table", element("thead", element("tr", *titles)), element("tbody", *lines))
    return element("div", body, class_="wide", tabindex=0)


def _is_number(cell: object) -> bool:
    text = re.sub("<[^>]*>", "", cell) if isinstance(cell, Markup) else cell
    return not isinstance(text, str) or not text or bool(_NUMBER.fullmatch(text))


def collapsible(summary: str, *parts: object) -> Markup:
    """Return parts that are hidden until the reader clicks on the summary."""
    return element("details", element("summary", summary), *parts)


def definition_list(lines: Sequence[tuple[str, object]]) -> Markup:
    """Return names and texts, one below the other: a sentence, its reference and its translations."""
    rows = [concatenate(element("dt", name), element("dd", text, dir="auto")) for name, text in lines]
    return element("dl", *rows, class_="entries")


def side_by_side(*parts: object) -> Markup:
    """Return parts in a grid: as many in a row as fit; one below the other on a phone."""
    return element("div", *parts, class_="grid")


def render(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    """Return the complete HTML page."""
    body = [
        element(
            "section",
            element("h2", section.title),
            *(part if isinstance(part, Markup) else paragraph(part) for part in section.parts),
        )
        for section in sections
    ]
    header = element("header", element("h1", title), element("p", subtitle))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n"
        f"<body>{header}{element('main', *body)}</body>\n</html>\n"
    )


def make_folder(out: Path) -> None:
    """Create a folder for a report. Call it before long work, so that a bad path is found at once."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output: {out}: expected a folder: {error.strerror}", "choose another name") from None


def write(path: Path, text: str) -> None:
    """Write a text file atomically: the complete file or nothing."""
    with files.atomic_write(path) as file:
        file.write(text.encode())


# One type scale (13, 15, 18, 28 px), one accent. The colours of the series also differ in lightness, so that they can
# be distinguished in grey; charts add dashes for readers who cannot see colours.
STYLE = """
:root{--paper:#fcfcfa;--card:#fff;--ink:#1c2024;--soft:#5d666e;--line:#e3e4df;--accent:#2d3f9e;
--series-1:#2d3f9e;--series-2:#c8553d;--series-3:#2a9d8f;--series-4:#d79a2b;--series-5:#7d8791;--series-6:#8e3b7c}
@media (prefers-color-scheme:dark){:root{--paper:#15181b;--card:#1c2024;--ink:#e7e9ea;--soft:#9aa4ad;--line:#30363c;
--accent:#9db4ff;--series-1:#9db4ff;--series-2:#dd6a50;--series-3:#2fb5a3;--series-4:#f2c46d;--series-5:#7d8791;
--series-6:#d98fc8}}
*{box-sizing:border-box}
html{font:15px/1.55 system-ui,-apple-system,"Segoe UI","Noto Sans","Noto Sans CJK SC","PingFang SC",
"Microsoft YaHei",sans-serif;background:var(--paper);color:var(--ink);-webkit-text-size-adjust:100%}
body{max-width:64rem;margin:0 auto;padding:2rem clamp(1rem,4vw,2.5rem) 4rem}
header{border-top:4px solid var(--accent);padding-top:1.25rem}
h1{font-size:28px;line-height:1.2;margin:0;letter-spacing:-.01em;overflow-wrap:anywhere}
header p{color:var(--soft);margin:.4rem 0 0;overflow-wrap:anywhere}
section{margin-top:2.5rem}
h2{font-size:18px;line-height:1.3;margin:0 0 .75rem;padding-bottom:.4rem;border-bottom:1px solid var(--line)}
p{margin:.5rem 0;max-width:46rem;overflow-wrap:anywhere}
.note{font-size:13px;color:var(--soft)}
.figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(8.5rem,1fr));gap:1px;margin:1.25rem 0 0;
background:var(--line);border:1px solid var(--line);border-radius:6px;overflow:hidden}
.figures div{background:var(--card);padding:.8rem 1rem;display:flex;flex-direction:column-reverse;
justify-content:flex-end}
.figures dt{font-size:13px;color:var(--soft)}
.figures dd{font-size:28px;line-height:1.2;margin:0;font-variant-numeric:tabular-nums;overflow-wrap:anywhere}
.wide{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;min-width:100%;font-size:13px}
th,td{text-align:start;vertical-align:top;padding:.4rem .9rem .4rem 0;border-bottom:1px solid var(--line)}
th{color:var(--soft);font-weight:500;white-space:nowrap}
td{overflow-wrap:anywhere;min-width:3.5rem}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
details{margin:.5rem 0}
summary{cursor:pointer;color:var(--accent);font-size:13px;padding:.25rem 0}
.entries{display:grid;grid-template-columns:minmax(5rem,max-content) 1fr;gap:.15rem 1rem;margin:.75rem 0;
padding:.75rem 1rem;background:var(--card);border:1px solid var(--line);border-radius:6px}
.entries dt{font-size:13px;color:var(--soft);max-width:12rem;overflow-wrap:anywhere}
.entries dd{margin:0;overflow-wrap:anywhere}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,22rem),1fr));gap:1.25rem 2rem;margin:1rem 0}
figure{margin:0;min-width:0}
figcaption{font-size:13px;font-weight:600}
.legend{display:flex;flex-wrap:wrap;gap:.1rem 1rem;font-size:13px;color:var(--soft);margin:.2rem 0 0;padding:0;
list-style:none}
.legend svg{width:26px;height:10px;margin-right:.4rem}
.chart{display:block;width:100%;height:auto;margin-top:.4rem;font-size:12px}
.chart text{fill:var(--soft);font-variant-numeric:tabular-nums}
.chart text.value{fill:var(--ink)}
.rule{stroke:var(--line);stroke-width:1}
.axis{stroke:var(--soft);stroke-width:1}
.mark{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}
.hit{fill:transparent}
.hit:hover{fill:var(--ink);fill-opacity:.25}
pre{font:13px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:var(--card);overflow-x:auto;
border:1px solid var(--line);border-radius:6px;padding:.75rem 1rem;margin:.75rem 0}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
@media (max-width:30rem){.entries{grid-template-columns:1fr}.entries dd{margin-bottom:.4rem}}
@media print{:root{--paper:#fff}body{padding:0;max-width:none}section,figure,.entries{break-inside:avoid}
details::details-content{content-visibility:visible;display:block}.wide{overflow:visible}}
"""
