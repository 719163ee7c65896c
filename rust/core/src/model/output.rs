//! Emits events and diagnostics, and returns a fault for each diagnostic that the policy raises.
//!
//! `Ledger` keeps the state between two reads, such as the stored diagnostics. `Output` borrows the ledger for one
//! read. Faults that are created here have no byte offset or ordinal. The parser adds the offset and the ordinal.

use crate::model::config::Config;
use crate::model::event::DeltaKind;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::event::Sink;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use crate::model::limits::as_len;
use crate::model::policy::Action;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;
use std::mem;

/// Maximum length of the detail of a diagnostic, in characters. A detail may contain names and paths from the sender,
/// which can have any length.
const DETAIL: usize = 256;
/// Maximum number of notes (diagnostics and `Unknown` events) per payload. Without this limit, a small payload could
/// cause a very large number of notes.
pub(crate) const MAX_NOTES: usize = 1024;

fn head(detail: &str) -> &str {
    let end = detail.char_indices().nth(DETAIL).map(|(at, _)| at);
    end.and_then(|end| detail.get(..end)).unwrap_or(detail)
}

/// A stored diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    pub code: Code,
    pub byte_offset: u64,
    pub event_ordinal: u64,
    pub part: Option<u32>,
    pub detail: String,
}

impl Diagnostic {
    pub fn event(&self) -> Event<'_> {
        Event::Diagnostic {
            code: self.code.name(),
            severity: self.code.severity().name(),
            byte_offset: self.byte_offset,
            event_ordinal: self.event_ordinal,
            part: self.part,
            detail: &self.detail,
        }
    }
}

/// The state of the output that is kept between two reads.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Byte offset of the current payload. The ordinal is the number of the payload in the stream. Diagnostics contain
    /// the offset and the ordinal.
    pub offset: u64,
    pub ordinal: u64,
    /// True if a fault will follow, so that later diagnostics are recorded instead of raised.
    faulted: bool,
    diagnostic_count: u64,
    kept: Vec<Diagnostic>,
    dropped: u64,
    /// Ordinal of the payload whose notes are counted in `noted`.
    noted_at: u64,
    noted: usize,
    /// Number of notes that were dropped because the payload already had `MAX_NOTES`.
    left_out: usize,
    /// Number of parts created.
    parts: u32,
    /// Number of times that a payload was marked as misread.
    misread: u64,
}

impl Ledger {
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// Returns the number of diagnostics that were not stored, because `max_diagnostics` diagnostics were already
    /// stored.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// A stage between the assembler and the sink that can hold back and change events. The stage detects tool calls in
/// text, and exists only if the policy enables this detection.
pub trait EventFilter {
    /// Reads an event. Returns true if the event can be emitted unchanged. If the result is false, the caller passes
    /// the event to the method `event`.
    fn passes_unchanged(&mut self, event: &Event<'_>) -> bool;

    /// Filters an event for which `passes_unchanged` returned false. The method emits the events that replace this
    /// event through `out`.
    fn event(&mut self, out: &mut Output<'_>, event: &Event<'_>);

    /// Reads several consecutive deltas that `passes` accepted, and returns how they are emitted.
    fn read_row(&mut self, deltas: &Deltas<'_>) -> Row<'_>;

    /// Returns how many of the next pieces of text can be emitted unchanged in one call to `emit_all`. `ends` contains
    /// the offset in `texts` at which each piece ends.
    fn passes(&mut self, kind: DeltaKind, choice: i32, texts: &str, ends: &[usize]) -> usize;

    /// Returns true if consecutive pieces of text should be combined into one call to `emit_all`.
    fn takes_rows(&self) -> bool;
}

/// How deltas that `EventFilter::read_row` has received are emitted.
#[derive(Clone, Copy, Debug)]
pub enum Row<'f> {
    Unchanged,
    /// Unchanged, after deltas that the filter has held back.
    After(Deltas<'f>),
    /// The row was not read. Each delta is filtered individually.
    Single,
}

/// Receives events and diagnostics during one read.
pub struct Output<'a> {
    pub config: &'a Config,
    ledger: &'a mut Ledger,
    sink: &'a mut dyn Sink,
    filter: Option<&'a mut dyn EventFilter>,
    /// The first fault of the filter. The method `taken` returns the fault and clears this field.
    fault: Option<Fault>,
}

impl std::fmt::Debug for Output<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("ledger", &self.ledger)
            .finish_non_exhaustive()
    }
}

impl<'a> Output<'a> {
    pub fn new(config: &'a Config, ledger: &'a mut Ledger, sink: &'a mut dyn Sink) -> Output<'a> {
        Output {
            config,
            ledger,
            sink,
            filter: None,
            fault: None,
        }
    }

    /// Sets the filter for the events, and returns the output.
    pub fn filtered(self, filter: Option<&'a mut dyn EventFilter>) -> Output<'a> {
        Output { filter, ..self }
    }

    #[inline]
    pub fn emit(&mut self, event: &Event<'_>) {
        if self
            .filter
            .as_mut()
            .is_none_or(|filter| filter.passes_unchanged(event))
        {
            self.sink.event(event);
        } else {
            self.emit_through(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn emit_through(&mut self, event: &Event<'_>) {
        if let Some(filter) = self.filter.take() {
            filter.event(self, event);
            self.filter = Some(filter);
        }
    }

    /// Emits several consecutive deltas that `passes` accepted.
    pub fn emit_all(&mut self, deltas: &Deltas<'_>) {
        let filter = self.filter.as_mut();
        match filter.map_or(Row::Unchanged, |filter| filter.read_row(deltas)) {
            Row::Unchanged => self.sink.deltas(deltas),
            Row::After(held) => {
                self.sink.deltas(&held);
                self.sink.deltas(deltas);
            }
            Row::Single => deltas.each(|event| self.emit(event)),
        }
    }

    /// Returns true if consecutive pieces of text should be combined into one call to `emit_all`.
    #[inline]
    pub fn takes_rows(&self) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.takes_rows())
    }

    /// Returns the concatenated text of the leading pieces that may be emitted together, and the offset at which each
    /// piece ends.
    #[inline]
    pub fn passes<'t>(
        &mut self,
        kind: DeltaKind,
        choice: i32,
        texts: &'t str,
        ends: &'t [usize],
    ) -> (&'t str, &'t [usize]) {
        let Some(filter) = self.filter.as_mut() else {
            return (texts, ends);
        };
        let count = filter.passes(kind, choice, texts, ends);
        let ends = ends.get(..count).unwrap_or_default();
        let end = ends.last().copied().unwrap_or_default();
        (texts.get(..end).unwrap_or_default(), ends)
    }

    /// Stores a fault from the filter, unless a fault is already stored.
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// Returns the number of parts created.
    pub fn parts(&self) -> u32 {
        self.ledger.parts
    }

    /// Returns the number for a new part.
    pub fn next_part(&mut self) -> Result<u32, Fault> {
        let part = self.ledger.parts;
        match self.config.limits.max_parts {
            Some(limit) if u64::from(part) >= limit => {
                Err(Fault::limit(LimitName::max_parts, limit))
            }
            _ => {
                self.ledger.parts += 1;
                Ok(part)
            }
        }
    }

    /// Returns true if `parts` more parts can be created without exceeding `max_parts`.
    pub fn has_room(&self, parts: usize) -> bool {
        let limit = self.config.limits.max_parts;
        limit.is_none_or(|limit| u64::from(self.ledger.parts) + parts as u64 <= limit)
    }

    /// Sets the byte offset and ordinal of the current payload.
    #[inline]
    pub fn at(&mut self, offset: u64, ordinal: u64) {
        self.ledger.offset = offset;
        self.ledger.ordinal = ordinal;
        self.sink.at(offset, ordinal);
    }

    /// If the filter or the sink has a fault, returns the fault. If neither has a fault, returns `result`. This method
    /// is called after each payload.
    #[inline]
    pub fn taken<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        let fault = self.fault.take().or_else(|| self.sink.refusal());
        fault.map_or(result, Err)
    }

    /// Reports that the response was truncated. The closing events that follow are a consequence of the truncation.
    pub fn cut(&mut self) {
        self.sink.cut();
    }

    /// Passes to the sink a fact that no event contains.
    #[inline]
    pub fn record_fact(&mut self, fact: WireFact<'_>) {
        self.sink.record_fact(fact);
    }

    /// Passes to the sink content that no event type can contain.
    pub fn keep(&mut self, content: Unmodelled<'_>) {
        self.sink.record_fact(WireFact::Unmodelled(content));
    }

    /// Returns the number of times that a payload was marked as misread. During repair, no template may be learned from
    /// a payload that changes this number, because a match does not mark the payload.
    pub fn misread_count(&self) -> u64 {
        self.ledger.misread
    }

    /// Marks the current payload as misread by clients of its dialect, without a diagnostic. `why` is one of the
    /// reasons defined for the code `rewritten`.
    #[cold]
    pub fn mark_misread(&mut self, why: &'static str) {
        self.ledger.misread += 1;
        self.sink.record_fact(WireFact::Misread(why));
    }

    /// Marks the current payload so that repair drops it. Clients would reject the payload, and it contains no data
    /// that they use. An `Unknown` event may have been emitted for the payload. `why`: the same as in `mark_misread`.
    #[cold]
    pub fn leave_out(&mut self, why: &'static str) {
        self.sink.record_fact(WireFact::LeftOut(why));
    }

    /// Reports that clients would interpret the current payload correctly if its event had this name.
    #[cold]
    pub fn rename(&mut self, name: &'static str) {
        self.sink.record_fact(WireFact::Named(name));
    }

    /// Reports that clients would interpret the current payload correctly if the missing opening event came before it.
    #[cold]
    pub fn miss_opening(&mut self) {
        self.sink.record_fact(WireFact::Unopened("start_missing"));
    }

    /// Reports the detected dialect.
    pub fn set_dialect(&mut self, dialect: &'static str) {
        self.sink.dialect_detected(dialect);
    }

    /// Moves the byte offset of the current payload forward by this number of bytes.
    #[inline]
    pub fn advance_offset(&mut self, bytes: usize) {
        self.ledger.offset += bytes as u64;
        self.sink.at(self.ledger.offset, self.ledger.ordinal);
    }

    /// Returns the byte offset and ordinal of the current payload.
    pub fn position(&self) -> (u64, u64) {
        (self.ledger.offset, self.ledger.ordinal)
    }

    /// Returns true if the policy raises this code. If the result is true, later diagnostics are recorded instead of
    /// raised, because the caller will raise this code.
    pub fn will_raise(&mut self, code: Code) -> bool {
        self.ledger.faulted = self.config.policy.raises(code);
        if self.ledger.faulted {
            self.sink.faulted();
        }
        self.ledger.faulted
    }

    /// Returns true if the sink uses the facts passed to `record_fact`. If the result is false, decoders do not check
    /// for misread payloads.
    pub fn wants_wire_facts(&self) -> bool {
        self.sink.wants_wire_facts()
    }

    /// Returns the number of reported diagnostics.
    pub fn diagnostic_count(&self) -> u64 {
        self.ledger.diagnostic_count
    }

    /// Records a diagnostic. If the policy raises this code, returns the fault instead.
    #[cold]
    pub fn diagnose(&mut self, code: Code, part: Option<u32>, detail: &str) -> Result<(), Fault> {
        let detail = head(detail);
        if let Some(what) = code.mends() {
            let emptied = what == "payload";
            self.record_fact(WireFact::Mended { emptied });
        }
        if self.config.policy.action(code) == Action::Raise && !self.ledger.faulted {
            return Err(Fault::of_code(code, detail));
        }
        self.ledger.diagnostic_count += 1;
        if self.notes() {
            self.record(code, part, detail);
        }
        Ok(())
    }

    fn record(&mut self, code: Code, part: Option<u32>, detail: &str) {
        let diagnostic = Diagnostic {
            code,
            byte_offset: self.ledger.offset,
            event_ordinal: self.ledger.ordinal,
            part,
            detail: detail.to_owned(),
        };
        self.sink.event(&diagnostic.event());
        if self.ledger.kept.len() < as_len(self.config.limits.max_diagnostics) {
            self.ledger.kept.push(diagnostic);
        } else {
            self.ledger.dropped += 1;
        }
    }

    /// Emits an `Unknown` event for a payload that could not be decoded.
    pub(crate) fn unknown(&mut self, event: Option<&str>, raw: &[u8]) {
        if self.notes() {
            self.emit(&Event::Unknown { event, raw });
        }
    }

    /// Counts a diagnostic or an `Unknown` event. Returns false if the current payload has already caused `MAX_NOTES`
    /// diagnostics and `Unknown` events.
    fn notes(&mut self) -> bool {
        let ledger = &mut *self.ledger;
        if ledger.noted_at != ledger.ordinal {
            (ledger.noted_at, ledger.noted) = (ledger.ordinal, 0);
        }
        let fits = ledger.noted < MAX_NOTES;
        if fits {
            ledger.noted += 1;
        } else {
            ledger.left_out += 1;
        }
        fits
    }

    /// Counts notes that the caller has dropped.
    pub(crate) fn skip_notes(&mut self, notes: usize) {
        self.ledger.left_out += notes;
    }

    /// Reports the number of dropped notes, if there are any. This method is called after each payload and at the end
    /// of the input.
    #[inline]
    pub(crate) fn report_left_out(&mut self) -> Result<(), Fault> {
        if self.ledger.left_out == 0 {
            return Ok(());
        }
        self.ledger.noted = 0;
        let count = mem::take(&mut self.ledger.left_out);
        self.diagnose(Code::NOTES_LEFT_OUT, None, &count.to_string())
    }

    /// Records a diagnostic with the byte offset and ordinal of a payload other than the current payload.
    #[cold]
    pub(crate) fn diagnose_at(
        &mut self,
        position: (u64, u64),
        code: Code,
        detail: &str,
    ) -> Result<(), Fault> {
        let here = self.position();
        (self.ledger.offset, self.ledger.ordinal) = position;
        let diagnostic_count = self.diagnose(code, None, detail);
        (self.ledger.offset, self.ledger.ordinal) = here;
        diagnostic_count
    }
}
