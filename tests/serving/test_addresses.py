"""Hosts that are served, proxies that are believed, the URL prefix, other origins, and HEAD."""

import pytest
from commands import complaint
from libretranslatepy import LibreTranslateAPI
from small_servers import Server, connect, in_process, multipart

from sixfold import Client
from sixfold.errors import ConfigError
from sixfold.serving.addresses import host_name, parse_address
from sixfold.serving.options import ServeOptions

GOOD = {"q": "我爱猫", "source": "zh", "target": "en"}
PREFIX = "/translate-app"


@pytest.fixture(scope="module")
def client(models):
    with in_process(models["tagged"]) as client:
        yield client


def status(client, host):
    return client.get("/health", headers={"Host": host}).status_code


def test_a_name_that_is_not_served_is_refused_because_it_may_be_rebound(client):
    for host in (
        "localhost",
        "LOCALHOST:5000",
        "127.0.0.1:5000",
        "[::1]:5000",
        "192.168.1.7",
        "10.0.0.1:80",
        "localhost.",
    ):
        assert status(client, host) == 200, host
    for host in ("evil.example", "evil.example:5000", "localhost.evil.example", "127.0.0.1.evil.example", "a@localhost",
                 "localhost:x", "localhost/x", "x", "*", "[::1", " "):  # fmt: skip
        assert status(client, host) == 421, host
    response = client.post("/translate", json=GOOD, headers={"Host": "evil.example"})
    assert response.json() == {
        "error": "this server does not serve the host 'evil.example'",
        "hint": "the setting `hosts` names the hosts it serves",
    }


def test_the_setting_hosts_names_what_is_served(models):
    with in_process(models["tagged"], hosts=("translate.example.org", "*.example.com")) as client:
        for host in ("translate.example.org", "Translate.Example.Org.:443", "a.example.com", "localhost", "10.1.1.1"):
            assert status(client, host) == 200, host
        for host in ("example.org", "example.com", "x.translate.example.org", "aexample.com"):
            assert status(client, host) == 421, host
    with in_process(models["tagged"], hosts=("*",), host="0.0.0.0") as client:
        assert status(client, "anything.example") == 200


def test_a_request_without_a_host_is_answered(server):
    with connect(server) as old:
        old.sendall(b"GET /health HTTP/1.0\r\n\r\n")
        assert old.recv(65536).startswith(b"HTTP/1.1 200")


def test_only_trusted_proxies_say_who_asks_and_how(models):
    headers = {
        "X-Forwarded-For": "1.2.3.4, 203.0.113.9, 10.0.0.7",
        "X-Forwarded-Proto": "https",
        "X-Forwarded-Host": "translate.example.org",
    }
    upload = multipart("a.txt", "我爱猫".encode(), source="zh", target="en")
    settings = {"trusted_proxies": ("10.0.0.0/8", "::1"), "hosts": ("translate.example.org",)}
    for proxy, client_address, start in (
        ("10.0.0.5", "203.0.113.9", "https://translate.example.org/download_file/"),
        ("::ffff:10.0.0.5", "203.0.113.9", "https://translate.example.org/download_file/"),
        ("::1", "203.0.113.9", "https://translate.example.org/download_file/"),
        ("11.0.0.5", "11.0.0.5", "http://localhost/download_file/"),
    ):
        log = []
        with in_process(models["tagged"], client=(proxy, 999), log=log.append, **settings) as client:
            response = client.post("/translate_file", content=upload[0], headers=upload[1] | headers)
            assert response.json()["translatedFileUrl"].startswith(start)
        assert next(line["who"] for line in log if "who" in line) == client_address
    with in_process(models["tagged"], client=("10.0.0.5", 999), trusted_proxies=("10.0.0.5",)) as client:
        assert client.get("/health", headers={"X-Forwarded-Host": "evil.example"}).status_code == 421
        assert client.get("/health", headers={"X-Forwarded-For": "no address", "X-Forwarded-Proto": "x"}).json()


def test_each_address_behind_a_trusted_proxy_has_its_own_limit(models):
    settings = {"client": ("10.0.0.5", 999), "trusted_proxies": ("10.0.0.5",), "requests_per_minute": 1}
    with in_process(models["tagged"], **settings) as client:
        asked = [("203.0.113.1", 200), ("203.0.113.1", 429), ("203.0.113.2:4711", 200), ("6.6.6.6, 203.0.113.2", 429)]
        for forwarded, expected in asked:  # what a client claims itself comes before the address that the proxy adds
            response = client.post("/translate", json=GOOD, headers={"X-Forwarded-For": forwarded})
            assert response.status_code == expected, forwarded


def test_addresses_are_read_with_and_without_a_port():
    texts = ("1.2.3.4", "1.2.3.4:80", "[2001:db8::1]:80", "2001:db8::1", "::ffff:1.2.3.4", "name", "", "1.2.3.4:x")
    parsed = ("1.2.3.4", "1.2.3.4", "2001:db8::1", "2001:db8::1", "1.2.3.4", "None", "None", "None")
    assert tuple(str(parse_address(text)) for text in texts) == parsed
    assert host_name("Example.org:80") == "example.org"


def test_everything_is_below_the_prefix(models):
    for prefix in (PREFIX, "translate-app/"):
        with in_process(models["tagged"], url_prefix=prefix) as client:
            assert client.post(f"{PREFIX}/translate", json=GOOD).json() == {"translatedText": "I love cats"}
            for path in ("/translate", f"{PREFIX}er/translate"):
                assert client.post(path, json=GOOD).status_code == 404
            for path in ("/?screen=walk", f"{PREFIX}?screen=walk"):
                response = client.get(path)
                assert (response.status_code, response.headers["Location"]) == (307, f"{PREFIX}/?screen=walk")
            assert "static/app.js" in client.get(f"{PREFIX}/").text
            assert client.get(f"{PREFIX}/static/app.js").status_code == 200
            assert client.get(f"{PREFIX}/spec").json()["servers"] == [{"url": PREFIX}]
            assert f"POST {PREFIX}/translate" in client.get(f"{PREFIX}/docs").text
            body, headers = multipart("a.txt", "我爱猫".encode(), source="zh", target="en")
            url = client.post(f"{PREFIX}/translate_file", content=body, headers=headers).json()["translatedFileUrl"]
            assert url.startswith(f"http://localhost{PREFIX}/download_file/")
            assert client.get(url).text == "I love cats"
            assert 'route="/translate"' in client.get(f"{PREFIX}/metrics").text


def test_larger_files_streams_and_keys_are_known_below_the_prefix_too(models, tmp_path):
    settings = {"url_prefix": PREFIX, "max_body": 1000, "deadline": 0.001, "cache": 0}
    with in_process(models["tagged"], **settings) as client:
        body, headers = multipart("a.exe", b"x" * 5000, source="zh", target="en")
        assert client.post(f"{PREFIX}/translate_file", content=body, headers=headers).status_code != 413
        response = client.post(f"{PREFIX}/api/v1/translate/stream", json={"texts": ["我爱猫" * 20], "target": "en"})
        assert response.text.endswith("\n\n")
        assert "event: done" in response.text
    keys = tmp_path / "keys"
    keys.write_text("", encoding="utf-8")
    with in_process(models["tagged"], url_prefix=PREFIX, api_key_file=str(keys)) as client:
        assert client.get(f"{PREFIX}/languages").status_code == 200
        assert client.get(f"{PREFIX}/metrics").status_code == 400


def test_clients_work_below_a_prefix(models):
    with Server(models["tagged"], url_prefix=PREFIX) as server:
        assert server.url.endswith(PREFIX)
        assert LibreTranslateAPI(server.url).translate("我爱猫", "zh", "en") == "I love cats"
        with Client(server.url) as client:
            assert client.translate("我爱猫").text == "I love cats"


def test_pages_of_other_origins_may_ask_if_the_setting_says_so(models, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("", encoding="utf-8")
    preflight = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    for cors, origin, allowed in (
        (("https://a.example",), "https://a.example", "https://a.example"),
        (("https://a.example",), "https://b.example", None),
        (("*",), "https://b.example", "*"),
        ((), "https://a.example", None),
    ):
        with in_process(models["tagged"], cors=cors, api_key_file=str(keys), max_body=100) as client:
            header = {"Origin": origin}
            response = client.options("/translate", headers=header | preflight)
            assert response.headers.get("Access-Control-Allow-Origin") == allowed
            if allowed:  # the browser asks before it sends the key
                assert response.status_code == 200
                assert "authorization" in response.headers["Access-Control-Allow-Headers"].lower()
                assert "POST" in response.headers["Access-Control-Allow-Methods"]
            for response in (
                client.get("/languages", headers=header),
                client.post("/translate", json=GOOD, headers=header),  # 400: no key
                client.post("/translate", json=GOOD, headers=header | {"Authorization": "Bearer x"}),
                client.post("/translate", json={**GOOD, "q": "x" * 200}, headers=header),  # 413
                client.get("/languages", headers=header | {"Host": "evil.example"}),
            ):
                assert response.headers.get("Access-Control-Allow-Origin") == allowed, response.status_code
                assert "Access-Control-Allow-Credentials" not in response.headers


def test_a_form_of_another_site_cannot_suggest(models, tmp_path):
    form = {**GOOD, "s": "I adore cats"}
    settings = {"suggestions": str(tmp_path / "better.tsv"), "cors": ("https://friend.example",)}
    with in_process(models["tagged"], **settings) as client:
        for headers, expected in (
            ({}, 200),
            ({"Sec-Fetch-Site": "same-origin", "Origin": "http://localhost"}, 200),
            ({"Sec-Fetch-Site": "none"}, 200),
            ({"Origin": "http://localhost"}, 200),
            ({"Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site"}, 200),
            ({"Sec-Fetch-Site": "cross-site"}, 403),
            ({"Sec-Fetch-Site": "same-site", "Origin": "http://other.localhost"}, 403),
            ({"Origin": "https://evil.example"}, 403),
            ({"Origin": "http://localhost:81"}, 403),
            ({"Origin": "null"}, 403),
        ):
            assert client.post("/suggest", data=form, headers=headers).status_code == expected, headers
    lines = (tmp_path / "better.zh-en.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 5


def test_head_is_get_without_the_body(client, server):
    for path in ("/", "/health", "/ready", "/languages", "/metrics", "/static/app.js", "/spec", "/api/v1/models"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b""), path
        if path != "/metrics":
            assert head.headers["Content-Length"] == get.headers["Content-Length"]
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
    assert client.head("/nothing").status_code == 404
    response = client.head("/translate")
    assert (response.status_code, response.headers["Allow"]) == (405, "POST")
    assert client.post("/health").headers["Allow"] == "GET, HEAD"
    status, headers, body = server.ask("/", method="HEAD")
    assert (status, body) == (200, b"")
    assert int(headers["Content-Length"]) > 100


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        ("url_prefix", "/a b", "a path"),
        ("url_prefix", "https://a.example/x", "a path"),
        ("hosts", ["a.example:80"], "without a port"),
        ("hosts", [""], "a host name"),
        ("cors", ["https://a.example/"], "without a path"),
        ("cors", ["a.example"], "an origin"),
        ("trusted_proxies", ["proxy.example"], "an IP address or a network"),
        ("trusted_proxies", ["10.0.0.0/99"], "an IP address or a network"),
    ],
)
def test_addresses_that_make_no_sense_are_told(setting, value, expected):
    with pytest.raises(ConfigError, match=f"serve.{setting}: expected .*{expected}"):
        ServeOptions(**{setting: value if isinstance(value, str) else tuple(value)})


def test_the_prefix_is_an_option_of_the_command(models):
    message = complaint("serve", "--model", models["tagged"], "--url-prefix", "a b")
    assert "serve.url_prefix: expected a path" in message
