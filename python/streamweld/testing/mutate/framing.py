"""Operators for event framing and the end of streams, for every dialect."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from streamweld.testing.builders import build, chunk
from streamweld.testing.mutate.chat import message_of
from streamweld.testing.mutate.registry import changed, inserted, operator
from streamweld.testing.stream import Frame, Reasoning, Refusal, Stream, Text

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random


def _raw(
    name: str,
    about: str,
    change: Callable[[Random, bytes, Frame], bytes],
    *,
    some: float = 1.0,
) -> None:
    """Register an operator that changes the bytes of each event, or of a random selection of events (`some`)."""

    def run(rng: Random, stream: Stream) -> Stream:
        return stream.but(
            replace(frame, raw=change(rng, frame.encode(), frame)) if rng.random() < some else frame
            for frame in stream.frames
        )

    operator(aspect="framing", name=name, about=about)(run)


def _between(name: str, about: str, raw: bytes, *, some: float = 0.4, first: bool = False) -> None:
    """Register an operator that inserts bytes between events."""

    def run(rng: Random, stream: Stream) -> Stream:
        frames: list[Frame] = [Frame("", raw=raw)] if first else []
        for frame in stream.frames:
            if rng.random() < some:
                frames.append(Frame("", raw=raw))
            frames.append(frame)
        return stream.but(frames)

    operator(aspect="framing", name=name, about=about)(run)


def _lines(_: Random, data: bytes, frame: Frame) -> bytes:
    """Split the JSON over several data lines, and keep the event name."""
    if isinstance(frame.data, str):
        return data
    text = json.dumps(frame.data, ensure_ascii=False, indent=1)
    name = f"event: {frame.event}\n" if frame.event else ""
    return (name + "".join(f"data: {line}\n" for line in text.split("\n")) + "\n").encode()


def _escaped(_: Random, data: bytes, frame: Frame) -> bytes:
    """Escape the event's non-ASCII characters. An incomplete event is not changed."""
    if frame.raw is not None:
        return data
    return re.sub(r"[^\x00-\x7f]", lambda found: json.dumps(found[0])[1:-1], data.decode()).encode()


def _lines_as_data(_: Random, data: bytes, _frame: Frame) -> bytes:
    """Send each line as the data of an event. An event that is cut or has several data lines is not changed."""
    lines = [line for line in data.split(b"\n") if line]
    if not data.endswith(b"\n\n") or sum(line.startswith(b"data:") for line in lines) != 1:
        return data
    return b"".join(b"data: " + line + b"\n\n" for line in lines)


_between("comments", "Comments are sent between events, as keep-alives.", b": PROCESSING\n\n", first=True)
_between("comments_as_data", "Comments that another server sent are in data lines.", b"data: : PROCESSING\n\n")
_between("null_events", "The data of some events is null.", b"data: null\n\n")
_between(
    "named_keep_alives",
    "Named events keep the connection alive.",
    b'event: keepalive\ndata: {"type":"keepalive"}\n\nevent: ping\ndata: {"type":"ping"}\n\n',
)
_between("empty_events", "Some events are empty or have only a retry time.", b"retry: 3000\n\ndata:\n\n", first=True)
_raw("no_space_after_data", "No space follows `data:`.", lambda _, data, _f: re.sub(rb"(?m)^data: ", b"data:", data))
_raw(
    "field_names_twice",
    "`data:` is sent twice before each payload.",
    lambda _, data, _f: re.sub(rb"(?m)^data: ", b"data: data: ", data),
)
_raw("lines_as_data", "A relay sent each line as the data of an event of its own.", _lines_as_data)
_raw("crlf", "Lines end with CR and LF.", lambda _, data, _f: data.replace(b"\n", b"\r\n"))
_raw("cr", "Lines end with CR.", lambda _, data, _f: data.replace(b"\n", b"\r"))
_raw("json_over_lines", "The JSON of an event is split over several data lines.", _lines)
_raw("escaped_text", "Everything that is not ASCII is escaped.", _escaped)


@operator(aspect="framing")
def payloads_in_one_event(rng: Random, stream: Stream) -> Stream | None:
    """Several payloads are not separated by a blank line."""
    if any(frame.event for frame in stream.frames):
        return None
    *frames, last = stream.frames
    return stream.but([*(replace(f, raw=f.encode()[:-1]) if rng.random() < 0.4 else f for f in frames), last])


@operator("chat", "gemini", "ai-sdk-parts", "ai-sdk-ui", aspect="framing")
def payload_on_the_next_line(rng: Random, stream: Stream) -> Stream:
    """`data:` is empty, and the payload is on the next line without `data:`."""
    return stream.but(
        replace(f, raw=b"data:\n " + f.payload.encode() + b"\n\n")
        if not isinstance(f.data, str) and rng.random() < 0.3
        else f
        for f in stream.frames
    )


@operator("chat", aspect="framing")
def string_over_two_lines(rng: Random, stream: Stream) -> Stream | None:
    """A JSON string is split over two data lines; the JSON is valid only if the lines are joined without a line end."""
    positions = [
        at for at, f in enumerate(stream.frames) if len(f.piece) > 1 and f.piece.isascii() and f.piece.isalpha()
    ]
    if not positions:
        return None
    at = rng.choice(positions)
    data = stream.frames[at].encode()
    position = data.rfind(f'"{stream.frames[at].piece}"'.encode()) + 2
    frames = list(stream.frames)
    frames[at] = replace(frames[at], raw=data[:position] + b"\ndata: " + data[position:])
    return stream.but(frames) if position > 1 else None


@operator(aspect="framing")
def line_separators_in_text(_: Random, stream: Stream) -> Stream | None:
    """Texts contain U+2028 and U+0085, which some line splitters treat as line endings."""
    if stream.operators:
        return None
    kinds = (Text, Reasoning, Refusal)
    parts = [type(p)(p.text + "a\u2028b\u0085c") if isinstance(p, kinds) else p for p in stream.parts]
    made = build(stream.dialect, parts, usage=stream.expected.usage)
    return made if made.expected != stream.expected else None


@operator(aspect="framing")
def reads_cut_anywhere(rng: Random, stream: Stream) -> Stream:
    """Network reads split events, lines and UTF-8 sequences."""
    size = max(2, len(stream.body))
    return replace(stream, cuts=tuple(sorted(rng.sample(range(1, size), min(size - 1, rng.randint(1, 30))))))


@operator(aspect="framing")
def read_byte_by_byte(_: Random, stream: Stream) -> Stream:
    """Each network read returns one byte."""
    return replace(stream, cuts=tuple(range(1, len(stream.body))))


@operator("chat", "ai-sdk-ui", aspect="framing")
def done_without_data(_: Random, stream: Stream) -> Stream | None:
    """`[DONE]` has no `data:`."""
    if stream.frames[-1].data != "[DONE]":
        return None
    return stream.but([*stream.frames[:-1], replace(stream.frames[-1], raw=b"[DONE]\n")])


@operator(aspect="framing")
def no_blank_line_at_the_end(_: Random, stream: Stream) -> Stream | None:
    """The last event is not followed by a blank line."""
    last = stream.frames[-1]
    if last.raw is not None:  # an operator has already truncated the last event
        return None
    return stream.but([*stream.frames[:-1], replace(last, raw=last.encode().rstrip(b"\r\n"))])


@operator("chat", aspect="framing")
def event_cut_and_glued(rng: Random, stream: Stream) -> Stream | None:
    """A truncated event is directly followed by the next event, which is valid."""
    texts = [at for at, f in enumerate(stream.frames) if f.part is not None and isinstance(stream.parts[f.part], Text)]
    if not texts:
        return None
    at = rng.choice(texts)  # readers salvage only text, finish reason and usage after a truncated event
    cut = Frame("", raw=b'data: {"choices":[{"index":0,"delta":{"con')
    return stream.but(inserted(stream, at, cut))


@operator("chat", aspect="framing")
def more_after_done(_: Random, stream: Stream) -> Stream | None:
    """Events follow `[DONE]`, and then another `[DONE]`."""
    if stream.frames[-1].data != "[DONE]":
        return None
    late = Frame(chunk({"content": "late"}))
    return stream.but([*stream.frames, late, stream.frames[-1]])


# Endings


def _last_word(stream: Stream) -> int:
    """Return the number of the frame that ends the stream or contains the finish reason."""
    return next((at for at, f in enumerate(stream.frames) if f.role in {"finish", "end"}), len(stream.frames) - 1)


@operator("chat", aspect="ending", effect="assumed")
def no_done(_: Random, stream: Stream) -> Stream | None:
    """The connection closes after the finish reason, without `[DONE]`."""
    if stream.frames[-1].data != "[DONE]" or stream.expected.finish is None or stream.opaque:
        return None
    if {"no_finish_reason", "calls_after_finish"} & set(stream.operators):
        return None
    return stream.but(stream.frames[:-1], ending="assumed")


@operator(aspect="envelope")
def blank_errors(rng: Random, stream: Stream) -> Stream:
    """Every payload has an `error` member whose values mean success."""
    blank = rng.choice([{"message": "", "code": 0}, {"message": None, "type": None, "code": None}, {}, "", False, None])
    return stream.but(changed(stream, lambda data, _frame: {"error": blank} | data))


@operator(aspect="ending", effect="truncated")
def connection_closes(rng: Random, stream: Stream) -> Stream | None:
    """The connection closes between two events, before the end."""
    last = _last_word(stream)
    if last < 1 or stream.operators:
        return None
    return stream.cut(rng.randint(1, last), "truncated")


@operator(aspect="ending", effect="truncated")
def connection_closes_in_an_event(rng: Random, stream: Stream) -> Stream | None:
    """The connection closes in the middle of an event."""
    last = _last_word(stream)
    if last < 1 or stream.operators:
        return None
    kept = stream.cut(rng.randint(1, last), "truncated")
    data = stream.frames[len(kept.frames)].encode()
    return kept.but([*kept.frames, Frame("", raw=data[: rng.randrange(8, len(data) - 2)])])


def _broken(name: str, about: str, error: Callable[[str], bytes], *dialects: Any) -> None:
    def run(rng: Random, stream: Stream) -> Stream | None:
        last = _last_word(stream)
        if last < 1:
            return None
        kept = stream.cut(rng.randint(1, last), "error")
        return kept.but([*kept.frames, Frame("", raw=error(stream.dialect))])

    operator(*dialects, aspect="ending", name=name, about=about, effect="error")(run)


def _data(value: Any) -> Callable[[str], bytes]:
    return lambda _: b"data: " + json.dumps(value).encode() + b"\n\n"


_broken(
    "error_event",
    "An error object is sent in the middle, with status 200.",
    _data({"error": {"code": "rate_limit_exceeded", "message": "slow down"}}),
)
_broken(
    "error_then_done",
    "An error object is followed by `[DONE]`.",
    lambda _: b'data: {"error":{"code":429,"message":"slow down"}}\n\ndata: [DONE]\n\n',
    "chat",
)
_broken(
    "error_outside_events",
    "An error object is sent outside of any event.",
    lambda _: b'{\n  "error": {\n    "code": 429,\n    "message": "quota"\n  }\n}\n',
)
_broken("error_as_text", "An error is plain text in a data line.", lambda _: b"data: error: engine died\n\n")
_broken(
    "error_in_a_cut_event",
    "A truncated payload is followed by an error in the same event.",
    lambda _: b'data: {"choices":[{"index":0,"del\ndata: {"error":{"message":"stream_read_error"}}\n\n',
    "chat",
)
_broken(
    "error_type_and_message",
    "An error has `error_type` and `error_message`.",
    _data({"error_type": "overloaded", "error_message": "try again"}),
)
_broken("error_detail", "An error has only the member `detail`.", _data({"detail": "upstream is down"}))
_broken(
    "error_success_false",
    "An error has `success: false` and `errors`.",
    _data({"success": False, "errors": [{"message": "no"}]}),
)
_broken("error_code_and_msg", "An error has `code` and `msg`.", _data({"code": 500, "msg": "internal error"}))
_broken(
    "error_base_resp",
    "An error has `base_resp` with a status code.",
    _data({"base_resp": {"status_code": 1002, "status_msg": "rate limit"}}),
)
_broken(
    "error_status_code",
    "An error has `statusCode` and `message`.",
    _data({"statusCode": 503, "message": "unavailable"}),
)


def _instead(name: str, about: str, body: bytes, content_type: str) -> None:
    def run(_: Random, stream: Stream) -> Stream:
        made = stream.cut(0, "error").but([Frame("", raw=body)] if body else [], calls=())
        return replace(made, content_type=content_type)

    operator(aspect="ending", name=name, about=about, effect="error")(run)


_instead(
    "html_page", "The body is an HTML page, with status 200.", b"<html><body>502 Bad Gateway</body></html>", "text/html"
)
_instead("empty_body", "The body is empty, with status 200.", b"", "text/event-stream")
_instead(
    "json_error_body",
    "The body is an error as plain JSON, with status 200.",
    b'{"error":"Unexpected endpoint or method."}',
    "application/json",
)
_instead(
    "error_body_of_another_kind",
    "The body is an error with `error_type`, with status 200.",
    b'{"error_type":"overloaded","error_message":"try again"}',
    "application/json",
)


@operator("chat", aspect="ending")
def whole_body(_: Random, stream: Stream) -> Stream | None:
    """The body is a single completion that was not streamed."""
    if stream.operators or any(call.id is None for call in stream.expected.calls):
        return None
    choice = {"index": 0, "message": message_of(stream), "finish_reason": stream.expected.finish}
    body: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    usage = stream.expected.usage
    if usage is not None:
        counts = {"prompt_tokens": usage.input, "completion_tokens": usage.output}
        body["usage"] = counts | {"total_tokens": usage.input + usage.output}
    raw = json.dumps(body | {"choices": [choice]}).encode()
    return replace(stream.but([Frame("", raw=raw)]), content_type="application/json")
