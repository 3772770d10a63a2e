"""XLSX: the texts of cells are translated, but no text that a formula, a table or a filter of the workbook uses."""

import io
import re
import zipfile

import openpyxl
import pytest
from made_documents import Turned, made
from made_office import S, package

from sixfold.translation.documents.document import Document
from sixfold.translation.documents.office import xlsx
from sixfold.translation.documents.steps import translate_document


def workbook_of(strings, **members):
    shared = f'<sst xmlns="{S}">{"".join(f"<si>{string}</si>" for string in strings)}</sst>'
    others = {f"xl/{name.replace('__', '/')}.xml": text for name, text in members.items()}
    return package(
        "xl/workbook.xml",
        "spreadsheetml.sheet.main+xml",
        {"xl/workbook.xml": "<workbook/>", "xl/sharedStrings.xml": shared, **others},
    )


def translated(data, member="xl/sharedStrings.xml"):
    output, report = translate_document(Turned(), data, "xlsx")
    assert report.untranslated == 0
    with zipfile.ZipFile(io.BytesIO(output)) as file:
        return file.read(member).decode()


def strings_of(data):
    return re.findall(r"<si>(.*?)</si>", translated(data))


def text(content):
    return f'<t xml:space="preserve">{content}</t>'


def test_a_string_is_translated_and_its_runs_keep_their_look():
    assert strings_of(workbook_of(["<t>the old &amp; new</t>"])) == [text("NEW &amp; OLD THE")]
    bold = "<rPr><b/></rPr>"
    rich = f"<r><t>the </t></r><r>{bold}<t>old</t></r><r><t> house</t></r>"
    assert strings_of(workbook_of([rich])) == [
        f"<r>{text('HOUSE ')}</r><r>{bold}{text('OLD')}</r><r>{text(' THE')}</r>"
    ]
    sound = '<rPh sb="0" eb="1"><t>kana or so</t></rPh><phoneticPr fontId="1"/>'
    assert strings_of(workbook_of([f"<t>the house</t>{sound}"])) == [f"{text('HOUSE THE')}{sound}"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("worksheets__sheet1", '<worksheet><c r="A1"><f>COUNTIF(B:B,&quot;all done&quot;)</f><v>1</v></c></worksheet>'),
        (
            "worksheets__sheet1",
            '<worksheet><dataValidation><formula1>"all done, so so"</formula1></dataValidation></worksheet>',
        ),
        (
            "worksheets__sheet1",
            '<worksheet><autoFilter><filters><filter val="all done"/></filters></autoFilter></worksheet>',
        ),
        ("worksheets__sheet1", '<x:worksheet xmlns:x="y"><x:c><x:f>A1="all done"</x:f></x:c></x:worksheet>'),
        ("tables__table1", '<table name="t"><tableColumn id="1" name="all done"/></table>'),
        ("pivotCache__pivotCacheDefinition1", '<p><cacheField name="all done"/></p>'),
    ],
)
def test_a_text_that_something_refers_to_stays(name, content):
    data = workbook_of(["<t>all done</t>", "<t>so done</t>"], **{name: content})
    assert strings_of(data) == ["<t>all done</t>", text("DONE SO")]
    with zipfile.ZipFile(io.BytesIO(translate_document(Turned(), data, "xlsx")[0])) as file:
        assert file.read(f"xl/{name.replace('__', '/')}.xml").decode() == content


def test_strings_in_cells_and_comments_are_translated_and_values_and_formulas_stay():
    cells = (
        '<c r="A1" t="inlineStr"><is><t>the house</t></is></c><c r="B1" t="str"><f>A1&amp;" or so"</f>'
        '<v>the house</v></c><c r="C1"><v>12</v></c>'
    )
    sheet = f'<worksheet xmlns="{S}"><row>{cells}</row></worksheet>'
    output = translated(workbook_of([], worksheets__sheet1=sheet), "xl/worksheets/sheet1.xml")
    assert output == sheet.replace("<is><t>the house</t>", f"<is>{text('HOUSE THE')}")
    comments = (
        f'<comments xmlns="{S}"><authors><author>A B</author></authors><text><r><t>look here</t></r></text></comments>'
    )
    output = translated(workbook_of([], comments1=comments), "xl/comments1.xml")
    assert output == comments.replace("<t>look here</t>", text("HERE LOOK"))
    threaded = "<ThreadedComments><threadedComment><text>look here</text></threadedComment></ThreadedComments>"
    output = translated(
        workbook_of([], threadedComments__threadedComment1=threaded), "xl/threadedComments/threadedComment1.xml"
    )
    assert output == threaded.replace("look here", "HERE LOOK")


def test_openpyxl_reads_the_same_cells_and_formulas():
    for number in range(20):
        data, _ = translate_document(Turned(), made("xlsx", number), "xlsx")
        before, after = (openpyxl.load_workbook(io.BytesIO(each)) for each in (made("xlsx", number), data))
        assert after.sheetnames == before.sheetnames == ["First sheet", "Second"]
        for sheet in before:
            for row in sheet.iter_rows():
                for cell in row:
                    other = after[sheet.title][cell.coordinate]
                    assert other.data_type == cell.data_type
                    texts = [str(each.value) for each in (cell, other)]
                    if cell.data_type == "s" and cell.value != "Done now":
                        texts = [sorted(each.upper().replace(" ", "")) for each in texts]
                    assert texts[0] == texts[1]


def test_another_prefix_and_a_sheet_without_texts_of_its_own():
    shared = f'<x:sst xmlns:x="{S}"><x:si><x:t>the house</x:t></x:si></x:sst>'
    data = package(
        "xl/workbook.xml", "spreadsheetml.sheet.main+xml", {"xl/workbook.xml": "<a/>", "xl/sharedStrings.xml": shared}
    )
    assert '<x:t xml:space="preserve">HOUSE THE</x:t>' in translated(data)
    parts = Document.read(workbook_of([], worksheets__sheet1="<worksheet><v>4</v></worksheet>"), "xlsx").parts
    assert parts["xl/worksheets/sheet1.xml"].structure == []


def test_the_structure_sees_what_would_damage_a_workbook():
    def structure(inside):
        return xlsx.structure(f'<sst xmlns="{S}"><si>{inside}</si></sst>')

    source = structure("<r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r>")
    assert structure("<r><t>x</t></r><r><rPr><b/></rPr><t>y</t></r><r><t>z</t></r>") == source
    for damaged in ("<r><t>b</t></r>", "<t>b</t>", "b<r><rPr><b/></rPr><t>a</t></r><r><t>b</t></r>"):
        assert structure(damaged) != source
    assert structure('<t>a</t><rPh sb="0"><t>b</t></rPh>') != structure('<t>a</t><rPh sb="0"><t>c</t></rPh>')


def test_a_sheet_from_right_to_left_begins_on_the_left_and_the_title_of_the_book_is_translated():
    sheet = f'<worksheet xmlns="{S}"><sheetViews><sheetView rightToLeft="1" tabSelected="1"/></sheetViews></worksheet>'
    data = workbook_of([text("the old house")], worksheets__sheet1=sheet)
    assert translated(data, "xl/worksheets/sheet1.xml") == sheet.replace(' rightToLeft="1"', "")
    assert xlsx.set_direction(sheet, "he") == sheet

    book = openpyxl.Workbook()
    book.active["A1"], book.properties.title, book.properties.creator = "the old house", "This page", "Jane Roe"
    out = io.BytesIO()
    book.save(out)
    output, _ = translate_document(Turned(), out.getvalue(), "xlsx")
    properties = openpyxl.load_workbook(io.BytesIO(output)).properties
    assert (properties.title, properties.creator) == ("PAGE THIS", "Jane Roe")
