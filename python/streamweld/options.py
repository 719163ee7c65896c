"""What a caller may decide about one stream: `Policy` (what to do about each repair) and `Limits` (how much to take).

Both are frozen, hashable, and checked once, where they are made: a backend gets plain data that is right.
Layer 2: it knows the shared facts, no stream.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field, fields
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from streamweld._spec import CODES, LIMITS, Action, Base
from streamweld.errors import UsageError

__all__ = ["DIALECTS", "Action", "Base", "Dialect", "Limits", "Policy", "Tools", "to_config"]

Dialect: TypeAlias = Literal["auto", "chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui"]
Tools: TypeAlias = Iterable[str] | Mapping[str, Mapping[str, Any] | None]

DIALECTS: Final[tuple[str, ...]] = get_args(Dialect)
_LARGEST: Final = 2**63 - 1
_SEED: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_O = TypeVar("_O")


def _unknown(what: str, word: object, known: Iterable[str]) -> UsageError:
    close = get_close_matches(word, list(known), n=1) if isinstance(word, str) else ()
    return UsageError(f"there is no {what} {word!r}" + (f"; did you mean {close[0]!r}?" if close else ""))


class _Checked:
    """An option that does not exist is a UsageError, as one with a wrong value is."""

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
    """What to do about what a stream does wrong, and how to read what can be read in two ways.

    `Policy("strict")` raises on every diagnostic of severity warning or error. `"standard"` repairs what has one right
    reading and raises on malformed JSON, a cut stream and an error of the gateway. `"salvage"` never raises on what it
    can leave out: it skips malformed events, reports a cut or an upstream error as data, and assumes the end of a
    stream that never sends it (`missing_terminal`). Limits and bodies that are no event stream raise under each of
    them. Wherever a policy is taken, a base's name stands for `Policy(name)`.

    The rules are numbered AM1 to AM12 in the diagnostics' texts. Each of the switches below names two readings of bytes
    that do not tell which one is meant; the default stands first. AM1 to AM6, AM9, AM11 and `inline_reasoning` are
    about Chat Completions, AM10 about those and Responses; other dialects leave no such doubt, and are not changed.

    Raises:
        UsageError: for an option, a code or a value that does not exist, and for `skip` on what cannot be left out.
    """

    base: Base = "standard"
    _: KW_ONLY

    actions: Mapping[str, Action] = field(default_factory=dict[str, Action], hash=False)
    """Diagnostic code -> `raise`, `diagnose` or `skip`, over the base's own. The codes: `_spec/diagnostics.json`."""

    inline_reasoning: bool = False
    """False: `<think>` tags are text like any other. True: what stands between them in a text becomes reasoning."""

    close_calls_at: Literal["done", "finish"] = "done"
    """`done`: calls close at `[DONE]` or the end, when nothing can change them. `finish`: at the finish reason, for
    those who must not wait; what comes for a call after that is ignored (`late_delta`)."""

    same_index_new_id_same_name_empty: Literal["new", "merge"] = "new"
    """AM1, a new id on the index of a call of the same name that has no arguments yet. `new`: a second call is
    announced. `merge`: the gateway makes up an id for each delta."""

    orphan_index: Literal["fifo", "latest"] = "fifo"
    """AM2, arguments on an index that no call opened, while several calls wait for theirs. `fifo`: they are those of
    the call announced first. `latest`: of the one announced last."""

    dup_id_parallel_headers: Literal["auto", "join", "split"] = "auto"
    """AM3, one id announced on two indexes. `join`: one call whose pieces move between indexes. `split`: two calls.
    `auto`: two only where the joined text would break JSON while each index's own text is valid."""

    dup_id_empty_header: Literal["drop", "keep"] = "drop"
    """AM4, the id of a finished call announced again, without arguments. `drop`: the gateway repeats itself. `keep`:
    it is a second call, without arguments."""

    identical_idless_same_index: Literal["drop", "keep"] = "drop"
    """AM5, an identical call without id on the same index. `drop`: it was sent twice. `keep`: two calls are meant."""

    on_overflow: Literal["flag", "split"] = "flag"
    """AM6, a second JSON object behind a call's arguments, without a header. `flag`: the call is invalid. `split`: it
    is another call of the same function."""

    duplicate_payload: Literal["keep", "drop"] = "keep"
    """AM7, a payload equal to the one before, byte for byte. `keep`: the model repeats itself ("haha"). `drop`: the
    gateway does."""

    content_mode: Literal["delta", "auto", "cumulative"] = "delta"
    """AM8, what a text delta holds. `delta`: new text. `cumulative`: all text so far. `auto`: what comes decides."""

    drop_restated_content: bool = True
    """AM9, the closing chunk holds the whole text again. True: it is a restatement. False: it is more text."""

    restart_on_new_stream_id: bool = False
    """AM10, a new chunk id and role in mid-stream. False: the same answer goes on. True: the gateway tried again, and
    what came before is dropped."""

    merge_choices: bool = False
    """AM11, tool calls in another choice than the text. False: they are the other choice's. True: one answer was spread
    over choices; all is choice 0's."""

    unstable_id: Literal["first", "last"] = "first"
    """AM12, a call's id changes under way. `first`: the first one is its own. `last`: the last one is. Others are its
    `aliases`."""

    empty_call_without_reason: Literal["cut", "run"] = "cut"
    """A tool call without arguments, in a stream that ends with `[DONE]` but without a finish reason. `cut`: some
    gateways write `[DONE]` after a cut, so the call is `incomplete`. `run`: the gateway sends no finish reasons, and
    the call has no arguments."""

    missing_terminal: Literal["truncate", "assume"] = cast("Any", None)
    """A stream that ends without any end signal (a finish reason, or the dialect's terminal event or marker), although
    everything that it opened is closed. `truncate`, the default of `strict` and `standard`: it was cut. `assume`, the
    default of `salvage`: some gateways never send the end; the stream is read as ended, with the completeness
    `assumed`, no finish reason and the diagnostic `terminal_missing`. It may have been cut all the same."""

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
                raise UsageError(f"{code}: there is nothing to skip; diagnose goes on with the stream")
        object.__setattr__(self, "actions", MappingProxyType(actions))
        object.__setattr__(self, "_config", None)

    def config(self) -> dict[str, Any]:
        """This policy's share of a parser's config; made once, and not to be changed."""
        made: dict[str, Any] | None = getattr(self, "_config")  # noqa: B009 (no field: it is not part of the value)
        if made is None:
            made = {
                "base": self.base,
                "actions": {code: self.action(code) for code in CODES},
                "inline_reasoning": self.inline_reasoning,
                "close_calls_at": self.close_calls_at,
                "switches": {name: getattr(self, name) for name in _SWITCHES},
            }
            object.__setattr__(self, "_config", made)
        return made

    def action(self, code: str) -> Action:
        """What this policy does about a diagnostic code. Raises UsageError for one that does not exist."""
        given = self.actions.get(code)
        if given is not None:
            return given
        if code not in CODES:
            raise _unknown("diagnostic code", code, CODES)
        return CODES[code].action(self.base)


@dataclass(frozen=True, kw_only=True)
class Limits(_Checked):
    """How much of a stream to take before `LimitExceeded`, whatever the policy. None (or 0) switches a cap off, all
    but `max_json_depth`, which can only be lowered.

    Each is hit before the memory is spent. The anchors name where the number comes from.

    Raises:
        UsageError: for a cap that does not exist, and for a value that is no positive integer, 0 or None.
    """

    max_event_bytes: int | None = LIMITS["max_event_bytes"]
    """Bytes of the data of one event, one more for each of its lines, what is pending included. 16 MiB, as the MCP Go
    SDK, A2A and goai have it: images of several MB in one event are real. A converter also holds back at most that much
    of the input: until `source="auto"` knows the dialect, and in a repair until it knows whether an event passes."""

    max_field_bytes: int | None = LIMITS["max_field_bytes"]
    """Bytes of the value of an `event` or `id` line. 8 KiB, what HTTP servers give a header."""

    max_json_depth: int | None = LIMITS["max_json_depth"]
    """Levels of nesting in one payload. 128, as serde_json has it. It can only be lowered: nothing deeper is read as
    JSON, whatever stands here."""

    max_json_values: int | None = LIMITS["max_json_values"]
    """Values in one payload: its commas and opening brackets outside of strings. 524,288: an answer of 10,000 tokens
    with five log probabilities each, in one piece, has fewer. A value takes up to 100 bytes once it is built."""

    max_choices: int | None = LIMITS["max_choices"]
    """Choices of one response. 128, the largest `n` that OpenAI takes."""

    max_parts: int | None = LIMITS["max_parts"]
    """Parts of one response (texts, reasonings, tool calls, files, sources, ...), and items that hold them. 65,536:
    each takes up to 1 KB, however short it is."""

    max_tool_calls: int | None = LIMITS["max_tool_calls"]
    """Tool calls of one response. 1,024; a count budget, as HTTP/2 servers have for streams."""

    max_tool_index: int | None = LIMITS["max_tool_index"]
    """The largest index a tool-call delta may carry; a larger one counts as absent. 4,096, four times the calls."""

    max_arguments_bytes: int | None = LIMITS["max_arguments_bytes"]
    """UTF-8 bytes of one call's arguments. 8 MiB: file-writing tools of several MB are real."""

    max_total_arguments_bytes: int | None = LIMITS["max_total_arguments_bytes"]
    """UTF-8 bytes of all calls' arguments. 32 MiB, four of the largest."""

    max_name_bytes: int | None = LIMITS["max_name_bytes"]
    """Bytes of a tool's name. 128; OpenAI's limit is 64."""

    max_id_bytes: int | None = LIMITS["max_id_bytes"]
    """Bytes of a call's id. 512; ids seen in the wild stay below 100, thought signatures inside of ids aside."""

    max_text_bytes: int | None = LIMITS["max_text_bytes"]
    """UTF-8 bytes of all text, reasoning and refusals. 64 MiB."""

    max_events: int | None = LIMITS["max_events"]
    """Events of the stream. Off; for gateways that budget a request."""

    max_stream_bytes: int | None = LIMITS["max_stream_bytes"]
    """Bytes of the body, decoded. Off; for gateways that budget a request."""

    max_inflate_ratio: int | None = LIMITS["max_inflate_ratio"]
    """Bytes that one byte of a compressed body may become, on average, once there are 16 MiB of them; where an
    integration or the proxy inflates it. 200, as mod_deflate of Apache has it: streams of text stay below 60."""

    max_diagnostics: int | None = LIMITS["max_diagnostics"]
    """Diagnostics kept; later ones are only counted (`diagnostics_dropped`). 256."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value: object = getattr(self, option.name)
            if value is None:
                continue
            if type(value) is not int or not 0 <= value <= _LARGEST:
                raise UsageError(f"{option.name}={value!r}: it must be a positive integer, or None for off")
            if value == 0:
                object.__setattr__(self, option.name, None)


def _choices() -> dict[str, tuple[object, ...]]:
    """The words that each option of Policy may have, from its annotations."""
    found: dict[str, tuple[object, ...]] = {}
    for name, hint in get_type_hints(Policy).items():
        if get_origin(hint) is Literal:
            found[name] = get_args(hint)
        elif hint is bool:
            found[name] = (False, True)
    return found


_CHOICES: Final = _choices()
_SWITCHES: Final = tuple([name for name in _CHOICES if name not in {"base", "inline_reasoning", "close_calls_at"}])


@cache
def _named(base: Base) -> Policy:
    return Policy(base)


_DEFAULT_LIMITS: Final = Limits()


def to_config(
    policy: object = "standard",
    limits: object = None,
    *,
    tools: object = None,
    known_call_ids: object = (),
    content_type: object = None,
    seed: object = None,
) -> dict[str, Any]:
    """The options of one stream as the plain data that a backend's parser takes; its parts are shared, so not changed.

    Raises:
        UsageError: for a value that is none of those the option may have.
    """
    if isinstance(policy, str) and policy in _CHOICES["base"]:
        policy = _named(cast("Base", policy))
    if not isinstance(policy, Policy):
        raise UsageError(f"policy={policy!r}: it must be a Policy, or one of {', '.join(get_args(Base))}")
    if limits is None:
        limits = _DEFAULT_LIMITS
    if not isinstance(limits, Limits):
        raise UsageError(f"limits={limits!r}: it must be a Limits, such as Limits(max_tool_calls=16)")
    if content_type is not None and not isinstance(content_type, str):
        raise UsageError(f"content_type={content_type!r}: it must be the value of the header")
    _check_text("content_type", content_type or "")
    if seed is not None and not (isinstance(seed, str) and _SEED.fullmatch(seed)):
        raise UsageError(f"seed={seed!r}: it must be 1 to 64 characters of A-Z a-z 0-9 _ -")
    return {
        **policy.config(),
        "limits": dict(limits.__dict__),
        "tools": None if tools is None else _tools(tools),
        "known_call_ids": _words("known_call_ids", known_call_ids),
        "content_type": content_type,
        "seed": seed,
    }


def _check_text(name: str, text: str) -> None:
    """No stream can hold half a surrogate pair, and no backend need know what one is."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{name}: {text!r} holds half of a surrogate pair, which is no character") from None


def _words(name: str, values: object) -> list[str]:
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UsageError(f"{name}={values!r}: it must be several strings")
    words = list(cast("Iterable[object]", values))
    for word in words:
        if not isinstance(word, str):
            hint = "; give names, or name -> JSON schema of the parameters" if name == "tools" else ""
            raise UsageError(f"{name} holds {word!r}, which is no string{hint}")
        _check_text(name, word)
    return cast("list[str]", words)


def _tools(tools: object) -> dict[str, list[str] | None]:
    """Name -> the parameters that a call cannot do without; None where no schema was given."""
    names = _words("tools", tools)
    if not isinstance(tools, Mapping):
        return dict.fromkeys(names)
    required: dict[str, list[str] | None] = {}
    for name in names:
        schema = cast("Mapping[str, object]", tools)[name]
        if schema is None:
            required[name] = None
        elif isinstance(schema, Mapping):
            wanted = cast("Mapping[str, object]", schema).get("required", ())
            required[name] = _words(f"tools[{name!r}]['required']", wanted)
        else:
            raise UsageError(f"tools[{name!r}] is no JSON schema")
    return required
