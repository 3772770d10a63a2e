"""From a model file to an engine: which models there are, whether they translate, and what they run on."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from sixfold import modelfile
from sixfold.config import Compute
from sixfold.engines.engine import Engine
from sixfold.errors import ConfigError, ModelFileError, RequestError
from sixfold.modelfile import ModelFile
from sixfold.text.tokenizer import Tokenizer

Device = Literal["auto", "cpu", "cuda"]
ModelSource = Path | str | ModelFile
SHIPPED_FOLDER = Path(__file__).parent.parent / "pretrained"
MODEL_SUFFIX = ".safetensors"
RUN_MODEL_NAME = f"model{MODEL_SUFFIX}"  # what training calls the model in the folder of a run


def load_all(model: ModelSource | Sequence[ModelSource] | None) -> list[tuple[ModelFile, Tokenizer]]:
    """The models that are named, or those of this package, each with its tokeniser."""
    models = shipped_models() if model is None else [model] if isinstance(model, Path | str | ModelFile) else model
    is_fine = isinstance(models, Sequence) and all(isinstance(each, Path | str | ModelFile) for each in models)
    if not is_fine or not models:
        raise ConfigError(f"model: expected a model file, or a list of them; got {model!r:.60}")
    return [_load(each) for each in models]


def _load(model: ModelSource) -> tuple[ModelFile, Tokenizer]:
    file, name = (model, "model") if isinstance(model, ModelFile) else (modelfile.load(find_model(model)), str(model))
    kind = file.config.model.kind
    if kind != "encoder-decoder" or file.tokenizer is None:
        what = "has no tokeniser" if kind == "encoder-decoder" else f"is of the kind {kind!r}"
        raise RequestError(f"{name}: expected a model that translates; this one {what}", "name another model")
    return file, file.tokenizer


def find_model(name: Path | str | None) -> Path:
    """The file of a model that is named: itself, by the folder of a run, or as one of this package, such as `zh-en`.

    None stands for the first model of the package.
    """
    if name is None:
        return shipped_models()[0]
    path = Path(name)
    if _is(Path.is_dir, path):
        if not (path / RUN_MODEL_NAME).is_file():
            raise ModelFileError(
                f"{path}: expected a model file, or a folder with {RUN_MODEL_NAME} in it; got a folder without one",
                "a run writes its model when it ends; name a file to use another",
            )
        return path / RUN_MODEL_NAME
    in_package = SHIPPED_FOLDER / f"{name}{MODEL_SUFFIX}"
    return in_package if not _is(Path.exists, path) and str(name) == path.name and in_package.is_file() else path


def _is(test: Callable[[Path], bool], path: Path) -> bool:
    """A test of a path that is False where the system does not take the name, as too long."""
    with suppress(OSError, ValueError):
        return test(path)
    return False


def shipped_models() -> list[Path]:
    """The models in this package."""
    found = sorted(SHIPPED_FOLDER.glob("*.safetensors"))
    if not found:
        raise RequestError(
            "model: expected a file; none was named, and this version of sixfold ships none",
            "train one with `sixfold train`, and name it with --model",
        )
    return found


def open_engine(file: ModelFile, device: str, threads: int | None, compute: Compute, shortlist: bool) -> Engine:
    if device == "cpu":
        from sixfold.engines.cpu import CpuEngine

        return CpuEngine(file, compute, threads or 0, shortlist)
    from sixfold.engines.gpu import GpuEngine

    return GpuEngine.load(file, device, "float16" if compute == "int8" else compute)


def choose_device(wanted: str) -> str:
    """A GPU where there is one and torch to use it; torch is not imported to find out that there is none."""
    if wanted in ("auto", "cpu"):
        has_driver = Path("/dev/nvidiactl").exists() or shutil.which("nvidia-smi") is not None
        return "cuda" if wanted == "auto" and has_driver and _cuda_works() else "cpu"
    if not isinstance(wanted, str) or not re.fullmatch(r"cuda(:\d+)?", wanted):
        raise ConfigError(f"device: expected auto, cpu or cuda; got {wanted!r}")
    if not _cuda_works():
        raise RequestError(f"device: expected a GPU that torch can use, for {wanted!r}; found none", "take device cpu")
    return wanted


def _cuda_works() -> bool:
    with suppress(ImportError):
        import torch

        return torch.cuda.is_available()
    return False


def check_threads(threads: int | None) -> None:
    if threads is not None and (not isinstance(threads, int) or threads < 1):
        raise ConfigError(f"threads: expected at least 1, or None for all cores; got {threads!r}")
