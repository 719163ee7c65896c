"""Runs every cell of `vectors/dropin` through the official clients of the current interpreter, and prints JSON.

    python -m tests.integrations.dropin.clients [plain]        one object: "chat/a/async/helper" -> the result

`helper` is the client's own accumulating `.stream()`; `iter` is a loop over `create(stream=True)`, as users write it,
that uses every fragment as sent. With `plain`, the streams are not repaired.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import anthropic
import openai
from streamweld.integrations import anthropic as our_anthropic
from streamweld.integrations import openai as our_openai

from tests.integrations.dropin.outcome import Outcome
from tests.integrations.dropin.server import Gateway
from tests.integrations.dropin.streams import APIS, answers, cells

MESSAGES: Any = [{"role": "user", "content": "go"}]
CHAT: Any = {"model": "m", "messages": MESSAGES}
RESPONSES: Any = {"model": "m", "input": "go"}
CLAUDE: Any = {"model": "m", "messages": MESSAGES, "max_tokens": 99}


class ChatLoop:
    """Joins fragments with the same index, as in the documentation of every vendor."""

    def __init__(self, into: Outcome) -> None:
        self.into = into
        self.at: dict[Any, list[Any]] = {}

    def take(self, chunk: Any) -> None:
        for choice in chunk.choices:
            self.into.text += choice.delta.content or ""
            self.into.finish = choice.finish_reason or self.into.finish
            for piece in choice.delta.tool_calls or []:
                if piece.index not in self.at:
                    self.at[piece.index] = ["", "", ""]
                    self.into.calls.append(self.at[piece.index])
                call = self.at[piece.index]
                call[0] += piece.id or ""
                call[1] += (piece.function and piece.function.name) or ""
                call[2] += (piece.function and piece.function.arguments) or ""


class ResponsesLoop:
    """Takes items from their `done` events, and never raises."""

    def __init__(self, into: Outcome) -> None:
        self.into = into

    def take(self, event: Any) -> None:
        if event.type == "response.output_text.delta":
            self.into.text += event.delta
        elif event.type == "response.output_item.done" and event.item.type == "function_call":
            self.into.calls.append([event.item.call_id, event.item.name, event.item.arguments])
        elif event.type in ("response.completed", "response.incomplete", "response.failed"):
            self.into.finish = event.response.status
            self.into.told = event.response.error and event.response.error.message
        elif event.type == "error":
            self.into.told = event.message


class MessagesLoop:
    def __init__(self, into: Outcome) -> None:
        self.into = into
        self.at: dict[int, list[Any]] = {}

    def take(self, event: Any) -> None:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            self.at[event.index] = [event.content_block.id, event.content_block.name, ""]
            self.into.calls.append(self.at[event.index])
        elif event.type == "content_block_delta":
            if event.delta.type == "input_json_delta":
                self.at[event.index][2] += event.delta.partial_json
            elif event.delta.type == "text_delta":
                self.into.text += event.delta.text
        elif event.type == "message_delta":
            self.into.finish = event.delta.stop_reason or self.into.finish


LOOPS: Any = {"chat": ChatLoop, "responses": ResponsesLoop, "messages": MessagesLoop}


def final(api: str, into: Outcome, done: Any) -> None:
    """Store the final result of the helper."""
    if api == "chat":
        choice = done.choices[0]
        into.text, into.finish = choice.message.content or "", choice.finish_reason
        calls = choice.message.tool_calls or []
        into.calls = [[call.id, call.function.name, call.function.arguments] for call in calls]
    elif api == "responses":
        items = [item for item in done.output if item.type == "function_call"]
        into.text, into.finish = done.output_text, done.status
        into.calls = [[item.call_id, item.name, item.arguments] for item in items]
    else:
        uses = [block for block in done.content if block.type == "tool_use"]
        into.text, into.finish = "".join(b.text for b in done.content if b.type == "text"), done.stop_reason
        into.calls = [[use.id, use.name, use.input] for use in uses]


def make(api: str, *, asynchronous: bool, repaired: bool) -> Any:
    if api == "messages":
        kind: Any = anthropic.AsyncAnthropic if asynchronous else anthropic.Anthropic
        client = kind(api_key="k", max_retries=0)
        return our_anthropic.repair(client) if repaired else client
    kind = openai.AsyncOpenAI if asynchronous else openai.OpenAI
    client = kind(api_key="k", max_retries=0)
    return our_openai.repair(client) if repaired else client


def at(client: Any, api: str, gateway: Gateway, cell: str) -> Any:
    """Return the same client with the address of one response of the gateway."""
    url = gateway.url(f"{api}-{cell}")
    return client.with_options(base_url=url if api == "messages" else url + "/v1")


def started(client: Any, api: str, *, helper: bool) -> Any:
    """Return the stream: a context manager for the helper, otherwise the value of `create`, which may have to be
    awaited.
    """
    if api == "chat":
        create = client.chat.completions
        return create.stream(**CHAT) if helper else create.create(**CHAT, stream=True)
    if api == "responses":
        return client.responses.stream(**RESPONSES) if helper else client.responses.create(**RESPONSES, stream=True)
    return client.messages.stream(**CLAUDE) if helper else client.messages.create(**CLAUDE, stream=True)


FINALS = {"chat": "get_final_completion", "responses": "get_final_response", "messages": "get_final_message"}


def run_sync(client: Any, api: str, *, helper: bool) -> Outcome:
    out = Outcome()
    try:
        if helper:
            with started(client, api, helper=True) as stream:
                final(api, out, getattr(stream, FINALS[api])())
        else:
            loop = LOOPS[api](out)
            for event in started(client, api, helper=False):
                loop.take(event)
    except Exception as error:  # noqa: BLE001 (any exception is the result)
        out.error = error
    return out


async def run_async(client: Any, api: str, *, helper: bool) -> Outcome:
    out = Outcome()
    try:
        if helper:
            async with started(client, api, helper=True) as stream:
                final(api, out, await getattr(stream, FINALS[api])())
        else:
            loop = LOOPS[api](out)
            async for event in await started(client, api, helper=False):
                loop.take(event)
    except Exception as error:  # noqa: BLE001 (any exception is the result)
        out.error = error
    return out


WAYS = {"helper": True, "iter": False}


async def run_async_all(gateway: Gateway, *, repaired: bool) -> dict[str, Outcome]:
    found = {}
    for api in APIS:
        async with make(api, asynchronous=True, repaired=repaired) as client:
            for cell in cells(api):
                for way, helper in WAYS.items():
                    one = at(client, api, gateway, cell["name"])
                    found[f"{api}/{cell['name']}/async/{way}"] = await run_async(one, api, helper=helper)
    return found


def run_sync_all(gateway: Gateway, *, repaired: bool) -> dict[str, Outcome]:
    found = {}
    for api in APIS:
        with make(api, asynchronous=False, repaired=repaired) as client:
            for cell in cells(api):
                for way, helper in WAYS.items():
                    one = at(client, api, gateway, cell["name"])
                    found[f"{api}/{cell['name']}/sync/{way}"] = run_sync(one, api, helper=helper)
    return found


def main(repaired: bool) -> dict[str, Any]:
    with Gateway(answers()) as gateway:
        found = run_sync_all(gateway, repaired=repaired)
        found |= asyncio.run(run_async_all(gateway, repaired=repaired))
        if not gateway.quiet():
            raise AssertionError(f"{gateway.open} connections were left open")
    return {name: outcome.to_json() for name, outcome in found.items()}


if __name__ == "__main__":
    result = main("plain" not in sys.argv)
    print(json.dumps({"versions": [openai.__version__, anthropic.__version__], "cells": result}))
