//! The one place where events and diagnostics leave, and where a policy turns a diagnostic into a fault.
//!
//! `Ledger` is what stays between two reads (the kept diagnostics); `Out` is lent to the stages for one read. Faults made
//! here carry no place: the parser, which knows the place, puts it on.

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
use std::mem;

/// Characters of a detail that are worth repeating: names and paths in it are the sender's.
const DETAIL: usize = 256;
/// Diagnostics and `Unknown` events that one payload may cause: its size does not bound what an event costs.
pub(crate) const MAX_NOTES: usize = 1024;

fn head(detail: &str) -> &str {
    let end = detail.char_indices().nth(DETAIL).map(|(at, _)| at);
    end.and_then(|end| detail.get(..end)).unwrap_or(detail)
}

/// A diagnostic that is kept.
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

/// What of the way out outlives one read.
#[derive(Debug, Default)]
pub struct Ledger {
    /// Where the payload at hand stands: everything said about it carries this.
    pub offset: u64,
    pub ordinal: u64,
    /// A fault is certain already: repairs on the way to it are recorded, not raised.
    faulted: bool,
    said: u64,
    kept: Vec<Diagnostic>,
    dropped: u64,
    /// The payload that caused the notes below.
    noted_at: u64,
    noted: usize,
    /// Notes beyond `MAX_NOTES`.
    left_out: usize,
    /// How many parts were numbered.
    parts: u32,
}

impl Ledger {
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.kept
    }

    /// How many were not kept, because the list was full.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// What stands between the stages and the sink, where a policy asks for it: each event goes on through it.
pub trait EventFilter {
    /// An event that is about to leave may leave as it is, and the filter has read it.
    fn lets(&mut self, event: &Event<'_>) -> bool;

    /// An event that may not. What the filter emits goes to the sink.
    fn event(&mut self, out: &mut Output<'_>, event: &Event<'_>);

    /// Several deltas in a row, of which `passes` was true, may leave as they are, and the filter has read them.
    fn lets_row(&mut self, deltas: &Deltas<'_>) -> bool;

    /// The next pieces of a text can leave as they are, all at once.
    fn passes(&mut self, kind: DeltaKind, choice: i32, texts: &str) -> bool;

    /// Rows of pieces are worth to be put together.
    fn takes_rows(&self) -> bool;
}

/// The way out, for one read.
pub struct Output<'a> {
    pub config: &'a Config,
    ledger: &'a mut Ledger,
    sink: &'a mut dyn Sink,
    filter: Option<&'a mut dyn EventFilter>,
    /// Of the filter, until it is asked for.
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

    /// The same, where events go through a filter first.
    pub fn filtered(self, filter: Option<&'a mut dyn EventFilter>) -> Output<'a> {
        Output { filter, ..self }
    }

    #[inline]
    pub fn emit(&mut self, event: &Event<'_>) {
        if self.filter.is_none() {
            self.sink.event(event);
        } else {
            self.emit_through(event);
        }
    }

    #[inline(never)]
    fn emit_through(&mut self, event: &Event<'_>) {
        if self.filter.as_mut().is_none_or(|filter| filter.lets(event)) {
            return self.sink.event(event);
        }
        if let Some(filter) = self.filter.take() {
            filter.event(self, event);
            self.filter = Some(filter);
        }
    }

    /// Several deltas in a row, which may pass.
    pub fn emit_all(&mut self, deltas: &Deltas<'_>) {
        let filter = self.filter.as_mut();
        if filter.is_none_or(|filter| filter.lets_row(deltas)) {
            self.sink.deltas(deltas);
        } else {
            deltas.each(|event| self.emit(event));
        }
    }

    /// Rows of pieces are worth to be put together.
    #[inline]
    pub fn takes_rows(&self) -> bool {
        self.filter
            .as_ref()
            .is_none_or(|filter| filter.takes_rows())
    }

    /// Pieces that follow each other may leave at once.
    #[inline]
    pub fn passes(&mut self, kind: DeltaKind, choice: i32, texts: &str) -> bool {
        let filter = self.filter.as_mut();
        filter.is_none_or(|filter| filter.passes(kind, choice, texts))
    }

    /// What a filter found that a policy raises. The first one counts.
    pub fn fail(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }

    /// How many parts were numbered.
    pub fn parts(&self) -> u32 {
        self.ledger.parts
    }

    /// The number of one more part.
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

    /// Whether that many more parts may be numbered.
    pub fn has_room(&self, parts: usize) -> bool {
        let limit = self.config.limits.max_parts;
        limit.is_none_or(|limit| u64::from(self.ledger.parts) + parts as u64 <= limit)
    }

    /// Moves on to the payload at that place.
    #[inline]
    pub fn at(&mut self, offset: u64, ordinal: u64) {
        self.ledger.offset = offset;
        self.ledger.ordinal = ordinal;
        self.sink.at(offset, ordinal);
    }

    /// What came of a payload, unless the sink wants no more.
    #[inline]
    pub fn taken<T>(&mut self, result: Result<T, Fault>) -> Result<T, Fault> {
        let fault = self.fault.take().or_else(|| self.sink.refusal());
        fault.map_or(result, Err)
    }

    /// The answer was cut: what closes now closes only because of that.
    pub fn cut(&mut self) {
        self.sink.cut();
    }

    /// What no event says of the wire.
    #[inline]
    pub fn sign(&mut self, sign: WireFact<'_>) {
        self.sink.sign(sign);
    }

    /// The payload at hand means something else to readers of its dialect, and no code says so.
    /// `why` is a word of the code `rewritten`.
    #[cold]
    pub fn touch(&mut self, why: &'static str) {
        self.sink.sign(WireFact::Touched(why));
    }

    /// Readers of its dialect would refuse the payload at hand, which brings nothing. `why`: as of `touch`.
    #[cold]
    pub fn leave_out(&mut self, why: &'static str) {
        self.sink.sign(WireFact::LeftOut(why));
    }

    /// Readers of its dialect would take the payload at hand as it was taken, if its event had that name.
    #[cold]
    pub fn rename(&mut self, name: &'static str) {
        self.sink.sign(WireFact::Named(name));
    }

    /// Readers of its dialect would take the payload at hand as it was taken, behind the opening of an answer.
    #[cold]
    pub fn miss_opening(&mut self) {
        self.sink.sign(WireFact::Unopened("start_missing"));
    }

    /// The dialect was found out.
    pub fn speak(&mut self, dialect: &'static str) {
        self.sink.speaks(dialect);
    }

    /// The payload is that much further on than was said.
    #[inline]
    pub fn further(&mut self, bytes: usize) {
        self.ledger.offset += bytes as u64;
        self.sink.at(self.ledger.offset, self.ledger.ordinal);
    }

    /// Where the payload at hand stands.
    pub fn place(&self) -> (u64, u64) {
        (self.ledger.offset, self.ledger.ordinal)
    }

    /// Whether that code is raised; if so, nothing else is from here on.
    pub fn dooms(&mut self, code: Code) -> bool {
        self.ledger.faulted = self.config.policy.raises(code);
        if self.ledger.faulted {
            self.sink.doomed();
        }
        self.ledger.faulted
    }

    /// What readers of the dialect would misread matters.
    pub fn is_judged(&self) -> bool {
        self.sink.judges()
    }

    /// How many diagnostics there were.
    pub fn said(&self) -> u64 {
        self.ledger.said
    }

    /// Records an anomaly, or raises it where the policy says so.
    #[cold]
    pub fn diagnose(&mut self, code: Code, part: Option<u32>, detail: &str) -> Result<(), Fault> {
        let detail = head(detail);
        if let Some(what) = code.mends() {
            let emptied = what == "payload";
            self.sign(WireFact::Mended { emptied });
        }
        if self.config.policy.action(code) == Action::Raise && !self.ledger.faulted {
            return Err(Fault::of_code(code, detail));
        }
        self.ledger.said += 1;
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

    /// Emits what nobody could read.
    pub(crate) fn unknown(&mut self, event: Option<&str>, raw: &[u8]) {
        if self.notes() {
            self.emit(&Event::Unknown { event, raw });
        }
    }

    /// Counts a diagnostic or an `Unknown` event. False: the payload has caused too many.
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

    /// Counts notes that were not even collected.
    pub(crate) fn skip_notes(&mut self, notes: usize) {
        self.ledger.left_out += notes;
    }

    /// A payload, or the input, was read to its end: reports how many notes were left out.
    #[inline]
    pub(crate) fn tell_left_out(&mut self) -> Result<(), Fault> {
        if self.ledger.left_out == 0 {
            return Ok(());
        }
        self.ledger.noted = 0;
        let count = mem::take(&mut self.ledger.left_out);
        self.diagnose(Code::NOTES_LEFT_OUT, None, &count.to_string())
    }

    /// Likewise, of another payload than the one at hand, at its place.
    #[cold]
    pub(crate) fn diagnose_at(
        &mut self,
        place: (u64, u64),
        code: Code,
        detail: &str,
    ) -> Result<(), Fault> {
        let here = self.place();
        (self.ledger.offset, self.ledger.ordinal) = place;
        let said = self.diagnose(code, None, detail);
        (self.ledger.offset, self.ledger.ordinal) = here;
        said
    }
}
