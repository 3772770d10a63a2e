"""A corpus as a stream of pairs, from two files of lines, a TSV file or JSON lines, compressed or not."""

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
from sixfold.recipe import CorpusConfig, CorpusDirection
from sixfold.text.encodings import SAMPLE_BYTES, check_utf8
from sixfold.text.languages import guess_language, language_of, languages_of

Progress = Callable[[int], None]

MAX_LINE_BYTES = 16 * 2**20  # a file without line ends must not fill the memory
BUFFER_BYTES = 2**20
LANGUAGE_SAMPLE_PAIRS = 1000  # that the languages are guessed from if file names do not contain them
COMPRESSED_BYTES = 4096  # decompressed at once: even a block of zeros becomes no more than 128 MiB
BOM = b"\xef\xbb\xbf"
TABLES = (".tsv", ".txt")  # endings of files with columns
RECORDS = (".jsonl", ".json")  # endings of files with JSON lines


class Pair(NamedTuple):
    """A sentence and its translation, and the number of their line, counted from 1."""

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
    languages: tuple[str, str] = ("", "")  # codes, which may also be the names of JSON fields
    way: CorpusDirection = "both"  # that it is learned in
    tag: str = ""  # put before each source
    tag_way: CorpusDirection = "both"  # the direction whose sources have the tag

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
            if uncompressed_name(file).suffix.lower() in (".tsv", ".toml", *RECORDS):
                raise DataError(f"{file}: expected a file of lines beside another; got one of pairs", "name it alone")
        if len(self.files) == 1 and self.format not in TABLES + RECORDS:
            raise DataError(
                f"{self.files[0]}: expected one file of pairs to end in {', '.join(TABLES + RECORDS)}",
                "name both files where each language has its own",
            )

    @classmethod
    def from_config(cls, config: CorpusConfig, folder: Path, languages: tuple[str, str] = ("", "")) -> Corpus:
        """Return the corpus of a recipe, whose files are relative to `folder`."""
        files = tuple(folder / file for file in config.files)
        name = config.name or uncompressed_name(files[0]).stem
        return cls(name, files, config.weight, config.columns, languages, config.way, config.tag, config.tag_way)

    @property
    def purpose(self) -> dict[str, str]:
        """Return the direction and the tag, or nothing for a corpus in both directions without a tag."""
        if (self.way, self.tag) == ("both", ""):
            return {}
        return {"way": self.way, "tag": self.tag} | ({} if self.tag_way == "both" else {"tag_way": self.tag_way})

    @property
    def format(self) -> str:
        """Return the ending of the first file without that of its compression."""
        return uncompressed_name(self.files[0]).suffix.lower()

    def pairs(self, advance: Progress | None = None, fingerprint: Fingerprint | None = None) -> Iterator[Pair]:
        """Yield every pair in order. `advance` is called with the bytes read from disk, for a progress bar.

        `fingerprint` hashes every byte of the files, so that it gives the result of `digest` after the last pair.
        """
        before = self.stamp()
        if len(self.files) == 2:
            yield from self._from_lines(advance, fingerprint)
        else:
            columns: tuple[str, ...] = ()
            for line, text in enumerate(read_corpus_lines(self.files[0], advance, fingerprint), start=1):
                if not text.strip():  # usually the last line: an empty pair, which cleaning counts
                    yield Pair(line, "", "")
                    continue
                where = f"{self.files[0]}:{line}"
                record = text.split("\t") if self.format in TABLES else parse_record(text, where)
                columns = columns or self.columns or self._columns(record, where)
                yield Pair(line, *(field_text(record, column, where) for column in columns))
        self.refuse_changes(before)

    def where(self, line: int) -> str:
        """Return the file name and line of a pair, for people."""
        return f"{self.files[0].name}:{line}"

    @property
    def size(self) -> int:
        """Return the bytes of all files on disk."""
        return sum(stat_file(file).st_size for file in self.files)

    def stamp(self) -> list[list[int]]:
        """Return the size and modification time of every file, which show cheaply whether one was changed."""
        return [[status.st_size, status.st_mtime_ns] for status in map(stat_file, self.files)]

    def refuse_changes(self, before: list[list[int]]) -> None:
        """Raise DataError if a file has changed since `stamp` returned `before`."""
        for file, old, new in zip(self.files, before, self.stamp(), strict=True):
            if old != new:
                raise DataError(f"{file}: changed while it was read", "start again when nothing writes to it")

    def digest(self) -> str:
        """Return a hash of the bytes of all files."""
        fingerprint = Fingerprint()
        for file in self.files:
            with open_file(file, fingerprint) as raw:
                while raw.read(BUFFER_BYTES):
                    pass
        return fingerprint.digest(self.files)

    def _from_lines(self, advance: Progress | None, fingerprint: Fingerprint | None) -> Iterator[Pair]:
        sides = [read_corpus_lines(file, advance, fingerprint) for file in self.files]
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
        """Return the two columns of the pair, from the first record; raise DataError if they are not obvious."""
        if isinstance(record, list):
            if len(record) > 2:
                raise DataError(
                    f"{where}: expected two columns; got {len(record)} without a choice of two",
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
                "choose two: --set data.source=zh --set data.target=en, or columns in a recipe",
            )
        return tuple(texts)


def parse_record(text: str, where: str) -> dict[str, Any]:
    """Parse a line of JSON. The field `translation` of Hugging Face datasets replaces the whole object."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{where}: not valid JSON: {error}", "every line must be an object of its own") from None
    if isinstance(record, dict) and isinstance(record.get("translation"), dict):
        record = record["translation"]
    if not isinstance(record, dict):
        raise DataError(f"{where}: expected a JSON object; got {text[:60]!r}", 'for example {"zh": "…", "en": "…"}')
    return record


def field_text(record: list[str] | dict[str, Any], column: str, where: str) -> str:
    """Return the text of one column of a record."""
    if isinstance(record, list):
        if int(column) > len(record):
            raise DataError(
                f"{where}: expected {column} columns or more; got {len(record)}",
                "columns are separated by tabs; `columns` in a recipe chooses the two of the pair",
            )
        return record[int(column) - 1].strip()
    if column not in record:
        raise DataError(f"{where}: expected a field {column}; got {', '.join(record)[:100] or 'none'}")
    return as_single_line(record[column], f"{where}: {column}")


def languages_from_names(corpus: CorpusConfig) -> tuple[str, str]:
    """Return the languages in the names of the files; "" for a language that is not in them."""
    files = [Path(file) for file in corpus.files]
    return (language_of(files[0]), language_of(files[1])) if len(files) == 2 else languages_of(files[0])


def detect_languages(config: DataConfig, corpus: CorpusConfig, folder: Path) -> tuple[str, str]:
    """Return the languages of the two sides: from the settings, else the file names, else the script of the text."""
    named = languages_from_names(corpus)
    languages = (config.source or named[0], config.target or named[1])
    if all(languages):
        return languages
    pairs = list(islice(Corpus.from_config(corpus, folder, languages).pairs(), LANGUAGE_SAMPLE_PAIRS))
    guessed = (guess_language(pair.source for pair in pairs), guess_language(pair.target for pair in pairs))
    if guessed[0] == guessed[1]:  # the script does not distinguish two languages that share it
        guessed = ("", "")
    return languages[0] or guessed[0], languages[1] or guessed[1]


def as_single_line(value: Any, where: str) -> str:
    """Return a string from JSON as one line of text; raise DataError for other values."""
    return as_text(value, where).replace("\r", " ").replace("\n", " ").strip()


def as_text(value: Any, where: str) -> str:
    """Return a string from JSON, which may have several lines; raise DataError for other values."""
    if not isinstance(value, str):
        raise DataError(f"{where}: expected a string; got {json.dumps(value)[:60]}")
    # JSON can contain half a surrogate pair, which cannot be written to a file or tokenised.
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_corpus_lines(
    path: Path, advance: Progress | None = None, fingerprint: Fingerprint | None = None
) -> Iterator[str]:
    """Yield the lines of a plain or compressed file without line ends; bytes that are not UTF-8 become U+FFFD."""
    with open_file(path, fingerprint) as disk:
        is_compressed = path.suffix.lower() in DECOMPRESSORS
        text = io.BufferedReader(_Decompressed(disk, path), BUFFER_BYTES) if is_compressed else disk
        check_utf8(text.peek(SAMPLE_BYTES)[:SAMPLE_BYTES], str(path))  # type: ignore[attr-defined] # both are BufferedReader
        reported = number = 0
        # Only \n ends a line: U+2028 or a form feed inside a sentence would shift one side against the other.
        while raw := text.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise DataError(
                    f"{path}:{number}: expected lines of at most {MAX_LINE_BYTES} bytes", "is it a text file?"
                )
            if number == 1:
                raw = raw.removeprefix(BOM)
            if advance is not None and number % 1000 == 0:
                position = disk.tell()
                advance(position - reported)
                reported = position
            yield raw.decode("utf-8", "replace").rstrip("\r\n")
        if advance is not None:
            advance(disk.tell() - reported)


class Fingerprint:
    """Hashes files while they are read from beginning to end."""

    def __init__(self) -> None:
        self._hashes: dict[Path, Any] = {}

    def reader(self, path: Path) -> BinaryIO:
        """Open a file so that every byte that is read is hashed."""
        self._hashes[path] = hashlib.blake2b()
        return io.BufferedReader(_HashedFile(path, self._hashes[path]), BUFFER_BYTES)

    def digest(self, files: Sequence[Path]) -> str:
        """Return one hash of several files that have been read.

        Each file is hashed by itself, so that moving a line from the end of one to the start of the next is a change.
        """
        combined = hashlib.blake2b(digest_size=16)
        for file in files:
            combined.update(self._hashes[file].digest())
        return combined.hexdigest()


class _HashedFile(io.FileIO):
    """A file that updates a hash with the bytes that are read."""

    def __init__(self, path: Path, digest: Any) -> None:
        super().__init__(path)
        self._digest = digest

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self._digest.update(memoryview(buffer)[:count])
        return count


@contextmanager
def open_file(path: Path, fingerprint: Fingerprint | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading; an error of the system becomes a DataError with the name of the file."""
    stat_file(path)
    try:
        with path.open("rb", BUFFER_BYTES) if fingerprint is None else fingerprint.reader(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None


def stat_file(path: Path) -> os.stat_result:
    """Return the status of a regular file; raise DataError for others, which cannot be read twice."""
    try:
        status = path.stat()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise DataError(f"{path}: expected a file; got a folder or a device")
    return status


def same_file(first: Path, second: Path) -> bool:
    """Return whether two paths are the same file, also through a link or another spelling."""
    try:
        return first == second or first.samefile(second)
    except OSError:  # a missing file is reported when it is opened
        return False


def uncompressed_name(path: Path) -> Path:
    """Return the name of a file without the ending of its compression."""
    return path.with_suffix("") if path.suffix.lower() in DECOMPRESSORS else path


class _Decompressed(io.RawIOBase):
    """The decompressed content of a file, for a BufferedReader; unlike the libraries it always detects truncation."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        self._make_stream = DECOMPRESSORS[path.suffix.lower()]
        self._stream: Any = None
        self._compressed = b""
        self._content = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._content:
            self._compressed = self._compressed or self._file.read(COMPRESSED_BYTES)
            if not self._compressed:
                if self._stream is not None:
                    raise self._damaged("it ends too early")
                return 0
            self._content = memoryview(self._decompress())
        size = min(len(buffer), len(self._content))
        buffer[:size] = self._content[:size]
        self._content = self._content[size:]
        return size

    def _decompress(self) -> bytes:
        """Decompress the last bytes read; after the end of a stream another may follow, perhaps after padding."""
        if self._stream is None:
            self._compressed = self._compressed.lstrip(b"\0")
            if not self._compressed:
                return b""
            self._stream = self._make_stream()
        try:
            content: bytes = self._stream.decompress(self._compressed)
        except Exception as error:  # each library has its own exception class
            raise self._damaged(str(error)) from None
        self._compressed = self._stream.unused_data
        if self._stream.eof:
            self._stream = None
        return content

    def _damaged(self, reason: str) -> DataError:
        return DataError(f"{self._path}: damaged or not compressed: {reason}", "copy or download the file again")


def _zstd() -> Any:
    try:
        import zstandard
    except ModuleNotFoundError:
        raise DataError("reading .zst files needs zstandard, which is not installed", "pip install zstandard") from None
    return zstandard.ZstdDecompressor().decompressobj()


# Each makes an object with `decompress`, `eof` and `unused_data`. 16 + MAX_WBITS makes zlib expect a gzip header.
DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
    ".xz": lzma.LZMADecompressor,
    ".zst": _zstd,
}
