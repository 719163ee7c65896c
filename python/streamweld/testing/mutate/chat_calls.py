"""Operators for tool calls in Chat Completions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from streamweld.options import Policy
from streamweld.testing.builders import chunk, value_of
from streamweld.testing.mutate.registry import changed, clone, inserted, operator
from streamweld.testing.pieces import Call as SentCall
from streamweld.testing.pieces import entry, fragments_of, in_order, single
from streamweld.testing.shapes import SHAPES
from streamweld.testing.stream import Call, Frame, Stream

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

Entry = dict[str, Any]


# Helpers


def _has_delta(frame: Frame) -> bool:
    data: Any = frame.data
    return isinstance(data, dict) and any("tool_calls" in each["delta"] for each in cast("Entry", data)["choices"])


def with_entries(stream: Stream, arrays: list[list[Entry]], **expected: Any) -> Stream:
    """Replace the stream's call frames with frames for these arrays, at the position of the first call frame."""
    at = next(location for location, frame in enumerate(stream.frames) if _has_delta(frame))
    rest = [frame for frame in stream.frames if not _has_delta(frame)]
    rest[at:at] = [Frame(chunk({"tool_calls": array}), role="delta") for array in arrays]
    return stream.but(rest, **expected)


def each_entry(stream: Stream, change: Callable[[Entry, int, int, Call], None]) -> Stream | None:
    """Change each element of `tool_calls`.

    `change` receives the element, the number of the call, the number of the element within the call, and the call.
    """
    if not stream.calls:
        return None
    seen: dict[int, int] = {}
    order = {part: number for number, part in enumerate(n for n, p in enumerate(stream.parts) if isinstance(p, Call))}
    frames: list[Frame] = []
    for frame in stream.frames:
        if not _has_delta(frame) or frame.part is None:
            frames.append(frame)
            continue
        data = clone(frame.data)
        call = stream.parts[frame.part]
        assert isinstance(call, Call)  # noqa: S101
        number = seen.get(frame.part, 0)
        seen[frame.part] = number + 1
        change(data["choices"][0]["delta"]["tool_calls"][0], order[frame.part], number, call)
        frames.append(replace(frame, data=data))
    return stream.but(frames)


def distinct(stream: Stream) -> bool:
    """Return True if all calls have different arguments.

    Without ids, the bytes do not show whether equal calls are separate calls.
    """
    texts = [json.dumps(value_of(call), sort_keys=True) for call in stream.calls]
    return len(set(texts)) == len(texts)


def unique(stream: Stream) -> bool:
    """Return True if no id is used twice."""
    ids = [call.id for call in stream.calls]
    return len(set(ids)) == len(ids)


def wire(stream: Stream) -> list[SentCall]:
    """Return the calls in the form that the functions in `shapes` accept."""
    return [SentCall(call.id, call.name, call.arguments) for call in stream.calls]


def _per_entry(about: str, change: Callable[[Entry, int, int, Call], None]) -> Callable[[str], None]:
    def register(name: str) -> None:
        def run(_: Random, stream: Stream) -> Stream | None:
            return each_entry(stream, change) if unique(stream) else None

        operator("chat", aspect="calls", name=name, about=about)(run)

    return register


def _shaped(
    name: str,
    about: str,
    shape: str,
    *,
    filled: bool = False,
    apart: bool = True,
    length: int = 0,
    certain: bool = True,
    once: bool = True,
) -> None:
    """Register an operator that rewrites a stream's tool calls with the function `shape` of `testing.shapes`.

    `filled`: arguments must be non-empty objects; `apart`: arguments must differ between calls; `length`: minimum
    length of names; `certain`: False if the bytes do not determine the correct result; `once`: ids must be unique.
    """

    def run(rng: Random, stream: Stream) -> Stream | None:
        calls = wire(stream)
        if not calls or (once and not unique(stream)) or (apart and not distinct(stream)):
            return None
        if any(len(call.name) < length or not call.arguments for call in calls):
            return None
        if filled and any(value_of(call) == {} for call in stream.calls):
            return None
        arrays = SHAPES[shape](rng, calls)
        return with_entries(stream, arrays, calls=tuple(Call(call.name, call.arguments, call.id) for call in calls))

    operator("chat", aspect="calls", name=name, about=about, certain=certain)(run)


def _again(entry_: Entry, call: Call, name: Any = None, identity: Any = None, **more: Any) -> None:
    """Set the id and name of an element to the given values or, by default, to those of the call."""
    entry_["id"] = call.id if identity is None else identity
    entry_["function"]["name"] = call.name if name is None else name
    entry_.update(more)


def _later(change: Callable[[Entry, int, int, Call], None]) -> Callable[[Entry, int, int, Call], None]:
    """Apply a change only to the elements after the header of a call."""

    def run(entry_: Entry, k: int, n: int, call: Call) -> None:
        if n:
            change(entry_, k, n, call)

    return run


def _null(entry_: Entry, identity: Any = None) -> None:
    """Set the name to null, and the id to `identity`."""
    entry_["id"] = identity
    entry_["function"]["name"] = None


# Operators that change each element separately

_per_entry(
    "Every chunk has the id; the name is empty after the first chunk.", _later(lambda e, _k, _n, c: _again(e, c, ""))
)("id_on_every_chunk")
_per_entry(
    "Every chunk has the id, the type and the full name.", _later(lambda e, _k, _n, c: _again(e, c, type="function"))
)("header_on_every_chunk")
_per_entry("Continuations have empty strings for id and name.", _later(lambda e, _k, _n, c: _again(e, c, "", "")))(
    "empty_id_and_name"
)
_per_entry("Continuations have null for id and name.", _later(lambda e, _k, _n, _c: _null(e)))("null_id_and_name")
_per_entry('Continuations have the string "null" as their id.', _later(lambda e, _k, _n, c: _again(e, c, "", "null")))(
    "id_is_the_word_null"
)
_per_entry("Every continuation has a new id, and its name is null.", _later(lambda e, k, n, _c: _null(e, f"r{k}_{n}")))(
    "new_id_on_every_chunk"
)
_per_entry(
    "Every continuation has a new id, and an empty name.", _later(lambda e, k, n, c: _again(e, c, "", f"r{k}_{n}"))
)("new_id_and_empty_name")
_per_entry("Indexes are sparse and do not begin at 0.", lambda e, k, _n, _c: e.update(index=3 * k + 1))("sparse_index")
_per_entry("Indexes begin at 1.", lambda e, k, _n, _c: e.update(index=k + 1))("index_from_one")
_per_entry("Indexes are strings.", lambda e, k, _n, _c: e.update(index=str(k)))("index_is_a_string")
_per_entry("Indexes are floating-point numbers.", lambda e, k, _n, _c: e.update(index=float(k)))("index_is_a_float")
_per_entry(
    "Every index is 0; only the header has the id, and later ids are empty.",
    lambda e, _k, n, c: _again(e, c, "", "", index=0) if n else e.update(index=0),
)("index_0_fragments")
_per_entry("The id is inside `function`.", lambda e, _k, n, _c: None if n else e["function"].update(id=e.pop("id")))(
    "id_inside_function"
)
_per_entry("An empty name arrives after the name.", _later(lambda e, _k, _n, c: _again(e, c, "")))("empty_name_later")
_per_entry(
    "The arguments of a header are null.", lambda e, _k, n, _c: None if n else e["function"].update(arguments=None)
)("arguments_null_first")
_per_entry("Arguments are missing in headers.", lambda e, _k, n, _c: None if n else e["function"].pop("arguments"))(
    "header_without_arguments"
)
_per_entry("The type of continuations is null.", _later(lambda e, _k, _n, _c: e.update(type=None)))("type_null")


@operator("chat", aspect="calls", effect="ids")
def integer_ids(_: Random, stream: Stream) -> Stream | None:
    """Ids are integers."""
    if not unique(stream):
        return None
    made = each_entry(stream, lambda e, k, _n, _c: e.update(id=k + 7))
    ids = tuple(replace(call, id=str(number + 7)) for number, call in enumerate(stream.calls))
    return made and made.but(calls=ids)


@operator("chat", aspect="calls", effect="ids")
def no_ids(_: Random, stream: Stream) -> Stream | None:
    """No call has an id; the indexes are correct."""
    made = each_entry(stream, lambda e, _k, _n, _c: e.update(id=None))
    return made and made.but(calls=tuple(replace(call, id=None) for call in stream.calls))


@operator("chat", aspect="calls", effect="ids")
def id_null_from_the_second_call(_: Random, stream: Stream) -> Stream | None:
    """The ids of all calls except the first are null."""
    if len(stream.calls) < 2:
        return None
    made = each_entry(stream, lambda e, k, _n, _c: e.update(id=None) if k else None)
    first, *rest = stream.calls
    return made and made.but(calls=(first, *(replace(call, id=None) for call in rest)))


@operator("chat", aspect="calls", effect="ids")
def ids_of_functions(_: Random, stream: Stream) -> Stream | None:
    """Ids consist of names and numbers, as Kimi's do."""
    made = each_entry(stream, lambda e, k, n, c: None if n else e.update(id=f"functions.{c.name}:{k}"))
    ids = tuple(replace(call, id=f"functions.{call.name}:{number}") for number, call in enumerate(stream.calls))
    return made and made.but(calls=ids)


@operator("chat", aspect="calls", effect="ids")
def later_id_counts(_: Random, stream: Stream) -> Stream | None:
    """The header has one id and all later chunks have another; the policy uses the last id."""
    if not unique(stream) or any(not call.arguments for call in stream.calls):
        return None
    made = each_entry(stream, _later(lambda e, k, _n, _c: _null(e, f"B{k}")))
    ids = tuple(replace(call, id=f"B{number}") for number, call in enumerate(stream.calls))
    return made and replace(made.but(calls=ids), options={"policy": Policy("standard", unstable_id="last")})


# Operators from shapes

_shaped("no_index", "No call has an index; only headers have ids.", "noindex_id_first", apart=False)
_shaped(
    "no_index_id_on_every_chunk",
    "No call has an index; every chunk has an id, and calls are interleaved.",
    "noindex_id_every",
    apart=False,
)
_shaped(
    "no_index_no_id", "Calls have neither index nor id; a call starts where a name is sent.", "noindex_noid_name_first"
)
_shaped("index_0_whole_calls", "Every index is 0; each call is sent whole, with its id.", "idx0_whole", apart=False)
_shaped("index_0_id_first", "Every index is 0; only headers have ids.", "idx0_id_first", apart=False)
_shaped(
    "index_0_id_on_every_chunk",
    "Every index is 0; every chunk has an id, and calls are interleaved.",
    "idx0_id_every",
    apart=False,
)
_shaped(
    "index_0_no_ids_whole_calls", "Every index is 0, no call has an id, and each call is sent whole.", "idx0_noid_whole"
)
_shaped(
    "index_0_no_ids_fragments",
    "Every index is 0, no call has an id, and arguments are sent in fragments.",
    "idx0_noid_frag",
)
_shaped(
    "new_id_and_name_on_every_chunk",
    "Every chunk has a new id and the full name.",
    "rand_id_name_every_nonempty",
    certain=False,
)
_shaped("late_id", "The id arrives after the name.", "late_id", apart=False)
_shaped("late_name", "The name arrives after the id, or after the arguments.", "late_name", apart=False)
_shaped("one_id_other_indexes", "All calls have the same id; the indexes are correct.", "dup_id_diff_index")
_shaped(
    "one_id_index_0_fragments",
    "All calls have the same id and index 0; arguments are sent in fragments.",
    "dup_id_same_index",
)
_shaped("one_call_many_indexes", "One call is repeated at several indexes with the same id.", "same_id_many_indexes")
_shaped(
    "arguments_on_the_index_before",
    "Headers have even indexes; their arguments have no id and the preceding odd index (header 2, arguments 1).",
    "header_idx2_args_idx1",
    apart=False,
)
_shaped(
    "headers_on_index_0",
    "All headers have index 0; the arguments have the correct index.",
    "header_idx0_args_idxk",
    apart=False,
)
_shaped("interleaved", "Fragments of several calls are interleaved by index.", "std", apart=False)
_shaped("name_in_fragments", "The name is sent in two fragments.", "name_split", length=5, apart=False)
_shaped("cumulative_arguments", "Each chunk contains all arguments so far.", "cumulative", apart=False)
_shaped(
    "arguments_sent_again",
    "All arguments are sent again, with the header.",
    "resend_with_header",
    filled=True,
    apart=False,
)
_shaped(
    "arguments_sent_again_bare",
    "All arguments are sent again, without a header.",
    "resend_bare",
    filled=True,
    apart=False,
)
_shaped(
    "arguments_sent_again_encoded",
    "All arguments are sent again, encoded twice.",
    "resend_double_encoded",
    filled=True,
    apart=False,
)
_shaped(
    "arguments_replayed", "All arguments are sent again in fragments.", "replay_in_fragments", filled=True, apart=False
)
_shaped(
    "arguments_encoded_twice",
    "Arguments are encoded twice: a JSON string that contains JSON.",
    "double_encoded",
    apart=False,
)
_shaped("arguments_are_an_object", "Arguments are an object.", "object", apart=False)
_shaped("placeholder", "`{}` is sent before the arguments.", "placeholder", filled=True, apart=False)
_shaped("every_chunk_twice", "Every chunk of a call is sent twice.", "every_chunk_twice", certain=False)
_shaped(
    "header_again_at_the_end",
    "Headers are repeated at the end with empty arguments.",
    "trailing_empty_header",
    apart=False,
)


# Operators that replace all elements of the calls


def _arrays(
    name: str,
    about: str,
    make: Callable[[Random, list[Call]], list[list[Entry]] | None],
    *,
    effect: str = "nothing",
    filled: bool = False,
    certain: bool = True,
    opaque: bool = False,
    expect: Callable[[tuple[Call, ...]], tuple[Call, ...]] | None = None,
) -> None:
    def run(rng: Random, stream: Stream) -> Stream | None:
        calls = list(stream.calls)
        if not calls or not unique(stream) or (filled and any(value_of(call) == {} for call in calls)):
            return None
        arrays = make(rng, calls)
        if arrays is None:
            return None
        return with_entries(stream, arrays, calls=stream.calls if expect is None else expect(stream.calls))

    operator("chat", aspect="calls", name=name, about=about, effect=effect, certain=certain, opaque=opaque)(run)


def _whole(k: Any, call: Call, arguments: Any = None, **more: Any) -> Entry:
    return entry(k, call.id, call.name, call.arguments if arguments is None else arguments, **more)


def _in_two(text: str) -> list[str]:
    return [text[: len(text) // 2], text[len(text) // 2 :]]


def _rows(calls: list[Call], row: Callable[[int, Call], list[Entry]]) -> list[list[Entry]]:
    return single([each for k, call in enumerate(calls) for each in row(k, call)])


def _without_ids(calls: tuple[Call, ...]) -> tuple[Call, ...]:
    return tuple(replace(call, id=None) for call in calls)


def _different(calls: list[Call]) -> bool:
    texts = [json.dumps(value_of(call), sort_keys=True) for call in calls]
    return len(set(texts)) == len(texts)


_arrays(
    "no_index_whole_calls",
    "No call has an index; each call is sent whole, with its id.",
    lambda _, calls: single([_whole(None, call) for call in calls]),
)
_arrays(
    "no_index_by_position",
    "No call has an index; all calls are in one array, and their positions identify them.",
    lambda _, calls: (
        None
        if any(len(call.arguments) < 2 for call in calls)
        else [
            [entry(None, call.id, call.name, "") for call in calls],
            *([entry(None, None, None, _in_two(call.arguments)[half]) for call in calls] for half in (0, 1)),
        ]
    ),
)
_arrays(
    "index_minus_one",
    "Every index is -1; arguments are objects.",
    lambda _, calls: [[_whole(-1, call, value_of(call)) for call in calls]],
)
_arrays(
    "whole_calls_in_one_chunk",
    "All calls are sent whole in one chunk.",
    lambda _, calls: [[_whole(k, call) for k, call in enumerate(calls)]],
)
_arrays(
    "two_entries_of_one_call",
    "One chunk has two elements for the same call.",
    lambda _, calls: (
        None
        if any(len(call.arguments) < 2 for call in calls)
        else [
            [_whole(k, call, _in_two(call.arguments)[0]), entry(k, None, None, _in_two(call.arguments)[1])]
            for k, call in enumerate(calls)
        ]
    ),
)
_arrays(
    "no_function_wrapper",
    "Name and arguments are members of the `tool_calls` element, without `function` and without an id.",
    lambda _, calls: single(
        [{"index": k, "name": call.name, "arguments": value_of(call)} for k, call in enumerate(calls)]
    ),
    effect="ids",
    expect=_without_ids,
)
_arrays(
    "null_entries",
    "`tool_calls` contains null elements.",
    lambda _, calls: [[cast("Entry", None), _whole(k + 1, call)] for k, call in enumerate(calls)],
)
_GHOST = {"id": "", "function": {"name": "", "arguments": ""}}
_arrays(
    "ghost_entries",
    "Some elements of `tool_calls` have only empty or null members.",
    lambda _, calls: [
        *_rows(
            calls,
            lambda k, call: [
                entry(k, call.id, call.name, ""),
                {"index": k, "id": None, "function": {"name": None, "arguments": None}},
                {"index": k, **_GHOST},
                entry(k, None, None, call.arguments),
            ],
        ),
        [{"index": len(calls), **_GHOST}],
    ],
)
_arrays(
    "exact_duplicate_call",
    "A call is repeated at a new index: same id, name and arguments.",
    lambda _, calls: single([*(_whole(k, call) for k, call in enumerate(calls)), _whole(len(calls), calls[-1])]),
    filled=True,
)
_arrays(
    "twin_call",
    "A call is repeated with another id; the two are separate calls.",
    lambda _, calls: single(
        [*(_whole(k, call) for k, call in enumerate(calls)), _whole(len(calls), replace(calls[-1], id="twin"))]
    ),
    effect="calls",
    expect=lambda calls: (*calls, replace(calls[-1], id="twin")),
)
_arrays(
    "signature_alone_last",
    "The last chunk of a call contains only a thought signature.",
    lambda _, calls: (
        single([_whole(None, calls[0]), {"extra_content": {"google": {"thought_signature": "c2ln"}}}])
        if len(calls) == 1
        else None
    ),
)
_arrays(
    "arguments_before_the_name",
    "The calls have no index, and the name arrives only with the second half of the arguments.",
    lambda _, calls: (
        None
        if any(len(call.arguments) < 2 for call in calls)
        else _rows(
            calls,
            lambda _k, call: [
                entry(None, call.id, None, _in_two(call.arguments)[0]),
                entry(None, call.id, call.name, _in_two(call.arguments)[1]),
            ],
        )
    ),
)
_arrays(
    "one_id_index_0_whole_calls",
    "All calls have the same id and index 0, and are sent whole.",
    lambda _, calls: (
        single([_whole(0, replace(call, id="x")) for call in calls])
        if _different(calls) and all(call.arguments for call in calls)
        else None
    ),
    effect="ids",
    expect=lambda calls: (replace(calls[0], id="x"), *_without_ids(calls[1:])),
)
_arrays(
    "one_id_echoed",
    "All calls have the same id, in every chunk; the indexes are correct.",
    lambda _, calls: (
        [
            *single([entry(k, "x", call.name, "") for k, call in enumerate(calls)]),
            *single([entry(k, "x", None, call.arguments) for k, call in enumerate(calls)]),
        ]
        if _different(calls) and all(call.arguments for call in calls)
        else None
    ),
    effect="ids",
    expect=lambda calls: (replace(calls[0], id="x"), *_without_ids(calls[1:])),
    certain=False,
)
_arrays(
    "open_headers_on_index_0",
    "All headers are sent first, with index 0; the arguments follow with indexes 1, 2, …",
    lambda _, calls: (
        [
            *single([entry(0, call.id, call.name, "") for call in calls]),
            *single([entry(k + 1, None, None, call.arguments) for k, call in enumerate(calls)]),
        ]
        if all(call.arguments for call in calls)
        else None
    ),
    certain=False,
)
_arrays(
    "continuations_on_index_0",
    "Continuations have no id, and always have index 0.",
    lambda _, calls: (
        None
        if any(len(call.arguments) < 2 for call in calls)
        else _rows(
            calls,
            lambda k, call: [
                _whole(k, call, _in_two(call.arguments)[0]),
                {"index": 0, "id": None, "function": {"name": None, "arguments": _in_two(call.arguments)[1]}},
            ],
        )
    ),
)
_arrays(
    "index_of_the_tool",
    "The index is the tool's position in the request's tools, which determines the order of the calls.",
    lambda _, calls: single([_whole(len(calls) - k, call) for k, call in enumerate(calls)]),
    effect="order",
    expect=lambda calls: tuple(reversed(calls)),
    certain=False,
)
_arrays(
    "earlier_call_sent_again",
    "Calls are sent whole, with index 0 and without ids, and two of them are sent again: the last and the first.",
    lambda _, calls: (
        single([_whole(0, replace(call, id="")) for call in (*calls, calls[-1], calls[0])])
        if _different(calls)
        else None
    ),
    effect="ids",
    expect=_without_ids,
    filled=True,
    certain=False,
)
_arrays(
    "name_grows",
    "Each header contains more of the name than the previous header.",
    lambda _, calls: (
        None
        if any(len(call.name) < 5 or not call.arguments for call in calls)
        else _rows(
            calls,
            lambda k, call: [
                entry(k, call.id, call.name[:3], ""),
                entry(k, call.id, call.name, ""),
                entry(k, None, None, call.arguments),
            ],
        )
    ),
)
_arrays(
    "arguments_missing_a_tail",
    "All arguments except the last character are sent, and then all arguments are sent again.",
    lambda _, calls: _rows(
        calls, lambda k, call: [_whole(k, call, call.arguments[:-1]), entry(k, None, None, call.arguments)]
    ),
    filled=True,
)
_arrays(
    "brace_then_everything",
    "`{` is sent first, and then the whole object.",
    lambda _, calls: _rows(calls, lambda k, call: [_whole(k, call, "{"), entry(k, None, None, call.arguments)]),
    filled=True,
)
_arrays(
    "everything_on_every_chunk",
    "Every chunk has the name and all arguments.",
    lambda _, calls: _rows(calls, lambda k, call: [_whole(k, call)] * 3),
    filled=True,
)
_arrays(
    "object_in_members",
    "Arguments are objects, and each chunk contains different members.",
    lambda _, calls: (
        None
        if any(len(value_of(call)) < 2 for call in calls)
        else _rows(
            calls,
            lambda k, call: [
                _whole(k, call, {key: value}) if n == 0 else entry(k, None, None, {key: value})
                for n, (key, value) in enumerate(value_of(call).items())
            ],
        )
    ),
)
_arrays(
    "arguments_null_around",
    "Fragments with null arguments precede and follow the real fragments.",
    lambda _, calls: _rows(
        calls,
        lambda k, call: [
            {"index": k, "id": call.id, "function": {"name": call.name, "arguments": None}},
            entry(k, None, None, call.arguments),
            {"index": k, "function": {"name": None, "arguments": None}},
        ],
    ),
)
_arrays(
    "looks_cumulative",
    "A nested object begins like the arguments so far.",
    lambda _, calls: [
        *_rows(calls[:-1], lambda k, call: [_whole(k, call)]),
        *single(
            [
                _whole(len(calls) - 1, calls[-1], '{"o":'),
                entry(len(calls) - 1, None, None, '{"o":1}'),
                entry(len(calls) - 1, None, None, "}"),
            ]
        ),
    ],
    effect="calls",
    expect=lambda calls: (*calls[:-1], replace(calls[-1], arguments='{"o":{"o":1}}')),
    opaque=True,
)
_arrays(
    "appended_or_cumulative",
    "Each chunk repeats the arguments so far, but the first chunks could also be fragments to append.",
    lambda _, calls: [
        *_rows(calls[:-1], lambda k, call: [_whole(k, call)]),
        *single(
            [
                _whole(len(calls) - 1, calls[-1], '{"o":'),
                entry(len(calls) - 1, None, None, '{"o":{"x":1'),
                entry(len(calls) - 1, None, None, '{"o":{"x":1}}'),
            ]
        ),
    ],
    effect="calls",
    expect=lambda calls: (*calls[:-1], replace(calls[-1], arguments='{"o":{"x":1}}')),
    opaque=True,
)
_arrays(
    "no_arguments",
    "A tool without parameters has no arguments.",
    lambda _, calls: single(
        [
            *(_whole(k, call) for k, call in enumerate(calls)),
            entry(len(calls), "now_1", "now", ""),
            entry(len(calls) + 1, "now_2", "now2"),
        ]
    ),
    effect="calls",
    expect=lambda calls: (*calls, Call("now", "", "now_1"), Call("now2", "", "now_2")),
)
_arrays(
    "arguments_restart",
    "The arguments start again from the beginning after a part of them, and the header is repeated.",
    lambda _, calls: [
        *_rows(calls[:-1], lambda k, call: [_whole(k, call)]),
        *single(
            [
                _whole(len(calls) - 1, calls[-1], '{"lang":"py","code":1'),
                _whole(len(calls) - 1, calls[-1], '{"lang"'),
                entry(len(calls) - 1, None, None, ':"py","code":12}'),
            ]
        ),
    ],
    effect="calls",
    expect=lambda calls: (*calls[:-1], replace(calls[-1], arguments='{"lang":"py","code":12}')),
)
_arrays(
    "two_objects",
    "A second JSON object follows the arguments, without a header: the call is invalid.",
    lambda _, calls: [
        *_rows(calls, lambda k, call: [_whole(k, call)]),
        [entry(len(calls) - 1, None, None, '{"overflow":1}')],
    ],
    effect="calls",
    expect=lambda calls: calls[:-1],
    filled=True,
    opaque=True,
)
_arrays(
    "markup_in_arguments",
    "Arguments are the tool markup of a model: the call is invalid.",
    lambda _, calls: [
        *_rows(calls[:-1], lambda k, call: [_whole(k, call)]),
        [_whole(len(calls) - 1, calls[-1], "<|DSML|parameter name=city>Oslo")],
    ],
    effect="calls",
    expect=lambda calls: calls[:-1],
)
_arrays(
    "arguments_in_another_order",
    "Headers are sent first; the arguments follow in reverse order.",
    lambda _, calls: (
        [
            *single([entry(k, call.id, call.name, "") for k, call in enumerate(calls)]),
            *single([entry(k, None, None, call.arguments) for k, call in reversed(list(enumerate(calls)))]),
        ]
        if all(call.arguments for call in calls)
        else None
    ),
)
_arrays(
    "whole_arguments_on_a_new_index",
    "All arguments of a call are repeated with an index that no call uses.",
    lambda _, calls: [
        *_rows(calls, lambda k, call: [_whole(k, call)]),
        [entry(len(calls), None, None, calls[-1].arguments)],
    ],
    filled=True,
)
_arrays(
    "non_ascii_name",
    "A tool has a name that is not ASCII.",
    lambda _, calls: [
        *_rows(calls[:-1], lambda k, call: [_whole(k, call)]),
        [_whole(len(calls) - 1, replace(calls[-1], name="wetter_für"))],
    ],
    effect="calls",
    expect=lambda calls: (*calls[:-1], replace(calls[-1], name="wetter_für")),
)
_arrays(
    "common_prefix_one_id",
    "All calls have the same id and index 0, are sent whole, and have names with a common prefix.",
    lambda _, calls: (
        single([_whole(0, replace(call, id="x", name=call.name + "_web" * k)) for k, call in enumerate(calls)])
        if _different(calls) and all(call.arguments for call in calls)
        else None
    ),
    effect="calls",
    expect=lambda calls: tuple(
        replace(call, id=None if k else "x", name=call.name + "_web" * k) for k, call in enumerate(calls)
    ),
)


@operator("chat", aspect="calls")
def tool_calls_is_an_object(_: Random, stream: Stream) -> Stream | None:
    """`tool_calls` is an object instead of an array."""
    if not stream.calls:
        return None
    frames: list[Frame] = []
    for frame in stream.frames:
        if _has_delta(frame):
            data = clone(frame.data)
            delta = data["choices"][0]["delta"]
            delta["tool_calls"] = delta["tool_calls"][0]
            frame = replace(frame, data=data)
        frames.append(frame)
    return stream.but(frames)


@operator("chat", aspect="calls")
def index_restarts(rng: Random, stream: Stream) -> Stream | None:
    """The index restarts at 0 after text between the calls."""
    if len(stream.calls) < 2 or not unique(stream):
        return None
    rows = _rows(
        list(stream.calls),
        lambda _k, call: [
            _whole(0, call, ""),
            *(entry(0, None, None, piece) for piece in fragments_of(rng, call.arguments)),
        ],
    )
    return with_entries(stream, rows)


@operator("chat", aspect="calls", effect="calls")
def function_call_of_old(_: Random, stream: Stream) -> Stream | None:
    """The only call is sent as `function_call`, without an id."""
    if len(stream.calls) != 1 or len(stream.calls[0].arguments) < 2:
        return None
    call = stream.calls[0]
    at = next(location for location, frame in enumerate(stream.frames) if _has_delta(frame))
    rest = stream.but(frame for frame in stream.frames if not _has_delta(frame))
    deltas = [{"name": call.name, "arguments": ""}, *({"arguments": half} for half in _in_two(call.arguments))]
    made = inserted(rest, at, *(Frame(chunk({"function_call": delta})) for delta in deltas))
    return stream.but(made, calls=(replace(call, id=None),))


@operator("chat", aspect="calls")
def name_with_the_first_arguments(_: Random, stream: Stream) -> Stream | None:
    """The rest of the name is sent with the arguments; the request's tools are known."""
    calls = list(stream.calls)
    if not calls or not unique(stream) or any(len(call.name) < 5 or len(call.arguments) < 2 for call in calls):
        return None
    rows = _rows(
        calls,
        lambda k, call: [
            entry(k, call.id, call.name[:3], _in_two(call.arguments)[0]),
            entry(k, None, call.name[3:], _in_two(call.arguments)[1]),
        ],
    )
    return replace(with_entries(stream, rows), options={"tools": sorted({call.name for call in calls})})


@operator("chat", aspect="finish", effect="calls")
def header_alone_then_done(_: Random, stream: Stream) -> Stream | None:
    """The last call is truncated after its header and must not be run; `[DONE]` follows without a finish reason.

    A header with `{}` may also be a truncated placeholder, so every other call has arguments.
    """
    if stream.operators or not stream.calls or not unique(stream):
        return None
    if any(call.arguments in ("", "{}") for call in stream.calls[:-1]):
        return None
    rows = in_order(_rows(list(stream.calls), lambda k, call: [_whole(k, call, call.arguments or "{}")]))
    alone = entry(len(stream.calls) - 1, stream.calls[-1].id, stream.calls[-1].name, "")
    cut = with_entries(stream, single([*rows[:-1], alone]))

    def drop(data: Any, frame: Frame) -> None:
        if frame.role == "finish":
            data["choices"][0]["finish_reason"] = None

    return stream.but(changed(cut, drop), calls=stream.calls[:-1], finish=None)
