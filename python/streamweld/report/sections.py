"""The report section for one stream: facts, lanes, findings, calls, the result next to the raw events, and repairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from streamweld.events import ReasoningDone, RefusalDone, TextDone, ToolCall, ToolResult
from streamweld.report.changes import excerpts
from streamweld.report.lanes import drawing
from streamweld.report.markup import cut, inline, pre, raw, table

if TYPE_CHECKING:
    from streamweld.report.changes import Excerpt
    from streamweld.report.facts import Assembly, Facts
    from streamweld.report.finding import Finding
    from streamweld.response import Response

__all__ = ["DisplayLimits", "facts_of", "section"]

_BEFORE: Final = 60  # number of bytes shown before a finding
_PIECES: Final = 300


@dataclass(frozen=True, slots=True)
class DisplayLimits:
    """Limits on how much of a stream a section shows."""

    lanes: int = 24
    findings: int = 80
    calls: int = 12
    arguments: int = 12_000
    text: int = 30_000
    rows: int = 400
    row: int = 400
    repairs: int = 30
    difference: int = 2_000

    def half(self) -> DisplayLimits:
        """Return a copy with every limit halved."""
        return DisplayLimits(*[max(1, getattr(self, name) // 2) for name in self.__slots__])


def facts_of(facts: Facts) -> dict[str, str]:
    """Return the facts about the whole stream, keyed by name."""
    response, timing = facts.response, facts.timing
    values = {
        "dialect": facts.dialect or "unknown",
        "model": response.model or "",
        "response id": response.id or "",
        "completeness": response.completeness,
        "finish reason": _finish(response),
        "usage": _usage(response),
        "bytes": f"{len(facts.recorded.body):,}",
        "events": f"{len(facts.blocks):,}",
        "error": "" if facts.error is None else str(facts.error),
    }
    if timing is not None:
        values["duration"] = f"{timing.total:.3f} s"
        values["time to first token"] = "" if timing.first is None else f"{timing.first:.3f} s"
        values["gaps between pieces"] = ", ".join([f"{name} {gap * 1000:.1f} ms" for name, gap in timing.gaps.items()])
    return {name: value for name, value in values.items() if value}


def _finish(response: Response) -> str:
    sent = response.raw_finish_reason
    reason = response.finish_reason or "none"
    return reason if sent in (None, reason) else f"{reason} (sent: {sent})"


def _usage(response: Response) -> str:
    if response.usage is None:
        return ""
    counts = {name: value for name, value in response.usage.to_dict().items() if isinstance(value, int)}
    return ", ".join([f"{name.removesuffix('_tokens').replace('_', ' ')} {value:,}" for name, value in counts.items()])


def section(facts: Facts, number: int, room: DisplayLimits) -> str:
    """Return the section as HTML. `number` is the stream's number on the page, which is used in ids."""
    prefix = f"s{number}"
    shown = _rows(facts, room)
    parts = [
        f'<section aria-labelledby="{prefix}"><h2 id="{prefix}">{inline(facts.recorded.name)}</h2>',
        "<dl>" + "".join([f"<dt>{inline(n)}</dt><dd>{inline(v)}</dd>" for n, v in facts_of(facts).items()]) + "</dl>",
        _lanes(facts, prefix, room),
        _findings(facts, prefix, room, shown),
        _calls(facts, prefix, room),
        f'<div class="two"><div><h3 id="{prefix}-result">Result</h3>{_result(facts, room)}</div>',
        f"<div><h3>Events on the wire</h3>{_events(facts, prefix, room, shown)}</div></div>",
        _repairs(facts, prefix, room),
        "</section>",
    ]
    return "\n".join(parts)


def _lanes(facts: Facts, prefix: str, room: DisplayLimits) -> str:
    by_bytes = f'<div class="wide in-bytes">{drawing(facts, prefix, room.lanes, room.findings, by_time=False)}</div>'
    more = len(facts.lanes) - room.lanes
    note = f'<p class="dim">{more} more parts are not drawn.</p>' if more > 0 else ""
    if facts.timing is None:
        return f'<h3 id="{prefix}-parts">Parts</h3>{by_bytes}{note}'
    choice = "".join(
        [
            f'<input type="radio" class="by-{axis}" name="{prefix}-axis" id="{prefix}-{axis}"{checked}>'
            f'<label for="{prefix}-{axis}"> over {label}</label> '
            for axis, label, checked in (("bytes", "bytes", " checked"), ("time", "recorded time", ""))
        ]
    )
    by_time = f'<div class="wide in-time">{drawing(facts, prefix, room.lanes, room.findings, by_time=True)}</div>'
    return f'<h3 id="{prefix}-parts">Parts</h3><div>{choice}{by_bytes}{by_time}</div>{note}'


def _findings(facts: Facts, prefix: str, room: DisplayLimits, shown: list[int]) -> str:
    if not facts.findings:
        return (
            f'<h3 id="{prefix}-findings">Findings</h3><p>Clean: no diagnostic, and no broken rule of the dialect.</p>'
        )
    rows = [_finding(facts, found, prefix, at, shown) for at, found in enumerate(facts.findings[: room.findings])]
    more = len(facts.findings) - room.findings
    note = f'<p class="dim">{more:,} more findings are not shown.</p>' if more > 0 else ""
    return f'<h3 id="{prefix}-findings">Findings</h3><ol class="findings">{"".join(rows)}</ol>{note}'


def _finding(facts: Facts, found: Finding, prefix: str, number: int, shown: list[int]) -> str:
    kind = {"diagnostic": "diagnostic", "rule": "rule", "error": "error"}[found.kind]
    head = (
        f'<li id="{prefix}-f{number}"><span class="badge {found.severity}">{found.severity}</span> '
        f'<a href="{inline(found.help_url)}" rel="noreferrer"><code>{inline(found.code)}</code></a> '
        f'<span class="dim">({kind})</span> {inline(found.message)}'
    )
    if found.byte_offset is None:
        return f"{head}</li>"
    block = facts.block_at(found.byte_offset)
    position = f"byte {found.byte_offset:,}, line {found.line}, event {found.event_ordinal}"
    linked = f'<a href="#{prefix}-b{block}">{position}</a>' if block in shown else position
    return f'{head}<br><span class="dim">{linked}</span><pre>{_excerpt(facts, found.byte_offset)}</pre></li>'


def _excerpt(facts: Facts, offset: int) -> str:
    """Return the bytes of the event at `offset`, marked and preceded by the bytes before the event."""
    body = facts.recorded.body
    if not facts.blocks or offset >= len(body):
        return f"{raw(body[max(0, len(body) - _BEFORE * 3) :])}<mark>(end of the body)</mark>"
    block = facts.blocks[facts.block_at(offset)]
    end = max(offset + 1, block.end)
    found = body[offset:end].rstrip(b"\r\n")
    marked = raw(found[:500])
    rest = f" … ({len(found) - 500:,} more bytes)" if len(found) > 500 else ""
    return f"{raw(body[max(0, offset - _BEFORE) : offset])}<mark>{marked}</mark>{rest}"


def _calls(facts: Facts, prefix: str, room: DisplayLimits) -> str:
    if not facts.calls:
        return ""
    parts = [_call(facts, one, room) for one in facts.calls[: room.calls]]
    more = len(facts.calls) - room.calls
    note = f'<p class="dim">{more} more calls are not shown.</p>' if more > 0 else ""
    return f'<h3 id="{prefix}-calls">Assembly of the tool calls</h3>{"".join(parts)}{note}'


def _call(facts: Facts, one: Assembly, room: DisplayLimits) -> str:
    call = one.call
    head = "a call that never closed" if call is None else f"{call.name} {call.call_id}: {call.state}"
    if call is not None and call.reason:
        head += f" ({call.reason})"
    head += f", {len(one.pieces):,} pieces" + (f", started again {one.resets} times" if one.resets else "")
    left = room.arguments
    spans: list[str] = []
    for number, text in one.pieces[:_PIECES]:
        position = f"byte {facts.blocks[number].start}"
        spans.append(f'<span class="piece" title="{position}">{pre(text[:left])}</span>')
        left -= len(text)
        if left <= 0:
            break
    more = len(one.pieces) - len(spans)
    rest = f" … ({more:,} more pieces)" if more > 0 else ""
    whole = ""
    if call is not None and call.arguments != "".join([text for _, text in one.pieces]):
        whole = f"<p>Final arguments:</p><pre>{pre(cut(call.arguments, room.arguments))}</pre>"
    pieces = f"<pre>{''.join(spans)}{rest}</pre>" if spans else ""
    return f"<details open><summary>{inline(head)}</summary>{pieces}{whole}</details>"


def _result(facts: Facts, room: DisplayLimits) -> str:
    out: list[str] = []
    left = room.text
    for choice in facts.response.choices:
        if len(facts.response.choices) > 1:
            out.append(f"<h4>Choice {choice.index}</h4>")
        for item in choice.items:
            if left <= 0:
                out.append('<p class="dim">The rest of the result is not shown.</p>')
                return "".join(out)
            match item:
                case TextDone(text=text):
                    name = "text"
                case ReasoningDone(text=text):
                    name = "reasoning"
                case RefusalDone(text=text):
                    name = "refusal"
                case ToolCall():
                    name, text = f"call {item.name} {item.call_id} ({item.state})", item.arguments
                case ToolResult(call_id=call_id, output=output):
                    name, text = f"result of {call_id}", str(output)
                case _:
                    name, text = item.type, str(item.to_dict())
            out.append(f'<p class="dim">{inline(name)}</p><pre>{pre(cut(text, left))}</pre>')
            left -= len(text) + 200
    return "".join(out) or "<p>The stream has no content.</p>"


def _rows(facts: Facts, room: DisplayLimits) -> list[int]:
    """Return the numbers of the blocks to show: all blocks, or the first, the last, and the blocks around findings."""
    count = len(facts.blocks)
    if count <= room.rows:
        return list(range(count))
    kept = {*range(room.rows // 3), *range(count - room.rows // 6, count)}
    for found in facts.findings[: room.findings]:
        if len(kept) >= room.rows:
            break
        if found.byte_offset is not None:
            at = facts.block_at(found.byte_offset)
            kept |= {number for number in range(at - 1, at + 2) if 0 <= number < count}
    return sorted(kept)


def _events(facts: Facts, prefix: str, room: DisplayLimits, shown: list[int]) -> str:
    rows: list[str] = []
    last = -1
    for number in shown:
        if number > last + 1:
            rows.append(f'<tr><td colspan="3" class="dim">… {number - last - 1:,} events are not shown</td></tr>')
        last = number
        block = facts.blocks[number]
        data = facts.recorded.body[block.start : block.end].rstrip(b"\r\n")
        text = raw(data[: room.row]) + (f" … ({len(data) - room.row:,} more bytes)" if len(data) > room.row else "")
        text = text or "(end of the body)"
        kinds = inline(block.kinds.replace("_", " "))
        rows.append(
            f'<tr id="{prefix}-b{number}"><td class="n">{block.start:,}</td><td>{kinds}</td>'
            f"<td><pre>{text}</pre></td></tr>"
        )
    shown_table = table(("byte", "events", "bytes"), rows, numbers=("byte",))
    return f'<div class="scroll" tabindex="0" role="region" aria-label="Events on the wire">{shown_table}</div>'


def _repairs(facts: Facts, prefix: str, room: DisplayLimits) -> str:
    head = f'<h3 id="{prefix}-repair">'
    if not facts.is_rewritten:
        return f"{head}Repair</h3><p>The stream passes through <code>repair</code> byte for byte.</p>"
    because = f"<p>Reasons: {inline(', '.join(facts.reasons))}</p>" if facts.reasons else ""
    if not facts.repair_count:
        return f"{head}Repair</h3>{because}<p>Only spaces and line ends change, and no event does.</p>"
    rows: list[str] = []
    for one in facts.repairs[: room.repairs]:
        before, after = excerpts(one.before, one.after, room.difference)
        rows.append(
            f'<tr><td class="n">{one.start:,}</td>'
            f'<td><pre class="removed">{_marked(one.before, before)}</pre></td>'
            f'<td><pre class="added">{_marked(one.after, after)}</pre></td></tr>'
        )
    more = facts.repair_count - len(rows)
    note = f'<p class="dim">{more:,} more events are not shown.</p>' if more > 0 else ""
    shown = table(("byte", "before", "after"), rows, numbers=("byte",))
    title = (
        f"Before and after repair: {facts.repair_count:,} event{' differs' if facts.repair_count == 1 else 's differ'}"
    )
    spaces = '<p class="dim">The part that differs is marked. Spaces in the JSON are not compared.</p>'
    return f"{head}{title}</h3>{because}{spaces}{shown}{note}"


def _marked(event: bytes, excerpt: Excerpt) -> str:
    if not event:
        return "(nothing)"
    changed = f"<mark>{pre(excerpt.changed)}</mark>" if excerpt.changed else ""
    return f"{pre(excerpt.before)}{changed}{pre(excerpt.after)}"
