"""Feeds bytes to a parser of one backend, and keeps all results in comparable form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from streamweld import options as config
from streamweld.errors import StreamError

from tests.support.backends import make_parser

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamweld.events import Diagnostic
    from streamweld.response import Response
    from streamweld.stream import StreamParser


@dataclass
class Outcome:
    """The result of one stream: all events (including those on the exception), the exception, and the final state."""

    events: list[Any]
    error: StreamError | None
    diagnostics: list[Diagnostic]
    dialect: str | None
    batches: list[int]  # number of events that each call returned
    parser: StreamParser

    @cached_property
    def response(self) -> Response:
        """Return the Response. It is built on demand, because for a short stream, building it takes half of the total
        time.
        """
        return self.parser.response

    @property
    def codes(self) -> set[str]:
        return {d.code for d in self.diagnostics}

    def facts(self) -> dict[str, Any]:
        """Return all results as comparable data."""
        return self.told() | {"response": self.response}

    def told(self) -> dict[str, Any]:
        """Return all results except the response."""
        error = None
        if self.error is not None:
            error = self.error.to_dict(include_raw=True) | {"str": str(self.error)}
        return {"events": self.events, "diagnostics": self.diagnostics, "error": error, "dialect": self.dialect}


def policy_of(options: dict[str, Any]) -> dict[str, Any]:
    """Convert options given as plain data, by a vector or a stream generator, to keyword arguments of StreamParser."""
    out = dict(options)
    if isinstance(out.get("policy"), dict):
        policy = dict(out["policy"])
        out["policy"] = config.Policy(policy.pop("base", "standard"), **policy)
    if isinstance(out.get("limits"), dict):
        out["limits"] = config.Limits(**out["limits"])
    if isinstance(out.get("known_call_ids"), list):
        out["known_call_ids"] = tuple(out["known_call_ids"])
    return out


def read(
    backend: str,
    pieces: Iterable[bytes | bytearray | memoryview],
    options: dict[str, Any] | None = None,
    *,
    broken: bool = False,
) -> Outcome:
    """Feed one stream to one parser and close the parser. `broken`: close it as if the transport had failed.

    Only StreamError is caught; any other exception is a bug and fails the test.
    """
    parser = make_parser(backend, **policy_of(options or {}))
    events: list[Any] = []
    batches: list[int] = []
    error: StreamError | None = None
    try:
        for piece in pieces:
            batch = parser.feed(piece)
            batches.append(len(batch))
            events += batch
        batch = parser.close(broken=True) if broken else parser.close()
        batches.append(len(batch))
        events += batch
    except StreamError as exc:
        error = exc.with_traceback(None)  # the frames of its traceback would keep the input alive
        events += exc.events
    return Outcome(events, error, list(parser.diagnostics), parser.dialect, batches, parser)


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def cut_at(data: bytes, *places: int) -> list[bytes]:
    return [data[a:b] for a, b in pairwise((0, *places, len(data)))]


def difference(left: dict[str, Any], right: dict[str, Any]) -> str | None:
    """Describe the first difference between two `facts()`; return None if they are equal."""
    for key, a in left.items():
        b = right[key]
        if a == b:
            continue
        if isinstance(a, list):
            return f"{key}: {_list_difference(a, b)}"
        if isinstance(a, dict) and isinstance(b, dict):
            return f"{key}: " + ", ".join(
                f"{k}: {a.get(k)!r} / {b.get(k)!r}" for k in a.keys() | b.keys() if a.get(k) != b.get(k)
            )
        return f"{key}: {a!r} / {b!r}"
    return None


def _list_difference(a: Sequence[Any], b: Sequence[Any]) -> str:
    for n, (x, y) in enumerate(zip(a, b, strict=False)):
        if x != y:
            return f"[{n}] {x!r} / {y!r}"
    longer, n = (a, len(b)) if len(a) > len(b) else (b, len(a))
    return f"[{n}] {'only left' if longer is a else 'only right'}: {longer[n]!r}"
