import io

import pytest
from growth import assert_linear, repeated
from hypothesis import given, settings
from hypothesis import strategies as st
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

from sixfold.errors import ModelFileError
from sixfold.text.subword_nmt import SubwordNmtCodes

TEXT = "the machines are learning aaa aaaa aa abab ababa 机器学习 学习机器 low lower lowest newer new wider\n" * 3


@pytest.fixture(scope="module", params=["0.1", "0.2"])
def codes(request):
    output = io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("subword_nmt.learn_bpe.tqdm", lambda items, **_: items)
        learn_bpe(io.StringIO(TEXT), output, 60, min_frequency=1)
    return output.getvalue() if request.param == "0.2" else output.getvalue().partition("\n")[2]


@settings(max_examples=300, deadline=None)
@given(text=st.text(st.sampled_from("abaelnrtwmich 机器学习 "), max_size=40))
def test_pieces_are_those_of_subword_nmt(codes, text):
    pieces = [piece.text for piece in SubwordNmtCodes(codes.encode()).encode(text)]
    assert pieces == BPE(io.StringIO(codes)).process_line(text).split()
    assert SubwordNmtCodes(codes.encode()).decode(pieces) == " ".join(text.split())


def test_time_grows_as_a_word_does(codes):
    assert_linear(lambda text: SubwordNmtCodes(codes.encode()).encode(text), repeated("lowaab学习"))


@pytest.mark.parametrize("data", [b"\xff\xfe", b"#version: 0.2\na b\na b c\n", b"PK\x03\x04 \x00"])
def test_other_files_are_refused(data):
    with pytest.raises(ModelFileError, match="expected"):
        SubwordNmtCodes(data, "codes")
