"""The configuration of a proxy (upstream, conversion, timeouts and limits), validated when it is created.

The rest of the proxy relies on valid values. This module does not do any I/O.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (JSON from callers, so the types of its members are checked at run time)

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast, get_args
from urllib.parse import SplitResult, urlsplit

from streamweld._messages import choice_message
from streamweld.errors import UsageError
from streamweld.history.profiles import resolve
from streamweld.integrations._defaults import LIMITS, MAX_STREAM_BYTES
from streamweld.integrations.proxy.hosts import is_host, origin_of
from streamweld.integrations.proxy.routes import dialect_of
from streamweld.options import Limits, to_config, with_text_calls

if TYPE_CHECKING:
    from streamweld.history import Profile
    from streamweld.options import Base, Policy, TextCalls

__all__ = ["PROXY_DIALECTS", "ProxyConfig", "ProxyDialect"]

ProxyDialect: TypeAlias = Literal["chat", "responses", "anthropic", "gemini"]
PROXY_DIALECTS: Final[tuple[str, ...]] = get_args(ProxyDialect)
"""The dialects whose requests can be converted."""

# For each dialect: the targets of `streamweld.requests` that use its endpoint.
_TARGETS: Final[dict[str, tuple[str, ...]]] = {"chat": ("openai-chat", "mistral")}

_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)
_MEBI: Final = 1_048_576


@dataclass(frozen=True)
class ProxyConfig:
    """The configuration of one proxy.

    Raises:
        UsageError: if the upstream is not a plain HTTP URL, or another option is invalid.
    """

    upstream: str
    """URL of the upstream: `https://gateway.example/v1`. All requests go there; no request can select another server.
    The client's path is appended. If the upstream's path ends with a version (`/v1`) and the client's begins with one,
    the upstream's version is used."""

    _: KW_ONLY

    to: ProxyDialect | None = None
    """Dialect of the upstream: `chat`, `responses`, `anthropic` or `gemini`. Requests in another of these dialects are
    converted, and so are their responses. None: nothing is converted.
    """

    policy: Base | Policy = "standard"
    """Which faults are repaired, and which end a stream with an error."""

    text_calls: TextCalls | None = None
    """What happens to tool calls that a model wrote into its text; None: as in `policy`. `promote`: a complete call of
    a tool that the request declares becomes a tool call. Read docs/guides/text-calls.md first, because such a call is
    untrusted.
    """

    text_call_families: tuple[str, ...] = ()
    """The notations to recognize, as in `Policy.text_call_families`. Empty: the notations of `policy`."""

    gateway: str | None = None
    """The upstream's gateway profile in `streamweld.history`. Requests, including those in the upstream's dialect, are
    converted to what this gateway accepts. None: converted requests follow the rules of the API in `to`, and requests
    in the upstream's dialect pass through unchanged."""

    max_body_bytes: int = 32 * _MEBI
    """Maximum size in bytes of a request body, and of a response that is not streamed."""

    max_stream_bytes: int = MAX_STREAM_BYTES
    """Maximum size in bytes of a response, after decompression."""

    connect_timeout: float = 10.0
    """Seconds to wait for a connection to the upstream."""

    idle_timeout: float = 300.0
    """Maximum time in seconds without any bytes from the upstream, including the wait for the head of its response. The
    total duration of a response is not limited."""

    event_timeout: float = 600.0
    """Maximum time in seconds between two events, even if other bytes, such as comments, arrive in between."""

    client_timeout: float = 60.0
    """Seconds a client may stall before it is dropped."""

    tracing: bool = False
    """True if a span is started for each request (OpenTelemetry, extra `otel`)."""

    token: str | None = field(default=None, repr=False)
    """Token that clients must send as their API key or in the header `x-streamweld-token`. The token is removed from
    requests to the upstream. None: no token is required, which is only safe on addresses that other machines cannot
    reach.
    """

    allow_hosts: tuple[str, ...] = ()
    """Host names by which requests may address the proxy, in addition to loopback names and the listening address. The
    check protects against DNS rebinding. `*.example.com` matches all names below `example.com`, `*` matches every name.
    """

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may use the proxy, such as `http://localhost:3000`, or `*`. Requests with any other
    `Origin` are refused; requests without one, which do not come from web pages, are not affected."""

    record: str | None = None
    """Folder for recordings. Each stream of the upstream is recorded there before it is repaired or converted, one file
    per stream, in the format that `streamweld.testing.recording` describes. Credentials are not recorded, but the
    model's text is."""

    def __post_init__(self) -> None:
        parts = _address(self.upstream)
        if parts is None:
            raise UsageError("upstream must be an http or https URL, such as https://gateway.example/v1")
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError("upstream must have no user, query or fragment: clients send their own credentials")
        if not self.upstream.isascii() or any(char <= " " for char in self.upstream):
            raise UsageError(
                "upstream must be plain ASCII: percent-encode the path, and write the host in its ASCII (IDNA) form"
            )
        if dialect_of(parts.path.rstrip("/")) is not None:
            raise UsageError(
                "upstream must be the base URL, such as https://gateway.example/v1: the proxy adds the path"
            )
        if self.to is not None and self.to not in PROXY_DIALECTS:
            raise UsageError(choice_message("to", self.to, PROXY_DIALECTS))
        if self.gateway is not None and self.to is None:
            raise UsageError("gateway requires a dialect: also set upstream-dialect (`to` of ProxyConfig)")
        if self.to is not None:
            self.profile(self.to)
        for name in ("connect_timeout", "idle_timeout", "event_timeout", "client_timeout"):
            self._positive(name)
        for name in ("max_body_bytes", "max_stream_bytes"):
            self._positive(name, whole=True)
        self._check_families()
        to_config(self.reading, self.limits, tools=())
        self._check_admission()

    def _positive(self, name: str, *, whole: bool = False) -> None:
        value: object = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < inf:
            raise UsageError(f"{name}={value!r}: it must be a {'whole ' if whole else ''}number above 0")

    def _check_families(self) -> None:
        families = cast("object", self.text_call_families)  # callers may pass a value of any type
        names = cast("tuple[object, ...]", families) if isinstance(families, tuple) else (None,)
        if not all(isinstance(name, str) for name in names):
            raise UsageError(f"text_call_families={families!r}: it must be a tuple of names, such as ('hermes', 'glm')")
        if names and self.reading.text_calls == "off":
            raise UsageError("text_call_families has no effect while text_calls is off: set it to report or promote")

    def _check_admission(self) -> None:
        if self.token is not None and _TOKEN.fullmatch(self.token) is None:
            raise UsageError("token must consist of printable ASCII characters without spaces")
        for name in ("allow_hosts", "allow_origins"):
            values: object = getattr(self, name)
            if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
                raise UsageError(f"{name}={values!r}: it must be a tuple of strings")
            if "*" in values and self.token is None:
                text = "`*` allows every web page to use the proxy, so a token is required (--token)"
                raise UsageError(f"{name}: {text}")
        for host in self.allow_hosts:
            if host != "*" and not is_host(host.removeprefix("*.")):
                raise UsageError(f"allow_hosts: {host!r} is not a host name or an IP address; give it without a port")
        for origin in self.allow_origins:
            if origin != "*" and origin_of(origin) is None:
                raise UsageError(f"allow_origins: {origin!r} is not an origin, such as https://app.example")

    def profile(self, to: ProxyDialect) -> Profile:
        """Return the profile whose constraints apply to requests for an upstream with the dialect `to`.

        Raises:
            UsageError: if there is no such gateway, or if it does not offer that dialect.
        """
        targets = _TARGETS.get(to, (to,))
        for target in targets[1:] if self.gateway is not None else ():
            with suppress(UsageError):
                return resolve(self.gateway, target)
        return resolve(self.gateway, targets[0])

    @cached_property
    def reading(self) -> Policy:
        """Return the policy for reading responses: `policy` with the settings for text calls applied."""
        return with_text_calls(self.policy, self.text_calls, self.text_call_families or None)

    @property
    def reads_on(self) -> bool:
        """Return True if the policy reports a truncated or unterminated stream in the response instead of raising."""
        policy = self.reading
        return policy.action("truncated") != "raise" or policy.missing_terminal == "assume"

    @property
    def limits(self) -> Limits:
        """Return the limits for one response."""
        return replace(LIMITS, max_stream_bytes=self.max_stream_bytes)


def _address(url: str) -> SplitResult | None:
    """Split an HTTP URL; return None if it is invalid, for example because a bracket around the host is unpaired."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None
