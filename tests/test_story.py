"""The story of the Transformer: its Python prints what it says, in both languages, and its pictures are there."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
STORIES = [DOCS / "concepts" / name for name in ("transformer.md", "transformer.zh.md")]
BLOCK = re.compile(r"```python\n(.*?)```\n```text\n(.*?)```", re.DOTALL)


def test_the_python_of_the_story_prints_what_it_says():
    names, blocks = {}, BLOCK.findall(STORIES[0].read_text(encoding="utf-8"))
    assert len(blocks) >= 10
    for code, expected in blocks:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, names)
        assert out.getvalue() == expected


def test_both_languages_show_the_same():
    texts = [path.read_text(encoding="utf-8") for path in STORIES]
    for pattern in (BLOCK, re.compile(r"\]\((\.\./images/.*?)\)"), re.compile(r"^`sixfold .*`$", re.MULTILINE)):
        first, second = (pattern.findall(text) for text in texts)
        assert first == second
        assert len(first) >= 7


@pytest.mark.parametrize("story", STORIES, ids=lambda path: path.name)
def test_its_pictures_are_there(story):
    for name in re.findall(r"\]\((\.\./images/.*?)\)", story.read_text(encoding="utf-8")):
        assert "<svg" in (story.parent / name).read_text(encoding="utf-8")[:1000]
