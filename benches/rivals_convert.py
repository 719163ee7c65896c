"""Other converters of streams: Chat Completions -> Responses and Responses -> Messages, bytes in and bytes out.

The job is to convert the body of a streamed response, as reads of an HTTP client, to the bytes of the same response in
the target dialect. Each rival is used as in its documentation or through its own entry point.

linguafranca: the loop of its README (`parse_sse`, `json.loads`) around `convert_response_stream_json`, whose dicts are
dumped into frames. Its inner step is also measured separately: dicts in, dicts out.

litellm, Chat -> Responses: `completion(stream=True)` over the official client, whose HTTP library returns the reads,
and its `LiteLLMCompletionStreamingIterator`, which `litellm.responses()` returns for a provider that supports only Chat
Completions. `responses()` itself cannot be called without the extra `mcp`.

litellm, Responses -> Messages: the objects that `litellm.anthropic.messages` creates for an OpenAI model:
`ResponsesAPIStreamingIterator` over the HTTP response, and `AnthropicResponsesStreamWrapper` around it. The bridges are
also measured separately: parsed chunks in, events out. This module does not depend on streamweld.
"""

from __future__ import annotations

import asyncio
import json
import os
from datetime import UTC, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    Run = Callable[[], bytes]

MODEL: Final = "gpt-4.1-mini"
MESSAGES: Final = [{"role": "user", "content": "Hello"}]
URL: Final = "https://upstream.example/v1"


def rivals(source: str, target: str, reads: list[bytes]) -> dict[str, Run]:
    """Return the installed converters by name; each returns the bytes of the target's stream."""
    found: dict[str, Run] = {}
    if find_spec("linguafranca") is not None:
        found |= _linguafranca(source, target, reads)
    if find_spec("litellm") is not None:
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # without this, its import accesses the network
        found |= _to_responses(reads) if target == "responses" else _to_messages(reads)
    return found


def _frames(events: Iterator[dict[str, Any]]) -> bytes:
    return "".join([f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events]).encode()


def _parsed(reads: list[bytes]) -> Iterator[dict[str, Any]]:
    rest = b""
    for read in reads:
        *lines, rest = (rest + read).split(b"\n")
        for line in lines:
            if line.startswith(b"data: ") and line != b"data: [DONE]":
                yield json.loads(line[6:])


def _linguafranca(source: str, target: str, reads: list[bytes]) -> dict[str, Run]:
    import linguafranca as lf

    names = {
        "chat": lf.FormatName.OPENAI_CHAT_COMPLETIONS,
        "responses": lf.FormatName.OPEN_RESPONSES,
        "anthropic": lf.FormatName.ANTHROPIC_MESSAGES,
    }

    def converted(events: Any) -> Any:
        return lf.convert_response_stream_json(events, source_format=names[source], target_format=names[target])

    parsed = list(_parsed(reads))
    return {
        "linguafranca": lambda: _frames(converted(_parsed(reads))),
        "linguafranca: dicts to dicts": lambda: _later(list(converted(parsed)), _frames),
    }


class _Later(bytes):
    """The output of an inner step, converted to bytes only when it is checked."""

    made: Callable[[], bytes]


def _later(made: Any, dump: Callable[[Any], bytes]) -> bytes:
    out = _Later()
    out.made = lambda: dump(made)
    return out


def body_of(made: bytes) -> bytes:
    """Return the bytes of the stream; the output of an inner step is dumped here."""
    return made.made() if isinstance(made, _Later) else made


def _to_responses(reads: list[bytes]) -> dict[str, Run]:
    import httpx
    import litellm
    import openai
    from litellm.responses.litellm_completion_transformation.streaming_iterator import (
        LiteLLMCompletionStreamingIterator,
    )

    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, content=iter(reads))

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = openai.OpenAI(api_key="none", base_url=URL, http_client=http)

    def upstream() -> Any:
        return litellm.completion(model=f"openai/{MODEL}", messages=MESSAGES, stream=True, client=client)

    def bridged(chunks: Any) -> list[Any]:
        iterator = LiteLLMCompletionStreamingIterator(
            model=MODEL,
            litellm_custom_stream_wrapper=chunks,
            request_input="Hello",
            responses_api_request={},
            custom_llm_provider="openai",
        )
        return list(iterator)

    def dumped(events: list[Any]) -> bytes:
        return "".join([f"data: {event.model_dump_json(exclude_none=True)}\n\n" for event in events]).encode()

    wrapper = upstream()
    replay = _Replay(list(wrapper), wrapper.logging_obj)
    return {
        "litellm": lambda: dumped(bridged(upstream())),
        "litellm: bridge alone": lambda: _later(bridged(replay.again()), dumped),
    }


class _Replay:
    """Replaces the stream wrapper with chunks that are already parsed."""

    def __init__(self, chunks: list[Any], logging_obj: Any) -> None:
        self.chunks = chunks
        self.logging_obj = logging_obj
        self._at = iter(chunks)

    def again(self) -> _Replay:
        return _Replay(self.chunks, self.logging_obj)

    def __next__(self) -> Any:
        return next(self._at)


def _to_messages(reads: list[bytes]) -> dict[str, Run]:
    import httpx
    from litellm.litellm_core_utils.litellm_logging import Logging
    from litellm.llms.anthropic.pass_through.responses_adapters.streaming_iterator import (
        AnthropicResponsesStreamWrapper,
    )
    from litellm.llms.openai.responses.transformation import OpenAIResponsesAPIConfig
    from litellm.responses.streaming_iterator import ResponsesAPIStreamingIterator

    async def body() -> AsyncIterator[bytes]:
        for read in reads:
            yield read

    def upstream() -> Any:
        log = Logging(
            model=MODEL,
            messages=MESSAGES,
            stream=True,
            call_type="aresponses",
            start_time=datetime.now(UTC),
            litellm_call_id="call",
            function_id="function",
        )
        response = httpx.Response(200, content=body(), request=httpx.Request("POST", URL))
        return ResponsesAPIStreamingIterator(
            response=response,
            model=MODEL,
            responses_api_provider_config=OpenAIResponsesAPIConfig(),
            logging_obj=log,
            custom_llm_provider="openai",
        )

    async def bridged(stream: Any) -> bytes:
        frames = AnthropicResponsesStreamWrapper(stream, MODEL).async_anthropic_sse_wrapper()
        return b"".join([frame async for frame in frames])

    async def whole() -> bytes:
        return await bridged(upstream())

    async def parsed() -> list[Any]:
        return [event async for event in upstream()]

    async def replayed() -> AsyncIterator[Any]:
        for event in events:
            yield event

    async def alone() -> bytes:
        return await bridged(replayed())

    events = asyncio.run(parsed())
    return {"litellm": lambda: asyncio.run(whole()), "litellm: bridge alone": lambda: asyncio.run(alone())}
