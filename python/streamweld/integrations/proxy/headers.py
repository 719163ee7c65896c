"""Which headers pass, each way: by name, from a list; what is about the connection or the body is made anew.

A header that no list has does not pass, so neither does `host`, `forwarded`, a cookie, or what a client says of lengths
and encodings. It knows no path and no body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import load_proxy
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["STREAM", "answered", "asked", "asked_in", "of_stream", "plain", "received", "via"]

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
        return self.word(name) is not None

    def word(self, name: str) -> str | None:
        """What the list has for that name; it is ours, where the name itself is a client's."""
        return name if name in self._names else next((f"{at}*" for at in self._starts if name.startswith(at)), None)


_ASKED: Final = _Allowed(_LISTS["request"])
_ASKED_IN: Final = _Allowed(_LISTS["request_converted"])
_ANSWERED: Final = _Allowed(_LISTS["response"])
_JOINED: Final = _Allowed(_LISTS["lists"])
_TELLING: Final = _Allowed(_LISTS["telling"])


def _passing(headers: Iterable[tuple[str, str]], allowed: _Allowed) -> list[tuple[str, str]]:
    given = [(name.lower(), value) for name, value in headers]
    # RFC 9110 7.6.1: what `connection` names is for the next hop alone.
    hop = {word.strip().lower() for name, value in given if name == "connection" for word in value.split(",")}
    return [(name, value) for name, value in given if name in allowed and name not in hop]


def received(headers: Iterable[tuple[str, str]]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Those of a request that may go on, each once, and the words for those that could not and were left out.

    Raises:
        Refusal: 400 for two of which one may stand, and for one that servers do not read alike: which of two keys is
            meant, and whether without one the upstream does what was asked, is not the proxy's to guess. Where no
            answer depends on them they are left out; of two `traceparent` neither holds (W3C Trace Context).
    """
    lines: dict[str, list[str]] = {}
    for name, value in _passing(headers, _ASKED):
        lines.setdefault(name, []).append(value)
    made: dict[str, str] = {}
    left: list[str] = []
    for name, values in lines.items():
        value = ", ".join([value for value in values if value])  # RFC 9110 5.3
        twice = len(values) > 1 and name not in _JOINED
        if not twice and value == plain(value):
            made |= {name: value} if value else {}
        elif (word := _TELLING.word(name)) is not None:
            left.append(word)
        elif twice:
            raise Refusal(400, "repeated_header", f"{name} must not be given twice")
        else:
            raise Refusal(400, "invalid_header", f"{name} must be of printable ASCII characters")
    return made, tuple(dict.fromkeys(left))


def via(given: Iterable[str], pseudonym: str) -> str:
    """The `Via` of the request to the upstream: the one that was received, and this proxy (RFC 9110 7.6.3).

    Args:
        given: the values of `Via` in the request; those that are not printable ASCII are left out.
        pseudonym: this proxy's own, which no other one has.

    Raises:
        Refusal: 508 if the request has passed this proxy before: the upstream leads back to it.
    """
    passed = [value for value in given if plain(value)]
    if any(pseudonym in value for value in passed):
        raise Refusal(508, "loop_detected", "the request has passed this proxy before: its upstream leads back to it")
    return ", ".join([*passed, f"1.1 {pseudonym}"])


def asked(given: Mapping[str, str]) -> dict[str, str]:
    """Those of a request that goes on as it came, of what was `received`."""
    return {**given, "accept-encoding": "identity"}


def asked_in(given: Mapping[str, str], dialect: str, slot: Sequence[str] | None = None) -> dict[str, str]:
    """Those of a converted request: the key stands where the other API, or with `slot` the gateway, looks for it."""
    made = {name: value for name, value in given.items() if name in _ASKED_IN}
    for name, before in _CREDENTIALS["read"]:
        value = given.get(name, "")
        if value[: len(before)].lower() == before.lower() and value[len(before) :]:
            to, start = slot or _CREDENTIALS["write"][dialect]
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
    """Those of an answer; its length and encoding are not among them. One that was given twice is both of its values,
    as a client would have read it without the proxy (RFC 9110 5.3)."""
    made: dict[str, str] = {}
    for name, value in _passing(headers, _ANSWERED):
        if plain(value):
            made[name] = f"{made[name]}, {value}" if name in made else value
    return made


def of_stream(headers: Mapping[str, str]) -> dict[str, str]:
    """Those of a stream, from those that `answered` let pass."""
    return {**headers, **STREAM}
