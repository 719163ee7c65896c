"""A report in Chromium: it does not load anything, its content security policy does not block anything, and it works
with the keyboard.

`make docs-test` sets STREAMWELD_SITE; without it these tests are skipped, because the browser driver may be missing.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from streamweld import report
from streamweld.cli.sample import sample
from streamweld.report import Recorded

from tests.docs.browser import Tab, browser

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["browser"]

pytestmark = pytest.mark.skipif("STREAMWELD_SITE" not in os.environ, reason="no browser: make docs-test runs these")

BODY = sample()
TIMES = tuple((at, 0.5 + at / 50_000) for at in range(0, len(BODY), 1_460))
EVIL = b'data: {"choices":[{"delta":{"content":"<img src=http://x.invalid/a><script>document.title=1</script>"}}]}\n\n'


@pytest.fixture(params=["light", "dark"])
def tab(browser: Any, request: pytest.FixtureRequest) -> Iterator[Tab]:
    context = browser.new_context(color_scheme=request.param, viewport={"width": 1280, "height": 900})
    made = Tab(context.new_page())
    made.watch("file://")
    yield made
    context.close()


def opened(tab: Tab, folder: Path, *recorded: Recorded, **options: Any) -> Any:
    file = folder / "report.html"
    file.write_text(report.render(recorded, **options), "utf-8")
    tab.page.goto(file.as_uri())
    return tab.page


def test_a_report_loads_nothing_and_breaks_no_policy(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY, TIMES), Recorded("evil.sse", "b", EVIL), diff=True)
    assert page.title() == "Comparison: a.sse and evil.sse"
    assert page.locator("h2").count() == 4
    assert page.locator("img, script, iframe").count() == 0
    assert "<img src=http://x.invalid/a>" in page.locator("main").inner_text()
    assert tab.problems == []


def test_scripts_and_requests_are_refused_by_its_policy(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY))
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=\"http://x.invalid/a\">')")
    page.wait_for_timeout(100)
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<b id=x style=\"color:red\">x</b>')")
    reported = [problem for problem in tab.problems if "Content Security Policy" in problem]
    assert ("img-src data:" in reported[0], "style-src" in reported[1]) == (True, True)


def test_a_finding_leads_to_its_bytes_with_the_keyboard_alone(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the report"
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").startswith("byte 95,313"):
            break
    page.keyboard.press("Enter")
    row = page.locator("tr:target")
    assert row.locator("td").first.inner_text() == "95,313"
    assert row.is_visible()
    mark = page.locator("li", has_text="args_replay_dropped").locator("mark")
    assert mark.inner_text().startswith('data: {"id":"gen-1763712000')
    assert tab.problems == []


def test_the_lanes_are_over_bytes_or_over_time(tab: Tab, tmp_path: Path) -> None:
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY, TIMES))
    drawn = page.locator("svg")
    assert [drawn.nth(at).is_visible() for at in range(2)] == [True, False]
    page.get_by_role("radio", name="over recorded time").check()
    assert [drawn.nth(at).is_visible() for at in range(2)] == [False, True]
    assert page.locator("svg").nth(1).locator("path.call").count() == 1


def test_the_colors_follow_the_system(tab: Tab, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY))
    dark = "dark" in request.node.callspec.id
    color = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert color == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("width", [390, 1280])
def test_a_report_fits_its_window(tab: Tab, tmp_path: Path, width: int) -> None:
    tab.page.set_viewport_size({"width": width, "height": 800})
    page = opened(tab, tmp_path, Recorded("a.sse", "a", BODY), Recorded("b.sse", "b", BODY[:60_000]), diff=True)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide <= 0
