"""Hostile requests: the server stays up, its memory does not grow, and good requests are still answered."""

import io
import resource
import time
import zipfile

import pytest
from small_servers import Server, connect, multipart, send_request, until

JSON = {"Content-Type": "application/json"}
GOOD = {"q": "我爱猫", "source": "zh", "target": "en"}


@pytest.fixture(scope="module")
def small(models):
    """A server with small limits."""
    with Server(models["tagged"], patience=1.0, max_body=20_000, max_file=100_000, max_connections=1500) as server:
        yield server


def assert_works(server):
    status, _, response = server.ask("/translate", GOOD)
    assert (status, response) == (200, {"translatedText": "I love cats"})


def read_all(connection):
    """Return all bytes until the server closes the connection."""
    data = b""
    while part := connection.recv(65536):
        data += part
    return data


def test_a_head_that_comes_a_byte_at_a_time_is_cut_off(small):
    with connect(small) as slow:
        start = time.monotonic()
        with pytest.raises(ConnectionError):  # noqa: PT012 -- which of the sends fails is a matter of time
            while time.monotonic() < start + 60:
                slow.sendall(b"G")
                time.sleep(0.1)
    assert_works(small)


def test_a_silent_connection_is_closed(small):
    with connect(small) as silent:
        assert read_all(silent) == b""
    with connect(small) as second:  # its first request is complete, its second is not
        second.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        response = b""
        while not response.endswith(b'{"status":"ok"}'):
            response += second.recv(65536)
        second.sendall(b"GET /hea")
        assert read_all(second) == b""
    assert_works(small)


def test_a_body_that_never_ends_or_never_comes_is_refused(small):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with connect(small) as late:
        late.sendall(head + b"Content-Length: 50\r\n\r\n{")
        assert b"408" in late.recv(65536).split(b"\r\n")[0]
    with connect(small) as endless:
        endless.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):  # noqa: PT012
            for _ in range(10_000):
                endless.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
                time.sleep(0.001)
    assert_works(small)


def test_what_is_too_large_is_told_so(small):
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    for rest in (  # refused by its Content-Length, or else when too many bytes have arrived
        b"Content-Length: 20001\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n" + 6 * (b"1000\r\n" + b"x" * 4096 + b"\r\n"),
    ):
        with connect(small) as large:
            large.sendall(head + rest)
            assert b"413" in large.recv(65536).split(b"\r\n")[0]
    assert small.ask("/translate", {**GOOD, "q": "我" * 20_000})[0] == 413
    assert small.ask("/translate_file", *multipart("a.txt", b"x" * 200_000, source="zh", target="en"))[0] == 413
    assert_works(small)


def test_heads_that_are_no_http(small):
    for raw in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 400_000 + b"\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"GET /\x00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ):
        with connect(small) as bad:
            bad.sendall(raw)
            assert bad.recv(65536).startswith(b"HTTP/1.1 4")
    assert_works(small)


def test_nothing_that_is_sent_becomes_a_header_or_a_path(small):
    bad = "x\r\nSet-Cookie: a=b"
    for path, body, headers in (
        ("/download_file/x%0d%0aSet-Cookie:%20a=b", None, {}),
        ("/translate", {**GOOD, "source": bad, "format": bad}, {}),
        ("/translate_file", *multipart("..%2f..\\..\\x\u202e.txt", "我爱猫".encode(), source="zh", target="en")),
    ):
        _, response_headers, response = small.ask(path, body, headers)
        assert "Set-Cookie" not in response_headers
        if "translatedFileUrl" in response:
            name = response["translatedFileUrl"].rpartition("/")[2]
            assert small.ask(f"/download_file/{name}")[0] == 200
    for path in ("/..%2f..%2fetc/passwd", "//etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/static/../../etc/passwd"):
        assert small.ask(path)[0] == 404
    assert_works(small)


def docx_with_zeros(name, size):
    """Return a DOCX file with a part of `size` MiB of zeros."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("[Content_Types].xml", "<Types/>")
        with file.open(name, "w", force_zip64=True) as part:
            for _ in range(size):
                part.write(b"\0" * 2**20)
    return data.getvalue()


def test_a_zip_bomb_and_hostile_markup_are_no_trouble(models):
    with Server(models["tagged"], max_file=2_000_000) as server:
        assert_works(server)
        before = server.memory()
        bomb = docx_with_zeros("word/document.xml", 400)
        assert len(bomb) < 2_000_000
        status, _, response = server.ask("/translate_file", *multipart("a.docx", bomb, source="zh", target="en"))
        assert (status, "error" in response) == (400, True)
        for text in ("<b>" * 30_000, "<!--" * 30_000, "<a b='" * 15_000, "&" * 60_000, "<" * 90_000, "<a" * 45_000):
            upload = multipart("a.html", ("我" + text).encode(), source="zh", target="en")
            assert server.ask("/translate_file", *upload)[0] == 200
        assert server.memory() < before + 150 * 2**20
        assert_works(server)


def test_a_thousand_idle_connections_leave_room_for_others(models):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("needs 3000 open files, which this system does not allow")
    resource.setrlimit(resource.RLIMIT_NOFILE, (3000, hard))
    try:
        with Server(models["tagged"], max_connections=1200) as server:
            assert_works(server)
            before = server.memory()
            idle = [connect(server) for _ in range(1000)]
            assert_works(server)
            assert server.memory() < before + 100 * 2**20
            more = [connect(server) for _ in range(250)]
            assert server.ask("/health")[0] == 503  # the limit of connections is reached
            for each in idle + more:
                each.close()
            assert until(lambda: server.ask("/health")[0] == 200)
            assert_works(server)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_whoever_leaves_is_not_waited_for(models):
    with Server(models["tagged"], threads=1, cache=0) as server:
        assert_works(server)
        before = server.memory()
        fields = {"texts": ["\n".join("我爱猫你看书" for _ in range(2000))], "target": "en", "beam": 16}
        for _ in range(10):
            with send_request(server, "/api/v1/translate/stream", fields):
                time.sleep(0.05)
        assert_works(server)
        assert until(lambda: b"sixfold_queue_sentences 0\n" in server.ask("/metrics")[2])
        assert server.memory() < before + 100 * 2**20
