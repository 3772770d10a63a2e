"""Runs LibreTranslate's own server offline with Argos packages; an interpreter that has LibreTranslate runs it.

    python libre_argos_server.py PORT FOLDER PACKAGE...    # FOLDER: where packages are installed

One part of it is replaced before it starts: its sentence splitter, which it would have to download. The new one takes
each text as one sentence.
"""

import os
import sys
from pathlib import Path


def main():
    port, folder, *packages = sys.argv[1:]
    for name in ("DATA", "CONFIG", "CACHE"):
        os.environ[f"XDG_{name}_HOME"] = str(Path(folder) / name.lower())
    os.environ["ARGOS_PACKAGES_DIR"] = str(Path(folder) / "packages")
    os.environ["ARGOS_COMPUTE_TYPE"] = "int8"
    os.chdir(folder)
    from argostranslate import package, sbd, translate

    class Whole(sbd.ISentenceBoundaryDetectionModel):
        def __init__(self, _package):
            pass

        def split_sentences(self, text):
            return [text]

    translate.MiniSBDSentencizer = translate.StanzaSentencizer = translate.SpacySentencizerSmall = Whole
    for path in packages:
        package.install_from_path(Path(path))
    sys.argv = ["libretranslate", "--host", "127.0.0.1", "--port", port]
    from libretranslate.main import main as serve

    serve()


if __name__ == "__main__":
    main()
