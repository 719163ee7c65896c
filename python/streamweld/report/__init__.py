"""Reports about recorded streams: one self-contained HTML page without scripts or network requests.

    from pathlib import Path
    from streamweld import report

    Path("report.html").write_text(report.render([report.read(Path("sample.sse"), "sample.sse", "")]), "utf-8")

The command `streamweld report` writes such a page for files and folders.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import streamweld
from streamweld.errors import UsageError
from streamweld.report.compare import comparison
from streamweld.report.facts import describe
from streamweld.report.markup import inline, page, table
from streamweld.report.recording import Recorded, read
from streamweld.report.sections import DisplayLimits, section

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamweld.options import Base, Dialect
    from streamweld.report.facts import Facts

__all__ = ["Recorded", "read", "render"]

MOST_BYTES: Final = 950_000
"""Maximum size of a page in bytes. Content that does not fit is omitted, and the page reports how much was omitted."""

_STREAMS: Final = 1_000  # maximum number of rows in the table of streams
_ALL: Final = 50  # if there are at most this many streams, those without a finding are also listed
_CODES: Final = 60  # maximum number of codes or reasons in a table of gateways
_LINKS: Final = 12
_GATEWAYS: Final = 60  # maximum number of gateways in a table of gateways


def render(
    recorded: Iterable[Recorded],
    *,
    policy: Base = "standard",
    dialect: Dialect = "auto",
    diff: bool = False,
    title: str | None = None,
) -> str:
    """Render recorded streams as one HTML page of at most 1 MB.

    Args:
        recorded: the streams, in the order in which the page shows them. If there are several streams, the page has a
            table of streams, a table of gateways and codes, and a table of gateways and repairs.
        policy: which faults are repaired and which raise.
        dialect: the wire format.
        diff: compare the two streams.
        title: the title of the page; the default names the streams.

    Raises:
        UsageError: if there are no streams, or if `diff` is set and there are not exactly two.
    """
    streams = [describe(one, policy=policy, dialect=dialect) for one in recorded]
    if not streams or (diff and len(streams) != 2):
        raise UsageError("a comparison takes two streams" if diff else "there is no stream to report")
    # The streams with the most findings are added first, because not all may fit. The page keeps the given order.
    order = sorted(range(len(streams)), key=lambda number: -len(streams[number].codes))
    overview = _overview(streams, set(order), diff=diff) if len(streams) > 1 else ""
    compared = comparison(*streams) if diff else ""
    left = MOST_BYTES - len((overview + compared).encode())
    room = DisplayLimits()
    for _ in range(4 if len(streams) > 8 else 1 if len(streams) > 1 else 0):
        room = room.half()
    sections: dict[int, str] = {}
    for number in order:
        made = _fitting(streams[number], number, room, left)
        if made is not None:
            sections[number] = made
            left -= len(made.encode())
    missing = len(streams) - len(sections)
    note = f'<p class="dim">{missing:,} streams are only in the tables: the page is full.</p>' if missing else ""
    overview = _overview(streams, set(sections), diff=diff) if len(streams) > 1 else ""
    body = "\n".join([overview, compared, *[sections[number] for number in sorted(sections)], note])
    return page(
        title or _title(streams, diff=diff),
        _subtitle(streams),
        _contents(streams, sections, diff=diff),
        body,
        _footer(),
    )


def _fitting(facts: Facts, number: int, room: DisplayLimits, left: int) -> str | None:
    """Return the section with as much detail as fits, or None if the shortest version does not fit."""
    for _ in range(6):
        made = section(facts, number, room)
        if len(made.encode()) <= left:
            return made
        room = room.half()
    return None


def _title(streams: list[Facts], *, diff: bool) -> str:
    if diff:
        return f"Comparison: {streams[0].recorded.name} and {streams[1].recorded.name}"
    return f"Report: {streams[0].recorded.name}" if len(streams) == 1 else f"Report: {len(streams)} streams"


def _subtitle(streams: list[Facts]) -> str:
    clean = sum(not facts.codes for facts in streams)
    if len(streams) == 1:
        return (
            "no finding of severity warning or error" if clean else f"findings: {inline(', '.join(streams[0].codes))}"
        )
    return f"{clean:,} of {len(streams):,} streams have no finding of severity warning or error"


def _contents(streams: list[Facts], sections: dict[int, str], *, diff: bool) -> str:
    links = ['<li><a href="#streams">Streams</a></li>'] if len(streams) > 1 else []
    links += ['<li><a href="#diff">Comparison</a></li>'] if diff else []
    if len(streams) == 1:
        names = ("parts", "findings", *(["calls"] if streams[0].calls else []), "result", "repair")
        links = [f'<li><a href="#s0-{name}">{name.capitalize()}</a></li>' for name in names]
    else:
        shown = [(number, inline(streams[number].recorded.name)) for number in sorted(sections)[:_LINKS]]
        links += [f'<li><a href="#s{number}">{name}</a></li>' for number, name in shown]
    return f"<ul>{''.join(links)}</ul>"


def _row(number: int, facts: Facts, *, linked: bool) -> str:
    calls = sum(len(choice.tool_calls) for choice in facts.response.choices)
    cells = [inline(facts.dialect or "unknown"), facts.response.completeness]
    name = inline(facts.recorded.name)
    name = f'<a href="#s{number}">{name}</a>' if linked else name
    return (
        f"<tr><td>{name}</td><td>{'</td><td>'.join(cells)}</td>"
        f'<td class="n">{calls}</td><td class="n">{len(facts.response.text):,}</td>'
        f"<td>{inline(', '.join(facts.codes))}</td></tr>"
    )


def _overview(streams: list[Facts], linked: set[int], *, diff: bool) -> str:
    listed = [(number, facts) for number, facts in enumerate(streams) if facts.codes or len(streams) <= _ALL]
    rows = [_row(number, facts, linked=number in linked) for number, facts in listed[:_STREAMS]]
    more = len(streams) - len(rows)
    note = f'<p class="dim">{more:,} more streams are not listed, those without a finding first.</p>' if more else ""
    columns = ("file", "dialect", "completeness", "calls", "text", "findings")
    shown = table(columns, rows, numbers=("calls", "text"))
    head = '<section aria-labelledby="streams"><h2 id="streams">Streams</h2>'
    # A comparison has only two streams, and its findings already show the gateway of each. A table of gateways would
    # repeat this information.
    return f"{head}{'' if diff else _gateways(streams)}<h3>Findings</h3>{shown}{note}</section>"


def _gateways(streams: list[Facts]) -> str:
    """Return two tables with the number of streams per gateway: one by code, and one by the reason why `repair` changes
    the stream.
    """
    codes = _by_gateway(streams, "code", [facts.codes for facts in streams])
    repairs = _by_gateway(streams, "reason", [facts.reasons for facts in streams])
    return f"<h3>Streams with a code, by gateway</h3>{codes}<h3>Streams that repair changes, by gateway</h3>{repairs}"


def _by_gateway(streams: list[Facts], what: str, words: list[list[str]]) -> str:
    """Return a table with the number of streams per gateway and word, the most frequent words first."""
    counts: dict[str, Counter[str]] = {}
    total: Counter[str] = Counter()
    for facts, found in zip(streams, words, strict=True):
        counts.setdefault(facts.recorded.gateway, Counter()).update(["streams", *found])
        total.update(found)
    gateways = sorted(counts)[:_GATEWAYS]
    rows = [
        f'<tr><th scope="row">{inline(word)}</th>'
        + "".join([f'<td class="n">{counts[gateway][word] or ""}</td>' for gateway in gateways])
        + f'<td class="n">{number}</td></tr>'
        for word, number in [("streams", len(streams)), *total.most_common(_CODES)]
    ]
    columns = (what, *gateways, "all")
    return table(columns, rows, numbers=columns[1:])


def _footer() -> str:
    return f"streamweld {inline(streamweld.__version__)}. Codes are explained by <code>streamweld explain CODE</code>."
