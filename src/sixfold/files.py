"""Everything that touches a disk safely: atomic writes, locks, and folders that one process holds at a time."""

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

UNFINISHED = ".sixfold-part"  # ends the names of files that `atomic` has not finished; no other program uses it


@contextmanager
def atomic(path: Path) -> Iterator[BinaryIO]:
    """A file that appears whole under its name, or not at all, whatever happens meanwhile.

    A failure to write is a ModelFileError; every other exception of the body passes unchanged.
    """
    path = check_target(path)
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
                if os.name == "posix":  # the lock lasts until it has its name; Windows renames no open file
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
    """A file that remembers why it could not be written, so that this is told from other errors of the same kind."""

    error: OSError | None = None

    def write(self, data: Any, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            self.error = error
            raise


def _make_temporary(path: Path) -> tuple[int, Path]:
    """A file beside the one that it will become, locked while it is being written."""
    while True:
        # Shortened, as a name has 255 bytes at most and four go into a character.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=UNFINISHED, dir=path.parent)
        is_ours = True
        with suppress(OSError):  # not every file system has locks
            is_ours = lock(descriptor)
        if is_ours and Path(name).exists():
            return descriptor, Path(name)
        os.close(descriptor)  # discard_unfinished has taken it before it was locked, and deletes it


def discard_unfinished(folder: Path) -> None:
    """Delete what a process that was killed inside of `atomic` left in this folder, but not in folders below it.

    Only names that `atomic` makes, and only files that are not locked: a process that is still writing holds a lock.
    """
    for path in folder.glob(f".*{UNFINISHED}"):
        with suppress(OSError):
            if not path.is_symlink() and path.is_file():
                with path.open("rb") as file:
                    if lock(file.fileno()):
                        path.unlink()


def lock(descriptor: int) -> bool:
    """Lock an open file until it is closed or the process ends, whatever ends it; False: another one has locked it.

    An OSError means that its file system has no locks.
    """
    if sys.platform == "win32":
        import msvcrt

        position = os.lseek(descriptor, 0, os.SEEK_CUR)
        # One byte far behind the content: on Windows nobody else could read a byte that is locked.
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


def check_target(path: Path) -> Path:
    """Where a file may be written: what a link points to, and never over a device, a folder or an unwritable file."""
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
    """What the user wants new files to be; mkstemp makes them private. It can only be read by setting it."""
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
def claim(folder: Path, where: str, busy: str, subfolders: Sequence[str] = ()) -> Iterator[None]:
    """Make the folder and lock it, as two processes that write to one folder would ruin both. A kill unlocks it.

    What an earlier process left unfinished there is deleted, in the folder itself and in those `subfolders` (patterns
    such as "data/tokens-*") that belong to it; nothing else is.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("a+b")
    except OSError as error:
        raise ConfigError(f"{where}: cannot write: {error.strerror}", "choose a folder of your own") from None
    with lock:
        hold(lock, ConfigError(f"{where}: {busy}", "wait for it, or choose another folder"))
        for own in (folder, *(path for pattern in subfolders for path in folder.glob(pattern))):
            discard_unfinished(own)
        yield


def hold(file: BinaryIO, refusal: ConfigError) -> None:
    """Lock a file until it is closed or the process ends, whatever ends it. Raise `refusal` where it is locked already.

    On a file system without locks nothing can be held: a note on standard error says so.
    """
    try:
        is_ours = lock(file.fileno())
    except OSError as error:
        print(
            f"note: {file.name}: cannot be locked ({error.strerror}); make sure that no other process writes there",
            file=sys.stderr,
        )
        return
    if not is_ours:
        raise refusal
