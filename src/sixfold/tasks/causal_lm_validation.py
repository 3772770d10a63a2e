"""Judges a decoder-only model: bits per byte and perplexity of held-out texts, and texts that it continues."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sixfold.config import ModelConfig, TrainingConfig
from sixfold.data.store import Ragged
from sixfold.decoding.options import GREEDY, SamplingOptions, SearchOptions
from sixfold.decoding.sampling import sampler
from sixfold.decoding.search import search_single_path
from sixfold.engines.engine import batch_by_length
from sixfold.model.precision import autocast
from sixfold.model.stepper import Stepper
from sixfold.model.transformer import DecoderOnly
from sixfold.tasks.loss import chunked_cross_entropy
from sixfold.tasks.task import Processes, Validation
from sixfold.tasks.text_batches import make_batch, windows
from sixfold.tasks.validation import copy_weights, within_memory
from sixfold.text.tokenizer import Tokenizer

BATCH_TOKENS = {"cpu": 4096, "cuda": 2**17}
SAMPLES = 3  # texts that are continued at each validation
SAMPLE_PROMPT, SAMPLE_TOKENS = 12, 48  # tokens of a document that are given, and tokens that the model adds
SAMPLING = SamplingOptions(temperature=0.8, top_p=0.95)  # of documents; answers are the likeliest tokens
MAX_LOSS = 100.0  # nats a token; e to a higher power is no perplexity that anyone could use


@dataclass(frozen=True)
class TextSet:
    """A dev or test set: raw documents or, with `prompts`, raw answers to them."""

    name: str
    texts: Sequence[str]
    prompts: Sequence[str] = ()

    @property
    def bytes(self) -> int:
        """Return the bytes of all texts in UTF-8, without the prompts."""
        return sum(len(text.encode()) for text in self.texts)


class CausalValidator:
    """Predicts raw held-out texts, and continues some of them."""

    def __init__(
        self, model: DecoderOnly, shape: ModelConfig, tokenizer: Tokenizer, config: TrainingConfig,
        processes: Processes, row_tokens: int, check_stop: Callable[[], None] = lambda: None,
        before: Sequence[int] | None = None,
    ) -> None:  # fmt: skip
        """`row_tokens` is the length of the parts of a document; `before` are tokens before each prompt, or <bos>."""
        self.model = model.eval()
        self.shape = shape
        self.tokenizer = tokenizer
        self.config = config
        self.processes = processes
        self.row_tokens = row_tokens
        self.check_stop = check_stop
        self.before = (shape.bos,) if before is None else tuple(before)
        self.device = next(model.parameters()).device

    def load(self, weights: Mapping[str, Tensor | np.ndarray]) -> None:
        """Set the weights to judge."""
        copy_weights(self.model, weights)

    def validate(self, dev: Sequence[TextSet]) -> Validation:
        """Return the means over the dev sets, and how the model continues some texts of the first."""
        results = [self.scores(dev_set) for dev_set in dev]
        names = ("bits_per_byte", "perplexity", "loss")
        values = {name: sum(scores[name] for scores in results) / len(results) for name in names}
        if len(dev) > 1:
            values |= {
                f"{each.name}_bits_per_byte": scores["bits_per_byte"] for each, scores in zip(dev, results, strict=True)
            }
        return Validation(values, self.samples(dev[0]), f"dev {_line(values)}, loss {values['loss']:.3f}")

    def final_score(self, test_set: TextSet) -> tuple[dict[str, Any], str, list[str]]:
        """Return the scores of a set and a line for people; there are no outputs to keep."""
        scores = self.scores(test_set)
        return scores, f"{test_set.name}: {_line(scores)} ({scores['bytes']:,} bytes)", []

    @torch.inference_mode()
    def scores(self, test_set: TextSet) -> dict[str, Any]:
        """Return the loss in nats a token, the perplexity of a token, and bits per byte, with <eos> as a token.

        <eos> has no bytes, so that bits per byte count what it costs to know where a text ends.
        """
        sequences = self.processes.scatter(self.sequences(test_set))
        totals = torch.zeros(2, dtype=torch.float64)  # nats and labels

        def add(numbers: list[int]) -> None:
            chosen = [sequences[number] for number in numbers]
            texts = Ragged(
                np.fromiter(chain.from_iterable(tokens for tokens, _ in chosen), np.int64),
                np.array([len(tokens) for tokens, _ in chosen]),
            )
            batch = make_batch(texts, self.shape, given=np.array([given for _, given in chosen])).to(self.device)
            with autocast(self.config.precision, self.device):
                hidden = self.model.hidden(**batch.inputs).flatten(0, 1)[batch.label_positions]
                nats = float(chunked_cross_entropy(self.model.output, hidden, batch.labels))
            totals.add_(torch.tensor([nats, len(batch.labels)]))

        lengths = [len(tokens) for tokens, _ in sequences]
        for numbers in batch_by_length(lengths, BATCH_TOKENS[self.device.type]):
            within_memory(add, numbers, self.check_stop)
        nats, tokens = self.processes.all_reduce(totals).tolist()
        loss, size = nats / max(tokens, 1), test_set.bytes
        bits_per_byte = nats / math.log(2) / max(size, 1)
        perplexity = math.exp(min(loss, MAX_LOSS))
        return {
            "bits_per_byte": bits_per_byte, "perplexity": perplexity, "loss": loss, "bytes": size, "tokens": int(tokens)
        }  # fmt: skip

    def sequences(self, test_set: TextSet) -> list[tuple[list[int], int]]:
        """Return the sequences of `make_batch`, each with the number of tokens that are given."""
        texts = self.tokenizer.encode_batch(test_set.texts)
        if not test_set.prompts:
            return [(part, 0) for ids in texts for part in windows(ids, self.row_tokens, self.shape)]
        prompts = self.tokenizer.encode_batch(test_set.prompts)
        return [self.sequence(prompt, ids) for prompt, ids in zip(prompts, texts, strict=True)]

    def sequence(self, prompt: Sequence[int], answer: Sequence[int]) -> tuple[list[int], int]:
        """Return a prompt and an answer with special tokens around them, and how many of the labels are given.

        Where they are too long for the model, the beginning of the prompt is cut off.
        """
        room = self.shape.max_length - len(self.before)
        answer = answer[:room]
        kept = list(prompt[max(0, len(prompt) + len(answer) - room) :])
        return [*self.before, *kept, *answer, self.shape.eos], len(self.before) + len(kept) - 1

    @torch.inference_mode()
    def samples(self, dev_set: TextSet) -> list[tuple[str, str, str]]:
        """Return the beginnings of some texts, or prompts, and how the model and the set continue them."""
        texts = self.tokenizer.encode_batch(dev_set.texts[:SAMPLES])
        if dev_set.prompts:
            given, rest = self.tokenizer.encode_batch(dev_set.prompts[:SAMPLES]), texts
        else:
            cuts = [min(SAMPLE_PROMPT, len(ids) // 2) for ids in texts]
            given = [ids[:cut] for ids, cut in zip(texts, cuts, strict=True)]
            rest = [ids[cut : cut + SAMPLE_TOKENS] for ids, cut in zip(texts, cuts, strict=True)]
        begin, options = (self.before, GREEDY) if dev_set.prompts else ((self.shape.bos,), SAMPLING)
        share = [self.continuation(begin, ids, options) for ids in self.processes.scatter(given)]
        outputs = self.processes.gather(share)
        decode = self.tokenizer.decode
        return [(decode(x), decode(y), decode(z)) for x, y, z in zip(given, outputs, rest, strict=True)]

    def continuation(self, begin: Sequence[int], given: Sequence[int], options: SamplingOptions) -> list[int]:
        """Return the tokens that the model adds to special tokens and a beginning of a text, or the end of it."""
        self.check_stop()
        length = min(SAMPLE_TOKENS, self.shape.max_length // 2)
        room = self.shape.max_length - length - len(begin)
        ids = [*begin, *given[max(0, len(given) - room) :]] or [self.shape.bos]
        tokens = torch.tensor([ids], device=self.device)
        with autocast(self.config.precision, self.device):
            stepper = Stepper(self.model, tokens.size(1) + length)
            if tokens.size(1) > 1:
                stepper.feed(tokens[:, :-1])
            limit = SearchOptions(max_length=length)
            (hypothesis,) = search_single_path(stepper, tokens[:, -1], self.shape.eos, sampler(options), limit)
        return hypothesis.tokens


def _line(values: Mapping[str, float]) -> str:
    """Return the scores in one line."""
    return f"{values['bits_per_byte']:.4f} bits per byte, perplexity {values['perplexity']:.2f}"
