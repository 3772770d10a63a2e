"""Texts split into sentences that a model can read, and the layout that their translations are put back into."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sixfold.text.sentences import SentenceSpan, SplitLine, cut_to_fit, rejoin, split_sentences
from sixfold.text.tokenizer import Tokenizer, is_surrogate
from sixfold.translation.result import Notice


class SourceSentence(NamedTuple):
    """A sentence to translate: the unit of work of everything between `prepare` and `assemble`."""

    text: str
    ids: tuple[int, ...]  # its tokens, without tag and <eos>
    prefix: tuple[int, ...] = ()  # the tokens that its translation must start with
    memory_translation: str | None = None  # from a translation memory; such a sentence is not decoded


@dataclass
class Layout:
    """A text as lines, each with its sentences and the white space around them."""

    text: str
    lines: list[SplitLine]
    notices: list[Notice] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """Return the sentences that have words, in their order; everything else stays as it is."""
        return [sentence.text for line in self.lines for sentence in line.sentences if has_words(sentence.text)]

    def fill(self, translations: Iterable[str], spaced: bool) -> str:
        """Return the text with a translation in the place of each of `sentences()`.

        `spaced`: the target language writes spaces between sentences.
        """
        return "".join(self.pieces(translations, spaced))

    def pieces(self, translations: Iterable[str], spaced: bool) -> Iterator[str]:
        """Yield the filled text piece by piece: one for each translation, as soon as it comes, and perhaps a last one.

        A piece is a translation with everything between it and the one before. A last piece has what follows the last
        translation, such as blank lines. The pieces together are the text that `fill` returns.
        """
        remaining = iter(translations)
        pending: list[str] = []
        for line in self.lines:
            is_translated = [has_words(sentence.text) for sentence in line.sentences]
            of_line = (
                next(remaining) if translated else sentence.text
                for sentence, translated in zip(line.sentences, is_translated, strict=True)
            )
            if not line.sentences:
                pending.append(line.before)
                continue
            for piece, translated in zip(rejoin(line, of_line, spaced), is_translated, strict=True):
                pending.append(piece)
                if translated:
                    yield "".join(pending)
                    pending.clear()
        if pending:
            yield "".join(pending)


@dataclass
class SplitTexts:
    """The layouts of texts, and the token ids of every sentence to translate."""

    layouts: list[Layout]
    ids: dict[str, list[int]]


def split_texts(
    texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int, splits: bool = True, memory: Container[str] = ()
) -> SplitTexts:
    """Split texts into sentences and encode these.

    1. Each line is split into sentences if `splits`, unless the whole line is in `memory`.
    2. A sentence of more than `max_tokens` tokens is cut into parts, unless it is in `memory`.
    """
    layouts = [_lay_out(text, splits, memory) for text in texts]
    ids: dict[str, list[int]] = {}
    _encode(layouts, tokenizer, ids)
    too_long = {sentence for sentence, tokens in ids.items() if len(tokens) > max_tokens and sentence not in memory}
    layouts_to_cut = [layout for layout in layouts if not too_long.isdisjoint(layout.sentences())]
    for layout in layouts_to_cut:
        layout.lines = [
            SplitLine(
                before, [part for sentence in sentences for part in _cut(sentence, too_long, tokenizer, max_tokens)]
            )
            for before, sentences in layout.lines
        ]
        layout.notices.append(Notice("cut", "a sentence too long for the model was translated in pieces"))
    _encode(layouts_to_cut, tokenizer, ids)
    return SplitTexts(layouts, ids)


def _lay_out(text: str, splits: bool, memory: Container[str]) -> Layout:
    valid = replace_surrogates(text)
    # Line ends, of which Unicode has a dozen, are white space at the end of a line. So they stay where they are.
    lines = [
        split_sentences(line) if splits and line.strip() not in memory else _unsplit(line)
        for line in valid.splitlines(keepends=True)
    ]
    notice = Notice("characters", "half characters (surrogates) were replaced")
    return Layout(valid, lines, [notice] if valid != text else [])


def _unsplit(line: str) -> SplitLine:
    """Return a line as one sentence, or as none if it is blank."""
    stripped = line.strip()
    before = line[: len(line) - len(line.lstrip())]
    return SplitLine(before, [SentenceSpan(stripped, line[len(before) + len(stripped) :])] if stripped else [])


def _encode(layouts: Sequence[Layout], tokenizer: Tokenizer, ids: dict[str, list[int]]) -> None:
    """Add the token ids of the sentences that `ids` does not have yet."""
    new = list({sentence: None for layout in layouts for sentence in layout.sentences() if sentence not in ids})
    ids.update(zip(new, tokenizer.encode_batch(new), strict=True))


def _cut(sentence: SentenceSpan, too_long: set[str], tokenizer: Tokenizer, max_tokens: int) -> list[SentenceSpan]:
    """Return a sentence as parts of at most `max_tokens` tokens; white space between parts follows the first."""
    if sentence.text not in too_long:
        return [sentence]
    parts: list[SentenceSpan] = []
    for piece in cut_to_fit(sentence.text, lambda piece: len(tokenizer.encode(piece)) <= max_tokens):
        stripped = piece.strip()
        start = len(piece) - len(piece.lstrip())
        if parts:
            parts[-1] = SentenceSpan(parts[-1].text, parts[-1].after + piece[:start])
        if stripped:
            parts.append(SentenceSpan(stripped, piece[start + len(stripped) :]))
    return [*parts[:-1], SentenceSpan(parts[-1].text, parts[-1].after + sentence.after)]


def has_words(text: str) -> bool:
    """Return whether a text has letters; numbers, marks and emoji need no translation."""
    return any(char.isalpha() for char in text)


def replace_surrogates(text: str) -> str:
    """Join pairs of surrogates to the characters that they encode, and replace single ones by U+FFFD."""
    if not any(map(is_surrogate, text)):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
