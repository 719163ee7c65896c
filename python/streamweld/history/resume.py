"""Convert a history to which a turn was added: reuse the conversion of the beginning, and convert only the end.

The beginning ends before the last user message that follows an assistant message in the earlier history. The rest of
the earlier history (the old end) and the rest of the new history (the new end) are each converted separately. The
beginning is reused if the old end yields the same messages as the end of the earlier payload, and if no call in
either end shares an id with the beginning. If the beginning cannot be reused, the whole history is converted again.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from operator import is_
from typing import TYPE_CHECKING, Any, Final, cast

from streamweld.history.edits import Conversion, IdMap
from streamweld.history.model import members_of
from streamweld.response import Response

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamweld.history.edits import Loss
    from streamweld.history.model import Path

__all__ = ["Snapshot", "boundary", "resume"]

# Edits that can make the output for one turn depend on another turn. If one of them occurs, the history cannot be
# converted in parts.
_ENTANGLED: Final = frozenset(
    {"tool_name", "name_empty", "server_result_unasked", "result_unasked", "result_repeated", "first_role"}
)
# Edits that apply only to the last turn of the whole history.
_OF_THE_END: Final = frozenset({"trailing_space", "prefill_refused"})
_RESULTS: Final = frozenset({"tool_result"})
_RESULT_MEMBERS: Final = ("functionResponse", "function_response", "toolResult")


@dataclass(slots=True, eq=False)
class Snapshot:
    """The input of a conversion: the options, the messages, and the path of the messages.

    `member`: the payload member that contains the messages.
    """

    options: tuple[Any, ...]
    items: tuple[Any, ...]
    base: Path
    member: str
    losses: tuple[Loss, ...] = ()  # losses in the messages; those in other members are not included


def _is_user_message(item: Any) -> bool:
    """Return whether this is a user message without tool results."""
    message = members_of(item)
    if message.get("role") != "user":
        return False
    blocks: Any = message.get("content", message.get("parts"))
    if isinstance(blocks, str):
        return True
    if not isinstance(blocks, list):
        return False
    given = [members_of(block) for block in cast("list[Any]", blocks)]  # type: ignore[redundant-cast]
    return not any(b.get("type") in _RESULTS or any(name in b for name in _RESULT_MEMBERS) for b in given)


def _instructs(item: Any) -> bool:
    return members_of(item).get("role") in ("system", "developer")


def _is_answer(item: Any) -> bool:
    return isinstance(item, Response) or members_of(item).get("role") in ("assistant", "model")


def boundary(items: Sequence[Any]) -> int | None:
    """Return the index of the last user message directly after an assistant message, or None."""
    for at in range(len(items) - 1, 0, -1):
        if _is_user_message(items[at]) and _is_answer(items[at - 1]):
            return at
    return None


def resume(
    previous: Conversion, now: Snapshot, convert: Callable[[Sequence[Any], int], Conversion]
) -> Conversion | None:
    """Return the conversion of `now`, which reuses the beginning of `previous`, or None if the beginning cannot be
    reused.

    `convert` converts some of the messages; its second argument is the index of the first one.
    """
    seen = previous._seen  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if not isinstance(seen, Snapshot) or (seen.options, seen.base, seen.member) != (now.options, now.base, now.member):
        return None
    cut = boundary(seen.items)
    if cut is None or 2 * cut < len(now.items) or len(now.items) < len(seen.items):
        return None
    if not all(map(is_, seen.items, now.items)) or any(_instructs(item) for item in now.items[cut:]):
        return None
    was, new = convert(seen.items[cut:], cut), convert(now.items[cut:], cut)
    before: list[Any] = previous.payload[now.member]
    end: list[Any] = was.payload[now.member]
    # If the user message at the boundary was dropped, the assistant messages before and after it become adjacent and
    # may be merged.
    if not (_starts_with_user(end) and _starts_with_user(new.payload[now.member])):
        return None
    kept = len(before) - len(end)
    if kept <= 0 or before[kept:] != end:
        return None
    # The end must not cause an edit in the beginning, and the beginning must not cause an edit in the end.
    first, inner = len(previous.edits) - len(was.edits), {edit.path for edit in was.edits}
    edits = [edit for edit in previous.edits if not _within(edit.path, cut, now.base)]
    losses = [loss for loss in seen.losses if not _within(loss.path, cut, now.base)]
    if len(edits) != first or len(losses) != len(seen.losses) - len(was.losses):
        return None
    if any(not _within(path, cut, now.base) for path in inner):
        return None
    if any(edit.rule in _OF_THE_END for edit in edits):
        return None
    if any(edit.rule in _ENTANGLED for edit in (*previous.edits, *was.edits, *new.edits)):
        return None
    ids = _joined(previous.ids, was.ids, new.ids)
    beginning, fresh = before[:kept], _item_ids(new.payload[now.member])
    if ids is None or (fresh and not fresh.isdisjoint(_item_ids(beginning))):
        return None
    payload = {**previous.payload, now.member: beginning + new.payload[now.member]}
    return Conversion(payload, (*edits, *new.edits), ids, (*losses, *new.losses))


def _starts_with_user(messages: Sequence[Any]) -> bool:
    return bool(messages) and members_of(messages[0]).get("role") == "user"


def _within(path: str, cut: int, base: Path) -> bool:
    """Return whether a JSON pointer refers to a message at or after the boundary."""
    steps = path.split("/")[1:]
    at = len(base)
    return len(steps) > at and steps[at].isdigit() and int(steps[at]) >= cut


def _item_ids(messages: Sequence[Any]) -> set[Any]:
    return {item_id for item_id in [members_of(message).get("id") for message in messages] if item_id}


def _joined(previous: IdMap, was: IdMap, new: IdMap) -> IdMap | None:
    """Return the id map of the beginning and the new end combined, or None if they have an id in common."""
    earlier = previous.calls()
    kept = earlier[: len(earlier) - len(was.calls())]
    fresh = new.calls()
    if not set(chain.from_iterable(fresh)).isdisjoint(chain.from_iterable(kept)):
        return None
    return IdMap.of(chain(kept, fresh))
