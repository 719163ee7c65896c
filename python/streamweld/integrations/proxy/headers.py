"""Header allow-lists for requests and responses. The proxy generates its own headers for the connection and the body.

Headers that are not listed are dropped, including `host`, `forwarded`, cookies, and the client's headers for the length
and encoding of the body.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._spec import load_proxy
from streamweld.integrations.proxy.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["STREAM", "answered", "converted_headers", "forwarded_headers", "of_stream", "plain", "received", "via"]

_SPEC: Final = load_proxy()
_LISTS: Final = _SPEC["headers"]
_CREDENTIALS: Final = _SPEC["credentials"]

STREAM: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
}
"""Headers of every stream: they prevent intermediaries from buffering or compressing it."""


def plain(value: str | None) -> str:
    """Return a header value if it is printable ASCII, which all servers and clients interpret alike; otherwise `""`."""
    return value if value is not None and value.isascii() and value.isprintable() else ""


class _Allowed:
    """A list of header names and prefixes of header names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._names = frozenset(name for name in names if not name.endswith("*"))
        self._starts = tuple(name[:-1] for name in names if name.endswith("*"))

    def __contains__(self, name: str) -> bool:
        return self.word(name) is not None

    def word(self, name: str) -> str | None:
        """Return the listed name or prefix that matches a name.

        The entry of the list is safe to log, unlike the name that the client sent.
        """
        return name if name in self._names else next((f"{at}*" for at in self._starts if name.startswith(at)), None)


_REQUEST: Final = _Allowed(_LISTS["request"])
_CONVERTED_REQUEST: Final = _Allowed(_LISTS["request_converted"])
_RESPONSE: Final = _Allowed(_LISTS["response"])
_JOINED: Final = _Allowed(_LISTS["lists"])
_INFORMATIONAL: Final = _Allowed(_LISTS["informational"])


def _passing(headers: Iterable[tuple[str, str]], allowed: _Allowed) -> list[tuple[str, str]]:
    given = [(name.lower(), value) for name, value in headers]
    # RFC 9110, section 7.6.1: headers listed in `connection` are meant only for the next hop.
    hop = {word.strip().lower() for name, value in given if name == "connection" for word in value.split(",")}
    return [(name, value) for name, value in given if name in allowed and name not in hop]


def received(headers: Iterable[tuple[str, str]]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the headers that may be forwarded from a request, each once, and the names of dropped headers.

    Only invalid or repeated informational headers (the list `informational`) are reported as dropped, by their name in
    that list. Headers that are not in the allow-list are dropped without a report.

    Raises:
        Refusal: 400 if a single-value header is repeated, or if servers may interpret its value differently. For
            example, the proxy cannot choose between two API keys. Informational headers are dropped instead of refused;
            if there are two `traceparent` headers, both are dropped (W3C Trace Context).
    """
    lines: dict[str, list[str]] = {}
    for name, value in _passing(headers, _REQUEST):
        lines.setdefault(name, []).append(value)
    made: dict[str, str] = {}
    left: list[str] = []
    for name, values in lines.items():
        value = ", ".join([value for value in values if value])  # RFC 9110 5.3
        twice = len(values) > 1 and name not in _JOINED
        if not twice and value == plain(value):
            made |= {name: value} if value else {}
        elif (word := _INFORMATIONAL.word(name)) is not None:
            left.append(word)
        elif twice:
            raise Refusal(400, "repeated_header", f"{name} must not be sent twice")
        else:
            raise Refusal(400, "invalid_header", f"{name} must contain only printable ASCII characters")
    return made, tuple(dict.fromkeys(left))


def via(given: Iterable[str], pseudonym: str) -> str:
    """Return the value of `Via` for the request to the upstream: the received value, with this proxy added (RFC 9110,
    section 7.6.3).

    Args:
        given: the values of `Via` in the request; those that are not printable ASCII are omitted.
        pseudonym: the unique name of this proxy.

    Raises:
        Refusal: 508 if the request has already passed through this proxy, which means that the upstream forwards to it.
    """
    lines = tuple(given)
    # Values with characters outside printable ASCII are searched too, because a relay may have added such characters.
    # The search ignores case, because a relay may treat the pseudonym as a host name (RFC 9110, section 7.6.3).
    if any(pseudonym in value.lower() for value in lines):
        text = "the request already passed through this proxy: the proxy's upstream forwards to the proxy"
        raise Refusal(508, "loop_detected", text)
    passed = [value for value in lines if plain(value)]
    return ", ".join([*passed, f"1.1 {pseudonym}"])


def forwarded_headers(given: Mapping[str, str]) -> dict[str, str]:
    """Select the headers for a request that is forwarded without conversion.

    `headers`: the headers that `received` returned.
    """
    return {**given, "accept-encoding": "identity"}


def converted_headers(given: Mapping[str, str], dialect: str, slot: Sequence[str] | None = None) -> dict[str, str]:
    """Select the headers for a converted request.

    The API key is moved to the header that the target API or the gateway (`slot`) uses.
    """
    made = {name: value for name, value in given.items() if name in _CONVERTED_REQUEST}
    for name, before in _CREDENTIALS["read"]:
        value = given.get(name, "")
        if value[: len(before)].lower() == before.lower() and value[len(before) :]:
            to, start = slot or _CREDENTIALS["write"][dialect]
            made[to] = start + value[len(before) :]
            break
    return {
        **made,
        **_CREDENTIALS["extra_headers"].get(dialect, {}),
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "accept-encoding": "identity",
    }


def answered(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the response headers that may be forwarded.

    Headers for the length and encoding of the body are omitted. Repeated headers are joined. Without the proxy, a
    client would combine repeated headers in the same way (RFC 9110, section 5.3).
    """
    made: dict[str, str] = {}
    for name, value in _passing(headers, _RESPONSE):
        if plain(value):
            made[name] = f"{made[name]}, {value}" if name in made else value
    return made


def of_stream(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers for a stream. `headers`: the headers that `answered` returned."""
    return {**headers, **STREAM}
