"""How large the contents of an archive of weights may be, so that a small file cannot fill the disk or the memory."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

from sixfold.errors import ModelFileError

MAX_RATIO = 20  # of the unpacked contents to the archive; real weights become hardly smaller when they are packed


def check_unpacked_size(path: Path, members: Iterable[zipfile.ZipInfo]) -> None:
    """Raise ModelFileError if members of an archive are much larger than the archive itself."""
    size, limit = sum(info.file_size for info in members), MAX_RATIO * path.stat().st_size
    if size > limit:
        raise ModelFileError(
            f"{path}: expected at most {limit:,} bytes in it, {MAX_RATIO} times its own size; got {size:,}"
        )
