"""Safe access to the disk: atomic writes, file locks, and folders that only one process may write to."""

from __future__ import annotations

import io
import os
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from sixfold.errors import ConfigError, ModelFileError

UNFINISHED_SUFFIX = ".sixfold-part"  # of temporary files of `atomic_write`; no other program uses it


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Open a file that gets its name only when it is complete, so that a crash never leaves a partial file.

    A failure to write raises ModelFileError; every other exception of the body passes unchanged.
    """
    path = check_output_path(path)
    writer: _Writer | None = None
    temporary: Path | None = None
    try:
        with _cannot_write(path):
            mode = path.stat().st_mode if path.exists() else 0o666 & ~_umask()
            descriptor, temporary = _make_temporary(path)
        writer = _Writer(descriptor, "wb")
        with io.BufferedWriter(writer) as file:
            yield file
            with _cannot_write(path):
                file.flush()
                os.fsync(file.fileno())
                temporary.chmod(stat.S_IMODE(mode))
                if os.name == "posix":  # renamed while it is locked; Windows cannot rename an open file
                    temporary.replace(path)
        with _cannot_write(path):
            if os.name != "posix":
                temporary.replace(path)
            _sync_folder(path.parent)
    except OSError as error:
        if writer is not None and error is writer.error:
            raise ModelFileError(f"{path}: cannot write: {error.strerror or error}") from None
        raise
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


@contextmanager
def _cannot_write(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ModelFileError(f"{path}: cannot write: {error.strerror or error}") from None


class _Writer(io.FileIO):
    """A file that keeps the error of a failed write, so that it can be distinguished from other OSErrors."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


def _make_temporary(path: Path) -> tuple[int, Path]:
    """Create a temporary file in the folder of `path` and lock it; return its descriptor and its path."""
    while True:
        # Shortened, because a file name has at most 255 bytes, and a character up to four.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=UNFINISHED_SUFFIX, dir=path.parent)
        is_locked = True
        with suppress(OSError):  # not every file system has locks
            is_locked = try_lock(descriptor)
        if is_locked and Path(name).exists():
            return descriptor, Path(name)
        os.close(descriptor)  # another process locked it first in discard_unfinished, and deletes it


def discard_unfinished(folder: Path) -> None:
    """Delete the temporary files that a killed process left in this folder; subfolders are not searched.

    Only names that `atomic_write` makes are deleted, and only unlocked files: a process that is still writing has
    locked its file.
    """
    for path in folder.glob(f".*{UNFINISHED_SUFFIX}"):
        with suppress(OSError):
            if not path.is_symlink() and path.is_file():
                with path.open("rb") as file:
                    if try_lock(file.fileno()):
                        path.unlink()


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends; return False if another process has locked it.

    Raises OSError if the file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        # Lock one byte far behind the content, because on Windows no other process could read a locked byte.
        os.lseek(descriptor, 2**31 - 2, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(descriptor, position, os.SEEK_SET)
    else:
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def check_output_path(path: Path) -> Path:
    """Return the resolved path for a file to write; raise ModelFileError if it cannot be written there.

    A folder, a device, a file without write permission and a missing parent folder are errors.
    """
    try:
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise ModelFileError(f"{path}: cannot write: expected a file name; got a folder or a device")
        if path.exists() and not os.access(path, os.W_OK):
            raise ModelFileError(f"{path}: cannot write: Permission denied")
        if not path.parent.is_dir():
            raise ModelFileError(f"{path}: cannot write: {path.parent}: No such file or directory")
    except OSError as error:
        raise ModelFileError(f"{path}: cannot write: {error.strerror}") from None
    return path


def _umask() -> int:
    """Return the user's mask for new files, which mkstemp ignores. It can only be read by setting it."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # Windows cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def lock_folder(folder: Path, where: str, busy: str, subfolders: Sequence[str] = ()) -> Iterator[None]:
    """Create a folder and lock it, so that only one process writes to it. The lock ends with the process.

    Temporary files of an earlier process are deleted in the folder and in its `subfolders`, which are patterns such as
    "data/tokens-*". `where` and `busy` are the parts of the error message for a folder that is locked already.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise ConfigError(f"{where}: cannot write: {error.strerror}", "choose a folder of your own") from None
    with lock:
        lock_file(lock, ConfigError(f"{where}: {busy}", "wait for it, or choose another folder"))
        for path in (folder, *(path for pattern in subfolders for path in folder.glob(pattern))):
            discard_unfinished(path)
        yield


def lock_file(file: BinaryIO, refusal: ConfigError) -> None:
    """Lock a file until it is closed or the process ends; raise `refusal` if it is locked already.

    On a file system without locks a note is printed to standard error and nothing is locked.
    """
    try:
        is_locked = try_lock(file.fileno())
    except OSError as error:
        print(
            f"note: {file.name}: cannot be locked ({error.strerror}); make sure that no other process writes there",
            file=sys.stderr,
        )
        return
    if not is_locked:
        raise refusal
