"""Small SentencePiece models, trained by the library."""

import io

import sentencepiece

TEXT = [
    "机器学习很有趣", "我爱机器学习", "他在学习机器翻译。", "The machines are learning.", "I love machine learning",
    "数字 123 与 Python 代码", "naïve café", "Ελληνικά και ρусский", "日本語のテキスト", "한국어 문장입니다",
    "double  spaces   here", "(brackets) [and] {more}... ——", "price: $1,234.56!", "ﬁne ½ ① Ａｂｃ e\u0301a\u0300",
    "हिन्दी में एक वाक्य", "ข้อความภาษาไทย", "שלום עולם", "مرحبا بالعالم", "ქართული ენა",
] * 3  # fmt: skip
# Ten scripts, signs, white space, what the normaliser replaces, user-defined symbols, and the unknown.
ALPHABET = (
    "机器学习很有趣我爱他在译 abcdefghilmnoprstuMIP0123 .,;()[]{}…—\t\n ïéΕλρу日本語のテ한국שלום नमस्ते👩🇨▁<ph>xyＡｂ①½ﬁ"
    "\u0301\u0300\u200b\x00\u3000\u00a0\xad"
)


def train(**settings) -> bytes:
    """Return the bytes of a model; the settings are those of the library's trainer."""
    model = io.BytesIO()
    defaults = {"vocab_size": 260, "character_coverage": 0.98, "hard_vocab_limit": False, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT), model_writer=model, num_threads=1, **(defaults | settings)
    )
    return model.getvalue()


SYMBOLS = ["<ph>", "学习", "ing", "in", "e\u0301", "Ａ", "\u0301", "  ", "x▁y"]
MODELS = {
    "unigram": {},
    "BPE": {"model_type": "bpe"},
    "unigram with bytes": {"byte_fallback": True, "vocab_size": 520},
    "BPE with bytes": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 520},
    "unigram with symbols": {"user_defined_symbols": SYMBOLS, "normalization_rule_name": "nfkc_cf"},
    "BPE with symbols": {"model_type": "bpe", "user_defined_symbols": SYMBOLS},
    "identity": {"normalization_rule_name": "identity", "remove_extra_whitespaces": False},
    "no space before": {"model_type": "bpe", "add_dummy_prefix": False},
    "spaces at the end": {"treat_whitespace_as_suffix": True},
    "pieces of several words": {"model_type": "bpe", "split_by_whitespace": False},
}
