"""The result of a stream as one immutable value, built from the events that close its parts.

Both backends use this module. This module depends only on events, not on a parser or dialect, and does not interpret
the stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeAlias, cast

from streamweld.events import (
    File,
    Finished,
    ProviderItem,
    ReasoningDone,
    RefusalDone,
    ResponseStarted,
    Source,
    TextDone,
    TextStarted,
    ToolCall,
    ToolResult,
    Unknown,
    UpstreamErrorEvent,
    Usage,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from streamweld._literals import Completeness, FinishReason, RetryVerdict
    from streamweld.events import Diagnostic, Event

__all__ = ["Choice", "Item", "Response", "response_of"]

Item: TypeAlias = (
    TextDone | ReasoningDone | RefusalDone | ToolCall | ToolResult | Source | File | ProviderItem | Unknown
)

_Text: TypeAlias = TextDone | ReasoningDone | RefusalDone
_ItemOfChoice: TypeAlias = TextDone | ReasoningDone | RefusalDone | ToolCall | ToolResult | Source | File | ProviderItem

_ITEMS = frozenset({TextDone, ReasoningDone, RefusalDone, ToolCall, ToolResult, Source, File, ProviderItem})
_TEXTS = frozenset({TextDone, ReasoningDone, RefusalDone})
_SHOWN = 60  # maximum length of text in a repr


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


class Choice:
    """One choice of a response. Most responses have only one choice."""

    __slots__ = ("_finished", "_index", "_item_ids", "_items")

    def __init__(
        self,
        index: int = 0,
        items: Iterable[Item] = (),
        finished: Finished | None = None,
        item_ids: Mapping[int, str] | None = None,
    ) -> None:
        self._index = index
        self._items = tuple(items)
        self._finished = finished
        self._item_ids = dict(item_ids) if item_ids else {}

    @property
    def index(self) -> int:
        """The choice's index on the wire."""
        return self._index

    @property
    def items(self) -> tuple[Item, ...]:
        """Every part in its final form, in order of first appearance. Calls can have another order among themselves.

        Calls are in the order of their indexes if every call has exactly one index and no two calls share one, and in
        order of first appearance otherwise.

        A `ProviderItem` is an item that only the provider reads, and an `Unknown` is an item that streamweld does not
        model. A later turn must send both back.
        """
        return self._items

    @property
    def item_ids(self) -> dict[int, str]:
        """Wire ids of the items that parts belong to (`msg_…`, `rs_…`, `fc_…`), keyed by part number.

        A part is missing from the mapping if its item has no wire id.
        """
        own = {item.part: item.item_id for item in self._items if isinstance(item, ReasoningDone | ToolCall)}
        return self._item_ids | {part: item_id for part, item_id in own.items() if item_id is not None}

    @property
    def text(self) -> str:
        """All text parts, joined; `""` if there are none."""
        return "".join([item.text for item in self._items if type(item) is TextDone])

    @property
    def reasoning(self) -> str:
        """All reasoning parts, joined; `""` if there are none."""
        return "".join([item.text for item in self._items if type(item) is ReasoningDone])

    @property
    def refusal(self) -> str:
        """All refusals, joined; `""` if there are none."""
        return "".join([item.text for item in self._items if type(item) is RefusalDone])

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """All calls that the client would have to run, in any state. To run calls, use `dispatchable_calls`."""
        return tuple([item for item in self._items if type(item) is ToolCall and not item.provider_executed])

    @property
    def dispatchable_calls(self) -> tuple[ToolCall, ...]:
        """The calls to run: complete, with a name and an id, and without a result in the same stream.

        The tuple is empty if the finish reason is `error`, even if calls were complete before the response failed.
        """
        return _dispatchable(self._items, self.finish_reason)

    @property
    def server_tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the provider ran."""
        return tuple([item for item in self._items if isinstance(item, ToolCall) and item.provider_executed])

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the choice ended, normalized across dialects; None if it has not ended."""
        return None if self._finished is None else self._finished.finish_reason

    @property
    def raw_finish_reason(self) -> str | None:
        """The finish reason as the gateway sent it; None if the gateway sent none."""
        return None if self._finished is None else self._finished.raw_reason

    @property
    def provider_metadata(self) -> dict[str, Any] | None:
        """Members of the choice for which this class has no other field."""
        return None if self._finished is None else self._finished.provider_metadata

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Choice):
            return NotImplemented
        return self._values() == other._values()

    def _values(self) -> tuple[object, ...]:
        return self._index, self._items, self._finished, self._item_ids

    __hash__: ClassVar[None]  # type: ignore[assignment]  # unhashable: compared by value, and may contain dicts

    def __reduce__(self) -> tuple[Any, ...]:
        return Choice, self._values()

    def __repr__(self) -> str:
        return f"Choice(index={self._index}, {_shown(self)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as data that `json.dumps` accepts."""
        return {
            "index": self._index,
            "text": self.text,
            "reasoning": self.reasoning,
            "refusal": self.refusal,
            "items": [item.to_dict() for item in self._items],
            "item_ids": {str(part): item_id for part, item_id in self.item_ids.items()},
            "finish_reason": self.finish_reason,
            "raw_finish_reason": self.raw_finish_reason,
            "provider_metadata": self.provider_metadata,
        }


_NO_CHOICE = Choice()


def _dispatchable(items: tuple[Item, ...], finish_reason: FinishReason | None) -> tuple[ToolCall, ...]:
    calls = [item for item in items if type(item) is ToolCall and item.dispatchable]
    if not calls or finish_reason == "error":
        return ()
    answered = {item.call_id for item in items if type(item) is ToolResult}
    return tuple([call for call in calls if call.call_id not in answered])


def _shown(choice: Choice) -> str:
    texts = (("text", choice.text), ("reasoning", choice.reasoning), ("refusal", choice.refusal))
    shown = [f"{name}={_short(text)}" for name, text in texts if text]
    if choice.tool_calls:
        shown.append(f"tool_calls={choice.tool_calls!r}")
    shown.append(f"finish_reason={choice.finish_reason!r}")
    return ", ".join(shown)


class Fold(Protocol):
    """The members of a response.

    `_Fold`, or its native equivalent in the extension, computes these members from events.
    """

    @property
    def events(self) -> tuple[Event, ...]: ...
    @property
    def started(self) -> ResponseStarted | None: ...
    @property
    def usage(self) -> Usage | None: ...
    @property
    def error(self) -> UpstreamErrorEvent | None: ...
    @property
    def choices(self) -> tuple[Choice, ...]: ...
    @property
    def first(self) -> Choice: ...
    @property
    def text(self) -> str: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def refusal(self) -> str: ...
    @property
    def items(self) -> tuple[Item, ...]: ...
    @property
    def tool_calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def server_tool_calls(self) -> tuple[ToolCall, ...]: ...
    @property
    def finish_reason(self) -> FinishReason | None: ...
    @property
    def raw_finish_reason(self) -> str | None: ...
    @property
    def completeness(self) -> Completeness: ...
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]: ...
    @property
    def diagnostics_dropped(self) -> int: ...
    @property
    def ordered(self) -> bool: ...
    @property
    def dialect(self) -> str | None: ...


_Given: TypeAlias = "tuple[tuple[Event, ...], Completeness, tuple[Diagnostic, ...], int, bool, str | None]"


_NOTHING: Final[_Given] = ((), "open", (), 0, False, None)


class _Fold:
    """Folds the events into choices, usage and error."""

    __slots__ = (
        "choices",
        "completeness",
        "diagnostics",
        "diagnostics_dropped",
        "dialect",
        "error",
        "events",
        "first",
        "ordered",
        "started",
        "usage",
    )
    choices: tuple[Choice, ...]
    completeness: Completeness
    error: UpstreamErrorEvent | None
    events: tuple[Event, ...]
    first: Choice
    started: ResponseStarted | None
    usage: Usage | None

    def __init__(self, given: _Given) -> None:
        events, self.completeness, self.diagnostics, self.diagnostics_dropped, self.ordered, self.dialect = given
        self._fold(events)
        self.first = self.choices[0] if self.choices else _NO_CHOICE

    @property
    def text(self) -> str:
        return self.first.text

    @property
    def reasoning(self) -> str:
        return self.first.reasoning

    @property
    def refusal(self) -> str:
        return self.first.refusal

    @property
    def items(self) -> tuple[Item, ...]:
        return self.first.items

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        return self.first.tool_calls

    @property
    def server_tool_calls(self) -> tuple[ToolCall, ...]:
        return self.first.server_tool_calls

    @property
    def finish_reason(self) -> FinishReason | None:
        return self.first.finish_reason

    @property
    def raw_finish_reason(self) -> str | None:
        return self.first.raw_finish_reason

    def _fold(self, events: Iterable[Event]) -> None:
        items: dict[int, list[Item]] = {}  # this mapping has a key for every choice
        item_ids: dict[int, dict[int, str]] = {}
        finished: dict[int, Finished] = {}
        folded: list[Event] = []
        self.started = None
        self.usage = None
        self.error = None
        for event in events:
            # These classes have no subclasses, and one set lookup is faster than `isinstance` with each class.
            if type(event) in _ITEMS:
                item = cast("_ItemOfChoice", event)
                if type(item) in _TEXTS and _is_withdrawn(cast("_Text", item)):
                    continue
                items.setdefault(item.choice, []).append(item)
            elif type(event) is Finished:
                items.setdefault(event.choice, [])
                finished[event.choice] = event
            elif type(event) is ResponseStarted:
                self.started = event
            elif type(event) is Usage:
                self.usage = event
            elif type(event) is TextStarted:
                if event.item_id is None:
                    continue
                item_ids.setdefault(event.choice, {})[event.part] = event.item_id
            elif type(event) is Unknown:
                if not self.ordered:
                    continue
                items.setdefault(0, []).append(event)
            elif type(event) is UpstreamErrorEvent:
                self.error = event
            else:
                continue
            folded.append(event)
        if not self.ordered:
            for of_choice in items.values():
                _order(of_choice)
        self.events = tuple(folded)
        self.choices = tuple(
            [
                Choice(index, of_choice, finished.get(index), _of(item_ids.get(index), of_choice))
                for index, of_choice in (items.items() if len(items) < 2 else sorted(items.items()))
            ]
        )


class Response:
    """The result of a stream so far. Each access to `parser.response` returns a new, immutable value.

    A response is built by folding events, either those of the whole stream or those of a parser's snapshot. Only events
    that close a part are used; deltas are ignored. The fields of the first choice (the one with the lowest index) are
    also available on the response itself; `choices` contains all choices.
    """

    __slots__ = ("_fold", "_given")

    def __init__(
        self,
        events: Iterable[Event] = (),
        completeness: Completeness = "open",
        diagnostics: Iterable[Diagnostic] = (),
        diagnostics_dropped: int = 0,
        ordered: bool = False,
        dialect: str | None = None,
    ) -> None:
        """Create a response.

        `ordered`: whether the events are a parser's snapshot, in which the parts are in order and an `Unknown` is a
        part.
        """
        self._fold: Fold | None = None
        self._given: _Given = (
            tuple(events),
            completeness,
            tuple(diagnostics),
            diagnostics_dropped,
            ordered,
            dialect,
        )

    def _folded(self) -> Fold:
        """Return the folded events, computed on first use."""
        fold = self._fold
        if fold is not None:
            return fold
        given = self._given
        fold = self._fold  # check again: another thread stores the fold before it removes the events
        if fold is None:
            fold = self._fold = _Fold(given)
            self._given = _NOTHING
        return fold

    @property
    def id(self) -> str | None:
        """The response's id; None if the gateway sent none."""
        started = self._folded().started
        return None if started is None else started.id

    @property
    def model(self) -> str | None:
        """The model that generated the response, as reported by the gateway."""
        started = self._folded().started
        return None if started is None else started.model

    @property
    def created(self) -> int | None:
        """When the response was created, in seconds since 1970."""
        started = self._folded().started
        return None if started is None else started.created

    @property
    def dialect(self) -> str | None:
        """The wire format that was specified or detected; None if none was."""
        return self._folded().dialect

    @property
    def provider_metadata(self) -> dict[str, Any] | None:
        """Members of the first chunk for which this class has no other field."""
        started = self._folded().started
        return None if started is None else started.provider_metadata

    @property
    def choices(self) -> tuple[Choice, ...]:
        """All choices, ordered by their index on the wire."""
        return self._folded().choices

    @property
    def usage(self) -> Usage | None:
        """Token counts: `input_tokens`, `output_tokens`, `total_tokens`, `cached_input_tokens`, `cache_write_tokens`,
        `reasoning_tokens`, and the gateway's own object as `raw`. None if the gateway sent none.

        These are the gateway's counts, and their meaning differs between APIs. `input_tokens` includes tokens read from
        the cache, except in Anthropic Messages, where `cached_input_tokens` and `cache_write_tokens` are counted
        separately; Anthropic Messages and AI SDK stream parts send no total. `output_tokens` includes the reasoning,
        except for some Chat gateways (xAI). For Gemini, `input_tokens` counts the prompt and tool use, and
        `output_tokens` counts candidates and thoughts. `usage.normalized()` returns counts normalized across APIs.
        """
        return self._folded().usage

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All repairs and anomalies, in order; at most `Limits.max_diagnostics`."""
        return self._folded().diagnostics

    @property
    def diagnostics_dropped(self) -> int:
        """The number of further diagnostics that were not kept."""
        return self._folded().diagnostics_dropped

    @property
    def error(self) -> UpstreamErrorEvent | None:
        """The error that the gateway sent inside the stream, if any."""
        return self._folded().error

    @property
    def completeness(self) -> Completeness:
        """Whether the response is complete.

        `complete`: the terminal marker was read, even if the input has not ended. `assumed`: the terminal marker was
        not read, but every choice sent its finish reason (or, with `Policy(missing_terminal="assume")`, everything that
        was opened had been closed). `truncated`: the stream ended too early. `open`: neither the marker nor the end of
        the input was read.
        """
        return self._folded().completeness

    @property
    def retry_verdict(self) -> RetryVerdict | None:
        """What had been emitted before the response was truncated. A retry of the request would repeat this output.

        `nothing_emitted`: no part, so a retry does not repeat anything. `text_only`: text, reasoning or another part,
        but no tool call. `call_open`: a tool call had started, but none was complete. `call_complete`: at least one
        tool call was complete and may have been run, by the client or by the provider. All choices are taken into
        account. None if the response is `complete` or `assumed`. While the response is `open`, the value is what it
        would be if the stream ended now.
        """
        fold = self._folded()
        if fold.completeness in ("complete", "assumed"):
            return None
        items = [item for choice in fold.choices for item in choice.items]
        calls = [item for item in items if isinstance(item, ToolCall | ToolResult)]
        if not calls:
            return "text_only" if items else "nothing_emitted"
        is_open = all(isinstance(call, ToolCall) and call.state in ("open", "incomplete") for call in calls)
        return "call_open" if is_open else "call_complete"

    @property
    def text(self) -> str:
        """`Choice.text` of the first choice."""
        return self._folded().text

    @property
    def reasoning(self) -> str:
        """`Choice.reasoning` of the first choice."""
        return self._folded().reasoning

    @property
    def refusal(self) -> str:
        """`Choice.refusal` of the first choice."""
        return self._folded().refusal

    @property
    def items(self) -> tuple[Item, ...]:
        """`Choice.items` of the first choice."""
        return self._folded().items

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """`Choice.tool_calls` of the first choice. To run calls, use `dispatchable_calls`."""
        return self._folded().tool_calls

    @property
    def dispatchable_calls(self) -> tuple[ToolCall, ...]:
        """`Choice.dispatchable_calls` of the first choice: the calls to run."""
        folded = self._folded()
        return _dispatchable(folded.items, folded.finish_reason)

    @property
    def server_tool_calls(self) -> tuple[ToolCall, ...]:
        """`Choice.server_tool_calls` of the first choice."""
        return self._folded().server_tool_calls

    @property
    def finish_reason(self) -> FinishReason | None:
        """`Choice.finish_reason` of the first choice."""
        return self._folded().finish_reason

    @property
    def raw_finish_reason(self) -> str | None:
        """`Choice.raw_finish_reason` of the first choice."""
        return self._folded().raw_finish_reason

    def _values(self) -> tuple[object, ...]:
        fold = self._folded()
        return (
            fold.choices,
            fold.completeness,
            fold.diagnostics,
            fold.diagnostics_dropped,
            fold.dialect,
            fold.error,
            fold.started,
            fold.usage,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Response):
            return NotImplemented
        return self._values() == other._values()

    __hash__: ClassVar[None]  # type: ignore[assignment]  # unhashable: compared by value, and may contain dicts

    def __reduce__(self) -> tuple[Any, ...]:
        fold = self._folded()
        return Response, (
            fold.events,
            fold.completeness,
            fold.diagnostics,
            fold.diagnostics_dropped,
            fold.ordered,
            fold.dialect,
        )

    def __repr__(self) -> str:
        shown = [
            f"id={self.id!r}",
            f"model={self.model!r}",
            _shown(self._folded().first),
            f"completeness={self.completeness!r}",
        ]
        if len(self.choices) > 1:
            shown.append(f"choices={len(self.choices)}")
        if self.error is not None:
            shown.append(f"error={_short(self.error.message)}")
        shown.append(f"diagnostics={len(self.diagnostics) + self.diagnostics_dropped}")
        return f"Response({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the response as data that `json.dumps` accepts. The fields of the choices are only in `choices`."""
        fold = self._folded()
        return {
            "id": self.id,
            "model": self.model,
            "created": self.created,
            "dialect": fold.dialect,
            "completeness": fold.completeness,
            "choices": [choice.to_dict() for choice in fold.choices],
            "usage": None if fold.usage is None else fold.usage.to_dict(),
            "error": None if fold.error is None else fold.error.to_dict(),
            "diagnostics": [diagnostic.to_dict() for diagnostic in fold.diagnostics],
            "diagnostics_dropped": fold.diagnostics_dropped,
            "provider_metadata": self.provider_metadata,
        }


class Reader(Protocol):
    """A backend's parser, converter or repairer."""

    @property
    def dialect(self) -> str | None: ...
    @property
    def diagnostics(self) -> list[Diagnostic]: ...
    def snapshot(self) -> tuple[list[Event], str, int]: ...
    def fold(self, choice: type[Choice], /) -> Fold | None: ...


def response_of(reader: Reader) -> Response:
    """Return everything read so far as a `Response`. The members of the response are computed on first access."""
    fold = reader.fold(Choice)
    if fold is None:
        events, completeness, dropped = reader.snapshot()
        diagnostics = reader.diagnostics
        return Response(
            events, cast("Completeness", completeness), diagnostics, dropped, ordered=True, dialect=reader.dialect
        )
    response = Response.__new__(Response)
    response._fold = fold  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return response


def _order(items: list[Item]) -> None:
    """Order items by part.

    Calls keep their final order relative to each other, which is the order in which they closed.
    """
    latest = {item.part: item for item in items if isinstance(item, ToolResult)}  # this drops preliminary results
    kept = [item for item in items if not isinstance(item, ToolResult) or latest[item.part] is item]
    calls = iter([item for item in kept if isinstance(item, ToolCall)])
    kept.sort(key=_part)
    items[:] = [next(calls) if isinstance(item, ToolCall) else item for item in kept]


def _part(item: Item) -> int:
    return -1 if isinstance(item, Unknown) else item.part


def _of(item_ids: Mapping[int, str] | None, items: Iterable[Item] | None) -> dict[int, str]:
    """Return the ids that the stream has for the items, except those of retracted texts."""
    if not item_ids:
        return {}
    texts = {item.part for item in items or () if isinstance(item, TextDone)}
    return {part: item_id for part, item_id in item_ids.items() if part in texts}


def _is_withdrawn(text: _Text) -> bool:
    """Return whether the text of a part was retracted.

    A retracted part closes without content, and the response omits it.
    """
    if text.text or text.provider_metadata:
        return False
    if type(text) is TextDone:
        return not text.annotations
    return not isinstance(text, ReasoningDone) or not (text.signature or text.encrypted_content or text.item_id)
