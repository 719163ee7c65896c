"""The rows of `streamweld scan`: one row per recorded body, with the columns of `streamweld.arrow.parse`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from streamweld.arrow import COLUMNS
from streamweld.errors import StreamError, TruncatedStream, UpstreamError
from streamweld.report.repairs import repairs_of
from streamweld.stream import parse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamweld._literals import DiagnosticCode, Severity
    from streamweld.events import Diagnostic, ToolCall
    from streamweld.integrations.captures import Capture
    from streamweld.options import Base, Dialect
    from streamweld.response import Response

__all__ = ["ALL_COLUMNS", "ARROW_COLUMNS", "REPAIRS", "findings", "rows_of", "severities"]

ARROW_COLUMNS: Final = (
    *COLUMNS,
    *("response_id", "model", "created", "raw_finish_reason"),
    *("choices", "refusal", "server_tool_calls", "diagnostics_dropped"),
)
"""The columns of `streamweld.arrow.parse`; the first ones are the default."""
REPAIRS: Final = "repairs"
"""The column that only a scan has: why `repair` changes the stream. The column is computed only if it is selected,
because each stream has to be read once more.
"""
ALL_COLUMNS: Final = (*ARROW_COLUMNS, REPAIRS)
_CALL = ("part", "call_id", "item_id", "name", "arguments", "state", "reason", "raw_arguments", "aliases", "custom")
_DIAGNOSTIC = ("code", "severity", "byte_offset", "event_ordinal", "part", "detail")
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "cached_input_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def rows_of(captures: Sequence[Capture], dialect: Dialect, policy: Base, *, repairs: bool) -> list[dict[str, Any]]:
    """Return the rows for some captures, in order, with all columns. This function runs in the worker processes.

    Args:
        captures: the captures.
        dialect: the wire format.
        policy: which faults are repaired.
        repairs: whether to compute the column `repairs`, which is otherwise null.
    """
    rows = [_row(capture, dialect, policy) for capture in captures]
    if repairs:
        for row, capture in zip(rows, captures, strict=True):
            if capture.error is None and capture.body is not None:
                row[REPAIRS] = repairs_of(capture.body, policy, dialect)
    return rows


def findings(row: dict[str, Any]) -> list[str]:
    """Return the codes with severity warning or error, and the rule of the error, each listed once."""
    codes = [found["code"] for found in row["diagnostics"] or () if found["severity"] != "info"]
    if row["error"] is not None:
        codes.append(row["error"]["rule"])
    return list(dict.fromkeys(codes))


def severities(row: dict[str, Any]) -> list[Severity]:
    """Return the severities of the findings."""
    found: list[Severity] = [found["severity"] for found in row["diagnostics"] or ()]
    return found if row["error"] is None else [*found, "error"]


def _row(capture: Capture, dialect: Dialect, policy: Base) -> dict[str, Any]:
    body = capture.body
    position = {"path": capture.path, "row": capture.row, "bytes": None if body is None else len(body)}
    nothing: dict[str, Any] = dict.fromkeys(ALL_COLUMNS)
    if capture.error is not None:
        error = capture.error
        return position | nothing | {"error": _error(type(error).__name__, error.rule, str(error), error.problem)}
    if body is None:
        return position | nothing
    try:
        response = parse(body, dialect=dialect, policy=policy)
    except StreamError as error:
        return position | _columns(error.partial, _raised(error))
    return position | _columns(response, _reported(response))


def _columns(response: Response | None, error: dict[str, Any] | None) -> dict[str, Any]:
    if response is None:
        return dict.fromkeys(ALL_COLUMNS) | {"error": error}
    usage = response.usage
    runnable = {call.part for call in response.dispatchable_calls}
    return {
        "dialect": response.dialect,
        "completeness": response.completeness,
        "finish_reason": response.finish_reason,
        "text": response.text,
        "reasoning": response.reasoning,
        "tool_calls": [_call(call) | {"dispatchable": call.part in runnable} for call in response.tool_calls],
        "usage": None
        if usage is None
        else {name: getattr(usage, name) for name in _COUNTS}
        | {"raw": None if usage.raw is None else json.dumps(usage.raw, ensure_ascii=False, separators=(",", ":"))},
        "diagnostics": [{name: getattr(found, name) for name in _DIAGNOSTIC} for found in response.diagnostics],
        "error": error,
        "response_id": response.id,
        "model": response.model,
        "created": response.created,
        "raw_finish_reason": response.raw_finish_reason,
        "choices": len(response.choices),
        "refusal": response.refusal,
        "server_tool_calls": [_call(call) | {"dispatchable": False} for call in response.server_tool_calls],
        "diagnostics_dropped": response.diagnostics_dropped,
        REPAIRS: None,
    }


def _call(call: ToolCall) -> dict[str, Any]:
    return {name: getattr(call, name) for name in _CALL} | {"aliases": list(call.aliases)}


def _raised(error: StreamError) -> dict[str, Any]:
    sent = error if isinstance(error, UpstreamError) else None
    return _error(
        type(error).__name__,
        error.rule,
        str(error),
        error.detail,
        code=None if sent is None else sent.code,
        kind=None if sent is None else sent.kind,
        retryable=error.retryable,
        byte_offset=error.byte_offset,
        event_ordinal=error.event_ordinal,
    )


def _reported(response: Response) -> dict[str, Any] | None:
    """Return the error that a stricter policy would have raised: the gateway's error, or the truncation."""
    sent = response.error
    if sent is not None:
        position = _place(response, "upstream_error")
        return _raised(
            UpstreamError(rule="upstream_error", code=sent.code, kind=sent.kind, message=sent.message, **position)
        )
    if response.completeness == "truncated":
        found = _diagnostic(response, "truncated")
        where = "between_events" if found is None else found.detail
        return _raised(TruncatedStream(rule="truncated", detail=where, where=where, **_place(response, "truncated")))
    return None


def _place(response: Response, code: DiagnosticCode) -> dict[str, Any]:
    found = _diagnostic(response, code)
    return {} if found is None else {"byte_offset": found.byte_offset, "event_ordinal": found.event_ordinal}


def _diagnostic(response: Response, code: DiagnosticCode) -> Diagnostic | None:
    """Return the first diagnostic with this code, or None if the limit on kept diagnostics excluded it."""
    return next((found for found in response.diagnostics if found.code == code), None)


def _error(kind_of_error: str, rule: str, message: str, detail: str, **more: Any) -> dict[str, Any]:
    rest = dict.fromkeys(("code", "kind", "retryable", "byte_offset", "event_ordinal"))
    return {"type": kind_of_error, "rule": rule, "message": message, "detail": detail or None} | rest | more
