"""A tokeniser with `simplify` encodes traditional Chinese as simplified Chinese, with the same offsets."""

import sys

import pytest

from sixfold.config import TokenizerConfig
from sixfold.errors import ConfigError
from sixfold.text.learn import train_tokenizer
from sixfold.text.tokenizer import Tokenizer

TEXT = ["机器学习很有趣", "他后来喜欢干净的面条", "乾隆皇帝", "乾隆年间", "干净", "Machine learning"] * 20
SIMPLIFYING = TokenizerConfig(vocab=420, simplify=True)


@pytest.fixture(scope="module", params=["bpe", "wordpiece", "unigram"])
def tokenizer(request):
    return train_tokenizer(TEXT, TokenizerConfig(request.param, vocab=420, simplify=True))


def test_both_scripts_have_the_same_ids_and_offsets(tokenizer):
    for traditional, simplified in (("機器學習很有趣", "机器学习很有趣"), ("他後來喜歡麵條", "他后来喜欢面条")):
        assert tokenizer.encode(traditional) == tokenizer.encode(simplified)
        encoding = tokenizer.encode_with_offsets(traditional)
        assert encoding.offsets == tokenizer.encode_with_offsets(simplified).offsets
        assert tokenizer.decode(encoding.ids) == simplified


def test_full_width_letters_and_digits_are_plain_ones_and_punctuation_stays(tokenizer):
    assert tokenizer.encode("Ｍａｃｈｉｎｅ") == tokenizer.encode("Machine")
    assert tokenizer.decode(tokenizer.encode("Ｍａｃｈｉｎｅ，（！）")) == "Machine，（！）"


def test_a_form_that_the_text_uses_itself_stays(tokenizer):
    assert tokenizer.decode(tokenizer.encode("乾隆")) == "乾隆"


def test_a_form_whose_simplified_one_was_never_seen_stays(tokenizer):
    assert tokenizer.decode(tokenizer.encode("龍")) == "龍"


def test_the_character_map_is_saved(tokenizer):
    loaded = Tokenizer.from_json(tokenizer.to_json())
    assert loaded.encode("機器") == tokenizer.encode("机器")
    assert loaded.to_json() == tokenizer.to_json()


def test_without_simplify_no_character_is_replaced():
    plain = train_tokenizer(TEXT, TokenizerConfig(vocab=420))
    assert plain.decode(plain.encode("機器學習")) == "機器學習"
    assert "fold" not in plain.to_json()[:200]


def test_the_package_that_it_needs_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "opencc", None)
    with pytest.raises(ConfigError, match=r"tokenizer\.simplify: expected the package opencc") as caught:
        train_tokenizer(TEXT, SIMPLIFYING)
    assert "sixfold[chinese]" in caught.value.hint
