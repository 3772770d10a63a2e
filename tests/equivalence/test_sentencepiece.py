import pytest
import sentencepiece
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sixfold.config import TokenizerConfig
from sixfold.errors import RequestError
from sixfold.interop.sentencepiece import SPACE, to_sentencepiece
from sixfold.text.learn import train_tokenizer

TEXT = [
    "机器学习很有趣", "我爱机器学习", "他在学习机器翻译。", "The machines are learning.", "I love machine learning",
    "数字 123 与 Python 代码", "naïve café", "Ελληνικά και ρусский", "日本語のテキスト", "한국어 문장입니다",
    "double  spaces   here", "(brackets) [and] {more}... ——", "price: $1,234.56!",
] * 3  # fmt: skip
# Ten scripts, digits, signs, white space, span tokens and what the vocabulary has never seen.
CHARACTERS = (
    "机器学习很有趣我爱他在译 abcdefghilmnoprstuMIP0123 .,;()[]{}…—\t\n"
    "ïéΕλρу日本語のテ한국שלום नमस्ते👩🇨\ue000\ue003\ue007"
)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def pair(request):
    """A tokeniser, and SentencePiece with its export."""
    tokenizer = train_tokenizer(
        TEXT, TokenizerConfig(algorithm=request.param, vocab=460, tags=("zh", "en"), spans=3, max_piece=8)
    )
    return tokenizer, sentencepiece.SentencePieceProcessor(model_proto=to_sentencepiece(tokenizer))


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet=CHARACTERS, max_size=60))
@example(text="  The  machines \n are 机器 学习")
@example(text="学习" * 60)
@example(text="")
@example(text="\n机器")
def test_sentencepiece_finds_the_same_pieces(pair, text):
    tokenizer, exported = pair
    assert exported.encode(text) == tokenizer.encode(text)


@settings(max_examples=200, deadline=None)
@given(text=st.text(max_size=40).filter(lambda text: SPACE not in text and "\0" not in text))
def test_sentencepiece_reads_any_text_alike_and_gives_it_back(pair, text):
    tokenizer, exported = pair
    assert exported.encode(text) == tokenizer.encode(text)
    assert exported.decode(tokenizer.encode(text)) == text


def test_ids_and_special_tokens_are_the_same(pair):
    tokenizer, exported = pair
    assert exported.get_piece_size() == tokenizer.vocab
    assert [exported.id_to_piece(index).replace(SPACE, " ") for index in range(tokenizer.vocab)] == tokenizer.tokens
    ids = exported.pad_id(), exported.bos_id(), exported.eos_id(), exported.unk_id()
    assert ids == tuple(tokenizer.specials[name] for name in ("pad", "bos", "eos", "unk"))
    assert exported.is_control(tokenizer.tag("zh"))


def test_wordpiece_has_no_counterpart():
    tokenizer = train_tokenizer(TEXT, TokenizerConfig(algorithm="wordpiece", vocab=420))
    with pytest.raises(RequestError, match="expected the algorithm bpe or unigram"):
        to_sentencepiece(tokenizer)
