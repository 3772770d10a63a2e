"""LibreTranslate's interface, used by its Python client, by curl, and as its documentation shows."""

import io
import json
import os
import re
import subprocess
import sys
import urllib.parse

import docx
import pytest
from document_commands import ROOT
from libretranslatepy import LibreTranslateAPI
from small_servers import multipart

FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def form(**fields):
    return urllib.parse.urlencode(fields).encode()


def test_its_python_client_translates_detects_and_lists(server):
    client = LibreTranslateAPI(server.url + "/")
    assert client.translate("我爱猫", "zh", "en") == "I love cats"
    assert client.translate("I love cats", "en", "zh") == "我爱猫"
    (detected,) = client.detect("我爱猫")
    assert detected["language"] == "zh-Hans"
    assert 90 < detected["confidence"] <= 100
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["en", "zh-Hans", "zh-Hant"]},
        {"code": "zh-Hans", "name": "Chinese", "targets": ["en", "zh-Hans"]},
        {"code": "zh-Hant", "name": "Chinese (traditional)", "targets": ["en", "zh-Hant"]},
    ]


def test_traditional_chinese_is_converted_on_the_way_in_and_out(server):
    fields = {"q": "I watch books", "source": "en", "target": "zt"}
    assert server.ask("/translate", fields)[2] == {"translatedText": "我看書"}
    assert server.ask("/translate", {**fields, "target": "zh-TW", "format": "html"})[2] == {"translatedText": "我看書"}
    fields = {"q": "我愛書", "source": "zh-Hant", "target": "en"}
    assert server.ask("/translate", fields)[0] == 200
    _, _, response = server.ask("/translate", {**fields, "source": "auto"})
    assert response["detectedLanguage"]["language"] == "zh-Hant"
    assert server.ask("/detect", {"q": "我愛書，你愛貓"})[2][0]["language"] == "zh-Hant"


def test_a_language_that_no_model_reads_is_detected_as_what_it_is(server):
    """German was English with a confidence of 100."""
    _, _, detected = server.ask("/detect", {"q": "Die Katzen sind auf dem Tisch und sehen uns nicht."})
    assert detected[0]["language"] == "de"
    assert detected[0]["confidence"] > 80
    assert server.ask("/detect", {"q": "12345"})[2] == [{"confidence": 0.0, "language": "en"}]
    _, _, response = server.ask("/translate", {"q": "Die Katzen sind nicht da", "source": "auto", "target": "zh"})
    assert response["detectedLanguage"]["language"] == "en"  # the only language of this script that a model reads
    assert response["detectedLanguage"]["confidence"] < 20


def test_a_text_that_may_be_in_several_languages_has_several_candidates(server):
    _, _, detected = server.ask("/detect", {"q": "de la"})
    confidences = [each["confidence"] for each in detected]
    assert len(detected) > 2
    assert len({each["language"] for each in detected}) == len(detected)
    assert confidences == sorted(confidences, reverse=True)
    assert min(confidences) > 0
    assert sum(confidences) <= 100


@pytest.mark.slow
def test_the_tests_of_libretranslate_pass(server):
    """Their source distribution, unpacked: `pip download --no-deps --no-binary :all: libretranslate`."""
    sdist = os.environ.get("SIXFOLD_LIBRETRANSLATE")
    if not sdist:
        pytest.skip("needs SIXFOLD_LIBRETRANSLATE, the unpacked source distribution of libretranslate")
    command = [sys.executable, ROOT / "benchmarks" / "libre_suite.py", sdist, "--url", server.url]
    process = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert process.returncode == 0, process.stdout
    assert int(re.search(r"(\d+) passed", process.stdout)[1]) >= 14


def test_curl_with_raw_and_with_escaped_text(server):
    for flag in ("--data", "--data-urlencode"):
        command = ["curl", "-s", flag, "q=我爱猫", "-d", "source=auto", "-d", "target=en", f"{server.url}/translate"]
        response = json.loads(subprocess.run(command, capture_output=True, timeout=30, check=True).stdout)
        assert response["detectedLanguage"]["language"] == "zh-Hans"
        assert response["translatedText"] == "I love cats"


def test_everything_in_the_query_of_a_post_without_a_body(server):
    query = urllib.parse.urlencode({"q": "我爱猫", "source": "zh", "target": "en", "format": "text", "api_key": "x"})
    assert server.ask(f"/translate?{query}", b"")[2] == {"translatedText": "I love cats"}


@pytest.mark.parametrize("code", ["zh", "zh-Hans", "ZH-HANS", "zh-CN"])
def test_chinese_has_several_names(server, code):
    assert (
        server.ask("/translate", {"q": "我爱猫", "source": code, "target": "EN"})[2]["translatedText"] == "I love cats"
    )


def test_a_list_comes_back_in_its_order_and_each_text_has_its_own_language(server):
    texts = ["我爱猫", "I love dogs", "", "   "]
    _, _, response = server.ask("/translate", {"q": texts, "source": "auto", "target": "en", "alternatives": 2})
    assert response["translatedText"] == ["I love cats", "I love dogs", "", "   "]
    assert [each["language"] for each in response["detectedLanguage"]] == ["zh-Hans", "en", "en", "en"]
    assert len(response["alternatives"]) == 4


def test_alternatives_are_other_ways_to_say_it(server):
    _, _, response = server.ask("/translate", {"q": "我爱猫", "source": "zh", "target": "en", "alternatives": 3})
    assert response["translatedText"] == "I love cats"
    assert 1 <= len(set(response["alternatives"])) == len(response["alternatives"]) <= 3
    assert "I love cats" not in response["alternatives"]


def test_html_keeps_its_tags(server):
    fields = {
        "q": ["<p>我爱<b>猫</b></p>", "&lt;3"],
        "source": "zh",
        "target": "en",
        "format": "html",
        "alternatives": 1,
    }
    _, _, response = server.ask("/translate", fields)
    assert response == {"alternatives": [[], []], "translatedText": ["<p>I love <b>cats</b></p>", "&lt;3"]}


def test_what_a_page_asks_first(server):
    assert server.ask("/health")[2] == {"status": "ok"}
    _, _, settings = server.ask("/frontend/settings")
    assert settings["charLimit"] == 5000
    assert settings["suggestions"] is True
    assert settings["keyRequired"] is False
    assert {".txt", ".html", ".docx"} <= set(settings["supportedFilesFormat"])


def test_a_suggestion_is_a_line_that_finetune_reads(server):
    fields = {"q": "我爱\t猫", "s": "I adore\ncats", "source": "zh", "target": "en"}
    assert server.ask("/suggest", fields)[2] == {"success": True}
    lines = (server.folder / "better.zh-en.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == "我爱 猫\tI adore cats"


MISTAKES = [
    ({"source": "zh", "target": "en"}, "Invalid request: missing q parameter"),
    ({"q": "", "source": "zh", "target": "en"}, "Invalid request: missing q parameter"),
    ({"q": [], "source": "zh", "target": "en"}, "Invalid request: missing q parameter"),
    ({"q": "我", "target": "en"}, "Invalid request: missing source parameter"),
    ({"q": "我", "source": "zh"}, "Invalid request: missing target parameter"),
    ({"q": "我", "source": "xx", "target": "en"}, "xx is not supported"),
    ({"q": "我", "source": "zh", "target": "auto"}, "auto is not supported"),
    ({"q": "我", "source": "zh", "target": "en", "format": "markdown"}, "markdown format is not supported"),
    ({"q": 5, "source": "zh", "target": "en"}, "Invalid request: q parameter is not a string"),
    ({"q": ["我", 5], "source": "zh", "target": "en"}, "not a string or a list of strings"),
    ({"q": "我", "source": ["zh"], "target": "en"}, "source parameter is not a string"),
    ({"q": "我", "source": "zh", "target": "en", "alternatives": "x"}, "alternatives parameter is not a number"),
    ({"q": "我", "source": "zh", "target": "en", "alternatives": 99}, "alternatives parameter must be <= 10"),
    ({"q": "我" * 5001, "source": "zh", "target": "en"}, "request (5001) exceeds text limit (5000)"),
    ({"q": ["我"] * 51, "source": "zh", "target": "en"}, "request (51) exceeds text limit (50)"),
    (["我"], "Invalid JSON format"),
]


@pytest.mark.parametrize(("fields", "message"), MISTAKES)
def test_a_mistake_has_the_answer_that_clients_know(server, fields, message):
    status, _, response = server.ask("/translate", fields)
    assert status == 400
    assert message in response["error"]


def test_other_mistakes(server):
    json_header = {"Content-Type": "application/json"}
    for body in (b"{", b"", b"\xff\xfe", b'{"q": ' + b"[" * 10_000 + b"]" * 10_000 + b"}"):
        status, _, response = server.ask("/translate", body, json_header)
        assert (status, response["error"]) == (
            400,
            "The browser (or proxy) sent a request that this server could not understand.",
        )
    assert server.ask("/translate", b'{"q": "x"}', {"Content-Type": "text/plain"})[0] == 400
    assert server.ask("/translate", method="GET")[0] == 405
    assert server.ask("/nothing")[0] == 404
    assert server.ask("/detect", form(q=""), FORM)[2] == {"error": "Invalid request: missing q parameter"}


def test_half_a_surrogate_pair_is_no_reason_to_fail(server):
    body = b'{"q": "\\ud800 cats", "source": "en", "target": "zh"}'
    assert server.ask("/translate", body, {"Content-Type": "application/json"})[0] == 200


def test_a_file_is_translated_and_fetched(server):
    for name, data, expected in (
        ("a.txt", "我爱猫\n\n我爱狗\n", "I love cats\n\nI love dogs\n"),
        ("页 1.html", "<p>我爱<b>猫</b></p>", "<p>I love <b>cats</b></p>"),
    ):
        status, _, response = server.ask("/translate_file", *multipart(name, data.encode(), source="auto", target="en"))
        assert status == 200
        path = response["translatedFileUrl"].removeprefix(server.url)
        status, headers, content = server.ask(path)
        assert (status, content.decode()) == (200, expected)
        assert headers["Content-Disposition"].startswith("attachment")
        assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_document_tells_its_direction_by_its_prose(server):
    """The language is detected from the prose, not from the bytes of a DOCX file or the tags of a page."""
    document, file = docx.Document(), io.BytesIO()
    document.add_paragraph("我爱猫")
    document.save(file)
    for name, data, expected in (
        ("a.docx", file.getvalue(), "I love cats"),
        ("a.html", f"<section class='{'long ' * 900}'><p>我爱猫</p></section>".encode(), "I love cats"),
        ("a.txt", b"I love cats", "我爱猫"),
    ):
        status, _, response = server.ask("/translate_file", *multipart(name, data, source="auto", target="auto"))
        assert status == 200, response
        content = server.ask(response["translatedFileUrl"].removeprefix(server.url))[2]
        text = docx.Document(io.BytesIO(content)).paragraphs[0].text if name == "a.docx" else content.decode()
        assert expected in text
        assert response["translatedFileUrl"].endswith(f"a_{'zh' if name == 'a.txt' else 'en'}{name[1:]}")


def test_files_that_are_refused(server):
    def post(name, data=b"x", **fields):
        return server.ask("/translate_file", *multipart(name, data, **fields))

    assert post("a.txt", target="en")[2] == {"error": "Invalid request: missing source parameter"}
    assert post("a.exe", source="zh", target="en")[2] == {"error": "Invalid request: file format not supported"}
    assert post("", source="zh", target="en")[0] == 400
    assert post("a.docx", b"no zip", source="zh", target="en")[0] == 400
    assert post("a.html", b"\xff\xfe\x00", source="zh", target="en")[0] == 400
    assert server.ask("/translate_file", {"q": 1})[0] == 400
    german = 'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "我爱猫"\nmsgstr ""\n'.encode()
    status, _, response = post("a.po", german, source="zh", target="en")
    assert (status, response["error"][:36]) == (400, "a.po:2: expected a catalogue for tra")
    for path in ("/download_file/none.txt", "/download_file/..%2f..%2fetc%2fpasswd", "/download_file/../../etc/passwd"):
        assert server.ask(path)[0] == 404


def test_the_description_has_their_address_too(server):
    assert server.ask("/spec")[2] == server.ask("/openapi.json")[2]
    for path in ("/spec", "/languages", "/health", "/frontend/settings"):
        assert server.ask(path, {})[0] == 405


def test_the_limit_of_characters_is_for_each_text(server):
    texts = ["猫" * 4000, "我爱猫" * 1000]
    assert server.ask("/detect", {"q": texts})[0] == 200  # together they are above the limit
    status, _, response = server.ask("/translate", {"q": ["我爱猫", "我" * 5001], "source": "zh", "target": "en"})
    assert (status, response) == (400, {"error": "Invalid request: request (5001) exceeds text limit (5000)"})


def test_a_line_of_a_form_ends_with_a_line_feed(server):
    text, expected = "我爱猫\r\n我爱狗\r\n\r\n", "I love cats\nI love dogs\n\n"
    fields = {"q": text, "source": "zh", "target": "en"}
    query = urllib.parse.urlencode(fields)
    edge = "----edge"
    parts = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    multipart_header = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    for path, body, headers in (
        ("/translate", form(**fields), FORM),
        (f"/translate?{query}", b"", {}),
        ("/translate", f"{parts}--{edge}--\r\n".encode(), multipart_header),
    ):
        assert server.ask(path, body, headers)[2] == {"translatedText": expected}
    at_the_limit = "我\r\n" * 2500  # 5000 characters as the user typed them
    assert server.ask("/detect", form(q=at_the_limit), FORM)[0] == 200


def test_one_language_as_source_and_target_changes_nothing(server):
    text = "<p>我爱  猫</p>\r\n"
    for source in ("zh", "zh-Hans", "auto", "AUTO", "Auto"):
        for kind in ("text", "html"):
            fields = {"q": text, "source": source, "target": "zh", "format": kind}
            assert server.ask("/translate", fields)[2]["translatedText"] == text
        for name in ("a.html", "a.txt"):
            upload = multipart(name, text.encode(), source=source, target="zh-CN")
            status, _, response = server.ask("/translate_file", *upload)
            assert status == 200, response
            assert server.ask(response["translatedFileUrl"].removeprefix(server.url))[2] == text.encode()


def test_a_document_has_an_automatic_direction_in_capitals_too(server):
    upload = multipart("a.txt", "我爱猫".encode(), source="AUTO", target="Auto")
    status, _, response = server.ask("/translate_file", *upload)
    assert status == 200, response
    assert server.ask(response["translatedFileUrl"].removeprefix(server.url))[2] == b"I love cats"
