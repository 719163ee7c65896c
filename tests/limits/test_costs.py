"""Cost of hostile streams: limits apply before memory is exhausted, and time grows linearly with the input.

Rows A1 to A5, B1, B7, C2 to C4, C17 and D1 to D6 of the threat list.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from streamweld.errors import StreamError
from streamweld.options import Limits, Policy

from tests.support.attacks import ATTACKS, MIB, PIECE
from tests.support.backends import make_parser
from tests.support.load.linear import assert_linear_work, cpu_seconds
from tests.support.places import REPOSITORY
from tests.support.servers.wire import call, chunk, end, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ROOT = REPOSITORY
SLACK = MIB


@pytest.mark.parametrize("name", ATTACKS)
def test_limit_is_hit_before_memory_is_spent(backend: str, name: str) -> None:
    """In its own process, peak memory is at most the limit plus 1 MiB plus one read."""
    attack = ATTACKS[name]
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.attacks", backend, name],
        cwd=ROOT,
        env=os.environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rule, offset, observed, grown = done.stdout.split()
    if attack.error is None:
        assert rule in {"None", "truncated", "not_an_event_stream"}
    else:
        assert rule == attack.error
        if attack.offset is not None:
            assert int(offset) == attack.offset
        name_of_limit = rule.removeprefix("limit_")
        if name_of_limit in attack.limits:
            assert int(observed) == attack.limits[name_of_limit] + 1
    piece = max(PIECE, *(len(p) for p, _ in zip(attack.pieces(), range(3), strict=False)))
    assert int(grown) <= attack.kept + SLACK + piece


@pytest.mark.parametrize("by", [-1, 0, 1])
def test_limits_to_the_byte(backend: str, by: int) -> None:
    """Input up to the limit passes; one more byte is rejected, with the limit and the observed value."""
    content = "x" * 20
    frame = text(content, "stop")
    rows = (
        ("max_event_bytes", len(frame) - len(b"data: \n\n") + 1),
        ("max_text_bytes", len(content)),
        ("max_stream_bytes", len(frame)),
        ("max_events", 1),
    )
    for name, needed in rows:
        limit = needed - by
        parser = make_parser(backend, limits=Limits(**{name: limit}))
        body = frame if name != "max_events" or by <= 0 else frame * 2
        if name == "max_events":
            limit = 1
            parser = make_parser(backend, limits=Limits(**{name: 1}))
        if by <= 0:
            parser.feed(body)
            parser.close()
            assert parser.response.text == content
        else:
            with pytest.raises(StreamError) as caught:
                parser.feed(body)
            assert (caught.value.rule, caught.value.limit, caught.value.observed) == (f"limit_{name}", limit, limit + 1)  # type: ignore[attr-defined]


def feeding(
    backend: str, pieces: Iterable[bytes], policy: Policy | str = "standard", **limits: int
) -> Callable[[], object]:
    ready = list(pieces)

    def work() -> None:
        parser = make_parser(backend, policy=policy, limits=Limits(**limits))
        for piece in ready:
            parser.feed(piece)
        parser.close()

    return work


def in_reads(body: bytes, size: int) -> list[bytes]:
    return [body[i : i + size] for i in range(0, len(body), size)]


def scale(backend: str, native: int) -> int:
    return native if backend == "native" else native // 20


def test_d1_one_line_in_64_byte_reads(backend: str) -> None:
    assert_linear_work(lambda n: feeding(backend, in_reads(text("x" * n, "stop"), 64)), scale(backend, 1_000_000))


def test_d1_eight_megabytes_in_64_byte_reads(backend: str) -> None:
    """The size in the threat list. It must also finish quickly."""
    work = feeding(backend, in_reads(text("x" * 8_000_000, "stop"), 64))
    assert cpu_seconds(work) < (1.0 if backend == "native" else 5.0)


def test_d2_many_data_lines_in_one_event(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        return in_reads(b'data: {"choices":\n' + b"data:\n" * n + b"data: []}\n\n" + end("stop"), PIECE)

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 100_000))


def test_d3_arguments_one_byte_at_a_time(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        one = call(0, None, None, "x")
        return [call(0, "a", "f", '{"x":"'), *in_reads(one * n, len(one) * 500), call(0, None, None, '"}'), end()]

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 20_000))


def test_d3_repairs_one_byte_at_a_time(backend: str) -> None:
    """The slow path: names, ids and an index that never match, with a long buffer."""

    def body(n: int) -> list[bytes]:
        return [
            call(0, "a", "f", '{"x":"'),
            *(call(0, f"r{i}", "", "x") for i in range(n)),
            call(0, None, None, '"}'),
            end(),
        ]

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 20_000))


def test_d3_cumulative_arguments(backend: str) -> None:
    """The input itself is quadratic here; the time per byte stays constant."""

    def body(n: int) -> list[bytes]:
        return [call(0, "a", "f", ""), *(call(0, None, None, '{"x":"' + "y" * i) for i in range(1, n)), end()]

    small, large = (800, 1600) if backend == "native" else (150, 300)
    for _ in range(4):
        costs = [
            min(cpu_seconds(feeding(backend, body(n))) for _ in range(3)) / sum(map(len, body(n)))
            for n in (small, large)
        ]
        if costs[1] <= 1.6 * costs[0]:
            return
    pytest.fail(f"{costs[1] / costs[0]:.2f} times as long for a byte")


def test_d3_replay_of_long_arguments_in_fragments(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        arguments = '{"x":"' + "y" * n + '"}'
        pieces = [arguments[i : i + 10] for i in range(0, len(arguments), 10)]
        return [call(0, "a", "f", arguments), *(call(0, None, None, p) for p in pieces), end()]

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 50_000))


def test_d3_object_arguments_that_grow(backend: str) -> None:
    """A long string in the arguments is neither copied nor counted again for each later fragment."""

    def body(n: int) -> list[bytes]:
        pieces = [call(0, None, None, {"x": "yz"[i % 2]}) for i in range(n // 40)]
        return [call(0, "a", "f", {"x": "x" * n * 10}), *pieces, end()]

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 100_000))


TAGS: dict[str, Callable[[int], list[bytes]]] = {
    "in one content": lambda n: [text("<think>a</think>b" * n), end("stop")],
    "in one message": lambda n: [
        b'data: {"choices":[{"index":0,"message":{"content":"%s"}}]}\n\n' % (b"<think>a</think>b" * n),
        end("stop"),
    ],
    "of blanks beside a field": lambda n: [
        chunk({"reasoning_content": "a" * 20 * n}),
        text("<think> </think>" * n),
        end("stop"),
    ],
    "around what a field said": lambda n: [
        *([chunk({"reasoning_content": "a"})] * n),
        text("<think>" + "a" * n + "</think>"),
        end("stop"),
    ],
}


@pytest.mark.parametrize("name", TAGS)
def test_d3_inline_tags(backend: str, name: str) -> None:
    policy = Policy(inline_reasoning=True)
    assert_linear_work(lambda n: feeding(backend, TAGS[name](n), policy, max_parts=0, max_text_bytes=0), 20_000)


def test_d4_a_stream_that_starts_again_and_again(backend: str) -> None:
    """AM10: discarded text is not examined again."""

    def body(n: int) -> list[bytes]:
        one = b'data: {"id":"%d","choices":[{"index":0,"delta":{"role":"assistant","content":"x"}}]}\n\n'
        return [*(one % i for i in range(n)), end("stop")]

    policy = Policy(restart_on_new_stream_id=True)
    assert_linear_work(
        lambda n: feeding(backend, body(n), policy, max_parts=0, max_text_bytes=0), scale(backend, 20_000)
    )


def test_d4_no_snapshot_per_event(backend: str) -> None:
    one = text("x")
    assert_linear_work(lambda n: feeding(backend, [one] * n + [end("stop")]), scale(backend, 20_000))


def test_d4_many_parts(backend: str) -> None:
    """Text and reasoning alternate. Each is a separate part, and none is examined again."""
    pair = text("x") + chunk({"reasoning_content": "y"})

    def body(n: int) -> list[bytes]:
        return [*in_reads(pair * n, PIECE), end("stop")]

    assert_linear_work(lambda n: feeding(backend, body(n), max_parts=0, max_text_bytes=0), scale(backend, 20_000))


def test_d4_many_calls(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        return [b"".join(call(i, f"id{i}", "f", f'{{"n":{i}}}') for i in range(n)), end()]

    assert_linear_work(
        lambda n: feeding(backend, body(n), max_tool_calls=0, max_tool_index=0, max_parts=0, max_text_bytes=0),
        scale(backend, 4_000),
    )


def test_d4_many_calls_without_any_key(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        return [b"".join(call(0, None, "f", f'{{"n":{i}}}') for i in range(n)), end()]

    assert_linear_work(
        lambda n: feeding(backend, body(n), max_tool_calls=0, max_parts=0, max_text_bytes=0), scale(backend, 2_000)
    )


@pytest.mark.parametrize("objects", [1, 50])
def test_d4_many_calls_that_split_off(backend: str, objects: int) -> None:
    """AM6: every complete object after the arguments of a call is another call.

    `objects`: their number per fragment.
    """
    policy = Policy(on_overflow="split")

    def body(n: int) -> list[bytes]:
        whole = ["".join(f'{{"n":{i}}}' for i in range(at, at + objects)) for at in range(0, n, objects)]
        return [call(0, "a", "f", "{}"), b"".join(call(0, None, None, arguments) for arguments in whole), end()]

    parser = make_parser(backend, policy=policy)
    for piece in body(100):
        parser.feed(piece)
    parser.close()
    assert len(parser.response.tool_calls) > 90
    assert_linear_work(
        lambda n: feeding(backend, body(n), policy, max_tool_calls=0, max_parts=0, max_text_bytes=0),
        scale(backend, 4000),
    )


def test_d5_many_events_in_one_read(backend: str) -> None:
    one = text("x")
    assert_linear_work(lambda n: feeding(backend, [one * n + end("stop")]), scale(backend, 20_000))


def test_d6_events_out_of_one_read(backend: str) -> None:
    """One feed returns all of its events in one list, which is built once."""
    body = text("x") * scale(backend, 40_000)
    parser = make_parser(backend)
    events = parser.feed(body)
    assert len(events) == scale(backend, 40_000) + 2
    assert isinstance(events, list)


def test_b8_an_object_with_very_many_keys(backend: str) -> None:
    def body(n: int) -> list[bytes]:
        keys = ",".join(f'"k{i}":1' for i in range(n))
        return [b'data: {"choices":[{"index":0,"delta":{"content":"x"}}],%s}\n\n' % keys.encode(), end("stop")]

    assert_linear_work(lambda n: feeding(backend, body(n)), scale(backend, 20_000))
