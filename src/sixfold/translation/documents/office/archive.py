"""Documents that are ZIP archives: their members with text are read, and written back in the same order."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase

from sixfold.errors import DataError

MAX_UNPACKED_BYTES = 1 << 29  # of all members
MAX_TEXT_BYTES = 1 << 26  # of the members that are read; a book has some millions


def read(
    data: bytes, name: str, form: str, required: str, has_text: Callable[[str], bool], max_text_bytes: int
) -> dict[str, bytes]:
    """Return the members that have text; raise DataError, before they are unpacked, if they are too large.

    `required`: a member that every document of the format has; * stands for any characters.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            entries = file.infolist()
            if not any(fnmatchcase(entry.filename, required) for entry in entries):
                raise DataError(f"{name}: expected {form}; it has no {required}")
            members = [entry for entry in entries if has_text(entry.filename)]
            for group, limit in ((entries, MAX_UNPACKED_BYTES), (members, max_text_bytes)):
                if sum(entry.file_size for entry in group) > limit:
                    raise DataError(f"{name}: expected at most {limit:,} bytes when it is unpacked; got more")
            return {entry.filename: file.read(entry) for entry in members}
    # zipfile raises these for damage, for unknown compression methods, and for passwords.
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError) as error:
        raise DataError(f"{name}: expected {form}; {error}") from None


def write(data: bytes, members: Mapping[str, bytes]) -> bytes:
    """Return the same archive with some members replaced; the other members and the order stay."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        new.comment = old.comment
        for entry in old.infolist():
            content = members[entry.filename] if entry.filename in members else old.read(entry)
            new.writestr(entry, content, entry.compress_type)
    return out.getvalue()
