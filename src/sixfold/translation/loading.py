"""From a model file to an engine: find the models, check that they translate, choose a device."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from sixfold import modelfile, tensorfile
from sixfold.config import Compute
from sixfold.engines.engine import Engine
from sixfold.errors import ConfigError, ModelFileError, RequestError
from sixfold.interop.as_is import is_as_is, open_as_is
from sixfold.modelfile import ModelFile
from sixfold.text.tokenizer import Tokenizer

Device = Literal["auto", "cpu", "cuda"]
ModelSource = Path | str | ModelFile
SHIPPED_FOLDER = Path(__file__).parent.parent / "pretrained"
MODEL_SUFFIX = ".safetensors"
RUN_MODEL_NAME = f"model{MODEL_SUFFIX}"  # the model in the folder of a training run


def model_sources(model: ModelSource | Sequence[ModelSource] | None) -> Sequence[ModelSource]:
    """Return the models that are named, or those of this package if none is."""
    models = shipped_models() if model is None else [model] if isinstance(model, Path | str | ModelFile) else model
    is_valid = isinstance(models, Sequence) and all(isinstance(source, Path | str | ModelFile) for source in models)
    if not is_valid or not models:
        raise ConfigError(f"model: expected a model file, or a list of them; got {model!r:.60}")
    return models


def load(source: ModelSource) -> ModelFile:
    """Load a model that translates."""
    file = read_model(source)
    tokenizer_of(file, source)
    return file


def read_model(source: ModelSource | None) -> ModelFile:
    """Read a model file, or a CTranslate2 folder or an Argos package as it is. None is a model of this package."""
    if isinstance(source, ModelFile):
        return source
    path = find_model(source, as_is=True)
    return open_as_is(path) if is_as_is(path) else modelfile.load(path)


def reader_of(source: ModelSource) -> Callable[[], ModelFile]:
    """Return a function that loads a model each time it is called, without reading its weights.

    A model file stays open, so that it is always the same model, even when another one has replaced the file.
    """
    if isinstance(source, ModelFile):
        return lambda: source
    path = find_model(source, as_is=True)
    if is_as_is(path):
        return partial(open_as_is, path)
    return partial(modelfile.load, tensorfile.open_file(path), verify=False)


def checksum_of(path: Path) -> str:
    """Return the checksum of a model, without reading its weights where its file states it."""
    return reader_of(path)().checksum


def tokenizer_of(file: ModelFile, source: ModelSource) -> Tokenizer:
    """Return the tokeniser of a model; RequestError is raised for one that does not translate."""
    name = "model" if isinstance(source, ModelFile) else str(source)
    kind = file.config.model.kind
    if kind != "encoder-decoder" or file.tokenizer is None:
        reason = "has no tokeniser" if kind == "encoder-decoder" else f"is of the kind {kind!r}"
        raise RequestError(f"{name}: expected a model that translates; this one {reason}", "name another model")
    return file.tokenizer


def find_model(name: Path | str | None, as_is: bool = False) -> Path:
    """Return the file of a model: `name` is a file, the folder of a training run, or a model of this package (`zh-en`).

    None stands for the first model of the package. With `as_is`, a CTranslate2 folder or an Argos package is fine too.
    """
    if name is None:
        return shipped_models()[0]
    path = Path(name)
    is_run = _test_path(Path.is_file, path / RUN_MODEL_NAME)
    if not is_run and _test_path(Path.exists, path) and _test_path(is_as_is, path):
        if not as_is:
            raise ModelFileError(
                f"{path}: expected a model file; got an Argos package or a CTranslate2 folder",
                f"`sixfold import {path}` makes one of it",
            )
        return path
    if _test_path(Path.is_dir, path):
        if not is_run:
            raise ModelFileError(
                f"{path}: expected a model file, or a folder with {RUN_MODEL_NAME} in it; got a folder without one",
                "a run writes its model when it ends; name a file to use another",
            )
        return path / RUN_MODEL_NAME
    shipped = SHIPPED_FOLDER / f"{name}{MODEL_SUFFIX}"
    return shipped if not _test_path(Path.exists, path) and str(name) == path.name and shipped.is_file() else path


def _test_path(test: Callable[[Path], bool], path: Path) -> bool:
    """Return the result of a test of a path, or False if the system rejects the name, for example as too long."""
    with suppress(OSError, ValueError):
        return test(path)
    return False


def shipped_models() -> list[Path]:
    """Return the model files in this package; raise RequestError if it has none."""
    models = sorted(SHIPPED_FOLDER.glob("*.safetensors"))
    if not models:
        raise RequestError(
            "model: expected a file; none was named, and this version of sixfold ships none",
            "train one with `sixfold train`, and name it with --model",
        )
    return models


def open_engine(file: ModelFile, device: str, threads: int | None, compute: Compute, shortlist: bool) -> Engine:
    """Return an engine for a model on a device."""
    if device == "cpu":
        from sixfold.engines.cpu import CpuEngine

        return CpuEngine(file, compute, threads or 0, shortlist)
    from sixfold.engines.gpu import GpuEngine

    return GpuEngine.load(file, device, "float16" if compute == "int8" else compute)


def choose_device(device: str) -> str:
    """Return `cpu` or the name of a GPU; `auto` is a GPU if there is one that torch can use.

    torch is not imported to find out that there is none.
    """
    if device in ("auto", "cpu"):
        has_driver = Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None
        return "cuda" if device == "auto" and has_driver and _cuda_works() else "cpu"
    if not isinstance(device, str) or not re.fullmatch(r"cuda(:\d+)?", device):
        raise ConfigError(f"device: expected auto, cpu or cuda; got {device!r}")
    if not _cuda_works():
        raise RequestError(f"device: expected a GPU that torch can use, for {device!r}; found none", "take device cpu")
    return device


def _cuda_works() -> bool:
    with suppress(ImportError):
        import torch

        return torch.cuda.is_available()
    return False


def check_threads(threads: int | None) -> None:
    """Raise ConfigError unless `threads` is a positive integer, or None for all cores."""
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads: expected at least 1, or None for all cores; got {threads!r}")
