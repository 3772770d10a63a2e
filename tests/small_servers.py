"""Runs `sixfold serve` in a new process, with small models."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

from starlette.testclient import TestClient

from sixfold.serving.app import make_app
from sixfold.serving.models import ReloadingModels
from sixfold.serving.options import ServeOptions


class Server:
    """A server that is ready once it listens; `log` has one dictionary for each line of its output."""

    def __init__(self, *models, port=0, **settings):
        self.log = []
        arguments = [word for model in models for word in ("--model", str(model))]
        self._config = tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".toml")  # noqa: SIM115
        if settings:
            values = (f"{name} = {json.dumps(value)}" for name, value in settings.items())
            self._config.write("\n".join(values))
            self._config.flush()
            arguments += ["--config", self._config.name]
        command = [sys.executable, "-m", "sixfold", "serve", "--port", str(port), *arguments]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
        self._listens = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listens.wait(180), self.log
        self.url = next(line["url"] for line in self.log if line.get("event") == "listening")
        self.port = urlsplit(self.url).port

    def _read(self):
        for line in self.process.stderr:
            try:
                self.log.append(json.loads(line))
            except ValueError:
                self.log.append({"raw": line})
            if self.log[-1].get("event") == "listening":
                self._listens.set()
        self._listens.set()

    def events(self, kind):
        return [line for line in list(self.log) if line.get("event") == kind]

    def ask(self, path, body=None, headers=None, timeout=120, method=None):
        """Send a request; return the status, the headers and the body, parsed if it is JSON."""
        if isinstance(body, dict | list):
            body, headers = json.dumps(body).encode(), {"Content-Type": "application/json", **(headers or {})}
        request = urllib.request.Request(self.url + path, body, headers or {}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as response:
                return response.status, response.headers, read(response)
        except urllib.error.HTTPError as response:
            return response.code, response.headers, read(response)

    def memory(self):
        """Return the resident memory in bytes."""
        pages = Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")

    def stop(self, how=signal.SIGTERM, timeout=120):
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(timeout)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop(signal.SIGKILL)
        self._reader.join(10)  # it reads the last lines
        self.process.stderr.close()
        self._config.close()


def in_process(*models, client=("127.0.0.1", 50000), log=lambda _: None, url="http://localhost", **settings):
    """Return a client of the application in this process; requests come from the address `client`."""
    app = make_app(ServeOptions(**settings), ReloadingModels(list(models), 1), log=log)
    return TestClient(app, url, client=client, follow_redirects=False)


def read(response):
    data = response.read()
    kind = response.headers.get("Content-Type", "")
    return json.loads(data) if kind.startswith("application/json") else data


def connect(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=60)


def send_request(server, path, body, headers=None):
    """Return a connection with a request sent; closing it before the response cancels the request."""
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    head = {"Host": "localhost", "Content-Length": len(body), **headers}
    connection = connect(server)
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    connection.sendall(f"POST {path} HTTP/1.1\r\n{lines}\r\n".encode() + body)
    return connection


def multipart(name, data, **fields):
    """Return a form with a file, and its header."""
    edge = b"----edge"
    parts = [
        b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (edge, key.encode(), value.encode())
        for key, value in fields.items()
    ]
    head = b'--%s\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\n\r\n' % (edge, name.encode())
    body = b"".join([*parts, head, data, b"\r\n--%s--\r\n" % edge])
    return body, {"Content-Type": f"multipart/form-data; boundary={edge.decode()}"}


def until(condition, seconds=60):
    """Wait until a condition that another process fulfils is true."""
    end = time.monotonic() + seconds
    while not (value := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return value
