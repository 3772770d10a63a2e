"""The pieces of a text as people read them: the text of each, its span, and which of them form a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.explain import group_into_words, piece_spans
from sixfold.translation.protection import Edit, move_span
from sixfold.translation.result import Span

VISIBLE_SPACE = "▁"
VISIBLE_CHARACTERS = str.maketrans({"\n": "↵", "\t": "⇥"})
VISIBLE_BYTES = {"<0x0A>": "↵", "<0x09>": "⇥"}
EMPTY_SPAN: Span = (0, 0)  # of tokens that stand for no text: <bos>, <eos>, <pad> and tags


@dataclass(frozen=True)
class Pieces:
    """A row of tokens with their texts."""

    ids: list[int]
    texts: list[str]
    spans: list[Span]  # start and end of each in the text, in characters
    words: list[list[int]]  # the indices of the pieces of each word; a special token is a word of its own

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def word_texts(self) -> list[str]:
        """The text of each word."""
        joined = ["".join(self.texts[piece] for piece in word) for word in self.words]
        return [text.lstrip(VISIBLE_SPACE) or text for text in joined]

    def part(self, start: int, end: int | None) -> Pieces:
        """Return the pieces from `start` to `end`, which count as in a slice, and the words that they form."""
        chosen, indices = slice(start, end), range(len(self))[start:end]
        words = [[piece - start for piece in word if piece in indices] for word in self.words]
        return Pieces(self.ids[chosen], self.texts[chosen], self.spans[chosen], [word for word in words if word])

    def after(self, edits: Sequence[Edit], text: str) -> Pieces:
        """Return the pieces with their spans in `text`, which edits have made of the text that they are of."""
        if not edits:
            return self
        spans = [move_span(span, edits) for span in self.spans]
        texts = [
            text[slice(*moved)] if moved[1] - moved[0] != span[1] - span[0] else shown
            for shown, span, moved in zip(self.texts, self.spans, spans, strict=True)
        ]
        return Pieces(self.ids, texts, spans, self.words)


def pieces_of_text(tokenizer: Tokenizer, text: str, before: Sequence[int] = (), after: Sequence[int] = ()) -> Pieces:
    """Return the pieces that a text is encoded as, with special tokens before and after it."""
    encoding = tokenizer.encode_with_offsets(text)
    spans = [(end - len(text[start:end].lstrip()), end) for start, end in encoding.offsets]
    return _with_specials(tokenizer, text, [*before, *encoding.ids, *after], spans, len(before))


def pieces_of_ids(
    tokenizer: Tokenizer, ids: Sequence[int], text: str, before: Sequence[int] = (), after: Sequence[int] = ()
) -> Pieces:
    """Return the pieces of ids that a decoder produced and that decode to `text`."""
    return _with_specials(tokenizer, text, [*before, *ids, *after], piece_spans(tokenizer, ids, text), len(before))


def _with_specials(tokenizer: Tokenizer, text: str, ids: list[int], spans: list[Span], first: int) -> Pieces:
    """`spans` are those of the text, which begins at index `first` of `ids`."""
    end_of_text = first + len(spans)
    words = [[first + piece for piece in word] for word in group_into_words(text, spans)]
    specials = [[index] for index in range(len(ids)) if not first <= index < end_of_text]
    all_spans = [*[EMPTY_SPAN] * first, *spans, *[EMPTY_SPAN] * (len(ids) - end_of_text)]
    texts = [_shown_text(tokenizer, token, text[start:end]) for token, (start, end) in zip(ids, all_spans, strict=True)]
    return Pieces(ids, texts, all_spans, sorted([*words, *specials]))


def _shown_text(tokenizer: Tokenizer, token: int, text: str) -> str:
    """Return the name of the token; of a foreign tokeniser, whose names may be unreadable, the text it stands for."""
    if tokenizer.is_foreign:
        return text.translate(VISIBLE_CHARACTERS) or piece_text(tokenizer, token)
    shown = piece_text(tokenizer, token)
    return shown.removeprefix(VISIBLE_SPACE) or shown


def piece_text(tokenizer: Tokenizer, token: int) -> str:
    """Return the text of a piece by itself, with a visible space where it begins with one.

    In a published vocabulary of bytes, Ġcat is shown as ▁cat, and a part of a character by its bytes, such as E6 9C.
    """
    name = tokenizer.tokens[token]
    if tokenizer.algorithm == "foreign" and token not in tokenizer.reserved:
        name = _text_of_bytes(name, tokenizer.decode([token]))
    name = VISIBLE_BYTES.get(name, name).translate(VISIBLE_CHARACTERS)
    return VISIBLE_SPACE + name[1:] if name.startswith(" ") else name


@cache
def byte_alphabet() -> dict[str, int]:
    """Return the byte that each character stands for in the vocabularies of GPT-2, Llama 3 and others.

    Printable characters of Latin-1 stand for themselves; the other bytes, in order, have the characters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = sorted({*range(256)} - {*printable})
    return {chr(byte): byte for byte in printable} | {chr(0x100 + index): byte for index, byte in enumerate(others)}


def _text_of_bytes(name: str, text: str) -> str:
    """Return `text`, or its bytes, if `name` spells it in the byte alphabet; else the name itself.

    `text` is what the tokeniser decodes, with U+FFFD for bytes that are no character.
    """
    data = bytes(byte_alphabet().get(char, 0) for char in name)
    if data.decode(errors="replace") != text:
        return name
    return data.hex(" ").upper() if "\ufffd" in text else text
