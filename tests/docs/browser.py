"""The system's Chromium, from PATH or CHROMIUM, for the tests of pages. If it is missing, the tests fail."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    names = ("chromium", "google-chrome", "chromium-browser")
    program = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.fail("Chromium is not on PATH: install it (apt-get install chromium), or set CHROMIUM", pytrace=False)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()


@dataclass
class Tab:
    """A browser page that records its errors."""

    page: Any
    problems: list[str] = field(default_factory=list)

    def watch(self, own: str) -> None:
        def console(message: Any) -> None:
            if message.type in ("error", "warning"):
                self.problems.append(f"{self.page.url}: console: {message.text}")

        def requested(request: Any) -> None:
            if not request.url.startswith((own, "data:", "blob:")):
                self.problems.append(f"{self.page.url}: asked another host: {request.url}")

        def answered(response: Any) -> None:
            if response.status >= 400:
                self.problems.append(f"{self.page.url}: {response.status} for {response.url}")

        self.page.on("console", console)
        self.page.on("pageerror", lambda error: self.problems.append(f"{self.page.url}: {error}"))
        self.page.on("request", requested)
        self.page.on("response", answered)
