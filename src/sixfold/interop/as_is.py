"""CTranslate2 folders and Argos packages that translate as they are, without a model file."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sixfold.interop.ctranslate2_folder import read_settings, read_vocabularies
from sixfold.modelfile import DeferredWeights, ModelFile
from sixfold.tensorfile import Tensor
from sixfold.text.languages import languages_of

WEIGHTS = "model.bin"
PACKAGE_SUFFIX = ".argosmodel"
COPIED_BYTES = 2**20  # at once


def is_as_is(path: Path) -> bool:
    """Return whether a path is a CTranslate2 folder or an Argos package, packed or not."""
    if not path.is_dir():
        return path.suffix == PACKAGE_SUFFIX and path.is_file()
    is_ctranslate2 = (path / WEIGHTS).is_file() and not (path / "pytorch_model.bin").exists()
    return is_ctranslate2 or _is_unpacked(path)


def _is_unpacked(folder: Path) -> bool:
    return (folder / "metadata.json").is_file() and (folder / "model" / WEIGHTS).is_file()


def open_as_is(path: Path) -> ModelFile:
    """Read a CTranslate2 folder or an Argos package, whose weights CTranslate2 itself opens.

    They are checked and forgotten, and read again when they are looked into. Languages that nothing states are taken
    from a name such as opus-mt-en-fr.
    """
    from sixfold.interop.argos import unpacked  # here, because these import the readers of all toolkits
    from sixfold.interop.huggingface_tokenizers import ChosenLanguages
    from sixfold.interop.sources import read_source

    def read(folder: Path) -> ModelFile:
        source, target = ("", "") if _is_unpacked(folder) else languages_of(path.resolve())
        return read_source(str(folder), ChosenLanguages((source,), (target,)) if source and target else None)

    def read_weights() -> Mapping[str, Tensor]:
        with nullcontext(path) if path.is_dir() else unpacked(path) as folder:
            return read(folder).tensors

    with nullcontext(path) if path.is_dir() else unpacked(path) as folder:
        file = read(folder)
        model = folder / "model" if _is_unpacked(folder) else folder
        weights = file.tensors
        if read_settings(model):  # folders of before CTranslate2 3 have none, and their model.bin says it
            weights = FolderWeights(file, read_weights, _renamed(model), partial(_place_weights, path))
    name = path.resolve().name.removesuffix(PACKAGE_SUFFIX)
    digest = _digest([path] if path.is_file() else sorted([*path.glob("*"), *(path / "model").glob("*")]))
    return replace(file, tensors=weights, checksum=digest, name=name)


class FolderWeights(DeferredWeights):
    """The weights of a CTranslate2 folder, which CTranslate2 opens without converting them."""

    def __init__(
        self,
        file: ModelFile,
        read: Callable[[], Mapping[str, Tensor]],
        other_files: Mapping[str, bytes],
        place_weights: Callable[[Path], None],
    ) -> None:
        """`place_weights` puts model.bin at a path, and `other_files` are those beside it."""
        super().__init__(file.tensors, read)
        self._other_files, self._place_weights = other_files, place_weights

    @contextmanager
    def engine_folder(self) -> Iterator[str]:
        """Yield a folder for CTranslate2, which is removed at the end. Its tokens are ids in digits.

        It takes a folder, because CTranslate2 keeps the contents of files that it is given in memory.
        """
        with TemporaryDirectory(prefix="sixfold-") as folder:
            for name, content in self._other_files.items():
                (Path(folder) / name).write_bytes(content)
            self._place_weights(Path(folder) / WEIGHTS)
            yield folder


def _place_weights(source: Path, target: Path) -> None:
    """Put model.bin of a folder or a package at a path: as a link, or unpacked."""
    if not source.is_dir():
        with zipfile.ZipFile(source) as archive, target.open("wb") as file:
            member = next(each for each in archive.namelist() if each.endswith(f"/model/{WEIGHTS}"))
            with archive.open(member) as content:
                shutil.copyfileobj(content, file, COPIED_BYTES)
        return
    weights = source / "model" / WEIGHTS if _is_unpacked(source) else source / WEIGHTS
    try:
        target.symlink_to(weights.resolve())
    except OSError:  # some systems have no links
        shutil.copyfile(weights, target)


def _renamed(folder: Path) -> dict[str, bytes]:
    """Return vocabularies and settings in which tokens are ids in digits, and CTranslate2 adds none by itself."""
    source, target = read_vocabularies(folder)
    settings = read_settings(folder) | {"add_source_bos": False, "add_source_eos": False}
    ids = {token: str(index) for index, token in reversed(list(enumerate(target)))}
    for name, default in (("unk_token", "<unk>"), ("bos_token", "<s>"), ("eos_token", "</s>")):
        settings[name] = ids.get(settings.get(name, default), "0")
    if settings.get("decoder_start_token") is not None:
        settings["decoder_start_token"] = ids.get(settings["decoder_start_token"], settings["bos_token"])
    sides = {"shared": target} if source is target else {"source": source, "target": target}
    files: dict[str, Any] = {f"{side}_vocabulary.json": [*map(str, range(len(each)))] for side, each in sides.items()}
    return {name: json.dumps(content).encode() for name, content in (files | {"config.json": settings}).items()}


def _digest(paths: Iterable[Path]) -> str:
    """Return a checksum of the names and contents of files."""
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            digest.update(path.name.encode() + b"\0")
            with path.open("rb") as file:
                while part := file.read(COPIED_BYTES):
                    digest.update(part)
    return f"sha256:{digest.hexdigest()}"
