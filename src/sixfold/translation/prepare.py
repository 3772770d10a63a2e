"""From texts to the sentences a model is asked for, and from its answers back to texts with their layout."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from sixfold.text.sentences import Line, Sentence, cut, rejoin, split
from sixfold.text.tokenizer import Tokenizer, is_surrogate
from sixfold.translation.result import Notice


@dataclass
class Layout:
    """A text as lines of sentences."""

    text: str
    lines: list[Line]
    notices: list[Notice] = field(default_factory=list)

    def sentences(self) -> list[str]:
        """The sentences that have something to translate; the rest stays as it is."""
        return [each.text for line in self.lines for each in line.sentences if has_words(each.text)]

    def fill(self, translations: Iterable[str], spaced: bool) -> str:
        """The text with the sentences sentences replaced, in their order."""
        coming = iter(translations)
        return "".join(
            rejoin(line, [next(coming) if has_words(each.text) else each.text for each in line.sentences], spaced)
            for line in self.lines
        )


@dataclass
class PreparedTexts:
    """The layouts of texts, and the ids of every sentence that is sentences."""

    layouts: list[Layout]
    ids: dict[str, list[int]]


def prepare(
    texts: Sequence[str], tokenizer: Tokenizer, longest: int, splits: bool = True, known: Container[str] = ()
) -> PreparedTexts:
    """`longest`: tokens that a sentence may have; longer ones are cut. What is `known`, also a line, stays whole."""
    layouts = [_lay_out(text, splits, known) for text in texts]
    ids: dict[str, list[int]] = {}
    _encode(layouts, tokenizer, ids)
    too_long = {sentence for sentence, its in ids.items() if len(its) > longest and sentence not in known}
    cut_up = [layout for layout in layouts if not too_long.isdisjoint(layout.sentences())]
    for layout in cut_up:
        layout.lines = [
            Line(before, [part for each in sentences for part in _parts(each, too_long, tokenizer, longest)])
            for before, sentences in layout.lines
        ]
        layout.notices.append(Notice("cut", "a sentence too long for the model was translated in pieces"))
    _encode(cut_up, tokenizer, ids)
    return PreparedTexts(layouts, ids)


def _lay_out(text: str, splits: bool, known: Container[str]) -> Layout:
    fine = replace_surrogates(text)
    # What ends a line is white space that the line ends in, so it stays where it is, whichever of a dozen it is.
    lines = [
        split(line) if splits and line.strip() not in known else _unsplit(line)
        for line in fine.splitlines(keepends=True)
    ]
    notice = Notice("characters", "half characters (surrogates) were replaced")
    return Layout(fine, lines, [notice] if fine != text else [])


def _unsplit(line: str) -> Line:
    bare = line.strip()
    before = line[: len(line) - len(line.lstrip())]
    return Line(before, [Sentence(bare, line[len(before) + len(bare) :])] if bare else [])


def _encode(layouts: Sequence[Layout], tokenizer: Tokenizer, ids: dict[str, list[int]]) -> None:
    new = list({sentence: None for layout in layouts for sentence in layout.sentences() if sentence not in ids})
    ids.update(zip(new, tokenizer.encode_batch(new), strict=True))


def _parts(sentence: Sentence, too_long: set[str], tokenizer: Tokenizer, longest: int) -> list[Sentence]:
    if sentence.text not in too_long:
        return [sentence]
    parts: list[Sentence] = []
    for piece in cut(sentence.text, lambda piece: len(tokenizer.encode(piece)) <= longest):
        bare = piece.strip()
        start = len(piece) - len(piece.lstrip())
        if parts:
            parts[-1] = Sentence(parts[-1].text, parts[-1].after + piece[:start])
        if bare:
            parts.append(Sentence(bare, piece[start + len(bare) :]))
    return [*parts[:-1], Sentence(parts[-1].text, parts[-1].after + sentence.after)]


def has_words(text: str) -> bool:
    """Numbers, marks and emoji mean the same in every language."""
    return any(char.isalpha() for char in text)


def replace_surrogates(text: str) -> str:
    """Two halves that belong together become the character they stand for, single ones U+FFFD."""
    if not any(map(is_surrogate, text)):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
