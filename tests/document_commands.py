"""The commands and the Python of a page of documentation, run as a reader would run them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

from small_runs import shared_toy
from small_servers import Server

ROOT = Path(__file__).parents[1]
PROGRAMS = {"sixfold": f"{sys.executable} -m sixfold", "python": sys.executable, "printf": "printf"}


def code_blocks(document, language):
    """Return the code blocks of one language in a page, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def shell_commands(document):
    """Return the commands of a page that a test can run: those of sixfold, python and printf."""
    lines = [line for block in code_blocks(document, "sh") for line in block.splitlines()]
    return [line for line in lines if line.partition(" ")[0] in PROGRAMS]


def run_command(command, folder):
    """Run one command in a folder and return what it printed."""
    if command == "sixfold serve":  # never ends by itself: the page must be there, and the server must stop
        with Server() as server:
            assert server.ask("/")[0] == 200
            assert server.stop() == 0
        return ""
    program, _, arguments = command.partition(" ")
    line = f"{PROGRAMS[program]} {arguments}"
    process = subprocess.run(line, shell=True, cwd=folder, capture_output=True, encoding="utf-8", timeout=300)
    assert process.returncode == 0, (command, process.stderr)
    return process.stdout


def run_document(document, folder, tmp_path_factory):
    """Run all commands of a page, one after another, in a new folder that has the examples; return the folder."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    commands = shell_commands(document)
    assert len(commands) >= 5
    for command in commands:
        if command == "python examples/toy_translation.py toy.safetensors":  # in several pages: trained once
            shutil.copy(shared_toy(tmp_path_factory), folder)
        else:
            run_command(command, folder)
    return folder


def run_python(document):
    """Run the Python blocks of a page in the current folder, each by itself."""
    blocks = code_blocks(document, "python")
    assert blocks
    for block in blocks:
        exec(compile(block, document, "exec"), {})
