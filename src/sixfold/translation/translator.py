"""Strings in, translations out: choose the direction, prepare sentences, decode them, assemble the translations."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import TracebackType
from typing import Self

from sixfold.config import Compute
from sixfold.engines.engine import Engine
from sixfold.errors import RequestError
from sixfold.text.sentences import is_spaced
from sixfold.translation.decode import (
    SentenceResult,
    SourceSentence,
    allow_prefix,
    combine_hypotheses,
    decode,
    fault_notices,
    retry_faulty,
    score_targets,
)
from sixfold.translation.direction import (
    Direction,
    check_languages,
    choose_direction,
    direction_names,
    directions_of,
    language_notices,
)
from sixfold.translation.explain import TranslatedSentence, explain
from sixfold.translation.glossary import Glossary, apply_glossary
from sixfold.translation.loading import Device, ModelSource, check_threads, choose_device, load_all, open_engine
from sixfold.translation.memory import TranslationMemory
from sixfold.translation.options import TranslateOptions
from sixfold.translation.prepare import Layout, prepare, replace_surrogates
from sixfold.translation.result import Alternative, Details, Translation

MAX_WINDOW = 1024  # texts that `stream` holds at once


class Translator:
    """One model or several, ready to translate. A translator may be used by many threads at once."""

    def __init__(
        self,
        model: ModelSource | Sequence[ModelSource] | None = None,
        device: Device = "auto",
        threads: int | None = None,
        compute: Compute = "int8",
        shortlist: bool = True,
    ) -> None:
        """Load the models, or those of the package if `model` is None.

        `threads`: sentences that a CPU decodes at once; None: as many as it has cores. `compute`: int8 becomes float16
        on a GPU. Without `shortlist`, a CPU computes the probabilities of the whole vocabulary for every token.
        """
        check_threads(threads)
        self._device = choose_device(device)
        self._directions: dict[tuple[str, str], Direction] = {}
        self._duplicates: list[Direction] = []  # directions that an earlier model has already
        self._engines: list[Engine] = []
        for file, tokenizer in load_all(model):
            engine = open_engine(file, self._device, threads, compute, shortlist)
            self._engines.append(engine)
            for direction in directions_of(file, engine, tokenizer):
                if self._directions.setdefault(direction.languages, direction) is not direction:
                    self._duplicates.append(direction)

    @property
    def directions(self) -> list[tuple[str, str]]:
        """The pairs of source and target language."""
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
        """Translate a text of any length; its lines, blank ones too, and its white space stay."""
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
        """Translate many texts at once, which is much faster than one by one. Each may have its own direction.

        Terms of the glossary are used; a warning names those that could not be. A sentence or line that the memory has
        becomes its translation there, unless the translation must start with a prefix.
        """
        if not isinstance(texts, Sequence) or isinstance(texts, str | bytes | bytearray):
            raise RequestError(
                f"texts: expected a list of strings; got {texts!r:.60}",
                "translate() takes a single text, stream() takes any iterable",
            )
        for index, text in enumerate(texts):
            check_text(f"texts[{index}]", text, "read bytes with .decode()")
        indices_by_direction: dict[Direction, list[int]] = {}
        for index, text in enumerate(texts):
            indices_by_direction.setdefault(self.direction(text, source, target), []).append(index)
        translations: dict[int, Translation] = {}
        for direction, indices in indices_by_direction.items():
            group = [texts[index] for index in indices]
            translated = self._translate(
                direction, group, options or TranslateOptions(), glossary or Glossary(()), memory
            )
            translations.update(zip(indices, translated, strict=True))
        return [translations[index] for index in range(len(texts))]

    def stream(
        self,
        texts: Iterable[str],
        source: str | None = None,
        target: str | None = None,
        options: TranslateOptions | None = None,
        glossary: Glossary | None = None,
        memory: TranslationMemory | None = None,
    ) -> Iterator[Translation]:
        """Translate any number of texts in their order; only a window of them is held at once."""
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise RequestError(f"texts: expected an iterable of strings; got {texts!r:.60}", "put it into a list")
        windows = _windows(iter(texts))
        return (
            translation
            for window in windows
            for translation in self.translate_batch(window, source, target, options, glossary, memory)
        )

    def score(self, text: str, translation: str, source: str | None = None, target: str | None = None) -> Translation:
        """Score a given translation of a text; each of the two is taken as one sentence."""
        check_text("text", text)
        check_text("translation", translation)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        ids, tokens = direction.tokenizer.encode(text.strip()), direction.encode_target(translation)
        direction.check_length("text", ids)
        direction.check_length("translation", tokens)
        (score,) = score_targets(direction, ids, [tokens])
        return self._assemble_unsplit(direction, text, tokens, score)

    def alternatives(
        self,
        text: str,
        prefix: str = "",
        count: int = 5,
        source: str | None = None,
        target: str | None = None,
    ) -> list[Translation]:
        """Return translations that start with `prefix` and continue with different words, the likeliest first."""
        check_text("text", text)
        check_text("prefix", prefix)
        direction = self.direction(text, source, target)
        text = replace_surrogates(text)
        ids, prefix_tokens = direction.tokenizer.encode(text.strip()), direction.encode_target(prefix)
        direction.check_length("text", ids)
        direction.check_length("prefix", prefix_tokens)
        search = TranslateOptions(n_best=count).search(direction.max_target_tokens)
        if not ids:
            return []
        encoder_input = direction.encoder_input(ids)
        search = allow_prefix(search, [encoder_input], prefix_tokens)
        hypotheses = direction.engine.alternatives(encoder_input, prefix_tokens, search)
        targets = [hypothesis.tokens for hypothesis in hypotheses]
        # The score of an engine leaves out the prefix; this one is of the whole translation.
        scored = zip(score_targets(direction, ids, targets), targets, strict=True)
        by_text: dict[str, Translation] = {}
        for score, tokens in sorted(scored, key=lambda pair: -pair[0]):
            translation = self._assemble_unsplit(direction, text, tokens, score)
            by_text.setdefault(translation.text, translation)
        return list(by_text.values())

    def direction(
        self, text: str, source: str | None = None, target: str | None = None, model: str | None = None
    ) -> Direction:
        """Return the direction for the languages that the caller names, or else for the script of the text.

        `model` names a model file, without its suffix; without it, the first model of a direction is taken.
        """
        self._check_open()
        if model is None:
            return choose_direction(self._directions, text, source, target)
        every = self._all_directions()
        of_model = {direction.languages: direction for direction in every if direction.file.name == model}
        if not of_model:
            names = ", ".join(dict.fromkeys(direction.file.name for direction in every))
            raise RequestError(f"model: expected one of {names}; got {model!r}")
        return choose_direction(of_model, text, source, target)

    def check_languages(self, source: str | None = None, target: str | None = None) -> None:
        """Raise RequestError if these languages fit no direction, or if the caller must name more of them.

        This needs no text, so that a mistake is reported before any text is read.
        """
        self._check_open()
        check_languages(self._directions, source, target)

    def check_told(self, source: str | None = None, target: str | None = None) -> None:
        """Call `check_languages`, which is the name of this method now."""
        message = "Translator.check_told is now Translator.check_languages"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        self.check_languages(source, target)

    def close(self) -> None:
        """Release the models and their memory; the translator cannot be used afterwards."""
        self._directions.clear()
        self._duplicates.clear()
        while self._engines:
            self._engines.pop().close()

    def __repr__(self) -> str:
        """Return the directions, models and device of an open translator, or that it is closed."""
        if not self._engines:
            return "<Translator, closed>"
        models = dict.fromkeys(direction.file.name for direction in self._all_directions())
        return f"<Translator {direction_names(self._directions)} with {', '.join(models)} on {self._device}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _all_directions(self) -> list[Direction]:
        return [*self._directions.values(), *self._duplicates]

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
        """Translate texts of one direction.

        1. Texts are split into sentences (`prepare`), and sentences of the memory are set aside.
        2. The other sentences are decoded, each once, with a second search for faulty ones and for glossary terms.
        3. The sentences are put back into the layouts of their texts (`_assemble`).
        """
        prefix = direction.encode_target(options.prefix)
        direction.check_length("prefix", prefix)
        entries = (memory or TranslationMemory(())).toward(direction.languages)
        # With a prefix the model writes the translation, so the memory must not keep lines from being split and cut.
        unsplit = () if prefix else entries
        prepared = prepare(texts, direction.tokenizer, direction.max_source_tokens, options.split, unsplit)
        # The prefix is the beginning of the text, so it belongs to the first sentence only.
        sentences = [
            [SourceSentence(text, tuple(prefix) if index == 0 else ()) for index, text in enumerate(layout.sentences())]
            for layout in prepared.layouts
        ]
        memory_translations = {
            sentence: None if sentence.prefix else entries.exact(sentence.text)
            for of_text in sentences
            for sentence in of_text
        }
        to_decode = [[each for each in of_text if memory_translations[each] is None] for of_text in sentences]
        decoded = decode(direction, prepared.ids, to_decode, options)
        faults = retry_faulty(direction, prepared.ids, decoded, options) if options.guard else {}
        apply_glossary(direction, prepared.ids, decoded, faults, glossary.toward(direction.languages), options)
        results = [
            [
                SentenceResult(each.text, decoded.get(each, ()), faults.get(each, ()), memory_translations[each])
                for each in of_text
            ]
            for of_text in sentences
        ]
        shown_memory = None if memory is None else entries
        return [
            self._assemble(direction, layout, of_text, options, shown_memory)
            for layout, of_text in zip(prepared.layouts, results, strict=True)
        ]

    def _assemble(
        self,
        direction: Direction,
        layout: Layout,
        results: Sequence[SentenceResult],
        options: TranslateOptions,
        memory: TranslationMemory | None,
    ) -> Translation:
        """Return the translation of a text from the results of its sentences."""
        hypotheses = [result.hypotheses for result in results if result.memory_translation is None]
        choices = combine_hypotheses(hypotheses, options.n_best)
        sentences = [
            [result.translation(direction, chosen) for result in results]
            for chosen in (iter(choice) for choice, _ in choices)
        ]
        spaced = is_spaced(direction.languages[1])
        texts = [layout.fill(translations, spaced) for translations in sentences]
        best = [
            TranslatedSentence(
                result.sentence, translation, result.hypotheses[0].tokens if result.memory_translation is None else ()
            )
            for result, translation in zip(results, sentences[0], strict=True)
        ]
        text_notices = [*language_notices(layout.text, direction.languages), *layout.notices]
        n_best = [Alternative(text, score) for text, (_, score) in zip(texts, choices, strict=True)]
        return Translation(
            layout.text, texts[0], choices[0][1], direction.languages,
            tuple(n_best) if options.n_best > 1 else (),
            (*text_notices, *fault_notices(texts[0], sentences[0], results)), text_confidence(direction, results),
            partial(self._explain, direction, layout.text, texts[0], best),
            None if memory is None else partial(memory.matches, [result.sentence for result in results]),
        )  # fmt: skip

    def _assemble_unsplit(self, direction: Direction, text: str, tokens: Sequence[int], score: float) -> Translation:
        """Return the translation of a text that was decoded as one sentence."""
        translation = direction.decode_target(tokens)
        sentence = TranslatedSentence(text.strip(), translation, tokens)
        details = partial(self._explain, direction, text, translation, [sentence])
        curve = direction.confidence
        confidence = None if curve is None or not tokens else curve.probability(score)
        return Translation(text, translation, score, direction.languages, confidence=confidence, _explain=details)

    def _explain(
        self, direction: Direction, source: str, translation: str, sentences: Sequence[TranslatedSentence]
    ) -> Details:
        self._check_open()
        return explain(direction, source, translation, sentences)


def text_confidence(direction: Direction, results: Sequence[SentenceResult]) -> float | None:
    """Return the confidence of the sentence with the lowest score; sentences from a memory do not count."""
    scores = [result.hypotheses[0].score for result in results if result.memory_translation is None]
    return direction.confidence.probability(min(scores)) if direction.confidence and scores else None


def _windows(texts: Iterator[str]) -> Iterator[list[str]]:
    """Yield windows of texts: one text first, so that its translation comes soon, then twice as many each time."""
    size = 1
    while window := list(islice(texts, size)):
        yield window
        size = min(2 * size, MAX_WINDOW)


def check_text(name: str, text: str, hint: str | None = None) -> None:
    """Raise RequestError if a value, which `name` names, is not a string."""
    if not isinstance(text, str):
        raise RequestError(f"{name}: expected a string; got {text!r:.60}", hint)
