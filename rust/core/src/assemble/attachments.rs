//! Assembles the content of a response other than text and calls: files, sources, tool results and kept items.
//!
//! A kept item is one that clients send back unchanged in a later turn: an item that only the provider reads, or an
//! item that streamweld does not model.
//!
//! Each file, source, result and item is emitted when it arrives, and is stored for the snapshot. If a call has several
//! results, the snapshot contains the last one.

use crate::assemble::Assembler;
use crate::assemble::ChoiceContext;
use crate::assemble::part::attachment::Attachment;
use crate::assemble::part::attachment::Record;
use crate::assemble::part::call_events;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::model::event::Event;
use crate::model::fault::Fault;
use crate::model::output::Output;

impl Assembler {
    /// Returns the id of the call that was addressed last, or `None` if that call is not final yet. A tool result
    /// without an id is assigned to the call that was addressed last.
    pub fn last_closed_call(&self, index: i32) -> Option<&str> {
        let choice = self.choices.find(index)?;
        let outcome = choice.get(choice.latest?)?.outcome.as_ref()?;
        Some(&outcome.call_id)
    }

    /// Returns the id that events report for a call's result: the id in the call's final event.
    ///
    /// Returns `None` if no final call has this id.
    pub fn id_of_result(&self, index: i32, call_id: &str) -> Option<&str> {
        let choice = self.choices.find(index)?;
        let item = choice.item_index.item_of_result(call_id)?;
        let outcome = choice.get(choice.slot_of(item)?)?.outcome.as_ref()?;
        Some(&outcome.call_id)
    }

    /// Adds a file or image to the response and emits its event.
    pub fn file(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        media_type: Option<&str>,
        data: Option<&str>,
        url: Option<&str>,
        metadata: Option<&str>,
    ) -> ParseResult {
        if self.is_over() {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, choice)?;
        let texts = [data, url, metadata];
        ctx.spend_bytes(texts.iter().flatten().map(|text| text.len()).sum())?;
        call_events::flush_unstarted(ctx.out, choice, None);
        let (part, index) = (ctx.next_part()?, choice.index);
        let what = Attachment::File([media_type, data, url].map(own));
        self.attach(out, part, index, what, metadata)
    }

    /// Adds a source to the response and emits its event. `document` is the text of a JSON object.
    pub fn source(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        url: Option<&str>,
        title: Option<&str>,
        document: Option<&str>,
        metadata: Option<&str>,
    ) -> ParseResult {
        if self.is_over() {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, choice)?;
        let texts = [url, title, document, metadata];
        ctx.spend_bytes(texts.iter().flatten().map(|text| text.len()).sum())?;
        let (part, index) = (ctx.next_part()?, choice.index);
        let what = Attachment::Source([url, title, document].map(own));
        self.attach(out, part, index, what, metadata)
    }

    /// Adds a tool result that the stream contains, so the client must not run the call. `output` is JSON text. A
    /// second result of the same call has the same part number as the first.
    ///
    /// If several calls received this id, the result belongs to the latest of them. The event of the result contains
    /// the id from the call's final event.
    pub fn result(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        call_id: &str,
        output: &str,
        is_error: bool,
        metadata: Option<&str>,
    ) -> ParseResult {
        if self.is_over() {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, choice)?;
        ctx.check_id(call_id)?;
        ctx.spend_bytes(call_id.len() + output.len() + metadata.map_or(0, str::len))?;
        let index = choice.index;
        let item = choice.item_index.item_of_result(call_id);
        let call = item.and_then(|item| choice.item_call_mut(item));
        let given = call.and_then(|(_, call)| {
            call.answered = true;
            call.outcome.as_ref().map(|outcome| outcome.call_id.clone())
        });
        let call_id = given.as_deref().unwrap_or(call_id);
        let part = self.part_of_result(out, index, call_id)?;
        let what = Attachment::Result {
            call_id: call_id.to_owned(),
            output: output.to_owned(),
            is_error,
        };
        self.attach(out, part, index, what, metadata)
    }

    /// Emits a piece of a result that the provider sends while the tool runs. `output` is JSON text. The event has the
    /// part number and the call id that the result will have. The result itself contains the whole output.
    pub fn result_delta(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        call_id: &str,
        output: &str,
    ) -> ParseResult {
        if self.is_over() {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, choice)?;
        ctx.check_id(call_id)?;
        ctx.spend_bytes(output.len())?;
        let index = choice.index;
        let given = self.id_of_result(index, call_id).map(str::to_owned);
        let call_id = given.as_deref().unwrap_or(call_id);
        let part = self.part_of_result(out, index, call_id)?;
        out.emit(&Event::ToolResultDelta {
            part,
            call_id,
            output,
            choice: index,
        });
        Ok(())
    }

    /// Returns the part number of a call's result. All results of a call have the same part number.
    fn part_of_result(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        call_id: &str,
    ) -> Result<u32, Fault> {
        let key = (choice, call_id.to_owned());
        if let Some(part) = self.attached.results.get(&key) {
            return Ok(*part);
        }
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        let part = ctx.next_part()?;
        self.attached.results.insert(key, part);
        Ok(part)
    }

    /// Adds an item that only the provider reads and that clients must send back in a later turn. `value` is the item
    /// as JSON text.
    pub fn provider_item(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        kind: &'static str,
        value: &str,
        item_id: Option<&str>,
    ) -> ParseResult {
        self.keep(out, choice, value.len(), None, || {
            Attachment::ProviderItem {
                kind,
                value: value.to_owned(),
                item_id: own(item_id),
            }
        })
    }

    /// Adds an item that streamweld does not model but that clients must send back in a later turn. An item replaces an
    /// earlier item with the same key.
    pub fn kept_unknown(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        event: Option<&str>,
        raw: &[u8],
        key: Option<&str>,
    ) -> ParseResult {
        self.keep(out, choice, raw.len(), key, || Attachment::Unknown {
            event: own(event),
            raw: raw.to_vec(),
        })
    }

    /// Adds a kept item of this size, under the part number of an earlier item with the same key.
    fn keep(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        size: usize,
        key: Option<&str>,
        what: impl FnOnce() -> Attachment,
    ) -> ParseResult {
        if self.is_over() {
            return Ok(());
        }
        let ChoiceContext { choice, mut ctx } = self.at(out, choice)?;
        ctx.spend_bytes(size)?;
        let index = choice.index;
        let key = key.map(|key| (index, key.to_owned()));
        let known = key.as_ref().and_then(|key| self.attached.keyed.get(key));
        let mut ctx = RuleContext {
            shared: &mut self.shared,
            out,
        };
        let part = match (known.copied(), key) {
            (Some(part), _) => part,
            (None, None) => ctx.next_part()?,
            (None, Some(key)) => {
                ctx.spend_bytes(key.1.len())?;
                let part = ctx.next_part()?;
                self.attached.keyed.insert(key, part);
                part
            }
        };
        self.attach(out, part, index, what(), None)
    }

    fn attach(
        &mut self,
        out: &mut Output<'_>,
        part: u32,
        choice: i32,
        what: Attachment,
        metadata: Option<&str>,
    ) -> ParseResult {
        let record = Record {
            what,
            choice,
            metadata: own(metadata),
        };
        out.emit(&record.event(part));
        self.attached.records.insert(part, record);
        Ok(())
    }
}

fn own(text: Option<&str>) -> Option<String> {
    text.map(str::to_owned)
}
