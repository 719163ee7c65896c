"""Generate HTML from text in streams. All text in a report is escaped in this module, exactly once."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from streamweld._show import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["cut", "inline", "page", "pre", "raw", "table"]

_PLACE: Final = re.compile(r"\{\{(\w+)\}\}")


def inline(text: object) -> str:
    """Escape text for one line; control characters become escapes."""
    return escape(printable(str(text)), quote=True)


def pre(text: str) -> str:
    """Escape text, keeping line endings; other control characters become escapes."""
    return "\n".join([inline(line) for line in text.split("\n")])


def raw(data: bytes) -> str:
    """Decode bytes as UTF-8; invalid bytes become U+FFFD."""
    return pre(data.decode("utf-8", "replace"))


def cut(text: str, limit: int) -> str:
    """Truncate text to `limit` characters, and append the number of omitted characters."""
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text) - limit:,} more characters)"


def table(columns: Sequence[str], rows: Iterable[str], *, numbers: Sequence[str] = ()) -> str:
    """Return a table with the given rows. The columns in `numbers` are right-aligned."""
    heads = "".join([f'<th scope="col"{_n(name in numbers)}>{inline(name)}</th>' for name in columns])
    return f'<div class="wide"><table><thead><tr>{heads}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'


def _n(is_number: bool) -> str:
    return ' class="n"' if is_number else ""


def page(title: str, subtitle: str, contents: str, body: str, footer: str) -> str:
    """Return the complete page.

    The content security policy allows only one style sheet, identified by its hash; scripts and requests are blocked.

    Args:
        title: text.
        subtitle: HTML, like all following arguments.
        contents: the navigation links.
        body: the sections.
        footer: the last line.
    """
    folder = files("streamweld.report")
    style = folder.joinpath("style.css").read_text("utf-8")
    digest = b64encode(sha256(style.encode()).digest()).decode()
    made = folder.joinpath("template.html").read_text("utf-8")
    values = {
        "style_hash": f"sha256-{digest}",
        "style": style,
        "title": inline(title),
        "subtitle": subtitle,
        "contents": contents,
        "footer": footer,
        "body": body,
    }
    return _PLACE.sub(lambda found: values[found[1]], made)
