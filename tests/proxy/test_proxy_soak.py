"""Many concurrent streams through the proxy, with upstreams that truncate, stall, or send errors or web pages: no
stream gets a wrong result.

A sample of 50 streams for 4 seconds; with STREAMWELD_FULL=1, 500 streams for 20 seconds; with STREAMWELD_NIGHTLY=1,
1,000 streams for 60 seconds; with STREAMWELD_HOUR=1, 100 streams for one hour.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import aiohttp
import pytest
import streamweld as sw

from tests.conftest import NIGHTLY
from tests.integrations.test_asgi import HEAD, piece
from tests.proxy.test_proxy import CHAT, command
from tests.support.servers.upstream import Talk, Upstream, until
from tests.support.servers.wire import DONE, chunk, event

if TYPE_CHECKING:
    from collections.abc import Callable

EVENTS = 30


@dataclass(frozen=True)
class Load:
    """The number of concurrent streams, their duration and rate, and the timeout for a silent one."""

    streams: int
    seconds: float
    pace: float
    stall: int


# The rate of the full run is that of a model, so that a delay because of a busy machine does not count as a stall.
SAMPLE = Load(50, 4.0, 0.002, 3)
FULL = Load(500, 20.0, 0.3, 45)
HUGE = Load(1000, 60.0, 0.3, 45)
HOUR = Load(100, 3600.0, 0.3, 45) if os.environ.get("STREAMWELD_HOUR") == "1" else None


def words(number: int) -> list[str]:
    return [f"w{number}-{at} " for at in range(EVENTS)]


def plain(number: int) -> list[bytes]:
    told = [chunk({"content": word}, **HEAD) for word in words(number)]
    return [*told, chunk({}, "stop", **HEAD), DONE]


def again(number: int) -> list[bytes]:
    """Return a call whose id is in every chunk, and whose arguments are repeated at the end."""
    whole = f'{{"n":{number},"text":"{"x" * EVENTS}"}}'
    pieces = [piece(f"call_{number}", "f", "")]
    pieces += [piece(f"call_{number}", "", whole[at : at + 3]) for at in range(0, len(whole), 3)]
    return [*pieces, piece(f"call_{number}", "f", whole), chunk({}, "tool_calls", **HEAD), DONE]


async def answer(talk: Talk, pace: float) -> None:
    kind, number = talk.asked.body.split(b"<")[1].split(b">")[0].decode().split("-")
    pieces = again(int(number)) if kind == "again" else plain(int(number))
    if kind == "page":
        await talk.whole(b"<html>busy</html>", kind="text/html")
        return
    if kind == "busy":
        await talk.whole(b'{"error":{"message":"busy"}}', 503)
        return
    await talk.head()
    for at, part in enumerate(pieces):
        if at == EVENTS // 2 and kind == "cut":
            talk.cut()
            return
        if at == EVENTS // 2 and kind == "error":
            await talk.send(event({"error": {"message": f"failed-{number}", "code": 500}}))
            break
        if at == EVENTS // 2 and kind == "stall":
            await talk.wait_for_leave()
            return
        await talk.send(part)
        await asyncio.sleep(pace)
    await talk.end()


def is_plain(status: int, body: bytes, number: int) -> bool:
    shown = sw.parse(body)
    return (status, shown.text, shown.completeness) == (200, "".join(words(number)), "complete")


def is_called(status: int, body: bytes, number: int) -> bool:
    (call,) = sw.parse(body).dispatchable_calls
    return (status, call.call_id, call.name, call.parsed["n"]) == (200, f"call_{number}", "f", number)


def is_failed(status: int, body: bytes, number: int) -> bool:
    """Return True if the body contains everything up to the fault, followed by an error, and no sign of success."""
    try:
        sw.parse(body)
    except sw.UpstreamError as error:
        shown = error.partial.text if error.partial is not None else ""
        return status == 200 and "".join(words(number)).startswith(shown) and len(shown) > 40
    return False


def is_refused(status: int, body: bytes, _: int) -> bool:
    return status in (502, 503) and b'"error"' in body and b"<html>" not in body


KINDS: dict[str, Callable[[int, bytes, int], bool]] = {
    "plain": is_plain,
    "again": is_called,
    "cut": is_failed,
    "error": is_failed,
    "stall": is_failed,
    "page": is_refused,
    "busy": is_refused,
}


@dataclass
class Tally:
    right: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    left: int = 0


async def clients(url: str, count: int, seconds: float, tally: Tally) -> None:
    end = time.monotonic() + seconds
    numbers = iter(range(10**9))
    chance = random.Random(7)

    async def one(session: aiohttp.ClientSession) -> None:
        await asyncio.sleep(chance.random() * seconds / 6)  # clients do not start all at once
        while time.monotonic() < end:
            number, kind = next(numbers), chance.choice(list(KINDS))
            path = chance.choice(["/v1/chat/completions", "/v1/messages"])
            body: dict[str, Any] = {**CHAT, "messages": [{"role": "user", "content": f"<{kind}-{number}>"}]}
            body["max_tokens"] = 9
            async with session.post(url + path, json=body) as got:
                if chance.random() < 0.05 and got.status == 200:
                    await got.content.readany()
                    tally.left += 1
                    continue  # this client disconnects in the middle of the stream
                received = await got.read()
            try:
                right = KINDS[kind](got.status, received, number)
            except (sw.StreamError, ValueError, KeyError) as error:
                tally.wrong.append(f"{kind} {path} {error!r} {received[-300:]!r}")
            else:
                if right:
                    tally.right[kind] = tally.right.get(kind, 0) + 1
                else:
                    tally.wrong.append(f"{kind} {path} {got.status} {received[-300:]!r}")

    timeout = aiohttp.ClientTimeout(total=None, sock_read=120)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
        await asyncio.gather(*[one(session) for _ in range(count)])


def resident(pid: int) -> int:
    """Return the resident memory in KiB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


@pytest.mark.timeout(300 if HOUR is None else 2 * HOUR.seconds)
def test_many_streams_and_none_goes_wrong(full: bool) -> None:
    load = HOUR or (HUGE if NIGHTLY else FULL if full else SAMPLE)
    tally = Tally()
    server = Upstream(lambda talk: answer(talk, load.pace))
    options = ("--to", "chat", "--idle-timeout", str(load.stall))
    with server.serving(), command("--upstream", server.url, *options) as (process, url, lines):
        asyncio.run(clients(url, load.streams, load.seconds / 2, tally))
        before = resident(process.pid)
        asyncio.run(clients(url, load.streams, load.seconds / 2, tally))
        after = resident(process.pid)
        until(lambda: b"streamweld_streams_open 0.0" in urlopen(f"{url}/metrics").read())
        assert process.poll() is None
    print(f"streams {sum(tally.right.values())}, left {tally.left}, {before} -> {after} KiB, {tally.right}")
    assert tally.wrong == []
    assert tally.right.keys() == KINDS.keys()
    assert sum(tally.right.values()) >= load.streams
    assert after < before * 1.15 + 4096
    assert not any("Traceback" in line for line in lines)
