"""`sixfold translate --memory`: with a text, a file, a document, many files, and after a kill."""

import json

from commands import complaint, sixfold


def translate(model, *arguments):
    result = sixfold("translate", "--model", model, *arguments)
    assert result.returncode == 0, result.stderr
    return result


def memory(folder, *rows, name="m.tsv"):
    path = folder / name
    path.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    return path


def test_what_is_known_is_used_and_what_is_alike_is_shown(model, tmp_path):
    memory_path = memory(tmp_path, ("我爱机器学习", "Machines are dear to me"))
    result = translate(model, "我爱机器学习", "--memory", memory_path)
    assert (result.stdout, result.stderr) == ("Machines are dear to me\n", "")
    alike = memory(tmp_path, ("我们爱机器学习", "We adore machines"), name="alike.tsv")
    result = translate(model, "我爱机器学习", "--memory", alike)
    assert result.stdout == "I love machine learning\n"
    assert result.stderr == "memory 86%: 我们爱机器学习 → We adore machines\n"
    result = translate(model, "我爱机器学习", "--memory", memory_path, "--prefix", "They")
    assert result.stdout.startswith("They")
    assert result.stderr == "memory 100%: 我爱机器学习 → Machines are dear to me\n"
    facts = json.loads(translate(model, "我爱机器学习", "--memory", memory_path, "--json").stdout)
    assert facts["memory"] == [{"source": "我爱机器学习", "target": "Machines are dear to me", "score": 1.0}]
    assert facts["tokens"] == facts["alignment"] == []


def test_files_and_documents_use_it_and_only_json_shows_what_is_alike(model, tmp_path):
    memory_path = memory(tmp_path, ("zh", "toy"), ("我爱机器学习", "Machines are dear to me"))
    (tmp_path / "a.txt").write_text("我爱机器学习\n我们爱机器学习\n", encoding="utf-8")
    result = translate(model, tmp_path / "a.txt", "--memory", memory_path)
    assert result.stdout.startswith("Machines are dear to me\nWe love")
    assert result.stderr == ""
    rows = [
        json.loads(line)
        for line in translate(model, tmp_path / "a.txt", "--memory", memory_path, "--json").stdout.splitlines()
    ]
    assert [[match["score"] for match in row["memory"]] for row in rows] == [[1.0], [6 / 7]]
    (tmp_path / "a.html").write_text("<p>我爱机器学习</p>\n", encoding="utf-8")
    assert translate(model, tmp_path / "a.html", "--memory", memory_path).stdout == "<p>Machines are dear to me</p>\n"


def test_a_start_with_another_memory_is_not_gone_on_with(model, tmp_path):
    memory_path = memory(tmp_path, ("我爱机器学习", "Machines are dear to me"))
    (tmp_path / "a.txt").write_text("我爱机器学习\n" * 5, encoding="utf-8")
    start = ["translate", "--model", model, tmp_path / "a.txt", "--memory", memory_path, "--output", tmp_path / "out"]
    assert sixfold(*start).returncode == 0
    facts = {"input": "a.txt", "bytes": 95, "memory": "another"}
    (tmp_path / "out.partial").write_text("kept\n", encoding="utf-8")
    (tmp_path / "out.partial.json").write_text(json.dumps(facts), encoding="utf-8")
    assert "memory: another → " in complaint(*start, "--resume")


def test_many_files_use_it_and_are_not_gone_on_with_by_another(model, tmp_path):
    memory_path = memory(tmp_path, ("我爱机器学习", "Machines are dear to me"))
    (tmp_path / "a.txt").write_text("我爱机器学习\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "我爱机器学习"}\n', encoding="utf-8")
    start = [tmp_path / "a.txt", tmp_path / "b.jsonl", "--output", tmp_path / "out", "--memory"]
    translate(model, *start, memory_path)
    assert (tmp_path / "out" / "a.txt").read_text(encoding="utf-8") == "Machines are dear to me\n"
    record = json.loads((tmp_path / "out" / "b.jsonl").read_text(encoding="utf-8"))
    assert record == {"text": "我爱机器学习", "translation": "Machines are dear to me"}
    other_memory = memory(tmp_path, ("我爱机器学习", "I adore machines"), name="other.tsv")
    assert "was begun with other settings: memory: " in complaint("translate", "--model", model, *start, other_memory)


def test_mistakes_in_a_memory_are_one_line(model, tmp_path):
    (tmp_path / "m.tmx").write_text('<!DOCTYPE tmx [<!ENTITY x "y">]><tmx/>', encoding="utf-8")
    for name, message in (
        ("m.tmx", "m.tmx:1: expected no declarations in <!DOCTYPE>"),
        ("none", "none: cannot be read"),
    ):
        assert message in complaint("translate", "--model", model, "我", "--memory", tmp_path / name)
