"""The nginx example of the guide, as it is written, with Debian's nginx in front of two servers."""

import http.client
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import tomllib
from pathlib import Path

import pytest
from small_servers import Server, multipart, until

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
GUIDE = Path(__file__).parents[2] / "docs/guides/serving.md"
NAME = "translate.example.org"
CLIENT = "127.0.0.2"  # the address that requests come from; nginx reaches the servers from 127.0.0.1
CLIENTS = [f"127.0.0.{number}" for number in range(2, 18)]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not NGINX or not shutil.which("openssl"), reason="needs nginx and openssl: apt-get install nginx"
    ),
]


def block(kind):
    (text,) = re.findall(rf"```{kind}\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.S)
    return text


def replace(text, old, new):
    assert old in text
    return text.replace(old, new)


@pytest.fixture(scope="module")
def servers(models):
    """Two servers with the settings of the guide."""
    settings = tomllib.loads(replace(block("toml"), "10.0.0.0/24", "127.0.0.1"))
    with Server(models["tagged"], **settings) as first, Server(models["tagged"], **settings) as second:
        yield first, second


@pytest.fixture(scope="module")
def proxy(servers, tmp_path_factory):
    """The port of nginx, which runs with the configuration of the guide."""
    folder = tmp_path_factory.mktemp("nginx")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}"]
    subprocess.run([*command, "-keyout", folder / "a.key", "-out", folder / "a.pem"], check=True, capture_output=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = block("nginx")
    for old, new in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("10.0.0.1:5000", f"127.0.0.1:{servers[0].port}"),
        ("10.0.0.2:5000", f"127.0.0.1:{servers[1].port}"),
        ("/etc/ssl/translate.pem", str(folder / "a.pem")),
        ("/etc/ssl/translate.key", str(folder / "a.key")),
    ):
        text = replace(text, old, new)
    temporary = "".join(
        f"{name}_temp_path {folder / name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    user = "user root;\n" if os.geteuid() == 0 else ""  # whose temporary folder this is
    config = f"{user}daemon off;\npid {folder}/pid;\nevents {{}}\nhttp {{\naccess_log off;\n{temporary}{text}}}\n"
    (folder / "nginx.conf").write_text(config, encoding="utf-8")
    command = [NGINX, "-e", "stderr", "-p", str(folder), "-c", str(folder / "nginx.conf")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert until(lambda: is_listening(port) or process.poll() is not None)
        assert process.poll() is None, process.stderr.read()
        yield port
    finally:
        process.terminate()
        process.wait(10)
        process.stderr.close()


def is_listening(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def request(port, path, body=None, headers=None, host=NAME, client=CLIENT):
    """Return the open response of a request over TLS, and its connection."""
    if isinstance(body, dict):
        body, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(
        "127.0.0.1", port, timeout=120, source_address=(client, 0), context=context
    )
    connection.request("POST" if body else "GET", path, body, {"Host": f"{host}:{port}", **(headers or {})})
    return connection.getresponse(), connection


def ask(port, path, body=None, headers=None, **choices):
    response, connection = request(port, path, body, headers, **choices)
    data = response.read()
    connection.close()
    return response.status, data


def test_texts_are_translated_and_each_client_has_its_own_address(servers, proxy):
    fields = {"q": "我爱猫", "source": "zh", "target": "en"}
    claim = {"Content-Type": "application/json", "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "localhost"}
    for _ in range(4):
        status, data = ask(proxy, "/translate", json.dumps(fields).encode(), claim)
        assert (status, json.loads(data)) == (200, {"translatedText": "I love cats"})
    lines = until(lambda: [line for server in servers for line in server.log if "who" in line])
    assert {line["who"] for line in lines} == {CLIENT}


def test_the_page_is_shown_metrics_are_not_and_other_names_are_refused(proxy):
    assert b"static/app.js" in ask(proxy, "/")[1]
    assert ask(proxy, "/metrics")[0] == 403
    assert ask(proxy, "/health")[0] == 200
    assert ask(proxy, "/health", host="evil.example")[0] == 421
    assert ask(proxy, "/health", headers={"X-Forwarded-Host": NAME}, host="evil.example")[0] == 421


@pytest.mark.parametrize("path", ["/translate_file", "/api/v1/translate_file/stream"])
def test_every_client_finds_its_files_and_both_servers_have_work(servers, proxy, path):
    start = f"https://{NAME}:{proxy}"
    for client in CLIENTS:
        upload = multipart("a.txt", f"我爱猫{client}".encode(), source="zh", target="en")
        status, data = ask(proxy, path, *upload, client=client)
        assert status == 200, data
        url = re.search(rb'"translatedFileUrl": ?"(.*?)"', data)[1].decode()
        assert url.startswith(f"{start}/download_file/")
        for _ in range(2):
            status, data = ask(proxy, url.removeprefix(start), client=client)
            assert (status, data[:11]) == (200, b"I love cats")
    # A line is logged after its response has been sent.
    counts = lambda: [sum(line.get("route") == path for line in server.log) for server in servers]  # noqa: E731
    assert until(lambda: sum(counts()) == len(CLIENTS))
    assert min(counts()) > 0


def test_a_file_may_be_as_large_as_the_server_allows(proxy):
    upload = multipart("a.html", b"<!--%s-->" % (b"x" * 9_990_000), source="zh", target="en")  # no prose
    status, data = ask(proxy, "/translate_file", *upload)
    assert status == 200, data
    assert ask(proxy, "/translate_file", *multipart("a.txt", b"x" * 10_100_000, source="zh", target="en"))[0] == 413


def test_an_event_comes_while_the_next_text_is_being_translated(proxy):
    texts = ["我爱猫", "".join(f"我爱猫{number}你看书。" for number in range(2000))]
    response, connection = request(proxy, "/api/v1/translate/stream", {"texts": texts, "target": "en"})
    first = response.read1(100_000)
    assert b"I love cats" in first
    assert first.count(b"event: ") == 1
    assert response.read().endswith(b'event: done\ndata: {"count": 2}\n\n')
    connection.close()
