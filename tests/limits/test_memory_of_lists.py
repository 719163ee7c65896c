"""A payload with long lists takes little more memory than its bytes: every array in the vectors' payloads, filled with
elements. A list has as many elements as `max_json_values` allows, or many more. A usual run uses a fixed sample of the
arrays.
"""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

import pytest
import streamweld as sw

from tests.conftest import FULL, NIGHTLY
from tests.support.attacks import MIB
from tests.support.backends import using
from tests.support.load.arrays import JOBS, elements, growth, places

EVERY = 1 if NIGHTLY else 100 if FULL else 500
COUNTS = {"native": (16_000, 60_000), "pure": (2000, 20_000)}
LISTED = [(place, element) for place in places() for element in elements(place)]
SAMPLE = [(place, one) for place, one in LISTED if crc32(f"{place.dialect}{place.name}{one}".encode()) % EVERY == 0]
# These took the most memory when every element caused a diagnostic and an event.
SAMPLE += [(p, e) for p, e in LISTED if p.dialect == "chat" and p.name == " choices/*/delta/tool_calls" and e == "1"]
SAMPLE += [(p, e) for p, e in LISTED if p.dialect == "chat" and p.name == " choices" and e == "1"]


def allowed(body: bytes) -> int:
    """Return the allowed memory growth. 16,384 decoded elements take up to 1.5 KB each; other values are built on
    demand.
    """
    return 10 * len(body) + 26 * MIB


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="Linux measures the memory of a process")
@pytest.mark.parametrize("job", JOBS)
def test_long_lists(backend: str, job: str) -> None:
    if job == "check" and backend == "pure":
        pytest.skip("there is one checker for both backends")
    wrong: list[str] = []
    with using(backend):
        for place, element in SAMPLE:
            for count in COUNTS[backend]:
                body = place.body(element, count)
                if job != place.dialect and len(body) < 2 * MIB:
                    grown = growth(JOBS[job], place.dialect, body)
                    if grown > allowed(body):
                        wrong.append(
                            f"{place.dialect} {place.name} of {count} x {element[:60]}: {grown} of {len(body)}"
                        )
    assert not wrong, "\n".join(wrong)


def test_count_of_what_is_left_out(backend: str) -> None:
    """600 shapes cause 1,200 diagnostics and Unknown events, of which only 1,024 are reported."""
    with using(backend):
        parser = sw.StreamParser(dialect="chat", limits=sw.Limits(max_diagnostics=None))
        events = parser.feed(b'data: {"choices":[' + b",".join([b"1"] * 600) + b"]}\n\n")
    (left,) = [event for event in events if event.type == "diagnostic" and event.code == "notes_left_out"]
    assert left.detail == "176"
    assert [event.type for event in events].count("unknown") == 512
