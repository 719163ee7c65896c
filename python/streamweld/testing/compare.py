"""Compare a parsed response with the expected contents of a stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from streamweld.errors import StreamError, TruncatedStream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld.response import Response
    from streamweld.testing.stream import Expected

__all__ = ["differences"]


def differences(expected: Expected, response: Response, error: StreamError | None = None) -> list[str]:
    """Describe how a response differs from what a correct reader finds. The result is empty if the response is correct.

    Args:
        expected: the expected contents of the stream.
        response: the response that was read; after an exception, its `partial`.
        error: the exception that the reader raised.
    """
    return list(_differences(expected, response, error))


def _differences(expected: Expected, response: Response, error: StreamError | None) -> Iterator[str]:
    found = _ending(response, error)
    if found != expected.ending:
        yield f"ending: {found}, not {expected.ending}"
    for name in ("text", "reasoning", "refusal"):
        if getattr(response, name) != getattr(expected, name):
            yield f"{name}: {getattr(response, name)!r}, not {getattr(expected, name)!r}"
    whole = expected.ending in {"complete", "assumed"}
    got = [(call.call_id, call.name, _value(call.arguments)) for call in response.dispatchable_calls]
    wanted = [(call.id, call.name, _value(call.arguments)) for call in expected.calls]
    ids = [call.call_id for call in response.tool_calls]
    if len(set(ids)) < len(ids):
        yield f"ids: {ids} are not unique"
    if whole and [each[1:] for each in got] != [each[1:] for each in wanted]:
        yield f"calls: {got}, not {wanted}"
    elif not whole and not _in_order([each[1:] for each in got], [each[1:] for each in wanted]):
        yield f"calls: {got}, of {wanted}"
    elif whole and any(right not in (None, left) for (left, *_), (right, *_) in zip(got, wanted, strict=True)):
        yield f"ids: {got}, not {wanted}"
    if not whole:
        return
    if expected.finish is not None and response.finish_reason != expected.finish:
        yield f"finish: {response.finish_reason}, not {expected.finish}"
    if expected.usage is not None:
        counts = response.usage and (response.usage.input_tokens, response.usage.output_tokens)
        if counts != (expected.usage.input, expected.usage.output):
            yield f"usage: {counts}, not {expected.usage}"


def _ending(response: Response, error: StreamError | None) -> str:
    if isinstance(error, TruncatedStream) and error.where != "empty":
        return "truncated"
    if error is not None:
        return "error"
    return response.completeness


def _value(arguments: str) -> Any:
    try:
        return json.dumps(json.loads(arguments or "{}"), ensure_ascii=False)
    except ValueError:
        return arguments


def _in_order(got: list[Any], wanted: list[Any]) -> bool:
    """Return True if `got` is a subsequence of `wanted`."""
    rest = iter(wanted)
    return all(any(each == one for one in rest) for each in got)
