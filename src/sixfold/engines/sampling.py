"""The torch engine that writes texts: it draws tokens with every option of sampling, on a CPU or a GPU.

Its collaborators: a `Stepper` computes logits and owns the cache, `sampler` takes tokens, and `WritingOptions` has the
rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from sixfold.config import ModelConfig
from sixfold.decoding.constraints import repetition
from sixfold.decoding.sampling import sampler
from sixfold.engines.engine import Ids, check_sources, check_targets
from sixfold.engines.writing import OnToken, WritingOptions, WrittenToken, check_prompts
from sixfold.model.stepper import Stepper
from sixfold.model.transformer import DecoderOnly, load_model
from sixfold.modelfile import ModelFile

CACHE_BYTES = 2**30  # of the keys and values of a batch


class SamplingEngine:
    """An engine that writes with a model in torch, in float32. Calls may come from several threads at once."""

    def __init__(self, model: DecoderOnly, config: ModelConfig) -> None:
        self.model, self.config = model.eval(), config
        self.device = next(model.parameters()).device

    @classmethod
    def load(cls, file: ModelFile, device: str = "cpu") -> SamplingEngine:
        """Load a decoder-only model from its file."""
        config = file.config.model
        check_prompts(config, ())
        model = load_model(config, file.weights())
        assert isinstance(model, DecoderOnly)
        return cls(model.to(device), config)

    @torch.inference_mode()
    def write(self, prompts: Sequence[Ids], options: WritingOptions, on_token: OnToken) -> None:
        """Write texts after prompts, as `WritingEngine.write` describes."""
        check_prompts(self.config, prompts)
        for batch in self._batches(prompts, options):
            self._write_batch(batch, [list(prompts[index]) for index in batch], options, on_token)

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
        del self.model

    def _batches(self, prompts: Sequence[Ids], options: WritingOptions) -> list[list[int]]:
        """Return indices of prompts that are continued together, the longest first.

        The positions of a batch are those of its longest prompt and of its longest text. They must fit into
        `model.max_length`, and their keys and values into CACHE_BYTES, unless it is one prompt alone.
        """
        config = self.config
        position_bytes = 2 * 4 * config.decoder_layers * config.groups * config.d_head * options.samples
        batches: list[list[int]] = []
        longest = limit = 0
        for index in sorted(range(len(prompts)), key=lambda index: -len(prompts[index])):
            limit = max(limit, options.limit(config, prompts[index]))
            rows = len(batches[-1]) + 1 if batches else 1
            is_too_long = longest + limit > config.max_length
            if not batches or is_too_long or rows * (longest + limit) * position_bytes > CACHE_BYTES:
                batches.append([])
                longest, limit = len(prompts[index]), options.limit(config, prompts[index])
            batches[-1].append(index)
        return batches

    def _write_batch(
        self, batch: Sequence[int], prompts: Sequence[list[int]], options: WritingOptions, on_token: OnToken
    ) -> None:
        """Write the texts of a batch: row `prompt` × samples + `sample` is one of them. Those that end are dropped."""
        samples, sampling = options.samples, options.sampling
        limits = [options.limit(self.config, prompt) for prompt in prompts]
        stepper = Stepper(self.model, max(map(len, prompts)) + max(limits))
        rows = torch.arange(len(prompts) * samples, device=self.device)  # the texts that go on
        logits = stepper.feed_prompts(prompts, self.device)
        if samples > 1:
            logits = logits.repeat_interleave(samples, dim=0)
            stepper.reorder(rows // samples)
        choose = sampler(sampling, samples)
        penalise = None
        if sampling.repetition_penalty != 1:
            texts = [prompt for prompt in prompts for _ in range(samples)]
            penalise = repetition(sampling.repetition_penalty, texts, self.config.vocab)
        history = rows.new_empty((len(rows), 0))
        for step in range(max(limits)):
            tokens = choose(logits if penalise is None else penalise(logits, history, rows), rows)
            live = []
            for index, token in enumerate(self._written(batch, rows, tokens, logits, options)):
                ends = on_token(token) or token.id in options.ends
                if not ends and step + 1 < limits[int(rows[index]) // samples]:
                    live.append(index)
            if not live:
                break
            history = torch.cat((history, tokens[:, None]), dim=1)
            if len(live) < len(tokens):
                survivors = torch.tensor(live, device=self.device)
                stepper.reorder(survivors)
                rows, tokens, history = rows[survivors], tokens[survivors], history[survivors]
            logits = stepper.step(tokens)

    def _written(
        self, batch: Sequence[int], rows: Tensor, tokens: Tensor, logits: Tensor, options: WritingOptions
    ) -> list[WrittenToken]:
        """Return the tokens of a step as they are reported, with the log-probabilities of the model."""
        logprobs = logits.log_softmax(dim=-1, dtype=torch.float32)
        taken = logprobs.gather(1, tokens[:, None])[:, 0].tolist()
        best = logprobs.topk(min(options.likeliest, logprobs.size(1)), dim=-1)
        places = [
            tuple(zip(ids, values, strict=True))
            for ids, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        return [
            WrittenToken(batch[row // options.samples], row % options.samples, token, logprob, likeliest)
            for row, token, logprob, likeliest in zip(rows.tolist(), tokens.tolist(), taken, places, strict=True)
        ]
