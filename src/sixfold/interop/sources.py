"""Models of other toolkits: what a file or folder is, found out by looking, and its reader."""

from __future__ import annotations

import re
from pathlib import Path

from sixfold.errors import ModelFileError, RequestError
from sixfold.interop.argos import is_argos, load_argos
from sixfold.interop.ctranslate2_reader import load_ctranslate2
from sixfold.interop.fairseq import load_fairseq
from sixfold.interop.gguf import load_gguf
from sixfold.interop.gguf_file import is_gguf
from sixfold.interop.huggingface import load_folder
from sixfold.interop.huggingface_tokenizers import ChosenLanguages
from sixfold.interop.llama2c import TOKENIZER, is_llama2c, load_llama2c
from sixfold.interop.marian import load_marian
from sixfold.modelfile import ModelFile

EXPECTED = (
    "expected a Hugging Face folder (config.json), an Argos package (.argosmodel), a CTranslate2 folder (model.bin), "
    "a Marian model (.npz), a fairseq checkpoint (.pt), a GGUF file or a llama2.c model (.bin)"
)
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def read_source(source: str, chosen: ChosenLanguages | None = None) -> ModelFile:
    """Read a model of another toolkit: a file, a folder, or the name of a repository on the Hugging Face Hub."""
    path, chosen = Path(source), chosen or ChosenLanguages()
    if not path.exists():
        if not HUB_NAME.fullmatch(source):
            raise ModelFileError(f"{source}: no such file or folder", "a name on the Hub is OWNER/NAME")
        path = download(source)
    if path.is_dir():
        return _read_folder(path, chosen)
    return _read_file(path, chosen)


def _read_folder(path: Path, chosen: ChosenLanguages) -> ModelFile:
    if is_argos(path):
        return load_argos(path, chosen)
    if (path / "model.bin").exists() and not (path / "pytorch_model.bin").exists():
        return load_ctranslate2(path, chosen)
    if (path / "config.json").exists():
        return load_folder(path, chosen)
    for pattern, load in (
        (".npz", load_marian),
        (".pt", load_fairseq),
        (".gguf", lambda path, chosen: load_gguf(path)),
    ):
        files = [each for each in sorted(path.glob(f"*{pattern}")) if "optimizer" not in each.name]
        if len(files) == 1:
            return load(files[0], chosen)
        if files:
            names = ", ".join(each.name for each in files[:5])
            raise ModelFileError(f"{path}: expected one {pattern} file; got {names}", "name one of these files")
    contents = ", ".join(sorted(each.name for each in path.iterdir())[:8]) or "nothing"
    raise ModelFileError(f"{path}: {EXPECTED}; got a folder with {contents}")


def _read_file(path: Path, chosen: ChosenLanguages) -> ModelFile:
    if is_argos(path) or path.suffix == ".argosmodel":
        return load_argos(path, chosen)
    if path.suffix == ".npz":
        return load_marian(path, chosen)
    if path.suffix in (".pt", ".pth"):
        return load_fairseq(path, chosen)
    if path.suffix == ".gguf" or is_gguf(path):
        return load_gguf(path)
    if path.name != TOKENIZER and is_llama2c(path):
        return load_llama2c(path)
    raise ModelFileError(f"{path}: {EXPECTED}; got a file of another kind")


def download(name: str) -> Path:
    """Download a repository of the Hub and return its folder; files that no reader needs are left out."""
    try:
        import huggingface_hub
    except ImportError:
        raise RequestError(
            f"{name}: no such file or folder; to download it from the Hub needs huggingface_hub",
            "pip install 'sixfold[hub]'",
        ) from None
    endings = ("json", "safetensors", "bin", "spm", "model", "txt", "npz", "yml", "jinja")
    patterns = ["README.md", *(f"*.{ending}" for ending in endings)]
    try:
        return Path(huggingface_hub.snapshot_download(name, allow_patterns=patterns))
    except Exception as error:  # the library raises many kinds, of its own and of others
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise RequestError(f"{name}: no such file or folder, and the Hub could not be read: {reason}") from None
