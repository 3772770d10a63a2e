"""Tokenisers of other toolkits that have two parts: a way to cut a text into pieces, and a list of pieces with ids."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Protocol

from sixfold.errors import DataError, ModelFileError
from sixfold.text.moses_bpe import MosesBpe
from sixfold.text.sentencepiece import Piece, SentencePieceModel
from sixfold.text.sentencepiece_file import SPACE
from sixfold.text.subword_nmt import SEPARATOR, SubwordNmtCodes
from sixfold.text.tokenizer import BYTES, VERSION, Encoding, Tokenizer, is_surrogate

ROLES = ("pad", "bos", "eos", "unk", "mask")


class PieceModel(Protocol):
    """A way to cut texts into pieces and to join pieces to texts."""

    @property
    def data(self) -> bytes:
        """The bytes of its file."""
        ...

    def encode(self, text: str) -> list[Piece]:
        """Return the pieces of a text."""
        ...

    def decode(self, pieces: Iterable[str]) -> str:
        """Return the text of pieces."""
        ...


PIECE_MODELS: dict[str, Callable[[bytes, str], PieceModel]] = {
    "sentencepiece": SentencePieceModel,
    "subword-nmt": SubwordNmtCodes,
    "moses-bpe": MosesBpe,
}


class VocabularyTokenizer(Tokenizer):
    """A tokeniser whose pieces come from a piece model, and whose ids are positions in a list of tokens.

    A piece that the list does not have is read as the unknown token. Where both have the same pieces in the same order,
    the ids are those of the model.
    """

    def __init__(
        self,
        algorithm: str,
        pieces: PieceModel,
        tokens: Sequence[str],
        specials: Mapping[str, int],
        reserved: Iterable[int] = (),
    ) -> None:
        """`specials` are the ids of the roles pad, bos, eos, unk and mask, of which unk must be there.

        `reserved` are other ids that stand for no text, such as those of languages.
        """
        self.algorithm, self.pieces = algorithm, pieces
        self.tokens = list(tokens)
        self.specials = dict(specials)
        self.reserved = frozenset([*specials.values(), *reserved])
        self.tags, self.spans = (), 0
        self.character_map = {}
        self._json: str | None = None

    @cached_property
    def ids(self) -> dict[str, int]:
        """The id of each token; of a token that is there twice, the first."""
        return {token: index for index, token in reversed(list(enumerate(self.tokens)))}

    @cached_property
    def vocab(self) -> int:
        """Return the number of tokens."""
        return len(self.tokens)

    @cached_property
    def byte_ids(self) -> tuple[int, ...]:
        """Return the ids of the bytes that spell characters without a piece."""
        return tuple(self.ids[name] for name in BYTES if name in self.ids)

    @property
    def span_ids(self) -> tuple[int, ...]:
        """Return no ids: these tokenisers have no span tokens."""
        return ()

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the ids of several texts, without special tokens."""
        return [[self._id_of(piece) for piece in self._cut(text)] for text in texts]

    def encode_with_offsets(self, text: str) -> Encoding:
        """Return the ids, the pieces and their offsets in a text, without special tokens."""
        pieces = self._cut(text)
        ids = [self._id_of(piece) for piece in pieces]
        return Encoding(ids, [self.tokens[index] for index in ids], [(piece.start, piece.end) for piece in pieces])

    def words(self, text: str) -> list[list[str]]:
        """Return the pieces of each word of a text; a word begins with a space."""
        words: list[list[str]] = []
        for piece in self._cut(text):
            is_new = piece.text.startswith(SPACE) if self.algorithm == "sentencepiece" else not words or (
                not words[-1][-1].endswith(SEPARATOR)
            )  # fmt: skip
            if is_new or not words:
                words.append([])
            words[-1].append(piece.text)
        return words

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids. Special tokens are left out; invalid bytes become U+FFFD."""
        return self.pieces.decode(list(self._text_tokens(ids)))

    def _text_tokens(self, ids: Iterable[int]) -> Iterator[str]:
        for index in ids:
            if not 0 <= index < self.vocab:
                raise DataError(f"ids: expected numbers from 0 to {self.vocab - 1}; got {index}")
            if index not in self.reserved:
                yield self.tokens[index]

    def _id_of(self, piece: Piece) -> int:
        index = self.ids.get(piece.text)
        return self.specials["unk"] if index is None else index

    def _cut(self, text: str) -> list[Piece]:
        where = next((index for index, char in enumerate(text) if is_surrogate(char)), None)
        if where is not None:
            raise DataError(
                f"text: expected Unicode; got a lone surrogate at character {where}",
                "read the text with errors='replace'",
            )
        return self.pieces.encode(text)

    def to_json(self) -> str:
        """Return the tokeniser as one line of JSON, as it is stored in a model file."""
        if self._json is None:
            state = {
                "version": VERSION, "algorithm": self.algorithm,
                "model": base64.b64encode(self.pieces.data).decode(), "tokens": self.tokens,
                "specials": self.specials, "reserved": sorted(self.reserved - set(self.specials.values())),
            }  # fmt: skip
            self._json = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
        return self._json

    @classmethod
    def from_state(cls, state: Mapping[str, Any], where: str) -> VocabularyTokenizer:
        """Return a tokeniser from the parsed JSON of `to_json`; `where` is named in error messages."""
        pieces = PIECE_MODELS[state["algorithm"]](base64.b64decode(state["model"]), where)
        tokenizer = cls(state["algorithm"], pieces, state["tokens"], state["specials"], state["reserved"])
        tokenizer.check(where)
        return tokenizer

    def check(self, where: str) -> None:
        """Raise ModelFileError if a role has no token, or a token is no text."""
        size = len(self.tokens)
        is_valid = all(type(token) is str for token in self.tokens) and "unk" in self.specials
        is_valid &= all(type(index) is int and 0 <= index < size for index in self.reserved)
        if not is_valid or not set(self.specials) <= set(ROLES):
            raise ModelFileError(f"{where}: expected tokens that are texts, and ids of special tokens among them")
