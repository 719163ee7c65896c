"""Five turns with tools, sent by the official client of each API through the proxy to an upstream of each API.

The judge of histories checks the upstream requests with vendors' types and rules, without code of streamweld. Every
response contains reasoning that its provider signed or encrypted, and each later request must return it to the upstream
unchanged.
"""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import anthropic
import openai
import pytest
from google import genai
from google.genai import types
from streamweld import StreamConverter, history
from streamweld.errors import UsageError
from streamweld.history import profiles
from streamweld.integrations.proxy import ProxyConfig
from streamweld.integrations.proxy.config import PROXY_DIALECTS
from streamweld.integrations.proxy.unstreamed import converted

from tests.conftest import FULL
from tests.history.judge.matrix import plain
from tests.history.judge.vendors import judge
from tests.proxy.test_proxy_convert import WEATHER, in_turn, named
from tests.requests.official import complaints
from tests.support.servers.proxying import between
from tests.support.servers.upstream import Upstream
from tests.support.servers.wire import DONE, call, chunk, event

if TYPE_CHECKING:
    from collections.abc import Callable

CITIES = (("Oslo",), ("Rome", "Bern"), ("Lima",), ("Kyiv",))
LAST = "It is cold."
TURNS = len(CITIES) + 1
MODEL = "gpt-5.6"  # a Responses model that reasons by default, so reasoning is requested from the first turn on
CONTAINER = {"chat": "messages", "anthropic": "messages", "responses": "input", "gemini": "contents"}
TARGET = {"chat": "openai-chat"}


# --- Upstreams: each responds to a turn with a sentence and its calls; the last response has no calls


def ids_of(turn: int) -> list[str]:
    return [f"call_{turn}{place}" for place in range(len(CITIES[turn]))]


def told(turn: int) -> tuple[str, list[tuple[str, str, str]]]:
    if turn == TURNS - 1:
        return LAST, []
    cities = CITIES[turn]
    pairs = zip(ids_of(turn), cities, strict=True)
    return f"I look at {cities[0]}.", [(word, "weather", json.dumps({"city": city})) for word, city in pairs]


def thought(turn: int) -> str:
    return f"In step {turn} I weigh\n\nthe cities."


def secret(turn: int, kind: str = "signed") -> str:
    """Return a signature or encrypted value in base64, as providers send it."""
    return b64encode(f"{kind} {turn} \u00fc?>~".encode() * 9).decode()


def secrets_of(to: str, turns: int) -> list[str]:
    """Return the values that an upstream must find in a request after this number of responses, in order."""
    kinds = {"anthropic": ("signed", "redacted"), "gemini": ("text", "signed")}.get(to, ("signed",))
    return [secret(turn, kind) for turn in range(turns) for kind in kinds]


def of_chat(turn: int) -> list[bytes]:
    sentence, calls = told(turn)
    detail = {"type": "reasoning.text", "text": thought(turn), "index": 0, "format": "anthropic-claude-v1"}
    made = [
        chunk({"role": "assistant", "content": ""}, id=f"chatcmpl-{turn}", model="m", created=1),
        chunk({"reasoning": thought(turn), "reasoning_details": [detail]}),
        chunk({"reasoning_details": [detail | {"text": "", "signature": secret(turn)}]}),
        chunk({"content": sentence}),
    ]
    for index, (word, name, arguments) in enumerate(calls):
        made += [call(index, word, name, arguments[:4]), call(index, None, None, arguments[4:])]
    # openai-python joins the roles of all chunks.
    made[1:] = [one.replace(b'"role":"assistant",', b"").replace(b'"role": "assistant", ', b"") for one in made[1:]]
    return [*made, chunk({}, "tool_calls" if calls else "stop"), DONE]


def of_blocks(turn: int) -> list[bytes]:
    """Return a response of Chat Completions in which LiteLLM sends the blocks of Anthropic, one entry per event."""
    made = of_chat(turn)
    opening: dict[str, Any] = {"type": "thinking", "thinking": thought(turn), "signature": ""}
    blocks = [
        {"reasoning_content": thought(turn), "thinking_blocks": [opening]},
        {"thinking_blocks": [{"type": "thinking", "thinking": "", "signature": secret(turn)}]},
        {"thinking_blocks": [{"type": "redacted_thinking", "data": secret(turn, "redacted")}]},
    ]
    made[1:3] = [chunk(delta).replace(b'"role":"assistant",', b"") for delta in blocks]
    return made


def of_anthropic(turn: int) -> list[bytes]:
    sentence, calls = told(turn)
    usage = {"input_tokens": 7, "output_tokens": 1}
    message = {"id": f"msg_{turn}", "type": "message", "role": "assistant", "model": "m", "content": []}
    shown: list[dict[str, Any]] = [
        {"type": "message_start", "message": message | {"stop_reason": None, "stop_sequence": None, "usage": usage}},
        {
            "type": "content_block_start",
            "index": 0,
            "content_block": {"type": "thinking", "thinking": "", "signature": ""},
        },
        {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": thought(turn)}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": secret(turn)}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "redacted_thinking", "data": secret(turn, "redacted")},
        },
        {"type": "content_block_stop", "index": 1},
        {"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": sentence}},
        {"type": "content_block_stop", "index": 2},
    ]
    for index, (word, name, arguments) in enumerate(calls, 3):
        block = {"type": "tool_use", "id": word, "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": arguments}
        shown += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    shown += [{"type": "message_delta", "delta": end, "usage": {"output_tokens": 5}}, {"type": "message_stop"}]
    return [named(*shown)]


def of_responses(turn: int) -> list[bytes]:
    sentence, calls = told(turn)
    text = {"type": "output_text", "text": sentence, "annotations": [], "logprobs": []}
    message = {"type": "message", "id": f"msg_{turn}", "role": "assistant"}
    summary = {"type": "summary_text", "text": thought(turn)}
    thinks = {"type": "reasoning", "id": f"rs_{turn}", "summary": [summary], "encrypted_content": secret(turn)}
    items: list[dict[str, Any]] = [thinks, message | {"status": "completed", "content": [text]}]
    response = {"id": f"resp_{turn}", "object": "response", "created_at": 1, "model": "m", "error": None}
    response |= {"incomplete_details": None, "tools": [], "parallel_tool_calls": True, "tool_choice": "auto"}
    response |= {"instructions": None, "metadata": {}, "temperature": 1, "top_p": 1}
    place = {"item_id": message["id"], "output_index": 1, "content_index": 0}
    beside = {"item_id": thinks["id"], "output_index": 0, "summary_index": 0}
    shown: list[dict[str, Any]] = [
        {"type": "response.created", "response": response | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": thinks | {"summary": []}},
        {"type": "response.reasoning_summary_part.added", **beside, "part": summary | {"text": ""}},
        {"type": "response.reasoning_summary_text.delta", **beside, "delta": thought(turn)},
        {"type": "response.reasoning_summary_text.done", **beside, "text": thought(turn)},
        {"type": "response.reasoning_summary_part.done", **beside, "part": summary},
        {"type": "response.output_item.done", "output_index": 0, "item": thinks},
        {
            "type": "response.output_item.added",
            "output_index": 1,
            "item": message | {"status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": text | {"text": ""}},
        {"type": "response.output_text.delta", **place, "delta": sentence, "logprobs": []},
        {"type": "response.output_text.done", **place, "text": sentence, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": text},
        {"type": "response.output_item.done", "output_index": 1, "item": items[1]},
    ]
    for index, (word, name, arguments) in enumerate(calls, 2):
        item = {"type": "function_call", "id": f"fc_{word}", "call_id": word, "name": name}
        at = {"item_id": item["id"], "output_index": index}
        items.append(item | {"status": "completed", "arguments": arguments})
        added = item | {"status": "in_progress", "arguments": ""}
        shown += [
            {"type": "response.output_item.added", "output_index": index, "item": added},
            {"type": "response.function_call_arguments.delta", **at, "delta": arguments},
            {"type": "response.function_call_arguments.done", **at, "name": name, "arguments": arguments},
            {"type": "response.output_item.done", "output_index": index, "item": items[-1]},
        ]
    usage = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    usage |= {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    whole = response | {"status": "completed", "output": items, "usage": usage}
    shown.append({"type": "response.completed", "response": whole})
    return [named(*[one | {"sequence_number": number} for number, one in enumerate(shown)])]


def of_gemini(turn: int) -> list[bytes]:
    """Return a response of Gemini, which sends no ids, and signs the text and the first call of a turn."""
    sentence, calls = told(turn)
    parts: list[dict[str, Any]] = [
        {"functionCall": {"name": name, "args": json.loads(arguments)}} for _, name, arguments in calls
    ]
    if parts:
        parts[0]["thoughtSignature"] = secret(turn)
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}
    chunks: list[dict[str, Any]] = [
        {"content": {"role": "model", "parts": [{"text": thought(turn), "thought": True}]}, "index": 0},
        {"content": {"role": "model", "parts": [{"text": sentence}]}, "index": 0},
        {"content": {"role": "model", "parts": [{"text": "", "thoughtSignature": secret(turn, "text")}]}, "index": 0},
        {"content": {"role": "model", "parts": parts or [{"text": ""}]}, "index": 0, "finishReason": "STOP"},
    ]
    return [event({"candidates": [one], "modelVersion": "m", "usageMetadata": usage}) for one in chunks]


ANSWERS: dict[str, Callable[[int], list[bytes]]] = {
    "chat": of_chat,
    "responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
}


# --- Clients: each runs the tools until there are no more calls, and returns its last text and the requested cities


Outcome = tuple[str, list[str]]


def result(city: str) -> str:
    return f"-3 in {city}"


def by_chat(url: str) -> Outcome:
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": WEATHER}}]
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "How cold is it?"}]
    cities: list[str] = []
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        while True:
            with client.chat.completions.stream(model=MODEL, messages=messages, tools=tools) as stream:
                for _ in stream:
                    pass
                shown = stream.get_final_completion().choices[0].message
            messages.append(shown.model_dump(exclude_none=True, exclude={"parsed"}))
            if not shown.tool_calls:
                return shown.content or "", cities
            for one in shown.tool_calls:
                cities.append(json.loads(one.function.arguments)["city"])
                messages.append({"role": "tool", "tool_call_id": one.id, "content": result(cities[-1])})


def by_responses(url: str) -> Outcome:
    tools: list[Any] = [{"type": "function", "name": "weather", "parameters": WEATHER, "strict": False}]
    given: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    cities: list[str] = []
    with openai.OpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as client:
        while True:
            with client.responses.stream(
                model=MODEL, instructions="Be brief.", input=given, tools=tools, store=False
            ) as stream:
                shown = stream.get_final_response()
            hidden = {"parsed_arguments": True, "content": {"__all__": {"parsed"}}}
            given += [item.model_dump(exclude_none=True, exclude=hidden) for item in shown.output]  # type: ignore[arg-type]
            calls = [item for item in shown.output if item.type == "function_call"]
            if not calls:
                return shown.output_text, cities
            for one in calls:
                cities.append(json.loads(one.arguments)["city"])
                output = {"type": "function_call_output", "call_id": one.call_id, "output": result(cities[-1])}
                given.append(output)


def by_anthropic(url: str) -> Outcome:
    tools: list[Any] = [{"name": "weather", "input_schema": WEATHER}]
    messages: list[Any] = [{"role": "user", "content": "How cold is it?"}]
    cities: list[str] = []
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        while True:
            with client.messages.stream(
                model=MODEL, max_tokens=99, system="Be brief.", messages=messages, tools=tools
            ) as stream:
                shown = stream.get_final_message()
            messages.append(
                {"role": "assistant", "content": [part.model_dump(exclude_none=True) for part in shown.content]}
            )
            used = [part for part in shown.content if part.type == "tool_use"]
            if not used:
                return "".join([part.text for part in shown.content if part.type == "text"]), cities
            cities += [str(part.input["city"]) for part in used]
            results = [
                {"type": "tool_result", "tool_use_id": part.id, "content": result(str(part.input["city"]))}
                for part in used
            ]
            messages.append({"role": "user", "content": results})


def by_gemini(url: str) -> Outcome:
    declared = types.FunctionDeclaration(name="weather", parameters_json_schema=WEATHER)
    config = types.GenerateContentConfig(
        tools=[types.Tool(function_declarations=[declared])],
        system_instruction="Be brief.",
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    contents: list[Any] = [types.Content(role="user", parts=[types.Part(text="How cold is it?")])]
    cities: list[str] = []
    client = genai.Client(api_key="k", http_options=types.HttpOptions(base_url=url))
    while True:
        parts: list[types.Part] = []
        for piece in client.models.generate_content_stream(model=MODEL, contents=contents, config=config):
            for candidate in piece.candidates or ():
                parts += (candidate.content and candidate.content.parts) or []
        contents.append(types.Content(role="model", parts=parts))
        calls = [part.function_call for part in parts if part.function_call]
        if not calls:
            return "".join([part.text or "" for part in parts if not part.thought]), cities
        cities += [str((one.args or {})["city"]) for one in calls]
        answers = [
            types.FunctionResponse(id=one.id, name=one.name, response={"output": result(str((one.args or {})["city"]))})
            for one in calls
        ]
        contents.append(types.Content(role="user", parts=[types.Part(function_response=one) for one in answers]))


CLIENTS: dict[str, Callable[[str], Outcome]] = {
    "chat": by_chat,
    "responses": by_responses,
    "anthropic": by_anthropic,
    "gemini": by_gemini,
}
PAIRS = [(client, to) for client in CLIENTS for to in PROXY_DIALECTS if client != to]


def pairs_of(to: str, request: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return the calls of a request by id (for Gemini, by position), each with its result, as the upstream interprets
    them.
    """
    results: list[tuple[Any, str]] = []
    for item in request[CONTAINER[to]]:
        match to:
            case "chat":
                found = [(item["tool_call_id"], item["content"])] if item["role"] == "tool" else []
            case "responses":
                is_result = item.get("type") == "function_call_output"
                found = [(item["call_id"], item["output"])] if is_result else []
            case "anthropic":
                parts = item["content"] if isinstance(item["content"], list) else []
                found = [(part["tool_use_id"], part["content"]) for part in parts if part["type"] == "tool_result"]
            case _:
                answers = [part["functionResponse"] for part in item["parts"] if "functionResponse" in part]
                found = [(None, one["response"]["output"]) for one in answers]
        results += found
    return results


def proofs_of(to: str, request: dict[str, Any]) -> list[str]:
    """Return the signed data that a request returns to its provider, from the place defined by its API."""
    found: list[str] = []
    for item in request[CONTAINER[to]]:
        match to:
            case "chat":
                for name in ("reasoning_details", "thinking_blocks"):
                    found += [one["signature"] for one in item.get(name, ()) if "signature" in one]
            case "responses":
                found += [item["encrypted_content"]] if item.get("type") == "reasoning" else []
            case "anthropic":
                parts = item["content"] if isinstance(item["content"], list) else []
                found += [part.get("signature") or part["data"] for part in parts if "thinking" in part["type"]]
            case _:
                found += [part["thoughtSignature"] for part in item["parts"] if "thoughtSignature" in part]
    return found


@pytest.mark.parametrize(("client", "to"), PAIRS)
def test_five_turns(client: str, to: str) -> None:
    upstream = Upstream(in_turn(*[ANSWERS[to](turn) for turn in range(TURNS)]))
    gateway = "openrouter" if to == "chat" else None  # Chat Completions itself has no member for signatures
    with between(upstream, to=to, gateway=gateway) as url:
        last, cities = CLIENTS[client](url)
    assert last == LAST
    assert cities == [city for turn in CITIES for city in turn]
    sent = [json.loads(seen.body) for seen in upstream.seen]
    assert len(sent) == TURNS
    for turn, request in enumerate(sent):
        target = TARGET.get(to, to)
        whole = request | {"model": MODEL}  # Gemini's request has the model in the path
        assert proofs_of(to, request) == secrets_of(to, turn)
        assert judge(target, gateway or target, whole) == []
        assert complaints(target, target, whole) == []
        expected = [(ids_of(at)[place], result(city)) for at in range(turn) for place, city in enumerate(CITIES[at])]
        found = pairs_of(to, request)
        if to == "gemini":  # Gemini sent no ids
            assert [shown for _, shown in found] == [shown for _, shown in expected]
        else:
            assert found == expected
    for before, after in pairwise(sent):
        shorter, longer = before[CONTAINER[to]], after[CONTAINER[to]]
        assert json.dumps(longer[: len(shorter)]) == json.dumps(shorter)
        assert {name: value for name, value in before.items() if name != CONTAINER[to]} == {
            name: value for name, value in after.items() if name != CONTAINER[to]
        }


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "chat"])
def test_five_turns_of_thinking_blocks(client: str) -> None:
    upstream = Upstream(in_turn(*[of_blocks(turn) for turn in range(TURNS)]))
    with between(upstream, to="chat", gateway="openrouter") as url:
        last, cities = CLIENTS[client](url)
    assert (last, cities) == (LAST, [city for turn in CITIES for city in turn])
    for turn, seen in enumerate(upstream.seen):
        messages = json.loads(seen.body)["messages"]
        entries = [one for message in messages for one in message.get("reasoning_details", ())]
        found = [one.get("signature") or one.get("data") for one in entries]
        assert found == [secret(at, kind) for at in range(turn) for kind in ("signed", "redacted")]


def gateways() -> list[tuple[str, str]]:
    """Return (dialect, profile) of every gateway that the proxy can have as its upstream."""
    found: list[tuple[str, str]] = []
    for name in profiles.names():
        for to in PROXY_DIALECTS:
            with suppress(UsageError):
                ProxyConfig("http://gateway.example/v1", to=to, gateway=name)  # type: ignore[arg-type]
                found.append((to, name))
    return found


def whole_chunks(answer: list[bytes]) -> list[bytes]:
    """Return the chunks of a response with all members, because openai-python skips chunks without `object`."""
    head = b'data: {"object":"chat.completion.chunk",'
    more = b'"id":"c","model":"m","created":1,'
    return [
        one
        if not one.startswith(b"data: {")
        else one.replace(b"data: {", head + (more if b'"created"' not in one else b""), 1)
        for one in answer
    ]


LOOPS = [(client, to, gateway) for to, gateway in gateways() for client in CLIENTS]
# Gateways of Chat Completions that have a member for signatures; a gateway of Responses that does not accept reasoning.
DETAILED = {"openrouter", "minimax", "litellm"}
UNREASONING = {"vercel-ai-gateway"}


def accepted_secrets(to: str, gateway: str, turns: int) -> list[str]:
    """Return the values of `secrets_of` that this gateway accepts."""
    name = gateway.partition("@")[0]
    if name in UNREASONING or (to == "chat" and name not in DETAILED):
        return []
    # Azure accepts only one reasoning item of earlier turns (`max_replayed` in its profile).
    return secrets_of(to, turns)[: 1 if name == "azure-openai" else None]


@pytest.mark.parametrize(("client", "to", "gateway"), LOOPS if FULL else LOOPS[::7])
def test_five_turns_through_every_gateway(client: str, to: str, gateway: str) -> None:
    """Every request follows the gateway's rules, differs from the previous one only in the added messages, and returns
    all signed data that the gateway accepts."""
    target = ProxyConfig("http://gateway.example/v1", to=to, gateway=gateway).profile(to).target  # type: ignore[arg-type]
    answers = [ANSWERS[to](turn) for turn in range(TURNS)]
    upstream = Upstream(in_turn(*[whole_chunks(one) for one in answers] if to == "chat" else answers))
    more = {"base": "/v1/projects/p/locations/global/publishers/google"} if gateway.startswith("vertex") else {}
    with between(upstream, to=to, gateway=gateway, **more) as url:
        last, cities = CLIENTS[client](url)
    assert last == LAST
    assert cities == [city for turn in CITIES for city in turn]
    sent = [json.loads(seen.body) for seen in upstream.seen]
    assert len(sent) == TURNS
    for turn, request in enumerate(sent):
        # google-genai writes bytes in the URL-safe alphabet.
        proofs = [proof.replace("-", "+").replace("_", "/") for proof in proofs_of(to, request)]
        assert proofs == accepted_secrets(to, gateway, turn)
        whole = {"model": MODEL, **request}
        whole.pop("anthropic_version", None)  # Vertex AI's, in place of the model
        assert judge(target, plain(gateway), whole) == []
        assert complaints(target, plain(gateway), whole) == []
    for before, after in pairwise(sent):
        shorter, longer = before[CONTAINER[to]], after[CONTAINER[to]]
        assert json.dumps(longer[: len(shorter)]) == json.dumps(shorter)
        assert {**before, CONTAINER[to]: None} == {**after, CONTAINER[to]: None}


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "gemini"])
def test_signed_texts_return_as_gemini_sent_them(client: str) -> None:
    """A signature returns with exactly the text that it signs, even if the client's API joins all texts of a turn.

    "Don't merge parts with signatures": https://ai.google.dev/gemini-api/docs/thought-signatures.
    """
    asked = {"functionCall": {"name": "weather", "args": {"city": "Oslo"}}, "thoughtSignature": secret(0)}
    sent: list[dict[str, Any]] = [
        {"text": "Ich pr\u00fcfe \U0001f9ca. ", "thoughtSignature": secret(0, "first")},
        {"text": "Then I look."},
        asked,
        {"text": "", "thoughtSignature": secret(0, "last")},
    ]
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12}

    def answer(*parts: dict[str, Any]) -> list[bytes]:
        whole = [{"content": {"role": "model", "parts": [part]}, "index": 0} for part in parts]
        whole[-1] |= {"finishReason": "STOP"}
        return [event({"candidates": [one], "modelVersion": "m", "usageMetadata": usage}) for one in whole]

    upstream = Upstream(in_turn(answer(*sent), answer({"text": LAST})))
    with between(upstream, to="gemini") as url:
        assert CLIENTS[client](url) == (LAST, ["Oslo"])
    returned = json.loads(upstream.seen[1].body)["contents"][1]["parts"]
    for part in returned:
        part.get("functionCall", {}).pop("id", None)  # the id that the proxy gave the client
    assert returned == sent


@pytest.mark.parametrize("client", [name for name in CLIENTS if name != "anthropic"])
def test_an_answer_that_is_not_streamed(client: str) -> None:
    """The reasoning carrier of a response that is not streamed is converted back to exactly the blocks that Claude
    signed.
    """
    thinking = {"type": "thinking", "thinking": thought(0), "signature": secret(0)}
    redacted = {"type": "redacted_thinking", "data": secret(0, "redacted")}
    use = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Oslo"}}
    usage = {"input_tokens": 7, "output_tokens": 5}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_sequence": None}
    message |= {"content": [thinking, redacted, use], "stop_reason": "tool_use", "usage": usage}
    converter = StreamConverter(source="anthropic", target=cast("Any", client), carry_reasoning=True)
    answer = json.loads(converted(converter, json.dumps(message).encode(), client) or b"")
    match client:
        case "chat":
            told: Any = {"messages": [{"role": "user", "content": "?"}, answer["choices"][0]["message"]]}
        case "responses":
            told = {"input": [{"role": "user", "content": "?"}, *answer["output"]]}
        case _:
            told = {"contents": [{"role": "user", "parts": [{"text": "?"}]}, answer["candidates"][0]["content"]]}
    source = cast("Any", TARGET.get(client, client))
    made = history.convert(told, source=source, target="anthropic")
    assert made.payload["messages"][1]["content"] == [thinking, redacted, use]
