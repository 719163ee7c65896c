"""Runs streamweld on its own conformance suite: all categories, and all expectations of each case."""

from __future__ import annotations

import json
from typing import Any

import streamweld as sw
from streamweld import history, requests
from streamweld.errors import StreamError
from streamweld.usage import normalized

from tests.history.jsonable import marked
from tests.support.harness import policy_of
from tests.text_calls.support import calls_of
from tests.text_calls.support import read as read_text

READER = {"name": "streamweld", "version": sw.__version__}
# The members of a request that contain the history.
HISTORY = {"messages", "input", "contents", "system", "systemInstruction", "instructions"}


def close(reader: Any, case: dict[str, Any]) -> Any:
    return reader.close(broken=True) if case["end"] == "broken" else reader.close()


def stream(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    parser = sw.StreamParser(**{"dialect": case["dialect"], **policy_of(case["options"])})
    error = None
    try:
        for piece in reads:
            parser.feed(piece)
        close(parser, case)
    except StreamError as fault:
        error = str(fault)
    response = parser.response
    if error is None and response.error is not None:
        error = response.error.message
    return {
        "error": error,
        "calls": [
            {"id": call.call_id, "name": call.name, "arguments": call.arguments}
            for call in response.tool_calls
            if call.dispatchable
        ],
        "text": response.text,
        "reasoning": response.reasoning,
        "refusal": response.refusal,
        "finish": response.finish_reason,
        "completeness": response.completeness,
    }


def sse(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    reader = sw.sse.FrameReader(last_event_id=case["options"].get("last_event_id", ""))
    frames = [frame for piece in reads for frame in reader.feed(piece)]
    final = {"last_event_id": reader.last_event_id, "reconnection_time": reader.reconnection_time}
    return {"error": None, "events": [[f.event, f.data, f.id, f.retry] for f in frames], "final": final}


def converted(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    requested = case["options"]
    options = {
        "seed": "vec",
        **policy_of(requested["options"]),
        "source": requested["source"],
        "target": requested["target"],
    }
    converter = sw.StreamConverter(**options)
    output = b"".join([converter.feed(piece) for piece in reads]) + close(converter, case)
    diagnostics = converter.diagnostics
    return {
        "output": output.decode(),
        "error": None if converter.error is None else type(converter.error).__name__,
        "losses": [d.detail for d in diagnostics if d.code == "not_carried"],
        "repaired": converter.repaired,
        "diagnostics": [d.code for d in diagnostics],
    }


def converted_history(case: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
    options = dict(case["options"])
    if "policy" in options:
        options["policy"] = history.HistoryPolicy(**options["policy"])
    made = history.convert(options.pop("messages"), **options)
    return {
        "payload": marked(made.payload),
        "edits": [[edit.rule, edit.path] for edit in made.edits],
        "losses": [[loss.feature, loss.path] for loss in made.losses],
        "ids": [list(pair) for pair in made.ids],
    }


def checked_history(case: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
    options = {key: value for key, value in case["options"].items() if key not in ("source", "messages")}
    found = history.check(case["options"]["messages"], **options)
    return {"violations": [[violation.rule, violation.path] for violation in found]}


def converted_request(case: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
    options = dict(case["options"])
    names = options.pop("names", {})
    made = requests.convert(options.pop("request"), **options)
    written = json.dumps({name: value for name, value in made.payload.items() if name not in HISTORY})
    for name, stands_for in names.items():
        written = written.replace(json.dumps(made.tool_names[name]), json.dumps(stands_for))
    return {
        "options": json.loads(written),
        "edits": [[edit.rule, edit.path] for edit in made.edits],
        "losses": [[loss.feature, loss.path] for loss in made.losses],
    }


def checked(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    found = sw.check(b"".join(reads), case["options"]["dialect"])
    return {"violations": [[v.rule, v.where.event_ordinal, v.where.byte_offset] for v in found]}


def counted(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    options = case["options"]
    usage = options["usage"] if "usage" in options else sw.parse(b"".join(reads), dialect=options["dialect"]).usage
    if usage is None:
        return {"normalized": None}
    return {"normalized": normalized(usage, options.get("dialect")).to_dict()}


def found_in_text(case: dict[str, Any], _: list[bytes]) -> dict[str, Any]:
    options = case["options"]
    given = {key: options[key] for key in ("structured", "reasoning") if key in options}
    finish = options.get("finish_reason", "stop")
    policy = options.get("policy", {})
    parser = read_text(sw.backend, options["pieces"], tools=options["tools"], finish=finish, **given, **policy)
    response = parser.response
    return {
        "text": response.text,
        "calls": [[name, arguments] for name, arguments in calls_of(parser)],
        "finish": response.finish_reason,
        "raw": response.raw_finish_reason,
        "arguments": [call.arguments for call in response.tool_calls],
        "diagnostics": [[d.code, d.detail] for d in parser.diagnostics if d.code.startswith("text_call")],
    }


CATEGORIES = {
    "stream": stream,
    "sse": sse,
    "conversion": converted,
    "repair": converted,
    "history": converted_history,
    "history_check": checked_history,
    "request": converted_request,
    "check": checked,
    "usage": counted,
    "text_call": found_in_text,
}


def read(case: dict[str, Any], reads: list[bytes]) -> dict[str, Any]:
    return CATEGORIES[case["category"]](case, reads)
