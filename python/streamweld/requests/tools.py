"""Convert tool definitions between APIs: functions, free-form tools, hosted tools and MCP servers.

A tool that the provider runs rarely has an equivalent in other APIs. A tool that the client runs becomes a function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from streamweld.history.ids import qualified
from streamweld.history.provider_metadata import cache_mark
from streamweld.requests import schemas, strict_schemas, tool_schemas
from streamweld.requests.tables import MODEL, at, is_accepted, is_list, listed, object_of, put, spec, steps

if TYPE_CHECKING:
    from streamweld.requests.context import RequestContext
    from streamweld.requests.names import Names
    from streamweld.requests.tables import Json

__all__ = ["COMPLETED", "Tool", "accepted", "fit_strict", "read", "repeated", "schema_place", "takes", "write"]

Kind: TypeAlias = Literal["function", "custom", "hosted", "mcp", "unnamed", "other"]
Path: TypeAlias = tuple[str | int, ...]

COMPLETED: Final = "added to the schema the members that the target requires (`type: object`, `properties`)"
_FREE_FORM: Final = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
_CHAT: Final = frozenset({"name", "description", "parameters", "strict"})
_RESPONSES: Final = _CHAT | {"type"}
_CUSTOM: Final = frozenset({"type", "name", "description", "format"})
_ANTHROPIC: Final = frozenset({"type", "name", "description", "input_schema", "strict"})
_GEMINI: Final = frozenset({"name", "description", "parameters", "parametersJsonSchema", "parameters_json_schema"})
_BEDROCK: Final = frozenset({"name", "description", "inputSchema", "strict"})
_AI_SDK: Final = frozenset({"type", "name", "description", "inputSchema", "parameters", "strict"})
_SEARCH_OF_CHAT: Final = ("web_search_options",)  # the search of Chat Completions is an option, not a tool
_DATED: Final = re.compile(r"_\d{8}$")  # the types of Anthropic's predefined tools end with a date
_HOLDERS: Final = ("function", "custom", "toolSpec")  # members that contain the definition in some APIs
_SCHEMAS: Final = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema")
_MCP: Final = frozenset({"type", "server_label", "server_url", "authorization", "allowed_tools", "require_approval"})


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool of a request.

    `hosted`: streamweld's name for a tool that the provider runs, or `client` for a predefined tool that the client
    runs. `form`: the API whose format the definition of a hosted tool has, because clients of Chat Completions also
    send definitions of other APIs. `carried`: members that have an equivalent in other APIs. `extra`: members that
    exist only in the source API. `format`: the grammar of a free-form tool, as (syntax, definition). `places`: the
    paths of members that the source API writes outside of the definition.
    """

    kind: Kind
    path: Path
    raw: Any
    name: str = ""
    description: str | None = None
    schema: Any = None
    strict: bool | None = None
    format: tuple[Any, Any] | None = None
    hosted: str = ""
    form: str = ""
    carried: Json = field(default_factory=dict[str, Any])
    extra: Json = field(default_factory=dict[str, Any])
    places: Mapping[str, Path] = field(default_factory=dict[str, Path])

    def place(self, name: str) -> Path:
        """Return the path of a member of the definition, which some APIs nest in another object."""
        raw = object_of(self.raw)
        inner = next((holder for holder in _HOLDERS if name in object_of(raw.get(holder))), None)
        return self.places.get(name) or ((*self.path, name) if inner is None else (*self.path, inner, name))


def read(context: RequestContext) -> list[Tool]:
    """Return the tools of the request, in order, and mark their members as used."""
    request = context.request
    found: list[Tool] = []
    match context.source:
        case "openai-chat" | "mistral":
            found = [_of_chat(raw, ("tools", n)) for n, raw in _listed(context, "tools")]
            found += [_function(raw, ("functions", n), _CHAT, "parameters") for n, raw in _listed(context, "functions")]
            searched = request.get("web_search_options")
            if searched is not None:
                context.used.add(("web_search_options",))
                found.append(_search_of_chat(searched))
        case "responses":
            for n, raw in _listed(context, "tools"):
                path = ("tools", n)
                found += [_of_responses(raw, path)] if context.same else _of_namespace(context, raw, path)
        case "anthropic":
            found = _of_anthropic(context)
        case "gemini":
            for n, raw in _listed(context, "tools"):
                place = ("tools", n)
                if isinstance(raw, Mapping):
                    found += _of_gemini(cast("Json", raw), place)
                else:  # google-genai also accepts Python functions
                    found.append(Tool("other", place, raw))
        case "bedrock-converse":
            for n, raw in _listed(context, "toolConfig.tools"):
                mark = object_of(raw).get("cachePoint")
                if mark is None:
                    found.append(_of_bedrock(raw, ("toolConfig", "tools", n)))
                elif not found:
                    context.lose("cachePoint", ("toolConfig", "tools", n), "no tool precedes the cache point", mark)
                else:
                    extra = {**found[-1].extra, "cache_control": _cache_control(object_of(mark))}
                    found[-1] = replace(found[-1], extra=extra, places={"cache_control": ("toolConfig", "tools", n)})
        case "ai-sdk-model":
            found = _of_ai_sdk(context)
        case _:
            pass
    return found


def accepted(tools: Sequence[Tool], context: RequestContext) -> list[Tool]:
    """Return the tools that the target and its gateway accept, and record all others as losses.

    Some tools are converted to functions.
    """
    kept: list[Tool] = []
    names: set[str] = set()
    for tool in tools:
        fit = _fit(tool, context)
        if fit is not None and not repeated(fit, names, context):
            kept.append(fit)
    return kept


def repeated(tool: Tool, names: set[str], context: RequestContext) -> bool:
    """Return whether an earlier tool has the same name, and record the later one as a loss. `names`: the earlier names,
    to which the function adds the name.
    """
    if tool.kind not in ("function", "custom"):
        return False
    if tool.name in names:
        context.lose("tools", tool.path, "another tool has the same name", tool.raw)
        return True
    names.add(tool.name)
    return False


def takes(tool: Tool, context: RequestContext) -> bool:
    """Return whether source and target are the same API and the gateway accepts the tool unchanged."""
    if tool.kind == "unnamed" or (tool.kind == "function" and schemas.of_object(tool.schema, context.target) is None):
        return False
    if tool.kind == "custom" and not _free_form(context):
        return False
    sent = _sent_type(tool)
    if not is_accepted(sent, context.profile.constraints):
        return False
    if context.target in ("openai-chat", "mistral"):
        if tool.path[0] == "tools" and tool.kind == sent and sent not in tool.raw:
            return False  # as in the Responses API, the definition is not nested in another member
    elif context.target in ("anthropic", "responses") and _is_nested(object_of(tool.raw)):
        return False
    items = context.profile.constraints.get("items")
    if (
        context.target != "responses"
        or items is None
        or "*" in items
        or (tool.kind in ("function", "custom") and not tool.hosted)
    ):
        return True
    kind = str(object_of(tool.raw).get("type"))
    return any(f"{name}_call" in items for name in (kind, kind.partition("_preview")[0]))


def _sent_type(tool: Tool) -> str:
    """Return the `type` of the tool in the request, or the name of the member that represents a tool."""
    if tool.path == _SEARCH_OF_CHAT:
        return "web_search_options"
    kind = object_of(tool.raw).get("type")
    return kind if isinstance(kind, str) else tool.kind


def write(tools: Sequence[Tool], context: RequestContext, names: Names, made: dict[str, Any]) -> Sequence[Tool]:
    """Write the accepted tools into `made`, the request for the target, and return those that are in its list of tools.

    In Chat Completions, web search is an option and not in the list, so a tool choice does not affect it.
    """
    named = [replace(tool, name=names.fit(tool.name, tool.path)) if tool.name else tool for tool in tools]
    match context.target:
        case "gemini":
            functions = [_to_gemini(tool, context) for tool in named if tool.kind == "function"]
            entries: list[Any] = [{"functionDeclarations": functions}] if functions else []
            for tool in named:
                if tool.kind == "hosted":
                    name = _hosted(tool, "gemini")["match"]
                    context.written[f"tools.{len(entries)}.{name}"] = tool.path
                    entries.append({name: _carried(tool, "gemini", {}, context)})
        case "bedrock-converse":
            entries = [entry for tool in named for entry in _to_bedrock(tool, context)]
            if entries:
                put(made, "toolConfig.tools", entries)
            return tools
        case "anthropic":
            entries = [_to_anthropic(tool, context) for tool in named]
            servers = [_server(tool) for tool in named if tool.kind == "mcp"]
            if servers:
                made["mcp_servers"] = servers
        case "responses":
            entries = [_to_responses(tool, context) for tool in named]
        case "ai-sdk-model":
            entries = [_to_ai_sdk(tool, context) for tool in named]
        case _:
            searches = [tool for tool in named if tool.kind == "hosted"]
            if searches:
                made["web_search_options"] = _search_to_chat(searches, context)
            entries = [_to_chat(tool, context) for tool in named if tool.kind != "hosted"]
            tools = [tool for tool in tools if tool.kind != "hosted"]
    if entries:
        made["tools"] = entries
    return tools


# --- reading the definitions of each source


def _listed(context: RequestContext, member: str) -> list[tuple[int, Any]]:
    """Return the elements of a list at a dotted path, and mark it as used. Another value is recorded as a loss."""
    value = at(context.request, member)
    path = steps(member)
    context.used.add(path)
    if value is None:
        return []
    if not is_list(value):
        context.lose(path[-1], path, "the value is not a list", value, vital=True)
        return []
    return list(enumerate(cast("Sequence[Any]", value)))


def _extra(raw: Json, known: frozenset[str]) -> Json:
    return {name: value for name, value in raw.items() if name not in known and value is not None}


def _function(raw: Any, path: Path, known: frozenset[str], schema: str, extra: Json | None = None) -> Tool:
    given = object_of(raw)
    name = given.get("name")
    if not isinstance(name, str) or not name:
        return Tool("unnamed", path, raw)
    description, strict = given.get("description"), given.get("strict")
    return Tool(
        "function",
        path,
        raw,
        name=name,
        description=description if isinstance(description, str) else None,
        schema=given.get(schema),
        strict=strict if isinstance(strict, bool) else None,
        extra={**(extra or {}), **_extra(given, known)},
    )


def _custom(raw: Any, path: Path, grammar: Json, extra: Json | None = None) -> Tool:
    given = object_of(raw)
    made = _function(raw, path, _CUSTOM, "", extra)
    if made.kind == "unnamed":
        return made
    form = given.get("format")
    syntax = (grammar.get("syntax"), grammar.get("definition")) if object_of(form).get("type") == "grammar" else None
    return replace(made, kind="custom", format=syntax)


def _is_nested(given: Json) -> bool:
    """Return whether the definition is in another member, as in Chat Completions."""
    kind = given.get("type")
    kind = "function" if kind is None else kind
    return kind in ("function", "custom") and isinstance(given.get(kind), Mapping)


def _of_chat(raw: Any, path: Path) -> Tool:
    """Read a tool of Chat Completions. Clients and gateways also use the definitions of other APIs."""
    given = object_of(raw)
    kind = given.get("type")
    outer = _extra(given, frozenset({"type", "function", "custom"}))
    if kind == "custom" and "custom" in given:
        inner = object_of(given["custom"])
        return replace(_custom(inner, path, object_of(object_of(inner.get("format")).get("grammar")), outer), raw=raw)
    if kind in (None, "function") and "function" in given:
        return replace(_function(given["function"], path, _CHAT, "parameters", outer), raw=raw)
    if kind is None:
        return _function(raw, path, _ANTHROPIC, "input_schema") if "input_schema" in given else Tool("other", path, raw)
    word = object_of(given.get("function")).get("name", kind)
    own = spec("hosted")["chat"].get(word) if isinstance(word, str) else None
    if own is not None:
        return Tool("hosted", path, raw, hosted=own, extra=_extra(given, frozenset({"type", "function"})))
    if isinstance(kind, str) and _DATED.search(kind):
        return _of_client(raw, path) or _of_provider(raw, path, "anthropic")
    return _of_responses(raw, path)


def _search_of_chat(value: Any) -> Tool:
    given = object_of(value)
    carried: dict[str, Any] = {}
    location = object_of(given.get("user_location"))
    if location:
        carried["user_location"] = {"type": "approximate", **object_of(location.get("approximate"))}
    if given.get("search_context_size") is not None:
        carried["search_context_size"] = given["search_context_size"]
    extra = _extra(given, frozenset({"user_location", "search_context_size"}))
    return Tool("hosted", _SEARCH_OF_CHAT, value, hosted="web_search", carried=carried, extra=extra)


def _of_responses(raw: Any, path: Path) -> Tool:
    given = object_of(raw)
    kind = given.get("type")
    if _is_nested(given):
        return _of_chat(raw, path)
    if kind == "function":
        return _function(raw, path, _RESPONSES, "parameters")
    if kind == "custom":
        return _custom(raw, path, object_of(given.get("format")))
    if kind == "mcp":
        return Tool("mcp", path, raw, extra=_extra(given, _MCP))
    row = spec("built_in_tools")["each"].get(kind) if isinstance(kind, str) else None
    if row is not None and isinstance(kind, str):
        extra = _extra(given, frozenset({"type"}))
        return Tool("function", path, raw, kind, row["description"], row["schema"], extra=extra, hosted="client")
    return _of_provider(raw, path, "responses")


def _of_namespace(context: RequestContext, raw: Any, path: Path) -> list[Tool]:
    """Read a tool of the Responses API. The tools of a namespace get names that include the namespace."""
    given = object_of(raw)
    namespace = given.get("name")
    if given.get("type") != "namespace" or not is_list(given.get("tools")) or not isinstance(namespace, str):
        return [_of_responses(raw, path)]
    found: list[Tool] = []
    for n, inner in enumerate(listed(given["tools"])):
        tool = _of_responses(inner, (*path, "tools", n))
        name = qualified(namespace, tool.name)
        if tool.name and name != tool.name:
            context.edit("tool_name", tool.path, f"changed the tool name {tool.name!r} to {name!r}", namespace)
            tool = replace(tool, name=name)
        found.append(tool)
    for member, value in _extra(given, frozenset({"type", "name", "tools"})).items():
        context.lose(member, (*path, member), f"{context.target} has no namespaces of tools", value)
    return found


def _of_anthropic(context: RequestContext) -> list[Tool]:
    servers = {str(object_of(raw).get("name")): (n, raw) for n, raw in _listed(context, "mcp_servers")}
    found: list[Tool] = []
    for n, raw in _listed(context, "tools"):
        given, path = object_of(raw), ("tools", n)
        kind = given.get("type")
        if _is_nested(given):
            found.append(_of_chat(raw, path))
        elif kind in (None, "custom"):
            found.append(_function(raw, path, _ANTHROPIC, "input_schema"))
        elif kind == "mcp_toolset":
            at_server, server = servers.pop(str(given.get("mcp_server_name")), (None, None))
            known = frozenset({"type", "mcp_server_name"})
            tool = Tool("mcp", path, {"toolset": raw, "server": server}, extra=_extra(given, known))
            found.append(tool if at_server is not None else Tool("other", path, raw))
        else:
            found.append(_of_client(raw, path) or _of_provider(raw, path, "anthropic"))
    for at_server, server in servers.values():
        found.append(Tool("mcp", ("mcp_servers", at_server), {"toolset": {}, "server": server}))
    return found


def _of_client(raw: Any, path: Path) -> Tool | None:
    """Return an Anthropic tool that the client runs, such as the text editor, or None for other tools.

    Such a tool is treated as a function, because its calls are `tool_use` blocks, like calls to functions.
    """
    given = object_of(raw)
    kind, name = given.get("type"), given.get("name")
    for prefix, row in spec("client_tools")["each"].items():
        if isinstance(kind, str) and kind.startswith(prefix) and isinstance(name, str):
            extra = _extra(given, frozenset({"type", "name"}))
            return Tool("function", path, raw, name, row["description"], row["schema"], extra=extra, hosted="client")
    return None


def _of_gemini(raw: Json, path: Path) -> list[Tool]:
    found: list[Tool] = []
    for member, value in raw.items():
        if member in ("functionDeclarations", "function_declarations") and is_list(value):
            found += [
                _declared(object_of(declared), (*path, member, n))
                for n, declared in enumerate(cast("Sequence[Any]", value))
            ]
        elif value is not None:
            found.append(_of_provider({member: value}, (*path, member), "gemini"))
    return found


def _declared(raw: Json, path: Path) -> Tool:
    made = _function(raw, path, _GEMINI, "parametersJsonSchema")
    schema = raw.get("parametersJsonSchema", raw.get("parameters_json_schema"))
    return replace(made, schema=schemas.from_gemini(raw.get("parameters")) if schema is None else schema)


def _of_bedrock(raw: Any, path: Path) -> Tool:
    given = object_of(raw)
    if "toolSpec" not in given:
        return Tool("other", path, raw)
    inner = object_of(given["toolSpec"])
    made = _function(inner, path, _BEDROCK, "")
    return replace(made, raw=raw, schema=object_of(inner.get("inputSchema")).get("json"))


def _of_ai_sdk(context: RequestContext) -> list[Tool]:
    """Read AI SDK tools: a list of definitions or, as in `generateText`, an object that maps names to definitions."""
    value = context.request.get("tools")
    context.used.add(("tools",))
    found: list[Tool] = []
    if isinstance(value, Mapping):
        for name, raw in cast("Json", value).items():
            found.append(_of_ai_sdk_tool({"name": name, **object_of(raw)}, ("tools", name)))
    else:
        found = [_of_ai_sdk_tool(object_of(raw), ("tools", n)) for n, raw in _listed(context, "tools")]
    return found


def _of_ai_sdk_tool(raw: Json, path: Path) -> Tool:
    if raw.get("type", "function") not in ("function", "dynamic"):
        return Tool("other", path, raw)
    schema = raw.get("inputSchema", raw.get("parameters"))
    inner = object_of(schema).get("jsonSchema", schema)
    return _with_mark(replace(_function(raw, path, _AI_SDK, "inputSchema"), schema=inner))


def _with_mark(tool: Tool) -> Tool:
    """Return the tool. A cache mark in its provider options becomes the member `cache_control`."""
    found = cache_mark(tool.extra.get("providerOptions"))
    if found is None:
        return tool
    mark, rest, place = found
    extra = {name: value for name, value in tool.extra.items() if name != "providerOptions"}
    extra |= {"cache_control": mark, **({"providerOptions": rest} if rest else {})}
    return replace(tool, extra=extra, places={"cache_control": (*tool.path, "providerOptions", *place)})


def _of_provider(raw: Any, path: Path, source: str) -> Tool:
    """Return a tool that the provider runs; its kind is `other` if no other API has an equivalent."""
    given = object_of(raw)
    for word, apis in spec("hosted")["each"].items():
        row = apis.get(source)
        if row is None:
            continue
        if source == "gemini":
            fits, inner_members = row["match"] in given, object_of(given.get(row["match"]))
        else:
            kind = given.get("type")
            fits, inner_members = isinstance(kind, str) and kind.startswith(row["match"]), given
        if fits and all(name in inner_members for name in row.get("required", ())):
            carried: dict[str, Any] = {}
            places: dict[str, Path] = {}
            known = {"type", "name"} if source != "responses" else {"type"}
            known |= {name for name, value in row["write"].items() if inner_members.get(name) == value}
            for name, paths in spec("hosted")["carried"].get(word, {}).items():
                path_in_source = paths.get(source)
                if path_in_source is not None:
                    known.add(path_in_source.partition(".")[0])
                    value = at(inner_members, path_in_source)
                    if value is not None:
                        carried[name] = value
                        places[name] = (*path, *steps(path_in_source))
            extra = _extra(inner_members, frozenset(known))
            return Tool("hosted", path, raw, hosted=word, form=source, carried=carried, extra=extra, places=places)
    return Tool("other", path, raw)


# --- adapting tools to the target


def _fit(tool: Tool, context: RequestContext) -> Tool | None:
    """Return the tool in a form that the target accepts, or None if it was recorded as a loss."""
    target = context.target
    if tool.kind == "function":
        if target == "ai-sdk-ui":
            return _lost(tool, context, "UI messages cannot contain tool definitions")
        if tool.hosted == "client":
            context.lose(
                "type",
                (*tool.path, "type"),
                "the target has no built-in tool of this type; it is declared as a function",
                object_of(tool.raw).get("type"),
            )
        if schemas.of_object(tool.schema, context.target) is None:
            return _lost(tool, context, "its schema does not describe an object")
        return tool
    if tool.kind == "custom":
        free_form = _free_form(context) and is_accepted("custom", context.profile.constraints)
        if target in ("openai-chat", "responses") and free_form:
            return tool
        if target == "ai-sdk-ui":
            return _lost(tool, context, "UI messages cannot contain tool definitions")
        why = "the target has no free-form tools; the tool is declared as a function with the text in `input`"
        context.lose("custom", (*tool.path, "type"), why, "custom")
        if tool.format is not None:
            syntax, definition = tool.format
            context.lose("format", tool.place("format"), why, {"syntax": syntax, "definition": definition})
        return replace(tool, kind="function", schema=_FREE_FORM, format=None)
    if tool.kind == "mcp":
        return _fit_mcp(tool, context)
    if tool.kind == "hosted" and _has_hosted(tool, context) and _runs_tools(context):
        return tool
    if tool.kind == "hosted":
        return _lost(tool, context, f"{_target_name(context)} does not run this tool")
    if tool.kind == "unnamed":
        return _lost(tool, context, "the tool has no name")
    return _lost(tool, context, f"{_target_name(context)} does not have this type of tool")


def _fit_mcp(tool: Tool, context: RequestContext) -> Tool | None:
    if context.target not in ("responses", "anthropic") or not _runs_tools(context):
        return _lost(tool, context, f"{_target_name(context)} cannot call MCP servers")
    raw = object_of(tool.raw)
    if "toolset" in raw:
        return tool if context.target == "anthropic" else _fit_toolset(tool, context)
    if context.target == "responses":
        return tool
    if raw.get("require_approval") != "never":
        return _lost(tool, context, "the tool requires approval, and the target runs MCP tools without approval")
    if not isinstance(raw.get("server_url"), str):
        return _lost(tool, context, "a connector has no server URL that the target could call")
    if object_of(raw.get("allowed_tools")).get("read_only") is not None:
        return _lost(tool, context, "the target cannot restrict an MCP server to tools that only read")
    return tool


def _fit_toolset(tool: Tool, context: RequestContext) -> Tool | None:
    """Return Anthropic's toolset if the Responses API can express it.

    That API can allow single tools of an MCP server, but cannot forbid them.
    """
    raw = object_of(tool.raw)
    toolset, server = object_of(raw.get("toolset")), object_of(raw.get("server"))
    if object_of(server.get("tool_configuration")).get("enabled") is False:
        return _lost(tool, context, "the MCP server is disabled")
    configs = object_of(toolset.get("configs")).values()
    if _enabled(toolset, server) is None and any(object_of(config).get("enabled") is False for config in configs):
        return _lost(tool, context, "the target cannot forbid single tools of an MCP server")
    return tool


def _free_form(context: RequestContext) -> bool:
    """Return whether the gateway accepts free-form tools. The same constraint applies to calls in the history."""
    return context.profile.constraints.get("free_form_tools") is not False


def _lost(tool: Tool, context: RequestContext, why: str) -> Tool | None:
    """Record the loss of a tool, and return None."""
    context.lose("tools", tool.path, why, tool.raw, vital=True)
    return None


def _target_name(context: RequestContext) -> str:
    return f"{context.target} (gateway {context.profile.name})" if context.facts else context.target


def _runs_tools(context: RequestContext) -> bool:
    """Return whether the target is the vendor's own server. Other servers cannot run hosted tools."""
    return context.profile.name in spec("hosted")["own"].get(context.target, ())


def _hosted(tool: Tool, target: str) -> Any:
    return spec("hosted")["each"].get(tool.hosted, {}).get(target)


def _has_hosted(tool: Tool, context: RequestContext) -> bool:
    """Return whether the target and the model of the request support the hosted tool."""
    row = _hosted(tool, context.target)
    model = context.request.get(MODEL.get(context.source, "model"))
    return row is not None and ("models" not in row or re.search(row["models"], str(model)) is not None)


def _has_form_of_target(tool: Tool, context: RequestContext) -> bool:
    """Return whether the definition of a hosted tool has the format of the target's API, in which case it is kept."""
    return tool.form == context.target and is_accepted(_sent_type(tool), context.profile.constraints)


def _kept(tool: Tool, context: RequestContext) -> dict[str, Any]:
    """Return a definition in the target's format, without members that the target does not support."""
    names = spec("hosted")["kept"][context.target].get(tool.hosted, ())
    _lose_extra(tool, context, *names)
    lost = tool.extra.keys() - set(names)
    sent = {name: value for name, value in tool.raw.items() if name not in lost}
    return {**_plain(_hosted(tool, context.target)["write"]), **sent}


def _carried(tool: Tool, target: str, made: dict[str, Any], context: RequestContext) -> dict[str, Any]:
    """Add the members that have an equivalent in the target, and record all others as losses."""
    target_paths = spec("hosted")["carried"].get(tool.hosted, {})
    for name, value in tool.carried.items():
        path_in_target = target_paths.get(name, {}).get(target)
        if path_in_target is None:
            why = f"{target} does not have this member for the tool"
            vital = name not in spec("hosted")["preferences"]
            context.lose(name, tool.place(name), why, value, vital=vital)
        else:
            put(made, path_in_target, value)
    _lose_extra(tool, context)
    return made


def _lose_extra(tool: Tool, context: RequestContext, *kept: str) -> None:
    for name, value in tool.extra.items():
        if name not in kept:
            context.lose(
                name, tool.place(name), f"{context.target} does not have this member in a tool definition", value
            )


# --- writing the definitions of each target


def _common(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name} | ({"description": tool.description} if tool.description else {})


def _schema(tool: Tool, context: RequestContext) -> Any:
    made = schemas.of_object(tool.schema, context.target)
    if made is None or tool.schema is None:
        return _plain(made)
    fit = tool_schemas.fitted(made, schema_place(tool), context)
    if fit is made and made is not tool.schema:
        context.edit("tool_schema", tool.path, COMPLETED)
    return _plain(fit)


def fit_strict(schema: Any, tool: Tool, context: RequestContext) -> Any:
    """Return the schema of a tool with `strict: true`, with the changes that the gateway requires in strict mode.

    If strict mode does not accept the schema, return None and record the loss of `strict`. The tool then keeps its
    schema, because the model can follow the schema without strict mode.
    """
    subset = strict_schemas.subset_of(context)
    if subset is None:
        return schema
    found = strict_schemas.fitted(schema, subset, empty_is_closed=True)
    if found is None or found.closed:
        context.lose("strict", tool.place("strict"), strict_schemas.why_not(subset), True)
        return None
    strict_schemas.report(found, "tool_strict", schema_place(tool), context)
    return found.schema


def schema_place(tool: Tool) -> Path:
    """Return the path of the schema in the definition."""
    raw = object_of(tool.raw)
    inner = next((holder for holder in _HOLDERS if isinstance(raw.get(holder), Mapping)), None)
    member = next((name for name in _SCHEMAS if name in object_of(raw if inner is None else raw[inner])), "parameters")
    place = (*tool.path, member) if inner is None else (*tool.path, inner, member)
    return (*place, "json") if inner == "toolSpec" else place


def _strict(tool: Tool, schema: Any, context: RequestContext) -> tuple[Any, bool | None]:
    """Return the schema and the value of `strict`, in a form that the target accepts.

    The Responses API is strict by default if the schema fits, so a tool from that API stays strict even without
    `strict`.
    """
    strict = tool.strict
    own = context.source == "responses" and context.target in ("openai-chat", "mistral", "responses")
    if strict is None and own and not tool.hosted and tool.kind == "function":
        strict = schemas.is_strict(schema) or None
    if not strict:
        return schema, strict
    fit = fit_strict(schema, tool, context)
    return (schema, None) if fit is None else (fit, strict)


def _plain(value: Any) -> Any:
    """Return a frozen schema from the tables as plain dictionaries and lists. Other values are returned unchanged."""
    if isinstance(value, dict | list):
        return value  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, Mapping):
        return {name: _plain(member) for name, member in cast("Json", value).items()}
    return [_plain(item) for item in cast("Sequence[Any]", value)] if isinstance(value, tuple) else value


def _to_chat(tool: Tool, context: RequestContext) -> dict[str, Any]:
    own = context.facts.get("tool_members", ())
    _lose_extra(tool, context, *own)
    extra = {name: tool.extra[name] for name in own if name in tool.extra}
    made = _common(tool)
    if tool.kind == "custom":
        if tool.format is not None:
            grammar = {"syntax": tool.format[0], "definition": tool.format[1]}
            made["format"] = {"type": "grammar", "grammar": grammar}
        return {"type": "custom", "custom": made, **extra}
    if tool.schema is not None or context.target == "mistral":
        made["parameters"] = _schema(tool, context)
    schema, strict = _strict(tool, made.get("parameters", schemas.EMPTY), context)
    if "parameters" in made:
        made["parameters"] = schema
    if strict is not None:
        made["strict"] = strict
    return {"type": "function", "function": made, **extra}


def _search_to_chat(searches: Sequence[Tool], context: RequestContext) -> dict[str, Any]:
    """Return the search options of Chat Completions, which accepts only one search."""
    for tool in searches[1:]:
        _lost(tool, context, "the target accepts one search")
    made = _carried(searches[0], "openai-chat", {}, context)
    location = object_of(made.get("user_location"))
    if location:
        inner = {name: value for name, value in location.items() if name != "type" and value is not None}
        made["user_location"] = {"type": "approximate", "approximate": inner}
    return made


def _to_responses(tool: Tool, context: RequestContext) -> dict[str, Any]:
    if _has_form_of_target(tool, context):
        return _kept(tool, context)
    if tool.kind == "hosted":
        return _carried(tool, "responses", dict(_plain(_hosted(tool, "responses")["write"])), context)
    if tool.kind == "mcp":
        return _mcp_to_responses(tool, context)
    _lose_extra(tool, context)
    if tool.kind == "custom":
        made = {"type": "custom", **_common(tool)}
        if tool.format is not None:
            made["format"] = {"type": "grammar", "syntax": tool.format[0], "definition": tool.format[1]}
        return made
    # Always write `strict`, because the Responses API, unlike other APIs, is strict by default.
    schema, strict = _strict(tool, _schema(tool, context), context)
    return {"type": "function", **_common(tool), "parameters": schema, "strict": strict or False}


def _to_anthropic(tool: Tool, context: RequestContext) -> dict[str, Any]:
    if _has_form_of_target(tool, context):
        return _kept(tool, context)
    if tool.kind == "hosted":
        return _carried(tool, "anthropic", dict(_plain(_hosted(tool, "anthropic")["write"])), context)
    if tool.kind == "mcp":
        return _mcp_to_anthropic(tool, context)
    _lose_extra(tool, context, "cache_control")
    schema, strict = _strict(tool, _schema(tool, context), context)
    made = {**_common(tool), "input_schema": schema}
    if strict:
        made["strict"] = True
    if "cache_control" in tool.extra:
        made["cache_control"] = tool.extra["cache_control"]
    return made


def _to_gemini(tool: Tool, context: RequestContext) -> dict[str, Any]:
    _lose_extra(tool, context)
    if tool.strict:
        context.lose("strict", tool.place("strict"), "gemini does not have a strict mode for functions", True)
    made = _common(tool)
    schema = _schema(tool, context)
    if not schemas.is_empty(schema):
        made["parametersJsonSchema"] = schema
    return made


def _to_bedrock(tool: Tool, context: RequestContext) -> list[dict[str, Any]]:
    """Return the definition, followed by a cache point if the source tool has `cache_control`."""
    _lose_extra(tool, context, "cache_control")
    schema, strict = _strict(tool, _schema(tool, context), context)
    made = {**_common(tool), "inputSchema": {"json": schema}}
    entries: list[dict[str, Any]] = [{"toolSpec": {**made, "strict": True} if strict else made}]
    if "cache_control" in tool.extra:
        ttl = object_of(tool.extra["cache_control"]).get("ttl")
        entries.append({"cachePoint": {"type": "default"} if ttl is None else {"type": "default", "ttl": ttl}})
    return entries


def _cache_control(mark: Json) -> dict[str, Any]:
    """Convert a Bedrock cache point to Anthropic's `cache_control`."""
    return {"type": "ephemeral"} if mark.get("ttl") is None else {"type": "ephemeral", "ttl": mark["ttl"]}


def _to_ai_sdk(tool: Tool, context: RequestContext) -> dict[str, Any]:
    _lose_extra(tool, context)
    made = {"type": "function", **_common(tool), "inputSchema": _schema(tool, context)}
    return made if tool.strict is None else {**made, "strict": tool.strict}


def _mcp_to_responses(tool: Tool, context: RequestContext) -> dict[str, Any]:
    given = object_of(tool.raw)
    if "toolset" not in given:
        return dict(given)
    server = object_of(given.get("server"))
    made: dict[str, Any] = {"type": "mcp", "server_label": server.get("name"), "server_url": server.get("url")}
    if server.get("authorization_token") is not None:
        made["authorization"] = server["authorization_token"]
    made["require_approval"] = "never"
    toolset = object_of(given.get("toolset"))
    allowed = _enabled(toolset, server)
    if allowed is not None:
        made["allowed_tools"] = allowed
    _lose_extra(tool, context, "configs", "default_config")
    configs: list[tuple[Path, Any]] = [(("default_config",), toolset.get("default_config"))]
    configs += [(("configs", name), config) for name, config in object_of(toolset.get("configs")).items()]
    for place, config in configs:
        for name, value in object_of(config).items():
            if name != "enabled":
                why = f"{context.target} does not have this option for the tools of an MCP server"
                context.lose(name, (*tool.path, *place, name), why, value)
    return made


def _enabled(toolset: Json, server: Json) -> list[str] | None:
    """Return the names of an MCP server's tools that may be called, or None if the request does not list them."""
    default = object_of(toolset.get("default_config")).get("enabled") is not False
    configs = object_of(toolset.get("configs"))
    configured = object_of(server.get("tool_configuration")).get("allowed_tools")
    if not is_list(configured) and default:
        return None
    names = cast("Sequence[str]", configured) if is_list(configured) else list(configs)
    states = {name: object_of(configs.get(name)).get("enabled", default) for name in names}
    return [name for name in names if states[name] is True]


def _mcp_to_anthropic(tool: Tool, context: RequestContext) -> dict[str, Any]:
    raw = object_of(tool.raw)
    made: dict[str, Any] = {"type": "mcp_toolset", "mcp_server_name": raw.get("server_label")}
    allowed = raw.get("allowed_tools")
    names = allowed if is_list(allowed) else object_of(allowed).get("tool_names")
    if is_list(names):
        made["default_config"] = {"enabled": False}
        made["configs"] = {name: {"enabled": True} for name in cast("Sequence[str]", names)}
    _lose_extra(tool, context)
    return made


def _server(tool: Tool) -> dict[str, Any]:
    raw = object_of(tool.raw)
    made: dict[str, Any] = {"type": "url", "name": raw.get("server_label"), "url": raw.get("server_url")}
    if raw.get("authorization") is not None:
        made["authorization_token"] = raw["authorization"]
    return made
