"""The pieces of a text as people read them: what each says, where it stands, and which of them make a word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sixfold.text.tokenizer import Tokenizer
from sixfold.translation.explain import piece_spans, words_of
from sixfold.translation.result import Span

SPACE = "▁"  # one that would not be seen
NOWHERE: Span = (0, 0)  # of what stands for no text: <bos>, <eos> and tags


@dataclass(frozen=True)
class Pieces:
    """A row of tokens."""

    ids: list[int]
    texts: list[str]
    spans: list[Span]
    words: list[list[int]]  # the pieces of each word; a special is a word of its own

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def word_texts(self) -> list[str]:
        joined = ["".join(self.texts[piece] for piece in word) for word in self.words]
        return [text.lstrip(SPACE) or text for text in joined]

    def part(self, begin: int, end: int | None) -> Pieces:
        """The pieces from one place to another, and the words that they make."""
        places, kept = range(len(self))[begin:end], slice(begin, end)
        words = [[piece - begin for piece in word if piece in places] for word in self.words]
        return Pieces(self.ids[kept], self.texts[kept], self.spans[kept], [word for word in words if word])


def pieces_of_text(tokenizer: Tokenizer, text: str, before: Sequence[int] = (), after: Sequence[int] = ()) -> Pieces:
    """Of a text that is read, with the specials before and after it."""
    found = tokenizer.encode_with_offsets(text)
    spans = [(end - len(text[start:end].lstrip()), end) for start, end in found.offsets]
    return _whole(tokenizer, text, [*before, *found.ids, *after], spans, len(before))


def pieces_of_ids(
    tokenizer: Tokenizer, ids: Sequence[int], text: str, before: Sequence[int] = (), after: Sequence[int] = ()
) -> Pieces:
    """Of a text that was written piece by piece."""
    return _whole(tokenizer, text, [*before, *ids, *after], piece_spans(tokenizer, ids, text), len(before))


def _whole(tokenizer: Tokenizer, text: str, ids: list[int], spans: list[Span], first: int) -> Pieces:
    last = first + len(spans)
    words = [[first + piece for piece in word] for word in words_of(text, spans)]
    alone = [[place] for place in range(len(ids)) if not first <= place < last]
    placed = [*[NOWHERE] * first, *spans, *[NOWHERE] * (len(ids) - last)]
    texts = [_shown(tokenizer, index, text[start:end]) for index, (start, end) in zip(ids, placed, strict=True)]
    return Pieces(ids, texts, placed, sorted([*words, *alone]))


def _shown(tokenizer: Tokenizer, index: int, text: str) -> str:
    """A byte of a character shows as such; so does what a foreign tokeniser has no text for."""
    name = tokenizer.tokens[index]
    if tokenizer.algorithm == "foreign":
        return text or name
    return name.strip() or name.replace(" ", SPACE)


def piece_text(tokenizer: Tokenizer, index: int) -> str:
    """Of one piece by itself; a space that it begins with is shown."""
    name = tokenizer.tokens[index]
    return SPACE + name[1:] if name.startswith(" ") else name
