"""Exact matches of a translation memory are used, fuzzy matches are shown, and no file can do harm."""

import json
import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from made_documents import Turned

import sixfold
from sixfold import TranslateOptions, TranslationMemory
from sixfold.errors import DataError
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.glossary import Glossary, Term
from sixfold.translation.memory import edit_distance, number_repeats, split_words
from sixfold.translation.pair_files import Pair
from sixfold.translation.result import Match, Translation

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n{}<tmx version="1.4"><header srclang="{}"/><body>{}</body></tmx>'
VARIANT = '<tuv xml:lang="{}"><note>so</note><seg>{}</seg></tuv>\n'
UNIT = f'<tu><prop type="x">so</prop>{VARIANT}{VARIANT}</tu>'


def tmx(path, units, source="en-US", declared=""):
    path.write_text(HEAD.format(declared, source, "".join(UNIT.format(*unit) for unit in units)), encoding="utf-8")
    return path


def test_two_columns_are_read_with_or_without_their_direction(tmp_path):
    path = tmp_path / "m.tsv"
    path.write_text("我爱猫。\tI adore cats.\n\n狗 \t hounds\tnote\n", encoding="utf-8")
    assert TranslationMemory.read(path) == TranslationMemory((Pair("我爱猫。", "I adore cats."), Pair("狗", "hounds")))
    path.write_text("zh\ten\n狗\thounds\n", encoding="utf-8")
    read = TranslationMemory.read(str(path))
    assert read == TranslationMemory((Pair("狗", "hounds"),), ("zh", "en"))
    assert read.toward(("zh", "en")) is read
    turned = read.toward(("en", "zh"))
    assert (turned.exact("hounds"), turned.exact("狗"), turned.languages) == ("狗", None, ("en", "zh"))
    assert read.toward(("en", "zh")) is turned  # with the index that it has by then
    assert read.toward(("de", "en")).entries == ()
    path.write_text("狗 hounds\n", encoding="utf-8")
    with pytest.raises(DataError, match=":1: expected a sentence, a tab and its translation"):
        TranslationMemory.read(path)
    with pytest.raises(DataError, match="cannot be read"):
        TranslationMemory.read(tmp_path / "none.tmx")


def test_tmx_is_read_from_its_source_whatever_the_order_and_the_regions(tmp_path):
    units = [("zh-CN", "你好 &amp; 再见", "en-US", "Hello &amp; bye"), ("EN", "\n One\n two ", "ZH", "一二")]
    read = TranslationMemory.read(tmx(tmp_path / "m.TMX", units))
    assert read == TranslationMemory((Pair("Hello & bye", "你好 & 再见"), Pair("One\n two", "一二")), ("en", "zh"))
    assert read.exact("One two") == "一二"
    assert TranslationMemory.read(tmx(tmp_path / "m.tmx", units, "*all*")).languages == ("zh", "en")
    assert TranslationMemory.read(tmx(tmp_path / "m.tmx", [])) == TranslationMemory(())
    old = tmp_path / "m.tmx"
    old.write_bytes(old.read_text(encoding="utf-8").replace("UTF-8", "UTF-16").encode("utf-16"))
    assert TranslationMemory.read(old) == TranslationMemory(())
    named = tmx(tmp_path / "named.tmx", units, declared='<!DOCTYPE tmx SYSTEM "file:///etc/passwd">\n')
    assert TranslationMemory.read(named) == read
    half = '<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>'
    (tmp_path / "half.tmx").write_text(HEAD.format("", "en", half), encoding="utf-8")
    assert TranslationMemory.read(tmp_path / "half.tmx").entries == ()


def test_marks_around_words_are_dropped_and_units_with_other_codes_are_skipped(tmp_path):
    bold = '<bpt i="1">&lt;b><sub>x</sub></bpt>good<ept i="1">&lt;/b></ept> <hi>day</hi>'
    units = [("en", bold, "zh", "好"), ("en", "press <ph>{0}</ph> now", "zh", "按"), ("en", "", "zh", "空")]
    assert TranslationMemory.read(tmx(tmp_path / "m.tmx", units)).entries == (Pair("good day", "好"),)


LAUGHS = "".join(f'<!ENTITY l{each} "{f"&l{each - 1};" * 10}">' for each in range(1, 10))


@pytest.mark.parametrize(
    ("declared", "text", "message"),
    [
        (f'<!DOCTYPE tmx [<!ENTITY l0 "ha">{LAUGHS}]>', "&l9;", "expected no declarations"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;", "expected no declarations"),
        ('<!DOCTYPE tmx [<!ENTITY % x SYSTEM "http://localhost/x"> %x;]>', "a", "expected no declarations"),
        ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', "&x;", "the entity &x;, which only its DTD defines"),
        ("", "&x;", "expected TMX: undefined entity"),
        ("", "<seg>" * 3, "expected TMX: mismatched tag"),
    ],
)
def test_a_hostile_or_broken_tmx_is_refused(tmp_path, declared, text, message):
    with pytest.raises(DataError, match=message):
        TranslationMemory.read(tmx(tmp_path / "m.tmx", [("en", text, "zh", "b")], declared=declared))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<html/>", ":1: expected TMX; got <html>"),
        ("", "expected TMX: no element found"),
        ("<?xml version='1.0' encoding='no-such'?><tmx/>", "expected TMX: unknown encoding"),
        (HEAD.format("", "en", "<tu><tuv><seg>a</seg></tuv></tu>"), ":2: expected xml:lang in <tuv>"),
        (HEAD.format("", "en", UNIT.format("en", "a", "zh", "b") + UNIT.format("de", "a", "en", "b")),
         "expected two languages; got de, en, zh"),
    ],
)  # fmt: skip
def test_what_is_no_tmx_of_two_languages_is_said(tmp_path, text, message):
    (tmp_path / "m.tmx").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=re.escape(message)):
        TranslationMemory.read(tmp_path / "m.tmx")


def test_elements_as_deep_as_one_likes_and_units_as_many_are_read(tmp_path):
    deep = "<hi>" * 50_000 + "a" + "</hi>" * 50_000
    assert TranslationMemory.read(tmx(tmp_path / "m.tmx", [("en", deep, "zh", "b")])).entries == (Pair("a", "b"),)
    many = tmx(tmp_path / "m.tmx", (("en", f"sentence {each}", "zh", f"句{each}") for each in range(30_000)))
    read = TranslationMemory.read(many)
    assert (len(read.entries), read.exact("sentence 29999")) == (30_000, "句29999")
    assert read.fuzzy("sentence 29999 !", 0.6)[0] == Match("sentence 29999", "句29999", 2 / 3)


def test_exact_is_but_for_white_space_and_forms_of_unicode_and_the_last_counts():
    memory = TranslationMemory(
        (Pair("caf\u00e9  au\nlait", "old"), Pair("cafe\u0301 au lait", " one\n two "), Pair(" ", "no"))
    )
    assert memory.exact(" café\u00a0au lait ") == "one two"
    assert "café au lait" in memory
    assert memory.exact("Café au lait") is memory.exact("café au lait.") is memory.exact("") is None
    assert None not in memory
    assert memory.fuzzy("Café au lait", 0.6) == [Match(unicodedata.normalize("NFC", "café au lait"), "one two", 2 / 3)]
    assert memory.fuzzy("café au lait")[0].score == 1.0
    assert TranslationMemory((Pair("so , it is", "x"),)).fuzzy("so, it is")[0].score == 0.99  # as it is not the same


def table_distance(one, other):
    row = list(range(len(other) + 1))
    for at, unit in enumerate(one, start=1):
        before, row[0] = row[0], at
        for place, its in enumerate(other, start=1):
            before, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, before + (unit != its))
    return row[-1]


FEW = st.lists(st.sampled_from("abc"), max_size=70)


@given(FEW, FEW)
@example([], [])
@example(["a"] * 70, ["b"])
def test_the_distance_is_that_of_the_table(one, other):
    assert edit_distance(one, other) == table_distance(one, other) == edit_distance(other, one)


SENTENCES = st.lists(st.sampled_from(["the ", "cat ", "sat ", "猫", "爱", "ก", ",", "The ", " ", "é"]), max_size=9).map(
    "".join
)


@given(st.lists(SENTENCES, max_size=12), SENTENCES, st.sampled_from([0.01, 0.3, 0.5, 0.7, 0.9, 1.0]), st.integers(0, 5))
@example(["a b x y", "b a c d"], "a b c d", 0.3, 1)  # both 0.5, though the second shares more
def test_fuzzy_finds_what_a_look_at_every_entry_finds(sources, sentence, least, count):
    memory = TranslationMemory(tuple(Pair(source, f"T {source}") for source in sources))
    wanted = " ".join(sentence.split())
    known = list(dict.fromkeys(" ".join(source.split()) for source in sources if source.strip()))
    scored = []
    for number, text in enumerate(known):
        words, other_words = split_words(wanted), split_words(text)
        longer = max(len(words), len(other_words))
        alike = (longer - table_distance(words, other_words)) / longer
        scored.append((-1.0 if wanted == text else -min(alike, 0.99), number))
    best = [(known[number], -cost) for cost, number in sorted(scored) if -cost >= least][:count]
    assert [(match.source, match.score) for match in memory.fuzzy(sentence, least, count)] == best


def test_words_are_units_and_so_are_characters_where_words_are_not_set_apart():
    assert split_words("I love 机器learning, 100%!") == ["I", "love", "机", "器", "learning", ",", "100", "%", "!"]
    assert number_repeats("aba") == [("a", 1), ("b", 1), ("a", 2)]


KNOWN = TranslationMemory(
    (Pair("我爱猫。", "What a cat! So it is."), Pair("狗。山。", "Dogs & mountains"), Pair("我看书！", "Books!"))
)


def test_what_is_known_is_not_asked_for_and_all_else_is(counting):
    translation = counting.translate(" 我爱猫。  我爱狗。\n\n狗。山。\t\n狗。", memory=KNOWN)
    assert translation.text == " What a cat! So it is.  I love dogs.\n\nDogs & mountains\t\ndogs."
    assert len(counting.direction("").engine.sources) == 2
    assert counting.translate("我爱猫。", memory=KNOWN).score == 0.0
    assert len(counting.direction("").engine.sources) == 2


def test_a_score_is_that_of_what_the_model_said(translator):
    alone = translator.translate("我爱狗。")
    both = translator.translate("我爱猫。我爱狗。", memory=KNOWN)
    assert both.text == "What a cat! So it is. I love dogs."
    assert both.score == pytest.approx(alone.score, abs=1e-5)


def test_matches_are_told_only_where_there_is_a_memory(translator):
    assert translator.translate("我爱猫。").matches == ()
    assert "memory" not in translator.translate("我爱猫。").to_dict()
    translation = translator.translate("我爱猫。我爱狗。我爱猫。水", memory=KNOWN)
    same, alike = Match("我爱猫。", "What a cat! So it is.", 1.0), Match("我爱猫。", "What a cat! So it is.", 0.75)
    assert translation.matches == (same, alike)
    assert json.loads(json.dumps(translation.to_dict()))["memory"] == [same._asdict(), alike._asdict()]
    assert translator.translate("水", memory=KNOWN).to_dict()["memory"] == []


def test_tokens_and_links_are_at_their_places_beside_what_the_memory_said(translator):
    memory = TranslationMemory((Pair("猫。", "dogs. dogs. x"), Pair("山。", "dogs.")))
    translation = translator.translate("猫。狗。山。狗。", memory=memory)
    assert translation.text == "dogs. dogs. x dogs. dogs. dogs."
    assert [token.span[0] for token in translation.tokens if token.text == "dogs"] == [14, 26]
    assert {translation.source[slice(*link.source)] for link in translation.alignment} == {"狗", "。"}
    assert min(link.source[0] for link in translation.alignment) == 2
    assert translator.translate("猫。", memory=memory).to_dict(details=True)["tokens"] == []


def test_with_several_ways_to_say_it_the_memory_has_one(translator):
    options = TranslateOptions(n_best=3)
    translation = translator.translate("我爱猫。我爱狗。", options=options, memory=KNOWN)
    assert len({each.text for each in translation.n_best}) == 3
    assert all(each.text.startswith("What a cat! So it is. ") for each in translation.n_best)
    assert [each.text for each in translator.translate("我爱猫。", options=options, memory=KNOWN).n_best] == [
        "What a cat! So it is."
    ]


def test_a_prefix_wins_over_the_memory_where_it_stands(translator):
    options = TranslateOptions(prefix="you")
    translation = translator.translate("我爱猫。我看书！", options=options, memory=KNOWN)
    assert translation.text == "you love cats. Books!"
    long = TranslationMemory((Pair("猫" * 500, "many"),))
    assert translator.translate("猫" * 500, options=options, memory=long).text.startswith("you ")


def test_lines_that_are_not_split_and_sentences_too_long_are_known_whole(translator):
    options = TranslateOptions(split=False)
    assert translator.translate("狗。山。", options=options, memory=KNOWN).text == "Dogs & mountains"
    assert translator.translate("我爱猫。狗。", options=options, memory=KNOWN).text != KNOWN.exact("我爱猫。")
    translation = translator.translate("猫" * 500, memory=TranslationMemory((Pair("猫" * 500, "many"),)))
    assert (translation.text, translation.warnings) == ("many", ())


def test_neither_guard_nor_glossary_touches_what_is_known(translator):
    memory = TranslationMemory((Pair("我爱猫 4711。", "no no no no no no no no"),))
    translation = translator.translate("我爱猫 4711。", glossary=Glossary((Term("猫", "dogs"),)), memory=memory)
    assert (translation.text, translation.warnings) == ("no no no no no no no no", ())


def test_a_memory_is_turned_about_for_the_other_direction(models):
    from sixfold.translation.translator import Translator

    memory = TranslationMemory((Pair("我爱猫。", "I adore cats."),), ("zh", "en"))
    with Translator(models["en-zh"], "cpu", 1, "float32") as translator:
        assert translator.translate("I adore cats.", memory=memory).text == "我爱猫。"
        (translation,) = translator.stream(["I adore cats."], memory=memory)
        assert translation.matches == (Match("I adore cats.", "我爱猫。", 1.0),)
        assert translator.translate("我爱猫。", memory=memory).matches == ()


class Remembering(Turned):
    """Turns words about, but for what the memory has."""

    def translate_request(self, texts, request, _progress=None):
        entries = [request.memory.exact(text) if request.memory else None for text in texts]
        return [
            Translation(text, entry, 0.0, self.languages) if entry else self.translate(text)
            for text, entry in zip(texts, entries, strict=True)
        ]


def test_in_a_document_only_what_has_no_markup_is_taken_from_the_memory():
    memory = TranslationMemory(
        (Pair("one two", "Known & so"), Pair("hello {name}", "lost"), Pair("call map() now", "lost"))
    )
    for page, expected in (
        (b"<p>one\ntwo</p><p>three one</p>", b"<p>Known &amp; so</p><p>ONE THREE</p>"),
        (b"<p>one <b>two</b></p><p>one two</p>", b"<p><b>TWO</b> ONE</p><p>Known &amp; so</p>"),
        (b"<p>call <code>map()</code> now</p>", b"<p>NOW <code>map()</code> CALL</p>"),
        (b"<p>hello {name}</p>", b"<p>{name} HELLO</p>"),
    ):
        assert translate_document(Remembering(), page, "html", memory=memory)[0] == expected
    assert translate_document(Remembering(), b"<p>one two</p>", "html")[0] == b"<p>TWO ONE</p>"


def test_a_document_takes_sentences_from_the_memory_of_a_real_translator(translator):
    page = "<p>我爱猫。</p><p>我爱<b>猫</b>。</p>".encode()
    translation, _ = translate_document(translator, page, "html", memory=KNOWN)
    assert translation.startswith(b"<p>What a cat! So it is.</p><p>I love <b>cats</b>")


def test_a_digest_tells_memories_apart():
    one = TranslationMemory((Pair("a", "b"),))
    assert one.digest() == TranslationMemory((Pair("a", "b"),)).digest()
    assert (
        len(
            {
                one.digest(),
                TranslationMemory((Pair("a", "c"),)).digest(),
                TranslationMemory(one.entries, ("en", "zh")).digest(),
            }
        )
        == 3
    )


def test_the_old_public_name_still_works_and_warns():
    with pytest.warns(DeprecationWarning, match="TranslationMemory"):
        assert sixfold.Memory is TranslationMemory
