"""Remove `event:` names that the client's API does not define.

An upstream could otherwise trigger arbitrary event handlers in the client. If the name of an event is removed, its data
is still passed on. This module examines the lines of the stream, but does not parse payloads.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from streamweld._spec import DIALECTS, load_proxy

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["unnamed"]

_OWN: Final = load_proxy()["events"]
_LISTS: Final = ("events", "keepalive_events", "error_events")


def _foreign(dialect: str) -> re.Pattern[bytes]:
    facts = DIALECTS[dialect]
    known = [name for location in _LISTS for name in facts.get(location, ())] + list(_OWN[dialect])
    words = "|".join([re.escape(name).replace(r"\*", r"[\w.]*") for name in known])
    # In event streams, lines end with LF, CR or CRLF, and a BOM may precede the first line. The pattern starts with a
    # literal, which `re` finds quickly. The lookbehinds are checked only where the literal occurs.
    start = r"event:(?:(?<=[\r\n]event:)|(?<=\Aevent:)|(?<=\A\xef\xbb\xbfevent:))"
    line = rf"{start}[ ]?+(?!(?:{words})[\r\n])[^\r\n]*(?:\r\n|\r|\n)"
    return re.compile(line.encode("latin-1"), re.ASCII)


_FOREIGN: Final = {dialect: _foreign(dialect) for dialect in _OWN}


def unnamed(dialect: str) -> Callable[[bytes], bytes]:
    """Return a function that removes unknown event names from whole blocks of a stream in that dialect.

    >>> unnamed("anthropic")(b"event: ping\\ndata: {}\\n\\nevent: execute\\ndata: {}\\n\\n")
    b'event: ping\\ndata: {}\\n\\ndata: {}\\n\\n'
    """
    pattern = _FOREIGN[dialect]

    def take(blocks: bytes) -> bytes:
        return pattern.sub(b"", blocks) if b"event:" in blocks else blocks

    return take
