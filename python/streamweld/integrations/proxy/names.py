"""Which `event:` names reach a client: those that its API has. An upstream's own names drive nobody.

A foreign name is taken off, and its data passes without one, as data. It reads lines, and nothing of what they hold.
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
    known = [name for place in _LISTS for name in facts.get(place, ())] + list(_OWN[dialect])
    words = "|".join([re.escape(name).replace(r"\*", r"[\w.]*") for name in known])
    # Lines end as event streams have it: LF, CR, or both. A BOM may stand before the first. The literal comes first, so
    # that `re` searches for it: what stands before it is looked at only where it is found.
    start = r"event:(?:(?<=[\r\n]event:)|(?<=\Aevent:)|(?<=\A\xef\xbb\xbfevent:))"
    line = rf"{start}[ ]?+(?!(?:{words})[\r\n])[^\r\n]*(?:\r\n|\r|\n)"
    return re.compile(line.encode("latin-1"), re.ASCII)


_FOREIGN: Final = {dialect: _foreign(dialect) for dialect in _OWN}


def unnamed(dialect: str) -> Callable[[bytes], bytes]:
    """What takes the foreign names out of whole blocks of a stream of that dialect.

    >>> unnamed("anthropic")(b"event: ping\\ndata: {}\\n\\nevent: execute\\ndata: {}\\n\\n")
    b'event: ping\\ndata: {}\\n\\ndata: {}\\n\\n'
    """
    pattern = _FOREIGN[dialect]

    def take(blocks: bytes) -> bytes:
        return pattern.sub(b"", blocks) if b"event:" in blocks else blocks

    return take
