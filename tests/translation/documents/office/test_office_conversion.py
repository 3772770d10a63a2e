"""LibreOffice opens and converts office documents after their translation."""

import io
import random
import shutil
import sys
import zipfile
from pathlib import Path

import docx
import pptx
import pytest
from made_documents import Turned, made, sentence
from pptx.util import Inches

from sixfold.translation.documents.steps import translate_document

sys.path.append(str(Path(__file__).parents[4] / "benchmarks"))  # at the end: its modules hide nothing

from hostile_translator import LawlessTranslator
from office_readers import convert_to_pdf

DOCUMENTS = 5  # of each format


def add_runs(chance, paragraph):
    for _ in range(chance.randint(1, 4)):
        run = paragraph.add_run()
        run.text = f"{sentence(chance)} "
        run.font.bold, run.font.italic = chance.random() < 0.3, chance.random() < 0.3


def saved(document):
    out = io.BytesIO()
    document.save(out)
    return out.getvalue()


def word_document(number):
    """Return a document that has all that LibreOffice wants, which those of `made` lack."""
    chance, document = random.Random(number), docx.Document()
    document.sections[0].header.paragraphs[0].text = sentence(chance)
    for _ in range(chance.randint(1, 5)):
        paragraph = document.add_paragraph(style=chance.choice(["Normal", "Heading 1", "List Bullet"]))
        add_runs(chance, paragraph)
        paragraph.add_run().add_break()
        paragraph.add_run(sentence(chance))
    for cell in document.add_table(2, 2)._cells:
        add_runs(chance, cell.paragraphs[0])
    return saved(document)


def slides(number):
    chance, presentation = random.Random(number), pptx.Presentation()
    for layout in list(presentation.slide_layouts)[:2]:
        slide = presentation.slides.add_slide(layout)
        slide.shapes.title.text = sentence(chance)
        frame = slide.shapes.add_textbox(Inches(1), Inches(4), Inches(5), Inches(1)).text_frame
        add_runs(chance, frame.paragraphs[0])
        slide.notes_slide.notes_text_frame.text = sentence(chance)
    return saved(presentation)


MAKERS = {
    "docx": word_document, "pptx": slides,
    "odt": lambda number: made("odt", number), "xlsx": lambda number: made("xlsx", number),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("soffice") is None, reason="LibreOffice is not installed")
@pytest.mark.parametrize("translator", [Turned(), LawlessTranslator()], ids=["reversed", "lawless"])
def test_libreoffice_converts_translated_documents(tmp_path, translator):
    files = []
    for form, make in MAKERS.items():
        for number in range(DOCUMENTS):
            output, report = translate_document(translator, make(number), form)
            assert report.translated
            files.append(tmp_path / f"{form}{number}.{form}")
            files[-1].write_bytes(output)
    broken = tmp_path / "broken.docx"
    with zipfile.ZipFile(io.BytesIO(word_document(0))) as whole, zipfile.ZipFile(broken, "w") as cut:
        for name in whole.namelist():
            content = whole.read(name)
            cut.writestr(name, content[: len(content) // 2] if name == "word/document.xml" else content)
    assert convert_to_pdf(shutil.which("soffice"), [*files, broken], tmp_path) == ["broken.docx"]
