import base64
import functools
import json

import pytest
import sentencepiece
from growth import assert_linear, repeated
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from small_sentencepiece import ALPHABET, MODELS, TEXT, train

from sixfold.errors import ModelFileError
from sixfold.text.protobuf import float_field, integer_field, message_field
from sixfold.text.sentencepiece import SentencePieceModel
from sixfold.text.tokenizer import Tokenizer
from sixfold.text.vocabulary_tokenizer import VocabularyTokenizer

WORDS = st.text(st.sampled_from(ALPHABET), max_size=40) | st.text(max_size=20) | st.sampled_from(TEXT)
STRINGS = st.lists(WORDS | st.sampled_from([" ", "  ", "\u3000", "▁"]), max_size=4).map("".join)


@functools.cache
def pair(name):
    """Return a model of the library, and ours of the same file."""
    data = train(**MODELS[name])
    return sentencepiece.SentencePieceProcessor(model_proto=data), SentencePieceModel(data)


def check(name, text, ids):
    library, ours = pair(name)
    pieces = ours.encode(text)
    assert [piece.text for piece in pieces] == library.encode(text, out_type=str)
    assert [ours.unknown if piece.is_unknown else ours.id_of(piece.text) for piece in pieces] == library.encode(text)
    assert ours.normalise(text)[0] == library.normalize(text)
    assert ours.decode([piece.text for piece in pieces]) == library.decode_pieces([piece.text for piece in pieces])
    ids = [index % library.get_piece_size() for index in ids]
    assert ours.decode([ours.pieces[index] for index in ids]) == library.decode(ids)
    ends = [0, *(piece.end for piece in pieces)]
    assert all(0 <= piece.start <= piece.end <= len(text) for piece in pieces)
    assert ends == sorted(ends)


quick = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.mark.parametrize("name", MODELS)
@quick
@given(text=STRINGS, ids=st.lists(st.integers(0, 600), max_size=8))
def test_pieces_are_those_of_the_library(name, text, ids):
    check(name, text, ids)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(text=STRINGS, ids=st.lists(st.integers(0, 600), max_size=8))
def test_pieces_are_those_of_the_library_for_10_000_strings(name, text, ids):
    check(name, text, ids)


@pytest.mark.parametrize("name", ["unigram", "BPE"])
def test_offsets_are_those_of_the_characters(name):
    _, ours = pair(name)
    text = "  The ﬁne  machines 学习"
    spans = [(piece.text, text[piece.start : piece.end]) for piece in ours.encode(text)]
    assert "".join(piece for piece, _ in spans) == "▁The▁fine▁machines▁学习"
    assert "".join(covered for _, covered in spans).split() == text.split()
    plain = [(piece, covered) for piece, covered in spans if "f" not in piece and "ﬁ" not in covered]
    assert len(plain) > 3
    assert all(piece.replace("▁", "") == covered.replace(" ", "") for piece, covered in plain)


@pytest.mark.parametrize("name", ["unigram with symbols", "BPE with bytes", "pieces of several words"])
def test_time_grows_as_the_text_does(name):
    _, ours = pair(name)
    assert_linear(ours.encode, repeated("The maｃhines 学习 unknown 👩 e\u0301"))


def tokenizer_of(name):
    _, ours = pair(name)
    tokens = ["</s>", "<unk>", *reversed(ours.pieces[3:]), "<pad>"]
    return VocabularyTokenizer("sentencepiece", ours, tokens, {"eos": 0, "unk": 1, "pad": len(tokens) - 1})


@pytest.mark.parametrize("name", ["unigram", "BPE with bytes"])
def test_a_tokenizer_with_its_own_ids_survives_json(name):
    first = tokenizer_of(name)
    again = Tokenizer.from_json(first.to_json())
    library, _ = pair(name)
    for text in [*TEXT, "", "未知的 👩"]:
        ids = again.encode(text)
        assert [again.tokens[index] for index in ids if index != 1] == [
            piece for piece in library.encode(text, out_type=str) if piece in again.ids
        ]
        assert first.encode_with_offsets(text).ids == ids
        assert again.decode([*ids, 0]) == library.decode([piece for piece in map(again.tokens.__getitem__, ids)
                                                          if piece != "<unk>"])  # fmt: skip
    assert again.to_json() == first.to_json()


@pytest.mark.parametrize("name", ["BPE", "unigram with symbols"])
def test_any_damage_to_a_model_is_one_line(name):
    data = pair(name)[1].data
    damaged = [data[:cut] for cut in range(0, len(data) - 400_000 if len(data) > 800_000 else len(data), 997)][:200]
    damaged += [data[:at] + bytes([data[at] ^ 255]) + data[at + 1 :] for at in range(0, 4000, 37)]
    messages = []
    for each in damaged:
        try:
            SentencePieceModel(each, "m.spm").encode("The machines 学习 ﬁne")
        except ModelFileError as error:
            messages.append(str(error))
    assert len(messages) > 50
    assert all(message.startswith("m.spm: ") and "\n" not in message for message in messages)


def spm(pieces, **trainer):
    body = b"".join(
        message_field(1, message_field(1, piece.encode()) + float_field(2, score) + integer_field(3, kind))
        for piece, score, kind in pieces
    )
    return body + message_field(2, b"".join(integer_field(int(key[1:]), value) for key, value in trainer.items()))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has 0 pieces"),
        (b"\x80\x02}q\x00.", "expected a SentencePiece model; "),
        (spm([("<unk>", 0, 2), ("a", -1, 1), ("a", -2, 1)]), "the same piece twice"),
        (spm([("<unk>", 0, 2), ("a", -1, 1)], f3=3), "of the type unigram or bpe; got 'word'"),
        (spm([("a", -1, 1)]), "it has 1 pieces, 0 of them unknown"),
    ],
)
def test_what_is_no_model_is_refused_by_name(data, message):
    with pytest.raises(ModelFileError, match=message):
        SentencePieceModel(data)


@pytest.mark.parametrize(
    "change",
    [{"specials": {}}, {"tokens": [1, 2]}, {"reserved": [10**6]}, {"model": "eA=="}, {"specials": {"unk": -1}}],
)
def test_a_damaged_tokenizer_is_refused(change):
    state = json.loads(tokenizer_of("BPE").to_json()) | change
    with pytest.raises(ModelFileError):
        Tokenizer.from_json(json.dumps(state))


def test_the_file_of_the_model_can_be_taken_out_again():
    state = json.loads(tokenizer_of("BPE").to_json())
    assert base64.b64decode(state["model"]) == pair("BPE")[1].data
