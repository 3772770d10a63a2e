"""Argos packages of the model that ships, installed and served by the real LibreTranslate."""

import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from sixfold import modelfile
from sixfold.cli.export import difference
from sixfold.decoding.options import SearchOptions
from sixfold.engines.cpu import CpuEngine
from sixfold.interop.exporting import Export, export
from sixfold.translation.direction import directions_of
from sixfold.translation.loading import shipped_models

ROOT = Path(__file__).parents[2]
PYTHON = Path(os.environ.get("SIXFOLD_LIBRETRANSLATE", ROOT / ".venv/libretranslate/bin/python"))
SENTENCES = {
    ("zh", "en"): [
        "机器学习很有趣。", "他们明天早上坐火车去北京。", "这家公司去年的收入增长了百分之十二。", "图书馆几点开门？",
        "我不知道他为什么没有来。", "下雨的时候，我们在家里看书。",
    ],
    ("en", "zh"): [
        "Machine learning is interesting.", "They took the first train to the coast.",
        "What time does the museum open?",
        "The price of bread rose by three percent last month.", "Nobody knew why he had left so early.",
        "We stayed at home and read because it was raining.",
    ],
}  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not PYTHON.exists(), reason="needs LibreTranslate: make slow installs it"),
]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", data, {"Content-Type": "application/json"} if data else {}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


@pytest.fixture
def served(tmp_path):
    """A LibreTranslate that serves both directions, and the directions of our model."""
    file = modelfile.load(shipped_models()[0])
    engine = CpuEngine(file, "int8", threads=1, shortlist=False)
    directions = {each.languages: each for each in directions_of(file, engine, file.tokenizer)}
    packages = []
    for pair, direction in directions.items():
        export(Export(file, pair, direction.special), "argos", tmp_path / "-".join(pair), difference)
        packages += (tmp_path / "-".join(pair)).iterdir()
    port = free_port()
    (tmp_path / "home").mkdir()
    command = [PYTHON, ROOT / "tests/libre_argos_server.py", str(port), tmp_path / "home", *packages]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(list(map(str, command)), stdout=log, stderr=log)
        try:
            for _ in range(180):
                if process.poll() is not None:
                    pytest.fail((tmp_path / "log").read_text(encoding="utf-8")[-2000:])
                try:
                    ask(port, "/languages")
                    break
                except (urllib.error.URLError, ConnectionError):
                    time.sleep(1)
            yield port, directions
        finally:
            process.terminate()
            process.wait(30)


def test_libretranslate_gives_the_translations_of_the_model(served):
    port, directions = served
    for pair, sentences in SENTENCES.items():
        direction = directions[pair]
        # The options that Argos Translate gives to CTranslate2.
        options = SearchOptions(beam=4, length_penalty=0.2, patience=1.0, ignore_shortlist=True)
        for sentence in sentences:
            (hypotheses,) = direction.engine.decode(
                [direction.encoder_input(direction.tokenizer.encode(sentence))], options
            )
            body = {"q": sentence, "source": pair[0], "target": pair[1]}
            theirs = ask(port, "/translate", body)["translatedText"]
            # LibreTranslate makes the mark at the end that of the source.
            ours = direction.decode_target(hypotheses[0].tokens)
            assert " ".join(theirs.split()).rstrip(".。?？") == ours.rstrip(".。?？"), sentence
