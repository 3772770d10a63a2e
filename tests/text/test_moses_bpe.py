import io
import sys
import zipfile

import pytest
import sacremoses
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_ctranslate2 import argos, opennmt
from subword_nmt.apply_bpe import BPE

from sixfold import Translator
from sixfold.errors import ModelFileError, RequestError
from sixfold.interop.sources import read_source
from sixfold.text.moses_bpe import MosesBpe
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

CODES = "#version: 0.2\nt h\nth e</w>\nl e\nle a\nlea r\ni n\nin g</w>\nm a\na n</w>\nc h\n"


@pytest.fixture(scope="module")
def pieces():
    return MosesBpe.of(CODES.encode(), "en", "es", "bpe.model")


@settings(max_examples=150, deadline=None)
@given(text=st.text(st.sampled_from('the learning man\'s "A" [b] & <c>, d. 3.5% machine’s “x”|—'), max_size=50))
@example(text="Don't learn the man's machine & \"things\"...")
def test_pieces_and_texts_are_those_of_argos_translate(pieces, text):
    """Argos Translate normalises and tokenises with sacremoses, and then applies subword-nmt."""
    words = " ".join(sacremoses.MosesTokenizer("en").tokenize(sacremoses.MosesPunctNormalizer("en").normalize(text)))
    expected = BPE(io.StringIO(CODES)).segment_tokens(words.strip("\r\n ").split(" "))
    got = pieces.encode(text)
    assert [piece.text for piece in got] == expected
    joined = " ".join(expected).replace("@@ ", "").split(" ")
    assert pieces.decode([piece.text for piece in got]) == sacremoses.MosesDetokenizer("es").detokenize(joined)
    ends = [0, *(piece.end for piece in got)]
    assert ends == sorted(ends)
    assert ends[-1] <= len(text)


def test_offsets_are_those_of_the_words(pieces):
    text = 'The man\'s "learning"'
    spans = [(piece.text, text[piece.start : piece.end]) for piece in pieces.encode(text)]
    assert ("ma@@", "ma") in spans
    assert ("n", "n") in spans
    assert ("lear@@", "lear") in spans


def test_a_package_with_bpe_codes_translates(tmp_path):
    opennmt(tmp_path / "model", "int8")
    package = argos(tmp_path / "en_es.argosmodel", tmp_path / "model", b"")
    with zipfile.ZipFile(package) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(package, "w") as archive:
        for name, content in contents.items():
            if name.endswith("sentencepiece.model"):
                archive.writestr(name.replace("sentencepiece.model", "bpe.model"), CODES)
            else:
                archive.writestr(name, content)
    file = read_source(str(package))
    again = Tokenizer.from_json(file.tokenizer.to_json())
    assert isinstance(again, VocabularyTokenizer)
    assert again.encode("the machine") == file.tokenizer.encode("the machine")
    with Translator(file, "cpu") as translator:
        assert translator.translate("the man is learning").languages == ("en", "es")


def test_without_sacremoses_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    with pytest.raises(RequestError, match="needs sacremoses") as caught:
        MosesBpe.of(CODES.encode(), "en", "es", "bpe.model").encode("a")
    assert caught.value.hint == "pip install 'sixfold[moses]'"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"codes": ""}', b"\xff"])
def test_damaged_state_is_one_line(data):
    with pytest.raises(ModelFileError, match="expected BPE codes"):
        MosesBpe(data)
