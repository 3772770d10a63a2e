"""The text of tokens that arrive one by one: whole characters only, and nothing of a stop string."""

from __future__ import annotations

from collections.abc import Sequence

from sixfold.engines.writing import WrittenToken
from sixfold.generation.options import Finish, Likely, TextChunk, TextToken
from sixfold.text.tokenizer import Tokenizer

CONTEXT = 8  # tokens of the prompt that are decoded together with the first tokens of a text
INCOMPLETE = "\ufffd"  # stands for bytes that are no character yet


class Detokenizer:
    """Returns what each token adds to a text.

    The text of a token depends on those before it: SentencePiece drops the space before a first word, and a character
    may be spelt by several tokens. So the last tokens are decoded again together with each new one, and the text that
    they had before is cut off: after the tokens ▁Once and ▁upon, "upon" is cut off "upon a".
    """

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int]) -> None:
        self.tokenizer = tokenizer
        count, text = CONTEXT, tokenizer.decode(prompt[-CONTEXT:])
        # Special tokens alone have no text, and the context may begin within a character.
        while count < len(prompt) and (not text or INCOMPLETE in text):
            count *= 2
            text = tokenizer.decode(prompt[-count:])
        self._window = list(prompt[-count:])
        self._returned = len(self._window)  # tokens of the window whose text has been returned
        self._text = text  # of these tokens

    def add(self, token: int) -> str:
        """Return the text that a token adds. It is empty if the token ends within a character."""
        self._window.append(token)
        whole = self.tokenizer.decode(self._window)
        added = whole[len(self._text) :]
        if not added or added.endswith(INCOMPLETE):
            return ""
        self._window = self._window[self._returned :]
        self._returned, self._text = len(self._window), self.tokenizer.decode(self._window)
        return added

    def rest(self) -> str:
        """Return the text of bytes that never became a character."""
        return self.tokenizer.decode(self._window)[len(self._text) :]

    def text_of(self, token: int) -> str:
        """Return what a token would add next; unlike that of `add`, it may be U+FFFD."""
        before = self.tokenizer.decode(self._window)
        return self.tokenizer.decode([*self._window, token])[len(before) :]


class StopStrings:
    """Finds the first stop string in a text that arrives in parts, and holds back what may be the beginning of one."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.stops = stops
        self.held = ""

    def add(self, text: str) -> tuple[str, str | None]:
        """Return the text that is certain now, and the stop string that ends it, if there is one."""
        self.held += text
        matches = [(index + len(stop), index, stop) for stop in self.stops if (index := self.held.find(stop)) >= 0]
        if matches:
            _, index, stop = min(matches)  # the one that was complete first
            certain, self.held = self.held[:index], ""
            return certain, stop
        kept = max((_overlap(self.held, stop) for stop in self.stops), default=0)
        certain, self.held = self.held[: len(self.held) - kept], self.held[len(self.held) - kept :]
        return certain, None


def _overlap(text: str, stop: str) -> int:
    """Return the length of the longest end of a text that is a beginning of a stop string, but not all of it."""
    lengths = range(min(len(stop) - 1, len(text)), 0, -1)
    return next((length for length in lengths if text.endswith(stop[:length])), 0)


class TextStream:
    """One text while it is written: takes its tokens and returns chunks.

    Its collaborators: a `Detokenizer` and `StopStrings`. It ends at a token of `ends`, at a stop string, or after
    `limit` tokens.
    """

    def __init__(
        self, tokenizer: Tokenizer, prompt: Sequence[int], stops: Sequence[str], ends: Sequence[int], limit: int
    ) -> None:
        self.detokenizer = Detokenizer(tokenizer, prompt)
        self.stops = StopStrings(stops)
        self.ends, self.limit = ends, limit
        self.count = 0
        self._waiting: list[TextToken] = []  # tokens whose text has not all been returned
        self._certain = 0  # characters of their text that have been returned

    def add(self, token: WrittenToken) -> TextChunk:
        """Take a token. The chunk that it completes may be empty; it has `finish` if the text ends here."""
        self.count += 1
        if token.id in self.ends:
            return self._finish(token, "stop")
        likeliest = tuple(
            Likely(each, self.detokenizer.text_of(each), logprob) for each, logprob in token.likeliest
        )  # fmt: skip
        added = self.detokenizer.add(token.id)
        self._waiting.append(TextToken(token.id, added, token.logprob, likeliest))
        certain, stop = self.stops.add(added)
        if stop is not None:
            return self._chunk(token, certain, "stop", stop)
        if self.count >= self.limit:
            return self._finish(token, "length", certain)
        return self._chunk(token, certain)

    def _finish(self, token: WrittenToken, finish: Finish, certain: str = "") -> TextChunk:
        """Return the last chunk, with what was held back: it is no stop string, because nothing follows."""
        rest = self.detokenizer.rest()
        more, stop = self.stops.add(rest)
        if self._waiting and rest:
            last = self._waiting[-1]
            self._waiting[-1] = TextToken(last.id, last.text + rest, last.logprob, last.likeliest)
        text = certain + more + self.stops.held
        return self._chunk(token, text, "stop" if stop else finish, stop)

    def _chunk(
        self, token: WrittenToken, text: str, finish: Finish | None = None, stop: str | None = None
    ) -> TextChunk:
        """Return a chunk with the tokens whose text is in it or before it. A stop string may cut the last of them."""
        self._certain += len(text)
        tokens: list[TextToken] = []
        while self._waiting:
            first = self._waiting[0]
            if len(first.text) > self._certain and (finish is None or self._certain == 0):
                break
            kept = first.text[: self._certain]
            tokens.append(TextToken(first.id, kept, first.logprob, first.likeliest))
            self._certain -= len(kept)
            self._waiting.pop(0)
        return TextChunk(text, tuple(tokens), token.prompt, token.sample, finish, stop)
