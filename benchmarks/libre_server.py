"""Runs LibreTranslate's own server offline with a Sixfold model. serve.py starts it where LibreTranslate is installed.

    python libre_server.py PORT FOLDER     # FOLDER: model/ (CTranslate2), tokenizer.json and about.json

Two parts of it are replaced before it starts: its tokeniser, by one that reads Sixfold's, and its sentence splitter,
which it would have to download, by a regular expression. The regular expression is faster than that splitter.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SENTENCE_END = re.compile(r"(?<=[。！？!?])(?![”’」』）)\"'])|(?<=[.!?])\s+(?=[A-Z\"'“‘(0-9])|(?<=[。！？][”’」』])")


def make_packages(folder: Path) -> None:
    """Make a package for each direction that share one model. With two packages, the server looks for no others."""
    for source, target in (("zh", "en"), ("en", "zh")):
        package = folder / "packages" / f"{source}_{target}"
        package.mkdir(parents=True, exist_ok=True)
        for name in ("model", "tokenizer.json", "about.json"):
            if not (package / name).exists():
                (package / name).symlink_to(folder / name)
        names = {"from_code": source, "from_name": source, "to_code": target, "to_name": target}
        about = {"package_version": "1.0", "argos_version": "1.0", **names}
        (package / "metadata.json").write_text(json.dumps(about), encoding="utf-8")
    os.environ["ARGOS_PACKAGES_DIR"] = str(folder / "packages")
    for name in ("DATA", "CONFIG", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(folder / name.lower())


def replace_parts() -> None:
    """Replace the tokeniser and the sentence splitter of argostranslate."""
    from argostranslate import package, sbd, translate
    from argostranslate.tokenizer import Tokenizer

    class SixfoldTokenizer(Tokenizer):  # type: ignore[misc]
        def __init__(self, folder: Path, target: str) -> None:
            import tokenizers

            state = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            self.character_map = str.maketrans(*state.get("fold", ("", "")))
            self.tag, self.eos, self.reserved = about["tags"][target], about["eos"], set(about["reserved"])
            self.rust = tokenizers.Tokenizer.from_str(json.dumps(state["rust"]))

        def encode(self, sentence: str) -> list[str]:
            ids = self.rust.encode(sentence.translate(self.character_map), add_special_tokens=False).ids
            return [str(token) for token in (self.tag, *ids, self.eos)]

        def decode(self, tokens: Sequence[str]) -> str:
            ids = [token for token in map(int, tokens) if token not in self.reserved]
            return self.rust.decode(ids, skip_special_tokens=False)

    class Splitter(sbd.ISentenceBoundaryDetectionModel):  # type: ignore[misc]
        def __init__(self, _package: Any) -> None:
            pass

        def split_sentences(self, text: str) -> list[str]:
            return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]

    original_init = package.Package.__init__

    def init(self: Any, path: Path) -> None:
        original_init(self, path)
        self.tokenizer = SixfoldTokenizer(self.package_path, self.to_code)

    package.Package.__init__ = init
    translate.MiniSBDSentencizer = Splitter


def main() -> None:
    port, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    make_packages(folder)
    os.chdir(folder)
    replace_parts()
    sys.argv = ["libretranslate", "--host", "127.0.0.1", "--port", port]
    from libretranslate.main import main as serve

    serve()


if __name__ == "__main__":
    main()
