"""BLEU and chrF of a corpus as sacreBLEU computes them, and BLEU as older papers computed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from sixfold.errors import RequestError

# The BLEU tokenisers of languages without spaces, where the usual 13a would take a whole clause for one word.
TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char", "lo": "char", "km": "char", "my": "char"}


@dataclass(frozen=True)
class Scores:
    """Scores from 0 to 100, each with the sacreBLEU signature by which others can reproduce it."""

    bleu: float
    chrf: float
    signature: str
    chrf_signature: str


def score(hypotheses: Sequence[str], references: Sequence[str], language: str) -> Scores:
    """Score detokenised translations against raw references; `language` is the target language."""
    assert len(hypotheses) == len(references) > 0
    bleu, chrf = BLEU(tokenize=TOKENIZERS.get(language.split("-")[0], "13a")), CHRF()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, [references]).score,
        chrf=chrf.corpus_score(hypotheses, [references]).score,
        signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def tokenized_lowercase_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str) -> float:
    """Return the BLEU that papers on Multi30k report: multi-bleu.perl on text prepared like its `lc.norm.tok` files."""
    assert len(hypotheses) == len(references) > 0
    try:
        from sacremoses import MosesPunctNormalizer, MosesTokenizer
    except ModuleNotFoundError:
        raise RequestError(
            "tokenised BLEU needs sacremoses, which is not installed", "pip install sacremoses"
        ) from None
    normalizer, tokenizer = MosesPunctNormalizer(language), MosesTokenizer(language)

    def prepare(text: str) -> str:
        # Lower-casing comes first, as in the corpus: it decides which full stops belong to abbreviations.
        return " ".join(tokenizer.tokenize(normalizer.normalize(text.lower()), escape=False))

    # multi-bleu.perl does not smooth; `force` turns off the warning about tokenised text.
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    return bleu.corpus_score([prepare(text) for text in hypotheses], [[prepare(text) for text in references]]).score
