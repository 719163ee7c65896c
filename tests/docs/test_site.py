"""The built site: every link has a target, nothing is loaded from another host, and every page opens in Chromium.

`make docs-test` builds the site and sets STREAMWELD_SITE; without it these tests are skipped. Chromium is searched on
PATH and in CHROMIUM; if it is missing, the tests fail.
"""

from __future__ import annotations

import os
import re
import threading
from dataclasses import dataclass, field
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit

import pytest

from tests.docs.browser import Tab, browser
from tests.docs.pages import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["browser"]

SITE = Path(ROOT / os.environ.get("STREAMWELD_SITE", "build/site"))
FULL = os.environ.get("STREAMWELD_FULL") == "1"
EVERY = 1 if FULL else 20  # test one in this many pages of single codes and rules

pytestmark = pytest.mark.skipif(
    "STREAMWELD_SITE" not in os.environ, reason="the site is not built: make docs-test runs these"
)


@dataclass
class Page:
    """The links, loaded resources and link targets of one HTML file."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)


class Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if "id" in given:
            self.page.ids.add(given["id"])
        if tag == "a" and "name" in given:
            self.page.ids.add(given["name"])
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
        loads = tag in ("script", "img", "iframe", "source") or (
            tag == "link" and {"stylesheet", "icon", "preload"} & set(given.get("rel", "").split())
        )
        if loads and (given.get("src") or given.get("href")):
            self.page.loads.append(given.get("src") or given["href"])


@pytest.fixture(scope="module")
def pages() -> dict[str, Page]:
    """Return path in the site -> the page. `404.html` is excluded, because its links begin at the root of the published
    site.
    """
    found = {}
    for path in sorted(SITE.rglob("*.html")):
        if path.name != "404.html":
            reader = Reader()
            reader.feed(path.read_text("utf-8"))
            found[path.relative_to(SITE).as_posix()] = reader.page
    assert len(found) > 300
    return found


def _target(page: str, link: str) -> tuple[str, str] | None:
    """Return the file and the fragment of a link's target; None for other sites."""
    if urlsplit(link).scheme or link.startswith("//"):
        return None
    parts = urlsplit(urljoin(f"/{page}", link))
    path = unquote(parts.path).lstrip("/")
    return (f"{path}index.html" if path.endswith("/") or not path else path), unquote(parts.fragment)


def test_every_link_leads_to_a_page_and_a_place_in_it(pages: dict[str, Page]) -> None:
    dead = set()
    for name, page in pages.items():
        for link in page.links:
            target = _target(name, link)
            if target is None:
                continue
            path, fragment = target
            exists = path in pages or (SITE / path).is_file()
            if not exists or (fragment and path in pages and fragment not in pages[path].ids):
                dead.add((name, link))
    assert sorted(dead) == []


def test_nothing_is_loaded_from_another_host(pages: dict[str, Page]) -> None:
    loaded = {(name, link) for name, page in pages.items() for link in page.loads}
    assert sorted((name, link) for name, link in loaded if _target(name, link) is None) == []
    missing = [(name, link) for name, link in loaded if not (SITE / _path(name, link)).is_file()]
    assert missing == []


def _path(page: str, link: str) -> str:
    target = _target(page, link)
    assert target is not None
    return target[0]


def test_links_to_other_sites_are_https(pages: dict[str, Page]) -> None:
    links = {link for page in pages.values() for link in page.links if urlsplit(link).scheme not in ("", "https")}
    local = {link for link in links if urlsplit(link).hostname in ("127.0.0.1", "localhost")}
    assert {link for link in links - local if not link.startswith("mailto:")} == set()


def test_llms_txt_lists_every_page_of_the_navigation(pages: dict[str, Page]) -> None:
    text = (SITE / "llms.txt").read_text("utf-8")
    assert text.startswith("# streamweld\n\n> ")
    listed = set(re.findall(r"^- \[[^]]*\]\(([^)]+)\)", text, re.MULTILINE))
    assert len(listed) > 30
    root = "https://streamweld.github.io/streamweld/"
    files = {link.removeprefix(root) + "index.html" for link in listed}
    assert [file for file in sorted(files) if file not in pages] == []


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Suppress the request log in the test output."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def tab(browser: Any, address: str) -> Iterator[Tab]:
    context = browser.new_context()
    made = Tab(context.new_page())
    made.watch(address)
    yield made
    context.close()


def test_every_page_opens_without_an_error(tab: Tab, address: str, pages: dict[str, Page]) -> None:
    codes = [name for name in pages if name.startswith("rules/") and name != "rules/index.html"]
    opened = [name for name in pages if name not in codes] + codes[::EVERY]
    for name in opened:
        tab.page.goto(address + name.removesuffix("index.html"), wait_until="load")
        assert tab.page.locator("h1").first.is_visible(), name
    assert len(opened) > 50
    assert tab.problems == []


def test_a_reader_gets_from_home_to_the_bytes_of_a_code(tab: Tab, address: str) -> None:
    tab.page.goto(address)
    tab.page.locator("article").get_by_role("link", name="Codes and rules").first.click()
    tab.page.wait_for_url("**/rules/")
    tab.page.locator("#args_replay_dropped ~ ul").first.get_by_role(
        "link", name="The whole stream before and after"
    ).click()
    tab.page.wait_for_url("**/rules/args_replay_dropped/")
    assert "Bytes before" in tab.page.locator("article").inner_text()
    assert tab.problems == []


def test_the_search_finds_a_code(tab: Tab, address: str) -> None:
    tab.page.goto(address)
    tab.page.keyboard.press("/")
    tab.page.keyboard.type("index_missing")
    tab.page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
    assert "index_missing" in tab.page.locator(".md-search-result__list").inner_text()
    assert tab.problems == []


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_fit_their_window(tab: Tab, address: str, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 800})
    for name in ("", "getting-started/", "rules/", "reference/cli/", "reference/gateways/", "concepts/policies/"):
        tab.page.goto(address + name)
        wide = tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} pixels wider than its window of {width}"
