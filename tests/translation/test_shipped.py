"""The model in the package: what it is, what it says, and that the README shows the same."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sixfold import Translator, modelfile
from sixfold.translation.loading import shipped_models

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def translator():
    with Translator(device="cpu") as opened:
        yield opened


def test_it_is_small_and_its_card_says_where_it_comes_from():
    (path,) = shipped_models()
    assert path.stat().st_size <= 64 * 2**20
    file = modelfile.load(path)
    assert file.storage == "int8"
    assert len(file.card["sources"]) == 55
    assert all(each["from"] and each["licence"] for each in file.card["sources"])
    assert len(file.card["scores"]) == 12
    assert all("version:" in each["signature"] for each in file.card["scores"].values())
    assert file.card["failures"]


def test_it_says_the_sentences_of_the_specification(translator):
    assert translator.directions == [("zh", "en"), ("en", "zh")]
    assert re.fullmatch(r"I love machine learning\.?", translator.translate("我爱机器学习").text, re.I)
    assert re.fullmatch(r"Machine learning is (fun|interesting)\.?", translator.translate("机器学习很有趣").text, re.I)
    for ending, word in (("tired", "累"), ("wide", "宽")):
        output = translator.translate(f"The animal didn't cross the street because it was too {ending}").text
        assert all(part in output for part in ("动物", "马路", "因为", word)), output


def test_traditional_characters_are_read(translator):
    assert translator.translate("銀行離這裡遠嗎？").text == translator.translate("银行离这里远吗？").text


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_readme_shows_what_it_says(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    block, shown = re.search(r"```sh\n([^`]*sixfold translate .*?)```\n\n```\n(.*?)```", text, re.S).groups()
    (source,) = re.findall(r'^sixfold translate "(.*)"$', block, re.M)
    command = [sys.executable, "-m", "sixfold", "translate", source]
    assert subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60).stdout == shown
