"""Remove or rewrite reasoning that the target does not accept. A signature is valid only for its issuer.

Constraint: `reasoning`.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final

from streamweld.history.chat_reasoning import DETAILS, REASONING_ITEMS, THINKING_BLOCKS, reasoning_member
from streamweld.history.ids import form_of
from streamweld.history.model import Call, Reasoning, Text, changed, decoded, members_of, removed_value, with_parts

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from streamweld.history.context import Context
    from streamweld.history.model import Origin, Part, Turn

__all__ = ["run", "run_field", "run_followed"]

_ID: Final = frozenset({"id"})
_REQUIRED: Final = {"anthropic": "thinking", "responses": "summary"}  # the member that reasoning must have
_SIGNED: Final = (
    DETAILS,
    REASONING_ITEMS,
    THINKING_BLOCKS,
)  # members of Chat messages for signed reasoning without text


def run(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with the reasoning that the target accepts and that `policy.reasoning` keeps."""
    fact: Mapping[str, Any] | None = context.fact("reasoning")
    keeper = _Keeper(context, fact or {})
    unchanged = fact is None and context.policy.reasoning != "drop"
    out: list[Turn] = []
    for turn in turns:
        if not any(isinstance(part, Reasoning) for part in turn.parts):
            out.append(turn)
            continue
        if unchanged and turn.role == "assistant":
            out.append(turn)
            continue
        members_sent = keeper.turn(turn) if turn.role == "assistant" else keeper.instructed(turn)
        if members_sent.parts or members_sent is turn:
            out.append(members_sent)
    if len(out) == len(turns) and not all(map(is_, out, turns)):  # no turn was dropped
        calls = [part for turn in out for part in turn.parts if type(part) is Call]
        context.survey(turns).adopt(out, calls)
    return out


def run_field(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns with a reasoning member on the messages that require one (`when`, `fill`), and on no other
    messages.

    `when: tool_turns` selects the messages from the first call after a user message up to the next user message. This
    pass runs after those that drop or insert messages. The output for a turn never depends on later turns, so messages
    that were already sent do not change.
    """
    fact = context.facts("reasoning")
    fill: str | None = fact.get("fill")
    if fill is None and not context.survey(turns).reasoned:
        return turns
    keeper = _Keeper(context, fact)
    everywhere = fact.get("when") != "tool_turns"
    called = False  # whether a call has followed the last user message
    out: list[Turn] = []
    for turn in turns:
        if turn.role != "assistant":
            called = called and turn.role != "user"
            out.append(turn)
            continue
        called = called or any(isinstance(part, Call) for part in turn.parts)
        reasoned = any(isinstance(part, Reasoning) for part in turn.parts)
        if reasoned and not (everywhere or called):
            turn = keeper.plain(turn)
        elif not reasoned and fill is not None and (everywhere or called):
            context.edit("reasoning_fill", turn.path, "added an empty reasoning member, which the target requires")
            turn = with_parts(turn, (Reasoning(segments=(fill,), path=turn.path), *turn.parts))
        if turn.parts or not reasoned:
            out.append(turn)
    return out


def run_followed(turns: list[Turn], context: Context) -> list[Turn]:
    """Return the turns without reasoning at the end of an assistant message (`followed`).

    If the turn contains only reasoning, the turn is dropped. This pass runs after the passes that drop content. This
    pass must also run before the pass that merges messages, because merging can add content after reasoning that ended
    a message.
    """
    if not context.facts("reasoning").get("followed") or context.pending:
        return turns
    out: list[Turn] = []  # in reverse order, as are the dropped parts
    dropped: list[Reasoning] = []
    for turn in reversed(turns):
        parts, following = list(turn.parts), bool(out) and out[-1].role == "assistant"
        while turn.role == "assistant" and not following and parts and isinstance(last := parts[-1], Reasoning):
            dropped.append(last)
            parts.pop()
        if len(parts) == len(turn.parts):
            out.append(turn)
        elif parts:
            out.append(with_parts(turn, parts))
    for part in reversed(dropped):
        context.edit("reasoning_alone", part.path, "dropped reasoning that nothing follows", removed_value(part))
    return out[::-1] if dropped else turns


class _Keeper:
    """Selects the reasoning parts that are kept.

    If reasoning is dropped, the parts after it lose the item ids that the server assigned to them.
    """

    def __init__(self, context: Context, fact: Mapping[str, Any]) -> None:
        self.context = context
        self.fact = fact
        self.accept = fact.get("accept", "parts")
        self.item_form = form_of(context.facts("item_id"))
        self.members: Collection[str] = context.facts("members").get("assistant", ())

    def turn(self, turn: Turn) -> Turn:
        parts: list[Part] = []
        broken = False  # reasoning was dropped, so the server would reject the item ids of the parts after it
        altered = False
        for part in turn.parts:
            if not isinstance(part, Reasoning):
                if broken and isinstance(part, Call) and part.item_id and self.fact.get("group"):
                    self.context.edit(
                        "item_id_dropped", part.path, "dropped the item id of a call because its reasoning was dropped"
                    )
                    part = changed(part, item_id=None)
                    altered = True
                elif broken and self.fact.get("group") and part.origin is not None and self._names(part.origin):
                    self.context.edit(
                        "item_id_dropped",
                        part.path,
                        "dropped the item id of a message because its reasoning was dropped",
                    )
                    part = changed(part, origin=part.origin.without(_ID))
                    altered = True
                parts.append(part)
                continue
            kept = self._kept(part)
            if isinstance(kept, Reasoning):
                kept = self._whole(kept)
            altered = altered or kept is not part
            if kept is None:
                broken = True
            elif isinstance(kept, Text):
                broken = True
                parts.append(kept)
            else:
                broken = False
                parts.append(kept)
        return with_parts(turn, parts) if altered else turn

    def instructed(self, turn: Turn) -> Turn:
        """Return a system or user turn with its reasoning as text.

        Reasoning in a system or user message is an instruction, not the model's own reasoning. For example, Mistral's
        system prompts use these blocks to show how to reason.
        """
        parts: list[Part | None] = [
            self._as_text(part, "reasoning_role") if isinstance(part, Reasoning) else part for part in turn.parts
        ]
        return with_parts(turn, [part for part in parts if part is not None])

    def plain(self, turn: Turn) -> Turn:
        """Return the turn without its reasoning or, depending on the policy, with the reasoning as text."""
        parts: list[Part | None] = [
            self._gone(part, "the target accepts it only in turns with tool calls")
            if isinstance(part, Reasoning)
            else part
            for part in turn.parts
        ]
        return with_parts(turn, [part for part in parts if part is not None])

    def _names(self, origin: Origin) -> bool:
        """Return whether the message has an item id in the target's own dialect."""
        return origin.dialect == self.context.family and bool(origin.extra.get("id"))

    def _kept(self, part: Reasoning) -> Part | None:
        mode = self.context.policy.reasoning
        filling = not part.text and self.fact.get("fill") is not None
        if mode == "drop" and not filling:
            return self._lost(part, "the policy has reasoning='drop'")
        if not self.accept:
            return self._gone(part, "the target does not accept reasoning")
        if mode == "keep":
            return part
        if self.accept == "field":
            proven = bool(part.signature or part.encrypted) and self._member(part) in _SIGNED
            if not part.text and self.fact.get("fill") is None and not proven:
                return self._gone(part, "it has no text")
            return self._renamed(part)
        if self.accept == "chunks":
            return self._renamed(part)
        part_ = self._without_foreign_proof(part)
        if part_ is None:
            return None
        part_ = self._with_a_sound_id(part_)
        signed = bool(part_.encrypted or (part_.signature and self.accept != "items"))  # items have no signature
        own = part_.origin is not None and part_.origin.dialect == self.context.family
        if part_.kind == "redacted" and not own and self.context.fact("bytes") and not decoded(part_.encrypted or ""):
            return self._gone(part_, "its content is not base64")
        if self.fact.get("needs_encrypted") and not part_.encrypted:
            return self._gone(part_, "the target does not store responses, and the item has no encrypted content")
        if self.fact.get("needs_id") and part_.encrypted and not part_.item_id:
            return self._gone(part_, "the target rejects encrypted content without an item id")
        named = self.accept == "items" and part_.item_id and self.fact.get("item_ids") is not False
        if not signed and not named:
            required = self.fact.get("signed") == "required" or (self.accept == "items" and self.fact.get("issuers"))
            way = self.fact.get("unsigned") or ("drop" if required else "keep")
            if way == "text":
                return self._as_text(part_, "reasoning_unsigned")
            if way == "drop" or (not part_.text and self.accept != "parts"):
                return self._gone(part_, "it is not signed")
        if part_.item_id and self.accept == "items" and self.fact.get("item_ids") is False:
            self.context.edit(
                "reasoning_item_id",
                part.path,
                f"dropped the item id {part_.item_id!r} because the target does not accept ids of reasoning",
            )
            part_ = changed(part_, item_id=None)
        return part_

    def _whole(self, part: Reasoning) -> Reasoning:
        """Return the part with its required member, which may be empty. Clients omit it next to a signature or
        encrypted content.
        """
        required = _REQUIRED.get(self.context.family)
        own = part.origin is not None and part.origin.dialect == self.context.family
        if required is None or not own or part.kind == "redacted" or members_of(part.raw).get(required) is not None:
            return part
        self.context.edit("member_required", part.path, f"added the empty member {required!r}")
        return changed(part)

    def _with_a_sound_id(self, part: Reasoning) -> Reasoning:
        """Return the part, without its item id if the target rejects that id."""
        rule: Mapping[str, Any] = self.context.facts("item_id")
        if self.accept != "items" or not part.item_id or not rule or rule.get("send") is False:
            return part
        prefix: str = members_of(rule.get("prefixes")).get("reasoning", "")
        if part.item_id.startswith(prefix) and self.item_form.fits(part.item_id):
            return part
        self.context.edit(
            "item_id_dropped",
            part.path,
            f"dropped the item id {part.item_id!r} because the target rejects its form",
            part.item_id,
        )
        return changed(part, item_id=None)

    def _renamed(self, part: Reasoning) -> Reasoning:
        """Move reasoning to the member that this target uses, if the reasoning was read from the target's own
        dialect.
        """
        if part.origin is None or part.origin.dialect != self.context.family or part.touched:
            return part
        wanted = None if self.accept == "chunks" else self._member(part)
        if part.member == wanted:
            return part
        self.context.edit("reasoning_field", part.path, f"moved the reasoning to {wanted or 'the content'}")
        return changed(part)

    def _member(self, part: Reasoning) -> str:
        return reasoning_member(part, self.fact, self.members)

    def _without_foreign_proof(self, part: Reasoning) -> Reasoning | None:
        """Return the part without signatures and encrypted content from other issuers, or None if nothing is left."""
        issuers = self.fact.get("issuers")
        proof = bool(part.signature or part.encrypted or (part.item_id and self.accept == "items"))
        if not proof or not issuers:
            return part
        if part.assumed and part.origin is not None and part.origin.dialect == self.context.family:
            return part
        foreign = part.issuer not in issuers if part.issuer is not None else not self.fact.get("unknown_issuer")
        other = (
            bool(self.fact.get("same_model"))
            and part.model is not None
            and self.context.model is not None
            and part.model != self.context.model
        )
        if not foreign and not other:
            return part
        gone = {"signature": part.signature, "encrypted": part.encrypted, "item_id": part.item_id}
        text_of_part = f"from {part.issuer or 'an unknown provider'}" if foreign else f"from the model {part.model}"
        self.context.edit(
            "reasoning_custody",
            part.path,
            f"dropped the signature, encrypted content and item id of reasoning {text_of_part}",
            {name: value for name, value in gone.items() if value},
        )
        return changed(part, signature=None, encrypted=None, item_id=None)

    def _gone(self, part: Reasoning, why: str) -> Text | None:
        if self.context.policy.reasoning == "text" and part.text:
            return self._as_text(part, "reasoning_as_text")
        return self._lost(part, why)

    def _as_text(self, part: Reasoning, rule: str) -> Text | None:
        if not part.text.strip():
            return self._lost(part, "it has no text")
        self.context.edit(rule, part.path, "changed reasoning to text")
        return Text(text=part.text, path=part.path, touched=True)

    def _lost(self, part: Reasoning, why: str) -> Text | None:
        removed = removed_value(part)
        self.context.edit("reasoning_dropped", part.path, f"dropped reasoning: {why}", removed)
        return None
