"""A corpus is a stream of pairs, whether two files of lines, a TSV or JSON lines hold them, packed or not."""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from sixfold.config import DataConfig
from sixfold.errors import ConfigError, DataError
from sixfold.recipe import CorpusConfig, Way
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.text.languages import guess_language, language_of, languages_of

Progress = Callable[[int], None]

MAX_LINE = 16 * 2**20  # bytes; a file without line ends must not fill the memory
BUFFER = 2**20
GLANCE = 1000  # pairs that tell the language where the names do not
MEAL = 4096  # compressed bytes at a time: even a block of nothing but zeros grows to no more than 128 MiB
BOM = b"\xef\xbb\xbf"
TABLES = (".tsv", ".txt")
RECORDS = (".jsonl", ".json")


class Pair(NamedTuple):
    """A sentence and its translation, and the line they stand on, counted from 1."""

    line: int
    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Files of pairs that are read as one stream, in constant memory."""

    name: str
    files: tuple[Path, ...]
    weight: float = 1.0
    columns: tuple[str, ...] = ()
    languages: tuple[str, str] = ("", "")  # the names that JSON may give to the two sides
    way: Way = "both"
    tag: str = ""

    def __post_init__(self) -> None:
        if self.columns and len(self.files) == 2:
            raise ConfigError(f"corpus.columns: expected none for two files of lines; got {list(self.columns)!r}")
        numbers = all(column.isdecimal() and int(column) for column in self.columns)
        if self.format in TABLES and not numbers:
            raise ConfigError(f"corpus.columns: expected numbers from 1 for a TSV; got {list(self.columns)!r}")
        if len(self.files) == 2 and same_file(*self.files):
            raise DataError(
                f"{self.files[0]}: expected a file of translations beside it; got the same file twice",
                "name the file of the other language second",
            )
        for file in self.files if len(self.files) == 2 else ():
            if uncompressed(file).suffix.lower() in (".tsv", ".toml", *RECORDS):
                raise DataError(f"{file}: expected a file of lines beside another; got one of pairs", "name it alone")
        if len(self.files) == 1 and self.format not in TABLES + RECORDS:
            raise DataError(
                f"{self.files[0]}: expected one file of pairs to end in {', '.join(TABLES + RECORDS)}",
                "name both files where each language has its own",
            )

    @classmethod
    def from_config(cls, config: CorpusConfig, folder: Path, languages: tuple[str, str] = ("", "")) -> Corpus:
        files = tuple(folder / file for file in config.files)
        name = config.name or uncompressed(files[0]).stem
        return cls(name, files, config.weight, config.columns, languages, config.way, config.tag)

    @property
    def purpose(self) -> dict[str, str]:
        """What it is for, where that is not both directions and nothing is told of its origin."""
        return {} if (self.way, self.tag) == ("both", "") else {"way": self.way, "tag": self.tag}

    @property
    def format(self) -> str:
        """The ending of the first file's name, less that of its compression."""
        return uncompressed(self.files[0]).suffix.lower()

    def pairs(self, advance: Progress | None = None, fingerprint: Fingerprint | None = None) -> Iterator[Pair]:
        """Every pair, in order. `advance` is told the bytes read from disk, for a progress bar.

        `fingerprint` is given every byte of the files, so that after the last pair it holds what `digest` returns.
        """
        before = self.stamp()
        if len(self.files) == 2:
            yield from self._from_lines(advance, fingerprint)
        else:
            columns: tuple[str, ...] = ()
            for line, text in enumerate(lines(self.files[0], advance, fingerprint), start=1):
                if not text.strip():  # most often the last: a pair of nothing for the cleaning to count
                    yield Pair(line, "", "")
                    continue
                where = f"{self.files[0]}:{line}"
                record = text.split("\t") if self.format in TABLES else parse_record(text, where)
                columns = columns or self.columns or self._columns(record, where)
                yield Pair(line, *(cell(record, column, where) for column in columns))
        for file, old, new in zip(self.files, before, self.stamp(), strict=True):
            if old != new:
                raise DataError(f"{file}: changed while it was read", "start again when nothing writes to it")

    def where(self, line: int) -> str:
        """What a person looks for to see a pair: the file and the line."""
        return f"{self.files[0].name}:{line}"

    @property
    def size(self) -> int:
        """Bytes on disk, all files together."""
        return sum(regular(file).st_size for file in self.files)

    def stamp(self) -> list[list[int]]:
        """Size and time of change of every file: a cheap sign that one was written to."""
        return [[status.st_size, status.st_mtime_ns] for status in map(regular, self.files)]

    def digest(self) -> str:
        """A hash of the bytes of all files."""
        fingerprint = Fingerprint()
        for file in self.files:
            with opened(file, fingerprint) as raw:
                while raw.read(BUFFER):
                    pass
        return fingerprint.digest(self.files)

    def _from_lines(self, advance: Progress | None, fingerprint: Fingerprint | None) -> Iterator[Pair]:
        sides = [lines(file, advance, fingerprint) for file in self.files]
        for line, (source, target) in enumerate(zip_longest(*sides), start=1):
            if source is None or target is None:
                longer, shorter = (0, 1) if target is None else (1, 0)
                total = line + sum(1 for _ in sides[longer])
                raise DataError(
                    f"{self.files[shorter]}: expected as many lines as {self.files[longer]} ({total}); got {line - 1}",
                    "line n of one file must be the translation of line n of the other",
                )
            yield Pair(line, source.strip(), target.strip())

    def _columns(self, record: list[str] | dict[str, Any], where: str) -> tuple[str, ...]:
        """Which two hold the pair, told from the first record: it must be plain, or the user has to say."""
        if isinstance(record, list):
            if len(record) > 2:
                raise DataError(
                    f"{where}: expected two columns; got {len(record)}, and nobody said which two",
                    "in a recipe: [[corpus]] with columns = [1, 2]",
                )
            return ("1", "2")
        texts = [name for name, value in record.items() if isinstance(value, str)]
        for names in (("source", "target"), self.languages):
            if set(names) <= record.keys():
                return names
        if len(texts) != 2:
            raise DataError(
                f"{where}: expected two fields of text; got {', '.join(texts)[:100] or 'none'}",
                "say which: --set data.source=zh --set data.target=en, or columns in a recipe",
            )
        return tuple(texts)


def parse_record(text: str, where: str) -> dict[str, Any]:
    """A line of JSON; what `translation` holds, as in datasets of Hugging Face, stands for the whole."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON: {error}", "every line must be an object of its own") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object; got {text[:60]!r}", 'for example {"zh": "…", "en": "…"}')
    return record


def cell(record: list[str] | dict[str, Any], column: str, where: str) -> str:
    """One side of a pair."""
    if isinstance(record, list):
        if int(column) > len(record):
            raise DataError(
                f"{where}: expected {column} columns or more; got {len(record)}",
                "columns are separated by tabs; `columns` in a recipe says which two hold the pair",
            )
        return record[int(column) - 1].strip()
    if column not in record:
        raise DataError(f"{where}: expected a field {column}; got {', '.join(record)[:100] or 'none'}")
    return one_line(record[column], f"{where}: {column}")


def languages_named(corpus: CorpusConfig) -> tuple[str, str]:
    """The languages that the names of the files tell; empty where they do not."""
    files = [Path(file) for file in corpus.files]
    return (language_of(files[0]), language_of(files[1])) if len(files) == 2 else languages_of(files[0])


def languages_in(config: DataConfig, corpus: CorpusConfig, folder: Path) -> tuple[str, str]:
    """Of the two sides: as set, else as the file names say, else as the script of the text tells."""
    named = languages_named(corpus)
    known = (config.source or named[0], config.target or named[1])
    if all(known):
        return known
    pairs = list(islice(Corpus.from_config(corpus, folder, known).pairs(), GLANCE))
    guessed = (guess_language(pair.source for pair in pairs), guess_language(pair.target for pair in pairs))
    if guessed[0] == guessed[1]:  # two languages of one script cannot be told apart by it
        guessed = ("", "")
    return known[0] or guessed[0], known[1] or guessed[1]


def one_line(value: Any, where: str) -> str:
    """A text from JSON as a line of a file would hold it."""
    if not isinstance(value, str):
        raise DataError(f"{where}: expected a string; got {json.dumps(value)[:60]}")
    # JSON alone can write half a surrogate pair, which no file and no tokeniser takes.
    whole = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return whole.replace("\r", " ").replace("\n", " ").strip()


def lines(path: Path, advance: Progress | None = None, fingerprint: Fingerprint | None = None) -> Iterator[str]:
    """The lines of a file, plain or compressed, without their ends; bytes that are not UTF-8 become U+FFFD."""
    with opened(path, fingerprint) as disk:
        packed = path.suffix.lower() in DECOMPRESSORS
        text = io.BufferedReader(_Decompressed(disk, path), BUFFER) if packed else disk
        check_utf8(text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES], str(path))  # type: ignore[attr-defined] # both are BufferedReader
        done = number = 0
        # Split at \n alone: U+2028 or a form feed inside a sentence would shift one side against the other.
        while raw := text.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                raise DataError(f"{path}:{number}: expected lines of at most {MAX_LINE} bytes", "is it a text file?")
            if number == 1:
                raw = raw.removeprefix(BOM)
            if advance is not None and number % 1000 == 0:
                position = disk.tell()
                advance(position - done)
                done = position
            yield raw.decode("utf-8", "replace").rstrip("\r\n")
        if advance is not None:
            advance(disk.tell() - done)


class Fingerprint:
    """Hashes of files, made while they are read from beginning to end."""

    def __init__(self) -> None:
        self._hashes: dict[Path, Any] = {}

    def reader(self, path: Path) -> BinaryIO:
        """The file, so that whatever is read of it is hashed."""
        self._hashes[path] = hashlib.blake2b()
        return io.BufferedReader(_HashedFile(path, self._hashes[path]), BUFFER)

    def digest(self, files: Sequence[Path]) -> str:
        """One hash of several files that have been read.

        Each file is hashed by itself: a line that moves from the end of one to the start of the next is a change.
        """
        whole = hashlib.blake2b(digest_size=16)
        for file in files:
            whole.update(self._hashes[file].digest())
        return whole.hexdigest()


class _HashedFile(io.FileIO):
    """A file whose bytes go to a hash on their way to the reader."""

    def __init__(self, path: Path, whole: Any) -> None:
        super().__init__(path)
        self._whole = whole

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._whole.update(memoryview(buffer)[:count])
        return count


@contextmanager
def opened(path: Path, fingerprint: Fingerprint | None = None) -> Iterator[BinaryIO]:
    """A file of the user's; whatever the system says against it becomes one line with its name."""
    regular(path)
    try:
        with path.open("rb", BUFFER) if fingerprint is None else fingerprint.reader(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def regular(path: Path) -> os.stat_result:
    """What the system knows of a file that can be read twice, as no pipe or device can."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: expected a file; got a folder or a device")
    return status


def same_file(one: Path, other: Path) -> bool:
    """Whether two names lead to one file, by a link or by another spelling of the path."""
    try:
        return one == other or one.samefile(other)
    except OSError:  # a missing file is named when it is opened
        return False


def uncompressed(path: Path) -> Path:
    """The name that a file has once it is unpacked."""
    return path.with_suffix("") if path.suffix.lower() in DECOMPRESSORS else path


class _Decompressed(io.RawIOBase):
    """What is packed in a file, for a BufferedReader; unlike the readers of the libraries it always notices a cut."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._make = DECOMPRESSORS[path.suffix.lower()]
        self._stream: Any = None
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            self._packed = self._packed or self._file.read(MEAL)
            if not self._packed:
                if self._stream is not None:
                    raise self._damaged("it ends too early")
                return 0
            self._ready = memoryview(self._unpack())
        size = min(len(buffer), len(self._ready))
        buffer[:size] = self._ready[:size]
        self._ready = self._ready[size:]
        return size

    def _unpack(self) -> bytes:
        """The contents of what was last read; where a stream ends another may begin, perhaps after padding."""
        if self._stream is None:
            self._packed = self._packed.lstrip(b"\0")
            if not self._packed:
                return b""
            self._stream = self._make()
        try:
            ready: bytes = self._stream.decompress(self._packed)
        except Exception as error:  # every library has a class of its own
            raise self._damaged(str(error)) from None
        self._packed = self._stream.unused_data
        if self._stream.eof:
            self._stream = None
        return ready

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self._path}: damaged or not compressed: {reason}", "copy or download the file again")


def _zstd() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DataError("reading .zst files needs zstandard, which is not installed", "pip install zstandard") from None
    return zstandard.ZstdDecompressor().decompressobj()


# Each makes an object with `decompress`, `eof` and `unused_data`. 16 + 15 asks zlib for the header of gzip.
DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    ".xz": lzma.LZMADecompressor,
    ".zst": _zstd,
}
