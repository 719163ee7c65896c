"""Options for a stream: `Policy` (how to react to each fault) and `Limits` (how much input to accept).

Objects of both classes are frozen and hashable. Options are validated when they are created, so a backend receives only
valid plain data. This module depends only on the tables in `_spec`, not on a stream.
"""

from __future__ import annotations

import json
import marshal
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cache, lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from streamweld._pure.text_calls.table import resolve_families, settings_text
from streamweld._spec import CODES, LIMITS, Action, Base
from streamweld.errors import UsageError

__all__ = [
    "DEFAULT_LIMITS",
    "DIALECTS",
    "Action",
    "Base",
    "Dialect",
    "Limits",
    "Policy",
    "TextCalls",
    "Tools",
    "defined_tools",
    "to_config",
    "with_text_calls",
]

Dialect: TypeAlias = Literal["auto", "chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui"]
TextCalls: TypeAlias = Literal["off", "report", "promote"]
Tools: TypeAlias = Iterable[str | Mapping[str, Any]] | Mapping[str, Mapping[str, Any] | None]

DIALECTS: Final[tuple[str, ...]] = get_args(Dialect)
_LARGEST: Final = 2**63 - 1
_SEED: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_O = TypeVar("_O")


def _unknown(what: str, word: object, known: Iterable[str]) -> UsageError:
    close = get_close_matches(word, list(known), n=1) if isinstance(word, str) else ()
    return UsageError(f"unknown {what} {word!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


class _Checked:
    """Base class that raises UsageError, instead of TypeError, for unknown options."""

    __slots__ = ()

    if not TYPE_CHECKING:

        def __new__(cls, *args, **options):
            known = [option.name for option in fields(cls)]
            for name in options:
                if name not in known:
                    raise _unknown(f"option of {cls.__name__}", name, known)
            if len(args) > sum(not option.kw_only for option in fields(cls)):
                raise UsageError(f"the options of {cls.__name__} are keywords, such as {known[-1]}=")
            return super().__new__(cls)

    def __reduce__(self) -> tuple[Any, ...]:
        values = {option.name: getattr(self, option.name) for option in fields(cast("Any", self))}
        if "actions" in values:
            values["actions"] = dict(values["actions"])  # a mapping proxy cannot be pickled
        return _remade, (type(self), values)


def _remade(cls: type[_O], values: dict[str, Any]) -> _O:
    return cls(**values)


@dataclass(frozen=True)
class Policy(_Checked):
    """How to react to faults in a stream, and how to interpret ambiguous input.

    `Policy("strict")` raises on every diagnostic with the severity warning or error. `Policy("standard")` repairs input
    that has only one correct interpretation. The standard policy raises on malformed JSON, a truncated stream, or an
    error sent by the gateway. `Policy("salvage")` raises as little as possible: it skips malformed events, reports
    truncation and upstream errors as data, and accepts a stream without an end signal (see `missing_terminal`). All
    three policies raise if a limit is exceeded or the body is not an event stream. Every `policy=` argument also
    accepts the name of a base policy.

    Most of the other options choose between two interpretations of ambiguous input. Diagnostics and docs/rules.md refer
    to these ambiguities as AM1 to AM12. AM1 to AM6, AM9, AM11 and `inline_reasoning` apply only to Chat Completions,
    and AM10 only to Chat Completions and Responses. Other dialects do not have these ambiguities.

    Args:
        base: `"strict"`, `"standard"` or `"salvage"`.
        actions: maps diagnostic codes to `"raise"`, `"diagnose"` or `"skip"`, overriding the base policy for these
            codes. docs/rules.md lists all codes.
        inline_reasoning: `True` turns the text between `<think>` tags into reasoning. `False` leaves it as text.
        close_calls_at: `"done"` closes tool calls at the terminal marker or the end of the input, when they can no
            longer change. `"finish"` closes them at the finish reason, for callers that cannot wait; later fragments of
            a call are ignored (`late_delta`).
        same_index_new_id_same_name_empty: AM1: a new id arrives on the index of a call that has the same name and no
            arguments yet. `"new"`: a second call starts. `"merge"`: both ids belong to the same call, because the
            gateway generates a new id for every delta.
        orphan_index: AM2: arguments arrive on an index that no call uses, while several calls are waiting for
            arguments. `"fifo"`: the arguments belong to the call announced first. `"latest"`: the arguments belong to
            the call announced last.
        dup_id_parallel_headers: AM3: one id is announced on two indexes. `"join"`: there is one call, whose fragments
            move between indexes. `"split"`: there are two calls. `"auto"`: there are two calls only if the joined text
            is not valid JSON but the text of each index is.
        dup_id_empty_header: AM4: the id of a finished call is announced again, without arguments. `"drop"`: the gateway
            repeated itself. `"keep"`: the model made a second call, without arguments.
        identical_idless_same_index: AM5: an identical call without an id arrives on the same index. `"drop"`: the
            gateway sent one call twice. `"keep"`: there are two calls.
        on_overflow: AM6: a second JSON object without a header follows the complete arguments of a call. `"flag"`: the
            call is invalid. `"split"`: the object contains the arguments of another call to the same function.
        duplicate_payload: AM7: a payload equals the previous one byte for byte. `"keep"`: the model repeated itself
            ("haha"). `"drop"`: the gateway sent it twice.
        content_mode: AM8: what a text delta contains. `"delta"`: new text. `"cumulative"`: all of the text so far.
            `"auto"`: the received deltas determine which of the two applies.
        drop_restated_content: AM9: the last chunk repeats the complete text. `True`: the text of that chunk is dropped.
            `False`: the text of that chunk is new.
        restart_on_new_stream_id: AM10: a new chunk id and role arrive in the middle of the stream. `False`: the same
            response continues. `True`: the gateway restarted the response, and everything before the restart is
            dropped.
        merge_choices: AM11: tool calls are in a different choice than the text. `False`: the calls belong to that other
            choice. `True`: one response was spread over several choices, and all of it belongs to choice 0.
        unstable_id: AM12: the id of a call changes during the stream. `"first"` or `"last"`: which id the call keeps;
            the others become its `aliases`.
        empty_call_without_reason: a tool call without arguments in a stream that ends with `[DONE]` but without a
            finish reason. `"cut"`: the call is `incomplete`, because some gateways write `[DONE]` after a truncation.
            `"run"`: the call is complete and has no arguments, because the gateway never sends finish reasons.
        missing_terminal: a stream that ends without any end signal (a finish reason, or the terminal event or marker of
            its dialect), although everything that was opened has been closed. `"truncate"` (the default for strict and
            standard): the stream was truncated. `"assume"` (the default for salvage): the stream is complete, because
            the gateway never sends an end signal; the response then has the completeness `"assumed"`, no finish reason,
            and the diagnostic `terminal_missing`.
        text_calls: tool calls that a model wrote into its text (`<tool_call>...`). `"off"`: such calls remain text.
            `"report"`: the diagnostic `text_call_seen` reports each one, but the text is unchanged. `"promote"`: a
            complete, well-formed call of one of the request's `tools` becomes a tool call. Read
            docs/guides/text-calls.md first, because such calls are untrusted.
        text_call_families: the notations to recognize: names from docs/guides/text-calls.md, or mappings that describe
            a family of notations. A single name or mapping does not need a tuple. `None`: all notations that have a
            marker. If you know the model, list only its families.
        text_call_markerless: `True` also recognizes notations without a marker (a bare JSON call), but only if the
            response contains nothing except the call.
        text_call_reasoning: `True` also recognizes calls in reasoning.
        text_call_after: `"end"`: if text follows a call, the call is considered a quotation and remains text.
            `"anywhere"`: text may follow a call.

    Raises:
        UsageError: if an option, code or value does not exist, or if a code that cannot be skipped has the action
            `"skip"`.

    >>> Policy("strict", actions={"id_minted": "diagnose"}).action("id_minted")
    'diagnose'
    """

    base: Base = "standard"
    _: KW_ONLY
    actions: Mapping[str, Action] = field(default_factory=dict[str, Action], hash=False)
    inline_reasoning: bool = False
    close_calls_at: Literal["done", "finish"] = "done"
    same_index_new_id_same_name_empty: Literal["new", "merge"] = "new"
    orphan_index: Literal["fifo", "latest"] = "fifo"
    dup_id_parallel_headers: Literal["auto", "join", "split"] = "auto"
    dup_id_empty_header: Literal["drop", "keep"] = "drop"
    identical_idless_same_index: Literal["drop", "keep"] = "drop"
    on_overflow: Literal["flag", "split"] = "flag"
    duplicate_payload: Literal["keep", "drop"] = "keep"
    content_mode: Literal["delta", "auto", "cumulative"] = "delta"
    drop_restated_content: bool = True
    restart_on_new_stream_id: bool = False
    merge_choices: bool = False
    unstable_id: Literal["first", "last"] = "first"
    empty_call_without_reason: Literal["cut", "run"] = "cut"
    missing_terminal: Literal["truncate", "assume"] = cast("Any", None)
    text_calls: TextCalls = "off"
    text_call_families: tuple[str | Mapping[str, Any], ...] | None = field(default=None, hash=False)
    text_call_markerless: bool = False
    text_call_reasoning: bool = False
    text_call_after: Literal["end", "anywhere"] = "end"

    def __post_init__(self) -> None:
        if cast("object", self.missing_terminal) is None:
            object.__setattr__(self, "missing_terminal", "assume" if self.base == "salvage" else "truncate")
        for name, words in _CHOICES.items():
            value = getattr(self, name)
            if not (type(value) is type(words[0]) and value in words):
                allowed = ", ".join([repr(word) for word in words])
                raise UsageError(f"{name}={value!r}: it must be one of {allowed}")
        given = cast("object", self.actions)
        if not isinstance(given, Mapping):
            raise UsageError(f'actions={given!r}: it must be a mapping, such as {{"unstable_id": "raise"}}')
        actions = dict(self.actions)
        for code, action in actions.items():
            if code not in CODES:
                raise _unknown("diagnostic code", code, CODES)
            if action not in get_args(Action):
                raise UsageError(f"{code}: {action!r}: it must be one of {', '.join(get_args(Action))}")
            if action == "skip" and not CODES[code].skippable:
                raise UsageError(
                    f"{code}: skip is not possible for this code; use diagnose to continue with the stream"
                )
        object.__setattr__(self, "actions", MappingProxyType(actions))
        if self.text_call_families is not None:
            named = cast("object", self.text_call_families)
            if isinstance(named, str | Mapping):  # a single family
                named = (cast("str | Mapping[str, Any]", named),)
            if not isinstance(named, Iterable):
                raise UsageError(f"text_call_families={named!r}: it must be families, such as ('hermes', 'glm')")
            object.__setattr__(self, "text_call_families", tuple(cast("Iterable[str]", named)))
            resolve_families(self.text_call_families, markerless=self.text_call_markerless)
        object.__setattr__(self, "_config", None)
        object.__setattr__(self, "_hash", hash(tuple([getattr(self, name) for name in _CHOICES])))

    def __hash__(self) -> int:
        # not a dataclass field; computed only once, because every stream needs it
        return cast("int", getattr(self, "_hash"))  # noqa: B009

    def config(self) -> dict[str, Any]:
        """Return the policy as part of a parser's config. The value is computed once and must not be modified."""
        made: dict[str, Any] | None = getattr(self, "_config")  # noqa: B009 (not a field: it is not part of the value)
        if made is None:
            made = {
                "base": self.base,
                "actions": {code: self.action(code) for code in CODES},
                "inline_reasoning": self.inline_reasoning,
                "close_calls_at": self.close_calls_at,
                "switches": {name: getattr(self, name) for name in _SWITCHES},
                "text_calls": None if self.text_calls == "off" else self._text_calls(),
            }
            object.__setattr__(self, "_config", made)
        return made

    def _text_calls(self) -> str:
        return settings_text(
            self.text_calls,
            self.text_call_families,
            markerless=self.text_call_markerless,
            reasoning=self.text_call_reasoning,
            after=self.text_call_after,
        )

    def action(self, code: str) -> Action:
        """Return the action of this policy for a diagnostic code. Raises UsageError if the code is unknown."""
        given = self.actions.get(code)
        if given is not None:
            return given
        if code not in CODES:
            raise _unknown("diagnostic code", code, CODES)
        return CODES[code].action(self.base)


@dataclass(frozen=True, kw_only=True)
class Limits(_Checked):
    """Upper bounds for one stream.

    Exceeding a limit raises `LimitExceeded` under every policy, before memory is allocated.

    `None` or 0 disables a limit, except `max_json_depth`, which can only be lowered.

    Args:
        max_event_bytes: bytes of data in one event, including the data of an unfinished event. Each line counts as one
            additional byte. Default: 16 MiB, because some events contain images of several MB. The same limit applies
            to the input that a converter holds back until `source="auto"` detects the dialect, or until a repair
            determines whether an event passes through. There, a payload on several lines counts twice, because it is
            held as it arrived and with its lines joined.
        max_field_bytes: bytes in the value of an `event` or `id` line. Default: 8 KiB, which is also the size that HTTP
            servers allow for a header.
        max_json_depth: levels of nesting in one payload. Default: 128, as in serde_json; deeper JSON is never parsed.
        max_json_values: JSON values in one payload (its commas and opening brackets outside strings). Default: 524,288,
            which is more than a response of 10,000 tokens contains with five log probabilities each. A parsed value
            takes up to 100 bytes. Entries of lists that are decoded one by one (choices, calls, parts, items,
            annotations) are also counted separately, as 32 values each, because a decoded entry takes up to 1.5 KB.
        max_choices: choices in one response. Default: 128, the largest `n` that OpenAI accepts.
        max_parts: parts in one response (texts, reasoning, tool calls, files, sources, ...) and items that contain
            them. Default: 16,384. In a converter, even a short part takes up to 2.5 KB; `max_text_bytes` accounts for
            that.
        max_tool_calls: tool calls in one response. Default: 1,024.
        max_tool_index: the largest index that a tool-call delta may have; a larger index counts as missing. Default:
            4,096.
        max_arguments_bytes: UTF-8 bytes in the arguments of one call. Default: 8 MiB, because tools that write files
            need several MB.
        max_total_arguments_bytes: UTF-8 bytes in the arguments of all calls. Default: 32 MiB.
        max_name_bytes: bytes in a tool name. Default: 128; OpenAI allows 64.
        max_id_bytes: bytes in a call id. Default: 512. The ids of known gateways have fewer than 100 bytes, unless they
            contain a thought signature.
        max_text_bytes: UTF-8 bytes in all text, reasoning and refusals, and in the annotations and provider metadata
            that are kept. Each annotation or member of merged metadata after the first 512 counts as an additional 640
            bytes, which is the memory that a short value takes. Each part after the first 256 counts as an additional
            2,560 bytes, and each item after the first 256 (Responses items, Anthropic and AI SDK blocks) as an
            additional 1,024, which leaves room for 16,384 blocks. Default: 64 MiB.
        max_events: events in the stream. Default: off.
        max_stream_bytes: bytes in the decoded body. Default: off.
        max_inflate_ratio: how many bytes each byte of a compressed body may expand to on average. The ratio is checked
            only after 16 MiB of output, and only if an integration or the proxy decompresses the body. Default: 200;
            the ratio for streams of text stays below 60.
        max_diagnostics: diagnostics to keep; later ones are only counted (`diagnostics_dropped`). Default: 256.

    Raises:
        UsageError: if a limit does not exist, or if its value is not a positive integer, 0 or None.

    >>> Limits(max_tool_calls=16).max_tool_calls
    16
    """

    max_event_bytes: int | None = LIMITS["max_event_bytes"]
    max_field_bytes: int | None = LIMITS["max_field_bytes"]
    max_json_depth: int | None = LIMITS["max_json_depth"]
    max_json_values: int | None = LIMITS["max_json_values"]
    max_choices: int | None = LIMITS["max_choices"]
    max_parts: int | None = LIMITS["max_parts"]
    max_tool_calls: int | None = LIMITS["max_tool_calls"]
    max_tool_index: int | None = LIMITS["max_tool_index"]
    max_arguments_bytes: int | None = LIMITS["max_arguments_bytes"]
    max_total_arguments_bytes: int | None = LIMITS["max_total_arguments_bytes"]
    max_name_bytes: int | None = LIMITS["max_name_bytes"]
    max_id_bytes: int | None = LIMITS["max_id_bytes"]
    max_text_bytes: int | None = LIMITS["max_text_bytes"]
    max_events: int | None = LIMITS["max_events"]
    max_stream_bytes: int | None = LIMITS["max_stream_bytes"]
    max_inflate_ratio: int | None = LIMITS["max_inflate_ratio"]
    max_diagnostics: int | None = LIMITS["max_diagnostics"]

    def __post_init__(self) -> None:
        for option in fields(self):
            value: object = getattr(self, option.name)
            if value is None:
                continue
            if type(value) is not int or not 0 <= value <= _LARGEST:
                raise UsageError(f"{option.name}={value!r}: it must be a positive integer, or None for off")
            if value == 0:
                object.__setattr__(self, option.name, None)
        config = {option.name: getattr(self, option.name) for option in fields(self)}
        object.__setattr__(self, "_config", config)
        object.__setattr__(self, "_hash", hash(tuple(config.values())))

    def __hash__(self) -> int:
        # not a dataclass field; computed only once, because every stream needs it
        return cast("int", getattr(self, "_hash"))  # noqa: B009

    def config(self) -> dict[str, int | None]:
        """Return the limits by name, as part of a parser's config.

        The value is computed once and must not be modified.
        """
        made: dict[str, int | None] = getattr(self, "_config")  # noqa: B009 (not a field: it is not part of the value)
        return made


def _choices() -> dict[str, tuple[object, ...]]:
    """Return the valid values of each `Policy` option, taken from its annotation."""
    found: dict[str, tuple[object, ...]] = {}
    for name, hint in get_type_hints(Policy).items():
        if get_origin(hint) is Literal:
            found[name] = get_args(hint)
        elif hint is bool:
            found[name] = (False, True)
    return found


_CHOICES: Final = _choices()
_NOT_SWITCHES: Final = {"base", "inline_reasoning", "close_calls_at"}
_SWITCHES: Final = tuple([name for name in _CHOICES if name not in _NOT_SWITCHES and not name.startswith("text_call")])


@cache
def _named(base: Base) -> Policy:
    return Policy(base)


DEFAULT_LIMITS: Final = Limits()
_SCHEMA_KEYS: Final = ("parameters", "input_schema", "parametersJsonSchema", "parameters_json_schema", "inputSchema")
_WRAPPERS: Final = ("function", "toolSpec")
_LIST_KEYS: Final = ("functionDeclarations", "function_declarations")
# Schema keywords that may allow names other than those in `properties`.
_COMBINED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties"})
_TOOLS_HINT: Final = "give the request's tools, their names, or name -> JSON schema of the parameters"
_RESOLVED: Final = 64  # maximum number of cached pairs of policy and limits
_SHARED_TOOLS: Final = 32  # maximum number of cached lists of tools
_SHARED_BYTES: Final = 1 << 17  # maximum size of one of these lists in bytes, so that the cache stays small
_ANY_SCHEMA: Final = json.JSONEncoder(ensure_ascii=False, default=dict)
_PLAIN_SCHEMA: Final = json.JSONEncoder(ensure_ascii=False, check_circular=False)  # `marshal` cannot write a cycle
_MARSHAL_VERSION: Final = 2  # with a later version, the bytes of equal values differ if their reference counts differ


@lru_cache(maxsize=_RESOLVED)
def _resolved(policy: Policy, limits: Limits) -> dict[str, Any]:
    """Return the parser config for a policy and limits without further options.

    Equal arguments return the same object.
    """
    return {
        **policy.config(),
        "limits": limits.config(),
        "text_call_tools": None,
        "tools": None,
        "tool_properties": {},
        "known_call_ids": [],
        "content_type": None,
        "seed": None,
    }


USUAL: Final[dict[object, dict[str, Any]]] = {}
"""The configs that `to_config` has returned for base policies without further options, keyed by the name of the base.
"""


def with_text_calls(policy: object, text_calls: TextCalls | None, families: tuple[str, ...] | None = None) -> Policy:
    """Return a copy of the policy with another `text_calls` value.

    Args:
        policy: the policy, or the name of a base policy.
        text_calls: the new value; None keeps the current value.
        families: the new value of `text_call_families`; None keeps the current value.

    Raises:
        UsageError: if the policy is invalid, or if the value or family does not exist.
    """
    given = _policy(policy)
    return replace(
        given,
        text_calls=given.text_calls if text_calls is None else text_calls,
        text_call_families=given.text_call_families if families is None else families,
    )


def _policy(given: object) -> Policy:
    if isinstance(given, str) and given in _CHOICES["base"]:
        return _named(cast("Base", given))
    if not isinstance(given, Policy):
        raise UsageError(f"policy={given!r}: it must be a Policy, or one of {', '.join(get_args(Base))}")
    return given


def to_config(
    policy: object = "standard",
    limits: object = None,
    *,
    tools: object = None,
    known_call_ids: object = (),
    content_type: object = None,
    seed: object = None,
) -> dict[str, Any]:
    """Return the options for one stream as the plain data that a backend's parser accepts.

    The data is shared and must not be modified.

    Raises:
        UsageError: if an option has an invalid value.
    """
    alone = tools is None and content_type is None and seed is None and known_call_ids == ()
    if alone and limits is DEFAULT_LIMITS and isinstance(policy, str) and policy in _CHOICES["base"]:
        usual = USUAL.get(policy)
        if usual is None:
            usual = USUAL[policy] = _resolved(_named(cast("Base", policy)), DEFAULT_LIMITS)
        return usual
    policy = _policy(policy)
    if limits is None:
        limits = DEFAULT_LIMITS
    if not isinstance(limits, Limits):
        raise UsageError(f"limits={limits!r}: it must be a Limits, such as Limits(max_tool_calls=16)")
    if policy.text_calls == "promote" and tools is None:
        raise UsageError(
            'text_calls="promote" needs tools=: a call is promoted only if it names one of them exactly. Clients with '
            "repair(), RepairMiddleware and streamweld proxy read them from the request"
        )
    resolved = _resolved(policy, limits)
    if alone:
        return resolved
    if content_type is not None and not isinstance(content_type, str):
        raise UsageError(f"content_type={content_type!r}: it must be the value of the header")
    _check_text("content_type", content_type or "")
    if seed is not None and not (isinstance(seed, str) and _SEED.fullmatch(seed)):
        raise UsageError(f"seed={seed!r}: it must be 1 to 64 characters of A-Z a-z 0-9 _ -")
    return {
        **resolved,
        **({} if tools is None else _tool_members(_named_tools(tools), with_schemas=policy.text_calls != "off")),
        "known_call_ids": _words("known_call_ids", known_call_ids),
        "content_type": content_type,
        "seed": seed,
    }


def _check_text(name: str, text: str) -> None:
    """Reject unpaired surrogates. No stream can contain unpaired surrogates, and the backends do not handle them."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name}: {text!r} contains an unpaired surrogate, which cannot be encoded as UTF-8") from None


def _words(name: str, values: object) -> list[str]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"{name}={values!r}: it must be a list of strings")
    words = list(cast("Iterable[object]", values))
    for word in words:
        if not isinstance(word, str):
            hint = f"; {_TOOLS_HINT}" if name == "tools" else ""
            raise UsageError(f"{name} contains {word!r}, which is not a string{hint}")
        _check_text(name, word)
    return cast("list[str]", words)


def defined_tools(entry: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any] | None]]:
    """Yield the name and schema of each function in one element of a request's `tools`.

    In Chat Completions and Bedrock, the element contains the function; in Gemini, the element lists several functions.
    Tools without a name are skipped. The schema is None for a tool without a schema, such as a free-form or hosted
    tool.
    """
    lists = [entry[key] for key in _LIST_KEYS if isinstance(entry.get(key), list)]
    several = [one for found in lists for one in cast("list[object]", found)]
    wrapped = [entry[key] for key in _WRAPPERS if isinstance(entry.get(key), dict)]
    for function in several or wrapped or [entry]:
        found = _name_and_schema(function)
        if found is not None:
            yield found


def _name_and_schema(function: object) -> tuple[str, Mapping[str, Any] | None] | None:
    """Return the name and schema in a function's definition, or None if the definition has no name."""
    if not isinstance(function, dict):
        return None
    members = cast("dict[str, Any]", function)
    name = members.get("name")
    if not isinstance(name, str) or not name:
        return None
    schema: Any = next((members[key] for key in _SCHEMA_KEYS if isinstance(members.get(key), dict)), None)
    if schema is not None and isinstance(schema.get("json"), dict):  # Bedrock
        schema = schema["json"]
    return name, schema


def _named_tools(tools: object) -> dict[str, object]:
    """Return the tools as name -> schema of the parameters (or None). Hosted tools without a name are omitted.

    Raises:
        UsageError: if a function has no name, or if two definitions with the same name differ.
    """
    if isinstance(tools, Mapping):
        schemas = cast("Mapping[str, object]", tools)
        return {name: schemas[name] for name in _words("tools", schemas)}
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise UsageError(f"tools={tools!r}: it must be a list of names or definitions, or a mapping of name to schema")
    found: dict[str, object] = {}
    for one in cast("Iterable[object]", tools):
        if not isinstance(one, Mapping):
            found.setdefault(_words("tools", [one])[0], None)
            continue
        tool = cast("Mapping[str, object]", one)
        defined = list(defined_tools(tool))
        if not defined and tool.get("type") == "function":  # a hosted tool does not need a name
            raise UsageError(f"tools contains {tool!r}, which has no name; {_TOOLS_HINT}")
        for name, schema in defined:
            _check_text("tools", name)
            if found.get(name, schema) != schema:
                raise UsageError(f"tools defines {name!r} twice, with different parameters")
            found[name] = schema
    return found


def _tool_members(tools: dict[str, object], *, with_schemas: bool) -> dict[str, Any]:
    """Return the members of a parser's config that describe the tools.

    Writing the schemas takes most of the time of `to_config`. Most requests of an application bring the same tools, so
    tools with equal content share one result.
    """
    if not with_schemas:
        return {"tools": _required(tools), "tool_properties": _properties(tools)}
    try:
        content = marshal.dumps(tools, _MARSHAL_VERSION)
    except ValueError:  # an object of another type than the built-in ones, or too many levels
        return _with_schemas(tools, _ANY_SCHEMA)
    shared = _shared_members(content) if len(content) <= _SHARED_BYTES else None
    return _with_schemas(tools, _ANY_SCHEMA) if shared is None else shared


@lru_cache(maxsize=_SHARED_TOOLS)
def _shared_members(content: bytes) -> dict[str, Any] | None:
    """Return the members for all tools that `marshal` writes as `content`, or None if they can differ or are invalid.

    `marshal` writes the exact type and value of each object, except that all objects with a buffer become `bytes`. The
    members for `bytes` are therefore not shared; `_PLAIN_SCHEMA` does not accept them.
    """
    tools: dict[str, object] = marshal.loads(content)  # noqa: S302 (`_tool_members` wrote the content)
    if bytes in map(type, tools):  # names of a type that is derived from str and has a buffer
        return None
    try:
        return _with_schemas(tools, _PLAIN_SCHEMA)
    except UsageError:  # raised again for the caller's own objects, because the message can mention them
        return None


def _with_schemas(tools: dict[str, object], encoder: json.JSONEncoder) -> dict[str, Any]:
    """Return the members of a config that describe the tools, with the schemas that text calls need."""
    schemas = _schemas(tools, encoder)
    return {"text_call_tools": schemas, "tools": _required(tools), "tool_properties": _properties(tools)}


def _schemas(tools: dict[str, object], encoder: json.JSONEncoder) -> dict[str, str | None]:
    """Return the parameter schema of each tool as JSON text, or None for tools without a schema."""
    made: dict[str, str | None] = {}
    for name, schema in tools.items():
        try:
            made[name] = None if schema is None else encoder.encode(schema)
        except (TypeError, ValueError) as error:
            raise UsageError(f"tools[{name!r}] is not a JSON schema: {error}") from None
    return made


def _properties(tools: dict[str, object]) -> dict[str, list[str]]:
    """Return the names of all parameters of each tool. Omit tools without a schema, and tools that may have other
    parameters.
    """
    made: dict[str, list[str]] = {}
    for name, given in tools.items():
        schema: Mapping[str, object] = cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {}
        properties = schema.get("properties")
        allows_others = schema.get("additionalProperties", False) is not False or not _COMBINED.isdisjoint(schema)
        if isinstance(properties, Mapping) and not allows_others:
            made[name] = _words(f"tools[{name!r}]['properties']", list(cast("Mapping[str, object]", properties)))
    return made


def _required(tools: dict[str, object]) -> dict[str, list[str] | None]:
    """Return the required parameters of each tool, or None for tools without a schema."""
    required: dict[str, list[str] | None] = {}
    for name, schema in tools.items():
        if schema is None:
            required[name] = None
        elif isinstance(schema, Mapping):
            wanted = cast("Mapping[str, object]", schema).get("required", ())
            required[name] = _words(f"tools[{name!r}]['required']", wanted)
        else:
            raise UsageError(f"tools[{name!r}] is not a JSON schema; {_TOOLS_HINT}")
    return required
