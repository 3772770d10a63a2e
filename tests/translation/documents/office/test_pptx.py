"""PPTX: the text of slides and notes, in runs that keep their look."""

import io
import re
import zipfile

import pptx
import pytest
from made_documents import Turned, made
from made_office import A, P, package

from sixfold.translation.documents.document import Document
from sixfold.translation.documents.formats import FORMATS
from sixfold.translation.documents.office import drawing
from sixfold.translation.documents.steps import translate_document


def slide_of(*paragraphs, around=""):
    text = "".join(f"<a:p>{paragraph}</a:p>" for paragraph in paragraphs)
    return f'<p:sld xmlns:p="{P}" xmlns:a="{A}">{around}<p:txBody>{text}</p:txBody></p:sld>'


def run(text, look=""):
    return f"<a:r>{look}<a:t>{text}</a:t></a:r>"


def translated(slide, member="ppt/slides/slide1.xml"):
    members = {"ppt/presentation.xml": "<p/>", member: slide}
    data, report = translate_document(
        Turned(), package("ppt/presentation.xml", "presentationml.presentation.main+xml", members), "pptx"
    )
    assert report.untranslated == 0
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return file.read(member).decode()


def paragraph_of(slide):
    return re.search(r"<a:p>(.*)</a:p>", slide)[1]


def test_words_take_their_look_along_and_what_powerpoint_notes_is_no_look():
    plain, other, bold = (
        '<a:rPr lang="en-US" dirty="0"/>',
        '<a:rPr lang="de-DE" err="1"/>',
        '<a:rPr lang="en-US" b="1"/>',
    )
    output = paragraph_of(translated(slide_of(run("the ", plain) + run("old ", bold) + run("house", other))))
    assert output == run("HOUSE ") + run("OLD", '<a:rPr b="1"/>') + run(" THE")


def test_a_link_is_a_look_and_keeps_its_target():
    look = '<a:rPr><a:hlinkClick r:id="rId2" xmlns:r="r"/></a:rPr>'
    assert run("PAGE THIS", look) in translated(slide_of(run("see ") + run("this page", look) + run(" now")))


def test_breaks_divide_sentences_and_fields_stay():
    line = "<a:br><a:rPr/></a:br>"
    output = translated(slide_of(run("one day.") + line + run("Two nights")))
    assert paragraph_of(output) == run("DAY. ONE") + line + run("NIGHTS TWO")
    assert (
        re.sub("<[^>]*>", "", translated(slide_of(run("one day") + line + run("and a night")))) == "NIGHT A AND DAY ONE"
    )
    number = '<a:fld id="{1}" type="slidenum"><a:rPr lang="en-US"/><a:t>page seven</a:t></a:fld>'
    output = paragraph_of(translated(slide_of(run("this is ") + number + run(" of nine"))))
    assert output == run("NINE OF ") + number.replace("en-US", "xx") + run(" IS THIS")


def test_descriptions_of_pictures_are_translated_and_their_names_are_not():
    output = translated(slide_of(around='<p:cNvPr id="3" name="Picture two" descr="a grey cat"/>'))
    assert '<p:cNvPr id="3" name="Picture two" descr="CAT GREY A"/>' in output


@pytest.mark.parametrize(
    ("member", "is_translated"),
    [
        ("ppt/notesSlides/notesSlide1.xml", True), ("ppt/charts/chart2.xml", True), ("ppt/diagrams/data1.xml", True),
        ("ppt/slideLayouts/slideLayout1.xml", False), ("ppt/slideMasters/slideMaster1.xml", False),
    ],
)  # fmt: skip
def test_slides_and_what_is_on_them_is_translated_but_no_layout(member, is_translated):
    slide = slide_of(run("this page"))
    members = {"ppt/presentation.xml": "<p/>", member: slide}
    data = package("ppt/presentation.xml", "presentationml.presentation.main+xml", members)
    assert bool(Document.read(data, "pptx").parts) is is_translated


def test_the_labels_of_a_chart_are_translated_and_its_numbers_and_references_are_not():
    labels = "<c:tx><c:f>Sheet1!A1</c:f><c:strCache><c:pt><c:v>{}</c:v></c:pt></c:strCache></c:tx>"
    values = (
        "<c:val><c:f>Sheet1!A2</c:f><c:numCache><c:formatCode>General</c:formatCode><c:v>4</c:v></c:numCache></c:val>"
    )
    chart = '<c:chart xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart">{}</c:chart>'
    output = translated(chart.format(labels.format("one &amp; all") + values), "ppt/charts/chart1.xml")
    assert output == chart.format(labels.format("ALL &amp; ONE") + values)
    assert drawing.structure(chart.format(values)) != drawing.structure(chart.format(values.replace("4", "5")))


def test_comments_are_translated():
    comments = (
        f'<p:cmLst xmlns:p="{P}"><p:cm authorId="0"><p:pos x="1"/><p:text>this &amp; that</p:text></p:cm></p:cmLst>'
    )
    output = translated(comments, "ppt/comments/comment1.xml")
    assert output == comments.replace("this &amp; that", "THAT &amp; THIS")


def test_python_pptx_opens_what_is_written():
    for number in range(20):
        data, _ = translate_document(Turned(), made("pptx", number), "pptx")
        (slide,) = pptx.Presentation(io.BytesIO(data)).slides
        (before,) = pptx.Presentation(io.BytesIO(made("pptx", number))).slides
        assert len(slide.shapes[0].text_frame.paragraphs) == len(before.shapes[0].text_frame.paragraphs)
        texts = [shapes[0].text_frame.text.lower() for shapes in (slide.shapes, before.shapes)]
        assert sorted(texts[0].replace(" ", "")) == sorted(texts[1].replace(" ", ""))


def test_the_structure_sees_what_would_damage_a_slide():
    source = drawing.structure(slide_of(run("a", '<a:rPr b="1"/>') + "<a:br/>"))
    assert (
        drawing.structure(slide_of("<a:br/>" + run("x", '<a:rPr b="1" lang="zh"/>') + run("y", '<a:rPr b="1"/>')))
        == source
    )
    for damaged in (run("a", '<a:rPr b="1"/>'), run("a") + "<a:br/>", "a<a:br/>" + run("a", '<a:rPr b="1"/>')):
        assert drawing.structure(slide_of(damaged)) != source
    assert FORMATS["pptx"].suffixes[0] == ".pptx"


def test_a_paragraph_from_right_to_left_becomes_one_from_left_to_right():
    look = '<a:pPr algn="r" rtl="1"/>'
    slide = translated(slide_of(f"{look}{run('the old house')}"))
    assert '<a:pPr algn="r"/>' in slide
    assert drawing.set_language(look, "ar") == look
