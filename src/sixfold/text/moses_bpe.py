"""BPE codes after the tokeniser of Moses, as some Argos packages have them. It needs sacremoses."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from sixfold.errors import ModelFileError, RequestError
from sixfold.text.sentencepiece import Piece
from sixfold.text.subword_nmt import SEPARATOR, SubwordNmtCodes

ESCAPES = {
    "&amp;": "&",
    "&lt;": "<",
    "&gt;": ">",
    "&quot;": '"',
    "&apos;": "'",
    "&#124;": "|",
    "&#91;": "[",
    "&#93;": "]",
}


class MosesBpe:
    """Normalises and tokenises a text as Moses does for a language, then cuts its words by BPE codes."""

    def __init__(self, data: bytes, where: str = "BPE codes") -> None:
        """Read JSON with the entries `codes`, `source` and `target`; `where` is named in errors."""
        try:
            state: Any = json.loads(data)
            codes, self._source, self._target = (str(state[name]) for name in ("codes", "source", "target"))
        except (ValueError, KeyError, TypeError):
            raise ModelFileError(f"{where}: expected BPE codes and two languages in JSON") from None
        self.data = data
        self._codes = SubwordNmtCodes(codes.encode(), where)
        self._moses: tuple[Any, Any, Any] | None = None

    @classmethod
    def of(cls, codes: bytes, source: str, target: str, where: str) -> MosesBpe:
        """Return a tokeniser for the languages of a model."""
        text = SubwordNmtCodes(codes, where).data.decode()
        return cls(json.dumps({"codes": text, "source": source, "target": target}).encode(), where)

    def encode(self, text: str) -> list[Piece]:
        """Return the pieces of a text. The spans of words that Moses rewrites are found by their order."""
        normaliser, tokenizer, _ = self._open()
        pieces: list[Piece] = []
        position = 0
        for word in tokenizer.tokenize(normaliser.normalize(text)):
            plain = word
            for escape, character in ESCAPES.items():
                plain = plain.replace(escape, character)
            found = text.find(plain, position)
            start, end = (found, found + len(plain)) if found >= 0 else (position, position)
            position = end
            parts = self._codes.encode(word)
            for index, part in enumerate(parts):
                # Inside a word without escapes, each piece has its own characters.
                inside = (start + part.start, start + part.end) if plain == word and found >= 0 else (start, end)
                last = index == len(parts) - 1
                pieces.append(Piece(part.text, *(inside if plain == word or last else (start, start))))
        return pieces

    def decode(self, pieces: Iterable[str]) -> str:
        """Return the text of pieces, with spaces where Moses writes them in the target language."""
        _, _, detokenizer = self._open()
        return str(detokenizer.detokenize(" ".join(pieces).replace(f"{SEPARATOR} ", "").split(" ")))

    def _open(self) -> tuple[Any, Any, Any]:
        if self._moses is None:
            try:
                import sacremoses
            except ImportError:
                raise RequestError(
                    "this model tokenises with Moses, which needs sacremoses", "pip install 'sixfold[moses]'"
                ) from None
            self._moses = (
                sacremoses.MosesPunctNormalizer(self._source),
                sacremoses.MosesTokenizer(self._source),
                sacremoses.MosesDetokenizer(self._target),
            )
        return self._moses
