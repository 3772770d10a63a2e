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
import subprocess
import sys
import tempfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator
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
    ("*", "*/memory", "of the process, as the system reports it"),
    ("*", "*/metadata/checksum", "it covers the card, which has a time"),
    ("*", "*/hours", "a time"),
    ("*", "*/seconds", "a time"),
    ("*", "*/tensorboard/*", "names and contents have times"),
    ("*", "*.html", "prose for people"),
    ("*", "*/corpora/to start from/0", "the checksum of a file with a time in its card"),
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
    if any(fnmatch.fnmatch(check, name) and fnmatch.fnmatch(path, place) for name, place, _ in SKIPPED):
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
    "packed": f"{TRAIN} {settings('training.packing=on training.compile=off training.subword_sampling=0.1')} --json",
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
        yield Check(name, lambda tree, name=name: training_rows(tree, name))

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
        yield Check(path.name if path else "toy.zh", lambda tree, path=path: translate(tree, path))


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
# All of it

PARTS: dict[str, Callable[[Tree, argparse.Namespace], Iterator[Check]]] = {
    "training": training,
    "translations": translations,
    "explore": explore,
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
