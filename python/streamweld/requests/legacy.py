"""Replace `functions` and `function_call` in Chat Completions requests with `tools` and `tool_choice`.

`history.convert` writes calls as `tool_calls`, which the API accepts only together with `tools`. A request without
calls keeps the deprecated members if the gateway accepts them, because the client may support only responses in the
deprecated form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from streamweld.requests.tables import is_list, listed, object_of

if TYPE_CHECKING:
    from streamweld.requests.context import RequestContext

__all__ = ["modernize"]

_CALLS: Final = ("function_call", "tool_calls")


def modernize(context: RequestContext) -> None:
    """Replace the deprecated members of `context.request`, for a target with the same API."""
    request = context.request
    functions = request.get("functions")
    if not context.same or context.target != "openai-chat" or not is_list(functions) or not _must(context):
        return
    made: dict[str, Any] = {}
    for name, value in request.items():
        if name == "functions":
            tools = [{"type": "function", "function": function} for function in listed(functions)]
            first = len(listed(request.get("tools")))
            made["tools"] = [*listed(request.get("tools")), *tools]
            for n in range(len(tools)):
                at_tool = ("tools", str(first + n))
                context.moved |= {at_tool: (name, n), (*at_tool, "function"): (name, n)}
            context.edit("legacy_functions", ("functions",), "replaced functions with tools")
        elif name == "function_call" and value is not None:
            if request.get("tool_choice") is None:
                choice: Any = object_of(value)
                made["tool_choice"] = {"type": "function", "function": dict(choice)} if choice else value
                context.moved["tool_choice",] = (name,)
            context.edit("legacy_functions", ("function_call",), "replaced function_call with tool_choice", value)
        elif name not in made:
            made[name] = value
    context.request = made


def _must(context: RequestContext) -> bool:
    facts = context.facts
    if "functions" in facts.get("lacks", ()):
        return True
    messages = [object_of(message) for message in listed(context.request.get("messages"))]
    return any(message.get(name) for message in messages for name in _CALLS)
