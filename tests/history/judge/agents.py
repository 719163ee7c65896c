"""Histories as current agents send them: nine agents with different conventions, in the same scenarios.

These are test data for the judge, written by hand from each agent's public source and recorded requests. The module
does not use streamweld. Every text, name, argument and output has a unique token (`tok…`), so that a loss can be
detected.

An agent is a function from a scenario to a request; a scenario is a list of steps.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["HISTORIES", "AgentHistory"]

FULL: Final = os.environ.get("STREAMWELD_FULL") == "1"

PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
PDF: Final = "JVBERi0xLjQKJcfsj6IK"


@dataclass(frozen=True)
class AgentHistory:
    """One history. `source`: the dialect of its request. `tokens`: words that must not be dropped without a report."""

    name: str
    source: str
    request: dict[str, Any]
    tokens: tuple[str, ...]


@dataclass
class Step:
    """One step. `kind`: user, assistant, results, system."""

    kind: str
    text: str = ""
    thinking: str = ""
    calls: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)  # key, tool, input
    results: list[tuple[str, str, bool]] = field(default_factory=list)  # key, output, is an error
    image: bool = False
    pdf: bool = False
    image_result: bool = False


class Tokens:
    """Generates unique words."""

    def __init__(self, name: str) -> None:
        self.name, self.made = name, []

    def __call__(self, what: str) -> str:
        word = f"tok{sum(map(ord, self.name)):x}{len(self.made):02d}{what}"
        self.made.append(word)
        return word


def user(t: Tokens, **k: Any) -> Step:
    return Step("user", text=f"Please {t('ask')}.", **k)


def calls(t: Tokens, *tools: str, text: bool = True, thinking: bool = False, keys: str = "") -> Step:
    made = [(f"{keys}{n}", tool, {"path": f"src/{t('arg')}.py"}) for n, tool in enumerate(tools)]
    return Step("assistant", f"I look at {t('say')}." if text else "", t("think") if thinking else "", made)


def results(
    t: Tokens, step: Step, *, order: str = "same", errors: bool = False, drop: int = 0, image: bool = False
) -> Step:
    listed = [(key, f"line 1\n{t('out')}", errors) for key, _, _ in step.calls]
    if order == "reversed":
        listed.reverse()
    return Step("results", results=listed[: len(listed) - drop], image_result=image)


def answer(t: Tokens, thinking: bool = False) -> Step:
    return Step("assistant", f"Done: {t('end')}.", t("think") if thinking else "")


def scenarios(agent: str) -> dict[str, tuple[list[Step], tuple[str, ...]]]:
    """Return the scenarios for an agent; the work is the same for every agent."""
    out: dict[str, tuple[list[Step], tuple[str, ...]]] = {}

    def add(name: str, build: Callable[[Tokens], list[Step]]) -> None:
        t = Tokens(f"{agent}-{name}")
        steps = build(t)
        out[name] = (steps, tuple(t.made))

    def loop(
        t: Tokens, rounds: int, *, thinking_from: int | None = None, tools: tuple[str, ...] = ("Read",)
    ) -> list[Step]:
        made = [user(t)]
        for n in range(rounds):
            step = calls(
                t, *tools, thinking=thinking_from is not None and n >= thinking_from, keys=f"r{n}_", text=n != 1
            )
            made += [step, results(t, step)]
        return made

    def parallel(t: Tokens, order: str) -> list[Step]:
        step = calls(t, "Read", "Grep", "Read")
        return [user(t), step, results(t, step, order=order), answer(t), user(t)]

    def failing(t: Tokens) -> list[Step]:
        step = calls(t, "Bash")
        again = calls(t, "Bash", keys="again_")
        return [user(t), step, results(t, step, errors=True), again, results(t, again), answer(t), user(t)]

    def interrupted(t: Tokens) -> list[Step]:
        step = calls(t, "Bash", "Read")
        return [user(t), step, results(t, step, drop=1), user(t)]

    def nothing_said(t: Tokens) -> list[Step]:
        step = calls(t, "Read", text=False)
        return [user(t), step, Step("results", results=[("0", "", False)]), answer(t), user(t)]

    def pictured(t: Tokens) -> list[Step]:
        step = calls(t, "Read")
        return [user(t, image=True), step, results(t, step, image=True), answer(t), user(t)]

    add("answer", lambda t: [user(t), answer(t), user(t)])
    add("loop", lambda t: loop(t, 3))
    add("parallel", lambda t: parallel(t, "same"))
    add("parallel-reversed", lambda t: parallel(t, "reversed"))
    add("thinking", lambda t: [*loop(t, 2, thinking_from=0), answer(t, thinking=True), user(t)])
    add("thinking-from-third-turn", lambda t: loop(t, 5, thinking_from=2))
    add("thinking-parallel", lambda t: loop(t, 2, thinking_from=0, tools=("Read", "Grep")))
    add("error", failing)
    add("interrupted", interrupted)
    add("empty", nothing_said)
    add("image", pictured)
    add("document", lambda t: [user(t, pdf=True), answer(t), user(t)])
    add("many-turns", lambda t: [s for _ in range(4) for s in (user(t), answer(t))] + [user(t)])
    return out


def schema() -> dict[str, Any]:
    return {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}


TOOLS: Final = ("Read", "Grep", "Bash")


# --- the agents


def claude_code(steps: list[Step]) -> dict[str, Any]:
    """Write Anthropic Messages: system blocks with cache_control, reminders next to the text, signed thinking, results
    first in the user message, `is_error`, cache_control on the last block."""
    messages: list[Any] = []
    for n, step in enumerate(steps):
        if step.kind == "user":
            blocks: list[Any] = [
                {"type": "text", "text": "<system-reminder>\nToday is 2026-11-20.\n</system-reminder>\n"}
            ]
            if step.image:
                blocks.append({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}})
            if step.pdf:
                blocks.append(
                    {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PDF}}
                )
            blocks.append({"type": "text", "text": step.text})
            if messages and messages[-1]["role"] == "user":
                messages[-1]["content"] += blocks
            else:
                messages.append({"role": "user", "content": blocks})
        elif step.kind == "assistant":
            blocks = []
            if step.thinking:
                blocks.append({"type": "thinking", "thinking": step.thinking, "signature": f"EqQBCkYIBxgCKkD{n}sig=="})
            if step.text:
                blocks.append({"type": "text", "text": step.text})
            blocks += [
                {"type": "tool_use", "id": f"toolu_01{key}", "name": tool, "input": given}
                for key, tool, given in step.calls
            ]
            messages.append({"role": "assistant", "content": blocks})
        else:
            blocks = []
            for key, output, error in step.results:
                content: Any = output
                if step.image_result:
                    content = [
                        {"type": "text", "text": output},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                    ]
                block = {"type": "tool_result", "tool_use_id": f"toolu_01{key}", "content": content}
                blocks.append({**block, "is_error": True} if error else block)
            messages.append({"role": "user", "content": blocks})
    last = messages[-1]["content"][-1]
    messages[-1]["content"][-1] = {**last, "cache_control": {"type": "ephemeral"}}
    thinks = any(step.thinking for step in steps)
    return {
        "model": "claude-sonnet-4-5-20250929",
        "max_tokens": 32000,
        "system": [
            {"type": "text", "text": "You are Claude Code.", "cache_control": {"type": "ephemeral"}},
            {"type": "text", "text": "Use the tools."},
        ],
        "messages": messages,
        "tools": [{"name": tool, "description": f"{tool} files", "input_schema": schema()} for tool in TOOLS],
        "metadata": {"user_id": "user_1"},
        "stream": True,
        **({"thinking": {"type": "enabled", "budget_tokens": 10000}} if thinks else {}),
    }


def codex(steps: list[Step]) -> dict[str, Any]:
    """Write Responses requests that are never stored: encrypted reasoning, developer messages, calls and messages as
    separate items.
    """
    items: list[Any] = [
        {
            "type": "message",
            "role": "developer",
            "content": [{"type": "input_text", "text": "<permissions>read</permissions>"}],
        }
    ]
    for n, step in enumerate(steps):
        if step.kind == "user":
            content: list[Any] = [{"type": "input_text", "text": step.text}]
            if step.image:
                content.append({"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"})
            if step.pdf:
                content.append(
                    {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
                )
            items.append({"type": "message", "role": "user", "content": content})
        elif step.kind == "assistant":
            if step.thinking:
                summary = [{"type": "summary_text", "text": step.thinking}]
                items.append(
                    {"type": "reasoning", "id": f"rs_{n}", "summary": summary, "encrypted_content": f"gAAAAABo{n}=="}
                )
            if step.text:
                text = {"type": "output_text", "text": step.text, "annotations": []}
                items.append(
                    {"type": "message", "id": f"msg_{n}", "role": "assistant", "status": "completed", "content": [text]}
                )
            items += [
                {
                    "type": "function_call",
                    "id": f"fc_{key}",
                    "call_id": f"call_{key}",
                    "name": tool,
                    "arguments": json.dumps(given),
                    "status": "completed",
                }
                for key, tool, given in step.calls
            ]
        else:
            for key, output, _ in step.results:
                shown: Any = output
                if step.image_result:
                    shown = [
                        {"type": "input_text", "text": output},
                        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}", "detail": "auto"},
                    ]
                items.append({"type": "function_call_output", "call_id": f"call_{key}", "output": shown})
    return {
        "model": "gpt-5.6-codex",
        "instructions": "You are Codex, a coding agent.",
        "input": items,
        "tools": [
            {"type": "function", "name": tool, "description": f"{tool} files", "parameters": schema(), "strict": False}
            for tool in TOOLS
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": False,
        "stream": True,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199-aa",
    }


def _chat(steps: list[Step], *, reasoning: str | None, call_id: Callable[[str], str], prefix: str = "") -> list[Any]:
    messages: list[Any] = []
    for step in steps:
        if step.kind == "user":
            content: Any = step.text
            if step.image or step.pdf:
                content = [{"type": "text", "text": step.text}]
            if step.image:
                content.append({"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}})
            if step.pdf:
                file = {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
                content.append({"type": "file", "file": file})
            messages.append({"role": "user", "content": content})
        elif step.kind == "assistant":
            message: dict[str, Any] = {"role": "assistant", "content": step.text or None}
            if step.thinking and reasoning:
                message[reasoning] = step.thinking
            if step.calls:
                message["tool_calls"] = [
                    {
                        "id": call_id(key),
                        "type": "function",
                        "function": {"name": prefix + tool, "arguments": json.dumps(given)},
                    }
                    for key, tool, given in step.calls
                ]
            messages.append(message)
        else:
            for key, output, error in step.results:
                shown: Any = f"Error: {output}" if error else output
                messages.append({"role": "tool", "tool_call_id": call_id(key), "content": shown})
                if step.image_result:
                    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
                    messages.append({"role": "user", "content": [{"type": "text", "text": "The image:"}, picture]})
    return messages


def _chat_tools(prefix: str = "") -> list[Any]:
    return [
        {
            "type": "function",
            "function": {"name": prefix + tool, "description": f"{tool} files", "parameters": schema()},
        }
        for tool in TOOLS
    ]


def opencode(steps: list[Step]) -> dict[str, Any]:
    """Write AI SDK model messages: results with an output type, provider options with a signature or an item id."""
    messages: list[Any] = [{"role": "system", "content": "You are opencode."}]
    names: dict[str, str] = {}
    for n, step in enumerate(steps):
        if step.kind == "user":
            content: list[Any] = [{"type": "text", "text": step.text}]
            if step.image:
                content.append({"type": "file", "data": PNG, "mediaType": "image/png", "filename": "a.png"})
            if step.pdf:
                content.append({"type": "file", "data": PDF, "mediaType": "application/pdf", "filename": "a.pdf"})
            messages.append({"role": "user", "content": content})
        elif step.kind == "assistant":
            content = []
            if step.thinking:
                options = {"anthropic": {"signature": f"EqQBsig{n}=="}}
                content.append({"type": "reasoning", "text": step.thinking, "providerOptions": options})
            if step.text:
                content.append({"type": "text", "text": step.text})
            for key, tool, given in step.calls:
                names[key] = tool.lower()
                content.append(
                    {"type": "tool-call", "toolCallId": f"toolu_{key}", "toolName": tool.lower(), "input": given}
                )
            messages.append({"role": "assistant", "content": content})
        else:
            content = []
            for key, output, error in step.results:
                shown: Any = {"type": "error-text" if error else "text", "value": output}
                if step.image_result:
                    parts = [{"type": "text", "text": output}, {"type": "media", "data": PNG, "mediaType": "image/png"}]
                    shown = {"type": "content", "value": parts}
                result = {"type": "tool-result", "toolCallId": f"toolu_{key}", "toolName": names[key], "output": shown}
                content.append(result)
            messages.append({"role": "tool", "content": content})
    return {
        "model": "anthropic/claude-sonnet-4.5",
        "messages": messages,
        "tools": [
            {"type": "function", "name": tool.lower(), "description": f"{tool} files", "inputSchema": schema()}
            for tool in TOOLS
        ],
        "toolChoice": {"type": "auto"},
        "maxOutputTokens": 32000,
        "temperature": 0,
    }


def cline(steps: list[Step]) -> dict[str, Any]:
    """Write Chat Completions for OpenRouter: both `reasoning_details` and `reasoning`, foreign ids, cache marks."""
    messages = _chat(steps, reasoning="reasoning", call_id=lambda key: f"toolu_bdrk_01{key}")
    for n, message in enumerate(messages):
        if message.get("reasoning"):
            detail = {
                "type": "reasoning.text",
                "text": message["reasoning"],
                "signature": f"EqQBcline{n}==",
                "format": "anthropic-claude-v1",
                "index": 0,
            }
            message["reasoning_details"] = [detail]
    lead = [{"type": "text", "text": "You are Cline.", "cache_control": {"type": "ephemeral"}}]
    return {
        "model": "anthropic/claude-sonnet-4.5",
        "messages": [{"role": "system", "content": lead}, *messages],
        "tools": _chat_tools(),
        "tool_choice": "auto",
        "max_tokens": 8192,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


def gemini_cli(steps: list[Step]) -> dict[str, Any]:
    """Write Gemini: ids only on function responses, derived from the function's name, and signatures on first calls."""
    contents: list[Any] = []
    names: dict[str, str] = {}
    for n, step in enumerate(steps):
        if step.kind == "user":
            parts: list[Any] = [{"text": step.text}]
            if step.image:
                parts.append({"inlineData": {"mimeType": "image/png", "data": PNG}})
            if step.pdf:
                parts.append({"inlineData": {"mimeType": "application/pdf", "data": PDF}})
            contents.append({"role": "user", "parts": parts})
        elif step.kind == "assistant":
            parts = []
            if step.thinking:
                parts.append({"text": step.thinking, "thought": True})
            if step.text:
                parts.append({"text": step.text})
            for at, (key, tool, given) in enumerate(step.calls):
                names[key] = tool
                part: dict[str, Any] = {"functionCall": {"name": tool, "args": given}}
                if step.thinking and at == 0:
                    part["thoughtSignature"] = f"Q2lRQnNpZ{n}A="
                parts.append(part)
            contents.append({"role": "model", "parts": parts})
        else:
            parts = []
            for key, output, error in step.results:
                response = {"error": output} if error else {"output": output}
                payload_of = {
                    "id": f"{names[key]}-1763600000{len(parts)}-{key}",
                    "name": names[key],
                    "response": response,
                }
                parts.append({"functionResponse": payload_of})
                if step.image_result:
                    parts.append({"inlineData": {"mimeType": "image/png", "data": PNG}})
            contents.append({"role": "user", "parts": parts})
    return {
        "model": "gemini-3-pro-preview",
        "systemInstruction": {"role": "user", "parts": [{"text": "You are Gemini CLI."}]},
        "contents": contents,
        "tools": [
            {
                "functionDeclarations": [
                    {"name": tool, "description": f"{tool} files", "parametersJsonSchema": schema()} for tool in TOOLS
                ]
            }
        ],
        "generationConfig": {"temperature": 1, "topP": 0.95, "thinkingConfig": {"includeThoughts": True}},
    }


def langgraph(steps: list[Step]) -> dict[str, Any]:
    """Write Chat Completions as langchain-openai does: names on assistant messages, empty content."""
    messages = _chat(steps, reasoning=None, call_id=lambda key: f"call_{key}lg")
    for message in messages:
        if message["role"] == "assistant" and message["content"] is None:
            message["content"] = ""
        if message["role"] == "assistant":
            message["name"] = "supervisor"
    return {
        "model": "gpt-4.1",
        "messages": [{"role": "system", "content": "You are a supervisor."}, *messages],
        "tools": _chat_tools(),
        "parallel_tool_calls": False,
        "temperature": 0.2,
        "n": 1,
        "stream": False,
    }


def pydantic_ai(steps: list[Step]) -> dict[str, Any]:
    """Write Chat Completions as pydantic-ai does for DeepSeek: `reasoning_content`, retries as results,
    generated ids."""
    messages = _chat(
        steps, reasoning="reasoning_content", call_id=lambda key: f"pyd_ai_{key}e3b0c44298fc1c149afbf4c8996fb924"
    )
    for message in messages:
        if message["role"] == "tool" and message["content"].startswith("Error: "):
            message["content"] += "\n\nFix the errors and try again."
    return {
        "model": "deepseek-chat",
        "messages": [
            {"role": "system", "content": "Be concise."},
            {"role": "system", "content": "Use tools."},
            *messages,
        ],
        "tools": [{**tool, "function": {**tool["function"], "strict": True}} for tool in _chat_tools()],
        "tool_choice": "required",
        "max_completion_tokens": 4096,
        "stop": ["END"],
        "seed": 7,
    }


def agents_sdk(steps: list[Step]) -> dict[str, Any]:
    """Write Responses as the OpenAI Agents SDK replays them: easy user messages, `__fake_id__` on items of other
    models, a handoff as a call and its output."""
    items: list[Any] = []
    for n, step in enumerate(steps):
        if step.kind == "user":
            content: Any = step.text
            if step.image or step.pdf:
                content = [{"type": "input_text", "text": step.text}]
            if step.image:
                content.append({"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"})
            if step.pdf:
                content.append(
                    {"type": "input_file", "filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}
                )
            items.append({"role": "user", "content": content})
            if n == 0:
                items.append(
                    {
                        "type": "function_call",
                        "id": "__fake_id__",
                        "call_id": "call_handoff",
                        "name": "transfer_to_coder",
                        "arguments": "{}",
                    }
                )
                shown = '{"assistant": "coder"}'
                items.append({"type": "function_call_output", "call_id": "call_handoff", "output": shown})
        elif step.kind == "assistant":
            if step.thinking:
                summary = [{"type": "summary_text", "text": step.thinking}]
                items.append({"type": "reasoning", "id": f"rs_a{n}", "summary": summary, "status": None})
            if step.text:
                text = {"type": "output_text", "text": step.text, "annotations": [], "logprobs": []}
                items.append(
                    {
                        "type": "message",
                        "id": "__fake_id__",
                        "role": "assistant",
                        "status": "completed",
                        "content": [text],
                    }
                )
            items += [
                {
                    "type": "function_call",
                    "id": "__fake_id__",
                    "call_id": f"call_{key}",
                    "name": tool,
                    "arguments": json.dumps(given),
                    "status": "completed",
                }
                for key, tool, given in step.calls
            ]
        else:
            items += [
                {"type": "function_call_output", "call_id": f"call_{key}", "output": output, "status": "completed"}
                for key, output, _ in step.results
            ]
            if step.image_result:
                picture = {"type": "input_image", "detail": "auto", "image_url": f"data:image/png;base64,{PNG}"}
                items.append({"role": "user", "content": [picture]})
    return {
        "model": "gpt-5.6",
        "instructions": "You are a coder.",
        "input": items,
        "tools": [
            {"type": "function", "name": tool, "description": f"{tool} files", "parameters": schema(), "strict": False}
            for tool in (*TOOLS, "transfer_to_coder")
        ],
        "tool_choice": "auto",
        "max_output_tokens": 2000,
        "text": {"verbosity": "low"},
        "truncation": "auto",
    }


def use_chat(steps: list[Step]) -> dict[str, Any]:
    """Write useChat UI messages: an assistant turn is one message with steps; a result is part of its call."""
    messages: list[Any] = [{"id": "sys", "role": "system", "parts": [{"type": "text", "text": "You are a chat."}]}]
    for n, step in enumerate(steps):
        if step.kind == "user":
            parts: list[Any] = [{"type": "text", "text": step.text}]
            if step.image:
                parts.append(
                    {
                        "type": "file",
                        "mediaType": "image/png",
                        "url": f"data:image/png;base64,{PNG}",
                        "filename": "a.png",
                    }
                )
            if step.pdf:
                url = f"data:application/pdf;base64,{PDF}"
                parts.append({"type": "file", "mediaType": "application/pdf", "url": url, "filename": "a.pdf"})
            messages.append({"id": f"u{n}", "role": "user", "parts": parts, "metadata": {"at": n}})
        elif step.kind == "assistant":
            if messages[-1]["role"] != "assistant":
                messages.append({"id": f"a{n}", "role": "assistant", "parts": []})
            parts = messages[-1]["parts"]
            parts.append({"type": "step-start"})
            if step.thinking:
                meta = {"anthropic": {"signature": f"EqQBui{n}=="}}
                parts.append({"type": "reasoning", "text": step.thinking, "state": "done", "providerMetadata": meta})
            if step.text:
                parts.append({"type": "text", "text": step.text, "state": "done"})
            parts += [
                {"type": f"tool-{tool}", "toolCallId": f"call_{key}", "state": "input-available", "input": given}
                for key, tool, given in step.calls
            ]
        else:
            for key, output, error in step.results:
                for message in messages:
                    for part in message["parts"]:
                        if part.get("toolCallId") == f"call_{key}":
                            shown: Any = {"errorText": output} if error else {"output": output}
                            part.update(state="output-error" if error else "output-available", **shown)
    return {"id": "chat_1", "trigger": "submit-message", "messages": messages}


AGENTS: Final[dict[str, tuple[str, Callable[[list[Step]], dict[str, Any]]]]] = {
    "claude-code": ("anthropic", claude_code),
    "codex": ("responses", codex),
    "opencode": ("ai-sdk-model", opencode),
    "cline": ("openai-chat", cline),
    "gemini-cli": ("gemini", gemini_cli),
    "langgraph": ("openai-chat", langgraph),
    "pydantic-ai": ("openai-chat", pydantic_ai),
    "agents-sdk": ("responses", agents_sdk),
    "use-chat": ("ai-sdk-ui", use_chat),
}
# Agents whose format cannot represent reasoning, so that its tokens are not in the request.
_UNSAID: Final = {"langgraph": ("think",)}


def _made() -> list[AgentHistory]:
    from tests.history.judge.faults import FAULTS
    from tests.history.judge.special import SPECIAL
    from tests.history.judge.variations import VARIATIONS

    out: list[AgentHistory] = []
    for agent, (source, build) in AGENTS.items():
        for name, (steps, tokens) in scenarios(agent).items():
            request = build(steps)
            body = json.dumps(request)
            kept = tuple(token for token in tokens if not token.endswith(_UNSAID.get(agent, ("\0",))))
            missing = [token for token in kept if token not in body]
            assert len(missing) == (name == "interrupted"), (agent, name, missing)  # one result is missing
            kept = tuple(token for token in kept if token not in missing)
            out.append(AgentHistory(f"{agent}/{name}", source, request, kept))
    fresh = json.loads(Path(__file__).with_name("fresh.json").read_text("utf-8"))["tests"] if FULL else ()
    for name, source, request in [*SPECIAL, *((*FAULTS, *VARIATIONS) if FULL else ()), *fresh]:
        tokens = tuple(sorted(set(_tokens(json.dumps(request)))))
        out.append(AgentHistory(name, source, request, tokens))
    return out


def _tokens(body: str) -> list[str]:
    import re

    return re.findall(r"\btok(?!ens\b)[a-z0-9]+", body)


HISTORIES: Final[list[AgentHistory]] = []


def load() -> list[AgentHistory]:
    """Return all histories, built once."""
    if not HISTORIES:
        HISTORIES.extend(_made())
    return HISTORIES
