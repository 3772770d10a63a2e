"""Only one process at a time locks a folder, and only temporary files of Sixfold are deleted in it."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from sixfold import files
from sixfold.errors import ConfigError, ModelFileError
from sixfold.files import UNFINISHED_SUFFIX, atomic_write, lock_file, lock_folder

WAITING_INSIDE = """
import sys
from pathlib import Path
from sixfold.files import atomic_write
with atomic_write(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("inside", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def writer(tmp_path):
    """A process that is in the middle of writing tmp_path/run/model.bin."""
    (tmp_path / "run").mkdir()
    command = [sys.executable, "-c", WAITING_INSIDE, str(tmp_path / "run" / "model.bin")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"inside\n"
        yield process
        process.kill()


def unfinished_files(folder):
    return [path.name for path in folder.iterdir() if path.name.endswith(UNFINISHED_SUFFIX)]


def test_locking_a_folder_deletes_no_file_of_another_program(tmp_path):
    foreign_names = [
        ".thesis.zip.part",
        "Downloads/.thesis.zip.part",
        ".model.safetensors.x1.part",
        "a.part",
        "x.sixfold-part",
    ]
    foreign_names += [f"Downloads/.mine.x1{UNFINISHED_SUFFIX}"]  # whose folder is not one of this run
    (tmp_path / "Downloads").mkdir()
    for name in foreign_names:
        (tmp_path / name).write_bytes(b"theirs")
    (tmp_path / "checkpoints").mkdir()
    for folder in (tmp_path, tmp_path / "checkpoints"):
        (folder / f".model.x1{UNFINISHED_SUFFIX}").write_bytes(b"ours")
    (tmp_path / f".folder{UNFINISHED_SUFFIX}").mkdir()
    (tmp_path / f".link{UNFINISHED_SUFFIX}").symlink_to(tmp_path / "a.part")
    with lock_folder(tmp_path, "--out", "is busy", ["checkpoints", "missing-*"]):
        assert all((tmp_path / name).read_bytes() == b"theirs" for name in foreign_names)
        assert sorted(unfinished_files(tmp_path)) == [".folder.sixfold-part", ".link.sixfold-part", "x.sixfold-part"]
        assert unfinished_files(tmp_path / "checkpoints") == []


def test_what_is_being_written_is_left_alone_and_what_a_kill_left_is_deleted(tmp_path, writer):
    with lock_folder(tmp_path / "run", "--out", "is busy"):
        assert len(unfinished_files(tmp_path / "run")) == 1
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert len(unfinished_files(tmp_path / "run")) == 1
    with lock_folder(tmp_path / "run", "--out", "is busy"):
        assert unfinished_files(tmp_path / "run") == []


def test_a_file_that_another_process_is_about_to_delete_is_not_written_to(tmp_path, monkeypatch):
    results = iter([False])  # the other process has locked the first file, and has not deleted it yet
    try_lock = files.try_lock
    monkeypatch.setattr(files, "try_lock", lambda descriptor: next(results, None) is None and try_lock(descriptor))
    with atomic_write(tmp_path / "out") as file:
        first, second = sorted(tmp_path.glob(f".*{UNFINISHED_SUFFIX}"), key=lambda path: path.stat().st_ino)
        (first if file.fileno() and os.fstat(file.fileno()).st_ino != first.stat().st_ino else second).unlink()
        file.write(b"whole")
    assert (tmp_path / "out").read_bytes() == b"whole"


def test_a_file_being_written_is_completed_after_its_folder_is_locked(tmp_path, writer):
    with lock_folder(tmp_path / "run", "--out", "is busy"):
        writer.communicate(timeout=30)
    assert writer.returncode == 0
    assert (tmp_path / "run" / "model.bin").read_bytes() == b"half"


def test_a_folder_is_locked_by_one_process_at_a_time(tmp_path):
    with (
        lock_folder(tmp_path, "--out", "is busy"),
        pytest.raises(ConfigError, match="--out: is busy"),
        lock_folder(tmp_path, "--out", "is busy"),
    ):
        pass
    with lock_folder(tmp_path, "--out", "is busy"):
        pass


def test_an_error_of_the_body_is_not_called_an_error_of_writing(tmp_path):
    with pytest.raises(FileNotFoundError) as caught, atomic_write(tmp_path / "out"):
        (tmp_path / "missing").read_bytes()
    assert caught.value.filename == str(tmp_path / "missing")
    with pytest.raises(TimeoutError), atomic_write(tmp_path / "out"):
        raise TimeoutError("another machine did not answer")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_reported_whenever_it_is_noticed(tmp_path, monkeypatch):
    def on_a_full_disk(_):
        return os.open("/dev/full", os.O_WRONLY), tmp_path / "temporary"

    monkeypatch.setattr(files, "_make_temporary", on_a_full_disk)
    for size in (1, 10**6):  # noticed when it is flushed, and inside of the body
        full = pytest.raises(ModelFileError, match="out: cannot write: No space left on device")
        with full, atomic_write(tmp_path / "out") as file:
            file.write(b"x" * size)


def test_a_long_name_can_be_written(tmp_path):
    name = "长" * 85  # 255 bytes
    with atomic_write(tmp_path / name) as file:
        file.write(b"x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_file_is_locked_on_windows_too(tmp_path, monkeypatch):
    """A table of locked bytes replaces the system calls of Windows, which exist only there."""
    locked = set()

    def locking(descriptor, mode, count):
        byte = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        assert (mode, count) == (2, 1)
        if byte in locked:
            raise PermissionError(errno.EACCES, "Permission denied")
        locked.add(byte)

    monkeypatch.setitem(sys.modules, "msvcrt", SimpleNamespace(locking=locking, LK_NBLCK=2))
    monkeypatch.setattr(files.sys, "platform", "win32")
    with (tmp_path / "x").open("a+b") as first, (tmp_path / "x").open("a+b") as second:
        first.write(b"content")
        lock_file(first, ConfigError("busy"))
        assert first.tell() == 7
        with pytest.raises(ConfigError, match="busy"):
            lock_file(second, ConfigError("busy"))
    assert all(position > 2**30 for _, position in locked)


def test_a_file_system_without_locks_is_reported(tmp_path, monkeypatch, capsys):
    def without_locks(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", without_locks)
    with lock_folder(tmp_path, "--out", "is busy"):
        assert "cannot be locked (No locks available)" in capsys.readouterr().err
    with atomic_write(tmp_path / "out") as file:
        file.write(b"x")
    (tmp_path / f".x{UNFINISHED_SUFFIX}").write_bytes(b"nobody knows whether its writer lives")
    with lock_folder(tmp_path, "--out", "is busy"):
        assert len(unfinished_files(tmp_path)) == 1
