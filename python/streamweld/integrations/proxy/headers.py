"""Which headers pass, each way: by name, from a list; what is about the connection or the body is made anew.

A header that no list has does not pass, so neither does `host`, `forwarded`, a cookie, or what a client says of lengths
and encodings (R:G1, R:G3). It knows no path and no body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import load_proxy

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["STREAM", "answered", "asked", "asked_in", "of_stream", "plain"]

_SPEC: Final = load_proxy()
_LISTS: Final = _SPEC["headers"]
_CREDENTIALS: Final = _SPEC["credentials"]

STREAM: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
"""What stands over every stream: nobody on the way may hold it, or pack it."""


def plain(value: str | None) -> str:
    """The value of a header, where it is of the characters that all servers and clients read alike; else nothing."""
    return value if value is not None and value.isascii() and value.isprintable() else ""


class _Allowed:
    """A list of names, some of them beginnings."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name for name in names if not name.endswith("*"))
        self._starts = tuple(name[:-1] for name in names if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return name in self._names or name.startswith(self._starts)


_ASKED: Final = _Allowed(_LISTS["request"])
_ASKED_IN: Final = _Allowed(_LISTS["request_converted"])
_ANSWERED: Final = _Allowed(_LISTS["response"])


def _passing(headers: Iterable[tuple[str, str]], allowed: _Allowed) -> dict[str, str]:
    given = [(name.lower(), value) for name, value in headers]
    # RFC 9110 7.6.1: what `connection` names is for the next hop alone.
    hop = {word.strip().lower() for name, value in given if name == "connection" for word in value.split(",")}
    return {name: value for name, value in given if name in allowed and name not in hop and plain(value)}


def asked(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those of a request that goes on as it came."""
    return _passing(headers, _ASKED) | {"accept-encoding": "identity"}


def asked_in(headers: Iterable[tuple[str, str]], dialect: str) -> dict[str, str]:
    """Those of a converted request: the key stands where the other API looks for it."""
    given = {name.lower(): value for name, value in headers}
    made = _passing(given.items(), _ASKED_IN)
    for name, before in _CREDENTIALS["read"]:
        value = plain(given.get(name))
        if value[: len(before)].lower() == before.lower() and value[len(before) :]:
            to, start = _CREDENTIALS["write"][dialect]
            made[to] = start + value[len(before) :]
            break
    return {
        **made,
        **_CREDENTIALS["beside"].get(dialect, {}),
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
    }


def answered(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those of an answer; its length and encoding are not among them."""
    return _passing(headers, _ANSWERED)


def of_stream(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of a stream, from those that `answered` let pass."""
    return {**headers, **STREAM}
