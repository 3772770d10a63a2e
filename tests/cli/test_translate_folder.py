"""`sixfold translate` with several documents and with folders of them."""

import json

import pytest
from commands import run_here

from sixfold.cli import translate_documents
from sixfold.translation.documents.steps import Report
from sixfold.translation.result import Notice


@pytest.fixture
def folder(tmp_path):
    """Return a folder with documents, a text file, a file of another format and a hidden file."""
    for name, text in {
        "a.html": "<p>我们需要<b>数学</b></p>", "sub/b.json": '{"t": "我爱数学", "n": 3}',
        "c.txt": "我们\n\n我爱数学\n", "d.png": "no", ".hidden/e.html": "<p>我们</p>",
    }.items():  # fmt: skip
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "in"


def test_the_documents_of_a_folder_are_translated_into_another_with_the_same_names(model, folder, tmp_path, capsys):
    output = run_here(capsys, "translate", "--model", model, folder, "--output", tmp_path / "out", "--json")
    out = tmp_path / "out"
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("[a-z]*.*")) == [
        "a.html",
        "c.txt",
        "sub/b.json",
    ]
    assert json.loads((out / "sub/b.json").read_text())["n"] == 3
    assert "数学" not in (out / "a.html").read_text(encoding="utf-8")
    assert (out / "c.txt").read_text(encoding="utf-8").count("\n") == 3
    assert "3 files translated" in output.err
    assert "1 of other formats left out" in output.err
    reports = [json.loads(line) for line in output.out.splitlines()]
    assert [(report["texts"], report["translated"]) for report in reports] == [(1, 1), (1, 1), (1, 1)]


def test_what_is_done_is_not_done_again_unless_it_has_changed(model, folder, tmp_path, capsys):
    words = ("translate", "--model", model, folder, "--output", tmp_path / "out")
    run_here(capsys, *words)
    before = (tmp_path / "out/a.html").stat().st_mtime_ns
    assert "0 files translated" in run_here(capsys, *words).err
    (folder / "c.txt").write_text("我爱数学\n", encoding="utf-8")
    (tmp_path / "out/sub/b.json").unlink()
    assert "2 files translated" in run_here(capsys, *words).err
    assert (tmp_path / "out/a.html").stat().st_mtime_ns == before


def test_a_record_that_a_kill_cut_short_loses_one_file(model, folder, tmp_path, capsys):
    words = ("translate", "--model", model, folder, "--output", tmp_path / "out")
    run_here(capsys, *words)
    record = tmp_path / "out/.sixfold-documents.jsonl"
    record.write_bytes(record.read_bytes()[:-3])
    assert "1 file translated" in run_here(capsys, *words).err
    assert "3 were done before" in run_here(capsys, *words).err


def test_other_settings_for_the_same_folder_are_refused(model, folder, tmp_path, capsys):
    words = ("translate", "--model", model, folder, "--output", tmp_path / "out")
    run_here(capsys, *words)
    assert "was begun with other settings: beam" in run_here(capsys, *words, "--beam", "2", status=2).err


def test_a_document_that_cannot_be_read_is_reported_and_the_others_are_translated(model, folder, tmp_path, capsys):
    (folder / "bad.json").write_text('{"a":', encoding="utf-8")
    output = run_here(capsys, "translate", "--model", model, folder, "--output", tmp_path / "out", status=2)
    assert f"error: {folder / 'bad.json'}:1: expected JSON" in output.err
    assert "3 files translated" in output.err
    assert "1 failed" in output.err
    assert not (tmp_path / "out/bad.json").exists()


def test_several_documents_need_names_of_their_own_and_a_folder(model, folder, tmp_path, capsys):
    other = tmp_path / "a.html"
    other.write_text("<p>我们</p>", encoding="utf-8")
    words = ("translate", "--model", model, folder / "a.html", other)
    assert "expected a folder" in run_here(capsys, *words, status=2).err
    output = run_here(capsys, *words, "--output", tmp_path / "out", status=2)
    assert "expected files with different names" in output.err
    run_here(capsys, "translate", "--model", model, folder / "a.html", folder / "c.txt", "--output", tmp_path / "out")
    assert (tmp_path / "out/c.txt").exists()


def test_a_folder_without_documents_is_a_mistake(model, tmp_path, capsys):
    (tmp_path / "in").mkdir()
    words = ("translate", "--model", model, tmp_path / "in", "--output", tmp_path / "out")
    assert "expected documents or text files; got none" in run_here(capsys, *words, status=2).err


def test_the_exit_status_tells_that_texts_were_left_out(model, folder, tmp_path, capsys, monkeypatch):
    notice = Notice("untranslated", "not translated, since that would damage the document: no <b>")
    report = Report(2, 1, 1, [("7", notice)])
    monkeypatch.setattr(translate_documents, "translate_read_document", lambda *_: (b"<p>", report))
    page = folder / "a.html"
    output = run_here(capsys, "translate", "--model", model, page, "-o", tmp_path / "o", "--json", status=3)
    assert f"{page}:7: not translated" in output.err
    assert "1 of 2 texts were not translated" in output.err
    assert json.loads(output.out)["untranslated"] == 1
    assert (tmp_path / "o").read_bytes() == b"<p>"
    output = run_here(capsys, "translate", "--model", model, folder, "--output", tmp_path / "out", status=3)
    assert "2 texts not translated" in output.err


def test_a_pdf_is_refused_by_name(model, tmp_path, capsys):
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.7")
    output = run_here(capsys, "translate", "--model", model, tmp_path / "a.pdf", status=2)
    assert "pdftotext" in output.err
