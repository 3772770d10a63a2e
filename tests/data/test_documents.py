"""Documents are read as they are written, wherever they end, and cleaned and stored in memory that they do not fill."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from sixfold.config import DataConfig
from sixfold.data import cleaned, documents
from sixfold.data.cleaning import HashSet
from sixfold.data.documents import ANSWERS, TextCleaner, TextCorpus, blocks, detect_documents, has_answers
from sixfold.data.store import tokenize
from sixfold.errors import DataError
from sixfold.tasks.causal_lm import CausalTask
from sixfold.text.learn import TokenizerConfig, train_tokenizer


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_blocks_end_at_blank_lines_and_know_their_first_line():
    lines = ["", "one", "  two ", " ", "", "three", "four"]
    assert list(blocks(iter(lines))) == [(2, "one\n  two"), (6, "three\nfour")]


def test_a_block_without_an_end_is_cut_at_a_line(monkeypatch):
    monkeypatch.setattr(documents, "MAX_DOCUMENT_CHARACTERS", 10)
    assert [text for _, text in blocks(iter(["12345", "67890", "abc", "", "d"]))] == ["12345\n67890", "abc", "d"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a line\n" * 100, "lines"),
        ("two\nlines\n\n" * 20, "blocks"),
        ("two\nlines\n\n" * 19, "lines"),  # too few of them to hold any out
        ("\n\n\n" + "a line\n" * 100 + "\n\n", "lines"),
        ("a line\n" * 1001 + "\n", "lines"),
        (("a line\n" * 1001 + "\n") * 30, "lines"),  # blank lines by accident
        ("", "lines"),
    ],
)
def test_blank_lines_separate_documents_where_there_are_enough(text, expected, tmp_path):
    assert detect_documents(write(tmp_path / "a.txt", text)) == expected


def test_a_text_is_read_by_lines_by_blocks_or_from_json(tmp_path):
    text = write(tmp_path / "a.md", "one\ntwo\n\n three \n")
    packed = tmp_path / "b.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    for path in (text, packed):
        corpus = TextCorpus("a", (path,), documents="lines")
        assert list(corpus.records()) == [(1, "one"), (2, "two"), (4, "three")]
        assert list(replace(corpus, documents="blocks").records()) == [(1, "one\ntwo"), (4, " three")]
    records = [{"text": "one\r\n\r\ntwo\n"}, {"text": "half a \ud800", "id": 1}]
    path = write(tmp_path / "c.jsonl", "\n\n".join(map(json.dumps, records)))
    assert list(TextCorpus("c", (path,)).records()) == [(1, "one\n\ntwo"), (3, "half a \ufffd")]


def test_prompts_and_answers_keep_their_line_breaks_in_json(tmp_path):
    record = {"prompt": "Add:\n1 2", "answer": "3"}
    path = write(tmp_path / "a.jsonl", json.dumps(record) + "\n")
    assert list(TextCorpus("a", (path,), contents=ANSWERS).records()) == [(1, "Add:\n1 2", "3")]
    table = write(tmp_path / "a.tsv", "1 2\t3\n")
    assert list(TextCorpus("a", (table,), contents=ANSWERS).records()) == [(1, "1 2", "3")]
    files = (write(tmp_path / "a.x", "1 2\n"), write(tmp_path / "a.y", "3\n"))
    assert list(TextCorpus("a", files, contents=ANSWERS).records()) == [(1, "1 2", "3")]
    assert [has_answers([path]), has_answers([table]), has_answers(files)] == [True] * 3
    other = write(tmp_path / "b.jsonl", '\n{"text": "prompt"}\n')
    assert not has_answers([other])
    assert not has_answers([Path("a.txt")])


@pytest.mark.parametrize(
    ("line", "message"),
    [('{"body": "x"}', "expected a field text; got body"), ('{"text": 1}', "expected a string; got 1"), ("x", "JSON")],
)
def test_bad_json_is_named_with_its_line(line, message, tmp_path):
    path = write(tmp_path / "a.jsonl", '{"text": "good"}\n' + line + "\n")
    with pytest.raises(DataError, match=message) as error:
        list(TextCorpus("a", (path,)).records())
    assert "a.jsonl:2" in str(error.value)


def test_empty_broken_and_repeated_texts_are_dropped_and_counted(tmp_path):
    texts = ["Good.", " ", "bad \ufffd", "good.", "Better."]
    records = [documents.Document(number, text) for number, text in enumerate(texts, start=1)]
    corpus = TextCorpus("a", (tmp_path / "a.txt",))
    cleaner = TextCleaner(DataConfig(), HashSet())
    kept, hashes = cleaner.select(corpus, records, cleaner.apply_filters(records))
    assert [text for _, text in kept] == ["Good.", "Better."]
    assert len(hashes) == 2
    assert cleaner.report.dropped == {"empty": 1, "encoding": 1, "duplicate": 1}
    assert cleaner.report.examples["encoding"] == ["a.txt:3"]
    tolerant = TextCleaner(DataConfig(skip=("encoding", "duplicate")), HashSet())
    assert len(tolerant.select(corpus, records, tolerant.apply_filters(records))[0]) == 4


def test_long_documents_are_stored_in_small_parts_with_the_same_result(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "".join(f"{number} and\nsome more\n\n" for number in range(50)))
    corpus = TextCorpus("a", (path,), documents="blocks")
    tokenizer = train_tokenizer(["1 and", "some more"] * 9, TokenizerConfig(vocab=300))
    stores = []
    for characters in (2**24, 40):
        monkeypatch.setattr(cleaned, "CHARACTERS_PER_COMMIT", characters)
        folder = tmp_path / str(characters)
        kept = cleaned.clean([corpus], CausalTask(), 5, folder, lambda _: None)
        stores.append(tokenize(kept, {"text": tokenizer}, set(), ("text",), 2**31, folder, lambda _: None))
    first, second = stores
    assert len(first) == len(second) == 50
    assert first.columns["text"].ids.tolist() == second.columns["text"].ids.tolist()
    assert first.lines.tolist() == second.lines.tolist() == list(range(1, 150, 3))
    ids = first.columns["text"].take(first.lines[:1] * 0 + 49).values
    assert tokenizer.decode(ids) == "49 and\nsome more"
