"""Argos packages: a CTranslate2 model, a SentencePiece model and metadata.json in a zip archive."""

from __future__ import annotations

import re
import tempfile
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from sixfold.errors import ModelFileError
from sixfold.interop.archives import check_unpacked_size
from sixfold.interop.ctranslate2_reader import load_ctranslate2
from sixfold.interop.huggingface_tokenizers import ChosenLanguages, read_json, read_pieces
from sixfold.modelfile import ModelFile
from sixfold.text.moses_bpe import MosesBpe
from sixfold.text.sentencepiece import SentencePieceModel

PIECES = ("sentencepiece.model", "bpe.model")
PARTS = ("metadata.json", "README.md", *PIECES)  # beside model/
LANGUAGE = re.compile(r"[A-Za-z]{2,8}([-_][A-Za-z0-9]+)*")


def load_argos(path: Path, chosen: ChosenLanguages) -> ModelFile:
    """Read an Argos package: an archive, or the folder that it was unpacked into."""
    if path.is_dir():
        return _load_folder(path, chosen)
    with unpacked(path) as folder:
        return _load_folder(folder, chosen)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """Yield a folder with the files of a package, which is removed at the end. Errors in it name the package."""
    with tempfile.TemporaryDirectory(prefix="sixfold-") as name:
        _unpack(path, Path(name))
        try:
            yield Path(name)
        except ModelFileError as error:
            raise ModelFileError(str(error).replace(name, str(path)), error.hint) from None


def is_argos(path: Path) -> bool:
    """Return whether a path is an Argos package."""
    if path.is_dir():
        return (path / "metadata.json").exists() and (path / "model").is_dir()
    return zipfile.is_zipfile(path) and any(_inner(name) == "metadata.json" for name in _names(path))


def _names(path: Path) -> list[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError):
        return []


def _inner(name: str) -> str:
    """Return the name of a file inside the one folder of an archive; "" for one that points elsewhere."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    return "" if ".." in parts or name.startswith("/") or len(parts) < 2 else "/".join(parts[1:])


def _unpack(path: Path, folder: Path) -> None:
    """Unpack the files that are needed. Nothing is written outside of the folder."""
    try:
        with zipfile.ZipFile(path) as archive:
            members = {
                info: _inner(info.filename)
                for info in archive.infolist()
                if _inner(info.filename) in PARTS or _inner(info.filename).startswith("model/")
            }
            _check_members(path, members)
            for info, name in members.items():
                if info.is_dir():
                    continue
                target = folder / name
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(info))
    except (OSError, zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise ModelFileError(f"{path}: expected an Argos package; {error}", "download the file again") from None


def _check_members(path: Path, members: Mapping[zipfile.ZipInfo, str]) -> None:
    """Raise ModelFileError if a package lacks a file, or is much larger when it is unpacked, before that is done."""
    names = set(members.values())
    for required in (["metadata.json"], ["model/model.bin"], PIECES):
        if names.isdisjoint(required):
            raise ModelFileError(f"{path}: expected {' or '.join(required)}; found none", "download the file again")
    check_unpacked_size(path, members)


def _load_folder(folder: Path, chosen: ChosenLanguages) -> ModelFile:
    about = read_json(folder / "metadata.json")
    languages = _language(folder, about, "from_code", chosen.source), _language(folder, about, "to_code", chosen.target)
    file = load_ctranslate2(folder / "model", chosen, _read_pieces(folder, *languages), languages)
    version = about.get("package_version")
    card = {**file.card, "parent": f"Argos package {'-'.join(languages)} {version or ''}".strip()}
    return _with_target_prefix(file, about.get("target_prefix"), card)


def _language(folder: Path, about: Mapping[str, Any], key: str, chosen: Sequence[str]) -> str:
    """Return the language that metadata.json states, or none where the user chooses."""
    code = about.get(key)
    if isinstance(code, str) and LANGUAGE.fullmatch(code):
        return code
    if not chosen:
        raise ModelFileError(
            f"{folder}/metadata.json: {key}: expected a language such as en; got {code!r:.60}",
            "import it with --from and --to",
        )
    return ""


def _read_pieces(folder: Path, source: str, target: str) -> SentencePieceModel | MosesBpe:
    """Return how a package cuts texts: by a SentencePiece model, or by BPE codes after the tokeniser of Moses."""
    if (folder / "sentencepiece.model").exists():
        return read_pieces(folder / "sentencepiece.model")
    if (folder / "bpe.model").exists():
        return MosesBpe.of((folder / "bpe.model").read_bytes(), source, target, str(folder / "bpe.model"))
    raise ModelFileError(f"{folder}: expected sentencepiece.model or bpe.model; found none")


def _with_target_prefix(file: ModelFile, prefix: object, card: dict[str, object]) -> ModelFile:
    """Return the model with the token that a package makes every target begin with."""
    if not prefix:
        return replace(file, card=card)
    tokens = (file.target_tokenizer or file.tokenizer).tokens if file.tokenizer is not None else []
    if prefix not in tokens:
        raise ModelFileError(f"metadata.json: target_prefix: expected a token of the vocabulary; got {prefix!r}")
    assert file.sequence_format is not None
    layout = replace(file.sequence_format, before_target=(tokens.index(str(prefix)),))
    return replace(file, card=card, sequence_format=layout)
