"""Random Responses streams as the API sends them, used as input for mutation.

This module does not import streamweld.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamweld.testing.pieces import NAMES, random_arguments, random_id, random_text, row_of

from tests.support.generate.frames import Frame, Source

if TYPE_CHECKING:
    from random import Random

Item = dict[str, Any]
Events = list[tuple[str, dict[str, Any]]]  # events of one item, without the fields that identify the item

STATUSES = ("completed", "completed", "completed", "incomplete", "failed", "cancelled")
LISTED = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}


def frames(rng: Random) -> list[Frame]:
    """Return one response from its creation to its end."""
    style = rng.random()  # selects one style: obfuscation, deltas for calls only, ...
    head = _response(rng)
    created = head | {"status": "in_progress", "output": []}
    named: Events = [("response.created", {"response": created})]
    if rng.random() < 0.6:
        named.append(("response.in_progress", {"response": created}))
    output: list[Item] = []
    for index in range(rng.choice((0, 1, 1, 2, 3))):
        item, inner = _item(rng)
        opening = item | {"status": "in_progress"}
        for member in ("content", "summary"):
            if member in item and rng.random() < 0.95:
                opening[member] = []
        if "arguments" in item and rng.random() < 0.9:
            opening["arguments"] = ""
        at = {"output_index": index}
        of_item = at | {"item_id": item["id"]}
        if rng.random() < 0.97:
            named.append(("response.output_item.added", at | {"item": opening}))
        named += [(name, of_item | event) for name, event in inner]
        if rng.random() < 0.97:
            named.append(("response.output_item.done", at | {"item": item}))
        output.append(item)
    status = rng.choice(STATUSES) if rng.random() < 0.3 else "completed"
    last = head | {"status": status, "output": output, "usage": _usage(rng)}
    if status == "incomplete":
        last["incomplete_details"] = {"reason": rng.choice(("max_output_tokens", "content_filter", "x"))}
    if status == "failed":
        last["error"] = rng.choice(({"code": "server_error", "message": "no"}, None))
    if rng.random() < 0.15:
        last["output"] = []
    named.append((rng.choice((f"response.{status}", f"response.{status}", "response.done")), {"response": last}))
    numbered = rng.random() < 0.8
    out: list[Frame] = []
    for number, (name, event) in enumerate(named):
        event = {"type": name} | event
        if numbered:
            event["sequence_number"] = number if style < 0.95 else 0
        if style < 0.2 and "delta" in event:
            event["obfuscation"] = random_id(rng)
        out.append((name, event))
    return out


def whole(rng: Random) -> Any:
    """Return the response as one document."""
    output = [_item(rng)[0] for _ in range(rng.randint(0, 3))]
    status = rng.choice((*STATUSES, "in_progress", "queued"))
    return _response(rng) | {"status": status, "output": output, "usage": _usage(rng)}


def _response(rng: Random) -> dict[str, Any]:
    out: dict[str, Any] = {"id": "resp_" + random_id(rng), "object": "response", "created_at": 1700000000}
    out |= {"model": "m-1", "tools": [], "temperature": 1.0, "metadata": {}, "previous_response_id": None}
    return out


def _usage(rng: Random) -> dict[str, Any]:
    return {
        "input_tokens": rng.randint(0, 99),
        "input_tokens_details": {"cached_tokens": rng.choice((0, 5))},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 12,
    }


def _item(rng: Random) -> tuple[Item, Events]:
    roll = rng.random()
    if roll < 0.35:
        return _message(rng)
    if roll < 0.5:
        return _reasoning(rng)
    if roll < 0.8:
        return _call(rng)
    return _other(rng)


def _message(rng: Random) -> tuple[Item, Events]:
    content: list[dict[str, Any]] = []
    events: Events = []
    for place in range(rng.choice((1, 1, 1, 2))):
        refused = rng.random() < 0.15
        kind, member = ("refusal", "refusal") if refused else ("output_text", "text")
        text = random_text(rng) + random_text(rng)
        part: dict[str, Any] = {"type": kind, member: text}
        if not refused:
            part |= {"annotations": [LISTED] * rng.choice((0, 0, 1, 2)), "logprobs": []}
        at = {"content_index": place}
        opened = part | {member: ""} | ({} if refused else {"annotations": []})
        if rng.random() < 0.9:
            events.append(("response.content_part.added", at | {"part": opened}))
        name = "response.refusal" if refused else "response.output_text"
        for piece in row_of(rng, text):
            more = {"logprobs": rng.choice(([], [{"token": piece}]))} if rng.random() < 0.3 else {}
            events.append((name + ".delta", at | {"delta": piece} | more))
        if rng.random() < 0.7:
            for number, listed in enumerate(part.get("annotations", ())):
                annotation = at | {"annotation_index": number, "annotation": listed}
                events.append(("response.output_text.annotation.added", annotation))
        events.append((name + ".done", at | {member: text}))
        if rng.random() < 0.9:
            events.append(("response.content_part.done", at | {"part": part}))
        content.append(part)
    item: Item = {"type": "message", "id": "msg_" + random_id(rng), "role": "assistant", "content": content}
    if rng.random() < 0.2:
        item["phase"] = rng.choice(("commentary", "final_answer"))
    return item | {"status": "completed"}, events


def _reasoning(rng: Random) -> tuple[Item, Events]:
    item: Item = {"type": "reasoning", "id": "rs_" + random_id(rng), "summary": []}
    events: Events = []
    for place in range(rng.choice((0, 1, 2))):
        text = random_text(rng)
        at = {"summary_index": place}
        part = {"type": "summary_text", "text": text}
        events.append(("response.reasoning_summary_part.added", at | {"part": part | {"text": ""}}))
        events += [("response.reasoning_summary_text.delta", at | {"delta": p}) for p in row_of(rng, text)]
        events.append(("response.reasoning_summary_text.done", at | {"text": text}))
        events.append(("response.reasoning_summary_part.done", at | {"part": part}))
        item["summary"].append(part)
    if rng.random() < 0.3:
        text = random_text(rng)
        item["content"] = [{"type": "reasoning_text", "text": text}]
        name = rng.choice(("response.reasoning_text", "response.reasoning"))
        events += [(name + ".delta", {"content_index": 0, "delta": p}) for p in row_of(rng, text)]
        events.append((name + ".done", {"content_index": 0, "text": text}))
    if rng.random() < 0.4:
        item["encrypted_content"] = random_id(rng)
    return item, events


def _call(rng: Random) -> tuple[Item, Events]:
    kind = rng.choice(("function_call", "function_call", "function_call", "custom_tool_call", "mcp_call"))
    item: Item = {"type": kind, "id": "fc_" + random_id(rng), "name": rng.choice(NAMES)}
    if kind != "mcp_call":
        item["call_id"] = "call_" + random_id(rng)
    custom = kind == "custom_tool_call"
    member = "input" if custom else "arguments"
    text = random_text(rng) if custom else random_arguments(rng)
    name = {"function_call": "function_call_arguments", "mcp_call": "mcp_call_arguments"}.get(kind, kind + "_input")
    events: Events = [(f"response.{name}.delta", {"delta": piece}) for piece in row_of(rng, text)]
    if rng.random() < 0.95:
        events.append((f"response.{name}.done", {member: text}))
    item |= {member: text, "status": "completed"}
    if kind == "mcp_call":
        item |= {"output": rng.choice(("done", None)), "error": rng.choice((None, None, "no")), "server_label": "s"}
    return item, events


def _other(rng: Random) -> tuple[Item, Events]:
    """Return a hosted tool call, a wrapped call, a result, or an item of an unknown type."""
    kind = rng.choice(("web", "code", "image", "shell", "result", "search", "output", "unknown"))
    identity = random_id(rng)
    item: Item = {"id": "it_" + identity}
    if kind == "web":
        item |= {"type": "web_search_call", "action": {"type": "search", "query": "q"}}
        return item, [("response.web_search_call.searching", {}), ("response.web_search_call.completed", {})]
    if kind == "code":
        code = random_text(rng)
        item |= {"type": "code_interpreter_call", "code": code, "container_id": "c", "outputs": None}
        events: Events = [("response.code_interpreter_call_code.delta", {"delta": p}) for p in row_of(rng, code)]
        return item, [*events, ("response.code_interpreter_call_code.done", {"code": code})]
    if kind == "image":
        item |= {"type": "image_generation_call", "result": rng.choice(("AAAA", "https://x/y.png", None))}
        item["output_format"] = rng.choice(("png", "webp", "\u00e9", None))
        return item, [("response.image_generation_call.partial_image", {"partial_image_b64": "AA"})]
    if kind == "shell":
        name = rng.choice(("local_shell_call", "shell_call", "computer_call", "apply_patch_call"))
        inner = {"type": "exec", "command": ["ls"]}
        item |= {"type": name, "call_id": "call_" + identity, "action": inner, "operation": inner}
        if rng.random() < 0.3:
            item["environment"] = {"type": rng.choice(("container_auto", "local"))}
        return item, []
    if kind == "result":
        name = rng.choice(("function_call_output", "shell_call_output"))
        return item | {"type": name, "call_id": "call_" + identity, "output": rng.choice(("ok", [], {"a": 1}))}, []
    if kind == "search":
        item |= {"type": "tool_search_call", "call_id": None, "execution": rng.choice(("server", "client"))}
        return item | {"arguments": rng.choice(({"q": 1}, '{"q":1}', None))}, []
    if kind == "output":
        item |= {"type": "shell_call_output", "call_id": rng.choice(("call_" + identity, "call_1", None)), "output": []}
        piece = {"command_index": rng.randint(0, 1), "delta": {rng.choice(("stdout", "stderr")): random_text(rng)}}
        whole = {"command_index": 0, "output": [{"stdout": "x", "stderr": "", "outcome": {"type": "timeout"}}]}
        events = [("response.shell_call_output_content.delta", piece) for _ in range(rng.randint(0, 3))]
        return item | {"output": whole["output"]}, [*events, ("response.shell_call_output_content.done", whole)]
    name = rng.choice(("mcp_list_tools", "mcp_approval_request", "compaction", "tool_search_output", "x:y"))
    events = [("response.compaction.compacting", {})] if name == "compaction" else []
    return item | {"type": name, "tools": []}, events


_CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": '{"a":1}'}
_TEXT = {"type": "output_text", "text": "all", "annotations": [{"a": 1}]}
_ADDED = "response.output_item.added"
_DONE = "response.output_item.done"

# fmt: off
SOURCE = Source(
    dialect="responses",
    frames=frames,
    whole=whole,
    rich=(
        {"type": "error", "code": "c", "message": "m"}, {"type": "error", "error": {"message": "m", "code": 5}},
        {"type": "response.error", "error": "no"}, {"error": {"message": "m"}}, {"message": "no", "code": 5},
        {"detail": "gone"}, {"type": "invalid_request_error", "message": "m"}, {"type": "x:y", "error": "no"},
        {"type": "response.failed", "message": "no"}, {"type": "response.failed", "response": {"status": "failed"}},
        {"type": "response.completed"}, {"type": "response.completed", "response": {"output": [_CALL]}},
        {"type": "response.done", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_tokens"}}},
        {"type": "response.created", "response": {"id": "resp_2", "model": "m"}},
        {"type": "response.in_progress", "response": {"id": "resp_3", "x": 1, "usage": {"input_tokens": 3}}},
        {"type": "response.keepalive"}, {"type": "ping"}, {"type": "keepalive", "sequence_number": 1},
        {"type": "response.output_text.delta", "delta": "more"}, {"type": "response.text.delta", "delta": "\ud83d"},
        {"type": "response.output_text.delta", "delta": "\ude00", "output_index": 0, "logprobs": [1]},
        {"type": "response.reasoning_summary.delta", "delta": "hm", "summary_index": 0},
        {"type": "response.function_call_arguments.delta", "delta": '{"a":1}', "output_index": 1},
        {"type": "response.function_call_arguments.delta", "delta": "{}", "call_id": "call_1", "name": "f"},
        {"type": "response.function_call_arguments.done", "arguments": {"a": 1}, "item_id": "fc_1"},
        {"type": _ADDED, "output_index": 0, "item": _CALL}, {"type": _DONE, "item": _CALL},
        {"type": _DONE, "output_index": 1, "item": _CALL | {"status": "incomplete"}},
        {"type": _DONE, "item": _CALL | {"id": "fc_2", "arguments": {"a": 1}}},
        {"type": _ADDED, "item": {"type": "message", "id": "msg_1", "phase": "x", "content": [_TEXT]}},
        {"type": _DONE, "item": {"type": "message", "id": "msg_1", "phase": "y", "content": [_TEXT, {"type": "z"}]}},
        {"type": _ADDED, "output_index": 2, "item": {"type": "message", "content": [], "phase": "x"}},
        {"type": _DONE, "output_index": 2, "item": {"type": "message", "content": "text", "phase": "x"}},
        {"type": _DONE, "item": {"content": [{"text": "t"}, "u", 5, {"type": 5}], "summary": 5}},
        {"type": _DONE, "item": {"type": "reasoning", "content": [{"type": "text", "text": "t"}], "summary": ["s"]}},
        {"type": _DONE, "item": {"type": "reasoning", "encrypted_content": "e"}},
        {"type": _DONE, "item": {"type": "mcp_call", "id": "m", "name": "f", "arguments": "{}", "output": [1, 2]}},
        {"type": _DONE, "item": {"type": "function_call_output", "call_id": "call_1", "output": "ok", "x": 1}},
        {"type": _ADDED, "output_index": 0, "item": {"type": "shell_call_output", "id": "so_1", "call_id": "call_1"}},
        {"type": "response.shell_call_output_content.delta", "item_id": "so_1", "delta": {"stdout": "a"}},
        {"type": "response.shell_call_output_content.delta", "output_index": 0, "delta": None, "x": []},
        {"type": "response.compaction.compacting"}, {"type": _ADDED, "item": {"type": "compaction", "id": 5}},
        {"type": _DONE, "item": {"type": "compaction", "id": "\ud83d", "x": "\ud83d"}},
        {"type": "response.content_part.added", "part": {"type": "z"}},
        {"type": "response.content_part.added", "output_index": 0, "content_index": 0, "part": _TEXT | {"x": 1}},
        {"type": "response.content_part.done", "content_index": 0, "part": _TEXT},
        {"type": "response.output_text.annotation.added", "annotation": {"a": 1}, "output_index": 0},
        {"object": "response", "status": "completed", "output": [_CALL]}, {"object": "response"},
        [{"type": "response.completed"}], [{"error": {"message": "m"}}], "\ud83d", 7,
    ),
    members=(
        "type", "sequence_number", "response", "item", "item_id", "call_id", "name", "output_index", "content_index",
        "summary_index", "part", "delta", "text", "refusal", "arguments", "input", "code", "annotation", "annotations",
        "error", "message", "id", "object", "created_at", "model", "status", "output", "usage", "incomplete_details",
        "reason", "role", "content", "summary", "encrypted_content", "phase", "x_unknown", "action", "operation",
        "result", "output_format", "environment", "execution", "detail", "obfuscation",
    ),
    values=(
        "message", "reasoning", "function_call", "custom_tool_call", "mcp_call", "web_search_call", "output_text",
        "image_generation_call", "function_call_output", "shell_call", "code_interpreter_call", "refusal",
        "shell_call_output", "compaction",
        "reasoning_text", "summary_text", "text", "completed", "in_progress", "incomplete", "failed", "cancelled",
        "commentary", "response", "response.output_text.delta", "response.completed", "response.failed",
        "response.function_call_arguments.delta", _ADDED, _DONE, "ping", "error", 0, 1, 2, 3, "fc_1", "call_1", "f",
        _CALL, _TEXT, [_TEXT], [_CALL], {"type": "message", "id": "msg_1", "content": [_TEXT]},
        '{"a":', "1}", {"a": {}}, " ", "null", {"reason": "content_filter"}, {"type": "container_auto"}, "server",
        ["s"],
    ),
    events=(
        "response.created", _ADDED, _DONE, "response.output_text.delta", "response.completed", "response.failed",
        "response.function_call_arguments.delta", "ping", "message", "keepalive", "x",
    ),
)
# fmt: on
