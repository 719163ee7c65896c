//! The assembler's methods for tool calls that the stream opens and closes explicitly. `items` contains the methods for
//! parts.

use crate::assemble::Assembler;
use crate::assemble::ChoiceContext;
use crate::assemble::choice::Choice;
use crate::assemble::part::call_events::progress;
use crate::assemble::part::item_call::CallProperties;
use crate::assemble::part::item_call::add_arguments;
use crate::assemble::part::item_call::describe;
use crate::assemble::part::item_call::hold;
use crate::assemble::part::item_call::is_same_or_empty;
use crate::assemble::part::item_call::name_call;
use crate::assemble::part::item_call::note_ids;
use crate::assemble::part::item_call::set_whole_arguments;
use crate::assemble::part::item_end::end_item;
use crate::assemble::part::item_shared_id::share_id;
use crate::assemble::part::item_text::complete_text;
use crate::assemble::part::reannounced::begin_reannounced;
use crate::assemble::part::reannounced::is_another;
use crate::assemble::part::reannounced::is_close_under_another_id;
use crate::assemble::part::reannounced::is_closed;
use crate::assemble::part::reannounced::is_own_close;
use crate::assemble::part::reannounced::rename_call;
use crate::assemble::part::reannounced::report_reannounced;
use crate::assemble::resolve::by_address::addressed_call;
use crate::assemble::resolve::by_address::learn;
use crate::assemble::resolve::by_address::new_call;
use crate::assemble::resolve::by_address::new_item;
use crate::assemble::resolve::by_address::restatement;
use crate::assemble::resolve::item_index::Purpose;
use crate::assemble::resolve::item_index::usable;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Text;
use crate::model::delta::Address;
use crate::model::delta::CallEnding;
use crate::model::delta::CallFields;
use crate::model::delta::ItemKind;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::output::Output;
use crate::model::spec::Code;

impl Assembler {
    /// Opens a call. The arguments in the opening event are a snapshot, which deltas may repeat.
    pub fn call_opened(&mut self, out: &mut Output<'_>, call: CallFields<'_>) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, call.choice)? else {
            return Ok(());
        };
        let (address, name) = (usable(&ctx, &call.address), named(call.name));
        let (item_index, calls) = (&choice.item_index, &choice.calls);
        let known = item_index
            .by_ids(calls, ItemKind::Call, &address)
            .or_else(|| {
                let bound = item_index.at(ItemKind::Call, address.index)?;
                let record = item_index.get(bound)?;
                (record.open && !record.announced && record.call.is_some()).then_some(bound)
            });
        let announced = |item: usize| item_index.get(item).is_some_and(|item| item.announced);
        let again = known.is_some_and(announced);
        let known = known.filter(|item| {
            let call = choice.call_of(*item);
            call.is_some_and(|call| !(again && is_another(call, &address, name)))
        });
        if name.is_none()
            && known
                .and_then(|item| choice.call_of(item))
                .is_none_or(|call| call.name.is_empty())
        {
            ctx.out.mark_misread("no_name");
        }
        let undecided = |item: usize| {
            let item = choice.item_index.get(item);
            item.is_some_and(|item| item.first.is_some())
        };
        let item = match known {
            None => new_call(&mut ctx, choice, &address, properties(&call, None))?,
            Some(earlier) if again && is_closed(choice, earlier) && !undecided(earlier) => {
                let item = new_item(&mut ctx, choice, ItemKind::Call, &address)?;
                let properties = properties(&call, None);
                begin_reannounced(&mut ctx, choice, item, earlier, &address, properties)?;
                item
            }
            Some(item) => {
                let repeats = again && !undecided(item);
                let parts = &mut choice.textual.parts;
                let other = choice.item_index.learn(&mut ctx, item, &address, parts)?;
                // If the call is announced again, a different id is not reported as unstable.
                let other = other.filter(|_| !again);
                note_ids(&mut ctx, choice, item, &address, other)?;
                if repeats {
                    share_id(&ctx, choice, item, &address);
                }
                choice.item_index.bind(item, &address);
                if let Some(slot) = choice.slot_of(item) {
                    choice.bind(slot, address.index);
                }
                if repeats {
                    report_reannounced(&mut ctx, choice, item, &address)?;
                }
                item
            }
        };
        announce(choice, item);
        let kind = ItemKind::Call;
        if choice.item_index.take_begun_again(kind, &address) == Some(item)
            && let Some((_, call)) = choice.item_call_mut(item)
        {
            call.text.begin_again();
        }
        if let Some(slot) = choice.slot_of(item) {
            describe(&mut ctx, choice, slot, properties(&call, call.metadata))?;
            name_call(&mut ctx, choice, slot, name)?;
            if let Some(known) = choice.get_mut(slot) {
                known.misses_arguments |= call.misses_arguments && !call.provider_executed;
            }
            hold(&mut ctx, choice, item, call.arguments, address.index)?;
        }
        Ok(())
    }

    /// Appends a piece of argument text to a call. Creates the call if no event opened it.
    pub fn call_text(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        name: Option<&str>,
        metadata: Option<&str>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        let address = usable(&ctx, &address);
        let brings = !text.is_empty() || name.is_some_and(|name| !name.is_empty());
        let Some(item) = addressed_call(&mut ctx, choice, &address, brings)? else {
            return Ok(());
        };
        let Some(slot) = choice.slot_of(item) else {
            return Ok(());
        };
        let properties = CallProperties {
            metadata,
            ..CallProperties::default()
        };
        describe(&mut ctx, choice, slot, properties)?;
        name_call(&mut ctx, choice, slot, name)?;
        add_arguments(&mut ctx, choice, item, &text, address.index)
    }

    /// Marks the call at this address as possibly incomplete, because a member that was not read may contain the call's
    /// arguments.
    pub fn call_misses_arguments(&mut self, choice: i32, address: Address<'_>) {
        let Some(choice) = self.choices.turn_to(choice) else {
            return;
        };
        let index = &choice.item_index;
        let found = index.find(&choice.calls, ItemKind::Call, &address, Purpose::Delta);
        if let Some((_, call)) = found.and_then(|item| choice.item_call_mut(item)) {
            call.misses_arguments = true;
        }
    }

    /// Emits a delta with metadata but without argument text for an open call. Returns false if no event can be
    /// emitted: no open call has this address, or the call has no name yet.
    pub fn call_progress(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
        metadata: Option<&str>,
    ) -> Result<bool, Fault> {
        let Some(ChoiceContext { choice, ctx }) = self.item_choice(out, choice)? else {
            return Ok(true);
        };
        let (address, kind) = (usable(&ctx, &address), ItemKind::Call);
        let found = choice
            .item_index
            .find(&choice.calls, kind, &address, Purpose::Delta);
        let found = found.filter(|item| choice.item_index.get(*item).is_some_and(|item| item.open));
        let slot = found.and_then(|item| choice.slot_of(item));
        Ok(slot.is_some_and(|slot| progress(ctx.out, choice, slot, metadata)))
    }

    /// Replaces the streamed arguments of a call with its complete arguments. Does not close the call.
    pub fn call_value(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
        arguments: Option<Text<'_>>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        let address = usable(&ctx, &address);
        let brings = arguments.as_ref().is_some_and(|text| !text.is_empty());
        match addressed_call(&mut ctx, choice, &address, brings)? {
            Some(item) => set_whole_arguments(&mut ctx, choice, item, arguments),
            None => Ok(()),
        }
    }

    /// Records that a call will receive no more argument text, even though its closing event has not arrived.
    pub fn call_paused(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        address: Address<'_>,
    ) -> ParseResult {
        let Some(ChoiceContext { choice, ctx }) = self.item_choice(out, choice)? else {
            return Ok(());
        };
        let address = usable(&ctx, &address);
        let (item_index, calls) = (&choice.item_index, &choice.calls);
        let found = item_index.find(calls, ItemKind::Call, &address, Purpose::Delta);
        if let Some(call) = found.and_then(|item| choice.call_of(item)) {
            ctx.out.record_fact(WireFact::Closed(call.part));
        }
        Ok(())
    }

    /// Closes a call, and first creates it if it does not exist. If the closing event has no arguments, the streamed
    /// arguments are final.
    pub fn call_closed(&mut self, out: &mut Output<'_>, call: CallFields<'_>) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, call.choice)? else {
            return Ok(());
        };
        let (address, name) = (usable(&ctx, &call.address), named(call.name));
        let arguments = complete_text(call.arguments.clone());
        let found = choice.item_index.closing(&choice.calls, &address, name);
        let announced = |choice: &Choice, item| {
            let item = choice.item_index.get(item);
            item.is_some_and(|item| item.announced)
        };
        let found = found.filter(|item| {
            let own = !announced(choice, *item) || is_own_close(choice, *item, &address);
            let call = choice.call_of(*item);
            let same = call.is_some_and(|call| own || !is_another(call, &address, name));
            let arguments = arguments.as_deref();
            same || is_close_under_another_id(choice, *item, &address, name, arguments)
        });
        let mut again = false;
        let known = found.filter(|item| {
            let by_call_id = is_by_call_id(choice, *item, &address);
            let Some((_, call)) = choice.item_call_mut(*item) else {
                return false;
            };
            let Some(arguments) = arguments.as_deref() else {
                return true;
            };
            again = call.outcome.is_some() && by_call_id;
            // Different arguments mean a new call that reuses the id. The AI SDK sends the new call in a single delta;
            // Responses sends it as another item.
            !again || is_same_or_empty(call, arguments)
        });
        let item = match known {
            Some(item) => {
                let is_announced = announced(choice, item) && !again;
                let call = choice.call_of(item);
                let changed = call.filter(|call| is_another(call, &address, None));
                let changed = changed.filter(|_| is_announced).map(|call| call.part);
                learn(&mut ctx, choice, item, &address)?;
                if changed.is_some() {
                    let id = address.call_id.unwrap_or_default();
                    ctx.out.diagnose(Code::UNSTABLE_ID, changed, id)?;
                }
                if again {
                    report_reannounced(&mut ctx, choice, item, &address)?;
                }
                item
            }
            None => {
                let item = new_call(&mut ctx, choice, &address, properties(&call, None))?;
                if let Some((_, call)) = choice.item_call_mut(item) {
                    call.unopened = found.is_none();
                }
                item
            }
        };
        announce(choice, item);
        if let Some((_, known)) = choice.item_call_mut(item) {
            known.refused |= call.refused;
        }
        apply_whole_call(&mut ctx, choice, item, name, &call)
    }

    /// Applies a call in a terminal list. If the listed call repeats a streamed call, completes and closes the streamed
    /// call; otherwise, creates a new call.
    pub fn restate_call(&mut self, out: &mut Output<'_>, call: CallFields<'_>) -> ParseResult {
        let Some(ChoiceContext { choice, mut ctx }) = self.item_choice(out, call.choice)? else {
            return Ok(());
        };
        let (address, name) = (usable(&ctx, &call.address), named(call.name));
        let arguments = complete_text(call.arguments.clone()).unwrap_or_default();
        let mut list = restatement(choice);
        let found = list.call(choice, &address, name, &arguments);
        choice.item_index.restated = Some(list);
        let item = match found.filter(|item| choice.slot_of(*item).is_some()) {
            Some(item) => {
                learn(&mut ctx, choice, item, &address)?;
                item
            }
            None => new_call(&mut ctx, choice, &address, properties(&call, None))?,
        };
        announce(choice, item);
        if let Some(item) = choice.item_index.get_mut(item) {
            item.restated = true;
        }
        apply_whole_call(&mut ctx, choice, item, name, &call)
    }
}

fn named(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.trim().is_empty())
}

fn properties<'a>(call: &CallFields<'_>, metadata: Option<&'a str>) -> CallProperties<'a> {
    CallProperties {
        custom: call.custom,
        provider_executed: call.provider_executed,
        metadata,
    }
}

/// Returns true if only the call id of the address identified the item, because the address has no item id or the item
/// id of another item.
fn is_by_call_id(choice: &Choice, item: usize, address: &Address<'_>) -> bool {
    let (Some(item_id), Some(item)) = (address.item_id, choice.item_index.get(item)) else {
        return address.item_id.is_none();
    };
    address.call_id.is_some_and(|id| id != item_id) && item.item_id.as_deref() != Some(item_id)
}

fn announce(choice: &mut Choice, item: usize) {
    if let Some(item) = choice.item_index.get_mut(item) {
        item.announced = true;
    }
}

/// Applies the complete name and arguments of a call, and closes its item unless the call is cut off or still in
/// progress.
fn apply_whole_call(
    ctx: &mut RuleContext<'_, '_>,
    choice: &mut Choice,
    item: usize,
    name: Option<&str>,
    fields: &CallFields<'_>,
) -> ParseResult {
    let Some(call) = choice.call_of(item) else {
        return Ok(());
    };
    if call.outcome.is_none() {
        let slot = call.slot;
        describe(ctx, choice, slot, properties(fields, fields.metadata))?;
        rename_call(ctx, choice, item, name)?;
    }
    set_whole_arguments(ctx, choice, item, fields.arguments.clone())?;
    if let Some((_, call)) = choice.item_call_mut(item)
        && call.outcome.is_none()
    {
        call.misses_arguments |= fields.misses_arguments && !fields.provider_executed;
        call.ending = fields.ending;
        if fields.ending != CallEnding::Whole {
            // Leave the call open, because a later event may complete it. If no event completes the call, the
            // end of the response determines the state of the call.
            call.ended = fields.ending != CallEnding::Cut;
            return Ok(());
        }
    }
    end_item(ctx, choice, item, None, None)
}
