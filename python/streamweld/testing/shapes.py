"""The 36 shapes that tool calls have in the streams of gateways.

Each function accepts the calls and returns the `tool_calls` arrays for the chunks. A function may replace the id of a
call with the id that a reader must find, or with None if the stream does not contain an id. This module does not parse
anything.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from streamweld.testing.pieces import Call, Entry, entry, fragments_of, in_order, interleave, pack, random_id, single

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def split_first(rng: Random, text: str) -> tuple[str, list[str]]:
    """Split the text, and return the first fragment (for the header) and a list of the other fragments."""
    pieces = fragments_of(rng, text)
    if pieces and rng.random() < 0.4:
        return pieces[0], pieces[1:]
    return "", pieces


def by_index(
    rng: Random, calls: list[Call], indexes: list[int], cont: Callable[[Call], Entry], *, every_name: bool = False
) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in zip(indexes, calls, strict=True):
        head, rest = split_first(rng, call.arguments)
        row = [entry(index, call.id, call.name, head, type="function")]
        for piece in rest:
            e = entry(index, None, None, piece)
            extra = cont(call)
            if "id" in extra:
                e["id"] = extra["id"]
            if "name" in extra:
                e["function"]["name"] = extra["name"]
            if every_name:
                e["function"]["name"] = call.name
            row.append(e)
        rows.append(row)
    return pack(rng, interleave(rng, rows))


def dense(calls: list[Call]) -> list[int]:
    return list(range(len(calls)))


def std(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda _: {})


def sparse(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    start = rng.randint(0, 3)
    out: list[int] = []
    for _ in calls:
        out.append(start)
        start += rng.randint(1, 4)
    return by_index(rng, calls, out, lambda _: {})


def id_every(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda c: {"id": c.id})


def id_name_every(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda c: {"id": c.id}, every_name=True)


def empty_strings(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda _: {"id": "", "name": ""})


def null_string_id(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda _: {"id": rng.choice(("null", "None", "undefined")), "name": ""})


def noindex_id_first(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    out: list[Entry] = []
    for call in calls:
        head, rest = split_first(rng, call.arguments)
        out += [entry(None, call.id, call.name, head), *(entry(None, None, None, p) for p in rest)]
    return single(out)


def noindex_id_every(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for call in calls:
        head, rest = split_first(rng, call.arguments)
        rows.append([entry(None, call.id, call.name, head), *(entry(None, call.id, None, p) for p in rest)])
    return pack(rng, interleave(rng, rows))


def noindex_noid_name_first(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    chunks = noindex_id_first(rng, calls)
    return without_ids(calls, chunks)


def without_ids(calls: list[Call], chunks: list[list[Entry]]) -> list[list[Entry]]:
    for call in calls:
        call.id = None
    for e in in_order(chunks):
        e.pop("id", None)
    return chunks


def idx0_id_first(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    chunks = noindex_id_first(rng, calls)
    return on_index_0(chunks)


def on_index_0(chunks: list[list[Entry]]) -> list[list[Entry]]:
    return [[{"index": 0} | e for e in row] for row in chunks]


def idx0_id_every(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return on_index_0(noindex_id_every(rng, calls))


def idx0_whole(_rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return single([entry(0, c.id, c.name, c.arguments) for c in calls])


def idx0_noid_whole(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return without_ids(calls, idx0_whole(rng, calls))


def idx0_noid_frag(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    out: list[Entry] = []
    for call in calls:
        first, *rest = fragments_of(rng, call.arguments)
        out += [entry(0, None, call.name, first), *(entry(0, None, None, p) for p in rest)]
        call.id = None
    return single(out)


def rand_id_every(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda _: {"id": random_id(rng)})


def rand_id_empty_name(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return by_index(rng, calls, dense(calls), lambda _: {"id": random_id(rng), "name": ""})


def rand_id_name_every_nonempty(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    out: list[Entry] = []
    for index, call in enumerate(calls):
        first, *rest = fragments_of(rng, call.arguments)
        out += [entry(index, call.id, call.name, first), *(entry(index, random_id(rng), call.name, p) for p in rest)]
    return single(out)


def noid(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return without_ids(calls, std(rng, calls))


def late_id(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        row = [
            entry(index, None, call.name, ""),
            *(entry(index, None, None, p) for p in fragments_of(rng, call.arguments)),
        ]
        row.insert(rng.randint(1, len(row) - 1), entry(index, call.id, None, None))
        rows.append(row)
    return pack(rng, interleave(rng, rows))


def late_name(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        head, rest = split_first(rng, call.arguments)
        row = [entry(index, call.id, "", head), *(entry(index, None, "", p) for p in rest)]
        row.insert(rng.randint(1, len(row)), entry(index, None, call.name, ""))
        rows.append(row)
    return pack(rng, interleave(rng, rows))


def made_unique(calls: list[Call]) -> str:
    """Return the id of the first call, which the stream contains for all calls.

    Also set the ids that a reader must find for the later calls: id__2, id__3 and so on.
    """
    shared = calls[0].id or ""
    for n, call in enumerate(calls[1:], 2):
        call.id = f"{shared}__{n}"
    return shared


def dup_id_diff_index(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    shared = made_unique(calls)
    out: list[Entry] = []
    for index, call in enumerate(calls):
        head, rest = split_first(rng, call.arguments)
        out += [entry(index, shared, call.name, head), *(entry(index, None, None, p) for p in rest)]
    return single(out)


def dup_id_same_index(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    shared = made_unique(calls)
    out: list[Entry] = []
    for call in calls:
        first, *rest = fragments_of(rng, call.arguments)
        out += [entry(0, shared, call.name, first), *(entry(0, shared, None, p) for p in rest)]
    return single(out)


def cumulative(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        so_far, row = "", [entry(index, call.id, call.name, "")]
        for piece in fragments_of(rng, call.arguments):
            so_far += piece
            row.append(entry(index, None, None, so_far))
        rows.append(row)
    return pack(rng, interleave(rng, rows))


def resent(rng: Random, calls: list[Call], again: Callable[[int, Call], list[Entry]]) -> list[list[Entry]]:
    out: list[Entry] = []
    for index, call in enumerate(calls):
        head, rest = split_first(rng, call.arguments)
        out += [entry(index, call.id, call.name, head), *(entry(index, None, None, p) for p in rest)]
        out += again(index, call)
    return single(out)


def resend_with_header(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return resent(rng, calls, lambda i, c: [entry(i, c.id, c.name, c.arguments)])


def resend_bare(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return resent(rng, calls, lambda i, c: [entry(i, None, None, c.arguments)])


def resend_double_encoded(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return resent(rng, calls, lambda i, c: [entry(i, c.id, c.name, json.dumps(c.arguments))])


def replay_in_fragments(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return resent(rng, calls, lambda i, c: [entry(i, None, None, p) for p in fragments_of(rng, c.arguments)])


def as_object(_rng: Random, calls: list[Call]) -> list[list[Entry]]:
    out: list[Entry] = []
    for index, call in enumerate(calls):
        value = json.loads(call.arguments)
        call.arguments = json.dumps(value, ensure_ascii=False, separators=(",", ":"))  # the same format as in frame()
        out.append(entry(index, call.id, call.name, value))
    return single(out)


def double_encoded(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        head, rest = split_first(rng, json.dumps(call.arguments, ensure_ascii=rng.random() < 0.5))
        rows.append([entry(index, call.id, call.name, head), *(entry(index, None, None, p) for p in rest)])
    return pack(rng, interleave(rng, rows))


def placeholder(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows = [
        [entry(i, c.id, c.name, "{}"), *(entry(i, None, None, p) for p in fragments_of(rng, c.arguments))]
        for i, c in enumerate(calls)
    ]
    return single(in_order(rows))


def header_idx0_args_idxk(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows = [
        [entry(0, c.id, c.name, ""), *(entry(i, None, None, p) for p in fragments_of(rng, c.arguments))]
        for i, c in enumerate(calls)
    ]
    return single(in_order(rows))


def header_idx2_args_idx1(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows = [
        [entry(2 * i + 2, c.id, c.name, ""), *(entry(2 * i + 1, None, None, p) for p in fragments_of(rng, c.arguments))]
        for i, c in enumerate(calls)
    ]
    return single(in_order(rows))


def name_split(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        cut = rng.randint(3, len(call.name) - 2)
        row = [entry(index, call.id, call.name[:cut], ""), entry(index, None, call.name[cut:], "")]
        row += [entry(index, None, None, p) for p in fragments_of(rng, call.arguments)]
        rows.append(row)
    return pack(rng, interleave(rng, rows))


def every_chunk_twice(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    rows: list[list[Entry]] = []
    for index, call in enumerate(calls):
        head, rest = split_first(rng, call.arguments)
        rows.append([entry(index, call.id, call.name, head), *(entry(index, None, None, p) for p in rest)])
    return [row for e in in_order(rows) for row in ([e], [e])]


def same_id_many_indexes(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    out: list[Entry] = []
    index = 0
    for call in calls:
        head, rest = split_first(rng, call.arguments)
        for n, piece in enumerate([head, *rest]):
            out.append(entry(index, call.id, call.name if n == 0 or rng.random() < 0.3 else None, piece))
            index += 1
    return single(out)


def trailing_empty_header(rng: Random, calls: list[Call]) -> list[list[Entry]]:
    return [*std(rng, calls), *([entry(i, c.id, c.name, "")] for i, c in enumerate(calls))]


SHAPES: dict[str, Callable[[Random, list[Call]], list[list[Entry]]]] = {
    f.__name__ if f is not as_object else "object": f
    for f in (
        std, sparse, id_every, id_name_every, empty_strings, null_string_id, noindex_id_first, noindex_id_every,
        noindex_noid_name_first, idx0_id_first, idx0_id_every, idx0_whole, idx0_noid_whole, idx0_noid_frag,
        rand_id_every, rand_id_empty_name, rand_id_name_every_nonempty, noid, late_id, late_name, dup_id_diff_index,
        dup_id_same_index, cumulative, resend_with_header, resend_bare, resend_double_encoded, replay_in_fragments,
        as_object, double_encoded, placeholder, header_idx0_args_idxk, header_idx2_args_idx1, name_split,
        every_chunk_twice, same_id_many_indexes, trailing_empty_header,
    )
}  # fmt: skip
