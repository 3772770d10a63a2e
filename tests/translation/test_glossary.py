"""Terms of a glossary are used, or a warning names those that could not be."""

import pytest

from sixfold import TranslateOptions
from sixfold.errors import DataError
from sixfold.translation.glossary import Glossary, Term, has_term, without_doubled_ending


def test_a_glossary_is_read_with_or_without_its_direction(tmp_path):
    path = tmp_path / "g.tsv"
    path.write_text("猫\tfelines\n\n狗 \t hounds\tnote\n", encoding="utf-8")
    assert Glossary.read(path) == Glossary((Term("猫", "felines"), Term("狗", "hounds")))
    path.write_text("\ufeffzh\ten\n猫\tfelines\n", encoding="utf-8")
    read = Glossary.read(path)
    assert read == Glossary((Term("猫", "felines"),), ("zh", "en"))
    assert read.toward(("en", "zh")).terms == (Term("felines", "猫"),)
    assert read.toward(("de", "en")).terms == ()
    assert Glossary(read.terms).toward(("de", "en")).terms == read.terms


@pytest.mark.parametrize("text", ["猫\n", "猫\t\n", "\tfelines\n", "猫 felines\n"])
def test_a_row_without_two_terms_is_refused(text, tmp_path):
    (tmp_path / "g.tsv").write_text(f"狗\thounds\n\n{text}", encoding="utf-8")
    with pytest.raises(DataError, match=r"g\.tsv:3: expected a term, a tab and its translation"):
        Glossary.read(tmp_path / "g.tsv")


def test_a_file_that_cannot_be_read_is_an_error(tmp_path):
    (tmp_path / "g.tsv").write_bytes("在图书馆里看书的人\tpeople who read in the library\n".encode("gbk"))
    with pytest.raises(DataError, match="got text in GBK"):
        Glossary.read(tmp_path / "g.tsv")
    with pytest.raises(DataError, match="cannot be read"):
        Glossary.read(tmp_path / "none.tsv")


def test_terms_are_whole_words_where_there_are_words_and_the_longest_counts():
    glossary = Glossary((Term("cat", "a"), Term("cat food", "b"), Term("C++", "c")))
    terms = glossary.find_terms("Cat  food for a cat, no category; C++ too", "en")
    assert [(span, term.target) for span, term in terms] == [((0, 9), "b"), ((16, 19), "a"), ((34, 37), "c")]
    chinese = Glossary((Term("机器", "machine"), Term("机器学习", "machine learning")))
    assert [term.target for _, term in chinese.find_terms("机器学习用机器", "zh")] == ["machine learning", "machine"]
    assert has_term("Machine learning, so", Term("", "machine learning"), "en")
    assert not has_term("machines", Term("", "machine"), "en")


def test_a_term_that_the_model_would_not_use_is_used(translator):
    plain = translator.translate("我爱猫。")
    assert plain.text == "I love cats."
    glossary = Glossary((Term("猫", "dogs"),))
    with_term = translator.translate("我爱猫。", glossary=glossary)
    assert "dogs" in with_term.text
    assert with_term.text.startswith("I ")
    assert with_term.warnings == ()
    assert translator.translate("我爱狗。", glossary=glossary) == translator.translate("我爱狗。")


def test_a_term_that_is_there_changes_nothing_and_terms_come_in_any_number(translator):
    text = "我爱猫。\n我爱狗。"
    glossary = Glossary((Term("猫", "cats"), Term("狗", "cats")))
    translation = translator.translate(text, glossary=glossary)
    assert translation.text.split("\n")[0] == "I love cats."
    assert "cats" in translation.text.split("\n")[1]
    options = TranslateOptions(beam=1, guard=False)
    assert "cats" in translator.translate("我爱狗。", options=options, glossary=glossary).text
    assert translator.translate("", glossary=glossary).text == ""


def test_of_the_n_best_translations_the_first_has_the_term(translator):
    glossary = Glossary((Term("猫", "dogs"),))
    translation = translator.translate("我爱猫。你爱猫！", "zh", "en", TranslateOptions(n_best=4), glossary)
    assert "dogs" in translation.text
    assert translation.n_best[0].text == translation.text
    assert translation.tokens


def test_found_still_works_and_warns():
    glossary = Glossary((Term("猫", "cat"),))
    with pytest.warns(DeprecationWarning, match="find_terms"):
        assert glossary.found("我爱猫", "zh") == glossary.find_terms("我爱猫", "zh")


@pytest.mark.parametrize(
    ("text", "term", "spaced", "expected"),
    [
        ("安格拉·默克尔克尔来了。", "安格拉·默克尔", False, "安格拉·默克尔来了。"),
        ("见安格拉·默克尔默克尔。安格拉·默克尔尔", "安格拉·默克尔", False, "见安格拉·默克尔。安格拉·默克尔尔"),
        ("She saw Angela Merkel Merkel here.", "Angela Merkel", True, "She saw Angela Merkel here."),
        ("It is Merkel's's plan.", "Merkel's", True, "It is Merkel's plan."),
        ("the Merkel Merkels", "Merkel", True, "the Merkel Merkels"),
        ("猫猫很可爱", "猫", False, "猫猫很可爱"),
        ("nothing of it", "Merkel", True, "nothing of it"),
    ],
)
def test_the_end_of_a_term_is_not_written_twice(text, term, spaced, expected):
    assert without_doubled_ending(text, term, spaced) == expected
