"""Every recorded stream is converted and parsed again. The results are equal except for reported losses.

The reader is streamweld's own, `sw.check` checks the rules, and Responses frames are validated against the published
schemas. A truncated or corrupted source never becomes a success.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from streamweld._pure.encode.common.usage import neutral
from streamweld.events import ToolResult

from tests.conftest import FULL, NIGHTLY
from tests.support import corpus
from tests.support.audio import transcript
from tests.support.backends import using
from tests.support.sample import one_of

if TYPE_CHECKING:
    from streamweld.response import Choice, Response

    from tests.support.corpus import Recording

TARGETS = ("chat", "responses", "gemini", "anthropic", "ai-sdk-parts", "ai-sdk-ui")
ONE_ANSWER = ("responses", "anthropic", "ai-sdk-parts", "ai-sdk-ui")  # only the first choice is written
AS_OBJECTS = ("gemini", "ai-sdk-ui")  # arguments are written as an object, not as their text
WITHOUT_TOTAL = ("anthropic", "ai-sdk-parts")  # the reader computes the total
SAMPLE = 60
CUT_STREAMS = 20
CORRUPTIONS = 40 if FULL else 10
SUCCESS = ("stop", "tool_calls")
COUNTS = ("input_tokens", "output_tokens", "total_tokens", "cached_input_tokens", "reasoning_tokens")


@dataclass(frozen=True)
class Reading:
    """The result of reading one stream."""

    response: Response
    error: sw.StreamError | None

    @property
    def is_whole(self) -> bool:
        return self.error is None and self.response.completeness != "truncated" and self.response.error is None

    @property
    def is_success(self) -> bool:
        return self.is_whole and self.response.finish_reason in SUCCESS


@dataclass(frozen=True)
class Converted:
    body: bytes
    losses: frozenset[str]
    error: sw.StreamError | None


def read(body: bytes, dialect: Any) -> Reading:
    parser = sw.StreamParser(dialect=dialect, seed="read")
    try:
        parser.feed(body)
        parser.close()
    except sw.StreamError as error:
        return Reading(parser.response, error)
    return Reading(parser.response, None)


def converted(body: bytes, source: Any, target: Any) -> Converted:
    converter = sw.StreamConverter(source=source, target=target, seed="read", limits=sw.Limits(max_diagnostics=0))
    made = converter.feed(body) + converter.close()
    losses = frozenset(d.detail for d in converter.diagnostics if d.code == "not_carried")
    return Converted(made, losses, converter.error)


def sample() -> list[Recording]:
    """Return streams of every dialect: all of them, or a fixed share of each."""
    picked: list[Recording] = []
    for folder in corpus.FOLDERS:
        rows = corpus.recordings(folder)
        step = 1 if FULL else max(1, len(rows) * len(corpus.FOLDERS) // SAMPLE)
        picked += rows[::step]
    return picked


def as_object(text: str) -> Any:
    return json.loads(text or "{}")


def answered(choice: Choice) -> set[str]:
    """Return the calls whose results are in the stream."""
    return {item.call_id for item in choice.items if isinstance(item, ToolResult)}


def carried_calls(choice: Choice, losses: frozenset[str], source: str, target: str) -> list[tuple[str, str, Any]]:
    """Return the calls that the target must contain: all calls that could be run."""
    calls = []
    for call in choice.tool_calls:
        refused = call.reason == "refused" and target in ("chat", "responses")
        assert not refused or "refused_call" in losses
        if not (refused or call.state in ("complete", "empty")) or not call.name or not call.call_id:
            continue
        if target == "anthropic" and source == "ai-sdk-ui" and call.call_id in answered(choice):
            assert "server_tool" in losses  # the application ran the call, so it must not be run again
            continue
        text = call.arguments or "{}"
        if call.custom and target != "responses":
            assert "custom_call" in losses
            text = json.dumps({"input": call.arguments}, ensure_ascii=False, separators=(",", ":"))
        elif call.custom:
            text = call.arguments
        calls.append((call.call_id, call.name, as_object(text) if target in AS_OBJECTS else text))
    return calls


def written_calls(choice: Choice, target: str) -> list[tuple[str, str, Any]]:
    return [
        (
            call.call_id,
            call.name,
            as_object(call.arguments)
            if target in AS_OBJECTS
            else call.arguments
            if call.custom
            else call.arguments or "{}",
        )
        for call in choice.tool_calls
        if call.state in ("complete", "empty")
    ]


def compare_choice(one: Choice, other: Choice, made: Converted, source: str, target: str, *, restarted: bool) -> None:
    losses = made.losses
    text, refusal = one.text, one.refusal
    if source == "chat":
        text = text or transcript(one)
    if "text_corrected" not in losses and not restarted:
        if "refusal" in losses:
            assert sorted(other.text) == sorted(text + refusal)
        else:
            assert other.text == text
            assert other.refusal == refusal
        assert other.reasoning == one.reasoning
    there, due = written_calls(other, target), carried_calls(one, losses, source, target)
    if "arguments_spelling" in losses and target not in AS_OBJECTS:
        there, due = ([(*call[:2], as_object(call[2])) for call in calls] for calls in (there, due))
    assert there == due
    changed = {"finish", "invalid_call", "nameless_call", "cut_call", "server_tool"} & losses
    unfit = any(call.state == "invalid" for call in one.tool_calls)
    if not (changed or answered(one) or unfit):
        assert other.finish_reason == one.finish_reason


def compare_usage(one: Response, other: Response, losses: frozenset[str], source: str, target: str) -> None:
    if one.usage is None:
        # Anthropic and the AI SDK's parts have a usage in every ending.
        assert other.usage is None or not any(other.usage.to_dict()[name] for name in COUNTS)
        return
    before = neutral(one.usage, source)
    if before.is_blank or (other.usage is None and not (before.input or before.output or before.total)):
        return
    assert other.usage is not None
    after = neutral(other.usage, target)
    for name in ("input", "output", "cached", "reasoning"):
        shown = getattr(after, name) or 0
        # Counts with more reasoning than output, or more cached tokens than input, cannot be split.
        odd = (before.reasoning or 0) > (before.output or 0) or (before.cached or 0) > (before.input or 0)
        left_out = name == "reasoning" and "usage_detail" in losses
        assert shown == (getattr(before, name) or 0) or odd or left_out, name
    if before.total is not None and target not in WITHOUT_TOTAL:
        assert after.total == before.total


def excused(rule: str, first: Reading, losses: frozenset[str]) -> bool:
    """Return True for a rule that the output must violate because of the source."""
    if rule == "gemini.usage_missing":
        return first.response.usage is None or neutral(first.response.usage, None).is_blank
    if rule == "chat.finish_hides_calls":
        return "server_tool" in losses  # the stream contains results of the calls, so they must not be run again
    if rule in ("responses.done_differs", "responses.item_done_differs"):
        return bool(
            {d.code for d in first.response.diagnostics} & {"conflict", "args_replay_dropped", "stream_restarted"}
        )
    if rule in ("anthropic.input_not_object", "ai-sdk-parts.call_input_json", "ai-sdk-parts.call_input_differs"):
        unfit = ("invalid", "incomplete")
        return any(call.state in unfit for choice in first.response.choices for call in choice.tool_calls)
    if rule == "anthropic.stop_reason_contradicts":
        return "server_tool" in losses  # the result of a call follows its block
    if rule == "chat.arguments_not_object":
        return any(call.state == "invalid" for choice in first.response.choices for call in choice.tool_calls)
    return False


def hold(recording: Recording, target: str) -> None:
    """Convert one stream to one target and check the result."""
    body = recording.body
    first = read(body, recording.dialect)
    made = converted(body, recording.dialect, target)
    second = read(made.body, target)
    broken = isinstance(made.error, sw.errors.LifecycleError)
    if broken:
        assert not second.is_success
        return
    assert type(made.error) is type(first.error)
    if not first.is_whole or first.response.finish_reason in ("error", None):
        assert not second.is_success
        return
    assert second.error is None, second.error
    codes = {d.code for d in first.response.diagnostics}  # text that a restart discards may already have been written
    before, after = first.response.choices, second.response.choices
    assert len(after) <= (1 if target in ONE_ANSWER else len(before))
    for choice in before:
        others = [other for other in after if other.index == (0 if target in ONE_ANSWER else choice.index)]
        if others and "choices" not in made.losses:
            compare_choice(choice, others[0], made, recording.dialect, target, restarted="stream_restarted" in codes)
        else:
            assert "choices" in made.losses or not (choice.text or choice.reasoning or choice.tool_calls)
    compare_usage(first.response, second.response, made.losses, recording.dialect, target)
    output_text = [v for v in sw.check(made.body, dialect=target) if not excused(v.rule, first, made.losses)]
    assert not output_text, output_text[:3]


def pairs() -> list[tuple[Recording, str]]:
    return [(recording, target) for recording in sample() for target in TARGETS if target != recording.dialect]


def name_of(pair: tuple[Recording, str]) -> str:
    recording, target = pair
    return f"{recording.folder}-{recording.name}-{target}"


def one_target_each() -> list[tuple[Recording, str]]:
    """Pair each stream with one target, in turn. For other pieces, the output of both backends is compared for all
    targets.
    """
    rows = pairs()
    others = len(TARGETS) - 1
    return [rows[at + at // others % others] for at in range(0, len(rows), others)]


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@pytest.mark.parametrize(
    ("recording", "target"),
    [pytest.param(*pair, id=name_of(pair)) for pair in one_of(3 if FULL and not NIGHTLY else 1, pairs(), name_of)],
)
def test_what_was_read_is_read_again(backend: str, recording: Recording, target: str) -> None:
    with using(backend):
        hold(recording, target)


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@pytest.mark.parametrize(("recording", "target"), [pytest.param(*pair, id=name_of(pair)) for pair in one_target_each()])
def test_pieces_change_nothing(backend: str, recording: Recording, target: Any) -> None:
    body = recording.body
    chance = random.Random(f"{recording.name} {target}")

    def convert(*places: int) -> tuple[Any, ...]:
        converter = sw.StreamConverter(source=recording.dialect, target=target, seed="read")  # type: ignore[arg-type]
        cuts = [0, *places, len(body)]
        made = b"".join([converter.feed(body[a:b]) for a, b in pairwise(cuts)]) + converter.close()
        return made, converter.diagnostics, str(converter.error), converter.response

    with using(backend):
        whole = convert()
        for _ in range(3):
            assert convert(*sorted(chance.sample(range(len(body)), min(len(body), chance.choice((1, 5, 50)))))) == whole


# Endings


def events_of(body: bytes) -> list[int]:
    """Return the end positions of the events of a body."""
    places, at = [], 0
    while (at := body.find(b"\n\n", at)) >= 0:
        at += 2
        places.append(at)
    return places


def never_a_success(body: bytes, recording: Recording, target: str) -> None:
    """Check that the output is not a success unless the remaining part of the source is one."""
    first = read(body, recording.dialect)
    made = converted(body, recording.dialect, target)
    second = read(made.body, target)
    if isinstance(made.error, sw.errors.LifecycleError):
        assert not second.is_success
        return
    assert type(made.error) is type(first.error)
    if not first.is_success:
        assert not second.is_success, (first.response.finish_reason, first.error)
    if not first.is_whole and target == "responses":
        assert made.body.endswith(b"data: [DONE]\n\n")
        assert b"event: response.completed" not in made.body
    if not first.is_whole and target == "anthropic":
        assert b"event: message_stop" not in made.body
        assert b'"type":"error"' in made.body
    if not first.is_whole and target == "ai-sdk-parts":
        assert b'"finishReason":{"unified":"error"}' in made.body
    if not first.is_whole and target == "ai-sdk-ui":
        assert b'"type":"finish' not in made.body
        assert made.body.endswith(b"data: [DONE]\n\n")
    if not first.is_whole and target == "chat":
        assert b'"finish_reason":"' not in made.body
        assert not made.body.endswith(b"[DONE]\n\n")


def some_streams() -> list[Recording]:
    """Return short streams of every dialect, so that each can be truncated at every event."""
    picked: list[Recording] = []
    for folder in corpus.FOLDERS:
        short = [r for r in corpus.recordings(folder) if 1_000 < r.size < 6_000 and not r.wrapped]
        picked += short[:: max(1, len(short) * len(corpus.FOLDERS) // CUT_STREAMS)][: CUT_STREAMS // 6 + 1]
    return picked


SOME = pytest.mark.parametrize(
    ("recording", "target"),
    [
        pytest.param(recording, target, id=f"{recording.folder}-{recording.name}-{target}")
        for recording in some_streams()
        for target in TARGETS
        if target != recording.dialect
    ],
)


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@SOME
def test_a_cut_is_never_a_success(backend: str, recording: Recording, target: str) -> None:
    body = recording.body
    with using(backend):
        for place in events_of(body)[:-1]:
            never_a_success(body[:place], recording, target)
            never_a_success(body[: place + 7], recording, target)


@pytest.mark.skipif(corpus.absent() is not None, reason=str(corpus.absent()))
@SOME
def test_a_corrupted_stream_is_never_a_success(backend: str, recording: Recording, target: str) -> None:
    body = recording.body
    chance = random.Random(f"{recording.name} {target}")
    with using(backend):
        for _ in range(CORRUPTIONS):
            at = chance.randrange(len(body))
            other = chance.choice((b"", b"\n\n", b'"', b"{", b"\xff", bytes([chance.randrange(256)])))
            never_a_success(body[:at] + other + body[at + chance.randrange(4) :], recording, target)
