"""The README in English and in Chinese: short, equal in substance, and true."""

import re
import shutil

import pytest
from document_commands import ROOT, run_document, run_python

from sixfold import modelfile
from sixfold.translation.loading import shipped_models

PAGES = ("README.md", "README.zh.md")
LINES = 120
TEST_SETS = {"Tatoeba": "tatoeba", "LCTT": "lctt", "FLORES dev": "flores-dev", "WMT17": "wmt17"}
CODE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)]+)\)")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)


def read(page):
    return (ROOT / page).read_text(encoding="utf-8")


def substance(text):
    """Return what both languages must share: code blocks without comments, links, and the levels of the headings."""
    blocks = [(language, re.sub(r"[ \t]*#.*$", "", code, flags=re.MULTILINE)) for language, code in CODE.findall(text)]
    prose = CODE.sub("", text)
    # A Chinese page or picture stands for the English one of the same name.
    links = sorted({re.sub(r"[.-]zh(?=\.(?:md|png)$)", "", link) for link in LINK.findall(prose)})
    return {"code": blocks, "links": links, "headings": HEADING.findall(prose)}


def test_both_languages_have_the_same_commands_links_and_headings():
    english, chinese = (substance(read(page)) for page in PAGES)
    assert len(english["code"]) >= 7
    assert len(english["links"]) >= 20
    assert english == chinese


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("sixfold neighbours black", "sixfold neighbours white"),
        ("print(best.text, best.score)", "print(best.text)"),
        ("](docs/guides/serving.md)", "](docs/guides/training.md)"),
        ("## 自带模型的水平", "自带模型的水平"),
    ],
)
def test_a_difference_between_the_languages_is_noticed(old, new):
    chinese = read("README.zh.md")
    assert old in chinese
    assert substance(chinese.replace(old, new)) != substance(read("README.md"))


def test_a_comment_in_another_language_is_no_difference():
    chinese = read("README.zh.md").replace("sixfold neighbours black", "sixfold neighbours black  # 相近的词")
    assert substance(chinese) == substance(read("README.md"))


@pytest.mark.parametrize("page", PAGES)
def test_it_is_short(page):
    assert len(read(page).splitlines()) <= LINES


def broken_links(page, text):
    """Return the links of a page to files that do not exist, or to headings that the file does not have."""
    broken = []
    for link in LINK.findall(CODE.sub("", text)):
        path, _, anchor = link.partition("#")
        file = (page.parent / path if path else page).resolve()
        if "://" in link:
            continue
        if not file.exists():
            broken.append(link)
        elif anchor and file.suffix == ".md":
            titles = re.findall(r"^#+ (.*)$", text if file == page else file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = {re.sub(r"[^\w-]", "", title.lower().replace(" ", "-")) for title in titles}
            broken += [link] if anchor not in anchors else []
    return broken


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.name)
def test_the_links_of_every_page_lead_somewhere(page):
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_a_link_to_a_file_or_heading_that_is_not_there_is_noticed():
    text = "# One\n[a](README.md) [b](nothing.md) [c](#one) [d](#two) [e](README.zh.md#sixfold)"
    assert broken_links(ROOT / "README.md", text) == ["nothing.md", "#two"]


@pytest.mark.parametrize("page", PAGES)
def test_its_numbers_about_the_model_are_those_of_the_models_card(page):
    (path,) = shipped_models()
    scores = modelfile.load(path).card["scores"]
    rows = re.findall(r"^\| .*?[(（](.*?)[)）] \| ([\d.]+) \| ([\d.]+) \|", read(page), re.MULTILINE)
    assert {name for name, *_ in rows} == set(TEST_SETS)
    for name, *numbers in rows:
        for direction, number in zip(("zh-en", "en-zh"), numbers, strict=True):
            assert abs(float(number) - scores[f"{TEST_SETS[name]}.{direction}"]["bleu"]) < 0.0501, (name, direction)
    assert f"{path.stat().st_size / 2**20:.0f} MiB" in read(page)


def test_its_commands_and_its_python_do_what_they_say(tmp_path, tmp_path_factory, monkeypatch, capsys):
    folder = run_document("README.md", tmp_path / "readme", tmp_path_factory)
    assert len((folder / "letter.en").read_text(encoding="utf-8").splitlines()) == 2
    assert "<svg" in (folder / "it.svg").read_text(encoding="utf-8")
    card = modelfile.load(folder / "toy-run" / "model.safetensors").card
    assert card["languages"] == {"source": "zh", "target": "en"}
    shutil.rmtree(folder / "toy-run")
    monkeypatch.chdir(folder)
    run_python("README.md")
    assert capsys.readouterr().out.startswith("Machine learning is fun -")
