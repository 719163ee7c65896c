"""Integers with more digits than `int()` accepts (4,300): a call is promoted with the digits that the model wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.backends import BACKENDS, make_parser
from tests.support.load.linear import assert_linear_work
from tests.text_calls.support import policy_of, read, stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld.response import Response

BOTH = pytest.mark.parametrize("reader", BACKENDS)
TOOLS = {
    "types": {"type": "object", "properties": {"i": {"type": "integer"}, "n": {"type": "number"}, "o": {}}},
    "texts": {"type": "object", "properties": {"i": {"type": "string"}}},
}
DIGITS = "9" * 5000
FORMS = {
    "llama3_bare": ('{"name": "types", "parameters": {"i": %s}}', '{"i": %s}'),
    "llama3_bare, negative": ('{"name": "types", "parameters": {"i": -%s}}', '{"i": -%s}'),
    "llama3_bare, number": ('{"name": "types", "parameters": {"n": %s}}', '{"n": %s}'),
    "llama3_bare, in an object": ('{"name": "types", "parameters": {"o": {"a": [1, %s]}}}', '{"o": {"a": [1, %s]}}'),
    "xlam": ('[{"name": "types", "arguments": {"i": %s}}]', '{"i": %s}'),
    "functionary32": (">>>types\n{" + '"i": %s}', '{"i": %s}'),
    "pythonic_bare": ("[types(i=%s)]", '{"i":%s}'),
    "hermes": ('<tool_call>{"name": "types", "arguments": {"i": %s}}</tool_call>', '{"i": %s}'),
    "lfm2": ("<|tool_call_start|>[types(i=%s)]<|tool_call_end|>", '{"i":%s}'),
    "qwen3_coder": (
        "<tool_call><function=types><parameter=n>%s</parameter></function></tool_call>",
        '{"n":%s}',
    ),
}
REFUSED = {
    "llama3_bare, a string": ('{"name": "texts", "parameters": {"i": %s}}', "llama3_bare 0-5040 bad_arguments"),
    "llama3_bare, unknown": ('{"name": "types", "parameters": {"u": %s}}', "llama3_bare 0-5040 bad_arguments"),
    "pythonic_bare, a string": ("[texts(i=%s)]", "pythonic_bare 0-5011 bad_arguments"),
}


def answer(reader: str, text: str) -> tuple[Response, list[str]]:
    parser = read(reader, [text], tools=TOOLS, text_call_markerless=True)
    return parser.response, [shown.detail for shown in parser.diagnostics if shown.code == "text_call_refused"]


@BOTH
@pytest.mark.parametrize("form", FORMS)
def test_the_digits_are_kept(reader: str, form: str) -> None:
    text, arguments = FORMS[form]
    response, refused = answer(reader, text % DIGITS)
    assert [call.arguments for call in response.tool_calls] == [arguments % DIGITS]
    assert (response.text, refused) == ("", [])


@BOTH
@pytest.mark.parametrize("form", REFUSED)
def test_an_integer_that_does_not_fit_is_refused(reader: str, form: str) -> None:
    text, detail = REFUSED[form]
    response, refused = answer(reader, text % DIGITS)
    assert response.tool_calls == ()
    assert (response.text, refused) == (text % DIGITS, [detail])


@BOTH
@pytest.mark.parametrize("form", ["llama3_bare", "pythonic_bare", "qwen3_coder"])
def test_the_work_is_linear_in_the_digits(reader: str, form: str) -> None:
    text = FORMS[form][0]
    policy = policy_of('{"text_call_markerless": true}')

    def prepare(count: int) -> Callable[[], object]:
        body = stream([text % ("9" * count)])

        def work() -> None:
            parser = make_parser(reader, policy=policy, tools=TOOLS)
            parser.feed(body)
            parser.close()

        return work

    assert_linear_work(prepare, 20_000 if reader == "pure" else 200_000)
