"""`streamweld proxy --record`: records the upstream's bytes before conversion, without credentials."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from streamweld.testing import read_recording

from tests.support.servers.proxying import GOOD, between, converse
from tests.support.servers.upstream import Talk, Upstream, sse

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "sk-this-must-not-be-recorded"


def test_the_stream_of_the_upstream_is_recorded(tmp_path: Path) -> None:
    packed = gzip.compress(b"".join(GOOD))
    named = {"x_request_id": "req-42"}
    with between(Upstream(sse(packed, content_encoding="gzip", **named)), record=str(tmp_path)) as url:
        answer = converse(url, headers={"x-api-key": SECRET})
    assert "event: message_stop" in answer.text
    (file,) = tmp_path.iterdir()
    found = read_recording(file)
    assert (found.body, found.end, found.path, found.status) == (b"".join(GOOD), "complete", "/v1/messages", 200)
    assert found.request_id == "req-42"
    assert SECRET not in file.read_text("utf-8")


def test_a_cut_is_recorded_as_failed(tmp_path: Path) -> None:
    async def script(talk: Talk) -> None:
        await talk.head(200, "text/event-stream")
        await talk.send(GOOD[0])
        talk.cut()

    with between(Upstream(script), record=str(tmp_path)) as url:
        converse(url)
    (file,) = tmp_path.iterdir()
    found = read_recording(file)
    assert (found.body, found.end) == (GOOD[0], "failed")
