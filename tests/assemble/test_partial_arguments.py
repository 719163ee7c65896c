"""The arguments of a call while they arrive: each view is a part of the final value, regardless of how the text is
chunked.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import streamweld as sw
from hypothesis import given, settings
from hypothesis import strategies as st
from streamweld import events as ev
from streamweld._json import JsonFault, loads_arguments, loads_partial, partial_object
from streamweld._pure.json.scanner import replace_lone_surrogates
from streamweld.partial import ArgumentsChange, PartialArguments

from tests.conftest import FULL
from tests.support.backends import make_parser, using
from tests.support.harness import policy_of
from tests.support.json_texts import replaced, texts, values
from tests.support.load.linear import assert_linear_work
from tests.support.vector_files import chunks_of, is_broken, label, load

if TYPE_CHECKING:
    from collections.abc import Callable

objects = st.dictionaries(st.text(max_size=4), values, max_size=5)
CALLS = [
    vector for layer in ("chat", "responses", "anthropic", "gemini", "ai-sdk-ui", "auto") for vector in load(layer)
]


def is_part(part: Any, whole: Any, *, last: bool = True) -> bool:
    """Return True if a value is a prefix of another one; it may be incomplete only at its end."""
    if isinstance(part, dict) and isinstance(whole, dict):
        names = list(part)
        return names == list(whole)[: len(names)] and all(
            is_part(part[name], whole[name], last=last and name == names[-1]) for name in names
        )
    if isinstance(part, list) and isinstance(whole, list):
        places = range(len(part))
        return len(part) <= len(whole) and all(
            is_part(part[n], whole[n], last=last and n == places[-1]) for n in places
        )
    if isinstance(part, str) and isinstance(whole, str):
        return whole.startswith(part) if last else whole == part
    return repr(part) == repr(whole)


def view_of(*pieces: str) -> PartialArguments:
    view = PartialArguments(0)
    for piece in pieces:
        view.apply(ev.ToolCallDelta(0, piece))
    return view


def joined(changes: list[ArgumentsChange]) -> list[ArgumentsChange]:
    """Join the fragments of one string. Values that a container emits when it closes are merged, too."""
    out: list[ArgumentsChange] = []
    for change in changes:
        if change.kind == "fragment" and out and out[-1][:2] == change[:2]:
            out[-1] = change._replace(value=out[-1].value + change.value)
        else:
            out.append(change)
    return out


@settings(max_examples=500 if FULL else 25)
@given(objects, st.booleans(), st.sampled_from([None, 1]))
def test_every_prefix_is_a_part_of_the_whole(value: dict[str, Any], ascii_only: bool, indent: int | None) -> None:
    text = replace_lone_surrogates(json.dumps(value, ensure_ascii=ascii_only, indent=indent))
    whole = replaced(json.loads(text))
    before: Any = None
    for end in range(len(text) + 1):
        part = loads_partial(text[:end])
        assert (part is None) == (end == 0)
        assert part is None or is_part(part, whole), text[:end]
        assert before is None or is_part(before, part), text[:end]  # no value is retracted
        before = part
    assert repr(before) == repr(whole)


@settings(max_examples=500 if FULL else 25)
@given(st.lists(st.tuples(st.text(max_size=3), values), max_size=5, unique_by=lambda member: member[0]))
def test_a_finished_member_is_there_at_once(members: list[tuple[str, Any]]) -> None:
    spelt = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in members]
    for count in range(1, len(members) + 1):
        part = loads_partial("{" + ",".join(spelt[:count]) + ",")
        assert repr(part) == repr(replaced(json.loads("{" + ",".join(spelt[:count]) + "}")))


@given(texts(), st.data())
def test_the_pieces_change_nothing(text: str, data: st.DataObject) -> None:
    text = '{"a": ' + text
    places = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=6)))
    cuts = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    whole, cut, single = view_of(text), view_of(*cuts), view_of(*text)
    for view in (cut, single):
        assert repr(view.value) == repr(whole.value)
        assert view.state == whole.state
        assert (view.tail and (view.tail.path, view.tail.text)) == (whole.tail and (whole.tail.path, whole.tail.text))
    assert repr(joined(cut.changes())) == repr(joined(whole.changes()))


@given(texts())
def test_a_whole_text_gives_what_parsed_gives(text: str) -> None:
    try:
        whole = loads_arguments(text)
    except JsonFault:
        loads_partial(text)
        return
    assert repr(loads_partial(text)) == repr(whole if isinstance(whole, dict) else None)


def by_view(text: str) -> dict[str, Any] | None:
    """Return the value as the pure reader builds it, with the open string in its place."""
    read = partial_object()
    read.feed(text)
    read.complete_tail()
    return read.root


@given(texts(), st.sampled_from(["", '{"a": ', '{"a": "']))
def test_both_readers_agree(text: str, before: str) -> None:
    for end in range(len(text) + 1):
        assert repr(loads_partial(before + text[:end])) == repr(by_view(before + text[:end]))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (" ", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a":', {}),
        ('{"a":1', {}),  # the number may become 12
        ('{"a":1 ', {"a": 1}),
        ('{"a":-0.5e', {}),
        ('{"a":tru', {}),
        ('{"a":true', {"a": True}),
        ('{"a":null', {"a": None}),
        ('{"a":"', {"a": ""}),
        ('{"a":"b\\', {"a": "b"}),
        ('{"a":"b\\u00e', {"a": "b"}),
        ('{"a":"b\\ud83d', {"a": "b"}),  # the surrogate may become a pair if its other half arrives
        ('{"a":"b\\ud83d\\ude00', {"a": "b😀"}),
        ('{"a":"b\\ud83d\\ud83d', {"a": "b\ufffd"}),
        ('{"a":"b\\ud83d\\', {"a": "b"}),
        ('{"a":"b\\ud83d\\n', {"a": "b\ufffd\n"}),
        ('{"a":"b\\ud83dc', {"a": "b\ufffdc"}),
        ('{"a":"b\\\\ud83d', {"a": "b\\ud83d"}),
        ('{"a":"\\\\', {"a": "\\"}),
        ('{"a":[[1,2],{"b":"c', {"a": [[1, 2], {"b": "c"}]}),
        ('{"a":1,"a":"x', {"a": "x"}),  # the last duplicate is used, as in `.parsed`
        ('{"a":123456789012345678901234567890}', {"a": 123456789012345678901234567890}),
        ('{"a":1,"b":' + "9" * 17_000 + "}", {"a": 1}),
        ('{"a":1}x', {"a": 1}),
        ('{"a":1,]', {"a": 1}),
        ('{"a":1x', {}),
        ("[1,2", None),
        ('"text', None),
        ("print(1)", None),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert loads_partial(text) == value
    assert by_view(text) == value


def test_changes_follow_the_text() -> None:
    view = view_of('{"path":"a', '.py","lines":[1', ',2],"text":"')
    assert view.changes() == [
        ("fragment", ("path",), "a"),
        ("fragment", ("path",), ".py"),
        ("value", ("path",), "a.py"),
        ("value", ("lines", 0), 1),
        ("value", ("lines", 1), 2),
        ("value", ("lines",), [1, 2]),
    ]
    assert view.value == {"path": "a.py", "lines": [1, 2]}
    assert view.tail == (("text",), [])
    value = view.value
    view.apply(ev.ToolCallDelta(0, "hi"))
    view.apply(ev.ToolCallDelta(1, "of another call"))
    assert view.tail == (("text",), ["hi"])
    view.apply(ev.ToolCallDelta(0, '"}'))
    assert view.value is value  # the view grows in place
    assert view.changes() == [
        ("fragment", ("text",), "hi"),
        ("value", ("text",), "hi"),
        ("value", (), {"path": "a.py", "lines": [1, 2], "text": "hi"}),
    ]
    assert view.changes() == []


def test_a_correction_is_reported() -> None:
    view = view_of('{"a":1,"b":"x')
    view.apply(ev.ToolCallReset(0))
    assert (view.value, view.tail, view.changes()) == (None, None, [("reset", (), None)])
    view.apply(ev.ToolCallDelta(0, '{"c":2}'))
    view.apply(ev.ToolCall(0, "id", "name", '{"c":2}', "complete"))
    assert (view.value, view.state) == ({"c": 2}, "complete")
    assert view.changes() == [("value", ("c",), 2), ("value", (), {"c": 2})]


def test_a_close_with_another_text_replaces_what_came() -> None:
    view = view_of('{"a":1')
    view.changes()
    view.apply(ev.ToolCall(0, "id", "name", '{"a":2}', "complete"))
    assert view.value == {"a": 2}
    assert [change.kind for change in view.changes()] == ["reset", "value", "value"]


def test_ends() -> None:
    overflow = view_of('{"a":1}', '{"b":2}')
    overflow.apply(ev.ToolCall(0, "id", "name", '{"a":1}', "invalid", reason="overflow"))
    assert (overflow.value, overflow.state) == ({"a": 1}, "invalid")
    assert all(change.kind == "value" for change in overflow.changes())
    empty = view_of()
    empty.apply(ev.ToolCall(0, "id", "name", "", "empty"))
    assert (empty.value, empty.state) == ({}, "empty")
    custom = view_of("print(1)")
    assert (custom.value, custom.state) == (None, "broken")
    custom.apply(ev.ToolCall(0, "id", "name", "print(1)", "complete", custom=True))
    assert (custom.value, custom.state, custom.changes()) == (None, "complete", [])
    gone = view_of('{"a":1,')
    gone.apply(ev.ToolCallRetracted(0))
    assert (gone.value, gone.state) == (None, "retracted")
    cut = view_of('{"a":"b')
    cut.apply(ev.ToolCall(0, "id", "name", '{"a":"b', "incomplete"))
    assert (cut.value, cut.state, cut.tail) == ({}, "incomplete", (("a",), ["b"]))


def follow(backend: str, vector: dict[str, Any], *, early: bool) -> int:
    """Read a vector, compare its views with the deltas after each chunk, and count its calls."""
    parser = make_parser(backend, **policy_of(vector["options"]))
    sent: dict[int, str] = {}
    views: dict[int, PartialArguments] = {}
    ended: dict[int, ev.ToolCall] = {}
    steps: list[Callable[[], list[ev.Event]]] = [lambda chunk=chunk: parser.feed(chunk) for chunk in chunks_of(vector)]  # type: ignore[misc]
    over = False
    for step in [*steps, lambda: parser.close(broken=is_broken(vector))]:
        if over:
            break
        try:
            events = step()
        except sw.StreamError as fault:
            events, over = fault.events, True
        for event in events:
            match event:
                case ev.ToolCallStarted(part=part):
                    sent[part] = ""
                case ev.ToolCallDelta(part=part, arguments=arguments):
                    sent[part] += arguments
                case ev.ToolCallReset(part=part):
                    sent[part] = ""
                case ev.ToolCallRetracted(part=part):
                    del sent[part]
                    views.pop(part, None)
                case ev.ToolCall(part=part):
                    ended[part] = event
        for part, text in sent.items():
            if part not in ended:
                assert parser.arguments_so_far(part) == text
                assert repr(ev.ToolCallDelta(part, "").partial(parser)) == repr(loads_partial(text))
            if early or part in ended:
                view = views.setdefault(part, parser.partial(part))
                assert view is parser.partial(part)
                whole = loads_partial(ended[part].arguments if part in ended else text)
                assert view.value is None or is_part(view.value, whole or {})
    for part, call in ended.items():
        if call.state in {"complete", "empty"} and not call.custom:
            assert repr(views[part].value) == repr(call.parsed)
        assert views[part].state == call.state
    return len(ended)


@pytest.mark.parametrize("early", [True, False])
def test_views_follow_the_vectors(backend: str, early: bool) -> None:
    calls = 0
    for vector in CALLS if FULL or backend == "native" else CALLS[::4]:
        try:
            calls += follow(backend, vector, early=early)
        except AssertionError as error:
            raise AssertionError(label(vector)) from error
    assert calls > 100


def told(arguments: str, finish: str = "null", **header: Any) -> bytes:
    call = json.dumps({"index": 0, **header, "function": {"name": "f", "arguments": arguments}})
    return f'data: {{"choices":[{{"delta":{{"tool_calls":[{call}]}},"finish_reason":{finish}}}]}}\n\n'.encode()


BODY = [
    told('{"x":[1,', id="a"),
    told('2],"y":"Os'),
    told('lo"}', '"tool_calls"'),
    b"data: [DONE]\n\n",
]


def test_iterators_have_views(backend: str) -> None:
    seen = []
    with using(backend):
        events = sw.iter_events(BODY)
    for event in events:
        if isinstance(event, ev.ToolCallDelta):
            view = events.partial(event.part)
            seen.append((event.partial(events), view.tail and view.tail.text))
    assert seen == [({"x": [1]}, None), ({"x": [1, 2], "y": "Os"}, "Os"), ({"x": [1, 2], "y": "Oslo"}, None)]


def test_parts_that_are_no_calls(backend: str) -> None:
    parser = make_parser(backend)
    parser.feed(b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n')
    for part in (0, 7, -1, 2**40):
        with pytest.raises(sw.UsageError, match="not a tool call"):
            parser.partial(part)
        with pytest.raises(sw.UsageError, match="not a tool call"):
            parser.arguments_so_far(part)


def test_a_promoted_call_has_a_view(backend: str) -> None:
    text = '<tool_call>{\\"name\\": \\"f\\", \\"arguments\\": {\\"x\\": 1}}</tool_call>'
    body = f'data: {{"choices":[{{"delta":{{"content":"{text}"}},"finish_reason":"stop"}}]}}\n\ndata: [DONE]\n\n'
    parser = make_parser(backend, policy=sw.Policy(text_calls="promote"), tools=["f"])
    events = [*parser.feed(body.encode()), *parser.close()]
    (call,) = [event for event in events if isinstance(event, ev.ToolCall)]
    assert parser.partial(call.part).value == call.parsed == {"x": 1}
    assert parser.arguments_so_far(call.part) == call.arguments


@pytest.mark.parametrize("piece", ['"text \\n', "1", '{"k":', "[", "\\ud83d"])
def test_a_delta_costs_what_it_adds(piece: str) -> None:
    start = '{"a":' if piece == "1" else '{"a":"' if piece == "\\ud83d" else '{"a":['

    def prepare(size: int) -> Callable[[], object]:
        pieces = [start, *([*piece] * (size // len(piece)))]
        return lambda: view_of(*pieces)

    assert_linear_work(prepare, 8_000)
