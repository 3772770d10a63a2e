"""The input of `sixfold translate`: whether an argument is a text or a file, and how files and pipes are opened."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from sixfold.errors import DataError, RequestError
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.text.languages import DENSE, letters
from sixfold.translation.documents.formats import FORMATS

STDIN = Path("-")
# Suffixes of file names that single words rarely have. Those of programs are left out, because Node.js is a word.
OTHER_SUFFIXES = (
    ".txt .text .log .adoc .rtf .doc .pdf .xls .ppt .xml .jsonl .ndjson .tmx .toml .ini .cfg .conf .properties .resx "
    ".strings .ass .sub .sbv .ttml .gz .xz .zst .bz2 .zip .7z .tar .tgz .rar .png .jpg .jpeg .gif .webp .mp3 .mp4 .wav "
    ".safetensors .zh .en .ja .ko .src .tgt"
)
# Suffixes of text files that domains have too: amazon.de alone is a word, but data/train.de in a folder is a file.
DOMAIN_SUFFIXES = {".org", ".de", ".fr", ".es", ".ru", ".pt", ".cs", ".pl", ".ar"}
# 3.5 is a number and Python3.8 a name, although man pages have such suffixes.
FILE_SUFFIXES = {
    *OTHER_SUFFIXES.split(),
    *(suffix for each in FORMATS.values() for suffix in each.suffixes if not suffix[1:].isdigit()),
}
LIKE_A_FILE = re.compile(r"[\w./\\~-]+\.[A-Za-z]\w{0,4}")


def check_inputs(texts: Sequence[str], inputs: Sequence[Path | None], needs_files: bool) -> None:
    """Raise RequestError if there are several texts, or texts among files."""
    if needs_files and not texts:
        raise RequestError("--workers, --field: expected files; got none", "name them")
    if len(texts) < 2 and not needs_files:
        return
    for text, path in zip(texts, inputs, strict=True):
        if path is not None and path != STDIN:
            continue
        if any(argument.split()[1:] for argument in texts):
            hint = "translate one text at a time, or one per line: printf '%s\\n' TEXT... | sixfold translate"
        else:
            hint = "put quotes around the text" if not needs_files else "name a file"
        raise RequestError(
            f"expected one text, or files; got {len(texts)} arguments, of which {text!r} is not a file", hint
        )


def input_path(text: str) -> Path | None:
    """Return the file that an argument names, STDIN for `-`, or None if the argument is a text."""
    path = Path(text)
    try:
        if not text or (path != STDIN and not path.exists()):
            if is_missing_file(text):
                raise DataError(f"{text}: no such file", "to translate these words as a text, add --text")
            return None
    except (OSError, ValueError):  # too long for a file name, or with a NUL character
        return None
    return path


def is_missing_file(text: str) -> bool:
    """Return whether an argument looks like the name of a file that does not exist, by its suffix or as a path.

    Words such as `e.g.`, `Node.js`, `example.org`, `and/or` and URLs do not look like files. Texts with a space do not
    either. 笔记.md does; 请打开main.py does not.
    """
    if re.search(r"\s|://", text) or not text.isprintable():
        return False
    path = Path(text)
    if letters(*DENSE).search(text):
        is_name = re.fullmatch(r"[\w./\\-]+", text) and letters(*DENSE).search(path.stem[-1:])
        return bool(is_name) and path.suffix.lower() in FILE_SUFFIXES
    if path.stem and path.suffix.lower() in FILE_SUFFIXES:
        return True
    folder, separator, name = text.replace("\\", "/").rpartition("/")
    if not separator or not name:
        return False
    if path.stem and path.suffix.lower() in DOMAIN_SUFFIXES:
        return True
    return folder in ("", ".", "..", "~") or folder.startswith(("/", "./", "../", "~/")) or Path(folder).is_dir()


def display_name(path: Path) -> str:
    """Return the name of an input for messages."""
    return str(path) if path != STDIN else "standard input"


def read_all(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        return file.read()


def open_input(path: Path, stack: ExitStack, is_binary: bool = False) -> int:
    """Return the descriptor of a file or of standard input, or raise DataError.

    The beginning of a file is checked to be UTF-8. Standard input is checked by its reader.
    """
    if path == STDIN:
        if sys.stdin is None:
            raise DataError("input: standard input is closed", "name a file")
        return sys.stdin.fileno()
    try:
        file = stack.enter_context(path.open("rb", buffering=0))
        if path.is_file() and not is_binary:
            check_utf8(os.pread(file.fileno(), SAMPLE_BYTES, 0), str(path))
        return file.fileno()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
