"""Bodies that are not streams: recognized by their first bytes, with a message that suggests a fix."""

from __future__ import annotations

import gzip
import re
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import brotli
import pytest
import streamweld as sw
from streamweld import stream
from streamweld._messages import choice_message, input_hint
from streamweld.cli.sample import sample
from streamweld.options import DIALECTS

from tests.support.backends import make_parser, using
from tests.support.corpus import absent, recordings
from tests.support.servers.wire import end, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

CHAT = text("Hello") * 20 + end("stop")
ANTHROPIC = (
    b'event: message_start\ndata: {"type":"message_start","message":{}}\n\nevent: ping\ndata: {"type":"ping"}\n\n'
)
ZSTD = bytes.fromhex("28b52ffd04581100") + b"abc\xff" * 50
PROGRAM = b"\x7fELF\x02\x01\x01" + bytes(57) + b"\ndata: \x01\x02\n\n" * 40
UPPER = b"<!DOCTYPE HTML>\n<title>502</title>"


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (gzip.compress(CHAT), "compressed with gzip: decompress it first"),
        (zlib.compress(CHAT), "compressed with deflate: decompress it first"),
        (brotli.compress(sample()), "may be compressed (for example, with br): decompress it first"),
        (ZSTD, "compressed with zstd: decompress it first"),
        (b"\n  <html><body>502 Bad Gateway</body></html>", "is an HTML page: check the URL"),
        (UPPER, "is an HTML page: check the URL"),
        (b"\xef\xbb\xbf" + UPPER, "is an HTML page: check the URL"),
        (b"<!-- 502 --> <!-- gateway -->\n<html></html>", "is an HTML page: check the URL"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "is an XML document: check the URL"),
        (PROGRAM, "is an executable program (ELF)"),
        (CHAT.decode().encode("utf-16"), "is UTF-16 text: pass the bytes"),
        (CHAT.decode().encode("utf-16-le"), "is UTF-16 text: pass the bytes"),
        (CHAT.decode().encode("utf-16-be"), "is UTF-16 text: pass the bytes"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "is a PDF document"),
        (str(CHAT).encode(), "the repr of a bytes object: pass the bytes themselves"),
    ],
)
@pytest.mark.parametrize("size", [1, 1000])
def test_what_a_body_is_and_what_to_do(
    body: bytes, told: str, size: int, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "backend", backend)
    with pytest.raises(sw.StreamError) as whole:
        sw.parse(body)
    with pytest.raises(sw.StreamError) as streamed:
        list(sw.iter_events(body[at : at + size] for at in range(0, len(body), size)))
    for caught in (whole.value, streamed.value):
        assert told in caught.hint
        assert str(caught).endswith(f"]; {caught.hint}")


@pytest.mark.parametrize("body", [CHAT, ANTHROPIC, sample(), CHAT.replace(b"\n", b"\r\n")])
@pytest.mark.parametrize("blank", [True, False])
def test_lines_without_their_ends(body: bytes, blank: bool, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that `requests.Response.iter_lines()` yields."""
    monkeypatch.setattr(stream, "backend", backend)
    lines = [line for line in body.splitlines() if line or blank]
    with pytest.raises(sw.StreamError) as caught:
        list(sw.iter_events(lines))
    assert (
        caught.value.hint
        == "the input has no line endings: pass raw bytes (iter_bytes()), not the lines of iter_lines()"
    )


@pytest.mark.parametrize("policy", ["strict", "standard", "salvage"])
def test_a_stream_gets_no_hint(policy: Any) -> None:
    """A body that was recognized as a stream gets no hint, even if it fails."""
    for body in (text("a"), text("data: event: x") + b"data: {\n\n", b"", b": keep-alive\n\n", text("\x01" * 90)):
        fault: sw.StreamError | None = None
        try:
            sw.parse(body, policy=policy)
        except sw.StreamError as error:
            fault = error
        assert fault is None or fault.hint == ""


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_no_recording_looks_like_something_else() -> None:
    heads = [Path(recording.stream).read_bytes()[:512] for recording in recordings()]
    assert len(heads) > 10
    assert [head for head in heads if input_hint(head)] == []
    assert not any(input_hint(head[:length]) for head in heads[:20] for length in range(0, 512, 7))


@pytest.mark.skipif(absent() is not None, reason=absent() or "")
def test_recorded_lines_without_their_ends_are_never_read(backend: str) -> None:
    tried, others = 0, []
    for recording in recordings():
        lines = re.split(rb"\r\n|\n|\r", Path(recording.stream).read_bytes())
        for sent in (lines, lines[: len(lines) * 2 // 3]):
            if sum(line.startswith(b"data:") for line in sent) < 2:
                continue
            tried += 1
            with using(backend), pytest.raises(sw.StreamError) as caught:
                list(sw.iter_events(sent))
            assert caught.value.partial is not None
            assert caught.value.partial.choices == ()
            if caught.value.rule != "line_ends_missing":
                others.append((Path(recording.stream).name, caught.value.rule))
    assert tried > 100
    # Its first line begins with a space, so it is no field, and the whole stream is part of it.
    assert set(others) <= {("openai__llm-test-tools-streaming-variant-c.sse", "not_an_event_stream")}


READS: Iterable[Any] = (
    sw.parse,
    lambda data: sw.StreamParser().feed(data),
    lambda data: list(sw.iter_events([data])),
    lambda data: sw.convert(data, target="responses"),
    sw.check,
)


@pytest.mark.parametrize("read", READS)
def test_text_instead_of_bytes(read: Any) -> None:
    with pytest.raises(
        TypeError, match=r"not from str: pass iter_bytes\(\) instead of iter_text\(\) or iter_lines\(\)"
    ):
        read(CHAT.decode())


def test_the_name_of_a_file_instead_of_its_bytes() -> None:
    with pytest.raises(TypeError, match=r"to read a file, pass Path\(name\)\.read_bytes\(\)"):
        sw.parse("answers/mine.sse")  # type: ignore[arg-type]


def test_an_asynchronous_source_in_a_synchronous_call() -> None:
    async def pieces() -> Any:
        yield CHAT

    with pytest.raises(TypeError, match=r"'async_generator' is for aiter_events\(\)"):
        sw.iter_events(pieces())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"'async_generator' is for aconvert\(\)"):
        sw.iter_convert(pieces(), target="responses")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("openai", "chat or responses"),
        ("OpenAI", "chat or responses"),
        ("claude", "anthropic"),
        ("chat_completions", "chat"),
        ("google", "gemini"),
        ("ai_sdk", "ai-sdk-parts or ai-sdk-ui"),
        ("antropic", "anthropic"),
    ],
)
def test_a_dialect_that_was_probably_meant(given: Any, meant: str) -> None:
    told = rf"^dialect='{given}': it must be one of auto, .*; did you mean {meant}\?$"
    for read in (sw.parse, sw.check):
        with pytest.raises(sw.UsageError, match=told):
            read(CHAT, dialect=given)
    with pytest.raises(sw.UsageError, match=rf"^target='{given}': .*; did you mean {meant}\?$"):
        sw.convert(CHAT, target=given)


def test_a_dialect_that_nobody_can_have_meant() -> None:
    assert choice_message("dialect", "klingon", DIALECTS).endswith("ai-sdk-ui")
    assert choice_message("dialect", 5, DIALECTS).endswith("ai-sdk-ui")


@pytest.mark.parametrize(("given", "meant"), [("openai", "openai-chat or responses"), ("claude", "anthropic")])
def test_the_hint_for_a_request(given: str, meant: str) -> None:
    for name, options in (("source", {"target": "gemini"}), ("target", {"source": "chat"})):
        with pytest.raises(sw.UsageError, match=f"^{name}='{given}': .*; did you mean {meant}\\?"):
            sw.requests.convert({"messages": []}, **options, **{name: given})  # type: ignore[arg-type]
    with pytest.raises(sw.UsageError, match=r"^source='chats': it must be one of auto, openai-chat, "):
        sw.requests.convert({"messages": []}, source="chats", target="gemini")  # type: ignore[arg-type]


def test_the_hint_for_a_history() -> None:
    with pytest.raises(sw.UsageError, match=r"target='openai': .*; did you mean chat or responses\?"):
        sw.history.convert([], target="openai")  # type: ignore[arg-type]
    with pytest.raises(sw.UsageError, match=r"did you mean openai-chat or responses\?"):
        sw.history.check([], target="openai")  # type: ignore[arg-type]
    with pytest.raises(sw.UsageError, match=r"did you mean mistral\?$"):
        sw.history.convert([], target="mistral-large")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("deep-seek", "one of openai-chat, .*; did you mean deepseek\\? \\(or pass a mapping\\)"),
        ("azure", "one of openai-chat, .*; did you mean azure-openai\\? "),
        ("vercel", "one of openai-chat, .*; did you mean vercel-ai-gateway\\? \\(or pass a mapping\\)"),
        ("deepseek@2020-01-01", "one of deepseek@2026-11-01; did you mean deepseek@2026-11-01\\?"),
        ("klingon", "one of openai-chat, [^;]* \\(or pass a mapping\\)"),
    ],
)
def test_the_hint_for_a_gateway(given: str, hint: str) -> None:
    with pytest.raises(sw.UsageError, match=f"^gateway='{given}': it must be {hint}"):
        sw.history.check([], target="chat", gateway=given)


def test_the_hint_for_a_provider() -> None:
    with pytest.raises(sw.UsageError, match=r"^provider='antropic': .*; did you mean anthropic\?$"):
        sw.history.convert([], target="chat", provider="antropic")


UNRECOGNIZED = {
    b'{"foo":1}': "it begins with '{\"foo\":1}'",
    b'data: {"foo":"\xe2\x98\x83"}\n\n': 'it begins with \'{"foo":"\N{SNOWMAN}"}\'',
    b"no stream, only the text of a page that somebody wrote\n": (
        "it begins with 'no stream, only the text of a page that '\N{HORIZONTAL ELLIPSIS}"
    ),
    b"a\x1b[31m\xe2\x80\xae\xff\n": "it begins with 'a\\x1b[31m\\u202e\N{REPLACEMENT CHARACTER}\\n'",
}


@pytest.mark.parametrize("body", UNRECOGNIZED)
def test_an_unrecognized_body_is_quoted_in_the_error(body: bytes, backend: str) -> None:
    with using(backend), pytest.raises((sw.UnknownDialect, sw.NotAnEventStream)) as caught:
        sw.parse(body)
    assert f"{UNRECOGNIZED[body]} [" in str(caught.value)


def test_a_body_with_a_hint_is_not_quoted(backend: str) -> None:
    with using(backend), pytest.raises(sw.NotAnEventStream) as caught:
        sw.parse(b"<html>token=secret</html>")
    assert "an HTML page" in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("given", ["responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui"])
def test_another_dialect_is_named_as_the_one_to_read_with(given: Any, backend: str) -> None:
    body = b'data: {"object":"chat.completion.chunk","choices":[{"delta":{"content":"Hi"}}]}\n\n'
    with using(backend), pytest.raises(sw.UnknownDialect) as caught:
        sw.parse(body, dialect=given)
    assert str(caught.value).endswith("; use the dialect chat or auto")
    assert caught.value.hint == "use the dialect chat or auto"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("openai", "chat or responses"),
        ("gpt-5", "chat or responses"),
        ("claude", "anthropic"),
        ("claude-opus-5", "anthropic"),
        ("google", "gemini"),
        ("gemini-3-pro", "gemini"),
        ("mistral-large", "chat"),
    ],
)
def test_the_name_of_a_vendor_or_model_suggests_its_dialect(given: Any, meant: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: sw.parse(b"", dialect=given),
        lambda: sw.check(b"", dialect=given),
        lambda: sw.convert(b"", source=given, target="chat"),
        lambda: sw.convert(b"", target=given),
        lambda: sw.StreamConverter(source="auto", target=given),
    ]
    for call in calls:
        with pytest.raises(sw.UsageError, match=f"; did you mean {meant}\\?$"):
            call()


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_the_head_of_a_body_with_keep_alives_is_whole(size: int, backend: str) -> None:
    """Payloads that are held before the dialect is detected, and turn out to be keep-alives, do not end the head."""
    body = (
        b'event: ping\ndata: {"type":"ping"}\neat"}}\n\n'
        b'event: response.ping\ndata: {"type":[]}\n\n'
        b'event: response.heartbeat\ndata: {"type":"response.heartbeat"}\n\n'
        b"event: ping\nevent: keepalive\ndata: {}\n\n"
    )
    with pytest.raises(sw.NotAnEventStream) as caught:
        read_in_pieces(make_parser(backend, dialect="auto"), body, size)
    assert caught.value.raw == body


def read_in_pieces(parser: sw.StreamParser, body: bytes, size: int) -> None:
    for start in range(0, len(body), size):
        list(parser.feed(body[start : start + size]))
    list(parser.close())
