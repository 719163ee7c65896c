"""Speed as a multiple of hand-written loops, on streams that resemble recorded ones, and on recorded ones if available.

Measured are a list of events per feed, in reads of 16 KiB, with access to the text of each delta, including `close` and
`response`, and `parse` of complete bodies. Every result is checked before it is timed. Recorded streams are third-party
data outside the repository (`$STREAMWELD_CORPUS`); for those, the rivals split frames and parse JSON, but do not
assemble anything.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, cast

import httpx
import httpx_sse
import orjson
import pytest
import streamweld
from streamweld._backend import load
from streamweld.errors import StreamError
from streamweld.events import TextDelta
from streamweld.options import to_config

from benches import rivals, rivals_anthropic, rivals_gemini, rivals_responses
from benches.race import race
from benches.recorded_like import DIALECTS, KINDS, LONG, long_shape, recorded_like
from tests.support.corpus import recordings

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.options import Dialect

    from benches.rivals import Reader, Result
    from benches.shapes.chat import Shape

READ = 16384
LOOPS: dict[str, dict[str, Reader]] = {
    "chat": {"httpx-sse + orjson": rivals.httpx_sse_orjson, "split + msgspec": rivals.split_msgspec},
    "responses": {
        "httpx-sse + orjson": rivals_responses.httpx_sse_orjson,
        "split + msgspec": rivals_responses.split_msgspec,
    },
    "anthropic": {
        "httpx-sse + orjson": rivals_anthropic.httpx_sse_orjson,
        "split + msgspec": rivals_anthropic.split_msgspec,
    },
    "gemini": {"httpx-sse + orjson": rivals_gemini.httpx_sse_orjson, "split + msgspec": rivals_gemini.split_msgspec},
}
# The project's goals, as multiples of the httpx-sse + orjson loop, for a list per feed and for `parse`. They are
# printed, not asserted.
TARGETS: dict[str, tuple[float, ...]] = {"chat": (8, 10), "responses": (8, 10), "anthropic": (8, 10), "gemini": (5, 6)}
# Minimum speed, far below the results of a quiet machine, so that a regression fails the run but a busy machine does
# not.
LEAST = {"chat": 1.5, "responses": 1.0, "anthropic": 1.0, "gemini": 0.7}


def reads_of(body: bytes) -> list[bytes]:
    return [body[at : at + READ] for at in range(0, len(body), READ)]


def _ours(dialect: Dialect, reads: list[bytes]) -> Result:
    """Read as in the timed runs: access every event and every text, and take the calls from the response."""
    parser = streamweld.StreamParser(dialect=dialect)
    text: list[str] = []
    for read in reads:
        text += [event.text for event in parser.feed(read) if type(event) is TextDelta]
    parser.close()
    calls = parser.response.tool_calls
    return "".join(text), [(call.call_id, call.name, call.arguments) for call in calls]


def _parse(dialect: Dialect, body: bytes) -> Result:
    response = streamweld.parse(body, dialect=dialect)
    return response.text, [(call.call_id, call.name, call.arguments) for call in response.tool_calls]


def frames_and_json(reads: list[bytes]) -> None:
    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=rivals.Body(reads))
    for event in httpx_sse.EventSource(response).iter_sse():
        if event.data and event.data != "[DONE]":
            try:
                orjson.loads(event.data)
            except ValueError:
                continue


def each(call: Callable[..., object], inputs: list[list[bytes]] | list[bytes]) -> None:
    for one in inputs:
        call(one)


def _pure(dialect: Dialect, reads: list[bytes]) -> None:
    """Parse the same reads with the pure backend, with events and a snapshot."""
    parser = load("pure")(dialect, to_config())
    for read in reads:
        parser.feed(read)
    parser.close()
    parser.snapshot()


def _print(title: str, ratios: dict[str, dict[str, float]], goals: dict[str, tuple[float, ...]]) -> None:
    names = list(next(iter(ratios.values())))
    weakest = {name: min(ratios, key=lambda dialect: ratios[dialect][name]) for name in names}
    print(f"\n{title}")
    print(f"  {'':10} " + "  ".join(f"{name:>28}" for name in names) + "   target")
    for dialect, row in ratios.items():
        cells = [f"{row[name]:.1f} x{' <- weakest' if weakest[name] == dialect else '':11}" for name in names]
        goal = ", ".join(f"{goal:g} x" for goal in goals[dialect])
        print(f"  {dialect:10} " + "  ".join(f"{cell:>28}" for cell in cells) + f"   {goal}")


def _ratios(dialect: Dialect, bodies: list[bytes], loops: dict[str, Callable[..., object]]) -> dict[str, float]:
    reads = [reads_of(body) for body in bodies]
    runs: dict[str, Callable[[], object]] = {
        "feed": partial(each, partial(_ours, dialect), reads),
        "parse": partial(each, partial(_parse, dialect), bodies),
        "auto": partial(each, partial(_ours, "auto"), reads),
        "pure": partial(each, partial(_pure, dialect), reads),
        **{name: partial(each, loop, reads) for name, loop in loops.items()},
    }
    laps = race(runs, rounds=5)
    ratios = {
        f"{ours} / {name}": laps[name].median / laps[ours].median
        for name in loops
        for ours in ("feed", "parse")
        if (ours, name) != ("parse", "split + msgspec")
    }
    # A ratio above 1 means that a stream is parsed faster if its dialect is specified than if it is detected.
    return ratios | {f"feed / {name}": laps[name].median / laps["feed"].median for name in ("auto", "pure")}


def _right(dialect: Dialect, shape: Shape) -> None:
    truth = (shape.text, shape.calls)
    assert _ours(dialect, reads_of(shape.body)) == truth, shape.name
    assert _parse(dialect, shape.body) == truth, shape.name
    for name, loop in LOOPS[dialect].items():
        assert loop(reads_of(shape.body)) == truth, (name, shape.name)


def race_recorded_like() -> dict[str, dict[str, float]]:
    """Race streamweld and the hand-written loops, which assemble text and calls."""
    ratios: dict[str, dict[str, float]] = {}
    for dialect in DIALECTS:
        shapes = recorded_like(dialect)
        assert len(shapes) == sum(count for count, _ in KINDS.values()) >= 40
        for shape in shapes:
            _right(dialect, shape)
        ratios[dialect] = _ratios(dialect, [shape.body for shape in shapes], dict(LOOPS[dialect]))
    return ratios


def test_recorded_like(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = race_recorded_like()
    with capsys.disabled():
        _print("streams like recorded ones (ours), reads of 16 KiB", ratios, TARGETS)
    assert all(row["feed / httpx-sse + orjson"] >= LEAST[dialect] for dialect, row in ratios.items())


def race_long() -> dict[str, dict[str, float]]:
    """Race on long streams with very different pieces: escapes, scripts, obfuscation, arguments, thinking."""
    ratios: dict[str, dict[str, float]] = {}
    for name in LONG:
        shape = long_shape(name)
        dialect = cast("Dialect", shape.dialect)
        _right(dialect, shape)
        ratios[name] = _ratios(dialect, [shape.body], dict(LOOPS[dialect]))
    return ratios


def test_long(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = race_long()
    with capsys.disabled():
        goals: dict[str, tuple[float, ...]] = {name: goals for name, (_, _, goals) in LONG.items()}
        _print("long streams, reads of 16 KiB", ratios, goals)
    assert all(row["feed / httpx-sse + orjson"] >= 1 for row in ratios.values())


def is_stream(dialect: Dialect, body: bytes) -> bool:
    """Return False for a plain JSON body and for a stream that raises."""
    if body.lstrip()[:1] in (b"{", b"["):
        return False
    try:
        return _ours(dialect, reads_of(body)) is not None
    except StreamError:
        return False


def race_recorded() -> dict[str, dict[str, float]]:
    """Race on the recorded streams, for which the rivals only parse frames and JSON. The result is empty if there are
    none.
    """
    ratios: dict[str, dict[str, float]] = {}
    for dialect in DIALECTS:
        found = [recording for recording in recordings(dialect) if is_stream(dialect, recording.body)]
        if not found:
            return {}
        agreed = [one for one in found if one.confidence == "agreed"]
        wrong = [one.name for one in agreed if _parse(dialect, one.body)[0] != (one.expected.get("text") or "")]
        assert len(wrong) <= len(agreed) // 20, wrong
        ratios[dialect] = _ratios(dialect, [one.body for one in found], {"httpx-sse + orjson": frames_and_json})
    return ratios


def test_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = race_recorded()
    if not ratios:
        pytest.skip("no recorded streams here")
    with capsys.disabled():
        _print("recorded streams (third-party data), reads of 16 KiB; the rival assembles nothing", ratios, TARGETS)
    assert all(row["feed / httpx-sse + orjson"] >= LEAST[dialect] for dialect, row in ratios.items())
