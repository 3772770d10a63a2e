"""A real browser, and the real server with the model that ships; whatever leaves the machine fails the test."""

import os
import shutil
from urllib.parse import urlencode

import pytest
from small_servers import Server

from sixfold.translation.loading import shipped

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/browser" in item.path.as_posix() and CHROMIUM is None:
            item.add_marker(pytest.mark.skip(reason="no Chromium here: apt-get install chromium"))


@pytest.fixture(scope="session")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """`sixfold serve`, as it comes."""
    os.environ["SIXFOLD_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    folder = tmp_path_factory.mktemp("site")
    copy = folder / "zh-en.safetensors"
    copy.symlink_to(shipped()[0])
    with Server(copy, requests_per_minute=100_000) as started:
        yield started


@pytest.fixture
def look(browser, site):
    """Opens a screen of the page: look("attention", text="…", theme="dark", width=390, lang="zh")."""
    contexts, complaints = [], []

    def open_screen(screen="translate", width=1280, height=900, scheme="light", wait=True, **state):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, locale="en-US", accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(15_000)

        def outside(request):
            if not request.url.startswith((site.url, "data:", "blob:")):
                complaints.append(f"asked for {request.url}")

        page.on("request", outside)
        page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{site.url}/?{urlencode({'screen': screen, **state})}")
        if wait:
            page.wait_for_selector(f'main[data-screen="{screen}"]')
        return page

    yield open_screen
    for context in contexts:
        context.close()
    assert complaints == []
