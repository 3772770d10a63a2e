"""Decoding on the CPU through CTranslate2: token ids in, token ids out, and no torch."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import ctranslate2
import numpy as np

from sixfold.alignment_heads import aligning_heads
from sixfold.config import Compute
from sixfold.decoding.options import SearchOptions
from sixfold.engines.engine import (
    Candidate,
    Ids,
    batches,
    check_kind,
    check_search,
    check_sources,
    check_targets,
    rescored,
)
from sixfold.errors import ConfigError
from sixfold.interop.ctranslate2 import check_supported, convert
from sixfold.modelfile import ModelFile

# With its own default of 1, short, bad hypotheses that end early crowd out better ones that are still growing.
PATIENCE = 2.0
COMPUTES = ("int8", "float32")
ROOM = 512  # tokens of a batch of sources, times the beam: the fewer, the shorter the shortlist
READ = 16  # targets that are read at once: every word of the vocabulary is weighed at each of their tokens
LAYOUT = 3  # of the cached files; raised when `convert` writes something else


class CpuEngine:
    """A model that is ready to decode. Calls may come from several threads at once."""

    def __init__(self, model: ModelFile, compute: Compute = "int8", threads: int = 0, shortlist: bool = True) -> None:
        """`threads` batches are decoded at once, one thread each: two threads for one batch take longer than one.

        0: as many as there are cores. Without the model's shortlist every word of the vocabulary is always considered.
        """
        check_supported(model.config.model)
        if compute not in COMPUTES:
            raise ConfigError(f"compute: expected one of {', '.join(COMPUTES)} on a CPU; got {compute!r}")
        self.config = model.config.model
        self.aligning = aligning_heads(model.card, self.config)
        self.threads = threads or cores()
        self._names = vocabulary(model)
        self._has_shortlist = shortlist and model.shortlist is not None
        self._engine = open_model(model, compute_type=compute, inter_threads=self.threads, intra_threads=1)

    def decode(
        self, sources: Sequence[Ids], options: SearchOptions | None = None, prefixes: Sequence[Ids] | None = None
    ) -> list[list[Candidate]]:
        """The best targets of each source, or continuations of each prompt for a decoder-only model.

        CTranslate2 cannot tell that no live hypothesis can win; where that is asked for (patience 0) it gets PATIENCE.
        """
        options = options or SearchOptions()
        check_search(self.config, sources, options, prefixes)
        lengths = [len(source) for source in sources]
        room = min(ROOM // options.beam, -(-sum(lengths) // self.threads))
        parts = [(places, self._ask(places, sources, options, prefixes)) for places in batches(lengths, room)]
        found: list[list[Candidate]] = [[] for _ in sources]
        for places, answers in parts:
            shared = self._longest([sources[place] for place in places], options)
            for place, answer in zip(places, answers, strict=True):
                found[place] = self._candidates(answer.result())
                own = self._longest([sources[place]], options)
                if own < shared and max(len(each.tokens) for each in found[place]) >= own:
                    # It went on where it would have been stopped alone: CTranslate2 knows one limit for a batch.
                    found[place] = self._candidates(self._ask([place], sources, options, prefixes)[0].result())
        return found

    def _ask(
        self, places: Sequence[int], sources: Sequence[Ids], options: SearchOptions, prefixes: Sequence[Ids] | None
    ) -> Any:
        """One batch is on its way; the answers come later."""
        wanted: dict[str, Any] = self._search(options) | {"asynchronous": True}
        some = [sources[place] for place in places]
        longest = self._longest(some, options)
        limits = {"min": min(options.min_length, longest), "max": longest}
        if self.config.kind != "encoder-decoder":
            wanted |= {f"{end}_length": value for end, value in limits.items()} | {"include_prompt_in_result": False}
            return self._engine.generate_batch(self._named(some), **wanted)
        # CTranslate2 would cut a source silently; one that is too long has been refused.
        wanted |= {f"{end}_decoding_length": value for end, value in limits.items()} | {"max_input_length": 0}
        if prefixes is not None:
            wanted["target_prefix"] = self._named([prefixes[place] for place in places])
        else:
            wanted["use_vmap"] = self._has_shortlist and not options.unlisted
        return self._engine.translate_batch(self._named(some), **wanted)

    def alternatives(self, source: Ids, prefix: Ids, options: SearchOptions) -> list[Candidate]:
        check_kind(self.config, "alternatives")
        check_search(self.config, [source], options, [prefix])
        limit = self._longest([source], options)
        if len(prefix) >= limit:
            return []
        never = (*options.banned, self.config.pad, self.config.bos, self.config.unk)
        (found,) = self._engine.translate_batch(
            self._named([source]), target_prefix=self._named([prefix]), return_alternatives=True, max_input_length=0,
            max_decoding_length=limit, **self._search(replace(options, banned=never)),
        )  # fmt: skip
        return rescored(self, source, prefix, [each.tokens for each in self._candidates(found)], options, limit)

    def score(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[list[float]]:
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        if self.config.kind == "decoder":
            texts = [[*source, *target, self.config.eos] for source, target in zip(sources, targets, strict=True)]
            read = self._engine.score_batch(self._named(texts), max_batch_size=READ)
            return [list(each.log_probs)[-len(target) - 1 :] for each, target in zip(read, targets, strict=True)]
        found = self._engine.score_batch(
            self._named(sources), self._named(targets), max_batch_size=READ, max_input_length=0
        )
        return [list(each.log_probs) for each in found]

    def align(self, sources: Sequence[Ids], targets: Sequence[Ids]) -> list[np.ndarray]:
        check_kind(self.config, "align")
        check_sources(self.config, sources)
        check_targets(self.config, sources, targets)
        if not sources:
            return []
        # CTranslate2 drops the row of <eos>, so another token stands in for it: what a step writes does not change what
        # it attends to. A target shorter than the longest goes on; what comes behind it is cut off.
        ended = [[*target, self.config.unk] for target in targets]
        answers = self._engine.translate_batch(
            self._named(sources), beam_size=1, max_input_length=0, return_attention=True, max_batch_size=READ,
            target_prefix=self._named(ended), max_decoding_length=max(map(len, ended)),
        )  # fmt: skip
        found = []
        for source, target, answer in zip(sources, ended, answers, strict=True):
            steps = np.array([row[: len(source)] for row in answer.attention[0][: len(target)]], np.float32)
            found.append(self.aligning.token_weights(steps))
        return found

    def close(self) -> None:
        self._engine.unload_model()

    def _search(self, options: SearchOptions) -> dict[str, Any]:
        patience = options.enough / options.beam if options.patience else PATIENCE
        return {
            "beam_size": options.beam, "num_hypotheses": options.n_best, "length_penalty": options.length_penalty,
            "patience": max(patience, options.n_best / options.beam), "return_scores": True, "max_batch_size": 0,
            "no_repeat_ngram_size": options.no_repeat,
            "suppress_sequences": self._named([[one] for one in options.banned]),
        }  # fmt: skip

    def _named(self, texts: Sequence[Ids]) -> list[list[str]]:
        return [[self._names[token] for token in text] for text in texts]

    def _longest(self, sources: Sequence[Ids], options: SearchOptions) -> int:
        """A table of positions ends somewhere, and so does a target; rotations do not."""
        most = max(map(len, sources))
        wanted = options.longest(most)
        if self.config.positions == "rotary":
            return wanted
        return max(1, min(wanted, self.config.max_length - (most if self.config.kind == "decoder" else 0)))

    def _candidates(self, found: Any) -> list[Candidate]:
        names = found.hypotheses if self.config.kind == "encoder-decoder" else found.sequences
        return [Candidate([int(name) for name in each], score) for each, score in zip(names, found.scores, strict=True)]


def cores() -> int:
    """That this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def vocabulary(model: ModelFile) -> list[str]:
    """CTranslate2 wants strings; ids written out keep its private copy free of what pieces may look like."""
    return [str(index) for index in range(model.config.model.vocab)]


def open_model(model: ModelFile, **layout: Any) -> Any:
    """From the cache, which is made anew where it is damaged, or from memory where nothing can be written."""
    kind = ctranslate2.Translator if model.config.model.kind == "encoder-decoder" else ctranslate2.Generator
    for _ in range(2):
        folder = cached_folder(model)
        if folder is None:
            break
        try:
            return kind(str(folder), device="cpu", **layout)
        except RuntimeError:
            shutil.rmtree(folder, ignore_errors=True)
    return kind("memory", device="cpu", files=convert(model, vocabulary(model)), **layout)


def cached_folder(model: ModelFile) -> Path | None:
    """The converted model on disk, made on first use; None where nothing can be written."""
    if not model.checksum:
        return None
    name = f"{model.checksum.replace(':', '-')}-{LAYOUT}"
    final = cache_home() / "ctranslate2" / name
    if final.is_dir():
        return final
    files = convert(model, vocabulary(model))
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{name}.", dir=final.parent))
    except OSError:
        return None
    try:
        for file, data in files.items():
            _write(building / file, data)
        # Another process may have been faster; its folder holds the same bytes.
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
    """Where this user's programs keep what they can make again."""
    for variable in ("SIXFOLD_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "sixfold"
    try:
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "sixfold"
    except RuntimeError:  # no home folder at all
        return Path(tempfile.gettempdir()) / "sixfold"
