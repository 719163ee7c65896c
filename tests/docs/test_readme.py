"""README is short, and links to the documentation."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT, blocks

README = (ROOT / "README.md").read_text("utf-8")


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 150


def test_it_installs_first_and_shows_three_examples() -> None:
    first, *rest = [block for block in blocks(README) if block.language != "text"]
    assert first.code == "$ pip install 'streamweld[cli]'\n"
    code = "\n".join(block.code for block in rest)
    for example in ("repair(OpenAI(", "sw.parse(body)", "streamweld inspect sample.sse", "231 tool calls"):
        assert example in code


def test_its_links_lead_to_files() -> None:
    """Links in README are absolute addresses, because PyPI shows the page, too."""
    blob = "https://github.com/streamweld/streamweld/blob/main/"
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", README)
    files = [link.removeprefix(blob) for link in links if link.startswith(blob)]
    assert len(files) > 8
    assert [file for file in files if not (ROOT / file).exists()] == []
    assert [link for link in links if not link.startswith("https://")] == []


def test_the_page_on_benchmarks_has_the_same_table() -> None:
    """The two pages have the same table, which `python -m benches.table` writes."""
    rows = [line for line in README.splitlines() if line.startswith(("| events", "| `parse`"))]
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8").splitlines()
    assert len(rows) == 3
    assert [row for row in rows if row not in page] == []
