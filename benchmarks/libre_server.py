"""LibreTranslate's own server, offline, with a model of ours: started by serve.py in an environment that has it.

    python libre_server.py PORT FOLDER     # FOLDER: model/ (CTranslate2), tokenizer.json and about.json

Two things are put in from outside before it starts, and nothing else is changed: a tokeniser that reads ours, and
sentences split by a regular expression, as its own splitter would be downloaded; that is quicker than its own.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

END = re.compile(r"(?<=[。！？!?])(?![”’」』）)\"'])|(?<=[.!?])\s+(?=[A-Z\"'“‘(0-9])|(?<=[。！？][”’」』])")


def lay_out(folder: Path) -> None:
    """Two packages, one for either direction, that share a model; with two there is no look for more."""
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


def put_in() -> None:
    from argostranslate import package, sbd, translate
    from argostranslate.tokenizer import Tokenizer

    class Ours(Tokenizer):  # type: ignore[misc]
        def __init__(self, folder: Path, target: str) -> None:
            import tokenizers

            state = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
            about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
            self.fold = str.maketrans(*state.get("fold", ("", "")))
            self.tag, self.eos, self.reserved = about["tags"][target], about["eos"], set(about["reserved"])
            self.rust = tokenizers.Tokenizer.from_str(json.dumps(state["rust"]))

        def encode(self, sentence: str) -> list[str]:
            ids = self.rust.encode(sentence.translate(self.fold), add_special_tokens=False).ids
            return [str(each) for each in (self.tag, *ids, self.eos)]

        def decode(self, tokens: Sequence[str]) -> str:
            ids = [each for each in map(int, tokens) if each not in self.reserved]
            return self.rust.decode(ids, skip_special_tokens=False)

    class Splitter(sbd.ISentenceBoundaryDetectionModel):  # type: ignore[misc]
        def __init__(self, _package: Any) -> None:
            pass

        def split_sentences(self, text: str) -> list[str]:
            return [part.strip() for part in END.split(text) if part.strip()]

    before = package.Package.__init__

    def init(self: Any, path: Path) -> None:
        before(self, path)
        self.tokenizer = Ours(self.package_path, self.to_code)

    package.Package.__init__ = init
    translate.MiniSBDSentencizer = Splitter


def main() -> None:
    port, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    lay_out(folder)
    os.chdir(folder)
    put_in()
    sys.argv = ["libretranslate", "--host", "127.0.0.1", "--port", port]
    from libretranslate.main import main as serve

    serve()


if __name__ == "__main__":
    main()
