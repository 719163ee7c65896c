"""What a proxy is told once, where it is started: the one upstream, and how much of anything it takes.

It checks what it is told, so that nothing behind it has to. It opens no connection.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (JSON as callers give it: what is in a container is known only once it is looked at)

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args
from urllib.parse import SplitResult, urlsplit

from streamweld.errors import UsageError
from streamweld.history.profiles import resolve
from streamweld.integrations._answers import LIMITS, MAX_STREAM_BYTES
from streamweld.integrations.proxy.hosts import is_host, origin_of
from streamweld.options import Limits, to_config, with_text_calls

if TYPE_CHECKING:
    from streamweld.history import Profile
    from streamweld.options import Base, Policy, TextCalls

__all__ = ["SPEAKS", "ProxyConfig", "Speaks"]

Speaks: TypeAlias = Literal["chat", "responses", "anthropic", "gemini"]
SPEAKS: Final[tuple[str, ...]] = get_args(Speaks)
"""The dialects whose requests can be converted."""

# The targets of `streamweld.requests` that are reached at the endpoint of a dialect.
_TARGETS: Final[dict[str, tuple[str, ...]]] = {"chat": ("openai-chat", "mistral")}

_TOKEN: Final = re.compile(r"[!-~]+", re.ASCII)
_MEBI: Final = 1_048_576


@dataclass(frozen=True)
class ProxyConfig:
    """The configuration of one proxy.

    Raises:
        UsageError: for an upstream that is no plain HTTP address, and for an option that cannot be.
    """

    upstream: str
    """Where requests go, and the only place: `https://gateway.example/v1`. No request can name another. A client's path
    is appended; where both the upstream's path ends and the client's begins with a version (`/v1`), the upstream's
    holds."""

    _: KW_ONLY

    to: Speaks | None = None
    """What the upstream speaks: `chat`, `responses`, `anthropic` or `gemini`. Requests in another of these are
    converted, and so are their answers. None: nothing is converted."""

    policy: Base | Policy = "standard"
    """What is repaired, and what ends a stream with an error."""

    text_calls: TextCalls = "off"
    """What becomes of tool calls that a model wrote into its text. `promote`: a whole call of a tool that the request
    declares becomes a tool call. Read docs/guides/text-calls.md first: such a call is untrusted."""

    gateway: str | None = None
    """The gateway that the upstream is: a profile of `streamweld.history`. Requests, also those that are in its dialect
    already, are converted to what it accepts. None: converted requests follow the rules of `to`'s own API, and requests
    in its dialect pass through unchanged."""

    max_body_bytes: int = 32 * _MEBI
    """Bytes of a request, and of an answer that has to be read whole."""

    max_stream_bytes: int = MAX_STREAM_BYTES
    """Bytes of an answer, decoded."""

    connect_timeout: float = 10.0
    """Seconds for a connection to the upstream."""

    idle_timeout: float = 300.0
    """Seconds in which an upstream that is silent is waited for; also for the head of its answer. There is no limit to
    the whole."""

    event_timeout: float = 600.0
    """Seconds in which no event came, whatever else did: comments, or a byte now and then."""

    client_timeout: float = 60.0
    """Seconds in which a client takes nothing of what there is for it."""

    tracing: bool = False
    """Whether a span is opened for each request (OpenTelemetry, extra `otel`)."""

    token: str | None = field(default=None, repr=False)
    """The token that clients have to send, as their API key or in the header `x-streamweld-token`; it is removed from
    what goes to the upstream. None: clients need none, which is for addresses that other machines cannot reach."""

    allow_hosts: tuple[str, ...] = ()
    """Host names that requests may use for the proxy, beside loopback names and the address it listens on; against DNS
    rebinding. `*.example.com` stands for all names below `example.com`, `*` for every name."""

    allow_origins: tuple[str, ...] = ()
    """Origins of web pages that may use the proxy, such as `http://localhost:3000`, or `*`. Requests with another
    `Origin` are refused; those without one, which do not come from web pages, are not affected."""

    record: str | None = None
    """A folder. Each stream of the upstream is recorded there before it is repaired or converted, one file a stream, in
    the format that `streamweld.testing.recording` describes. No credentials are recorded; the text of the model is."""

    def __post_init__(self) -> None:
        parts = _address(self.upstream)
        if parts is None:
            raise UsageError("upstream must be an http or https URL, such as https://gateway.example/v1")
        if parts.username is not None or parts.query or parts.fragment:
            raise UsageError("upstream must have no user, query or fragment: clients bring their own credentials")
        if not self.upstream.isascii() or any(char <= " " for char in self.upstream):
            raise UsageError("upstream must be plain ASCII: escape the path, and write the host as DNS has it")
        if self.to is not None and self.to not in SPEAKS:
            raise UsageError(f"to={self.to!r}: it must be one of {', '.join(SPEAKS)}")
        if self.gateway is not None and self.to is None:
            raise UsageError("gateway needs its dialect: set upstream-dialect as well (`to` of ProxyConfig)")
        if self.to is not None:
            self.profile(self.to)
        for name in ("connect_timeout", "idle_timeout", "event_timeout", "client_timeout"):
            self._positive(name)
        for name in ("max_body_bytes", "max_stream_bytes"):
            self._positive(name, whole=True)
        to_config(self.reading, self.limits, tools=())
        self._check_admission()

    def _positive(self, name: str, *, whole: bool = False) -> None:
        value: object = getattr(self, name)
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float) or not 0 < value < inf:
            raise UsageError(f"{name}={value!r}: it must be a {'whole ' if whole else ''}number above 0")

    def _check_admission(self) -> None:
        if self.token is not None and _TOKEN.fullmatch(self.token) is None:
            raise UsageError("token must consist of printable ASCII characters without spaces")
        for name in ("allow_hosts", "allow_origins"):
            values: object = getattr(self, name)
            if not isinstance(values, tuple) or not all(isinstance(value, str) for value in values):
                raise UsageError(f"{name}={values!r}: it must be a tuple of strings")
            if "*" in values and self.token is None:
                raise UsageError(f"{name}: `*` lets every web page use the proxy; it needs a token")
        for host in self.allow_hosts:
            if host != "*" and not is_host(host.removeprefix("*.")):
                raise UsageError(f"allow_hosts: {host!r} is not a host name or an IP address; give it without a port")
        for origin in self.allow_origins:
            if origin != "*" and origin_of(origin) is None:
                raise UsageError(f"allow_origins: {origin!r} is not an origin, such as https://app.example")

    def profile(self, to: Speaks) -> Profile:
        """Whose constraints a request for an upstream that speaks `to` has to follow.

        Raises:
            UsageError: if there is no such gateway, or it does not speak that dialect.
        """
        targets = _TARGETS.get(to, (to,))
        for target in targets[1:] if self.gateway is not None else ():
            with suppress(UsageError):
                return resolve(self.gateway, target)
        return resolve(self.gateway, targets[0])

    @cached_property
    def reading(self) -> Policy:
        """`policy` with what becomes of text-form tool calls: how an answer is read."""
        return with_text_calls(self.policy, self.text_calls)

    @property
    def reads_on(self) -> bool:
        """Whether the policy records a stream that is cut, or lacks its end, and raises nothing."""
        policy = self.reading
        return policy.action("truncated") != "raise" or policy.missing_terminal == "assume"

    @property
    def limits(self) -> Limits:
        """Those of one answer."""
        return replace(LIMITS, max_stream_bytes=self.max_stream_bytes)


def _address(url: str) -> SplitResult | None:
    """The parts of an HTTP URL; None for what is none, such as half a pair of brackets around a host."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:
        return None
