"""The page below a URL prefix, on a server that needs a key."""

import pytest
from commands import sixfold
from small_servers import Server

from sixfold.translation.loading import shipped_models


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A server with a key and a prefix, and its key."""
    keys = tmp_path_factory.mktemp("guarded") / "keys"
    key = sixfold("serve", "--new-key", "anna", "--api-key-file", keys).stdout.strip()
    with Server(shipped_models()[0], api_key_file=str(keys), url_prefix="/translate-app") as server:
        yield server, key


def test_the_page_works_below_a_prefix_and_sends_the_key_that_was_entered(browser, guarded):
    server, key = guarded
    requested, failed = [], []
    context = browser.new_context(accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    page.on("request", lambda request: requested.append(request.url))
    page.on("response", lambda response: response.status >= 400 and failed.append(response.url))
    page.goto(f"{server.url}?text=机器学习很有趣")
    page.wait_for_selector(".error-message")  # there is no key yet
    assert "API key" in page.locator(".error-message").inner_text()
    page.fill("#key", key)
    failed.clear()
    page.press("#key", "Enter")
    page.locator("main").click()
    page.wait_for_selector(".word")
    assert page.locator("#target").inner_text().strip()
    page.set_input_files("#file", {"name": "a.txt", "mimeType": "text/plain", "buffer": "机器学习很有趣".encode()})
    with page.expect_download() as download:
        page.click(".files a")
    assert download.value.suggested_filename == "a_en.txt"
    assert b"earning" in download.value.path().read_bytes()
    page.click("nav a[data-screen=attention]")
    page.wait_for_selector("canvas.heat-map[data-left]")
    assert failed == []
    outside = [url for url in requested if not url.startswith((server.url, "data:", "blob:"))]
    assert outside == []
    assert not any(key in url for url in requested)
    context.close()
