"""The models of a server. When a file changes it is loaded again, and running requests finish with the old models."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sixfold.engines.memory import file_memory, writing_memory
from sixfold.engines.pool import ModelPool, Pooled
from sixfold.errors import RequestError, SixfoldError
from sixfold.explorer.explore import Explorer
from sixfold.generation.generator import Generator
from sixfold.interop.as_is import is_as_is
from sixfold.translation.cancellation import Cancelled
from sixfold.translation.loading import MODEL_SUFFIX, reader_of
from sixfold.translation.translator import Translator

FileStamps = tuple[tuple[int, int, int], ...]  # inode, size and modification time in nanoseconds of each file


class LoadedModels:
    """A translator and an explorer of the same model files, and how many requests use them.

    They are closed once they have been replaced and no request uses them any more.
    """

    def __init__(self, paths: Sequence[Path], threads: int | None, memory: int | None = None) -> None:
        pool = None if memory is None else ModelPool(memory)
        writing = [path for path in paths if writes_texts(path)]
        translating = tuple(path for path in paths if path not in writing)
        self.translator = Translator(translating, "cpu", threads, memory=pool)
        self.generators: dict[str, ServedGenerator] = {}  # by the name that requests give
        for path in writing:
            generator = ServedGenerator(path, threads, pool)
            self.generators.setdefault(generator.name, generator)
        self.explorer = Explorer(
            self.translator, text_models={name: each.use for name, each in self.generators.items()}
        )
        files = [
            *((path, file.name, file) for path, file in zip(translating, self.translator.files, strict=True)),
            *((each.path, name, each.file) for name, each in self.generators.items()),
        ]
        self.cards: list[dict[str, Any]] = [
            {"name": name, "checksum": file.checksum, "bytes": size_of(path), "card": file.card}
            for path, name, file in files
        ]
        self.users = 0
        self.is_replaced = False

    def close(self) -> None:
        self.explorer.close()
        self.translator.close()
        for generator in self.generators.values():
            generator.close()


class ServedGenerator:
    """A decoder-only model of a server. One of a pool is opened when it is first used, and closed for others."""

    def __init__(self, path: Path, threads: int | None, pool: ModelPool | None) -> None:
        self.path = path
        reader = reader_of(path)
        file = reader()
        self.name = path.parent.name if path.stem == "model" else path.stem
        self._opened: Generator | None = None
        self._pooled: Pooled[Generator] | None = None
        if pool is None:
            self.file, self._opened = file, Generator(file, "cpu", threads)
        else:
            self.file = file.header()
            size = file_memory(file) + writing_memory(file)
            self._pooled = Pooled(pool, size, lambda: Generator(reader(), "cpu", threads))

    @contextmanager
    def use(self) -> Iterator[Generator]:
        """Yield the generator; it stays open until the context ends."""
        if self._pooled is None:
            assert self._opened is not None
            yield self._opened
        else:
            with self._pooled.pool.use(self._pooled) as opened:
                yield opened

    def close(self) -> None:
        """Free the memory."""
        for each in (self._opened, self._pooled):
            if each is not None:
                each.close()


def writes_texts(path: Path) -> bool:
    """Return whether a model is decoder-only; the others translate."""
    return not is_as_is(path) and reader_of(path)().config.model.kind == "decoder"


class ReloadingModels:
    """The models that are loaded now. `generation` counts how often they have been replaced."""

    def __init__(
        self,
        paths: Sequence[Path],
        threads: int | None = None,
        folder: Path | None = None,
        memory: int | None = None,
    ) -> None:
        """Load the models at `paths`, and those in a folder, in which models may come and go.

        With `memory`, they are opened when they are first used, and the open ones take at most so many bytes.
        """
        self._named, self._folder = list(paths), folder
        self._threads, self._memory = threads, memory
        self._lock = threading.Lock()
        self._stamps = self._read_stamps()
        self._loaded = LoadedModels(self._paths(), threads, memory)
        self.generation = 0

    @contextmanager
    def borrow(self) -> Iterator[LoadedModels]:
        """Yield the loaded models; they stay open until the context ends."""
        with self._lock:
            loaded = self._loaded
            loaded.users += 1
        with self._released(loaded):
            yield loaded

    @contextmanager
    def hold(self, loaded: LoadedModels) -> Iterator[None]:
        """Keep models open that may have been replaced; Cancelled is raised if they are closed already."""
        with self._lock:
            if loaded.is_replaced and not loaded.users:
                raise Cancelled
            loaded.users += 1
        with self._released(loaded):
            yield

    @contextmanager
    def _released(self, loaded: LoadedModels) -> Iterator[None]:
        """Count one user less at the end, and close models that are replaced when the last user has gone."""
        try:
            yield
        finally:
            with self._lock:
                loaded.users -= 1
                is_last_user = loaded.is_replaced and not loaded.users
            if is_last_user:
                loaded.close()

    @property
    def directions(self) -> list[tuple[str, str]]:
        return self._loaded.translator.directions

    @property
    def generator_names(self) -> list[str]:
        return list(self._loaded.generators)

    @property
    def cards(self) -> list[dict[str, Any]]:
        return self._loaded.cards

    def refresh(self) -> str:
        """Load the models again if a file has changed since the last call, and return a message for the log.

        The message is empty if nothing has changed. If the new files cannot be loaded, the old models stay in use.
        """
        try:
            stamps = self._read_stamps()
        except (OSError, SixfoldError) as error:
            stamps = ((0, 0, getattr(error, "errno", None) or 0),)
        if stamps == self._stamps:
            return ""
        self._stamps = stamps
        try:
            paths = self._paths()
            names = ", ".join(path.name for path in paths)
            new = LoadedModels(paths, self._threads, self._memory)
        except (SixfoldError, OSError) as error:
            return f"a changed model could not be loaded; the old one stays in use: {error}"
        with self._lock:
            old, self._loaded = self._loaded, new
            old.is_replaced = True
            self.generation += 1
            is_idle = not old.users
        if is_idle:
            old.close()
        return f"loaded {names} again, because a file has changed"

    def close(self) -> None:
        self._loaded.close()

    def _paths(self) -> list[Path]:
        """Return the files and folders of all models; RequestError is raised if the folder of models has none."""
        if self._folder is None:
            return list(self._named)
        models = [
            path
            for path in sorted(self._folder.glob("[!.]*"))
            if is_as_is(path) or (path.is_file() and path.suffix == MODEL_SUFFIX)
        ]
        if not models and not self._named:
            raise RequestError(
                f"{self._folder}: expected a folder with model files (*{MODEL_SUFFIX}), Argos packages or CTranslate2 "
                "folders; found none",
                "write one with `sixfold train` or `sixfold import`",
            )
        return [*self._named, *models]

    def _read_stamps(self) -> FileStamps:
        status = [path.stat() for model in self._paths() for path in files_of(model)]
        return tuple((each.st_ino, each.st_size, each.st_mtime_ns) for each in status)


def files_of(path: Path) -> list[Path]:
    """Return the file of a model, or the files of its folder."""
    return [each for each in sorted(path.rglob("*")) if each.is_file()] if path.is_dir() else [path]


def size_of(path: Path) -> int:
    """Return the size of a model's file, or of all files of its folder, in bytes."""
    return sum(each.stat().st_size for each in files_of(path))
