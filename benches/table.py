"""Writes the table in README.md and docs/benchmarks.md. `python -m benches.table` measures, prints the table, and
inserts it after its mark.

The values are ratios of medians of one run. The weakest column is marked.
"""

from __future__ import annotations

import datetime as dt
import platform
import sys
from pathlib import Path

from benches.test_recorded import race_long, race_recorded, race_recorded_like

ROOT = Path(__file__).parent.parent
BEGIN = "<!-- python -m benches.table -->"
PAGES = {"README.md": "\n\n[Benchmarks]", "docs/benchmarks.md": "\n\n- `events`"}
"""The pages with the table, and the text that follows it."""
LOOP = "httpx-sse + orjson"
ROWS = {
    "events / httpx-sse + orjson": f"feed / {LOOP}",
    "`parse` / httpx-sse + orjson": f"parse / {LOOP}",
    "events, native / pure": "feed / pure",
}
NAMES = {"chat": "Chat", "responses": "Responses", "anthropic": "Messages", "gemini": "Gemini"}


def table() -> str:
    """Return the table as Markdown: recorded streams (generated ones if there are none), then long ones."""
    ratios = {NAMES[dialect]: row for dialect, row in (race_recorded() or race_recorded_like()).items()}
    ratios |= race_long()
    weakest = min(ratios, key=lambda name: ratios[name][f"feed / {LOOP}"])
    heads = [name + (" (weakest)" if name == weakest else "") for name in ratios]
    lines = [f"| times faster | {' | '.join(heads)} |", "|---" + "|--:" * len(heads) + "|"]
    for title, key in ROWS.items():
        lines.append(f"| {title} | {' | '.join([f'{row[key]:.1f}' for row in ratios.values()])} |")
    when = f"{dt.datetime.now(tz=dt.UTC):%Y-%m-%d}, CPython {platform.python_version()}"
    about = "The first four are recorded streams, the others long ones; `benches/README.md` describes both"
    return "\n".join([f"{about} ({when}).", "", *lines])


def main() -> None:
    made = table()
    for name, end in PAGES.items():
        page = ROOT / name
        before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
        _, _, after = rest.partition(end)
        page.write_text(f"{before}{BEGIN}\n{made}{end}{after}", encoding="utf-8")
    sys.stdout.write(f"{made}\n")


if __name__ == "__main__":
    main()
