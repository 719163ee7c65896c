//! The assembler's methods for parts that the stream opens and closes explicitly, as in every dialect except Chat.
//!
//! An item is the unit that the wire format addresses: a Responses output item, an Anthropic content block, or an AI
//! SDK block. An item contains one call, or any number of text-like parts. Each method handles one kind of wire delta;
//! the methods for calls are in `item_deltas_calls`. `item_index` finds the item for an address, `item_text` changes
//! parts, `item_call` changes calls, `reannounced` handles calls that are announced twice, and `terminal_items` handles
//! terminal lists. `metadata` is always the text of a JSON object.

use crate::assemble::Assembler;
use crate::assemble::ChoiceContext;
use crate::assemble::choice::Choice;
use crate::assemble::late_text::add_late_text;
use crate::assemble::late_text::continue_part;
use crate::assemble::late_text::end_all_late_texts;
use crate::assemble::late_text::end_late_text;
use crate::assemble::late_text::end_late_texts;
use crate::assemble::late_text::is_late;
use crate::assemble::part::item::Item;
use crate::assemble::part::item::PartPosition;
use crate::assemble::part::item_call::CallProperties;
use crate::assemble::part::item_call::describe;
use crate::assemble::part::item_end::end_item;
use crate::assemble::part::item_shared_id::resolve_shared_id;
use crate::assemble::part::item_text::PartKey;
use crate::assemble::part::item_text::Repetition;
use crate::assemble::part::item_text::add_joined_text;
use crate::assemble::part::item_text::add_text;
use crate::assemble::part::item_text::annotate;
use crate::assemble::part::item_text::close_part;
use crate::assemble::part::item_text::complete_text;
use crate::assemble::part::item_text::continue_repetition;
use crate::assemble::part::item_text::differs;
use crate::assemble::part::item_text::end_part;
use crate::assemble::part::item_text::find_part;
use crate::assemble::part::item_text::find_whole;
use crate::assemble::part::item_text::open_part;
use crate::assemble::part::item_text::put_metadata;
use crate::assemble::part::item_text::repeat_item;
use crate::assemble::part::item_text::repeat_open_part;
use crate::assemble::part::item_text::repeat_part;
use crate::assemble::part::item_text::report_late_part;
use crate::assemble::part::item_text::set_whole_text;
use crate::assemble::resolve::by_address::diverged;
use crate::assemble::resolve::by_address::end_repetition;
use crate::assemble::resolve::by_address::end_shorter_repetition;
use crate::assemble::resolve::by_address::fill;
use crate::assemble::resolve::by_address::item_of_opening;
use crate::assemble::resolve::by_address::known_item;
use crate::assemble::resolve::by_address::learn;
use crate::assemble::resolve::by_address::new_item;
use crate::assemble::resolve::by_address::opened;
use crate::assemble::resolve::by_address::restatement;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::item_index::usable;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use crate::model::delta::PartAt;
use crate::model::delta::PartAttributes;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::spec::Code;

impl Assembler {
    /// Returns the choice, or `None` if the choice or the stream has ended. A delta for a choice that has ended is
    /// reported as late.
    pub(crate) fn item_choice<'a, 'o>(
        &'a mut self,
        out: &'a mut Output<'o>,
        choice: i32,
    ) -> Result<Option<ChoiceContext<'a, 'o>>, Fault> {
        if self.is_over() {
            return Ok(None);
        }
        let at = self.at(out, choice)?;
        if at.choice.closed {
            at.ctx.out.diagnose(Code::LATE_DELTA, None, "")?;
            return Ok(None);
        }
        Ok(Some(at))
    }

    /// Opens an item whose opening event contains no part.
    pub fn item_opened(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        kind: ItemKind,
        address: Address<'_>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        let address = usable(&ctx, &address);
        let known = choice.item_index.by_ids(&choice.calls, kind, &address);
        let known = known.or_else(|| {
            let bound = choice.item_index.at(kind, address.index);
            let free = |item: &usize| {
                let item = choice.item_index.get(*item);
                item.is_some_and(|item| item.open && !item.announced)
            };
            bound.filter(free)
        });
        let nameless = known.is_none() && address.item_id.is_none();
        let before = choice.item_index.at(kind, address.index);
        if let (None, Some(before)) = (known, before) {
            end_late_texts(&mut ctx, choice, before)?;
        }
        if before.is_some_and(|item| nameless && repeat_item(choice, item)) {
            if let Some(index) = address.index {
                ctx.out.record_fact(WireFact::Announced(index));
            }
            return Ok(());
        }
        let item = match known {
            Some(item) => item,
            None => new_item(&mut ctx, choice, kind, &address)?,
        };
        learn(&mut ctx, choice, item, &address)?;
        choice.item_index.bind(item, &address);
        if let Some(item) = choice.item_index.get_mut(item) {
            item.announced = true;
            item.opened_bare = true;
            if let Some(index) = item.index {
                ctx.out.record_fact(WireFact::Announced(index));
            }
        }
        Ok(())
    }

    /// Opens a part, unless it is open already. `text`: the text in the opening event, a snapshot that deltas may
    /// repeat.
    pub fn part_opened(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let repeated = choice.item_index.repeated_at(at.kind, &at.address);
        let repeated = repeated.and_then(|item| known_part(choice, item, &at));
        let repeated = settled(&mut ctx, choice, repeated, None)?;
        if repeated.is_some_and(|part_position| {
            repeat_part(choice, part_position, &at.address, text.as_ref())
        }) {
            return Ok(());
        }
        let again = choice.item_index.take_begun_again(at.kind, &at.address);
        let again = again.and_then(|item| known_part(choice, item, &at));
        if again.is_some_and(|part_position| repeat_open_part(choice, part_position, text.as_ref()))
        {
            return Ok(());
        }
        let item = item_of_opening(&mut ctx, choice, at.kind, &at.address)?;
        let known = known_part(choice, item, &at);
        let settled = settled(&mut ctx, choice, known, None)?;
        let known = settled.filter(|part_position| {
            let known = choice.item_part(*part_position);
            known.is_some_and(|(one, part)| part.open && one.sub == at.address.sub)
        });
        if let Some(part_position) = known {
            // The part is open already, because it was announced twice or its deltas arrived first.
            return put_metadata(&mut ctx, choice, part_position, metadata);
        }
        if settled.is_some_and(|part_position| {
            repeat_part(choice, part_position, &at.address, text.as_ref())
        }) {
            return Ok(());
        }
        fill(choice, item);
        let has_sub = |part_position: &PartPosition| {
            let known = choice.item_part(*part_position);
            known.is_some_and(|(one, _)| one.sub == at.address.sub)
        };
        if let Some(known) = settled.filter(has_sub) {
            // The part was closed too early.
            let opening = (text, metadata);
            continue_part(&mut ctx, choice, known, at.address.sub, opening)?;
            return Ok(());
        }
        choice.item_index.reopen(item);
        open_part(&mut ctx, choice, item, part_key(&at), text, metadata)?;
        Ok(())
    }

    /// Appends a piece of text to a part. Opens the part if it does not exist.
    pub fn part_text(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let found = find(choice, &at, Purpose::Delta);
        let known = found.and_then(|item| known_part(choice, item, &at));
        let found = found.filter(|item| known.is_some() || !is_over(choice, *item, &at.address));
        if found.is_none() && text.is_empty() {
            return Ok(());
        }
        if found.is_none() && !ctx.shared.ids_optional {
            ctx.out.mark_misread("not_opened"); // the opening event is missing
        }
        let item = known_item(&mut ctx, choice, at.kind, &at.address, found)?;
        let sub = at.address.sub;
        let part_position = match known {
            Some(part_position) => part_position,
            None if text.is_empty() => return Ok(()),
            None => {
                if choice.item_index.get(item).is_some_and(|item| !item.open) {
                    late(&mut ctx, choice, item)?;
                    choice.item_index.reopen(item);
                }
                opened(&mut ctx, choice, item, part_key(&at))?
            }
        };
        let is_late = is_late(choice, part_position, sub);
        let repeated = choice
            .item_part_mut(part_position)
            .filter(|(one, _)| one.repeated.is_some());
        let Some((one, _)) = repeated else {
            if is_late && text.is_empty() {
                return Ok(());
            }
            if is_late {
                return add_late_text(&mut ctx, choice, part_position, text, sub, metadata);
            }
            return add_text(&mut ctx, choice, part_position, text, sub, metadata);
        };
        let (text, _) = one.joiner.join(text);
        let (part_position, text) =
            match continue_repetition(&mut ctx, choice, part_position, &text)? {
                Repetition::Continued => return Ok(()),
                Repetition::Completed(more) => (part_position, more),
                Repetition::Diverged => {
                    let new = diverged(&mut ctx, choice, part_position, &at.address)?;
                    (new, text.as_ref())
                }
            };
        add_joined_text(&mut ctx, choice, part_position, text, sub, metadata)
    }

    /// Replaces the streamed text of a part with its complete text. Does not close the part.
    pub fn part_value(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let Some(text) = complete_text(text) else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let found = find(choice, &at, Purpose::Delta);
        let item = known_item(&mut ctx, choice, at.kind, &at.address, found)?;
        let known = find_whole(choice, item, part_key(&at), Some(&text));
        let known = settled(&mut ctx, choice, known, Some(&text))?;
        let part_position = match known {
            Some(part_position) if differs(choice, part_position, &text) => {
                diverged(&mut ctx, choice, part_position, &at.address)?
            }
            Some(part_position)
                if choice
                    .item_part(part_position)
                    .is_some_and(|(one, _)| one.repeated.is_some()) =>
            {
                return report_late_part(&mut ctx, choice, part_position);
            }
            Some(part_position) => part_position,
            None => opened(&mut ctx, choice, item, part_key(&at))?,
        };
        set_whole_text(&mut ctx, choice, part_position, at.address.sub, Some(text))?;
        if choice
            .item_index
            .get(part_position.item)
            .is_some_and(|item| !item.open)
        {
            return end_part(&mut ctx, choice, part_position);
        }
        Ok(())
    }

    /// Adds annotations, a signature, encrypted content and metadata to a part. Opens the part if it does not exist.
    pub fn part_attributes(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        attributes: PartAttributes<'_>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let found = find(choice, &at, Purpose::Delta);
        let item = known_item(&mut ctx, choice, at.kind, &at.address, found)?;
        let known = find_part(choice, item, at.channel, None, at.address.sub);
        let part_position = match known {
            Some(part_position) => part_position,
            None => {
                let bare = choice
                    .item_index
                    .get(item)
                    .is_some_and(|item| item.opened_bare);
                let kind = match at.channel {
                    Channel::Reasoning if bare => "summary",
                    Channel::Reasoning => "thinking",
                    Channel::Text | Channel::Refusal => "raw",
                };
                opened(
                    &mut ctx,
                    choice,
                    item,
                    PartKey {
                        kind,
                        ..part_key(&at)
                    },
                )?
            }
        };
        let open = choice.item_index.get(item).is_some_and(|item| item.open);
        if open && choice.is_part_open(part_position) {
            annotate(&mut ctx, choice, part_position, attributes)?;
            return put_metadata(&mut ctx, choice, part_position, attributes.metadata);
        }
        let Some((one, part)) = choice.item_part_mut(part_position) else {
            return Ok(());
        };
        if std::mem::replace(&mut one.late_reported, true) {
            return Ok(());
        }
        ctx.report(Code::LATE_DELTA, part.part)
    }

    /// Closes a part, and first creates it if it does not exist. If `text` is missing, the streamed text is final.
    pub fn part_closed(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let text = complete_text(text);
        let found = find(choice, &at, Purpose::Close);
        if found.is_none() && text.is_none() {
            return Ok(());
        }
        let item = known_item(&mut ctx, choice, at.kind, &at.address, found)?;
        let known = find_whole(choice, item, part_key(&at), text.as_deref());
        let known = settled(&mut ctx, choice, known, text.as_deref())?;
        let part_position = match known {
            Some(part_position)
                if text
                    .as_ref()
                    .is_some_and(|text| differs(choice, part_position, text)) =>
            {
                diverged(&mut ctx, choice, part_position, &at.address)?
            }
            Some(part_position) => part_position,
            None if text.is_none() => return Ok(()),
            None => opened(&mut ctx, choice, item, part_key(&at))?,
        };
        let item = part_position.item;
        // An item with its own opening event, or with numbered parts, also has its own closing event.
        let alone = choice
            .item_index
            .get(item)
            .is_none_or(|item| !item.open || (!item.opened_bare && at.address.sub.is_none()));
        set_whole_text(&mut ctx, choice, part_position, at.address.sub, text)?;
        close_part(&mut ctx, choice, part_position, metadata, alone)?;
        let is_over = |item: &Item| item.open_parts == 0;
        if alone && choice.item_index.get(item).is_some_and(is_over) {
            choice.item_index.close(item);
        }
        Ok(())
    }

    /// Closes an item with all of its parts or its call. If `kind` is missing, closes the open item of any kind at the
    /// address.
    pub fn item_closed(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        kind: Option<ItemKind>,
        address: Address<'_>,
        encrypted_content: Option<&str>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        let address = usable(&ctx, &address);
        let (item_index, calls) = (&choice.item_index, &choice.calls);
        let found = match kind {
            None => item_index.whatever_at(calls, &address),
            Some(kind) => item_index.find(calls, kind, &address, Purpose::Close),
        };
        let encrypted = encrypted_content.is_some_and(|text| !text.is_empty());
        let item = match (found, kind) {
            (Some(item), _) => item,
            (None, Some(ItemKind::Reasoning)) if address.item_id.is_some() || encrypted => {
                new_item(&mut ctx, choice, ItemKind::Reasoning, &address)?
            }
            (None, None) => {
                let mut kinds = [ItemKind::Message, ItemKind::Reasoning].into_iter();
                let item = kinds.find_map(|kind| choice.item_index.repeated_at(kind, &address));
                return match item {
                    Some(item) => end_repetition(&mut ctx, choice, item, &address),
                    None => Ok(()),
                };
            }
            (None, _) => return Ok(()),
        };
        learn(&mut ctx, choice, item, &address)?;
        let mut item = item;
        if resolve_shared_id(&mut ctx, choice, item)? {
            item = choice
                .item_index
                .at(ItemKind::Call, address.index)
                .unwrap_or(item);
        }
        if choice.item_index.get(item).is_some_and(|item| !item.open) {
            end_late_texts(&mut ctx, choice, item)?;
        }
        let record = choice.item_index.get(item);
        if record.is_none_or(|record| !record.open) {
            // An item with an id stays the same item, even if only the beginning of its text was repeated.
            let ends = record.is_some_and(|record| record.item_id.is_none() && record.repeats);
            return match ends {
                true => end_repetition(&mut ctx, choice, item, &address),
                false => Ok(()),
            };
        }
        if end_shorter_repetition(&mut ctx, choice, item, &address)? {
            return Ok(());
        }
        let Some(record) = choice.item_index.get(item) else {
            return Ok(());
        };
        if let (ItemKind::Call, Some(slot)) = (record.kind, record.call) {
            let properties = CallProperties {
                metadata,
                ..CallProperties::default()
            };
            describe(&mut ctx, choice, slot, properties)?;
        }
        end_item(&mut ctx, choice, item, encrypted_content, metadata)?;
        let Some(index) = address.index.filter(|_| kind.is_none()) else {
            return Ok(());
        };
        // Deltas of another type may have opened an item of another kind for the same block.
        choice
            .item_index
            .open_at(index)
            .into_iter()
            .try_for_each(|other| end_item(&mut ctx, choice, other, None, None))
    }

    /// Records that the message began again, so the blocks that follow may repeat earlier blocks at the same index.
    pub fn message_repeated(&mut self, out: &mut Output<'_>, choice: i32) -> ParseResult {
        if let Some(ChoiceContext { choice, .. }) = self.item_choice(out, choice)? {
            choice.item_index.begin_again();
        }
        Ok(())
    }

    /// Applies one part of a terminal list. If the listed part repeats a streamed part, closes the streamed part;
    /// otherwise, creates a new part.
    pub fn restate_part(
        &mut self,
        out: &mut Output<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, at.choice)? else {
            return Ok(());
        };
        let at = cleared(&ctx, at);
        let text = complete_text(text);
        let mut list = restatement(choice);
        let (item, part_position) = list.part(choice, &at, text.as_deref().unwrap_or_default());
        choice.item_index.restated = Some(list);
        let (item, part_position) = match (item, part_position) {
            (Some(item), Some(part_position)) => (item, part_position),
            _ if text.is_none() => return Ok(()),
            (item, _) => {
                let item = match item {
                    Some(item) => item,
                    None => new_item(&mut ctx, choice, at.kind, &at.address)?,
                };
                (item, opened(&mut ctx, choice, item, part_key(&at))?)
            }
        };
        let part_position = end_late_text(&mut ctx, choice, part_position, text.as_deref())?;
        if let Some((one, _)) = choice.item_part_mut(part_position) {
            one.restated = true;
        }
        learn(&mut ctx, choice, item, &at.address)?;
        let alone = choice.item_index.get(item).is_some_and(|item| !item.open);
        set_whole_text(&mut ctx, choice, part_position, at.address.sub, text)?;
        close_part(&mut ctx, choice, part_position, metadata, alone)
    }

    /// Ends a step, after which ids and indexes may be reused for other items. Closes the open text parts; open calls
    /// stay open until the choice ends.
    pub fn forget_addresses(&mut self, out: &mut Output<'_>, choice: i32) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        // Items of earlier steps that are still open are calls, which stay open until the choice ends.
        end_all_late_texts(&mut ctx, choice)?;
        for item in choice.item_index.opened_here() {
            let record = choice.item_index.get(item);
            if record.is_some_and(|item| item.first.is_some() || item.kind != ItemKind::Call) {
                end_item(&mut ctx, choice, item, None, None)?;
            }
        }
        choice.item_index.forget();
        choice.step = ctx.out.parts();
        Ok(())
    }
}

/// Returns the reference to a part, without the unusable ids and indexes of its address.
pub(crate) fn cleared<'a>(ctx: &RuleContext<'_, '_>, at: PartAt<'a>) -> PartAt<'a> {
    PartAt {
        address: usable(ctx, &at.address),
        ..at
    }
}

fn part_key(at: &PartAt<'_>) -> PartKey {
    PartKey {
        channel: at.channel,
        kind: at.reasoning_kind,
        sub: at.address.sub,
    }
}

pub(crate) fn find(choice: &Choice, at: &PartAt<'_>, purpose: Purpose) -> Option<usize> {
    let calls = &choice.calls;
    choice.item_index.find(calls, at.kind, &at.address, purpose)
}

/// Returns true if the item is closed and neither the item nor the address has an id. A delta at the index of such an
/// item belongs to a new item.
pub(crate) fn is_over(choice: &Choice, item: usize, address: &Address<'_>) -> bool {
    let ids = |item: &Item| item.item_id.is_some() || address.item_id.is_some();
    let item = choice.item_index.get(item);
    item.is_some_and(|item| !item.open && !item.repeats && !ids(item))
}

pub(crate) fn known_part(choice: &Choice, item: usize, at: &PartAt<'_>) -> Option<PartPosition> {
    let kind = Some(at.reasoning_kind);
    find_part(choice, item, at.channel, kind, at.address.sub)
}

/// Decides whether late text that the part holds is new, because an event ends the part or opens it again. `whole`: the
/// complete text in the event. Returns the part that the event belongs to.
fn settled(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    known: Option<PartPosition>,
    whole: Option<&str>,
) -> Result<Option<PartPosition>, Fault> {
    let part_position = known.map(|known| end_late_text(ctx, choice, known, whole));
    part_position.transpose()
}

fn late(ctx: &mut RuleContext<'_, '_>, choice: &mut Choice, item: usize) -> ParseResult {
    let was_reported = choice
        .item_index
        .get_mut(item)
        .map(|item| std::mem::replace(&mut item.late_reported, true));
    match was_reported {
        Some(false) => ctx.out.diagnose(Code::LATE_DELTA, None, ""),
        _ => Ok(()),
    }
}
