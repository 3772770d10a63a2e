"""The torch engine that writes texts, with every option of sampling, on a CPU or a GPU.

Texts of all calls are written together, one token of each in every step, and a new one joins between two steps. Its
collaborators: `Slots` computes logits and holds keys and values, and a `LiveText` takes the tokens of one text.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sixfold.config import Compute, ModelConfig
from sixfold.decoding.constraints import penalise
from sixfold.decoding.options import SamplingOptions
from sixfold.decoding.sampling import distribution, draw
from sixfold.engines.draft import Draft, GuessCount
from sixfold.engines.engine import Ids, check_sources, check_targets
from sixfold.engines.slots import Slots
from sixfold.engines.writing import OnToken, WritingOptions, WrittenToken, check_draft, check_prompts, never_cancelled
from sixfold.errors import ConfigError
from sixfold.model.transformer import DecoderOnly, load_model
from sixfold.modelfile import ModelFile

PROMPT_TOKENS = 256  # of a prompt that are read between two steps of the texts that are being written
TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
CANCEL_SECONDS = 0.05  # between two looks at whether a call that waits has been cancelled


class Call:
    """One call of `SamplingEngine.write`: its options, how many of its texts have not ended, and what went wrong."""

    def __init__(self, options: WritingOptions, on_token: OnToken, is_cancelled: Callable[[], bool]) -> None:
        self.options, self.on_token, self.is_cancelled = options, on_token, is_cancelled
        self.remaining = 0
        self.fault: BaseException | None = None

    @property
    def is_over(self) -> bool:
        """Whether nobody needs more of its texts."""
        return self.fault is not None or self.is_cancelled()


class LiveText:
    """A text that is being written: how its next token is drawn, and where it ends.

    It draws random numbers of its own, which follow from the seed and from its number among the texts of its prompt, so
    that it gets the same tokens whatever else is written at the same time.
    """

    def __init__(self, call: Call, prompt: int, sample: int, ids: Ids, limit: int) -> None:
        self.call, self.prompt, self.sample, self.limit = call, prompt, sample, limit
        self.ids = list(ids)  # of the prompt, then of the text too
        self.prompt_length = len(self.ids)
        sampling = call.options.sampling
        self.rule = replace(sampling, seed=0)  # texts with the same rule are drawn together
        self._random = np.random.default_rng((sampling.seed, sample))
        self.guess_count = GuessCount()  # for a draft

    def random_number(self) -> float:
        """Return the next random number of this text, from 0 to below 1."""
        return self._random.random()

    def add(self, token: int, logprob: float, likeliest: tuple[tuple[int, float], ...]) -> bool:
        """Report a token to the caller, and return whether the text ends with it."""
        self.ids.append(token)
        ends = self.call.on_token(WrittenToken(self.prompt, self.sample, token, logprob, likeliest))
        return ends or token in self.call.options.ends or len(self.ids) - self.prompt_length >= self.limit


def load_decoder(file: ModelFile, device: str, compute: Compute = "float32") -> DecoderOnly:
    """Return a decoder-only model in torch, with weights of the type `compute`, of which a CPU has float32 only."""
    check_prompts(file.config.model, ())
    if compute not in TYPES or (device == "cpu" and compute != "float32"):
        raise ConfigError(
            f"compute: expected float32, or on a GPU float16 or bfloat16, to draw tokens; got {compute!r}"
        )
    model = load_model(file.config.model, file.weights(), device=device, dtype=TYPES[compute])
    assert isinstance(model, DecoderOnly)
    return model


class SamplingEngine:
    """An engine that writes with a model in torch, in float32. Calls may come from several threads at once."""

    def __init__(self, model: DecoderOnly, config: ModelConfig, draft: Draft | None = None) -> None:
        """A `draft` guesses tokens for a text that is written alone."""
        self.model, self.config, self.draft = model.eval(), config, draft
        self.device = next(model.parameters()).device
        self._slots = Slots(self.model, config)
        self._texts: list[LiveText] = []  # in the order of their slots
        self._joining: list[LiveText] = []  # a text whose prompt is being read
        self._waiting: deque[LiveText] = deque()
        self._changed = threading.Condition()
        self._is_stepping = False  # whether a thread is in `_advance`

    @classmethod
    def load(
        cls, file: ModelFile, device: str = "cpu", draft: ModelFile | None = None, compute: Compute = "float32"
    ) -> SamplingEngine:
        """Load a decoder-only model from its file, and perhaps a smaller one that guesses for it."""
        model = load_decoder(file, device, compute)
        if draft is None:
            return cls(model, file.config.model)
        check_draft(file, draft)
        return cls(model, file.config.model, Draft(load_decoder(draft, device, compute), draft.config.model))

    def write(
        self, prompts: Sequence[Ids], options: WritingOptions, on_token: OnToken,
        is_cancelled: Callable[[], bool] = never_cancelled,
    ) -> None:  # fmt: skip
        """Write texts after prompts, as `WritingEngine.write` describes.

        The first of several calls at the same time does the steps for all of them until its own texts have ended; then
        another one goes on.
        """
        check_prompts(self.config, prompts)
        call = Call(options, on_token, is_cancelled)
        texts = [
            LiveText(call, index, sample, prompt, options.limit(self.config, prompt))
            for index, prompt in enumerate(prompts) for sample in range(options.samples)
        ]  # fmt: skip
        with self._changed:
            call.remaining = len(texts)
            self._waiting.extend(texts)
        while call.remaining:
            with self._changed:
                if self._is_stepping:
                    self._changed.wait(CANCEL_SECONDS)
                    continue
                self._is_stepping = True
            try:
                while call.remaining:
                    self._advance()
            finally:
                with self._changed:
                    self._is_stepping = False
                    self._changed.notify_all()
        if call.fault is not None:
            raise call.fault

    @torch.inference_mode()
    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        results = []
        for source, target in zip(sources, targets, strict=True):
            labels = torch.tensor([*target, self.config.eos], device=self.device)
            tokens = torch.tensor([[*source, *target]], device=self.device)
            logprobs = self.model(tokens)[0, len(source) - 1 :].log_softmax(dim=-1, dtype=torch.float32)
            results.append(logprobs.gather(1, labels[:, None])[:, 0].tolist())
        return results

    def close(self) -> None:
        """Free the memory. The engine may not be used afterwards."""
        del self.model, self._slots

    def _advance(self) -> None:
        """Do one step. If it fails, all calls fail: nobody knows how far their texts are."""
        try:
            self._advance_texts()
        except BaseException as error:
            with self._changed:
                texts = [*self._texts, *self._waiting, *self._joining]
                self._waiting.clear()
            self._joining.clear()
            self._texts.clear()
            self._slots = Slots(self.model, self.config)
            for text in texts:
                text.call.fault, text.call.remaining = error, 0
            raise

    @torch.inference_mode()
    def _advance_texts(self) -> None:
        """Let a waiting text join, if there is room, or else write one token of each live text."""
        self._drop_texts()
        if (text := self._next_text()) is not None:
            self._joining = [text]  # so that it fails with the others if anything does
            self._join(text, self._slots.add(text.ids, len(text.ids) + text.limit))
        elif self._texts:
            self._step()

    def _drop_texts(self) -> None:
        """End the texts of calls that are over."""
        for slot in reversed(range(len(self._texts))):
            if self._texts[slot].call.is_over:
                self._end(slot)
        with self._changed:
            over = [text for text in self._waiting if text.call.is_over]
            for text in over:
                self._waiting.remove(text)
        for text in over:
            self._count_end(text)

    def _next_text(self) -> LiveText | None:
        """Return the text that has waited longest, if there is room for it."""
        with self._changed:
            if self._waiting and self._slots.has_room(len(self._waiting[0].ids) + self._waiting[0].limit):
                return self._waiting.popleft()
        return None

    def _join(self, text: LiveText, slot: int) -> None:
        """Feed what the slot lacks of a prompt, while the other texts go on, and write the first token."""
        while True:
            rest = text.ids[len(self._slots.tokens[slot]) :]
            logits = self._slots.feed(slot, rest[:PROMPT_TOKENS])
            if len(rest) <= PROMPT_TOKENS:
                break
            if self._texts:
                self._step()
                slot = self._slots.live - 1
            if text.call.is_over:
                break
        self._texts.append(text)
        self._joining = []
        if not text.call.is_over:
            self._take(logits, [slot])

    def _step(self) -> None:
        """Write one token of each live text, or several of one alone that a draft has guessed."""
        if self.draft is not None and len(self._texts) == 1:
            self._step_with_draft(self._texts[0], self.draft)
            return
        last = torch.tensor([text.ids[-1] for text in self._texts], device=self.device)
        self._take(self._slots.step(len(last), last), range(len(self._texts)))

    def _step_with_draft(self, text: LiveText, draft: Draft) -> None:
        """Read the last token of a text and guesses of the next ones. Take tokens as long as the guesses are right."""
        remaining = text.prompt_length + text.limit - len(text.ids)
        guesses = draft.guess(text.ids, min(text.guess_count.take(), remaining - 1))
        logits = self._slots.feed(0, [text.ids[-1], *guesses], count=1 + len(guesses))
        for index in range(1 + len(guesses)):
            self._take(logits[index : index + 1], [0])
            if self._texts != [text] or text.call.is_over:
                return
            if text.ids[-1] not in guesses[index : index + 1]:
                text.guess_count.update(len(guesses), index)
                break
        self._slots.cut(0, len(text.ids) - 1)

    def _take(self, logits: Float[Tensor, "rows vocab"], slots: Sequence[int]) -> None:
        """Take the next token of the texts in these slots from its logits. Texts that end leave their slots."""
        texts = [self._texts[slot] for slot in slots]
        tokens = self._choose(logits, texts)
        logprobs = logits.log_softmax(dim=-1, dtype=torch.float32)
        taken = logprobs.gather(1, tokens[:, None])[:, 0].tolist()
        count = max(text.call.options.likeliest for text in texts)
        best = logprobs.topk(min(count, logprobs.size(1)), dim=-1)
        places = [
            list(zip(ids, values, strict=True))
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        ended = []
        for slot, text, token, logprob, place in zip(slots, texts, tokens.tolist(), taken, places, strict=True):
            try:
                if text.call.fault is None and text.add(token, logprob, tuple(place[: text.call.options.likeliest])):
                    ended.append(slot)
            except BaseException as error:  # of the caller's function: it ends this call, and no other
                text.call.fault = error
        for slot in reversed(ended):
            self._end(slot)

    def _choose(self, logits: Float[Tensor, "rows vocab"], texts: Sequence[LiveText]) -> Tensor:
        """Return the next token of each text, drawn by its own rule."""
        tokens = logits.argmax(dim=-1)
        rules: dict[SamplingOptions, list[int]] = {}
        for row, text in enumerate(texts):
            rules.setdefault(text.rule, []).append(row)
        for rule, rows in rules.items():
            if rule.is_greedy:
                continue
            scores = logits[rows]
            if rule.repetition_penalty != 1:
                scores = torch.stack([
                    penalise(each, texts[row].ids, rule.repetition_penalty)
                    for each, row in zip(scores, rows, strict=True)
                ])  # fmt: skip
            if rule.temperature == 0:
                tokens[rows] = scores.argmax(dim=-1)
                continue
            numbers = torch.tensor([texts[row].random_number() for row in rows], dtype=torch.float64)
            tokens[rows] = draw(distribution(scores, rule), numbers.to(self.device))
        return tokens

    def _end(self, slot: int) -> None:
        """End the text in a slot; the last text moves there. A text that is joining stays behind the others."""
        text, last = self._texts[slot], len(self._texts) - 1
        self._slots.swap(slot, last)
        self._texts[slot] = self._texts[last]
        self._texts.pop()
        self._slots.remove(last)
        self._count_end(text)

    def _count_end(self, text: LiveText) -> None:
        text.call.remaining -= 1
