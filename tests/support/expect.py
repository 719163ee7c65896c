"""Assertions of the threat suites on an outcome: the exception and its position, the diagnostics, or no exception."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from streamweld.errors import StreamError

    from tests.support.harness import Outcome


def raised(outcome: Outcome, kind: type[StreamError], rule: str, offset: int, ordinal: int | None = None) -> Any:
    error = outcome.error
    assert type(error) is kind, repr(error)
    assert (error.rule, error.byte_offset) == (rule, offset)
    if ordinal is not None:
        assert error.event_ordinal == ordinal
    assert error.partial == outcome.response
    assert error.events == outcome.events[len(outcome.events) - len(error.events) :]
    return error


def said(outcome: Outcome, code: str, offset: int | None = None, ordinal: int | None = None) -> None:
    rows = [d for d in outcome.diagnostics if d.code == code]
    assert rows, outcome.diagnostics
    if offset is not None:
        assert (rows[0].byte_offset, rows[0].event_ordinal) == (offset, ordinal)


def calm(outcome: Outcome) -> None:
    if outcome.error is not None:
        raise outcome.error
    assert [d for d in outcome.diagnostics if d.severity != "info"] == []
