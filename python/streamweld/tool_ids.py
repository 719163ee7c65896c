"""Tool call ids that a target's API would reject in a history, written so that the source's id can be read from them.

Some gateways generate ids such as `functions.add:0`. A client of another API accepts such an id in a stream but cannot
send it in its next request: Anthropic allows only letters, digits, `_` and `-`. With `tool_ids="target"` a converter
writes `swid_functions_2eadd_3a0` instead: `swid_` and the old id, in which `_` is doubled and each byte of UTF-8 that
is not a letter, a digit or `-` is `_` and two hexadecimal digits. No state is needed to read the old id, so
`history.convert` and `requests.convert` restore it.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["PREFIX", "escaped", "source_tool_id"]

PREFIX: Final = "swid_"
_PLAIN: Final = re.compile(rb"[^A-Za-z0-9-]")
_ESCAPE: Final = re.compile(rb"_(_|[0-9a-f]{2})")


def escaped(call_id: str) -> str:
    """Return the id in a form that has only letters, digits, `_` and `-`."""
    return PREFIX + _PLAIN.sub(_escape, call_id.encode("utf-8", "surrogatepass")).decode()


def source_tool_id(call_id: str) -> str:
    """Return the source's id of a tool call that a converter renamed (`tool_ids="target"`); any other id unchanged.

    An id that was too long to be escaped cannot be read from its new id: `StreamConverter.tool_ids` has it.

    >>> source_tool_id("swid_functions_2eadd_3a0")
    'functions.add:0'
    >>> source_tool_id("call_1")
    'call_1'
    """
    if not call_id.startswith(PREFIX):
        return call_id
    try:
        found = _ESCAPE.sub(_unescape, call_id[len(PREFIX) :].encode()).decode()
    except UnicodeError:
        return call_id
    return found if escaped(found) == call_id else call_id


def _escape(found: re.Match[bytes]) -> bytes:
    byte = found.group()
    return b"__" if byte == b"_" else b"_%02x" % byte[0]


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found.group(1)
    return b"_" if code == b"_" else bytes([int(code, 16)])
