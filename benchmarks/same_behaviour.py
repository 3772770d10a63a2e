"""Does one source tree behave exactly like another? For a change that must move code and change nothing else.

    python benchmarks/same_behaviour.py OLD NEW [--data DIR] [--lines N] [--work DIR] [--only PART ...]

OLD and NEW are checkouts, each with src/sixfold and the shipped model in it. Both are run with the Python that runs
this script, in processes of their own with PYTHONPATH=TREE/src, one thread each, in turn, in two work folders with the
same input files. The script imports nothing of either tree: it uses the command line, HTTP, the public names of the
package (its `__all__` and the Python of the README) and the files on disk. The parts:

    training      Five small runs on one CPU thread: padded batches, packed batches, both ways with a tagged corpus,
                  LoRA on top of the first, and one that is killed and resumed. Every file of the run folders is
                  compared: each tensor by name and byte (models, and checkpoints with the state of the optimiser), the
                  metadata of these files, metrics.jsonl, the stores of tokens, the settings.
    translations  DIR/dev/*.zh and DIR/dev/*.en by the shipped model with default settings, at most N lines of each.
                  Without --data, the text of the toy corpus.
    explore       Every array of `sixfold.explore`, and what the other public names of the package return.
    verbs         Every verb of the command line: its JSON, its text, the files that it writes. Documents of each
                  format. Hugging Face folders of four families. The exit status of mistakes.
    serve         The answer of every GET and POST route of `sixfold serve`, and what a client of the same tree reads.
    old-files     Files that OLD made, and the model files in OLD/tests/old_models, used by OLD and by NEW: a run that
                  was killed is resumed, a finished one is made longer; settings, recipes, tokenisers, models, packed
                  models, a half-written translation, doctor.json, the keys of a server.

The result is a table of checks. A check that fails to run is never "same". The exit status is 1 if anything differs.
The first differences of each check are printed, and all of them are written to WORK/differences.txt.

Not compared: prose for people (standard error, error messages, help, HTML pages), pictures as PNG, TensorBoard files,
--workers ray, GPUs, several processes. What differs by nature is in SKIPPED with a reason. What was renamed on purpose
belongs in RENAMED: OLD's names are read as the new ones, so a name that is listed there must have changed.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import io
import itertools
import json
import os
import random
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

# What was renamed on purpose: the end of the path of an old name → its new name. A path is written as the differences
# write it: "training/steps": "updates" renames only the `steps` inside a `training`, "steps": "updates" every `steps`.
RENAMED: dict[str, dict[str, str]] = {
    "metadata keys": {},  # of model files and checkpoints: config, tokeniser, card
    "JSON fields": {},  # of JSON and TOML, in answers and in files
    "tensors": {},  # of model files and checkpoints, and arrays of the explorer
    "files": {},  # in the folder of a run or of an evaluation
}

# What differs between two runs of one tree: which check, which path, why. The value is not compared, its presence is.
SKIPPED = [
    ("*", "*/tokens_per_s", "a speed"),
    ("doctor", "*/training/tokens_a_second", "a speed"),
    ("a killed run, resumed", "*/data/digests.json", "it names the folder in which OLD began the run"),
    ("doctor", "*/training/basis", "it names a measured speed"),
    ("doctor", "*/training/says", "the same"),
    ("*", "*/memory", "of the process, as the system reports it"),
    ("*", "*/metadata/checksum", "it covers the card, which has a time"),
    ("*", "*/hours", "a time"),
    ("*", "*/seconds", "a time"),
    ("*", "*/tensorboard/*", "names and contents have times"),
    ("*", "*.html", "prose for people"),
    ("*", "*/data/tokens-*/ledger.json", "the stores of format 2 hold no <eos>; what is learnt from them is compared"),
    ("*", "*/data/tokens-*/source.bin", "the same"),
    ("*", "*/data/tokens-*/source_end.bin", "the same"),
    ("*", "*/corpora/to start from/0", "the checksum of a file with a time in its card"),
]

# Texts for people that were reworded on purpose: which check, which path. They are present in both and not compared.
REWORDED = [
    ("doctor", "*/findings/*/what"),
    ("doctor", "*/findings/*/advice"),
    ("doctor", "*/remarks/*"),
    ("see similarity", "*/title"),
    ("see training", "*/head/*"),
    ("see walk", "*/rows/*/0"),
    ("see walk", "*/rows/*/3"),
    ("see as SVG", "*.svg"),
]


class Tensor(NamedTuple):
    """One array of a safetensors file."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class CommandError(Exception):
    """A command ended with another exit status than it should, or left no result."""


class Tree:
    """A source tree and the folder in which its commands run."""

    def __init__(self, label: str, root: Path, work: Path) -> None:
        self.label, self.root, self.folder = label, root.resolve(), work / label
        self.folder.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("SIXFOLD_")},
            "PYTHONPATH": str(self.root / "src"), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "",
            "SIXFOLD_CACHE": str(self.folder / "cache"), "NO_COLOR": "1", "COLUMNS": "120", "HF_HUB_OFFLINE": "1",
        }  # fmt: skip

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """Python with these arguments, in the folder of this tree."""
        command = [sys.executable, *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.environment, **options)

    def python(self, *arguments: str, stdin: bytes = b"", status: int = 0) -> bytes:
        """The standard output of Python; standard error is only shown when it fails."""
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        with self.start(*arguments, **pipes) as process:
            try:
                output, messages = process.communicate(stdin, timeout=600)
            except subprocess.TimeoutExpired:
                process.kill()
                raise CommandError(f"{arguments[-1]:.80}: no end after 600 s") from None
        if process.returncode != status:
            last = messages.decode(errors="replace").strip()[-300:]
            raise CommandError(f"exit status {process.returncode}, expected {status}: {last}")
        return output

    def sixfold(self, command: str, stdin: bytes = b"", status: int = 0) -> bytes:
        """The standard output of the command line."""
        return self.python("-m", "sixfold", *shlex.split(command), stdin=stdin, status=status)


class Check(NamedTuple):
    """Something to compare: `produce` is called with OLD, then with NEW."""

    name: str
    produce: Callable[[Tree], Any]
    rows: bool = False  # every key of the result is a row of the table


# ---------------------------------------------------------------------------------------------------------------------
# Reading files


def read_safetensors(data: bytes) -> dict[str, Any]:
    """Tensors by name, and the metadata with its JSON parsed."""
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = {name: parse_json(value) for name, value in header.pop("__metadata__", {}).items()}
    tensors = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        tensors[name] = Tensor(entry["dtype"], tuple(entry["shape"]), data[start:end])
    return {"tensors": tensors, "metadata": metadata}


def parse_json(text: str) -> Any:
    """The value of a JSON text, or the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def parse_output(output: bytes) -> Any:
    """JSON, else a list of JSON lines."""
    text = output.decode()
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.splitlines()]


def read_zip(data: bytes) -> dict[str, bytes]:
    """The contents of the members; the dates of a ZIP file are not compared."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


READERS: dict[str, Callable[[bytes], Any]] = {
    ".safetensors": read_safetensors,
    ".json": lambda data: json.loads(data),
    ".jsonl": lambda data: [json.loads(line) for line in data.splitlines()],
    ".toml": lambda data: tomllib.loads(data.decode()),
    ".docx": read_zip,
}


def read_path(path: Path) -> Any:
    """What is in a file, by its suffix; of a folder, all its files by name."""
    if path.is_dir():
        files = sorted(each for each in path.rglob("*") if each.is_file() and each.name != ".lock")
        return {run_file_name(each.relative_to(path)): read_path(each) for each in files}
    if not path.exists():
        raise CommandError(f"{path.name} was not written")
    return READERS.get(path.suffix, bytes)(path.read_bytes())


def run_file_name(path: Path) -> str:
    """TensorBoard's files are named by time, machine and process."""
    return "tensorboard/events" if path.parts[0] == "tensorboard" else path.as_posix()


# ---------------------------------------------------------------------------------------------------------------------
# Comparing


def without_paths(value: Any, tree: Tree) -> Any:
    """A result in which the folders of the tree are called FOLDER and TREE."""
    if isinstance(value, dict):
        return {without_paths(key, tree): without_paths(each, tree) for key, each in value.items()}
    if isinstance(value, list):
        return [without_paths(each, tree) for each in value]
    for folder, name in ((tree.folder, "FOLDER"), (tree.root, "TREE")):
        if isinstance(value, str):
            value = value.replace(str(folder), name)
        elif isinstance(value, bytes):
            value = value.replace(os.fsencode(folder), name.encode())
    return value


def rename(value: Any, path: str = "") -> Any:
    """OLD's result with the names that RENAMED gives it."""
    if isinstance(value, dict):
        return {new_name(f"{path}/{key}", key): rename(each, f"{path}/{key}") for key, each in value.items()}
    if isinstance(value, list):
        return [rename(each, f"{path}/{number}") for number, each in enumerate(value)]
    return value


def new_name(path: str, key: str) -> str:
    """What a key is called in NEW."""
    if "/metadata/" in path:
        kind = "metadata keys"
    elif "/tensors/" in path:
        kind = "tensors"
    else:
        kind = "files" if "." in key and key in RENAMED["files"] else "JSON fields"
    return next((name for end, name in RENAMED[kind].items() if path.endswith(f"/{end}")), key)


def differences(check: str, old: Any, new: Any, path: str = "") -> Iterator[str]:
    """A line for each leaf that differs."""
    if any(fnmatch.fnmatch(check, name) and fnmatch.fnmatch(path, place) for name, place, *_ in [*SKIPPED, *REWORDED]):
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key not in new:
                yield f"{path}/{key}: only in OLD"
            elif key not in old:
                yield f"{path}/{key}: only in NEW"
            else:
                yield from differences(check, old[key], new[key], f"{path}/{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"{path}: {len(old)} items in OLD, {len(new)} in NEW"
        for number, pair in enumerate(zip(old, new, strict=False)):
            yield from differences(check, *pair, f"{path}/{number}")
    elif type(old) is not type(new) or (old != new and not (old != old and new != new)):  # NaN is the same as NaN
        yield f"{path or '/'}: {describe(old, new)} → {describe(new, old)}"


def describe(value: Any, other: Any) -> str:
    """A value in a few words, beginning where it differs from the other."""
    if isinstance(value, Tensor):
        if not isinstance(other, Tensor) or value[:2] != other[:2]:
            return f"{value.dtype} {list(value.shape)}"
        return f"{sum(one != two for one, two in zip(value.data, other.data, strict=True))} bytes differ"
    if isinstance(value, bytes | str) and type(value) is type(other):
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(value, other, strict=False))
        start = max(0, sum(1 for _ in same) - 10)
        return f"{'…' if start else ''}{value[start : start + 60]!r} ({len(value)} long)"
    return f"{value!r:.80}"


# ---------------------------------------------------------------------------------------------------------------------
# Input files

WHO = {"我": "I", "你": "you", "我们": "we", "他们": "they", "老师": "the teacher", "学生": "the student"}
VERB = {"爱": "loved", "学习": "studied", "需要": "needed", "研究": "examined", "画": "painted"}
THING = {"数学": "mathematics", "音乐": "music", "中文": "Chinese", "历史": "history", "机器": "machines", "猫": "cats"}
DAY = {"昨天": "yesterday", "去年": "last year"}

SMALL = (
    "model.d_model=16 model.heads=2 model.d_ff=32 model.encoder_layers=1 model.decoder_layers=1 tokenizer.vocab=400 "
    "training.batch_tokens=256 training.micro_tokens=128 training.warmup=4 training.validate_every=20 "
    "training.checkpoint_every=10 training.patience=0 training.steps=40"
)

RECIPE = """\
preset = "tiny"
[model]
d_model = 16
heads = 2
d_ff = 32
encoder_layers = 1
decoder_layers = 1
[tokenizer]
vocab = 500
spans = 4
simplify = true
tags = ["formal"]
[training]
batch_tokens = 256
micro_tokens = 256
warmup = 4
steps = 30
validate_every = 15
checkpoint_every = 15
patience = 0
rdrop = 1.0
weight_decay = 0.01
[data]
source = "zh"
target = "en"
both_ways = true
[[corpus]]
name = "toy"
files = ["toy.zh", "toy.en"]
[[corpus]]
name = "back"
files = ["back.tsv"]
tag = "bt"
way = "forward"
weight = 0.5
[[dev]]
name = "dev"
files = ["dev.zh", "dev.en"]
[[test]]
name = "test"
files = ["test.zh", "test.en"]
"""


def toy_pairs() -> list[tuple[str, str]]:
    """All sentences of a small grammar, in one fixed order."""
    pairs = [
        (f"{day}{who}{verb}{thing}。", f"{who_en[0].upper()}{who_en[1:]} {verb_en} {thing_en} {day_en}.")
        for (who, who_en), (verb, verb_en), (thing, thing_en), (day, day_en) in itertools.product(
            WHO.items(), VERB.items(), THING.items(), DAY.items()
        )
    ]
    random.Random(1).shuffle(pairs)
    return pairs


def write_lines(folder: Path, name: str, pairs: list[tuple[str, str]]) -> None:
    for side, language in enumerate(("zh", "en")):
        (folder / f"{name}.{language}").write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")


def write_inputs(folder: Path) -> None:
    """The files that the commands read; the same for both trees."""
    pairs = toy_pairs()
    write_lines(folder, "toy", pairs[:300])
    write_lines(folder, "dev", pairs[300:320])
    write_lines(folder, "test", pairs[320:340])
    write_lines(folder, "shout", [(f"{source}！", f"{target.upper()}!") for source, target in pairs[:120]])
    back = "".join(f"{source}\t{target.replace('.', ' too.')}\n" for source, target in pairs[100:200])
    (folder / "back.tsv").write_text(back, encoding="utf-8")
    noise = [
        pairs[0], pairs[0], ("", "Nothing."), ("很长" * 300, "Long."), ("same text", "same text"),
        ("\ufffd乱码", "A mess"),
        ("<b>标记</b>", "<b>Markup</b>"), ("控\x07制", "A bell"), (pairs[1][0], pairs[2][1]), pairs[321],
        ("他有３只猫和12本书。", "He has 3 cats."), ("ä¸\xadæ–‡", "Chinese"),
    ]  # fmt: skip
    write_lines(folder, "noisy", [*pairs[:250], *noise])
    (folder / "both.toml").write_text(RECIPE, encoding="utf-8")
    for name, text in TEXTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_docx(folder / "doc.docx")
    candidates = "".join(f"{target[:-1]} again.\n" for _, target in pairs[320:340])
    (folder / "candidate.en").write_text(candidates, encoding="utf-8")
    for path in folder.iterdir():
        os.utime(path, (1e9, 1e9))  # a run keeps the time of its corpora


TEXTS = {
    "mixed.txt": (
        "机器学习很有趣。我们明天去北京。\n\n  It rained all day, so we stayed at home.\n他有4444本书和3.5公斤苹果。\n"
    ),
    "mixed.en": (
        "The weather is nice today. We are going to Beijing.\nHe bought 4444 books in 1998, didn't he?\n\nHello!\n"
    ),
    "terms.tsv": "机器学习\tautomatic learning\n北京\tPeking\n",
    "memory.tsv": "我们明天去北京。\tTomorrow it is Beijing for us.\n",
    "memory.tmx": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header srclang="zh" datatype="plaintext" '
        'segtype="sentence" adminlang="en" creationtool="x" creationtoolversion="1" o-tmf="x"/><body><tu>'
        '<tuv xml:lang="zh"><seg>机器学习很有趣。</seg></tuv><tuv xml:lang="en"><seg>Machines have fun.</seg></tuv>'
        "</tu></body></tmx>\n"
    ),
    "doc.html": (
        "<!DOCTYPE html>\n<html lang=en><title>A page about the weather</title>\n<p>It was <b>very cold</b> in the "
        "<a href='/x' title='Go there'>old house</a> &amp; we left.</p>\n<pre>as it is</pre><ul><li>One apple<li>Two "
        "pears</ul><script>let a = 1 < 2</script></html>\n"
    ),
    "doc.md": (
        "---\ntitle: A walk\n---\n# A walk in the park\n\nWe *really* like [this book](https://example.org/a_b).\n\n"
        "- Do not run `make clean`.\n- Bring water.\n\n> It is late.\n\n```sh\nsay hello\n```\n\n| Name | Price |\n"
        "|---|---|\n| Apple | 3 |\n"
    ),
    "doc.srt": (
        "1\n00:00:01,000 --> 00:00:02,000\nWhere are you going?\n\n"
        "2\n00:00:03,000 --> 00:00:04,500\n<i>I am going\nhome.</i>\n"
    ),
    "doc.vtt": "WEBVTT\n\nNOTE a note\n\n00:01.000 --> 00:02.000 align:start\n- Where are you?\n- Here.\n",
    "doc.json": (
        '{\n  "title": "Good morning",\n  "count": 3,\n  "items": ["A red {colour} car", "https://example.org"]\n}\n'
    ),
    "doc.yaml": (
        "# a comment\ntitle: Good morning\nitems:\n  - 'A red car'\n  - |\n    Two lines\n    of text.\ncount: 3\n"
    ),
    "doc.po": 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n"Language: zh\\n"\n\n#: a.c:1\n'
    'msgid "Open the file %s"\nmsgstr ""\n\nmsgid "Close"\nmsgstr "关闭"\n',
    "doc.xliff": (
        '<?xml version="1.0" encoding="UTF-8"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">'
        '<file source-language="en" target-language="zh" datatype="plaintext" original="a"><body>'
        '<trans-unit id="1"><source>Press the <g id="1">red</g> button.</source></trans-unit></body></file></xliff>\n'
    ),
    "doc.csv": 'id,name,text\n1,Apple,"A red apple, please."\n2,Pear,Two green pears.\n',
    "doc.tsv": "id\ttext\n1\tA red apple.\n2\tTwo green pears.\n",
    "one.jsonl": '{"text": "我们明天去北京。", "id": 1}\n{"text": "天气很好。", "id": 2}\n',
    "two.jsonl": '{"text": "他有三只猫。", "id": 3}\n',
    "card.toml": 'licence = "CC0-1.0"\ndata = "sentences of a small grammar"\n',
    "serve.toml": 'suggestions = "suggestions.tsv"\nreload = 0\nthreads = 1\n',
}


def write_docx(path: Path) -> None:
    """A document of two paragraphs, one with a bold word, and a table."""
    main = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    relations = "http://schemas.openxmlformats.org/package/2006/relationships"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = "http://schemas.openxmlformats.org/package/2006/content-types"
    members = {
        "[Content_Types].xml": f'<Types xmlns="{types}"><Default Extension="rels" ContentType="application/vnd.'
        f'openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="{kind}"/>'
        "</Types>",
        "_rels/.rels": f'<Relationships xmlns="{relations}"><Relationship Id="r1" Type="{office}" '
        'Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{main}"><w:body><w:p><w:r><w:t xml:space="preserve">It was '
        "</w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>very cold</w:t></w:r><w:r><w:t> today.</w:t></w:r></w:p><w:p><w:r>"
        "<w:t>We stayed at home.</w:t></w:r></w:p><w:tbl><w:tr><w:tc><w:p><w:r><w:t>Apple</w:t></w:r></w:p></w:tc>"
        "</w:tr></w:tbl></w:body></w:document>",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in members.items():
            archive.writestr(zipfile.ZipInfo(name), text)


def settings(text: str) -> str:
    return " ".join(f"--set {each}" for each in text.split())


# ---------------------------------------------------------------------------------------------------------------------
# Training

TRAIN = f"train toy.zh toy.en --preset tiny --device cpu {settings(SMALL)}"
RUNS = {
    "padded": f"{TRAIN} --set training.packing=off --json",
    "packed": f"{TRAIN} {settings('training.packing=on training.compile=off')} --json",
    "both": "train both.toml --device cpu --json",
    "lora": "finetune padded/model.safetensors shout.zh shout.en --old toy.zh --old toy.en --lora 4 --device cpu "
    + settings("training.batch_tokens=256 training.micro_tokens=256 training.steps=30 training.validate_every=15 ")
    + " --json",
}
KILLED = f"{TRAIN} --set training.packing=off --set training.steps=120 --set training.seed=7 --json"


def train(tree: Tree, name: str) -> Path:
    """The folder of a run, made when it is first needed."""
    folder = tree.folder / name
    if not (folder / "model.safetensors").exists():
        if name == "lora":
            train(tree, "padded")
        answer = tree.sixfold(f"{RUNS[name]} --output {name}")
        (tree.folder / f"{name}.answer").write_bytes(answer)
    return folder


def training_rows(tree: Tree, name: str) -> dict[str, Any]:
    """What a run leaves."""
    folder = train(tree, name)
    return {"answer": parse_output((tree.folder / f"{name}.answer").read_bytes()), **read_path(folder)}


def kill_a_run(tree: Tree, name: str) -> Path:
    """The folder of a run that was killed after its second checkpoint, in the middle of the training."""
    folder = tree.folder / name
    for _ in range(5):
        shutil.rmtree(folder, ignore_errors=True)
        with tree.start("-m", "sixfold", *shlex.split(f"{KILLED} --output {name}"), stdout=-3, stderr=-3) as process:
            while process.poll() is None and not any(folder.glob("checkpoints/step-*20.safetensors")):
                time.sleep(0.002)
            process.kill()
        if not (folder / "model.safetensors").exists() and any(folder.glob("checkpoints/*.safetensors")):
            return folder
    raise CommandError("the run could not be killed in the middle")


def resume(tree: Tree, name: str) -> dict[str, Any]:
    """What is left when a killed run is resumed: the last line of each step, as a kill may leave a step twice."""
    if (tree.folder / name / "model.safetensors").exists():
        raise CommandError("nothing was left to resume")
    answer = parse_output(tree.sixfold(f"{KILLED} --output {name}"))
    found = read_path(tree.folder / name)
    found["metrics.jsonl"] = {str(row["step"]): row for row in found["metrics.jsonl"]}
    return {"answer": answer, **found}


def training(_: Tree, __: argparse.Namespace) -> Iterator[Check]:
    for name in RUNS:
        yield Check(name, partial(training_rows, name=name))

    def killed(tree: Tree) -> dict[str, Any]:
        kill_a_run(tree, "killed")
        return resume(tree, "killed")

    yield Check("killed and resumed", killed)


# ---------------------------------------------------------------------------------------------------------------------
# Translations


def translations(_: Tree, options: argparse.Namespace) -> Iterator[Check]:
    sets = sorted(path for path in options.data.glob("dev/*") if path.suffix in (".zh", ".en")) if options.data else []
    if options.data and not sets:
        raise SystemExit(f"{options.data}/dev: expected *.zh and *.en")

    def translate(tree: Tree, path: Path | None) -> list[bytes]:
        source = path or tree.folder / "toy.zh"
        lines = source.read_bytes().splitlines(keepends=True)[: options.lines]
        name = f"set.{source.name}"
        (tree.folder / name).write_bytes(b"".join(lines))
        tree.sixfold(f"translate {name} --output {name}.translated")
        found = (tree.folder / f"{name}.translated").read_bytes().split(b"\n")
        if len(found) != len(lines) + 1 or not any(found):
            raise CommandError(f"{len(found) - 1} translations of {len(lines)} lines")
        return found

    for path in sets or [None]:
        yield Check(path.name if path else "toy.zh", partial(translate, path=path))


# ---------------------------------------------------------------------------------------------------------------------
# The public names of the package

EXPLORE = """
import json, sys
import numpy as np
import sixfold

traces = {
    "zh": sixfold.explore("我们明天去北京，因为天气很好。"),
    "en": sixfold.explore("The animal didn't cross the street because it was too tired."),
    "ablated": sixfold.explore("机器学习很有趣", "Machine learning is interesting", off=["cross.1.3", "encoder.0.1"]),
    "old model": sixfold.explore("我喜欢猫。", model=sys.argv[1]),
}
np.savez("explore.npz", **{f"{name}|{array}": trace[array] for name, trace in traces.items() for array in trace.names})
values = {
    name: {"trace": trace.to_dict(5), "alignment": trace.alignment()[0].tolist(),
           "cross": trace.attention("cross", 0, 1).tolist()}
    for name, trace in traces.items()
}
json.dump(values, open("explore.json", "w"))
"""

PUBLIC = """
import dataclasses, json, sys
from pathlib import Path
import sixfold

found = {"names": {name: hasattr(sixfold, name) for name in json.loads(sys.argv[1])}}
texts = Path("mixed.txt").read_text(encoding="utf-8").splitlines()
with sixfold.Translator() as translator:
    found["directions"] = translator.directions
    found["translate"] = translator.translate(texts[0]).to_dict(details=True)
    options = sixfold.TranslateOptions(beam=3, n_best=2, length_penalty=0.8)
    found["translate_batch"] = [each.to_dict() for each in translator.translate_batch(texts, options=options)]
    found["score"] = translator.score(texts[0], "Machine learning is fun. We go.").to_dict(details=True)
    found["alternatives"] = [each.to_dict() for each in translator.alternatives("天气很好。", "The")]
    glossary, memory = sixfold.Glossary.read(Path("terms.tsv")), sixfold.Memory.read("memory.tsv")
    page = Path("doc.html").read_bytes()
    found["translate_document"] = sixfold.translate_document(translator, page, "html")[0].decode()
    found["glossary"] = translator.translate(texts[0], glossary=glossary).to_dict()
    found["memory"] = translator.translate(texts[0], memory=memory).to_dict()
found["preset"] = dataclasses.asdict(sixfold.preset("small"))
found["errors"] = {name: [each.__name__ for each in getattr(sixfold, name).__mro__ if "Error" in each.__name__]
                   for name in ("ConfigError", "DataError", "ModelFileError", "RequestError", "SixfoldError")}
try:
    sixfold.preset("basse")
except sixfold.ConfigError as error:
    found["hint"] = "base" in error.hint
print(json.dumps(found))
"""


def explore_arrays(tree: Tree, old: Tree) -> dict[str, Any]:
    """Every array of four traces."""
    import numpy as np

    tree.python("-c", EXPLORE, str(old.root / "tests" / "old_models" / "format-1-int8.safetensors"))
    with np.load(tree.folder / "explore.npz") as arrays:
        tensors = {name: Tensor(str(arrays[name].dtype), arrays[name].shape, arrays[name].tobytes()) for name in arrays}
    return {"tensors": tensors, "values": read_path(tree.folder / "explore.json")}


def public_values(tree: Tree, old: Tree) -> dict[str, Any]:
    """What the public names of OLD return."""
    names = old.python("-c", "import json, sixfold; print(json.dumps(sixfold.__all__))").decode()
    return json.loads(tree.python("-W", "ignore::DeprecationWarning", "-c", PUBLIC, names))


def readme_python(tree: Tree, old: Tree) -> str:
    """The output of the Python in OLD's README, with a model that OLD trained."""
    (code,) = re.findall(r"```python\n(.*?)```", (old.root / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    code = code.replace("toy.safetensors", "readme.safetensors").replace("layers.1.", "layers.0.")
    shutil.copy(train(old, "padded") / "model.safetensors", tree.folder / "readme.safetensors")
    return tree.python("-W", "ignore::DeprecationWarning", "-c", code).decode()


def explore(old: Tree, _: argparse.Namespace) -> Iterator[Check]:
    yield Check("arrays of explore", lambda tree: explore_arrays(tree, old))
    yield Check("public", lambda tree: public_values(tree, old), rows=True)
    yield Check("Python of the README", lambda tree: readme_python(tree, old))


# ---------------------------------------------------------------------------------------------------------------------
# Verbs

SENTENCE = "机器学习很有趣。他有4444本书。"
VIEWS = ("attention", "heads", "token", "alignment", "positions", "similarity", "steps", "beam", "walk", "masks")
PRESETS = ("base", "big", "small", "tiny", "bert-base", "gpt2", "llama-7b", "llama-tiny")
FORMATS = ("html", "md", "srt", "vtt", "json", "yaml", "po", "xliff", "csv", "tsv", "docx")
FAMILIES = ("marian", "bert", "gpt2", "llama")

# Name → the command, and what it writes. With --json, standard output is read as JSON. Later ones use files of earlier.
VERBS: dict[str, tuple[str, tuple[str, ...]]] = {
    "version": ("--version", ()),
    "translate": (f"translate {SENTENCE}", ()),
    "translate --json --details": (f"translate {SENTENCE} --json --details", ()),
    "translate --n-best": (f"translate {SENTENCE} --json --n-best 3", ()),
    "translate --n-best, text": (f"translate {SENTENCE} --n-best 3", ()),
    "translate --no-guard": ("translate 他有4444本书和3.5公斤苹果，花了12345元。 --json --no-guard", ()),
    "translate --beam 1 --compute float32": (f"translate {SENTENCE} --json --beam 1 --compute float32", ()),
    "translate --no-split": (f"translate {SENTENCE} --json --details --no-split", ()),
    "translate --alternatives": ("translate 机器学习很有趣 --json --alternatives --prefix Machine", ()),
    "translate --prefix": ("translate 机器学习很有趣 --json --prefix 'The study'", ()),
    "translate --glossary": (f"translate {SENTENCE} --json --details --glossary terms.tsv", ()),
    "translate --memory, TSV": ("translate 我们明天去北京。我们后天去北京。 --json --memory memory.tsv", ()),
    "translate --memory, TMX": ("translate 机器学习很有趣。 --json --memory memory.tmx", ()),
    "translate --from --to": ("translate 'Hello, world!' --from en --to zh --json", ()),
    "translate file": ("translate mixed.en --output mixed.zh", ("mixed.zh",)),
    "translate file --json --details": ("translate mixed.en --json --details --output mixed.jsonl", ("mixed.jsonl",)),
    "translate file --n-best": ("translate mixed.en --json --n-best 2", ()),
    "translate file --resume": ("translate mixed.en --output mixed.zh --resume", ("mixed.zh",)),
    "translate two files": ("translate mixed.en test.en --output several", ("several",)),
    "translate shards": ("translate one.jsonl two.jsonl --output shards --field text", ("shards",)),
    "translate by an old model": ("translate 我喜欢猫。 --model format-1-float32.safetensors --json --details", ()),
    "translate by two models": ("translate 我喜欢猫。 --json -m format-1-int8.safetensors -m zh-en", ()),
    **{f"translate .{form}": (f"translate doc.{form} -o doc.to.{form}", (f"doc.to.{form}",)) for form in FORMATS},
    "translate --columns": ("translate doc.csv --columns text --output columns.csv", ("columns.csv",)),
    "translate --format": ("translate doc.md --format text --output doc.txt", ("doc.txt",)),
    **{
        f"tokenizer train, {kind}": (
            f"tokenizer train toy.zh toy.en --vocab 380 --algorithm {kind} --tag zh --output {kind}.json",
            (f"{kind}.json",),
        )
        for kind in ("bpe", "wordpiece", "unigram")
    },
    "tokenizer encode --json": ("tokenizer encode --json '我爱 machine learning 😀'", ()),
    "tokenizer encode": ("tokenizer encode --model unigram.json 我爱机器学习 'A cat'", ()),
    "tokenizer decode": ("tokenizer decode 100 200 300 400", ()),
    **{f"see {view}": (f"see 机器学习很有趣 --view {view} --json", ()) for view in VIEWS},
    "see training": ("see made/padded made/packed --view training --json", ()),
    "see a table": ("see 机器学习很有趣 --view steps --top 3", ()),
    "see as SVG": (
        "see 'The cat is tired' --view token --kind encoder --token tired --off cross.1.3 -o see.svg", ("see.svg",),
    ),
    "summary": ("summary --json", ()),
    "summary of a run": ("summary made/both --json", ()),
    **{f"summary {preset}": (f"summary {preset} --json", ()) for preset in ("base", "llama-7b")},
    **{f"config {preset}": (f"config {preset} --json", ()) for preset in PRESETS},
    "config as TOML": ("config small --set model.heads=4 --set model.positions=rotary", ()),
    "config of a recipe": ("config both.toml --json", ()),
    "neighbours": ("neighbours black --json --count 5", ()),
    "similar": ("similar cat 猫 --json", ()),
    "similar --sentences": ("similar 'I like cats.' 我喜欢猫。 --sentences --json", ()),
    "doctor": ("doctor noisy.zh noisy.en --against test.zh --device cpu --json --output doctor", ("doctor",)),
    "clean": ("clean noisy.zh noisy.en --output cleaned --json", ("cleaned.zh", "cleaned.en")),
    "clean --using": (
        "clean noisy.zh noisy.en --output used.tsv --using doctor/doctor.json --keep leaked --skip script --json",
        ("used.tsv",),
    ),
    "evaluate": (
        "evaluate made/both/model.safetensors candidate.en test.en test.zh test.en --samples 100 --json -o scores",
        ("scores",),
    ),
    "report": ("report made/padded made/packed --json --output report.html", ()),
    "pack": (
        "pack made/both --output packed.safetensors --card card.toml --align dev.zh dev.en --json",
        ("packed.safetensors",),
    ),
    "pack --storage bfloat16": (
        "pack made/padded --output half.safetensors --storage bfloat16 --json", ("half.safetensors",),
    ),
    "translate by a packed model": ("translate 我爱猫。 --model packed.safetensors --json --details --to en", ()),
    **{
        f"import {family}": (f"import hf/{family} --output {family}.safetensors", (f"{family}.safetensors",))
        for family in FAMILIES
    },
    "import --storage int8": ("import hf/llama --output int8.safetensors --storage int8", ("int8.safetensors",)),
    "summary of an import": ("summary gpt2.safetensors --json", ()),
}  # fmt: skip

MISTAKES = {
    "a verb": "translat x",
    "a preset": "summary bass",
    "a setting": "config base --set model.head=2",
    "a value": "config base --set model.heads=7",
    "a missing model": "translate x --model none.safetensors",
    "a file that is no model": "summary doc.html",
    "a language": "translate 'Доброе утро, дорогие друзья' --from en --to zh --strict",
    "another run in the folder": f"{TRAIN} --set training.packing=off --set training.seed=3 --output made/padded",
}

HUGGING_FACE = """
import sys
import torch, transformers
torch.manual_seed(1)
small = dict(vocab_size=120, num_hidden_layers=2, hidden_size=32, num_attention_heads=4, intermediate_size=64,
             max_position_embeddings=40)
models = {
    "marian": transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=120, d_model=32, encoder_layers=2, decoder_layers=1, encoder_ffn_dim=64, decoder_ffn_dim=64,
        encoder_attention_heads=4, decoder_attention_heads=4, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0, max_position_embeddings=40, scale_embedding=True)),
    "bert": transformers.BertForMaskedLM(transformers.BertConfig(**small)),
    "gpt2": transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=120, n_embd=32, n_head=4, n_layer=2, n_positions=40, bos_token_id=1, eos_token_id=1)),
    "llama": transformers.LlamaForCausalLM(transformers.LlamaConfig(num_key_value_heads=2, **small)),
}
for name, model in models.items():
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.05 * torch.randn_like(weight)
    model.save_pretrained(f"{sys.argv[1]}/{name}")
"""


def copy_made(old: Tree, tree: Tree) -> None:
    """What OLD made, for both trees, in `made`; and the old model files."""
    made = tree.folder / "made"
    if made.exists():
        return
    for name in ("padded", "packed", "both"):
        shutil.copytree(train(old, name), made / name)
    for path in sorted((old.root / "tests" / "old_models").glob("*.safetensors")):
        shutil.copy(path, tree.folder)
    for path in made.rglob("*"):
        os.utime(path, (1e9, 1e9))


def copy_models(old: Tree, tree: Tree) -> None:
    """Folders as Hugging Face's library writes them, made once."""
    folder = old.folder.parent / "hf"
    if not folder.exists():
        old.python("-c", HUGGING_FACE, str(folder))
    if not (tree.folder / "hf").exists():
        shutil.copytree(folder, tree.folder / "hf")


def run_verb(tree: Tree, command: str, files: tuple[str, ...]) -> dict[str, Any]:
    """Standard output, and what was written."""
    output = tree.sixfold(command)
    answer = parse_output(output) if "--json" in command and output else output
    return {"output": answer, **{name: read_path(tree.folder / name) for name in files}}


def verbs(old: Tree, _: argparse.Namespace) -> Iterator[Check]:
    def prepared(tree: Tree, command: str, files: tuple[str, ...]) -> dict[str, Any]:
        copy_made(old, tree)
        if command.startswith("import"):
            copy_models(old, tree)
        return run_verb(tree, command, files)

    for name, (command, files) in VERBS.items():
        yield Check(name, partial(prepared, command=command, files=files))
    pipe = "".join(TEXTS["mixed.en"] * 3).encode()
    yield Check("translate a pipe", lambda tree: tree.sixfold("translate", stdin=pipe))
    yield Check("tokenizer encode a pipe", lambda tree: tree.sixfold("tokenizer encode", stdin=pipe))

    def refuse(tree: Tree, command: str) -> bytes:
        copy_made(old, tree)
        return tree.sixfold(command, status=2)

    for name, command in MISTAKES.items():
        yield Check(f"exit status 2: {name}", partial(refuse, command=command))


# ---------------------------------------------------------------------------------------------------------------------
# The server

TEXT = {"text": "机器学习很有趣"}
# Name → method, path and JSON. /translate_file and /download_file are not here: one needs the answer of the other.
REQUESTS: dict[str, tuple[str, str, Any]] = {
    "health": ("GET", "/health", None),
    "languages": ("GET", "/languages", None),
    "settings": ("GET", "/frontend/settings", None),
    "models": ("GET", "/api/v1/models", None),
    "ready": ("GET", "/ready", None),
    "openapi": ("GET", "/openapi.json", None),
    "docs": ("GET", "/docs", None),
    "page": ("GET", "/", None),
    "nowhere": ("GET", "/nowhere", None),
    "libre languages": ("POST", "/languages", {}),
    "libre translate": ("POST", "/translate", {"q": SENTENCE, "source": "auto", "target": "en", "alternatives": 2}),
    "libre html": ("POST", "/translate", {"q": ["<b>你好</b>"], "source": "zh", "target": "en", "format": "html"}),
    "libre detect": ("POST", "/detect", {"q": "Hello there"}),
    "libre suggest": ("POST", "/suggest", {"q": "你好", "s": "Hello", "source": "zh", "target": "en"}),
    "libre mistake": ("POST", "/translate", {"q": "x", "source": "zh", "target": "tlh"}),
    "translate": ("POST", "/api/v1/translate", {"texts": [SENTENCE, "Good morning"], "details": True, "n_best": 2}),
    "glossary": (
        "POST", "/api/v1/translate", {"texts": [SENTENCE], "glossary": [{"source": "机器学习", "target": "ML"}]},
    ),
    "stream": ("POST", "/api/v1/translate/stream", {"texts": [SENTENCE, "Good morning"]}),
    "alternatives": ("POST", "/api/v1/alternatives", {**TEXT, "prefix": "Machine", "count": 3}),
    "score": ("POST", "/api/v1/score", {**TEXT, "translation": "Machine learning is fun"}),
    "unknown field": ("POST", "/api/v1/score", {**TEXT, "translatio": "x"}),
    "explore": ("POST", "/api/v1/explore", {**TEXT, "off": ["cross.1.3"], "top": 3}),
    "arrays": ("POST", "/api/v1/explore/arrays", {**TEXT, "names": ["decoder.layers.1.cross_attention.weights"]}),
    "half arrays": ("POST", "/api/v1/explore/arrays", {**TEXT, "names": ["logits"], "half": True}),
    "beam": ("POST", "/api/v1/explore/beam", {**TEXT, "beam": 3}),
    "free": ("POST", "/api/v1/explore/free", {**TEXT, "translation": "Machines learn", "top": 3}),
    "aligners": ("POST", "/api/v1/explore/aligners", TEXT),
    "merges": ("POST", "/api/v1/explore/merges", TEXT),
    "positions": ("POST", "/api/v1/explore/positions", {"length": 8}),
    "masks": ("POST", "/api/v1/explore/masks", {"texts": ["猫", "机器学习很有趣"]}),
    "similar": ("POST", "/api/v1/explore/similar", {"one": "cat", "other": "dog"}),
    "neighbours": ("POST", "/api/v1/explore/neighbours", {"word": "black", "count": 5}),
    "plane": ("POST", "/api/v1/explore/plane", {"words": ["cat", "dog", "house"]}),
    "shapes": ("POST", "/api/v1/explore/shapes", {}),
}  # fmt: skip

CLIENT = """
import json, sys
import sixfold
with sixfold.Client(sys.argv[1]) as client:
    found = {"directions": client.directions, "translate": client.translate("天气很好。").to_dict(details=True),
             "score": client.score("天气很好。", "Nice weather.").to_dict(),
             "alternatives": [each.to_dict() for each in client.alternatives("天气很好。", "The")]}
print(json.dumps(found))
"""


class Server:
    """`sixfold serve` of a tree, on a free port; its log is in serve.log."""

    command: tuple[str, ...] = ("-m", "sixfold", "serve")  # of Python

    def __init__(self, tree: Tree, arguments: str = "--config serve.toml") -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        self._log = (tree.folder / "serve.log").open("wb")
        command = [*self.command, "--port", str(port), *shlex.split(arguments)]
        self._process = tree.start(*command, stdout=self._log, stderr=self._log)

    def __enter__(self) -> Server:
        try:
            end = time.monotonic() + 120
            while time.monotonic() < end and self._process.poll() is None:
                with contextlib.suppress(OSError):
                    self.ask("GET", "/ready")
                    return self
                time.sleep(0.1)
            raise CommandError("the server did not start")
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json", key: str = "") -> Any:
        """Status, content type and body of an answer."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        headers = {"Content-Type": kind, **({"Authorization": f"Bearer {key}"} if key else {})}
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return self._read(answer)
        except urllib.error.HTTPError as error:
            return self._read(error)

    def _read(self, answer: Any) -> dict[str, Any]:
        kind, body = answer.headers.get("Content-Type", ""), answer.read().replace(self.url.encode(), b"URL")
        if kind.startswith("application/json"):
            body = json.loads(body)
            body = dict.fromkeys(body) if answer.status >= 400 else body  # an error message is prose for people
        elif kind.startswith("text/html"):
            body = "prose for people"
        elif kind == "application/octet-stream":
            body = read_safetensors(body)
        return {"status": answer.status, "type": kind, "body": body}


def form_with_file(name: str, data: bytes, **fields: str) -> tuple[bytes, str]:
    """The body of a form with a file in it, and its content type."""
    parts = [f'--edge\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{fields[key]}\r\n' for key in fields]
    head = f'--edge\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    return "".join([*parts, head]).encode() + data + b"\r\n--edge--\r\n", "multipart/form-data; boundary=edge"


def interface(openapi: Any, schemas: Any = None) -> Any:
    """An OpenAPI description without prose and names of classes: references are replaced by what they name."""
    schemas = openapi["components"]["schemas"] if schemas is None else schemas
    if isinstance(openapi, list):
        return [interface(each, schemas) for each in openapi]
    if not isinstance(openapi, dict):
        return openapi
    if "$ref" in openapi:
        return interface(schemas[openapi["$ref"].rpartition("/")[2]], schemas)
    prose = ("title", "description", "summary", "operationId", "components", "version")
    return {key: interface(value, schemas) for key, value in openapi.items() if key not in prose or key == "properties"}


def metric_names(text: bytes) -> list[str]:
    """The names and labels of a server's measurements, without their values."""
    return sorted({line.rpartition(" ")[0] for line in text.decode().splitlines() if line and line[0] != "#"})


def answers(tree: Tree) -> dict[str, Any]:
    """The answer to every request, in one order, from a server that has just started."""
    with Server(tree) as server:
        found = {name: server.ask(*request) for name, request in REQUESTS.items()}
        refused = {name for name, answer in found.items() if answer["status"] != 200}
        if refused != {"nowhere", "libre mistake", "unknown field"}:
            raise CommandError(f"the server refused {', '.join(sorted(refused))}")
        page = (tree.folder / "doc.html").read_bytes()
        form = form_with_file("doc.html", page, source="en", target="zh")
        sent = server.ask("POST", "/translate_file", *form)
        address = sent["body"].get("translatedFileUrl", "").removeprefix("URL")
        found["libre file"] = {**sent, "body": list(sent["body"])}
        with urllib.request.urlopen(server.url + address, timeout=60) as answer:
            found["libre download"] = {"body": answer.read(), "type": answer.headers.get("Content-Type")}
        known = found["openapi"]["body"]["paths"]
        asked = {path for _, path, _ in REQUESTS.values()} | {"/translate_file", "/download_file/{name}"}
        if known.keys() - asked:
            raise CommandError(f"REQUESTS has none for {', '.join(known.keys() - asked)}")
        found["openapi"]["body"] = interface(found["openapi"]["body"])
        found["client"] = json.loads(tree.python("-W", "ignore::DeprecationWarning", "-c", CLIENT, server.url))
        found["metrics"] = metric_names(server.ask("GET", "/metrics")["body"])
    found["suggestions"] = {path.name: path.read_bytes() for path in tree.folder.glob("suggestions*")}
    log = [json.loads(line) for line in (tree.folder / "serve.log").read_bytes().splitlines() if line[:1] == b"{"]
    found["log"] = [{"event": line.get("event"), "fields": sorted(line)} for line in log if "/ready" not in str(line)]
    return found


def serve(_: Tree, __: argparse.Namespace) -> Iterator[Check]:
    yield Check("serve", answers, rows=True)


# ---------------------------------------------------------------------------------------------------------------------
# Files that OLD made

OLD_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "a run, more steps": (
        f"{TRAIN} --set training.packing=off --set training.steps=50 --json --output made/padded",
        ("made/padded/model.safetensors", "made/padded/checkpoints"),
    ),
    "a run, its report": ("report made/both --json", ()),
    "a run, its settings": ("config made/packed/config.toml --json", ()),
    "a run, from its settings": (
        "train old-config.toml --device cpu --json --output again --set training.steps=5", ("again/model.safetensors",),
    ),
    "a recipe": ("config both.toml --json", ()),
    "a model, summary": ("summary made/both/model.safetensors --json", ()),
    "a model, translation": ("translate 昨天我爱数学。 -m made/both/model.safetensors --to en --json --details", ()),
    "a model, fine-tuned": (
        "finetune made/padded/model.safetensors shout.zh shout.en --device cpu --json --output tuned "
        + settings("training.batch_tokens=256 training.micro_tokens=256 training.steps=5"),
        ("tuned/model.safetensors",),
    ),
    "a packed model": ("translate 昨天我爱数学。 -m old-packed.safetensors --to en --json --details", ()),
    "a packed model, summary": ("summary old-packed.safetensors --json", ()),
    "a tokeniser": ("tokenizer encode --model old-tokenizer.json --json 我爱机器学习", ()),
    "doctor.json": ("clean noisy.zh noisy.en --output healed --using old-doctor/doctor.json --json", ("healed.zh",)),
    "a half-written translation": ("translate long.zh --output long.en --resume", ("long.en",)),
    **{
        f"{verb} of {name}": (f"{command.format(model=f'{name}.safetensors')}", ())
        for name in ("format-1-float32", "format-1-int8")
        for verb, command in {
            "summary": "summary {model} --json",
            "translation": "translate 我喜欢猫。我看书！ -m {model} --json --details",
            "attention": "see 我喜欢猫。 -m {model} --view attention --json",
            "neighbours": "neighbours cats -m {model} --json",
            "tokenizer": "tokenizer encode -m {model} 我喜欢猫。 --json",
        }.items()
    },
}  # fmt: skip


def make_old_files(old: Tree, tree: Tree) -> None:
    """What OLD wrote, copied to the folder of a tree. OLD writes it once."""
    copy_made(old, tree)
    source = old.folder.parent / "old-files"
    if not source.exists():
        copy_made(old, old)
        old.sixfold("pack made/both --output old-packed.safetensors")
        old.sixfold("tokenizer train toy.zh toy.en --vocab 380 --output old-tokenizer.json")
        old.sixfold("doctor noisy.zh noisy.en --against test.zh --device cpu --output old-doctor")
        (old.folder / "key.txt").write_bytes(old.sixfold("serve --api-key-file keys.txt --new-key someone"))
        config = (old.folder / "made" / "packed" / "config.toml").read_text(encoding="utf-8")
        config += '\n[[corpus]]\nfiles = ["toy.zh", "toy.en"]\n'
        (old.folder / "old-config.toml").write_text(config, encoding="utf-8")
        kill_a_run(old, "old-killed")
        kill_a_translation(old)
        source.mkdir()
        for path in [path for name in ("old-*", "key*.txt", "*long.*") for path in old.folder.glob(name)]:
            shutil.move(path, source)
    if not (tree.folder / "old-killed").exists():
        shutil.copytree(source, tree.folder, dirs_exist_ok=True)


def kill_a_translation(old: Tree) -> None:
    """Leave what a translation of a file has written when it is killed."""
    lines = "".join(f"{source}\n" for source, _ in toy_pairs()[:60] * 20)
    (old.folder / "long.zh").write_text(lines, encoding="utf-8")
    os.utime(old.folder / "long.zh", (1e9, 1e9))
    command = shlex.split("translate long.zh --output long.en")
    with old.start("-m", "sixfold", *command, stdout=-3, stderr=-3) as process:
        while process.poll() is None and not any(path.stat().st_size for path in old.folder.glob("*long.en*")):
            time.sleep(0.005)
        process.kill()
    if (old.folder / "long.en").exists() and (old.folder / "long.en").read_bytes().count(b"\n") == 1200:
        raise CommandError("the translation was not killed in the middle")


def open_server(tree: Tree) -> dict[str, Any]:
    """Whether a key that OLD made opens a server, and whether another does."""
    key = re.findall(rb"\S{20,}", (tree.folder / "key.txt").read_bytes())[0].decode()
    with Server(tree, "--config serve.toml --api-key-file keys.txt") as server:
        body = {"texts": ["天气很好。"]}
        return {name: server.ask("POST", "/api/v1/translate", body, key=each) for name, each in
                {"key": key, "another key": key[::-1], "no key": ""}.items()}  # fmt: skip


def old_files(old: Tree, _: argparse.Namespace) -> Iterator[Check]:
    def prepared(tree: Tree, produce: Callable[[Tree], Any]) -> Any:
        make_old_files(old, tree)
        return produce(tree)

    yield Check("a killed run, resumed", partial(prepared, produce=partial(resume, name="old-killed")))
    for name, (command, files) in OLD_FILES.items():
        yield Check(name, partial(prepared, produce=partial(run_verb, command=command, files=files)))
    yield Check("the keys of a server", partial(prepared, produce=open_server))


# ---------------------------------------------------------------------------------------------------------------------
# All of it

PARTS: dict[str, Callable[[Tree, argparse.Namespace], Iterator[Check]]] = {
    "training": training,
    "translations": translations,
    "explore": explore,
    "verbs": verbs,
    "serve": serve,
    "old-files": old_files,
}


def outcome(check: Check, tree: Tree) -> tuple[Any, str]:
    """The result of a check in one tree, and what went wrong."""
    try:
        return without_paths(check.produce(tree), tree), ""
    except CommandError as error:
        return None, f"{tree.label.upper()} failed: {error}"
    except (ValueError, KeyError, OSError, zipfile.BadZipFile) as error:
        return None, f"{tree.label.upper()} left what cannot be read: {error!r:.300}"


def compare(check: Check, old: Tree, new: Tree) -> Iterator[tuple[str, list[str]]]:
    """The rows of a check, each with its differences."""
    (first, trouble), (second, more) = outcome(check, old), outcome(check, new)
    if trouble or more:
        yield check.name, [text for text in (trouble, more) if text]
        return
    first = rename(first)
    if not check.rows:
        yield check.name, list(differences(check.name, first, second))
        return
    for key in dict.fromkeys([*first, *second]):
        name = f"{check.name}: {key}"
        left, right = ({key: each[key]} if key in each else {} for each in (first, second))
        yield name, list(differences(name, left, right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    parser.add_argument("--data", type=Path, metavar="DIR", help="has dev/*.zh and dev/*.en")
    parser.add_argument("--lines", type=int, metavar="N", help="of each dev set; left out: all")
    parser.add_argument("--work", type=Path, metavar="DIR", help="an empty folder to keep; left out: a temporary one")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    for root in (options.old, options.new):
        if not (root / "src" / "sixfold" / "__init__.py").exists():
            parser.error(f"{root}: expected a source tree with src/sixfold in it")
    if options.work and options.work.exists() and any(options.work.iterdir()):
        parser.error(f"--work: {options.work} is not empty")
    with contextlib.ExitStack() as stack:
        work = options.work or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        sys.exit(run(options, work.resolve()))


def run(options: argparse.Namespace, work: Path) -> int:
    """Print the table; the exit status."""
    old, new = Tree("old", options.old, work), Tree("new", options.new, work)
    for tree in (old, new):
        write_inputs(tree.folder)
    rows, different = 0, 0
    with (work / "differences.txt").open("w", encoding="utf-8") as details:
        for part in options.only:
            for check in PARTS[part](old, options):
                for name, found in compare(check, old, new):
                    rows, different = rows + 1, different + bool(found)
                    print(f"{part:13} {name:42} {f'DIFFERENT in {len(found)}' if found else 'same'}", flush=True)
                    for line in found[:5]:
                        print(f"{'':14}{line}", flush=True)
                    details.writelines(f"{part}: {name}: {line}\n" for line in found)
    print(f"{rows - different} of {rows} checks are the same, {different} differ")
    return 1 if different or not rows else 0


if __name__ == "__main__":
    main()
