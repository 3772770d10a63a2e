"""Texts split into sentences that a model can read, and the layout that their translations are put back into."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from sixfold.text.sentences import SentenceSpan, SplitLine, cut_to_fit, rejoin, split_sentences
from sixfold.text.tokenizer import FIRST_SPAN, Tokenizer, is_surrogate
from sixfold.translation.capitals import in_sentence_case
from sixfold.translation.icu import message_texts
from sixfold.translation.protection import Edit, ModelText, apply_edits, model_text, protected_spans, remove_protected
from sixfold.translation.result import Notice

_FILLER = "\U000f0000"  # a character that no sentence ends at
_FILLERS, _SPAN = re.compile(f"{_FILLER}+"), chr(FIRST_SPAN)


class SourceSentence(NamedTuple):
    """A sentence to translate: the unit of work of everything between `prepare` and `assemble`."""

    text: str
    ids: tuple[int, ...]  # the tokens that the model reads, without tag and <eos>
    prefix: tuple[int, ...] = ()  # the tokens that its translation must start with
    memory_translation: str | None = None  # from a translation memory; such a sentence is not decoded
    read: ModelText = ModelText("")  # the text that the model reads, and the parts that its translation must have


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
    """The layouts of texts, and every sentence to translate by its text."""

    layouts: list[Layout]
    sentences: dict[str, SourceSentence]


def split_texts(
    texts: Sequence[str], tokenizer: Tokenizer, max_tokens: int, splits: bool = True, memory: Container[str] = ()
) -> SplitTexts:
    """Split texts into sentences and encode these.

    1. Each line is split into sentences if `splits`, unless the whole line is in `memory`.
    2. A sentence of more than `max_tokens` tokens is cut into parts, unless it is in `memory`.
    """
    layouts = [_lay_out(text, splits, memory) for text in texts]
    sentences: dict[str, SourceSentence] = {}
    _encode(layouts, tokenizer, sentences)
    too_long = {text for text, sentence in sentences.items() if len(sentence.ids) > max_tokens and text not in memory}
    layouts_to_cut = [layout for layout in layouts if not too_long.isdisjoint(layout.sentences())]
    for layout in layouts_to_cut:
        layout.lines = [
            SplitLine(
                before, [part for sentence in of_line for part in _cut(sentence, too_long, tokenizer, max_tokens)]
            )
            for before, of_line in layout.lines
        ]
        layout.notices.append(Notice("cut", "a sentence too long for the model was translated in pieces"))
    _encode(layouts_to_cut, tokenizer, sentences)
    return SplitTexts(layouts, sentences)


def source_sentence(text: str, tokenizer: Tokenizer) -> SourceSentence:
    """Return a text as one sentence, however long it is."""
    read = _read_by_model(text, tokenizer)
    return SourceSentence(text, tuple(tokenizer.encode(read.text)), read=read)


def _read_by_model(text: str, tokenizer: Tokenizer) -> ModelText:
    """Return a sentence as the model reads it: parts that are copied as span tokens, capitals in sentence case."""
    read = model_text(text, tokenizer.spans)
    if read.parts and not tokenizer.spans:
        return read
    plain = in_sentence_case(read.text.replace("\u3000", " "), tokenizer)
    return read._replace(text=plain, is_capitals=plain.upper() == read.text.upper() and plain != read.text)


def _lay_out(text: str, splits: bool, memory: Container[str]) -> Layout:
    valid = replace_surrogates(text)
    lines, position = [], 0
    for start, end in message_texts(valid) or [(0, len(valid))]:
        if start > position:  # between the texts of a message
            lines.append(SplitLine(valid[position:start], []))
        # Line ends, of which Unicode has a dozen, are white space at the end of a line. So they stay where they are.
        lines += [
            _split(line) if splits and line.strip() not in memory else _unsplit(line)
            for line in _lines(valid[start:end])
        ]
        position = end
    if position < len(valid):
        lines.append(SplitLine(valid[position:], []))
    notice = Notice("characters", "half characters (surrogates) were replaced")
    return Layout(valid, lines, [notice] if valid != text else [])


def _lines(text: str) -> list[str]:
    """Return the lines of a text with their ends; a tag that goes over several lines stays in one."""
    has_tags = "<" in text and "\n" in text
    lines = (_fill_protected(text) if has_tags else text).splitlines(keepends=True)
    return _slices(text, [len(line) for line in lines]) if has_tags else lines


def _split(line: str) -> SplitLine:
    """Split a line into sentences, but not inside a part that is copied, such as an address with a question mark."""
    filled = _fill_protected(line)
    if filled is line:
        return split_sentences(line)
    before, sentences = split_sentences(filled)
    texts = _slices(line, [len(before), *(len(part) for sentence in sentences for part in sentence)])
    return SplitLine(texts[0], [SentenceSpan(*pair) for pair in zip(texts[1::2], texts[2::2], strict=True)])


def _fill_protected(text: str) -> str:
    """Return a text of the same length without letters, spaces and punctuation in the parts that are copied."""
    edits = [Edit((start, end), _FILLER * (end - start)) for start, end in protected_spans(text) if end - start > 1]
    return apply_edits(text, edits) if edits else text


def _slices(text: str, lengths: Sequence[int]) -> list[str]:
    """Return a text in parts of these lengths."""
    ends = list(accumulate(lengths))
    return [text[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def _unsplit(line: str) -> SplitLine:
    """Return a line as one sentence, or as none if it is blank."""
    stripped = line.strip()
    before = line[: len(line) - len(line.lstrip())]
    return SplitLine(before, [SentenceSpan(stripped, line[len(before) + len(stripped) :])] if stripped else [])


def _encode(layouts: Sequence[Layout], tokenizer: Tokenizer, sentences: dict[str, SourceSentence]) -> None:
    """Add the sentences that `sentences` does not have yet, with their tokens."""
    new = list({text: None for layout in layouts for text in layout.sentences() if text not in sentences})
    read = [_read_by_model(text, tokenizer) for text in new]
    ids = tokenizer.encode_batch([of_text.text for of_text in read])
    sentences |= {
        text: SourceSentence(text, tuple(of_text), read=as_read)
        for text, of_text, as_read in zip(new, ids, read, strict=True)
    }


def _cut(sentence: SentenceSpan, too_long: set[str], tokenizer: Tokenizer, max_tokens: int) -> list[SentenceSpan]:
    """Return a sentence as parts of at most `max_tokens` tokens; white space between parts follows the first.

    It is cut inside a part that is copied only if that part alone is too long for a model without span tokens.
    """
    if sentence.text not in too_long:
        return [sentence]
    text = _fill_protected(sentence.text) if tokenizer.spans else sentence.text

    def fits(piece: str) -> bool:
        return len(tokenizer.encode(_FILLERS.sub(_SPAN, piece))) <= max_tokens

    parts: list[SentenceSpan] = []
    for piece in _slices(sentence.text, [len(piece) for piece in cut_to_fit(text, fits)]):
        stripped = piece.strip()
        start = len(piece) - len(piece.lstrip())
        if parts:
            parts[-1] = SentenceSpan(parts[-1].text, parts[-1].after + piece[:start])
        if stripped:
            parts.append(SentenceSpan(stripped, piece[start + len(stripped) :]))
    return [*parts[:-1], SentenceSpan(parts[-1].text, parts[-1].after + sentence.after)]


def has_words(text: str) -> bool:
    """Return whether a text has words to translate; numbers, marks, emoji and what is copied are none."""
    return any(char.isalpha() for char in text) and any(char.isalpha() for char in remove_protected(text))


def replace_surrogates(text: str) -> str:
    """Join pairs of surrogates to the characters that they encode, and replace single ones by U+FFFD."""
    if not any(map(is_surrogate, text)):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
