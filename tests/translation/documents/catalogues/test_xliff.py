"""XLIFF 1.2 and 2 get targets with the codes of their sources, and nothing else changes."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from made_documents import Turned

from sixfold.errors import DataError, RequestError
from sixfold.translation.documents.steps import translate_document
from sixfold.translation.result import Notice, Translation

OLD = (
    '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
    '<file source-language="en" original="a" datatype="plaintext"><body>{}</body></file></xliff>'
)
NEW = '<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"><file id="f">{}</file></xliff>'


class Doubtful(Turned):
    """Has a warning about every translation."""

    def translate(self, text, *_):
        made = super().translate(text)
        warnings = (Notice("number", "a number differs"),)
        return Translation(text, made.text, 0.0, self.languages, warnings=warnings, _explain=made._explain)


def translated(text, translator=None):
    data, report = translate_document(translator or Turned(), text.encode(), "xliff")
    ElementTree.fromstring(data)
    assert report.untranslated == 0
    return data.decode()


def old(content, translator=None):
    """Return what becomes of a part of XLIFF 1.2."""
    output = translated(OLD.format(content), translator)
    assert ' target-language="xx"' in output or output == OLD.format(content)
    return re.search(r"<body>(.*)</body>", output, re.S)[1]


def new(content, translator=None):
    """Return what becomes of a part of XLIFF 2."""
    output = translated(NEW.format(content), translator)
    assert ' trgLang="xx"' in output or output == NEW.format(content)
    return re.search(r'<file id="f">(.*)</file>', output, re.S)[1]


def unit(content, attributes=""):
    return f'<trans-unit id="1"{attributes}>{content}</trans-unit>'


def segment(content, attributes="", of_unit=""):
    return f'<unit id="1"{of_unit}><segment{attributes}>{content}</segment></unit>'


@pytest.mark.parametrize(
    "target",
    [
        "", "<target/>", "<target></target>", '<target state="new"></target>', '<target state="new">one two</target>',
    ],
)  # fmt: skip
def test_a_missing_or_new_target_is_written_with_its_state(target):
    for translator, state in ((Turned(), "translated"), (Doubtful(), "needs-review-translation")):
        output = old(unit(f"<source>one two</source>{target}<note>three four</note>"), translator)
        assert output == unit(
            f'<source>one two</source><target state="{state}">TWO ONE</target><note>three four</note>'
        )


def test_a_segment_of_version_2_has_the_state():
    source, target = "\n  <source>one two</source>\n", "\n  <source>one two</source>\n  <target>TWO ONE</target>\n"
    assert new(segment(source)) == segment(target, ' state="translated"')
    assert new(segment(source, ' state="initial"'), Doubtful()) == segment(target, ' state="initial"')


@pytest.mark.parametrize(
    "content",
    [
        unit("<source>one two</source><target>eins</target>"),
        unit('<source>one two</source><target state="final">one two</target>'),
        unit("<source>one two</source>", ' approved="yes"'),
        unit("<source>one two</source>", ' translate="no"'),
        f'<group id="g" translate="no">{unit("<source>one two</source>")}</group>',
        unit("<source>42</source><alt-trans><source>one two</source><target/></alt-trans>"),
    ],
)
def test_what_is_translated_or_not_to_be_translated_stays(content):
    assert old(content) == content


def test_translate_no_is_inherited_and_can_be_undone():
    content = f'<group id="g" translate="no">{unit("<source>one two</source>")}{{}}</group>'
    output = old(content.format(unit("<source>one two</source>", ' translate="yes"')))
    assert output.count("<target") == 1
    kept = segment("<source>one two</source>", of_unit=' translate="no"')
    assert new(kept) == kept


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('one <g id="1">two</g> three', 'THREE <g id="1">TWO</g> ONE'),
        (
            'one <bpt id="1">&lt;b></bpt>two<ept id="1">&lt;/b></ept> three',
            'THREE <bpt id="1">&lt;b></bpt>TWO<ept id="1">&lt;/b></ept> ONE',
        ),
        (
            'one <bx id="1" rid="7"/>two<ex id="2" rid="7"/> three',
            'THREE <bx id="1" rid="7"/>TWO<ex id="2" rid="7"/> ONE',
        ),
        ('call <mrk mtype="protected">Ann Bell</mrk> now', 'NOW <mrk mtype="protected">Ann Bell</mrk> CALL'),
        ('<x id="1"/>one two', '<x id="1"/>TWO ONE'),
    ],
)
def test_inline_elements_of_version_1_go_with_their_words(source, target):
    assert f'<target state="translated">{target}</target>' in old(unit(f"<source>{source}</source>"))


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('one <pc id="1">two</pc> three', 'THREE <pc id="1">TWO</pc> ONE'),
        ('one <sc id="1"/>two<ec startRef="1"/> three', 'THREE <sc id="1"/>TWO<ec startRef="1"/> ONE'),
        ('call <mrk id="m" translate="no">Ann Bell</mrk> now', 'NOW <mrk id="m" translate="no">Ann Bell</mrk> CALL'),
    ],
)
def test_inline_elements_of_version_2_go_with_their_words(source, target):
    assert f"<target>{target}</target>" in new(segment(f"<source>{source}</source>"))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ' <x id="1"/>'), ("", ' <x id="1"/> '), ('<x id="1"/> ', ""), ("\n  ", '\n  <x id="1"/> <x id="2"/>\n'),
        (' <g id="1"> ', ' <x id="2"/></g>'), ("", ' <ph id="1">a</ph>'),
    ],
)  # fmt: skip
def test_white_space_beside_codes_at_the_ends_stays_where_it_is(before, after):
    for attributes in ("", ' xml:space="preserve"'):
        output = old(unit(f"<source>{before}one two{after}</source>", attributes))
        assert f'<target state="translated">{before}TWO ONE{after}</target>' in output
    cdata = new(segment("<source>\n <![CDATA[one & two]]>\n</source>"))
    assert "<target>\n <![CDATA[TWO & ONE]]>\n</target>" in cdata


def test_white_space_beside_codes_of_segments_stays_where_it_is():
    divided = '<mrk mtype="seg" mid="1"> one two <x id="1"/> </mrk>'
    output = old(unit(f"<source>one two</source><seg-source>{divided}</seg-source>"))
    assert divided.replace("one two", "TWO ONE") in output


def test_a_cdata_section_stays_one():
    assert "<target><![CDATA[TWO & ONE]]></target>" in new(segment("<source><![CDATA[one & two]]></source>"))
    assert "<target>TWO &lt; ONE</target>" in new(segment("<source>one &lt; two</source>"))


def test_a_divided_source_has_a_target_that_is_divided_in_the_same_way():
    divided = '<mrk mtype="seg" mid="1">one <g id="1">two</g></mrk> <mrk mtype="seg" mid="2">three four</mrk>'
    target = '<mrk mtype="seg" mid="1"><g id="1">TWO</g> ONE</mrk> <mrk mtype="seg" mid="2">FOUR THREE</mrk>'
    content = f"<source>one two three four</source><seg-source>{divided}</seg-source>"
    for translator, state in ((Turned(), "translated"), (Doubtful(), "needs-review-translation")):
        for present in ("", f'<target state="needs-translation">{divided}</target>'):
            assert old(unit(content + present), translator) == unit(
                f'{content}<target state="{state}">{target}</target>'
            )


class Losing(Doubtful):
    """Loses the placeholders of texts with a question mark; has a warning about every translation, if it is to."""

    def __init__(self, has_warnings):
        super().__init__()
        self.has_warnings = has_warnings

    def translate(self, text, *_):
        made = super().translate(text) if self.has_warnings else Turned.translate(self, text)
        return replace(made, text=made.text.replace("{X}", "")) if "?" in text else made


@pytest.mark.parametrize("has_warnings", [False, True])
@pytest.mark.parametrize(
    ("first", "second", "changed"),
    [
        ("who is {X}?", "three four", ("three four", "FOUR THREE")), ("one two", "is {X}?", ("one two", "TWO ONE")),
        ("who is {X}?", "is {X}?", ("", "")),
    ],
)  # fmt: skip
def test_a_copied_target_is_not_called_translated_if_verification_leaves_a_part_of_it(
    first, second, changed, has_warnings
):
    divided = f'<mrk mtype="seg" mid="1">{first}</mrk> <mrk mtype="seg" mid="2">{second}</mrk>'
    codes = f'{first} <ph id="1">alt="<sub>{second}</sub>"</ph>'
    for before, copied in ((f"<source>a b</source><seg-source>{divided}</seg-source>", divided), ("", codes)):
        content = before or f"<source>{copied}</source>"
        other = unit("<source>five six</source>")
        state = "needs-review-translation" if has_warnings else "translated"
        done = other.replace("</source>", f'</source><target state="{state}">SIX FIVE</target>')
        target = f'<target state="needs-translation">{copied.replace(*changed)}</target>'
        for order in ("{0}{1}", "{1}{0}"):
            text = OLD.format(order.format(unit(content), other))
            data, report = translate_document(Losing(has_warnings), text.encode(), "xliff")
            assert report.untranslated == (1 if changed[0] else 2)
            assert order.format(unit(content + target), done) in data.decode()


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ('one <ph id="1">p="<sub>a cat</sub>" c</ph> two', '<ph id="1">p="<sub>CAT A</sub>" c</ph>TWO ONE'),
        ('<ph id="1">alt=&quot;<sub>a "b"</sub>&quot;</ph>', '<ph id="1">alt=&quot;<sub>“B” A</sub>&quot;</ph>'),
        (
            '<bpt id="1">a <sub>b <ph id="2">t="<sub>c d</sub>"</ph> e</sub></bpt>so it<ept id="1">z</ept> is',
            'IS <bpt id="1">a <sub><ph id="2">t="<sub>D C</sub>"</ph>E B</sub></bpt>IT SO<ept id="1">z</ept>',
        ),
        (
            'one <mrk mtype="protected">Ann<ph id="1"><sub>a b</sub></ph></mrk> two',
            'TWO <mrk mtype="protected">Ann<ph id="1"><sub>a b</sub></ph></mrk> ONE',
        ),
    ],
)
def test_sub_flows_of_codes_are_texts_of_their_own(source, target):
    for translator, state in ((Turned(), "translated"), (Doubtful(), "needs-review-translation")):
        for present in ("", "<target/>", f'<target state="new">{source}</target>'):
            output = old(unit(f"<source>{source}</source>{present}"), translator)
            assert output == unit(f'<source>{source}</source><target state="{state}">{target}</target>')
    done = unit(f"<source>{source}</source><target>eins</target>")
    assert old(done) == done


def test_a_divided_source_has_sub_flows_too():
    divided = '<mrk mtype="seg" mid="1">one two</mrk> <mrk mtype="seg" mid="2"><ph id="1"><sub>a b</sub></ph>so</mrk>'
    target = '<mrk mtype="seg" mid="1">TWO ONE</mrk> <mrk mtype="seg" mid="2"><ph id="1"><sub>B A</sub></ph>SO</mrk>'
    content = f"<source>one two so</source><seg-source>{divided}</seg-source>"
    assert old(unit(content)) == unit(f'{content}<target state="translated">{target}</target>')


def test_matches_and_data_of_version_2_stay():
    match = '<mtc:matches xmlns:mtc="m"><mtc:match ref="#1"><source>one two</source><target/></mtc:match></mtc:matches>'
    data = '<originalData><data id="d">one two</data></originalData><ignorable><source>one two</source></ignorable>'
    content = f'<unit id="1">{match}{data}<segment><source>42</source></segment></unit>'
    assert new(content) == content


def test_a_language_that_names_a_region_of_the_target_stays():
    text = OLD.format(unit("<source>one two</source>")).replace('original="a"', 'original="a" target-language="xx-YY"')
    assert 'target-language="xx-YY"' in translated(text)


def test_a_document_for_a_third_language_is_refused_if_it_lacks_translations():
    for text in (
        OLD.format(unit("<source>one two</source>{}")).replace(" original", ' target-language="de-AT" original'),
        NEW.format(segment("<source>one two</source>{}")).replace(' srcLang="en"', ' srcLang="en" trgLang="de-AT"'),
    ):
        with pytest.raises(RequestError, match=r"^document:\d: expected .*; got one into German \(de-AT\)"):
            translated(text.format(""))
        done = text.format("<target>eins zwei</target>")
        assert translated(done) == done
        british = text.replace("de-AT", "en-GB")
        assert "TWO ONE" in translated(british.format(""))
        other = "<source>a color</source><target>a colour</target>"
        more = british.format("").replace("<source>one two", f"{other}</{{0}}><{{0}}><source>one two")
        more = more.format("trans-unit" if "trans-unit" in more else "segment")
        with pytest.raises(RequestError, match=r"^document:\d: expected .*; got one into English \(en-GB\)"):
            translated(more)


def test_a_file_without_translations_is_no_catalogue_for_the_language_of_its_source():
    """A target that is a copy of its source, which has segments or sub-flows, is no translation."""
    code = '<ph id="1">alt="<sub>a cat</sub>"</ph> one two'
    text = OLD.format(unit(f"<source>{code}</source>")).replace(" original", ' target-language="en-GB" original')
    assert "TWO ONE" in translated(text)
    file = re.search("<file.*</file>", text)[0]
    of_target = file.replace("en-GB", "xx").replace("</source>", '</source><target state="final">eins</target>')
    unnamed = text.replace(' source-language="en"', "").replace(' target-language="en-GB"', "")
    assert "TWO ONE" in translated(unnamed)
    for both in (file + of_target, of_target + file):
        assert translated(text.replace(file, both)).count("TWO ONE") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OLD.format("<trans-unit><source>one</trans-unit>"), "document:2: expected XML; column .*: mismatched tag"),
        ("<xliff>", "document:1: expected XML; column 8: no element found"),
        ("one two", "document:1: expected XML; column 1: syntax error"),
    ],
)
def test_malformed_xliff_is_an_error_with_its_line(text, message):
    with pytest.raises(DataError, match=message):
        translated(text)
