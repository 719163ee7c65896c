"""Decides which call a tool-call fragment belongs to (rules R1 to R3).

`decide` only makes the decision; `route_fragment` carries it out. The rules below are tried from top to bottom.
"Complete" means that the arguments of the call are one complete JSON value. "Header" means that the fragment has a
name, and "payload" that it has argument text. The Rust twin refers to this table.

A call cannot mix JSON and the free-form text of a custom tool; its first text determines its type. If the id or index
identifies a call of the other type, the payload opens a new call. Otherwise, only calls of the same type are
candidates. Free-form text has no defined end, so a call with free-form text is never complete and accepts any text. A
second fragment with a header and text starts a second call, unless the id of the fragment is that of the first call.

    R1    the id is known (if several calls have it, it means the call bound to the fragment's index)
    R1a   the call is not complete                                       -> that call, whatever the index
    R1b   the header has another tool's name (or a longer name, once the
          arguments are complete); or the call is complete and the header
          has other arguments                                            -> new call; gets a unique id when it closes
    R1c   complete, header without payload, the index is unbound         -> tentative: dropped if it stays empty (AM4)
    R1d   the payload repeats a complete call of that name               -> drop the payload
    R1e   complete, header with the beginning of the same arguments      -> hold back: a replay, or a similar new call
    R1f   complete, no header, the index is bound to an unfinished call  -> that unfinished call
    R1g   (at overflow, in `route_fragment`) a header was repeated on    -> two calls, even if the first one's
          the index                                                         arguments look like a placeholder
    R2    the id is new
    R2a   no index, no header, the latest call (of the payload's type)
          is named and not complete                                      -> that call, under a late or changed id
    R2b   the index is bound to a call without id                        -> that call takes the id
          but if that call is complete, and the fragment is a header or
          has other arguments                                            -> R2c
    R2c   the index is bound to a call with another id; header           -> new call; AM1 if that call is still empty
    R2d   as R2c, but: same name, the call is in progress, the payload
          continues it and starts no object (or its id changed before)   -> that call, under another id
    R2e   the index is bound, no header, not complete                    -> that call, under another id
    R2f   otherwise                                                      -> new call
    R3    there is no id
    R3a1  the index is bound                                             -> that call
    R3a2  bound and complete; header with payload or with another name   -> new call
    R3a3  as R3a2, but an earlier call without id at the index had the
          same arguments                                                 -> drop the payload (AM5)
    R3a4  bound and complete; payload without header, and another
          unfinished call can take it                                    -> that other call
    R3b1  the index is unbound; header                                   -> new call
    R3b2  unbound; no header; a named call waits for arguments, or an
          unfinished one can take the payload                            -> that call (AM2 if several wait)
    R3b3  unbound; otherwise                                             -> new call without a name
    R3c1  no index; header                                               -> new call
    R3c2  no index; no header; or the unfinished call has no name, or
          the same, and can take the payload                             -> the latest unfinished call
    R3c3  no index, no header, one of several in its list                -> the call at this position in the last list
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamweld._pure.assemble.choice import LEGACY_INDEX
from streamweld._pure.assemble.part.canonical_json import canonical, is_whole
from streamweld._pure.assemble.resolve.decision import Decision, Incoming, Resolution
from streamweld._pure.assemble.resolve.names import relate

if TYPE_CHECKING:
    from streamweld._pure.assemble.choice import Choice
    from streamweld._pure.assemble.part.call import Call
    from streamweld._pure.assemble.resolve.names import Relation

__all__ = ["decide", "guess", "relation_of"]


def decide(choice: Choice, incoming: Incoming) -> Decision:
    """Return the decision on a fragment, according to the first applicable rule of the decision table."""
    if incoming.id is not None:
        known = choice.by_id.get(incoming.id)
        if known is not None:
            return _known_id(choice, incoming, incoming.id, known)
        return _new_id(choice, incoming)
    if incoming.index is not None:
        bound = choice.by_index.get(incoming.index)
        if bound is not None:
            return _bound(choice, incoming, incoming.index, bound)
        return _unbound(choice, incoming)
    return _no_index(choice, incoming)


def relation_of(choice: Choice, call: Call, name: str, payload: bytes) -> Relation:
    """Return how the name in a fragment with this payload relates to the name of the call."""
    return relate(call.name, name, choice.shared.settings.tools, call.progress(payload))


def _known_id(choice: Choice, incoming: Incoming, identity: str, call: Call) -> Decision:
    bound = None if incoming.index is None else choice.by_index.get(incoming.index)
    if bound is not None and bound.has_id(identity):
        call = bound
    name, payload = incoming.name, incoming.payload
    relation = None if name is None else relation_of(choice, call, name, payload)
    elsewhere = incoming.index is not None and bound is not call and bool(call.indexes)
    if not call.suits(payload, custom=incoming.custom):
        return Decision("R1b", None, Resolution.NEW)
    if call.custom and payload and name is not None and not call.empty:
        # Free-form text has no defined end that could distinguish a second call from the next piece.
        if elsewhere:
            return Decision("R1b", None, Resolution.NEW)
        return Decision("R1a", call, note="ambiguous_duplicate_id")
    if not call.complete:
        if relation == "other" or (relation in ("fragment", "grows") and elsewhere):
            # Another tool's name opens a new call, unless the payload is empty or can only be the next piece of this
            # call.
            continues = not elsewhere and (not payload or (not incoming.starts_object and call.accepts(payload)))
            if not continues:
                return Decision("R1b", None, Resolution.NEW)
        if (
            name is not None
            and elsewhere
            and bound is None
            and choice.shared.settings.switches.dup_id_parallel_headers == "split"
        ):
            return Decision("R1b", None, Resolution.NEW)
        return Decision("R1a", call)
    if relation == "other" or (relation in ("fragment", "grows") and (payload or elsewhere)):
        return Decision("R1b", None, Resolution.NEW)
    if name is not None:
        if not payload:
            if incoming.index is not None and bound is None:
                return Decision("R1c", None, Resolution.NEW, tentative=True)
            return Decision("R1a", call)
        if call.text.replayed and not elsewhere:
            return Decision("R1e", call)
        if call.repeats(payload) or _is_replay(choice, identity, name, payload):
            return Decision("R1d", call, Resolution.DROP)
        if not elsewhere and call.text.begins_with(payload) and not call.text.is_placeholder():
            return Decision("R1e", call, Resolution.REPLAY)
        return Decision("R1b", None, Resolution.NEW)
    if not payload:
        return Decision("R1a", call)
    if call.repeats(payload):
        return Decision("R1d", call, Resolution.DROP)
    if bound is not None and bound is not call and not bound.complete and bound.custom == incoming.custom:
        return Decision("R1f", bound)
    return Decision("R1a", call)


def _new_id(choice: Choice, incoming: Incoming) -> Decision:
    name, payload = incoming.name, incoming.payload
    if incoming.index is None:
        latest = choice.latest
        if payload and latest is not None and latest.custom != incoming.custom:
            latest = choice.latest_unfinished(custom=incoming.custom)
        open_ = name is None and latest is not None and latest.name and not latest.complete
        if latest is not None and open_ and latest.takes(payload, custom=incoming.custom):
            return Decision("R2a", latest)
        return Decision("R2f", None, Resolution.NEW)
    bound = choice.by_index.get(incoming.index)
    if bound is None and _repeats_legacy(choice, name, payload):
        return Decision("R2b", choice.by_index[LEGACY_INDEX], Resolution.DROP)
    if bound is None or not bound.suits(payload, custom=incoming.custom):
        return Decision("R2f", None, Resolution.NEW)
    relation = None if name is None else relation_of(choice, bound, name, payload)
    if bound.id is None:
        if bound.complete and payload and relation in (None, "same", "late") and bound.repeats(payload):
            return Decision("R2b", bound, Resolution.DROP)
        if relation == "other" or (bound.complete and (name is not None or payload)):
            return Decision("R2c", None, Resolution.NEW)
        return Decision("R2b", bound)
    if name is None:
        if not bound.complete:
            return Decision("R2e", bound)
        if payload and bound.repeats(payload):
            return Decision("R2e", bound, Resolution.DROP)
        return Decision("R2f", None, Resolution.NEW)
    if bound.complete:
        return Decision("R2c", None, Resolution.NEW)
    proven = relation == "fragment" and choice.shared.settings.tools.begins(bound.name + name)
    if relation in ("same", "late") or proven:
        if bound.empty and relation == "same":
            # AM1: the new id means a parallel call, unless the stream sends a new id in every delta of one call.
            if choice.shared.settings.switches.same_index_new_id_same_name_empty == "merge":
                return Decision("R2d", bound)
            return Decision("R2c", None, Resolution.NEW, displaced_empty=bound)
        continues = payload and (bound.id_changed or not incoming.starts_object) and bound.accepts(payload)
        if continues or (relation == "late" and not payload):
            return Decision("R2d", bound)
    return Decision("R2c", None, Resolution.NEW)


def _repeats_legacy(choice: Choice, name: str | None, payload: bytes) -> bool:
    """Return True if the fragment repeats a call that arrived in `function_call` without an id."""
    legacy = choice.by_index.get(LEGACY_INDEX)
    if legacy is None or legacy.id is not None or legacy.name != name or legacy.dropped:
        return False
    return legacy.complete and bool(payload) and legacy.repeats(payload)


def _bound(choice: Choice, incoming: Incoming, index: int, bound: Call) -> Decision:
    name, payload = incoming.name, incoming.payload
    relation = None if name is None else relation_of(choice, bound, name, payload)
    two_headers = bound.custom and name is not None and payload and not bound.empty
    if two_headers or not bound.suits(payload, custom=incoming.custom):
        return Decision(
            "R3a2", None, Resolution.NEW
        )  # a call cannot mix free-form text and JSON, or have two headers with text
    if not bound.complete:
        return Decision("R3a2", None, Resolution.NEW) if relation == "other" else Decision("R3a1", bound)
    if name is not None:
        if not payload:
            if relation in ("same", "late", "grows"):
                return Decision("R3a1", bound)
            return Decision("R3a2", None, Resolution.NEW)
        if relation == "same" and _second_is_due(bound, index):
            return Decision("R3a1", bound)
        if choice.shared.settings.switches.identical_idless_same_index == "drop" and (
            (relation == "same" and bound.repeats(payload)) or _is_replay(choice, index, name, payload)
        ):
            return Decision("R3a3", bound, Resolution.DROP, note="ambiguous_identical_call")
        return Decision("R3a2", None, Resolution.NEW)
    if not payload or bound.text.replayed or bound.text.begins_with(payload) or bound.repeats(payload):
        return Decision("R3a1", bound)
    if index in bound.announced_again or bound.text.gives_way():
        return Decision("R3a1", bound)
    if choice.latest is bound and bound.text.is_last(payload):
        return Decision("R3a1", bound)  # A5: the same fragment twice in a row
    other = choice.accepting(payload, other_than=bound)
    if other is not None:
        return Decision("R3a4", other, note=guess(choice, other))
    return Decision("R3a1", bound)


def _second_is_due(call: Call, index: int | None) -> bool:
    """Return True if the complete call is being repeated (R1e) or was announced again at the index (R1g).

    The next text is then held back (R1e), or opens a second call with the same id (R1g).
    """
    return call.text.replayed > 0 or (call.id is not None and index in call.announced_again)


def _unbound(choice: Choice, incoming: Incoming) -> Decision:
    if incoming.name is not None:
        return Decision("R3b1", None, Resolution.NEW)
    payload = incoming.payload
    if not payload:
        return _latest_or_nothing(choice, "R3b2")
    latest = choice.shared.settings.switches.orphan_index == "latest"
    waiting = choice.next_waiting(custom=incoming.custom, latest=latest)
    if waiting is not None and waiting.takes(payload, custom=incoming.custom):
        candidates = choice.open_calls(custom=incoming.custom)
        # A JSON payload shows whether it continues arguments or begins them. Free-form text does not show this, so a
        # piece of free-form text may belong to any open call.
        among = candidates.unfinished if incoming.custom else candidates.waiting
        return Decision("R3b2", waiting, note="ambiguous_orphan_index" if among.count > 1 else None)
    other = choice.accepting(payload, custom=incoming.custom)
    if other is not None:
        return Decision("R3b2", other, note=guess(choice, other))
    return Decision("R3b3", None, Resolution.NEW)


def guess(choice: Choice, call: Call) -> str | None:
    """AM2: return the code to report if the payload might belong to another call.

    The payload might do so if other calls of its type are open, or if the call accepts any text. Otherwise, return
    None.
    """
    others = choice.open_calls(custom=call.custom).unfinished.count > 1
    return "ambiguous_orphan_index" if others or call.custom or call.text.automaton.in_string else None


def _no_index(choice: Choice, incoming: Incoming) -> Decision:
    name, payload = incoming.name, incoming.payload
    if incoming.array_len > 1 and name is None:
        placed = choice.multi.get(incoming.position)
        if placed is not None and not placed.dropped and (not payload or placed.custom == incoming.custom):
            return Decision("R3c3", placed)
    unfinished = choice.latest_unfinished(custom=incoming.custom)
    latest = choice.latest
    if name is not None:
        if unfinished is not None:
            relation = relation_of(choice, unfinished, name, payload)
            proven = relation == "fragment" and choice.shared.settings.tools.begins(unfinished.name + name)
            second = unfinished.custom and relation == "same" and not unfinished.empty and bool(payload)
            joins = relation in ("late", "same") or proven
            if joins and not second and unfinished.takes(payload, custom=incoming.custom):
                return Decision("R3c2", unfinished, note=_one_of_several(choice, incoming))
        again = latest is not None and latest.name == name and latest.complete and payload and not incoming.custom
        if latest is not None and again and _second_is_due(latest, None):
            return Decision("R3c2", latest)
        return Decision("R3c1", None, Resolution.NEW)
    if not payload:
        return _latest_or_nothing(choice, "R3c2")
    if unfinished is not None:
        return Decision("R3c2", unfinished, note=_one_of_several(choice, incoming))
    if latest is not None and latest.custom == incoming.custom:
        return Decision("R3c2", latest)
    return Decision("R3b3", None, Resolution.NEW)


def _one_of_several(choice: Choice, incoming: Incoming) -> str | None:
    """AM2: return the code to report if the fragment has a payload and several calls of its type are open. Otherwise,
    return None.
    """
    several = choice.open_calls(custom=incoming.custom).unfinished.count > 1
    return "ambiguous_orphan_index" if incoming.payload and several else None


def _latest_or_nothing(choice: Choice, rule: str) -> Decision:
    """Assign a fragment without an id, a name and a payload to the last addressed call, or ignore the fragment if no
    call was addressed.
    """
    if choice.latest is not None and not choice.latest.dropped:
        return Decision(rule, choice.latest)
    return Decision(rule, None, Resolution.IGNORE)


def _is_replay(choice: Choice, key: str | int, name: str, payload: bytes) -> bool:
    """R1d, R3a3: return True if the fragment has the name and arguments of a call that lost this id or index to a later
    call.
    """
    if not choice.payloads or not is_whole(payload):
        return False
    return choice.is_replay(key, name, canonical(payload.decode("utf-8", "replace")))
