"""The exceptions: their hierarchy, messages and attributes."""

from __future__ import annotations

import inspect
import json
import pickle
import re
from typing import Any

import pytest
from streamweld import errors, events
from streamweld._literals import DIALECTS
from streamweld._spec import CODES
from streamweld.errors import (
    ArgumentsError,
    AssemblyError,
    ChunkDecodeError,
    FramingError,
    HistoryError,
    LimitExceeded,
    MissingExtra,
    NotAnEventStream,
    ParserBusy,
    StreamError,
    StreamweldError,
    TruncatedStream,
    UnknownDialect,
    UpstreamError,
    UsageError,
)
from streamweld.response import Response

PLACE: dict[str, Any] = {"byte_offset": 12, "event_ordinal": 3}
CLASSES = [getattr(errors, name) for name in errors.__all__]
STREAM_CLASSES = [cls for cls in CLASSES if issubclass(cls, StreamError)]
SAMPLES = [
    StreamError(),
    FramingError(rule="invalid_utf8", **PLACE),
    NotAnEventStream(body_head=b"<html>", content_type="text/html; charset=utf-8", **PLACE),
    ChunkDecodeError(pos=17, raw=b'{"a', **PLACE),
    LimitExceeded(limit_name="max_event_bytes", limit=10, observed=11, **PLACE),
    errors.InvalidToolIndex(detail="-1", **PLACE),
    errors.ToolCallConflict(rule="unstable_id", detail="call_2", **PLACE),
    errors.OrphanDelta(**PLACE),
    ArgumentsError(state="invalid", reason="not_json", part=2, call_id="call_1", pos=5),
    UpstreamError(code="529", kind="overloaded_error", message="Overloaded", **PLACE),
    TruncatedStream(where="mid_arguments", open_items=(1, 4), **PLACE),
    UnknownDialect(seen=("foo", "type"), **PLACE),
    errors.LifecycleError(violations=("a",)),
    errors.InternalError(detail="KeyError"),
]


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    lines = re.findall(r"^ {4}[ |`-]*(\w+)(?:\((\w+)\))?", errors.__doc__ or "", re.MULTILINE)
    drawn = dict(lines)
    assert drawn == {cls.__name__: drawn.get(cls.__name__) for cls in CLASSES}
    depth = {m[1]: m.start(1) - m.start() for m in re.finditer(r"^[ |`-]*(\w+)", errors.__doc__ or "", re.MULTILINE)}
    above: list[type] = []
    for name, builtin in lines:
        cls = getattr(errors, name)
        while above and depth[above[-1].__name__] >= depth[name]:
            above.pop()
        if above:
            assert cls.__bases__[0] is above[-1], name
        if builtin:
            assert builtin in [base.__name__ for base in cls.__bases__]
        above.append(cls)


def test_what_the_standard_library_would_raise() -> None:
    assert issubclass(ChunkDecodeError, ValueError)
    assert issubclass(ArgumentsError, ValueError)
    assert issubclass(TruncatedStream, EOFError)
    assert issubclass(UsageError, RuntimeError)
    assert issubclass(ParserBusy, UsageError)
    assert issubclass(MissingExtra, ImportError)
    assert issubclass(MissingExtra, UsageError)
    assert not issubclass(UsageError, StreamError)
    assert all(issubclass(cls, StreamweldError) for cls in CLASSES)


def test_every_code_that_raises_names_a_class() -> None:
    for code in CODES.values():
        if code.raises is not None:
            error = getattr(errors, code.raises)(rule=code.name, **PLACE)
            assert str(error).startswith(code.text.rstrip("."))
            assert f"[{code.name} at byte 12, event 3]" in str(error)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            SAMPLES[1],
            (
                "The data is not valid UTF-8; the invalid bytes were replaced with U+FFFD "
                "[invalid_utf8 at byte 12, event 3]"
            ),
        ),
        (
            SAMPLES[2],
            (
                "the body is not an event stream: content type text/html; charset=utf-8 "
                "[not_an_event_stream at byte 12, event 3]; the body is an HTML page: check the URL, the credentials, "
                "and proxies on the way to the gateway"
            ),
        ),
        (SAMPLES[3], "The data of an event is not valid JSON (position 17) [malformed_json at byte 12, event 3]"),
        (
            SAMPLES[4],
            "the stream exceeds max_event_bytes: 10 [limit_max_event_bytes at byte 12, event 3]",
        ),
        (
            SAMPLES[8],
            "the tool call is invalid; `reason` states why: not_json [arguments_invalid]",
        ),
        (
            SAMPLES[9],
            (
                "The gateway sent an error in the stream: overloaded_error: 529: Overloaded "
                "[upstream_error at byte 12, event 3]"
            ),
        ),
        (
            SAMPLES[10],
            (
                "The stream ended before the response was complete: "
                "mid_arguments, 2 open parts [truncated at byte 12, event 3]"
            ),
        ),
        (
            SAMPLES[11],
            (
                f"the dialect is unknown (supported: {', '.join(DIALECTS)}): "
                "saw foo, type [unknown_dialect at byte 12, event 3]"
            ),
        ),
        (TruncatedStream(where="empty", byte_offset=2), "the body contains no events: empty [truncated at byte 2]"),
        (TruncatedStream(where="idle", open_items=(0,)), "the stream stalled: idle, 1 open part [truncated]"),
    ],
)
def test_sentences(error: StreamError, sentence: str) -> None:
    assert str(error) == sentence
    assert error.args == (sentence,)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_a_sentence_is_one_line_without_payload(error: StreamError) -> None:
    assert str(error).isprintable()
    loud = type(error)(raw=b"SECRET" * 100, detail="a\n\x1b[31m\u202eb" + "x" * 9999, **PLACE)
    assert str(loud).isprintable()
    assert len(str(loud)) < 600
    assert "SECRET" not in str(loud) + repr(loud)
    assert len(loud.raw) == 256


def test_what_a_gateway_says_is_escaped() -> None:
    error = UpstreamError(message="no\r\n\x1b]52;c;x\x07\N{RIGHT-TO-LEFT OVERRIDE}", kind="a\nb")
    assert str(error).isprintable()
    assert "no\\r\\n\\x1b]52;c;x\\x07\\u202e" in str(error)
    assert error.message.startswith("no\r\n")


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_pickle(error: StreamError) -> None:
    error.partial = Response([events.TextDone(0, "Hi")], "truncated")
    error.events = [events.TextDelta(0, "Hi")]
    error.policy = "standard"
    error.add_note("a note")
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(error, protocol))
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
        assert again.args == error.args


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_to_dict_is_json(error: StreamError) -> None:
    made = error.to_dict()
    assert json.loads(json.dumps(made)) == made
    assert made["error"] == type(error).__name__
    assert made["text"] == str(error)
    assert made["rule"] == error.rule
    assert not {"raw", "body_head", "partial", "events"} & made.keys()
    with_raw = error.to_dict(include_raw=True)
    assert json.loads(json.dumps(with_raw)) == with_raw
    assert with_raw["raw"] == error.raw.decode()


def test_raw_is_only_there_when_it_is_asked_for() -> None:
    error = NotAnEventStream(body_head=b"<html>\xff", raw=b"\xff")
    assert error.to_dict(include_raw=True)["body_head"] == "<html>\N{REPLACEMENT CHARACTER}"
    assert "<html>" not in json.dumps(error.to_dict())


@pytest.mark.parametrize("cls", STREAM_CLASSES)
def test_every_class_can_be_made_with_nothing_and_takes_no_unknown_word(cls: type[StreamError]) -> None:
    error = cls()
    assert error.rule
    assert (error.byte_offset, error.event_ordinal, error.partial, error.events) == (None, None, None, [])
    assert "\n" not in str(error)
    with pytest.raises(TypeError, match="nonsense"):
        cls(nonsense=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("cls", STREAM_CLASSES)
def test_every_class_is_documented(cls: type[StreamError]) -> None:
    assert inspect.getdoc(cls)


@pytest.mark.parametrize(
    ("code", "kind", "expected"),
    [
        ("429", "insufficient_quota", False),
        ("429", None, True),
        ("rate_limit_exceeded", "requests", True),
        (None, "overloaded_error", True),
        ("503", None, True),
        ("400", "invalid_request_error", False),
        ("CONTEXT_LENGTH_EXCEEDED", None, False),
        ("strange", "stranger", None),
        (None, None, None),
    ],
)
def test_whether_another_try_may_help(code: str | None, kind: str | None, expected: bool | None) -> None:
    assert UpstreamError(code=code, kind=kind).retryable is expected
    assert UpstreamError(code=code, kind=kind, retryable=True).retryable is True


def test_retryable_of_the_others() -> None:
    assert TruncatedStream().retryable is True
    assert LimitExceeded().retryable is False
    assert ChunkDecodeError().retryable is None
    assert AssemblyError(retryable=False).retryable is False


def test_errors_of_the_caller() -> None:
    missing = MissingExtra("cli", "click")
    assert str(missing) == "click is not installed: pip install 'streamweld[cli]'"
    assert (missing.extra, missing.package) == ("cli", "click")
    again = pickle.loads(pickle.dumps(missing))
    assert (str(again), again.extra) == (str(missing), "cli")
    history = HistoryError("orphan_result", "/messages/3", ["a"])
    assert (history.rule, history.path, history.violations) == ("orphan_result", "/messages/3", ("a",))
    assert str(history) == "/messages/3: orphan_result"
    assert vars(pickle.loads(pickle.dumps(history))) == vars(history)
    assert (str(HistoryError("unknown_role")), str(HistoryError("last_role", detail="no"))) == (
        *("unknown_role", "last_role: no"),
    )
    detailed = HistoryError("unknown_role", "/0/role", detail="'frog'\x1b[31m is not a role")
    assert str(detailed) == "/0/role: unknown_role: 'frog'\\x1b[31m is not a role"
    assert (str(pickle.loads(pickle.dumps(detailed))), detailed.detail) == (
        str(detailed),
        "'frog'\x1b[31m is not a role",
    )
    assert str(pickle.loads(pickle.dumps(UsageError("closed")))) == "closed"


def test_repr_shows_the_facts() -> None:
    assert repr(SAMPLES[10]) == (
        "TruncatedStream(rule='truncated', where='mid_arguments', open_items=(1, 4), byte_offset=12, event_ordinal=3)"
    )
