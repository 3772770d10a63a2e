"""What is plainly wrong is found, what is right is left alone, and a second attempt is better than the first."""

import numpy as np
import pytest

from sixfold import TranslateOptions, Translator, modelfile
from sixfold.modelfile import Shortlist
from sixfold.translation.guard import check, repeated

ZH, EN = ("en", "zh"), ("zh", "en")
GOOD = [
    (EN, "他 1998 年在 IBM 工作，后来去了北京。", "He worked at IBM in 1998 and later went to Beijing."),
    (EN, "20 世纪 70 年代的音乐", "The music of the 1970s"),
    (EN, "约 300 万人", "About three million people"),
    (EN, "哈哈哈哈哈哈哈！", "Hahahahahahaha!"),
    (EN, "好！", "Good!"),
    (ZH, "The BBC said that 2,000 people were there.", "英国广播公司说当时有两千人在场。"),
    (ZH, "Press Ctrl+C to stop `make`.", "按 Ctrl+C 停止 `make`。"),
    (ZH, "No, no, no, no, no, no, no!", "不，不，不，不，不，不，不！"),
    (("en", "de"), "Berlin", "Berlin"),
    (("en", "de"), "the cat sleeps here", "die Katze schläft hier"),
    (EN, "123", ""),
    (EN, "…", "…"),
]
BAD = [
    ("empty", EN, "我们走吧。", " "),
    ("damaged", ZH, "The temple clings to the cliff.", "寺庙紧贴\ufffd\ufffd。"),
    ("loop", EN, "我们去公园散步吧，天气很好。", "We go go go go go go go for a walk in the park."),
    ("loop", EN, "我们去公园散步吧，天气很好。", "We go to the park, we go to the park, we go to the park, we go."),
    ("loop", ZH, "The weather is fine today, let us go.", "今天天气好天气好天气好天气好，我们走吧。"),
    ("loop", ZH, "The weather is fine today.", "今天天气很好。今天天气很好。"),
    ("short", EN, "据当地媒体报道，这座桥将在明年春天之前完工并开放通行。", "Bridge."),
    (
        "long",
        EN,
        "好的，我们走。",
        "Well then, " + "as everybody knows by now, this goes on for ever in many other words, " * 3,
    ),
    ("cut", EN, "据当地媒体报道，这座桥将在明年春天之前完工。", "According to the local media, this bridge will"),
    ("script", EN, "据当地媒体报道，这座桥将完工。", "据当地媒体报道，这座桥将完工。"),
    ("script", EN, "彼得伦茨昨天抵达了柏林。", "Peter伦茨 arrived in Berlin yesterday."),
    ("script", ZH, "We will see what the future brings us.", "我们会看到 what the future brings us。"),
    ("script", ZH, "this is not what we wanted", "this is not what we wanted"),
    ("copied", ("en", "de"), "this is not what we wanted", "this is not what we wanted"),
    ("numbers", EN, "他出生于 1957 年。", "He was born in 1975."),
    ("numbers", EN, "这本书有 348 页，很有意思。", "This book has many pages and is very interesting."),
    ("names", EN, "我用 Python 写了这个程序。", "I wrote this program with it."),
    ("names", ZH, "The iPhone was on the table.", "手机在桌子上。"),
    ("names", ZH, "Hello {name}, see https://a.org/b now.", "你好，现在请看 https://a.org/b。"),
]


@pytest.mark.parametrize(("languages", "source", "said"), GOOD)
def test_good_translations_are_left_alone(languages, source, said):
    assert check(source, said, languages) == []


@pytest.mark.parametrize(("kind", "languages", "source", "said"), BAD)
def test_what_is_plainly_wrong_is_found(kind, languages, source, said):
    faults = check(source, said, languages)
    assert [fault.kind for fault in faults] == [kind]
    for fault in faults:
        if fault.span is not None:
            assert 0 <= fault.span[0] < fault.span[1] <= len(said)


def test_a_loop_is_told_where_it_is():
    text = "We go go go go go go go home."
    start, end = repeated(text)
    assert text[start:end] == "go go go go go go"
    assert repeated("a long text without any such thing in it, however long") is None
    assert repeated("") is None


def test_long_texts_are_checked_too():
    assert check("".join(map(chr, range(0x4E00, 0x5E00))), "a b " * 3000, EN)
    assert check(" ".join(map(str, range(3000))) + " words", "字" * 9000, ZH)


@pytest.fixture
def crippled(models, tmp_path):
    """A model that may say cats and dogs only, unless it is asked again."""
    file = modelfile.load(models["zh-en"])
    vocab = file.config.model.vocab
    few = Shortlist(
        np.array(sorted({2, *file.tokenizer.encode("cats dogs")})), np.zeros(vocab + 1, int), np.zeros(0, int)
    )
    modelfile.save(tmp_path / "few", file.config, file.weights(), file.tokenizer, file.card, shortlist=few)
    with Translator(tmp_path / "few", "cpu", 1, "float32") as translator:
        yield translator


def test_a_second_attempt_mends_what_the_first_one_broke(crippled, translator):
    text = "我爱猫。\n\n我爱猫。狗"
    bad = crippled.translate(text, options=TranslateOptions(guard=False))
    assert bad.warnings == ()
    assert bad.text != translator.translate(text).text
    good = crippled.translate(text)
    assert good.text == translator.translate(text).text
    assert good.warnings == ()


def test_what_cannot_be_mended_is_told_with_its_place(translator):
    text = "我爱猫。\n我爱狗 4711 Zebra。"
    said = translator.translate(text)
    assert said.warnings
    kinds = [notice for notice in said.warnings if notice.span]
    assert all(0 <= notice.span[0] < notice.span[1] <= len(said.text) for notice in kinds)
    assert said.to_dict()["warnings"][0].keys() == {"kind", "message", "span"}
    assert translator.translate(text, options=TranslateOptions(guard=False)).warnings == ()
