"""Runs LibreTranslate's own tests of its HTTP interface against `sixfold serve`, and prints how many pass.

    python benchmarks/libre_suite.py SDIST            # SDIST: the unpacked source distribution of `libretranslate`
    python benchmarks/libre_suite.py SDIST --url http://127.0.0.1:5000

Their tests run unchanged, from a copy in a temporary folder. Only the fixture `client`, which is Flask's test client of
LibreTranslate's application, is another one: it sends the same requests to a server over HTTP. Their tests translate
from English into Spanish; where the server has no Spanish, the client asks for Chinese instead.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CONFTEST = '''
import json
import os
import urllib.error
import urllib.parse
import urllib.request

import pytest

URL = os.environ["LIBRE_SUITE_URL"]
FALLBACK = "zh"  # a target language, for a server that has no Spanish


class Response:
    """A response with the attributes of Flask's that the tests use."""

    def __init__(self, status_code, data):
        self.status_code, self.data = status_code, data

    @property
    def json(self):
        return json.loads(self.data)


class Client:
    """Sends the requests of Flask's test client over HTTP."""

    def __init__(self):
        languages = json.loads(self.get("/languages").data)
        self._has_spanish = any(each["code"] == "es" for each in languages)

    def get(self, path):
        return self._send(path, None, {}, "GET")

    def post(self, path, data=None, json=None):
        if json is not None:
            body, kind = self._encode_json(json), "application/json"
        else:
            body, kind = urllib.parse.urlencode(self._replace(data or {})).encode(), "application/x-www-form-urlencoded"
        return self._send(path, body, {"Content-Type": kind}, "POST")

    def _encode_json(self, fields):
        return json.dumps(self._replace(fields)).encode()

    def _replace(self, fields):
        is_replaced = fields.get("target") == "es" and not self._has_spanish
        return {**fields, "target": FALLBACK} if is_replaced else fields

    def _send(self, path, body, headers, method):
        request = urllib.request.Request(URL + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return Response(response.status, response.read())
        except urllib.error.HTTPError as error:
            return Response(error.code, error.read())


@pytest.fixture(scope="session")
def client():
    return Client()
'''


def run_suite(sdist: Path, url: str) -> int:
    """Run the tests of an unpacked source distribution against a server; return pytest's exit status."""
    tests = sorted((sdist / "libretranslate" / "tests" / "test_api").glob("test_*.py"))
    if not tests:
        raise SystemExit(f"{sdist}: expected libretranslate/tests/test_api in it; unpack the sdist of libretranslate")
    with tempfile.TemporaryDirectory() as folder:
        for path in tests:
            shutil.copy(path, folder)
        Path(folder, "conftest.py").write_text(CONFTEST, encoding="utf-8")
        Path(folder, "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "--tb=short", "-rA", "-p", "no:cacheprovider", folder]
        environment = {**os.environ, "LIBRE_SUITE_URL": url.rstrip("/")}
        return subprocess.run(command, env=environment, cwd=folder, check=False).returncode


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sdist", type=Path, help="folder of the unpacked source distribution of libretranslate")
    parser.add_argument("--url", help="server to test; default: one with the model that ships is started")
    arguments = parser.parse_args()
    if arguments.url:
        raise SystemExit(run_suite(arguments.sdist, arguments.url))
    command = [sys.executable, "-m", "sixfold", "serve", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8") as server:
        assert server.stderr is not None
        try:
            lines = (json.loads(line) for line in server.stderr)
            url = next(line["url"] for line in lines if line.get("event") == "listening")
            status = run_suite(arguments.sdist, url)
        finally:
            server.terminate()
    raise SystemExit(status)


if __name__ == "__main__":
    main()
