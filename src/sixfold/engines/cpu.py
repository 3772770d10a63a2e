"""The CPU engine: decoding with CTranslate2, without torch.

Its collaborators: CTranslate2 computes and searches; `interop.ctranslate2.convert` writes a model in its format, which
`cached_folder` keeps on disk by the checksum of the model; `check_search` and the other functions of engine.py check
arguments as for every engine.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from sixfold.alignment_heads import aligning_heads
from sixfold.config import Compute
from sixfold.decoding.options import Hypothesis, SearchOptions
from sixfold.engines.engine import (
    Ids,
    batch_by_length,
    check_kind,
    check_search,
    check_sources,
    check_targets,
    rescore,
)
from sixfold.engines.writing import OnToken, WritingOptions, WrittenToken, check_prompts, never_cancelled
from sixfold.errors import ConfigError, ModelFileError, RequestError
from sixfold.interop.as_is import FolderWeights
from sixfold.interop.ctranslate2 import check_supported, convert
from sixfold.modelfile import ModelFile

# With CTranslate2's default of 1, bad short hypotheses that end early displace better ones that are still live.
PATIENCE = 2.0
COMPUTES = ("int8", "float32")
BATCH_TOKENS = 512  # source tokens of a batch, times the beam: the fewer, the shorter the shortlist of the batch
WRITING_TOKENS = 16384  # prompt tokens of a batch that is continued
SCORING_BATCH = 16  # targets that are aligned at once
SCORING_TOKENS = 128  # tokens of a batch that is scored: each needs the logits of the whole vocabulary
CACHE_VERSION = 3  # of the cached files; it is raised when `convert` changes


class CpuEngine:
    """An engine that runs a model with CTranslate2. Calls may come from several threads at once."""

    def __init__(self, model: ModelFile, compute: Compute = "int8", threads: int = 0, shortlist: bool = True) -> None:
        """`threads` batches are decoded at once, with one thread each; 0 means one for each core.

        Two threads for one batch take longer than one, and many times as long where other processes use the cores.
        With `shortlist` False, the whole vocabulary is always considered, even if the model has a shortlist.
        """
        check_supported(model.config.model)
        if compute not in COMPUTES:
            raise ConfigError(f"compute: expected one of {', '.join(COMPUTES)} on a CPU; got {compute!r}")
        self.config = model.config.model
        self.aligning = aligning_heads(model.card, self.config)
        self.threads = threads or cores()
        self._names = [str(index) for index in range(max(self.config.vocab, self.config.vocab_read))]
        self._has_shortlist = shortlist and model.shortlist is not None
        self._opened = [open_model(model, compute_type=compute, inter_threads=self.threads, intra_threads=1)]
        # At exit too: a worker thread that drops a callback while Python ends would end the process with an abort.
        weakref.finalize(self, self._opened.clear)

    @property
    def _engine(self) -> Any:
        return self._opened[0]

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Hypothesis]]:
        """Return the best targets of each source, or continuations of each prompt for a decoder-only model.

        With patience 0 a search should end when no live hypothesis can enter the n best. CTranslate2 has no such rule,
        and uses PATIENCE instead.
        """
        options = options or SearchOptions()
        check_search(self.config, sources, options, prefixes)
        lengths = [len(source) for source in sources]
        max_tokens = min(BATCH_TOKENS // options.beam, -(-sum(lengths) // self.threads))
        # CTranslate2 would return the ends of the longer prompts of a batch as part of their targets.
        batches = batch_by_length(lengths, max_tokens, mix=self.config.kind == "encoder-decoder")
        pending = [(batch, self._start_batch(batch, sources, options, prefixes)) for batch in batches]
        results: list[list[Hypothesis]] = [[] for _ in sources]
        for batch, futures in pending:
            batch_limit = self._limit(batch, sources, options, prefixes)
            for index, future in zip(batch, futures, strict=True):
                results[index] = self._hypotheses(future.result())
                limit = self._limit([index], sources, options, prefixes)
                if limit < batch_limit and max(len(each.tokens) for each in results[index]) >= limit:
                    # It is longer than its own limit: CTranslate2 has one limit for a batch. Decode it alone.
                    (future,) = self._start_batch([index], sources, options, prefixes)
                    results[index] = self._hypotheses(future.result())
        return results

    def _start_batch(
        self, batch: Sequence[int], sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None
    ) -> Any:
        """Start to decode the sources with these indices. Return a future for each of them."""
        settings: dict[str, Any] = self._search_settings(options) | {"asynchronous": True}
        batch_sources = [sources[index] for index in batch]
        limit = self._limit(batch, sources, options, prefixes)
        limits = {"min": min(options.min_length, limit), "max": limit}
        if self.config.kind != "encoder-decoder":
            settings |= {f"{end}_length": value for end, value in limits.items()} | {"include_prompt_in_result": False}
            return self._engine.generate_batch(self._names_of(batch_sources), **settings)
        # With a maximum, CTranslate2 would cut long sources silently. `check_search` has refused those.
        settings |= {f"{end}_decoding_length": value for end, value in limits.items()} | {"max_input_length": 0}
        if prefixes is not None:
            settings["target_prefix"] = self._names_of([prefixes[index] for index in batch])
        else:
            settings["use_vmap"] = self._has_shortlist and not options.ignore_shortlist
        return self._engine.translate_batch(self._names_of(batch_sources), **settings)

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Hypothesis]:
        """Return a target for each of the likeliest next tokens, as `Engine.alternatives` describes."""
        check_kind(self.config, "alternatives")
        check_search(self.config, [source], options, [prefix])
        limit = self._limit([0], [source], options, [prefix])
        if len(prefix) >= limit:
            return []
        never = (*options.banned, self.config.pad, self.config.bos, self.config.unk)
        (result,) = self._engine.translate_batch(
            self._names_of([source]), target_prefix=self._names_of([prefix]), return_alternatives=True,
            max_input_length=0, max_decoding_length=limit, **self._search_settings(replace(options, banned=never)),
        )  # fmt: skip
        targets = [hypothesis.tokens for hypothesis in self._hypotheses(result)]
        return rescore(self, source, prefix, targets, options, limit)

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        """Return the log-probabilities of the tokens of each target, as `Engine.score` describes."""
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        if self.config.kind == "decoder":
            texts = [[*source, *target, self.config.eos] for source, target in zip(sources, targets, strict=True)]
            scores = self._engine.score_batch(
                self._names_of(texts), max_batch_size=SCORING_TOKENS, batch_type="tokens", max_input_length=0
            )
            return [list(each.log_probs)[-len(target) - 1 :] for each, target in zip(scores, targets, strict=True)]
        scores = self._engine.score_batch(
            self._names_of(sources), self._names_of(targets), max_batch_size=SCORING_TOKENS, batch_type="tokens",
            max_input_length=0,
        )  # fmt: skip
        return [list(each.log_probs) for each in scores]

    def write(
        self, prompts: Sequence[Ids], options: WritingOptions, on_token: OnToken,
        is_cancelled: Callable[[], bool] = never_cancelled,
    ) -> None:  # fmt: skip
        """Write texts after prompts, as `WritingEngine.write` describes. It always takes the likeliest token.

        CTranslate2 can sample too, but has one seed for the process, and its repetition penalty leaves out the prompt.
        """
        check_prompts(self.config, prompts)
        if not options.sampling.is_greedy:
            raise RequestError(
                f"sampling: expected temperature 0 and no repetition penalty without torch; got {options.sampling}",
                "pip install 'sixfold[torch]'",
            )
        faults: list[BaseException] = []
        # It reports logits for a batch of one only.
        lengths = [len(prompt) for prompt in prompts]
        max_tokens = 1 if options.likeliest else min(WRITING_TOKENS, -(-sum(lengths) // self.threads))
        pending = []
        for batch in batch_by_length(lengths, max_tokens, mix=False):
            report = _reporter(batch, options, on_token, is_cancelled, faults)
            limit = options.limit(self.config, prompts[batch[0]])
            pending += self._engine.generate_batch(
                self._names_of([prompts[index] for index in batch]), end_token=list(options.ends), max_length=limit,
                include_prompt_in_result=False, return_end_token=True, return_scores=True, callback=report,
                return_logits_vocab=options.likeliest > 0, asynchronous=True,
            )  # fmt: skip
        for future in pending:
            future.result()
        if faults:
            raise faults[0]

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        """Return the weights of target tokens on source tokens, as `Engine.align` describes."""
        check_kind(self.config, "align")
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        if not sources:
            return []
        # CTranslate2 drops the row of <eos>, so <unk> replaces it: the token that a step writes does not change what
        # that step attends to. A target shorter than the longest continues; its additional rows are cut off.
        prefixes = [[*target, self.config.unk] for target in targets]
        results = self._engine.translate_batch(
            self._names_of(sources), beam_size=1, max_input_length=0, return_attention=True,
            max_batch_size=SCORING_BATCH, target_prefix=self._names_of(prefixes),
            max_decoding_length=max(map(len, prefixes)),
        )  # fmt: skip
        weights = []
        for source, prefix, result in zip(sources, prefixes, results, strict=True):
            steps = np.array([row[: len(source)] for row in result.attention[0][: len(prefix)]], np.float32)
            weights.append(self.aligning.token_weights(steps))
        return weights

    def close(self) -> None:
        """Free the memory. The engine may not be used afterwards."""
        if self._opened:
            self._engine.unload_model()
            self._opened.clear()

    def _search_settings(self, options: SearchOptions) -> dict[str, Any]:
        """Return the options in CTranslate2's words."""
        patience = options.finished_limit / options.beam if options.patience else PATIENCE
        return {
            "beam_size": options.beam, "num_hypotheses": options.n_best, "length_penalty": options.length_penalty,
            "patience": max(patience, options.n_best / options.beam), "return_scores": True, "max_batch_size": 0,
            "no_repeat_ngram_size": options.no_repeat,
            "suppress_sequences": self._names_of([[token] for token in options.banned]),
        }  # fmt: skip

    def _names_of(self, texts: Sequence[Ids]) -> list[list[str]]:
        """Return the tokens of each text as the strings of `vocabularies`."""
        return [[self._names[token] for token in text] for text in texts]

    def _limit(
        self, batch: Sequence[int], sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None
    ) -> int:
        """Return the largest number of target tokens of a batch.

        Only rotary positions allow more than `model.max_length`.
        """
        limit = max(
            options.max_target_length(len(sources[index]), len(prefixes[index]) if prefixes else 0) for index in batch
        )
        if self.config.positions == "rotary":
            return limit
        longest = max(len(sources[index]) for index in batch)
        return max(1, min(limit, self.config.max_length - (longest if self.config.kind == "decoder" else 0)))

    def _hypotheses(self, result: Any) -> list[Hypothesis]:
        targets = result.hypotheses if self.config.kind == "encoder-decoder" else result.sequences
        pairs = zip(targets, result.scores, strict=True)
        return [Hypothesis([int(name) for name in names], score) for names, score in pairs]


def _reporter(
    batch: Sequence[int],
    options: WritingOptions,
    on_token: OnToken,
    is_cancelled: Callable[[], bool],
    faults: list[BaseException],
) -> Callable[[Any], bool]:
    """Return a callback for CTranslate2, which ends a text where it returns True.

    An exception ends the texts and is kept in `faults`: it cannot pass through the threads of CTranslate2.
    """

    def report(step: Any) -> bool:
        if faults or is_cancelled():
            return True
        try:
            likeliest = _likeliest(step.logits, options.likeliest) if options.likeliest else ()
            tokens = [
                WrittenToken(batch[step.batch_id], sample, step.token_id, step.log_prob, likeliest)
                for sample in range(options.samples)
            ]
            ends = [on_token(token) for token in tokens]  # the samples are all the same text
            return all(ends)
        except BaseException as error:
            faults.append(error)
            return True

    return report


def _likeliest(logits: Any, count: int) -> tuple[tuple[int, float], ...]:
    """Return the ids and the log-probabilities of the likeliest tokens, best first."""
    scores = np.array(logits, np.float32)[0]
    best = np.argsort(-scores, kind="stable")[:count]
    logprobs = scores[best] - np.logaddexp.reduce(scores.astype(np.float64))
    return tuple(zip(best.tolist(), logprobs.tolist(), strict=True))


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def vocabularies(model: ModelFile) -> tuple[list[str], list[str] | None]:
    """Return a string for each token: its id in digits. CTranslate2 needs strings, and cannot misread these.

    The second list is that of the source, if it is another.
    """
    config = model.config.model
    sizes = (config.vocab, config.vocab_read)
    target, source = ([str(index) for index in range(size)] for size in sizes)
    return target, None if sizes[0] == sizes[1] else source


def open_model(model: ModelFile, **layout: Any) -> Any:
    """Open a model in CTranslate2: its own folder as it is, or from the cache, or from memory without a cache.

    A damaged cache is written again.
    """
    if isinstance(model.tensors, FolderWeights):
        with model.tensors.engine_folder() as name:
            try:
                return ctranslate2.Translator(name, device="cpu", **layout)
            except (RuntimeError, ValueError) as error:
                raise ModelFileError(f"{model.name}: CTranslate2 cannot open it: {error}") from None
    kind = ctranslate2.Translator if model.config.model.kind == "encoder-decoder" else ctranslate2.Generator
    for _ in range(2):
        folder = cached_folder(model)
        if folder is None:
            break
        try:
            return kind(str(folder), device="cpu", **layout)
        except RuntimeError:
            shutil.rmtree(folder, ignore_errors=True)
    return kind("memory", device="cpu", files=convert(model, *vocabularies(model)), **layout)


def cached_folder(model: ModelFile) -> Path | None:
    """Return the folder of the converted model, written on first use, or None if it cannot be written."""
    if not model.checksum:
        return None
    name = f"{model.checksum.replace(':', '-')}-{CACHE_VERSION}"
    final = cache_home() / "ctranslate2" / name
    if final.is_dir():
        return final
    files = convert(model, *vocabularies(model))
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=final.parent))
    except OSError:
        return None
    try:
        for file, data in files.items():
            _write(building / file, data)
        # Another process may have been faster. Its folder holds the same bytes.
        with suppress(OSError):
            building.rename(final)
        return final if final.is_dir() else None
    except OSError:
        return None
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def cache_home() -> Path:
    """Return the folder for files that can be made again: $SIXFOLD_CACHE or the user's cache folder."""
    for variable in ("SIXFOLD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "sixfold"
    try:
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "sixfold"
    except RuntimeError:  # no home folder at all
        return Path(tempfile.gettempdir()) / "sixfold"
