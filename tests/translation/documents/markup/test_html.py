"""Pages come back with their tags and their code in order, and with everything that people read translated."""

from xml.etree import ElementTree

import pytest
from made_documents import Turned

from sixfold.translation.documents.document import Document
from sixfold.translation.documents.markup import html_structure
from sixfold.translation.documents.markup.html import set_language
from sixfold.translation.documents.steps import translate_document


def translated(text):
    return translate_document(Turned(), text.encode(), "html")[0].decode()


@pytest.mark.parametrize(
    ("page", "expected"),
    [
        ("<noscript>turn <b>it</b> on</noscript>", "<noscript>ON <b>IT</b> TURN</noscript>"),
        ("<template><p>one two</p></template>", "<template><p>TWO ONE</p></template>"),
        ("<INPUT TYPE=Submit VALUE=Go>", '<INPUT TYPE=Submit VALUE="GO">'),
        ('<input type=text value="so it">', '<input type=text value="so it">'),
        ('<img alt=cat src="a b">', '<img alt="CAT" src="a b">'),
        ('<meta name=keywords content="one two">', '<meta name=keywords content="TWO ONE">'),
        ('<meta name=robots content="no index">', '<meta name=robots content="no index">'),
        ("<svg><title>one two</title><text>no</text></svg>", "<svg><title>TWO ONE</title><text>no</text></svg>"),
        ("<p>one <math><mi>x</mi></math> two", "<p>TWO <math><mi>x</mi></math> ONE"),
        ('<iframe srcdoc="<p>so it</p>"></iframe>', '<iframe srcdoc="<p>so it</p>"></iframe>'),
        ("<!--[if IE]><p>so it</p><![endif]-->", "<!--[if IE]><p>so it</p><![endif]-->"),
        ("<select><option>one two<option>six</select>", "<select><option>TWO ONE<option>SIX</select>"),
        ("<p>one <kbd>two<kbd> three</p><p>four five", "<p>ONE <kbd>two<kbd> three</p><p>FIVE FOUR"),
    ],
)
def test_what_people_read_is_translated_and_nothing_else(page, expected):
    assert translated(page) == expected


def test_translate_no_holds_until_the_element_ends_and_translate_yes_is_heard_inside():
    page = "<div translate=no>so <p translate=yes>one <b>two</b></p> it<div>so</div></div> three four"
    assert translated(page) == page.replace("one <b>two</b>", "<b>TWO</b> ONE").replace("three four", "FOUR THREE")
    assert translated("<p class='a notranslate'>so it<p>one two") == "<p class='a notranslate'>so it<p>TWO ONE"
    assert translated("<p>one <i translate=no>so <b>it</b></i> two") == "<p>TWO <i translate=no>so <b>it</b></i> ONE"


def test_the_language_of_a_page_is_written_with_the_direction_of_its_script():
    assert (
        set_language("<!DOCTYPE html>\n<HTML LANG=en><p lang=en>", "zh")
        == '<!DOCTYPE html>\n<HTML lang="zh"><p lang=en>'
    )
    assert set_language("<html><p>", "ar") == '<html lang="ar" dir="rtl"><p>'
    assert set_language('<html dir="rtl" lang="he">', "en") == '<html dir="ltr" lang="en">'
    page = '<html xmlns="http://www.w3.org/1999/xhtml" lang="en" xml:lang="en"><p/></html>'
    assert set_language(page, "zh-Hant") == page.replace('"en"', '"zh-Hant"')
    assert set_language("<p>one<html lang=en>", "zh") == "<p>one<html lang=en>"
    assert html_structure.structure(page) == html_structure.structure(set_language(page, "ar"))


@pytest.mark.parametrize(
    ("page", "broken"),
    [
        ("<p>a <b>b</b>", "<p>a <b>b"),
        ("<p>a <b>b <i>c</i></b>", "<p>a <b>b <i>c</b></i>"),
        ("<p>a<p>b", "<p>a b"),
        ('<a href="x">a</a>', '<a href="y">a</a>'),
        ('<img alt="a">', '<img alt="a" b">'),
        ("<p>a <code>b</code>", "<p>a <code>c</code>"),
        ("<p>a <code>b</code><p>c", "<p>a<p>c <code>b</code>"),
        ("<script>a</script>", "<script>b</script>"),
        ("<p>a <!-- b -->", "<p>a"),
        ("<p><b><i>a</i></b> <b class=x><i>b</i> <u>c</u></b>", "<p><b><i>a</i> <u>c</u></b> <b class=x><i>b</i></b>"),
        ("<p><b><i>a<br></i>b</b>", "<p><b><i>a<br></b>b</i>"),
        ("<p translate=no>a", "<p translate=no>b"),
        ("<p>a", "<p>a <x"),
        ('<?xml version="1.0"?><p>a</p>', '<?xml version="1.0"?><p>a & b</p>'),
    ],
)
def test_the_structure_tells_a_page_from_a_damaged_one(page, broken):
    assert html_structure.structure(page) != html_structure.structure(broken)


@pytest.mark.parametrize(
    ("page", "other"),
    [
        ("<p>a <b>b</b> <i>c</i>", "<p><i>d</i> e <b>f</b>"),
        ('<img alt="a"><input type=reset value="a">', '<img alt="b c"><input type=reset value="d">'),
        ("<p>a < b &amp; c", "<p>d"),
        ("<p class='x'>a", '<p class="x">b'),
    ],
)
def test_words_may_change_and_inline_elements_may_move_inside_their_block(page, other):
    assert html_structure.structure(page) == html_structure.structure(other)


def test_a_page_that_is_well_formed_xml_stays_so():
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>a &amp; b &lt; c<br/>d &#160;e</p>'
        '<p title="a &quot;b&quot;">one <img src="x" alt="two three"/></p><![CDATA[so it]]></body></html>'
    )
    root = ElementTree.fromstring(translated(page))
    assert [each.tag.rpartition("}")[2] for each in root.iter()] == ["html", "body", "p", "br", "p", "img"]
    assert "so it" in translated(page)


def test_a_comment_in_a_pair_of_tags_is_a_mark_of_its_own():
    (part,) = Document.read(b"<p>a <i>old <!-- so --> house</i> now</p>", "html").parts.values()
    assert [mark.kind for mark in part.units[0].marks] == ["open", "single", "close"]
    assert translated("<p>a <i>old <!-- so --> house</i> now</p>") == "<p>NOW <i><!-- so -->HOUSE OLD</i> A</p>"
