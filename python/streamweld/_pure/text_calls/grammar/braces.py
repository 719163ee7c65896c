"""Parses the shape `braces`: `call:name{key:value,...}`. Strings are enclosed in quoting tokens; other values are JSON
scalars, `{}` and `[]`.

Keys of a family in `_spec/text_calls.json`: `prefix` is the literal before the name, `quote` is the token around
strings, and `close` is the literal that ends the block. `typed` is `schema` if the tool's schema determines the type of
a quoted value; otherwise, the value is a string.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, Literal

from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import Argument, WrittenCall
from streamweld._pure.text_calls.grammar.xml import add

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["parse"]

_DEPTH: Final = 64
_SCALAR: Final = re.compile(r"true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    quote = data["quote"]
    if data.get("prefix"):
        yield from cursor.expect(data["prefix"])
    kind: Literal["raw", "string"] = "raw" if data.get("typed") == "schema" else "string"
    name = yield from cursor.name()
    yield from cursor.expect("{")
    found: dict[str, Argument] = {}
    while not (yield from _ends(cursor, "}", first=not found)):
        key = yield from _key(cursor, quote)
        yield from cursor.skip_space()
        if (yield from cursor.take(quote)):
            add(found, Argument(key, (yield from cursor.until(quote)), kind))
        else:
            add(found, Argument(key, (yield from _value(cursor, quote, 0)), "json"))
    if data.get("close"):
        yield from cursor.expect(data["close"])
    return [WrittenCall(name, list(found.values()))]


def _ends(cursor: Cursor, closer: str, *, first: bool) -> Steps[bool]:
    """Check whether the list ends here. If it does not, read the comma before the next element."""
    yield from cursor.skip_space()
    if (yield from cursor.take(closer)):
        return True
    if not first:
        yield from cursor.expect(",")
        yield from cursor.skip_space()
    return False


def _key(cursor: Cursor, quote: str) -> Steps[str]:
    yield from cursor.skip_space()
    if (yield from cursor.take(quote)):
        key = yield from cursor.until(quote)
    else:
        key = yield from cursor.word()
    yield from cursor.expect(":")
    return key


def _value(cursor: Cursor, quote: str, depth: int) -> Steps[str]:
    """Read a value and return it as JSON text."""
    if depth > _DEPTH:
        raise Malformed
    mark = yield from cursor.skip_space()
    if (yield from cursor.take(quote)):
        return json.dumps((yield from cursor.until(quote)), ensure_ascii=False)
    if mark == "[":
        yield from cursor.take("[")
        items: list[str] = []
        while not (yield from _ends(cursor, "]", first=not items)):
            items.append((yield from _value(cursor, quote, depth + 1)))
        return f"[{','.join(items)}]"
    if mark == "{":
        yield from cursor.take("{")
        members: dict[str, str] = {}
        while not (yield from _ends(cursor, "}", first=not members)):
            key = yield from _key(cursor, quote)
            if key in members:
                raise Malformed
            members[key] = yield from _value(cursor, quote, depth + 1)
        written = [f"{json.dumps(key, ensure_ascii=False)}:{value}" for key, value in members.items()]
        return "{" + ",".join(written) + "}"
    word = yield from cursor.word()
    if _SCALAR.fullmatch(word) is None:
        raise Malformed
    return word
