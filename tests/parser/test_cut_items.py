"""Recorded streams of the five dialects that open and close their parts, truncated at any byte.

No data before the truncation are lost or changed, no call is emitted as complete that the complete stream does not
have, and if no exception is raised, the response is that of the complete stream. Nightly (STREAMWELD_NIGHTLY=1): every
byte of the short ones, with the native backend; a sample with the pure backend. Full counts (STREAMWELD_FULL=1): 80
positions of each stream, with the native backend.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from streamweld.errors import TruncatedStream, UnknownDialect

from tests.parser.test_cut import LONGEST, places_in
from tests.support.corpus import FOLDERS, absent, recordings
from tests.support.cuts import UNDECIDABLE
from tests.support.harness import Outcome, read
from tests.support.parallel import spread

if TYPE_CHECKING:
    from streamweld.errors import StreamError
    from streamweld.response import Response

# A restarted response discards its earlier text, so the result of the complete stream does not contain it.
BEGINS_AGAIN = {"anthropic__ai-spliced-message-start.sse"}
pytestmark = pytest.mark.skipif(absent() is not None, reason=absent() or "")


def whole_calls(response: Response) -> set[tuple[str, str, str]]:
    calls = (*response.tool_calls, *response.server_tool_calls)
    return {(call.call_id, call.name, call.arguments) for call in calls if call.state in ("complete", "empty")}


@dataclass(frozen=True)
class Whole:
    """The result of the complete stream."""

    error: type[StreamError] | None
    text: str
    reasoning: str
    calls: set[tuple[str, str, str]]


def whole_of(uncut: Outcome) -> Whole:
    response = uncut.response
    error = None if uncut.error is None else type(uncut.error)
    return Whole(error, response.text, response.reasoning, whole_calls(response))


def wrong_with_cut(cut: Outcome, whole: Whole, *, decidable: bool) -> str | None:
    """Describe the broken guarantee, or return None. `decidable`: the stream is not one of `cut_undecidable.json`."""
    error = cut.error
    partial = None if error is None else error.partial
    response = cut.response if partial is None else partial
    if type(error) in (TruncatedStream, UnknownDialect):
        if response.completeness != "truncated":
            return f"raised, but {response.completeness}"
    elif error is None and response.completeness == "truncated":
        return "truncated, but nothing was raised"
    elif error is not None and type(error) is not whole.error:
        return f"raised {error!r}"
    if not whole.text.startswith(response.text):
        return "the text is no prefix"
    if not whole.reasoning.startswith(response.reasoning):
        return "the reasoning is no prefix"
    calls = whole_calls(response)
    if calls - whole.calls:
        return f"calls that never were: {calls - whole.calls}"
    if (
        error is None
        and decidable
        and (response.text, response.reasoning, calls)
        != (
            whole.text,
            whole.reasoning,
            whole.calls,
        )
    ):
        return "silent: not the text or the calls of the whole stream"
    return None


Job = tuple[str, str, str, "int | None"]


def try_recording(job: Job) -> str | None:
    backend, folder, name, count = job
    body = next(r for r in recordings(folder) if r.name == name).body
    options = {"dialect": FOLDERS[folder]}
    whole = whole_of(read(backend, [body], options))
    places = range(len(body))
    chosen = list(places) if count is None else sorted(random.Random(name).sample(places, min(count, len(body))))
    decidable = f"{folder}/{name}" not in UNDECIDABLE
    for place in chosen:
        found = wrong_with_cut(read(backend, [body[:place]], options), whole, decidable=decidable)
        if found:
            return f"{backend} {name} cut at byte {place} of {len(body)}: {found}"
    return None


@pytest.mark.timeout(2400)
@pytest.mark.parametrize("folder", [folder for folder in FOLDERS if folder != "chat"])
def test_recorded_streams(backend: str, folder: str, full: bool) -> None:
    chosen = [r for r in recordings(folder) if r.size <= LONGEST and r.name not in BEGINS_AGAIN]
    for recording in chosen:
        recording.body  # noqa: B018 (counted here, because the work may be done in another process)
    jobs = [(backend, folder, r.name, places_in(r, backend, full=full)) for r in chosen]
    found = spread(try_recording, jobs, alone=not full)
    assert [row for row in found if row] == []
