"""Draw a stream as SVG: one lane for each part, over the bytes of the body or the time of the recording."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld.report.markup import inline

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.report.facts import Facts, Lane

__all__ = ["drawing"]

_WIDTH: Final = 1000
_LEFT: Final = 190
_TOP: Final = 34  # height of the axis and the marks
_ROW: Final = 22
_BAR: Final = 14
_LABEL: Final = 26  # maximum length of a label in characters
_TICKS: Final = 5
_KINDS: Final = frozenset({"text", "reasoning", "call", "result", "refusal"})


def drawing(facts: Facts, prefix: str, most: int, marks: int, *, by_time: bool) -> str:
    """Return the lanes as SVG.

    Args:
        facts: the stream.
        prefix: prefix of the ids in the page.
        most: maximum number of lanes.
        marks: number of findings to mark; must equal the number of findings that the page lists.
        by_time: whether the horizontal axis is the recorded time instead of the bytes.
    """
    lanes = facts.lanes[:most]
    size = max(1, len(facts.recorded.body))
    total = facts.timing.total if by_time and facts.timing is not None else 0.0

    def x(offset: int) -> float:
        if not by_time:
            return _LEFT + (_WIDTH - _LEFT - 10) * offset / size
        seconds = facts.recorded.seconds_at(offset) or 0.0
        return _LEFT + (_WIDTH - _LEFT - 10) * (seconds / total if total else 0.0)

    height = _TOP + _ROW * max(1, len(lanes)) + 6
    unit = "recorded time" if by_time else "bytes"
    name = f"{len(lanes)} parts over {unit}"
    out = [f'<svg viewBox="0 0 {_WIDTH} {height}" role="group" aria-label="{inline(name)}">']
    for tick in range(_TICKS + 1):
        at = _LEFT + (_WIDTH - _LEFT - 10) * tick / _TICKS
        label = f"{total * tick / _TICKS:.2f} s" if by_time else f"{size * tick // _TICKS:,}"
        anchor = "end" if tick == _TICKS else "middle"
        out.append(f'<path class="axis" d="M{at:.1f} 14V{height - 6}"/>')
        out.append(f'<text x="{at:.1f}" y="10" text-anchor="{anchor}">{label}</text>')
    for number, lane in enumerate(lanes):
        y = _TOP + _ROW * number
        label = lane.label if len(lane.label) <= _LABEL else lane.label[: _LABEL - 1] + "…"
        kind = lane.kind if lane.kind in _KINDS else "other"
        title = f"part {lane.part}, {lane.label}: {len(lane.blocks)} events"
        out.append(f'<rect class="lane" x="{_LEFT}" y="{y}" width="{_WIDTH - _LEFT - 10}" height="{_BAR}"/>')
        out.append(f'<text x="{_LEFT - 8}" y="{y + 11}" text-anchor="end">{inline(label)}</text>')
        out.append(f'<path class="{kind}" d="{_bars(facts, lane, y, x)}"><title>{inline(title)}</title></path>')
    for number, found in enumerate(facts.findings[:marks]):
        if found.byte_offset is not None:
            at = x(found.byte_offset)
            title = inline(f"{found.severity}: {found.code}, byte {found.byte_offset}")
            out.append(
                f'<a href="#{prefix}-f{number}" aria-label="{title}"><path class="mark-{found.severity}" '
                f'd="M{at:.1f} 30l-5 -10h10z"><title>{title}</title></path></a>'
            )
    return "".join([*out, "</svg>"])


def _bars(facts: Facts, lane: Lane, y: int, x: Callable[[int], float]) -> str:
    """Return a single path for all bars of a lane.

    Bars less than a pixel apart are merged, so the length of the path is bounded.
    """
    bars: list[tuple[int, int]] = []
    for number in lane.blocks:
        block = facts.blocks[number]
        start, end = int(x(block.start)), max(int(x(block.start)) + 1, round(x(block.end)))
        if bars and start <= bars[-1][1]:
            bars[-1] = (bars[-1][0], max(end, bars[-1][1]))
        else:
            bars.append((start, end))
    return "".join([f"M{start} {y}h{end - start}v{_BAR}h{start - end}z" for start, end in bars])
