"""`check`: list the rules of a target API that a request breaks.

The checker and `convert` use the same tables, but share no code.
"""

# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false, reportUnknownArgumentType=false
# (the input is JSON from the caller, so the types inside its containers are unknown)

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld import history
from streamweld._messages import hinted
from streamweld._show import printable
from streamweld.errors import UsageError
from streamweld.history import HistoryViolation
from streamweld.history.ids import form_of
from streamweld.history.profiles import resolve
from streamweld.requests.claude import is_cited, prefills
from streamweld.requests.schema_check import refused, violation
from streamweld.requests.tables import (
    MODEL,
    at,
    claude_facts,
    gateway_facts,
    is_accepted,
    is_list,
    listed,
    model_facts,
    object_of,
    openai_efforts,
    openai_rejects_sampling,
    options,
    pointer,
    spec,
    steps,
    tool_schema_rules,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from streamweld._literals import Target
    from streamweld.history import Profile
    from streamweld.requests.tables import Json, Option

__all__ = ["check"]

_DETAIL: Final = 120
_CONVERSE_FORMAT: Final = "outputConfig.textFormat"
_FORMATS: Final = {
    "openai-chat": ("response_format",),
    "responses": ("text.format",),
    "anthropic": ("output_config.format", "output_format"),
    "bedrock-converse": (_CONVERSE_FORMAT,),
}
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "text": (str,),
    "object": (Mapping,),
}


@hinted(to="target")
def check(
    request: Mapping[str, Any],
    *,
    target: Target,
    gateway: str | Profile | Mapping[str, Any] | None = None,
) -> list[HistoryViolation]:
    """List the rules of an API that a request breaks.

    Args:
        request: the request, in the format of the target's API.
        target: the API: `openai-chat` (or `chat`), `responses`, `anthropic`, `gemini`, `mistral`, `bedrock-converse`,
            `ai-sdk-ui` or `ai-sdk-model`.
        gateway: the profile whose constraints apply; None for the target's own API.

    Returns:
        The violations in the messages, as `history.check` lists them, followed by those in the options and tools. The
        rules for options and tools are in `_spec/requests.json`.

    Raises:
        UsageError: if the target or gateway does not exist, or if the request has no messages.
    """
    given = cast("object", request)
    if not isinstance(given, Mapping):
        hint = "; a list of messages is checked by `history.check`" if isinstance(given, list) else ""
        raise UsageError(f"the request must be a mapping{hint}")
    profile = resolve(gateway, target)
    found = _Checker(request, profile)
    found.members()
    found.plain_options()
    found.efforts()
    found.tools()
    found.answer_format()
    found.json_word()
    found.claude()
    found.cache_marks()
    if profile.target == "anthropic":
        found.anthropic()
    if profile.target == "openai-chat":
        found.chat()
    if profile.target == "bedrock-converse":
        found.bedrock()
    if profile.target == "gemini":
        found.gemini()
    if profile.target == "responses":
        found.responses()
    return history.check(request, target=cast("Target", profile.target), gateway=profile) + found.violations


class _Checker:
    """Checks one request, and collects violations."""

    def __init__(self, request: Json, profile: Profile) -> None:
        self.request = request
        self.profile = profile
        self.target = profile.target
        self.facts = gateway_facts(profile.name, profile.target)
        self.violations: list[HistoryViolation] = []

    def add(self, rule: str, path: Sequence[str | int], detail: str = "", severity: Any = None) -> None:
        row = spec("rules")[rule]
        message = f"{row['text']}: {printable(detail, _DETAIL)}" if detail else row["text"]
        source = self.facts.get("source", row["source"]) if rule == "option_unsupported" else row["source"]
        self.violations.append(HistoryViolation(rule, pointer(path), message, source, severity or row["severity"]))

    def members(self) -> None:
        """Report unknown members as warnings, because a newer version of the API may have them."""
        known = {*spec("known")[self.target], *spec("history")[self.target], *self.facts.get("adds", {}).values()}
        thinking = self.facts.get("thinking", {})
        known |= {thinking.get("member"), thinking.get("effort")}
        only = self.facts.get("only")
        for name, value in self.request.items():
            if only is not None and name not in only:
                self.add("option_unsupported", (name,), str(name))
                continue
            if name not in known and (only is None or name not in only):
                self.add("option_unknown", (name,), str(name), "warning")
                continue
            inner = spec("nested").get(self.target, {}).get(name)
            if inner is not None:
                for member in object_of(value):
                    if member not in inner:
                        self.add("option_unknown", (name, member), str(member), "warning")

    def plain_options(self) -> None:
        """Check the types and bounds of options, and report options that are missing or that the gateway rejects."""
        lacks = self.facts.get("lacks", ())
        for option in options():
            paths = option.paths.get(self.target, ())
            own = option.path_in(self.target, self.facts, self.request.get("model"))
            paths = (*paths, own) if own is not None and own not in paths else paths
            only = self.facts.get("only")
            if only is not None:  # `members` reports the others
                paths = [path for path in paths if path.partition(".")[0] in only]
            present = [path for path in paths if at(self.request, path) is not None]
            for path in present:
                value = at(self.request, path)
                if option.word in lacks and value not in option.implied:
                    self.add("option_unsupported", steps(path), option.word)
                elif not _is_kind(option, value):
                    self.add("option_shape", steps(path), f"{option.word} has type {type(value).__name__}")
                elif self._is_foreign(option, value):
                    self.add("option_unsupported", steps(path), f"{option.word} {value}")
                else:
                    self._bounds(option, path, value)
            if option.alone and len(present) > 1:
                self.add("option_conflict", steps(present[1]), " and ".join(present))
            if option.required.get(self.target) is not None and not present:
                self.add("option_required", steps(paths[0]), paths[0])

    def _is_foreign(self, option: Option, value: Any) -> bool:
        """Return whether other APIs define this value of the option, but this API does not."""
        words = spec("words").get(option.word)
        if words is None or value in words_of(option.word, self.target, self.facts).values():
            return False
        return any(value in own for own in words.values())

    def efforts(self) -> None:
        """Check that the gateway and the model accept the reasoning effort."""
        known = self.facts.get("efforts")
        path = "reasoning.effort" if self.target == "responses" else "reasoning_effort"
        word = at(self.request, path)
        if known is not None and word is not None and word not in known.values():
            self.add("option_unsupported", steps(path), f"effort {word}")
        if self.target in ("openai-chat", "responses"):
            accepted = openai_efforts(self.request.get("model"), self.facts)
            if accepted is not None and word in spec("thinking")["efforts"] and word not in accepted:
                self.add("option_unsupported", steps(path), f"effort {word} with {self.request.get('model')}")
            if openai_rejects_sampling(self.request.get("model"), word, self.facts):
                for name, default in spec("openai_sampling")["options"][self.target].items():
                    if self.request.get(name, default) not in (None, default):
                        self.add("option_unsupported", (name,), f"{name} with {self.request.get('model')}")

    def _bounds(self, option: Option, path: str, value: Any) -> None:
        if option.kind == "text":
            if not option.fits(value, self.target, self.facts):
                self.add("option_form", steps(path), f"{option.word} has {len(value)} characters")
            return
        low, high = option.limits(self.target, self.facts)
        if option.kind in ("integer", "number"):
            if (low is not None and value < low) or (high is not None and value > high):
                self.add("option_bounds", steps(path), f"{option.word} {value}")
            return
        if option.entries:
            for name, entry in object_of(value).items():
                if not isinstance(entry, str) and self.target in option.entries:
                    self.add("option_shape", (*steps(path), name), f"{option.word} has type {type(entry).__name__}")
                elif not option.fits_entry(name, entry, self.target):
                    self.add("option_form", (*steps(path), name), option.word)
        most = option.max_items.get(self.target)
        if most is not None and not isinstance(value, str) and hasattr(value, "__len__") and len(value) > most:
            self.add(
                "option_bounds", steps(path), f"{option.word} has {len(value)} elements; at most {most} are allowed"
            )

    def tools(self) -> None:
        """Check tool definitions, tool names, and the tool choice."""
        names: set[str] = set()
        count = 0
        rules = tool_schema_rules(self.target, self.profile.name, self.request.get(MODEL.get(self.target, "model")))
        for path, kind, name, schema in self._definitions():
            count += 1
            if not is_accepted(kind, self.profile.constraints):
                self.add("tool_unsupported", path, kind)
            if kind not in ("function", "custom"):
                if isinstance(name, str):  # a choice may name a tool that the server runs
                    names.add(name)
                continue
            if not isinstance(name, str):
                self.add("tool_name", path, str(name))
                continue
            if not self._name_fits(name):
                self.add("tool_name", path, name)
            elif name in names:
                self.add("tool_repeated", path, name)
            names.add(name)  # even if the name is invalid, because `tool_choice` may contain the name
            if kind == "function" and schema is not None and self._is_unfit(schema):
                self.add("tool_schema", path, name)
            elif kind == "function" and schema is not None and rules is not None:
                what = refused(schema, rules)
                if what is not None:
                    self.add("schema_keyword", path, f"{name}: {what}")
        if self.target == "bedrock-converse" and not count and self._has_calls():
            self.add("tools_missing", ("toolConfig", "tools"))
        subset = self._subset()
        if subset is not None:
            for path, definition, schema in self._strict_tools():
                what = violation(schema, subset)
                if what is not None:
                    self.add("tool_strict", path, f"{definition.get('name')}: {what}")
        self._choice(names, count)

    def _subset(self) -> str | None:
        """Return the name of the subset of JSON Schema that the gateway accepts in strict mode."""
        found: str | None = spec("strict_schemas")["gateways"].get(self.target, {}).get(self.profile.name)
        return found

    def _strict_tools(self) -> Iterator[tuple[tuple[str | int, ...], Json, Any]]:
        """Yield (path, definition, schema) of the tools with `strict: true` and a schema."""
        base = ("toolConfig", "tools") if self.target == "bedrock-converse" else ("tools",)
        holder = {"openai-chat": "function", "bedrock-converse": "toolSpec"}.get(self.target)
        member = {"anthropic": "input_schema", "bedrock-converse": "inputSchema.json"}.get(self.target, "parameters")
        for n, entry in enumerate(map(object_of, listed(at(self.request, ".".join(base))))):
            definition = entry if holder is None else object_of(entry.get(holder))
            schema = at(definition, member)
            if definition.get("strict") is True and schema is not None:
                yield (*base, n), definition, schema

    def answer_format(self) -> None:
        """Check that the schema of a response format is within the subset that the API accepts."""
        subset = self._subset()
        if subset is None:
            return
        for path in _FORMATS[self.target]:
            given = object_of(at(self.request, path))
            holder = given if self.target != "openai-chat" else object_of(given.get("json_schema"))
            schema = (
                holder.get("schema") if path != _CONVERSE_FORMAT else _parsed(at(given, "structure.jsonSchema.schema"))
            )
            if schema is None or (subset == "openai" and holder.get("strict") is not True):
                continue
            what = violation(schema, subset)
            if what is not None:
                self.add("format_schema", steps(path), what)

    def json_word(self) -> None:
        """Check that the messages contain the word that some APIs require for the format json_object."""
        path, member = ("text.format", "input") if self.target == "responses" else ("response_format", "messages")
        if self.profile.name not in spec("json_word")["gateways"].get(self.target, ()):
            return
        if object_of(at(self.request, path)).get("type") == "json_object":
            words = [self.request[member]] if isinstance(self.request.get(member), str) else []
            for message in map(object_of, listed(self.request.get(member))):
                words += [
                    message.get("content"),
                    *[object_of(part).get("text") for part in listed(message.get("content"))],
                ]
            if not any(isinstance(word, str) and "json" in word.lower() for word in words):
                self.add("format_word", steps(path))

    def chat(self) -> None:
        """Report empty lists of tools, and options that require another option that is missing."""
        request = self.request
        for name in ("tools", "functions"):
            if is_list(request.get(name)) and not request[name]:
                self.add("tools_empty", (name,), name)
        if request.get("stream_options") is not None and request.get("stream") is not True:
            self.add("option_alone", ("stream_options",), "stream_options without stream")
        if request.get("top_logprobs") is not None and request.get("logprobs") is not True:
            self.add("option_alone", ("top_logprobs",), "top_logprobs without logprobs")
        if not request.get("tools") and not request.get("functions"):
            if request.get("parallel_tool_calls") is not None:
                self.add("option_alone", ("parallel_tool_calls",), "parallel_tool_calls without tools")
            if request.get("tool_choice") == "auto":
                self.add("tool_choice_alone", ("tool_choice",))

    def anthropic(self) -> None:
        """Check for blank stop sequences, a tool choice without a type, and the option for parallel calls next to the
        tool choice `none`.
        """
        for n, text in enumerate(listed(self.request.get("stop_sequences"))):
            if isinstance(text, str) and not text.strip():
                self.add("option_form", ("stop_sequences", str(n)), "a blank stop sequence")
        if at(self.request, "output_config.format") is not None:
            self._with_format()
        choice = object_of(self.request.get("tool_choice"))
        if choice and choice.get("type") is None:
            self.add("option_required", ("tool_choice",), "tool_choice.type")
        if choice.get("type") == "none" and "disable_parallel_tool_use" in choice:
            self.add("option_alone", ("tool_choice", "disable_parallel_tool_use"), "no calls with the tool choice none")

    def _with_format(self) -> None:
        """Report citations and a prefilled response, which the API rejects together with a response format."""
        messages = [object_of(message) for message in listed(self.request.get("messages"))]
        for n, message in enumerate(messages):
            for m, block in enumerate(map(object_of, listed(message.get("content")))):
                for one in (block, *map(object_of, listed(block.get("content")))):
                    if is_cited(one):
                        self.add("option_conflict", ("messages", n, "content", m), "a response format and citations")
        if messages and prefills(messages[-1]):
            self.add("option_conflict", ("messages", len(messages) - 1), "a response format and a prefilled response")

    def bedrock(self) -> None:
        """Report tools with an empty description."""
        for n, tool in enumerate(listed(at(self.request, "toolConfig.tools"))):
            if at(object_of(tool), "toolSpec.description") == "":
                self.add("tool_description", ("toolConfig", "tools", n), str(at(object_of(tool), "toolSpec.name")))

    def _has_calls(self) -> bool:
        messages = [object_of(message) for message in listed(self.request.get("messages"))]
        return any("toolUse" in object_of(block) for message in messages for block in listed(message.get("content")))

    def _is_unfit(self, schema: Any) -> bool:
        given = object_of(schema)
        needed = self.target in spec("tool_schemas")["properties"]
        return given.get("type") != "object" or (needed and not isinstance(given.get("properties"), Mapping))

    def _name_fits(self, name: str) -> bool:
        fact = self.profile.constraints.get("tool_name")
        if fact is None:
            return bool(name)
        starts = "start" not in fact or name[:1].isalpha() or name[:1] in fact["start"]
        return form_of(fact).fits(name) and starts

    def _definitions(self) -> list[tuple[tuple[str | int, ...], str, Any, Any]]:
        """Return (path, kind, name, schema) for each tool."""
        config = object_of(self.request.get("toolConfig"))
        bedrock = self.target == "bedrock-converse"
        given = config.get("tools") if bedrock else self.request.get("tools")
        base = ("toolConfig", "tools") if bedrock else ("tools",)
        found: list[tuple[tuple[str | int, ...], str, Any, Any]] = []
        if self.target == "ai-sdk-model" and isinstance(given, Mapping):  # `generateText` has tools keyed by name
            for name, raw in cast("Json", given).items():
                kind = "function" if object_of(raw).get("type", "function") in ("function", "dynamic") else "hosted"
                schema = object_of(raw).get("inputSchema")
                found.append(((*base, name), kind, name, object_of(schema).get("jsonSchema", schema)))
            return found
        if not is_list(given):
            if given is not None:
                self.add("option_shape", base, "tools is not a list")
            return found
        for n, raw in enumerate(listed(given)):
            entry, path = object_of(raw), (*base, n)
            match self.target:
                case "gemini":
                    for m, declared in enumerate(listed(entry.get("functionDeclarations"))):
                        inner = object_of(declared)
                        found.append(
                            (
                                (*path, "functionDeclarations", m),
                                "function",
                                inner.get("name"),
                                inner.get("parametersJsonSchema"),
                            )
                        )
                    if "functionDeclarations" not in entry:
                        found.append((path, "hosted", None, None))
                case "bedrock-converse":
                    inner = object_of(entry.get("toolSpec"))
                    if inner:
                        found.append(
                            (path, "function", inner.get("name"), object_of(inner.get("inputSchema")).get("json"))
                        )
                case "anthropic":
                    kind = "function" if entry.get("type") in (None, "custom") else str(entry["type"])
                    found.append((path, kind, entry.get("name"), entry.get("input_schema")))
                case "ai-sdk-model":
                    kind = "function" if entry.get("type") == "function" else "hosted"
                    found.append((path, kind, entry.get("name"), entry.get("inputSchema")))
                case "responses":
                    kind = str(entry.get("type"))
                    found.append((path, kind, entry.get("name"), entry.get("parameters")))
                case _:
                    kind = str(entry.get("type"))
                    inner = object_of(entry.get(kind))
                    found.append((path, kind, inner.get("name"), inner.get("parameters")))
        return found

    def _choice(self, names: set[str], count: int) -> None:
        member = {"ai-sdk-model": "toolChoice", "bedrock-converse": "toolConfig"}.get(self.target, "tool_choice")
        choice = self.request.get(member)
        if self.target == "gemini":
            choice = at(self.request, "toolConfig.functionCallingConfig")
            member = "toolConfig"
        if choice is None:
            return
        if self.target != "bedrock-converse" and not self._is_form(choice):
            self.add("option_shape", (member,), f"{member} has the form of another API")
        if not count:
            if any(self.request.get(name) is not None for name in spec("stored_tools").get(self.target, ())):
                return
            forced = isinstance(choice, str) and choice not in ("auto", "none")
            if forced or (
                object_of(choice)
                and object_of(choice).get("mode", object_of(choice).get("type")) not in ("auto", "none", "AUTO", "NONE")
            ):
                self.add("tool_choice_alone", (member,))
            return
        lists_own = any(kind in ("mcp", "mcp_toolset") for _, kind, _, _ in self._definitions())
        for name in () if lists_own else _chosen(choice):
            if not isinstance(name, str) or name not in names:
                self.add("tool_choice_unknown", (member,), str(name))
        words = self.facts.get("choices")
        if words is not None and (choice if isinstance(choice, str) else "required") not in words:
            self.add("option_unsupported", (member,), str(choice))

    def _is_form(self, choice: Any) -> bool:
        """Return whether the tool choice has a form of this API, or an unknown one."""
        forms = spec("choices")
        own = forms.get(self.target)
        entry = object_of(choice)
        kind = entry.get("type")
        if own is None:
            return isinstance(choice, Mapping)
        if isinstance(choice, str):
            return bool(own["words"]) and not any(
                choice in form["words"] for form in forms.values() if choice not in own["words"]
            )
        if not isinstance(kind, str):
            return bool(entry)
        if kind in own["types"]:
            named = self.target == "responses"
            return kind not in ("function", "custom", "allowed_tools") or (kind in entry) is not named
        return not any(kind in form["types"] for form in forms.values())

    def claude(self) -> None:
        """Check the thinking options of Claude models, and the options that cannot be combined with thinking."""
        facts = claude_facts(self.target, self.request)
        if facts is None:
            return
        api = spec("claude")[self.target]
        paths = {**api["paths"]}
        if at(self.request, api.get("older_thinking", "")) is not None:
            paths["thinking"] = api["older_thinking"]
        given = {name: at(self.request, path) for name, path in paths.items()}
        config, choice = object_of(given["thinking"]), object_of(given["tool_choice"])
        kind, model = config.get("type"), given["model"]
        at_type = (*steps(paths["thinking"]), "type")
        if not facts["sampling"]:
            for name in ("temperature", "top_p", "top_k"):
                if given[name] is not None:
                    self.add("option_unsupported", steps(paths[name]), f"{name} with {model}")
        if facts.get("one_of_two") and given["temperature"] is not None and given["top_p"] is not None:
            self.add("option_conflict", steps(paths["top_p"]), "temperature and top_p")
        off = kind == "disabled" and facts.get("off_limits_effort")
        if off and given["effort"] in ("xhigh", "max"):
            self.add("option_conflict", steps(paths["effort"]), f"effort {given['effort']} and disabled thinking")
        forced = choice.get("type") in ("any", "tool") or "any" in choice or "tool" in choice
        if facts.get("always_thinks"):
            if kind == "disabled":
                self.add("option_unsupported", at_type, f"{kind} with {model}")
            if forced:
                self.add("option_unsupported", steps(paths["tool_choice"]), f"a forced tool call with {model}")
        if kind not in ("enabled", "adaptive"):
            return
        if facts["thinking"] and kind not in facts["thinking"]:
            self.add("option_unsupported", at_type, f"{kind} with {model}")
        if forced and not facts.get("always_thinks"):
            self.add("option_conflict", steps(paths["tool_choice"]), "thinking and a forced tool call")
        wrong = {
            "temperature": given["temperature"] not in (None, 1),
            "top_k": given["top_k"] is not None,
            "top_p": isinstance(given["top_p"], int | float) and given["top_p"] < 0.95,
        }
        for name, is_wrong in wrong.items():
            if is_wrong and facts["sampling"]:
                self.add("option_conflict", steps(paths[name]), "thinking")
        if kind == "enabled":
            self._budget(api, (*steps(paths["thinking"]), "budget_tokens"), config, given["max_tokens"])

    def _budget(self, api: Json, path: Sequence[str], config: Json, most: Any) -> None:
        budget, least = config.get("budget_tokens"), spec("thinking")["smallest"]
        if not isinstance(budget, int) or budget < least or (isinstance(most, int) and budget >= most):
            self.add("option_bounds", path, f"budget_tokens {budget} with max_tokens {most}")
        messages = self.request.get("messages")
        turns = [object_of(message) for message in cast("Sequence[Any]", messages)] if is_list(messages) else []
        last = next((turn for turn in reversed(turns) if turn.get("role") == "assistant"), {})
        blocks = [
            {str(block["type"])} if "type" in block else set(block)
            for block in map(object_of, listed(last.get("content")))
        ]
        begins = bool(blocks) and not blocks[0].isdisjoint(api["thinking_blocks"])
        prefilled = bool(turns) and turns[-1].get("role") == "assistant"
        if (prefilled or any(api["call"] in kinds for kinds in blocks)) and not begins:
            self.add("thinking_unsigned", ("messages", turns.index(last)), "the last assistant message")

    def cache_marks(self) -> None:
        """Check the number and lifetimes of cache marks in the tools, system prompt and messages, including Anthropic's
        top-level mark.
        """
        most = spec("cache_marks")["max"].get(self.target)
        if most is None:
            return
        tools = listed(self.request.get("tools")) or listed(at(self.request, "toolConfig.tools"))
        given = [*tools, *listed(self.request.get("system"))]
        for message in listed(self.request.get("messages")):
            for block in listed(object_of(message).get("content")):
                given += listed(object_of(block).get("content"))
                given.append(block)
        given = [entry for entry in map(object_of, given) if "cache_control" in entry or "cachePoint" in entry]
        marks = [object_of(entry.get("cache_control", entry.get("cachePoint"))) for entry in given]
        if "cache_control" in self.request:
            marks.append(object_of(self.request["cache_control"]))
        if len(marks) > most:
            self.add("cache_marks", (), f"{len(marks)}; at most {most} are allowed")
        brief = [mark.get("ttl") in (None, "5m") for mark in marks]
        if True in brief and False in brief[brief.index(True) :]:
            self.add("cache_lifetime", (), "a mark with a longer ttl follows a mark with 5m")
        elif "cache_control" in self.request:
            messages = listed(self.request.get("messages"))
            blocks = listed(object_of(messages[-1] if messages else None).get("content"))
            own = object_of(object_of(blocks[-1] if blocks else None).get("cache_control"))
            if own and (own.get("ttl") in (None, "5m")) != brief[-1]:
                self.add("cache_lifetime", ("cache_control",), "the last block has a mark with another ttl")

    def gemini(self) -> None:
        """Check the values of the thinking options, and whether built-in tools may be combined with functions."""
        facts = model_facts("gemini", self.request.get("model"))
        place = ("generationConfig", "thinkingConfig")
        config = object_of(at(self.request, ".".join(place)))
        level, budget = config.get("thinkingLevel"), config.get("thinkingBudget")
        if level is not None and budget is not None:
            self.add("option_conflict", (*place, "thinkingBudget"), "thinkingLevel and thinkingBudget")
        if isinstance(level, str) and level.lower() not in facts.get("levels", (level.lower(),)):
            self.add("option_unsupported", (*place, "thinkingLevel"), f"{level} with {self.request.get('model')}")
        low, high = facts.get("budgets", (0, None))
        if isinstance(budget, int) and high is not None:
            special = budget == -1 or (budget == 0 and not facts.get("always_thinks"))
            if not special and not low <= budget <= high:
                self.add("option_bounds", (*place, "thinkingBudget"), f"{budget}; {low} to {high} are allowed")
        if (
            at(self.request, "generationConfig.logprobs")
            and at(self.request, "generationConfig.responseLogprobs") is not True
        ):
            self.add("option_alone", ("generationConfig", "logprobs"), "logprobs without responseLogprobs")
        entries = [object_of(entry) for entry in listed(self.request.get("tools"))]
        built_in = [n for n, entry in enumerate(entries) if entry.keys() - {"functionDeclarations"}]
        enabled = at(self.request, "toolConfig.includeServerSideToolInvocations") is True
        if built_in and any(entry.get("functionDeclarations") for entry in entries):
            needs_option = "server_tool_calls" not in self.facts.get("lacks", ())
            if not facts["mixed_tools"] or (needs_option and not enabled):
                self.add("tools_mixed", ("tools", built_in[0]))
        for n, entry in enumerate(entries):
            for m, declared in enumerate(map(object_of, listed(entry.get("functionDeclarations")))):
                for name in ("parameters", "response"):
                    self._schema(declared.get(name), ("tools", n, "functionDeclarations", m, name))
        self._schema(at(self.request, "generationConfig.responseSchema"), ("generationConfig", "responseSchema"))

    def _schema(self, schema: Any, path: Sequence[str | int]) -> None:
        """Check that a schema is one of Gemini's type Schema."""
        table = spec("gemini_schema")
        known = {*table["members"], *table["more"].get(self.profile.name, ())}
        known |= {re.sub("[A-Z]", lambda letter: "_" + letter[0].lower(), name) for name in known}
        waiting = [(schema, tuple(path))]
        while waiting:
            value, at_value = waiting.pop()
            given = object_of(value)
            kind, values = str(given.get("type")).upper(), listed(given.get("enum"))
            if (values and kind != "STRING") or (given.get("format") == "enum" and not values):
                self.add("schema_member", (*at_value, "enum"), "enum of a type other than STRING, or without values")
            if kind == "ARRAY" and given.get("items") is None:
                self.add("schema_member", at_value, "an array without items")
            for name, member in given.items():
                if name not in known or (name == "type" and is_list(member)):
                    self.add("schema_member", (*at_value, name), name)
                elif name in ("properties", "defs"):
                    waiting += [(one, (*at_value, name, key)) for key, one in object_of(member).items()]
                elif name in ("anyOf", "any_of"):
                    waiting += [(one, (*at_value, name, n)) for n, one in enumerate(listed(member))]
                elif name in ("items", "additionalProperties", "additional_properties"):
                    waiting.append((member, (*at_value, name)))

    def responses(self) -> None:
        """Report a second reference to earlier turns, and a request with `store: false` that does not ask for encrypted
        reasoning.
        """
        request = self.request
        if request.get("conversation") is not None and request.get("previous_response_id") is not None:
            self.add("option_conflict", ("previous_response_id",), "conversation and previous_response_id")
        include = request.get("include")
        asks = is_list(include) and "reasoning.encrypted_content" in cast("Sequence[Any]", include)
        reasons = at(request, "reasoning.effort") not in (None, "none") or at(request, "reasoning.summary") is not None
        if request.get("store") is False and reasons and not asks and "include" not in self.facts.get("lacks", ()):
            self.add("encrypted_reasoning", ("include",))


def _parsed(schema: Any) -> Any:
    """Return the parsed form of a schema that is written as text."""
    try:
        return json.loads(schema)
    except (TypeError, ValueError, RecursionError):
        return schema


def _is_kind(option: Option, value: Any) -> bool:
    if option.kind == "any":
        return True
    if option.kind == "texts":
        return all(isinstance(item, str) for item in (listed(value) if is_list(value) else [value]))
    if isinstance(value, bool) and option.kind != "boolean":
        return False
    return isinstance(value, _TYPES[option.kind])


def _chosen(choice: Any) -> list[Any]:
    """Return the tool names in a tool choice."""
    entry = object_of(choice)
    for path in ("name", "toolName", "function.name", "custom.name", "toolChoice.tool.name"):
        name = at(entry, path)
        if name is not None:
            return [name]
    names = entry.get("allowedFunctionNames")
    if is_list(names):
        return list(cast("Sequence[Any]", names))
    allowed = at(entry, "allowed_tools.tools") or (entry.get("tools") if entry.get("type") == "allowed_tools" else None)
    return [
        at(object_of(tool), "name") or at(object_of(tool), "function.name") or at(object_of(tool), "custom.name")
        for tool in listed(allowed)
    ]
