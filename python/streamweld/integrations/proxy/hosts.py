"""Parse, normalize and classify host names, addresses and origins. No other module resolves names.

`ProxyConfig` uses these functions to validate its options, `admission` to compare the hosts and origins of requests,
and `serve` to determine whether an address is reachable from other machines or is the proxy's own.
"""

from __future__ import annotations

import re
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urlsplit

__all__ = ["canonical", "host_of", "is_host", "is_local", "is_loopback", "origin_of", "resolved"]

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_LOCALHOST: Final = "localhost"
_NAME: Final = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_.])?"
_HOST: Final = re.compile(rf"(?:\[([0-9A-Fa-f:.]+)\]|({_NAME}))(?::[0-9]*)?", re.ASCII)


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(host)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


def canonical(host: str) -> str:
    """Normalize a host name or IP address for comparison.

    >>> canonical("Example.COM."), canonical("0:0:0:0:0:0:0:1"), canonical("::ffff:127.0.0.1")
    ('example.com', '::1', '127.0.0.1')
    """
    address = _address(host)
    return host.lower().removesuffix(".") if address is None else str(address)


def host_of(header: str) -> str | None:
    """Return the normalized host from a `Host` header, without the port, or None if the header is malformed.

    >>> host_of("LOCALHOST:8787"), host_of("[::1]:8787"), host_of("a@b"), host_of("")
    ('localhost', '::1', None, None)
    """
    found = _HOST.fullmatch(header)
    if found is None:
        return None
    if found[1] is not None and _address(found[1]) is None:
        return None
    return canonical(found[1] or found[2])


def is_host(text: str) -> bool:
    """Return True if `text` is a host name or an IP address, without a port and without brackets.

    >>> [is_host(text) for text in ("llm.example", "::1", "llm.example:80", "http://llm.example", "")]
    [True, True, False, False, False]
    """
    return _address(text) is not None or (":" not in text and host_of(text) is not None)


def origin_of(text: str) -> str | None:
    """Normalize a web origin to the form that browsers send, or return None if `text` is not an origin.

    >>> origin_of("HTTPS://App.example:443"), origin_of("http://localhost:3000/"), origin_of("null")
    ('https://app.example', 'http://localhost:3000', 'null')
    >>> origin_of("app.example"), origin_of("https://app.example/path")
    (None, None)
    """
    if text == "null":  # browsers send this origin for pages that have none, such as local files
        return text
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    rest = parts.path.removesuffix("/") or parts.query or parts.fragment or parts.username or parts.password
    if not (text.isascii() and text.isprintable() and parts.scheme and parts.hostname) or rest or " " in text:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, _DEFAULT_PORTS.get(parts.scheme)) else "")


def is_loopback(host: str) -> bool:
    """Return True only if a normalized host always refers to this machine: `localhost`, or a loopback address.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.2", "::1", "localhost.example", "0.0.0.0")]
    [True, True, True, False, False]
    """
    address = _address(host)
    return host == _LOCALHOST if address is None else address.is_loopback


def resolved(host: str) -> frozenset[str]:
    """Resolve a host to its normalized addresses. An IP address resolves to itself.

    Raises:
        OSError: if the name cannot be resolved.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:  # not a valid DNS name
        raise OSError(str(error)) from None
    return frozenset(canonical(str(location[4][0])) for location in found)


def is_local(address: str) -> bool:
    """Return True if an address belongs to this machine, which means that a socket can be bound to it.

    The unspecified address counts as an address of this machine.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
