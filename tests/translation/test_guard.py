"""Evident faults are found, good translations raise no alarm, and a second search is better than the first."""

import numpy as np
import pytest

from sixfold import TranslateOptions, Translator, modelfile
from sixfold.modelfile import Shortlist
from sixfold.translation.guard import find_faults, find_repetition

ZH, EN = ("en", "zh"), ("zh", "en")
GOOD = [
    (EN, "他 1998 年在 IBM 工作，后来去了北京。", "He worked at IBM in 1998 and later went to Beijing."),
    (EN, "20 世纪 70 年代的音乐", "The music of the 1970s"),
    (EN, "约 300 万人", "About three million people"),
    (EN, "哈哈哈哈哈哈哈！", "Hahahahahahaha!"),
    (EN, "好！", "Good!"),
    (ZH, "The BBC translation that 2,000 people were there.", "英国广播公司说当时有两千人在场。"),
    (ZH, "Press Ctrl+C to stop `make`.", "按 Ctrl+C 停止 `make`。"),
    (ZH, "No, no, no, no, no, no, no!", "不，不，不，不，不，不，不！"),
    (EN, "公司去年亏损12.5亿元。", "The company lost 1.25 billion yuan last year."),
    (EN, "来了二十多万人。", "More than 200,000 people came."),
    (EN, "他忍不住笑了，大家都没想到。", "He burst out laughing, to everybody's surprise."),
    (EN, "这可不容易。", "It is hard."),
    (ZH, "Why don't you come too?", "你也来吧？"),
    (ZH, "It happened in the museum.", "事情发生在皇家军械厅（Royal Armoury Hall）。"),
    (("en", "de"), "Berlin", "Berlin"),
    (("en", "de"), "the cat sleeps here", "die Katze schläft hier"),
    (EN, "123", ""),
    (EN, "…", "…"),
    (EN, "会议定于9月26-28日举行。", "The meeting will be held on September 26-28."),
    (EN, "会议定于9月26日至28日举行。", "The meeting will be held on September 26-28."),
    (ZH, "The pyramid has stood for thousands of years.", "金字塔已经矗立了几千年。"),
    (ZH, "art worth tens of billions of euros", "价值数百亿欧元的艺术品"),
    (EN, "他不远千里来到这里。", "He travelled thousands of miles to get here."),
    (EN, "二十三楼的住户", "The residents of the twenty-third floor"),
    (EN, "由歌手法提赫（Fatih Erkoc）和穆斯林（Muslum Gurses）演出。", "The singers: Fatih Erkoc, Muslum Gurses."),
    (EN, "他的朋友（一名医生）。", "His friend (a doctor)."),
    (EN, "19世纪80年代和90年代的房子", "houses of the 1880s and 1890s"),
    (EN, "这部机器只有两元，它们又快又便宜。", "The machine is only two dollars, both fast and cheap."),
    (EN, "12日至14日举办", "held between the 12th day and the 14th day of the month"),
    (EN, "二十多项奖", "more than two dozen awards"),
    (EN, "16亿至17亿年前", "1.6 to 1.7 billion years ago"),
    (EN, "距离645英里（1040公里）。", "The distance is 645 miles (1040 km)."),
    (EN, "你八点五十到吧。", "Please come at ten to nine."),
    (EN, "手术只要十几分钟，第二天就能看清。", "It takes ten to fifteen minutes, and they see well the next day."),
    (ZH, "an output of 67 kW and much CO2", "输出67千瓦，排放大量二氧化碳"),
    (EN, "我们三个月后见，还有三周就放假了。", "See you in three months; the holidays start in three weeks."),
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
    ("short", EN, "据当地媒体报道，这座桥将在明年春天之前完工并开放通行。", "The bridge will be finished."),
    ("cut", EN, "据当地媒体报道，这座桥将在明年春天之前完工。", "According to the local media (Xinhua, CCTV)"),
    ("cut", ZH, "The bridge will be finished, the local media said.", "据当地的各家新闻媒体报道，“"),
    ("numbers", ZH, "It began in the 1970s.", "它始于10世纪70年代。"),
    ("numbers", ZH, "The Pacific countries of the 1970s and 1980s", "20世纪七四十年代的太平洋国家"),
    ("numbers", EN, "播出历史已超过65年。", "It has been on air for over 65 days."),
    ("numbers", EN, "全长22英里（35公里），用时22分钟。", "The 22 miles (35 km) took 22 days."),
    ("numbers", ZH, "The city fell in 549, after a siege.", "围城之后，该城于549天陷落。"),
    ("numbers", ZH, "The islands are spread over 2.2 million km2.", "群岛分布在220万平方米的海面上。"),
    ("numbers", ZH, "a hall of 200 by 100 metres", "长200公里、宽100米的大厅"),
    ("numbers", ZH, "We will leave in an hour.", "我们1分钟后出发。"),
    ("numbers", ZH, "more than two decades of work", "二十多天的工作"),
    ("numbers", EN, "经过连续三日的谈判", "after three minutes of negotiation"),
    ("numbers", EN, "距离645英里（1040公里）。", "The distance is miles (1040 km)."),
    ("numbers", EN, "双方签署了价值5亿英镑、为期10年的协议。", "They signed a 500 million, 10-year deal."),
    ("numbers", EN, "亏损150万美元", "a loss of 1.5m"),
    ("numbers", ZH, "a sixth year student", "四年级学生"),
    ("numbers", ZH, "Zhu Ci came in the third year of Jianwu.", "朱泚于建武九年来。"),
    ("numbers", EN, "大家在中午十二点到两点之间保持安静。", "Everyone keeps quiet between noon and eleven."),
    ("numbers", EN, "两个又近又大的透镜", "ten lenses, both nearer and larger"),
    ("script", EN, "据当地媒体报道，这座桥将完工。", "据当地媒体报道，这座桥将完工。"),
    ("script", EN, "彼得伦茨昨天抵达了柏林。", "Peter伦茨 arrived in Berlin yesterday."),
    ("script", ZH, "We will see what the future brings us.", "我们会看到 what the future brings us。"),
    ("script", ZH, "this is not what we wanted", "this is not what we wanted"),
    ("copied", ("en", "de"), "this is not what we wanted", "this is not what we wanted"),
    ("numbers", EN, "他出生于 1957 年。", "He was born in 1975."),
    ("numbers", EN, "这本书有 348 页，很有意思。", "This book has many pages and is very interesting."),
    ("numbers", EN, "公司去年亏损12.5亿元。", "The company lost 125 billion yuan last year."),
    ("numbers", ZH, "There are 1,024 files in it.", "里面有1204个文件。"),
    ("numbers", EN, "门票三百英镑一张。", "Tickets are 300 dollars each."),
    ("numbers", EN, "来了二十多万人。", "More than twenty thousand people came."),
    ("numbers", ZH, "He came third in the race.", "他在比赛中得了第五名。"),
    ("numbers", EN, "会议下午3点半开始。", "The meeting starts at 4:30 p.m."),
    ("names", EN, "用JavaScript写的程序在GitHub上。", "The program is on GitHub."),
    ("names", ZH, "The program runs on Linux.", "这个程序在Windows上运行。"),
    ("numbers", EN, "三个月前，三颗弹珠掉了下来。", "Three weeks ago three marbles fell down."),
    ("numbers", EN, "数百亿英镑的艺术品", "art worth tens of billions of euros"),
    ("numbers", ZH, "The pyramid has stood for thousands of years.", "金字塔已经矗立了几千天。"),
    ("numbers", EN, "鸡蛋涨到了三十元一斤。", "Eggs rose to 30 dollars a catty."),
    ("numbers", EN, "会议在第三天结束。", "The meeting ended in the third week."),
    ("numbers", EN, "她不再寻求第六个任期。", "She does not seek a fourth term."),
    ("numbers", ZH, "Net profit fell in the third quarter.", "净利润在第四季度下降。"),
    ("numbers", ZH, "Last revised: 2010-11-03", "最后修订：2010年3月3日"),
    ("numbers", EN, "我的预算是15块钱。", "My budget is 15."),
    ("names", EN, "我用 Python 写了这个程序。", "I wrote this program with it."),
    ("names", ZH, "The iPhone was on the table.", "手机在桌子上。"),
    ("names", ZH, "Hello {name}, see https://a.org/b now.", "你好，现在请看 https://a.org/b。"),
]


@pytest.mark.parametrize(("languages", "source", "translation"), GOOD)
def test_good_translations_are_left_alone(languages, source, translation):
    assert find_faults(source, translation, languages) == []


@pytest.mark.parametrize(("kind", "languages", "source", "translation"), BAD)
def test_evident_faults_are_found(kind, languages, source, translation):
    faults = find_faults(source, translation, languages)
    assert [fault.kind for fault in faults] == [kind]
    for fault in faults:
        if fault.span is not None:
            assert 0 <= fault.span[0] < fault.span[1] <= len(translation)


def test_the_span_of_a_loop_is_found():
    text = "We go go go go go go go home."
    start, end = find_repetition(text)
    assert text[start:end] == "go go go go go go"
    assert find_repetition("a long text without any such thing in it, however long") is None
    assert find_repetition("") is None


def test_long_texts_are_checked_too():
    assert find_faults("".join(map(chr, range(0x4E00, 0x5E00))), "a b " * 3000, EN)
    assert find_faults(" ".join(map(str, range(3000))) + " words", "字" * 9000, ZH)


@pytest.fixture
def limited(models, tmp_path):
    """A translator whose shortlist has only cats and dogs; a second search ignores the shortlist."""
    file = modelfile.load(models["zh-en"])
    vocab = file.config.model.vocab
    few = Shortlist(
        np.array(sorted({2, *file.tokenizer.encode("cats dogs")})), np.zeros(vocab + 1, int), np.zeros(0, int)
    )
    modelfile.save(tmp_path / "few", file.config, file.weights(), file.tokenizer, file.card, shortlist=few)
    with Translator(tmp_path / "few", "cpu", 1, "float32") as translator:
        yield translator


def test_a_second_search_removes_the_faults_of_the_first(limited, translator):
    text = "我爱猫。\n\n我爱猫。狗"
    bad = limited.translate(text, options=TranslateOptions(guard=False))
    assert bad.warnings == ()
    assert bad.text != translator.translate(text).text
    good = limited.translate(text)
    assert good.text == translator.translate(text).text
    assert good.warnings == ()


def test_faults_that_remain_are_warnings_with_their_spans(translator):
    text = "我爱猫。\n我爱狗 4711 Zebra。"
    translation = translator.translate(text)
    assert translation.warnings
    notices = [notice for notice in translation.warnings if notice.span]
    assert all(0 <= notice.span[0] < notice.span[1] <= len(translation.text) for notice in notices)
    assert translation.to_dict()["warnings"][0].keys() == {"kind", "message", "span"}
    assert translator.translate(text, options=TranslateOptions(guard=False)).warnings == ()
