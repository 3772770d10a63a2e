"""`sixfold translate` with documents and glossaries, and with files that are no text."""

import gzip
import subprocess
import sys

from commands import complaint, sixfold


def translate(model, *arguments):
    result = sixfold("translate", "--model", model, *arguments)
    assert result.returncode == 0, result.stderr
    return result


def test_a_document_keeps_its_markup_and_goes_where_it_is_told(model, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<p>我们<!-- so -->需要数学</p><pre>我们</pre>\n", encoding="utf-8")
    translate(model, page, "--output", tmp_path / "out.html")
    translated = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert translated.startswith("<p>")
    assert translated.endswith("</p><pre>我们</pre>\n")
    assert translated.count("<!-- so -->") == 1
    assert "需要" not in translated
    command = [sys.executable, "-m", "sixfold", "translate", "--model", model, "-", "--format", "html"]
    result = subprocess.run(command, input=page.read_bytes(), capture_output=True, timeout=60)
    assert result.stdout.decode() == translated


def test_what_a_document_cannot_be_asked_is_refused(model, tmp_path):
    page = tmp_path / "page.json"
    page.write_text('{"a": "我们"}', encoding="utf-8")
    for option, message in (
        ("--json", "--json: expected --output"),
        ("--resume", "--resume: expected"),
        ("--prefix=so", "expected none of --details, --n-best and --prefix"),
        ("--format=word", "--format: expected one of text"),
    ):
        result = sixfold("translate", "--model", model, page, option)
        assert result.returncode == 2
        assert message in result.stderr
    page.write_text('{"a": ', encoding="utf-8")
    result = sixfold("translate", "--model", model, page)
    assert result.returncode == 2
    assert "expected JSON" in result.stderr


def test_a_glossary_is_honoured_in_texts_files_and_documents(model, tmp_path):
    plain = translate(model, "机器学习很有趣").stdout.strip()
    word = plain.split()[-1].strip(".")
    (tmp_path / "g.tsv").write_text("机器学习\tmathematics\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("机器学习很有趣\n", encoding="utf-8")
    (tmp_path / "a.html").write_text("<p>机器学习很有趣</p>\n", encoding="utf-8")
    assert word != "mathematics"
    for source in ("机器学习很有趣", tmp_path / "a.txt", tmp_path / "a.html"):
        assert "mathematics" in translate(model, source, "--glossary", tmp_path / "g.tsv").stdout
    result = sixfold("translate", "--model", model, "机器学习", "--glossary", tmp_path / "none.tsv")
    assert result.returncode == 2
    assert "none.tsv: cannot be read" in result.stderr


def test_a_packed_file_is_refused_with_the_way_to_unpack_it(model, tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress("我们".encode()))
    result = sixfold("translate", "--model", model, tmp_path / "a.gz")
    assert result.returncode == 2
    assert "got a file compressed with gzip" in result.stderr
    assert "gzip -dc" in result.stderr


def test_some_columns_of_a_table_are_translated(model, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text('编号,标题\r\n我们,"我爱数学"\r\n', encoding="utf-8", newline="")
    translate(model, table, "--columns", "标题", "--output", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_bytes().decode() == '编号,标题\r\n我们,"I love mathematics"\r\n'
    assert translate(model, table, "--columns", "2", "--format", "csv").stdout.startswith("编号,")
    no_table = "--columns: expected a document in the format csv or tsv; got"
    for words, message in (
        ((table, "--columns", "标体"), "--columns: expected one of 编号, 标题; got '标体'"),
        ((table, "--columns", "标题", "--format", "text"), f"{no_table} text"),
        (("我们", "--columns", "标题"), f"{no_table} text"),
        ((table, "--columns", "标题", "--format", "html"), f"{no_table} html"),
    ):
        assert message in complaint("translate", "--model", model, *words)
