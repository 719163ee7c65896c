"""Parses the shape `harmony`: a message of gpt-oss to `functions.<name>`. Other recipients are built-in tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld._pure.text_calls.cursor import Malformed
from streamweld._pure.text_calls.grammar.call import WrittenCall
from streamweld._pure.text_calls.grammar.named_json import read_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamweld._pure.text_calls.cursor import Cursor, Steps

__all__ = ["parse"]

_PREFIX: Final = "functions."


def parse(cursor: Cursor, data: Mapping[str, Any]) -> Steps[list[WrittenCall]]:
    del data
    if not (yield from cursor.take(_PREFIX)):
        raise Malformed
    name = yield from cursor.name()
    yield from cursor.skip_space()
    if (yield from cursor.take("<|channel|>")):
        yield from cursor.expect("commentary")
        yield from cursor.skip_space()
    if (yield from cursor.take("<|constrain|>")):
        yield from cursor.expect("json")
    elif not (yield from cursor.take("json")):
        yield from cursor.take("code")  # the model also writes the content type as plain text
    yield from cursor.expect("<|message|>")
    return [WrittenCall(name, (yield from read_object(cursor)))]
