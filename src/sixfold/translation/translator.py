"""Strings in, translations out: finds the direction, splits, decodes, and puts the text together again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Self

from sixfold.config import Compute
from sixfold.engines.engine import Engine
from sixfold.errors import RequestError
from sixfold.text.sentences import is_spaced
from sixfold.translation.decode import Answer, decode, guard, mean_scores, notices, ways_through, with_room
from sixfold.translation.direction import Direction, check_languages, choose, directions_of, language_notices
from sixfold.translation.explain import Said, explain
from sixfold.translation.glossary import Glossary, honour_all
from sixfold.translation.loading import Device, ModelSource, check_threads, choose_device, load_all, open_engine
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import Layout, prepare, replace_surrogates
from sixfold.translation.result import Alternative, Details, Translation

WINDOW = 1024  # texts that `stream` holds at once


class Translator:
    """One model, or several, ready to translate. It may be used from many threads at once."""

    def __init__(
        self,
        model: ModelSource | Sequence[ModelSource] | None = None,
        device: Device = "auto",
        threads: int | None = None,
        compute: Compute = "int8",
        shortlist: bool = True,
    ) -> None:
        """`threads`: sentences in work at once on a CPU; none: as many as there are cores.

        On a GPU there is no int8; float16 is what stands for it. Without `shortlist`, a CPU weighs the whole
        vocabulary for every word.
        """
        check_threads(threads)
        place = self._place = choose_device(device)
        self._directions: dict[tuple[str, str], Direction] = {}
        self._others: list[Direction] = []  # of models that are not the first of their direction
        self._engines: list[Engine] = []
        for file, tokenizer in load_all(model):
            engine = open_engine(file, place, threads, compute, shortlist)
            self._engines.append(engine)
            for direction in directions_of(file, engine, tokenizer):
                if self._directions.setdefault(direction.languages, direction) is not direction:
                    self._others.append(direction)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """Pairs of languages that it translates between."""
        return list(self._directions)

    def translate(
        self,
        text: str,
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> Translation:
        """A text of any length; its lines, blank ones too, and its white space are kept."""
        check_text("text", text, "translate_batch() takes a list")
        return self.translate_batch([text], source, target, options, glossary, memory)[0]

    def translate_batch(
        self,
        texts: Sequence[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> list[Translation]:
        """Many texts at once, which is much faster than one by one. Each may have a direction of its own.

        The terms of a glossary are used, or a warning says which could not be. A sentence or line that the memory has
        becomes what it became there, unless it is to begin with a prefix.
        """
        if not isinstance(texts, Sequence) or isinstance(texts, str | bytes | bytearray):
            raise RequestError(
                f"texts: expected a list of strings; got {texts!r:.60}",
                "translate() takes a single text, stream() what can only be read once",
            )
        for number, text in enumerate(texts):
            check_text(f"texts[{number}]", text, "read bytes with .decode()")
        groups: dict[Direction, list[int]] = {}
        for place, text in enumerate(texts):
            groups.setdefault(self.direction(text, source, target), []).append(place)
        found: dict[int, Translation] = {}
        for direction, places in groups.items():
            wanted = [texts[place] for place in places]
            some = self._translate(direction, wanted, options or TranslateOptions(), glossary or Glossary(()), memory)
            found.update(zip(places, some, strict=True))
        return [found[place] for place in range(len(texts))]

    def stream(
        self,
        texts: Iterable[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> Iterator[Translation]:
        """Any number of texts, in their order; only a window of them is in memory."""
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise RequestError(f"texts: expected strings one after another; got {texts!r:.60}", "put it into a list")
        windows = _windows(iter(texts))
        return (
            each
            for window in windows
            for each in self.translate_batch(window, source, target, options, glossary, memory)
        )

    def score(self, text: str, translation: str, source: str | None = None, target: str | None = None) -> Translation:
        """How likely the model finds a translation that is given. Neither side is split."""
        check_text("text", text)
        check_text("translation", translation)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        ids, wanted = direction.tokenizer.encode(text.strip()), direction.encode_target(translation)
        direction.check_length("text", ids)
        direction.check_length("translation", wanted)
        (total,) = mean_scores(direction, ids, [wanted])
        return self._whole(direction, text, wanted, total)

    def alternatives(
        self,
        text: str,
        prefix: str = "",
        count: int = 5,
        source: str | None = None,
        target: str | None = None,
    ) -> list[Translation]:
        """What may come next after `prefix`: the likeliest words, each with the rest translated anew from there."""
        check_text("text", text)
        check_text("prefix", prefix)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        ids, begun = direction.tokenizer.encode(text.strip()), direction.encode_target(prefix)
        direction.check_length("text", ids)
        direction.check_length("prefix", begun)
        search = TranslateOptions(n_best=count).search(direction.max_target_tokens)
        if not ids:
            return []
        sent = direction.encoder_input(ids)
        tokens = [each.tokens for each in direction.engine.alternatives(sent, begun, with_room(search, [sent], begun))]
        # The score of an engine leaves out the prefix; this one is of the whole translation.
        scored = zip(mean_scores(direction, ids, tokens), tokens, strict=True)
        found: dict[str, Translation] = {}
        for total, its in sorted(scored, key=lambda pair: -pair[0]):
            each = self._whole(direction, text, its, total)
            found.setdefault(each.text, each)
        return list(found.values())

    def direction(
        self, text: str, source: str | None = None, target: str | None = None, model: str | None = None
    ) -> Direction:
        """The one that is meant; the script of the text tells where the caller does not.

        `model` names a file, without its ending, where several have the same direction; else it is the first.
        """
        self._check_open()
        if model is None:
            return choose(self._directions, text, source, target)
        every = [*self._directions.values(), *self._others]
        its = {each.languages: each for each in every if each.file.name == model}
        if not its:
            names = ", ".join(dict.fromkeys(each.file.name for each in every))
            raise RequestError(f"model: expected one of {names}; got {model!r}")
        return choose(its, text, source, target)

    def check_languages(self, source: str | None = None, target: str | None = None) -> None:
        """Complain of languages that this translator does not know, or that must be named, before any text is read."""
        self._check_open()
        check_languages(self._directions, source, target)

    def close(self) -> None:
        """Give the memory back."""
        self._directions.clear()
        self._others.clear()
        while self._engines:
            self._engines.pop().close()

    def __repr__(self) -> str:
        """The directions, the models and the device of an open translator; of a closed one, only that it is closed."""
        if not self._engines:
            return "<Translator, closed>"
        models = dict.fromkeys(each.file.name for each in [*self._directions.values(), *self._others])
        ways = ", ".join(f"{one}→{other}" for one, other in self._directions)
        return f"<Translator {ways} with {', '.join(models)} on {self._place}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if not self._engines:
            raise RequestError("translator: expected an open one; this one is closed", "open another")

    def _translate(
        self,
        direction: Direction,
        texts: Sequence[str],
        options: TranslateOptions,
        glossary: Glossary,
        memory: TranslationMemory | None,
    ) -> list[Translation]:
        prefix = direction.encode_target(options.prefix)
        direction.check_length("prefix", prefix)
        its_memory = (memory or TranslationMemory(())).toward(direction.languages)
        # What is to begin with a prefix is the model's, so that it has to be split and cut as ever.
        known = () if prefix else its_memory
        work = prepare(texts, direction.tokenizer, direction.max_source_tokens, options.split, known)
        # It is the text that begins so: its first sentence, not each of them.
        wishes = [
            [(sentence, tuple(prefix) if place == 0 else ()) for place, sentence in enumerate(layout.sentences())]
            for layout in work.layouts
        ]
        recalled = {wish: None if wish[1] else its_memory.exact(wish[0]) for its in wishes for wish in its}
        asked = [[wish for wish in its if recalled[wish] is None] for its in wishes]
        found = decode(direction, work.ids, asked, options)
        faults = guard(direction, work.ids, found, options) if options.guard else {}
        honour_all(direction, work.ids, found, faults, glossary.toward(direction.languages), options)
        answers = [
            [Answer(wish[0], found.get(wish, ()), faults.get(wish, ()), recalled[wish]) for wish in its]
            for its in wishes
        ]
        told = None if memory is None else its_memory
        return [
            self._assembled(direction, layout, its, options, told)
            for layout, its in zip(work.layouts, answers, strict=True)
        ]

    def _assembled(
        self,
        direction: Direction,
        layout: Layout,
        answers: Sequence[Answer],
        options: TranslateOptions,
        memory: TranslationMemory | None,
    ) -> Translation:
        ways = ways_through([each.hypotheses for each in answers if each.known is None], options.n_best)
        said = [[each.words(direction, coming) for each in answers] for coming in (iter(way) for way, _ in ways)]
        spaced = is_spaced(direction.languages[1])
        texts = [layout.fill(its, spaced) for its in said]
        best = [
            (each.sentence, words, each.hypotheses[0].tokens if each.known is None else ())
            for each, words in zip(answers, said[0], strict=True)
        ]
        wary = [*language_notices(layout.text, direction.languages), *layout.notices]
        return Translation(
            layout.text, texts[0], ways[0][1], direction.languages,
            tuple(Alternative(its, total) for its, (_, total) in zip(texts, ways, strict=True) if options.n_best > 1),
            (*wary, *notices(texts[0], said[0], answers)), confidence_of(direction, answers),
            partial(self._explain, direction, layout.text, texts[0], best),
            None if memory is None else partial(memory.matches, [each.sentence for each in answers]),
        )  # fmt: skip

    def _whole(self, direction: Direction, text: str, tokens: Sequence[int], total: float) -> Translation:
        """Of a text that was not split."""
        said = direction.decode_target(tokens)
        details = partial(self._explain, direction, text, said, [(text.strip(), said, tokens)])
        sure = None if direction.confidence is None or not tokens else direction.confidence.of(total)
        return Translation(text, said, total, direction.languages, confidence=sure, _explain=details)

    def _explain(self, direction: Direction, source: str, translation: str, pairs: Sequence[Said]) -> Details:
        self._check_open()
        return explain(direction, source, translation, pairs)


def confidence_of(direction: Direction, answers: Sequence[Answer]) -> float | None:
    """Of the sentence that the model was least sure of; what a memory knows needs none."""
    scores = [each.hypotheses[0].score for each in answers if each.known is None]
    return direction.confidence.of(min(scores)) if direction.confidence and scores else None


def _windows(texts: Iterator[str]) -> Iterator[list[str]]:
    """One text at first, so that its translation is soon there, then twice as many each time."""
    size = 1
    while window := list(islice(texts, size)):
        yield window
        size = min(2 * size, WINDOW)


def check_text(name: str, text: str, hint: str | None = None) -> None:
    if not isinstance(text, str):
        raise RequestError(f"{name}: expected a string; got {text!r:.60}", hint)
