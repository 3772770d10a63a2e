"""Decoding on the CPU through CTranslate2: token ids in, token ids out, and no torch."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import ctranslate2

from sixfold.config import Compute, SearchOptions
from sixfold.errors import ConfigError, RequestError
from sixfold.interop.ctranslate2 import check_supported, convert
from sixfold.modelfile import ModelFile

# With its own default of 1, short, bad hypotheses that end early crowd out better ones that are still growing.
PATIENCE = 2.0
LAYOUT = 1  # of the cached files; raised when `convert` writes something else


@dataclass(frozen=True)
class Candidate:
    """One hypothesis: its tokens without <eos>, and its length-normalised score."""

    tokens: list[int]
    score: float


class CpuEngine:
    """A model that is ready to decode. Calls may come from several threads at once."""

    def __init__(self, model: ModelFile, compute: Compute = "int8", threads: int = 0, workers: int = 1) -> None:
        check_supported(model.config.model)
        if compute not in get_args(Compute):
            raise ConfigError(f"compute: expected one of {', '.join(get_args(Compute))}; got {compute!r}")
        self.config = model.config.model
        self._names = vocabulary(model)
        self._engine = open_model(model, compute_type=compute, inter_threads=workers, intra_threads=threads)

    def decode(self, prompts: Sequence[Sequence[int]], options: SearchOptions | None = None) -> list[list[Candidate]]:
        """The best targets of each source, or continuations of each prompt for a decoder-only model.

        CTranslate2 cannot tell that no live hypothesis can win; where that is asked for (patience 0) it gets PATIENCE.
        """
        if not prompts:
            return []
        options = options or SearchOptions()
        self._check(prompts)
        names = [[self._names[token] for token in prompt] for prompt in prompts]
        patience = options.enough / options.beam if options.patience else PATIENCE
        common: dict[str, Any] = {
            "beam_size": options.beam, "num_hypotheses": options.n_best, "length_penalty": options.length_penalty,
            "patience": max(patience, options.n_best / options.beam), "return_scores": True, "max_batch_size": 0,
        }  # fmt: skip
        longest = self._longest(prompts, options.max_length)
        limits = {"min": min(options.min_length, longest), "max": longest}
        if self.config.kind == "encoder-decoder":
            # CTranslate2 would cut a source silently; _check has refused one that is too long.
            common |= {f"{end}_decoding_length": value for end, value in limits.items()} | {"max_input_length": 0}
            results = self._engine.translate_batch(names, **common)
            return [_candidates(result.hypotheses, result.scores) for result in results]
        common |= {f"{end}_length": value for end, value in limits.items()} | {"include_prompt_in_result": False}
        results = self._engine.generate_batch(names, **common)
        return [_candidates(result.sequences, result.scores) for result in results]

    def _check(self, prompts: Sequence[Sequence[int]]) -> None:
        for prompt in prompts:
            if len(prompt) == 0:
                raise RequestError("source: expected at least one token; got none", "end every source in <eos>")
            if len(prompt) > self.config.max_length:
                raise RequestError(
                    f"source: expected at most {self.config.max_length} tokens (model.max_length); got {len(prompt)}",
                    "split the text into sentences",
                )
            if min(prompt) < 0 or max(prompt) >= self.config.vocab:
                raise RequestError(
                    f"source: expected ids from 0 to {self.config.vocab - 1}; got {min(prompt)} to {max(prompt)}"
                )

    def _longest(self, prompts: Sequence[Sequence[int]], wanted: int) -> int:
        """A table of positions ends somewhere, and so does a target; rotations do not."""
        if self.config.positions == "rotary":
            return wanted
        taken = max(map(len, prompts)) if self.config.kind == "decoder" else 0
        return max(1, min(wanted, self.config.max_length - taken))


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


def _candidates(hypotheses: Sequence[Sequence[str]], scores: Sequence[float]) -> list[Candidate]:
    return [Candidate([int(name) for name in names], score) for names, score in zip(hypotheses, scores, strict=True)]


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
