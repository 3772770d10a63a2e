"""A real browser and the real server with the shipped model. Requests to other hosts and page errors fail the test."""

import os
import shutil
from urllib.parse import urlencode

import pytest
from small_servers import Server

from sixfold.translation.loading import shipped_models

sync_api = pytest.importorskip("playwright.sync_api")
MAX_MILLISECONDS = 60_000  # to wait for anything: on a busy machine a page may take long
sync_api.expect.set_options(timeout=MAX_MILLISECONDS)
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser" in item.path.as_posix() and CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium found: apt-get install chromium"))


@pytest.fixture(scope="session")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
            timeout=3 * MAX_MILLISECONDS,
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """A running `sixfold serve` with the shipped model."""
    os.environ["SIXFOLD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    folder = tmp_path_factory.mktemp("site")
    copy = folder / "zh-en.safetensors"
    copy.symlink_to(shipped_models()[0])
    with Server(copy, requests_per_minute=100_000) as started:
        yield started


@pytest.fixture
def open_page(browser, site):
    """A function that opens a screen: open_page("attention", text="…", theme="dark", width=390, lang="zh")."""
    contexts, problems = [], []

    def open_screen(screen="translate", width=1280, height=900, scheme="light", wait=True, **state):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-US", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(MAX_MILLISECONDS)

        def report_foreign(request):
            if not request.url.startswith((site.url, "data:", "blob:")):
                problems.append(f"request to {request.url}")

        page.on("request", report_foreign)
        page.on("console", lambda message: message.type == "error" and problems.append(message.text))
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.goto(f"{site.url}/?{urlencode({'screen': screen, **state})}")
        if wait:
            page.wait_for_selector(f'main[data-screen="{screen}"]')
        return page

    yield open_screen
    for context in contexts:
        context.close()
    assert problems == []
