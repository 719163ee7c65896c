//! Holds back response text while it may still turn out to be a tool call, and emits the calls found in it.
//!
//! The filter runs between the assembler and the sink. `python/streamweld/_pure/text_calls/__init__.py` specifies its
//! behavior.

use crate::assemble::part::canonical_json::is_whole;
use crate::model::config::Config;
use crate::model::delta::Channel;
use crate::model::event::Delta;
use crate::model::event::DeltaKind;
use crate::model::event::Deltas;
use crate::model::event::Event;
use crate::model::event::Opened;
use crate::model::event::Parts;
use crate::model::event::Sink;
use crate::model::event::WireFact;
use crate::model::limits::as_len;
use crate::model::output::EventFilter;
use crate::model::output::Output;
use crate::model::output::Row;
use crate::model::small_map::List;
use crate::model::small_map::Numbered;
use crate::model::spec::Code;
use crate::text_calls::reading::is_blank;
use crate::text_calls::scanner::Block;
use crate::text_calls::scanner::Context;
use crate::text_calls::scanner::Scanner;
use crate::text_calls::scanner::Span;
use crate::text_calls::settings::Mode;
use crate::text_calls::settings::Settings;
use crate::text_calls::values::Refusal;
use crate::text_calls::values::Tools;
use crate::text_calls::values::comparable;
use std::collections::HashMap;
use std::collections::HashSet;
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

/// Number of distinct settings that are cached in parsed form.
const KEPT: usize = 16;

/// Parsed settings, most recently used first. All streams share these settings, so that streams with different policies
/// can alternate without parsing again.
static KNOWN: Mutex<Vec<(Arc<str>, Arc<Settings>)>> = Mutex::new(Vec::new());

fn settings(text: &Arc<str>) -> Option<Arc<Settings>> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = known
        .iter()
        .position(|(known, _)| Arc::ptr_eq(known, text) || *known == *text);
    let at = match found {
        Some(at) => at,
        None => {
            let parsed = (Arc::clone(text), Arc::new(Settings::read(text)?));
            known.truncate(KEPT - 1);
            known.push(parsed);
            known.len() - 1
        }
    };
    known.get_mut(..=at)?.rotate_right(1);
    known.first().map(|(_, settings)| Arc::clone(settings))
}

/// Address of a part that has no counterpart on the wire.
const NO_ADDRESS: WireFact<'static> = WireFact::Address {
    index: None,
    sub: None,
    item_id: None,
};

/// Text-call filter of one stream.
#[derive(Debug)]
pub(crate) struct TextCalls {
    settings: Arc<Settings>,
    tools: Tools,
    max_calls: usize,
    max_bytes: usize,
    config: Arc<Config>,
    /// Tool calls in the stream so far, both structured calls and calls found in text.
    calls: usize,
    /// Call ids used in this stream, except those in `taken`.
    ids: Vec<String>,
    /// Call ids that a new id must not repeat: those of earlier turns, those moved from `ids`, and the generated ids.
    /// `None` until an id is generated.
    taken: Option<HashSet<String>>,
    /// The structured calls in the stream.
    structured: Vec<StructuredCall>,
    choices: List<Choice>,
    /// Number of deltas to process individually before several are processed together again.
    singles: usize,
    /// Position in `choices` of the choice whose text was read last.
    last: usize,
    /// Length in bytes of the texts that `passes` accepted last.
    accepted: usize,
}

/// Whether the next piece of text can be emitted unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TextPosition {
    /// Some content is held back, or the position is unknown, so the next piece must be scanned.
    #[default]
    None,
    /// Only the start event of this part is held back. It is the first part of the choice.
    Opened(u32),
    /// No content of this part is held back, and its text ends at the start of a line.
    LineStart(u32),
    /// No content of this part is held back, and its text ends inside a line.
    InLine(u32),
    /// Nothing is held back except the deltas of this part in `Choice::beginning`.
    Beginning(u32),
}

/// The last deltas of a part that are held back, because they end with the possible beginning of a marker. The scanner
/// has not read them.
#[derive(Debug, Default)]
struct HeldBeginning {
    /// The concatenated texts. `ends` contains the end offset of each text.
    text: String,
    ends: Vec<usize>,
    /// True if a marker that must be at the start of a line may come before these texts.
    is_at_line_start: bool,
}

impl HeldBeginning {
    fn start(&mut self, is_at_line_start: bool) {
        self.text.clear();
        self.ends.clear();
        self.is_at_line_start = is_at_line_start;
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.ends.push(self.text.len());
    }

    /// Removes the last text.
    fn pop(&mut self) {
        self.ends.pop();
        self.text
            .truncate(self.ends.last().copied().unwrap_or_default());
    }

    /// Removes the first texts, up to this number.
    fn remove(&mut self, count: usize) {
        let removed = self.ends.drain(..count).next_back().unwrap_or_default();
        self.text.drain(..removed);
        for end in &mut self.ends {
            *end -= removed;
        }
    }

    /// Returns the offset of the first position at which the text must be scanned.
    fn first_marker(&self, scanner: &Scanner, settings: &Settings) -> Option<usize> {
        scanner.first_marker(&self.text, self.is_at_line_start, settings)
    }

    fn texts(&self) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let text = self.text.get(start..*end).unwrap_or_default();
            start = *end;
            text
        })
    }
}

/// State of one choice.
#[derive(Debug, Default)]
struct Choice {
    index: i32,
    scanner: Scanner,
    text_position: TextPosition,
    /// Used if `text_position` is `Beginning`.
    beginning: HeldBeginning,
    /// Parts with content that is held back, in order.
    parts: VecDeque<Part>,
    /// The part without text whose start event is held back, if any.
    empty: Option<u32>,
    /// Number of the part that is being scanned.
    current: Option<u32>,
    /// The parts that replace each part, keyed by part number.
    shown: HashMap<u32, Vec<Shown>>,
    has_promoted: bool,
    /// True if the choice contains the text of a refusal. None of its calls in text is promoted.
    has_refusal: bool,
}

/// Name and arguments of a structured call, as sent.
#[derive(Debug)]
struct StructuredCall {
    choice: i32,
    name: String,
    arguments: String,
}

impl Numbered for Choice {
    type Number = i32;

    #[inline]
    fn number(&self) -> i32 {
        self.index
    }
}

/// A part with content that is held back.
#[derive(Debug)]
struct Part {
    part: u32,
    channel: Channel,
    /// The start event that is held back, until it is emitted.
    opened: Option<Start>,
    pieces: VecDeque<Piece>,
    /// Offset up to which text has been released.
    released: usize,
    length: usize,
    /// Offset of the first held-back character that is not whitespace.
    solid: Option<usize>,
    done: Option<Done>,
}

#[derive(Clone, Debug)]
struct Start {
    kind: &'static str,
    item_id: Option<String>,
    metadata: Option<String>,
}

/// The text of one delta that is held back. `start`: the offset of this text in the text of the part.
#[derive(Debug)]
struct Piece {
    start: usize,
    text: String,
    metadata: Option<String>,
}

#[derive(Clone, Debug)]
struct Done {
    text: String,
    kind: &'static str,
    item_id: Option<String>,
    annotations: Option<String>,
    signature: Option<String>,
    encrypted_content: Option<String>,
    metadata: Option<String>,
}

/// A text part or a promoted call that replaces an original part in a snapshot.
#[derive(Debug)]
enum Shown {
    Text(u32, Channel, Done),
    Call(Promoted),
}

#[derive(Debug)]
struct Promoted {
    part: u32,
    id: String,
    name: String,
    arguments: String,
    /// The block that contained the call, possibly with other calls.
    raw: Arc<str>,
}

impl TextCalls {
    /// Returns `None` if text calls are off.
    pub(crate) fn new(config: &Arc<Config>) -> Option<TextCalls> {
        let settings = settings(config.text_calls.as_ref()?)?;
        Some(TextCalls {
            settings,
            tools: Tools::new(config),
            max_calls: as_len(config.limits.max_tool_calls),
            max_bytes: as_len(config.limits.max_arguments_bytes),
            config: Arc::clone(config),
            calls: 0,
            ids: Vec::new(),
            taken: None,
            structured: Vec::new(),
            choices: List::default(),
            singles: 0,
            last: 0,
            accepted: 0,
        })
    }

    /// Returns true if any text is held back.
    pub(crate) fn holds(&self) -> bool {
        let mut choices = self.choices.iter();
        choices.any(|choice| !choice.parts.is_empty() || choice.holds_beginning())
    }

    fn note_refusal(&mut self, choice: i32, text: &str) {
        if !text.is_empty() {
            let (choice, _) = self.at(choice);
            choice.has_refusal = true;
        }
    }

    fn reads(&self, kind: DeltaKind) -> bool {
        match kind {
            DeltaKind::Text => true,
            DeltaKind::Reasoning => self.settings.reads_reasoning,
            DeltaKind::Refusal | DeltaKind::ToolCall => false,
        }
    }

    /// Returns the state of a choice, and the `Context` for its scanner. After this call, the next piece of the choice
    /// must be scanned.
    fn at(&mut self, index: i32) -> (&mut Choice, Context<'_>) {
        let choice = self.choices.slot(index, || Choice {
            index,
            ..Choice::default()
        });
        let context = Context {
            settings: &self.settings,
            tools: &self.tools,
            max_calls: self.max_calls,
            max_bytes: self.max_bytes,
        };
        choice.scan_beginning(&context);
        choice.text_position = TextPosition::None;
        (choice, context)
    }

    /// Ends the stream: refuses unfinished blocks as truncated, and releases all text that is held back.
    pub(crate) fn end(&mut self, out: &mut Output<'_>) {
        let settings = &*self.settings;
        let open = self
            .choices
            .iter()
            .filter(|choice| !choice.is_clear(settings));
        let mut indexes: Vec<i32> = open.map(|choice| choice.index).collect();
        indexes.sort_unstable();
        for index in indexes {
            let (choice, context) = self.at(index);
            choice.scanner.advance(&context, true);
            choice.refuse_pending(Refusal::Cut);
            choice.report_refused(out);
            choice.release(out, usize::MAX);
        }
    }

    /// Wraps a sink so that a snapshot contains the replacement parts instead of the assembler's parts.
    pub(crate) fn shown<'s>(&'s self, sink: &'s mut dyn Sink) -> ShownSink<'s> {
        ShownSink {
            stage: self,
            sink,
            is_told: false,
        }
    }

    fn text(
        &mut self,
        out: &mut Output<'_>,
        channel: Channel,
        event: &Event<'_>,
        delta: &Delta<'_>,
    ) {
        self.count_single();
        let is_read = channel == Channel::Text
            && (self.opens_unmarked(out, event, delta) || self.reads_beginning(out, delta));
        if is_read {
            return;
        }
        self.read(out, channel, event, delta);
        let (choice, context) = self.at(delta.choice);
        choice.record_text_position(delta.part, context.settings);
    }

    /// If no marker can begin in the first piece of a choice, emits the piece with the start event, and returns true.
    fn opens_unmarked(
        &mut self,
        out: &mut Output<'_>,
        event: &Event<'_>,
        delta: &Delta<'_>,
    ) -> bool {
        let settings = &*self.settings;
        let Some(choice) = read_last(&mut self.choices, &mut self.last, delta.choice) else {
            return false;
        };
        if choice.text_position != TextPosition::Opened(delta.part)
            || delta.text.chars().all(is_blank)
        {
            return false;
        }
        choice.text_position = TextPosition::LineStart(delta.part);
        if !choice.takes(delta.part, delta.text, settings) {
            choice.text_position = TextPosition::None;
            return false;
        }
        choice.current = Some(delta.part);
        choice.empty = None;
        choice.scanner.begin(delta.part);
        choice.start_only(out, delta.part);
        out.emit(event);
        true
    }

    /// Reads a piece that ends with the possible beginning of a marker, or that follows such a piece. Emits the pieces
    /// that contain no part of such a beginning, and returns true.
    ///
    /// Returns false and changes nothing if the piece must be scanned, because a marker is complete or other content is
    /// held back.
    fn reads_beginning(&mut self, out: &mut Output<'_>, delta: &Delta<'_>) -> bool {
        let settings = &*self.settings;
        if settings.mode != Mode::Promote || delta.metadata.is_some() {
            return false;
        }
        let choice = read_last(&mut self.choices, &mut self.last, delta.choice);
        choice.is_some_and(|choice| choice.reads_beginning(out, delta, settings))
    }

    fn read(
        &mut self,
        out: &mut Output<'_>,
        channel: Channel,
        event: &Event<'_>,
        delta: &Delta<'_>,
    ) {
        let promotes = self.settings.mode == Mode::Promote;
        let (choice, context) = self.at(delta.choice);
        choice.turn_to(out, channel, delta.part, &context);
        if choice.empty == Some(delta.part) {
            choice.empty = None;
        } else {
            choice.note_empty(out, None);
        }
        let before = choice.scanner.push(delta.text);
        let free = choice.scanner.advance(&context, false);
        choice.report_refused(out);
        if !promotes {
            out.emit(event);
            return;
        }
        let holds = choice
            .parts
            .iter()
            .rev()
            .any(|part| part.part == delta.part);
        let is_free = free == choice.scanner.length();
        if !holds && is_free {
            // If no content of this part is held back, no content of earlier parts is held back either.
            choice.release(out, usize::MAX);
            out.emit(event);
            return;
        }
        if is_free && !delta.text.chars().all(is_blank) && choice.start_only(out, delta.part) {
            out.emit(event);
            return;
        }
        if is_free && choice.holds_only_text(delta.part) {
            choice.release(out, usize::MAX);
            out.emit(event);
            return;
        }
        if !holds {
            choice
                .parts
                .push_back(Part::new(delta.part, channel, before));
        }
        if let Some(part) = choice
            .parts
            .iter_mut()
            .rfind(|part| part.part == delta.part)
        {
            part.hold(delta.text, delta.metadata);
        }
        choice.release(out, if is_free { usize::MAX } else { free });
    }

    fn started(
        &mut self,
        out: &mut Output<'_>,
        channel: Channel,
        index: i32,
        part: u32,
        opened: Start,
    ) {
        let (choice, context) = self.at(index);
        let is_first = choice.current.is_none() && !context.settings.has_bare;
        choice.note_empty(out, Some(part));
        if is_first && choice.parts.is_empty() {
            choice.text_position = TextPosition::Opened(part);
        }
        choice.parts.push_back(Part {
            opened: Some(opened),
            ..Part::new(part, channel, 0)
        });
    }

    /// Handles the closing event of a part. `done` returns a copy of that event, and is called only if content of the
    /// part is held.
    fn done(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        part: u32,
        done: impl FnOnce() -> Done,
        event: &Event<'_>,
    ) {
        let promotes = self.settings.mode == Mode::Promote;
        let (choice, context) = self.at(index);
        if choice.current == Some(part) {
            choice.scanner.advance(&context, true);
            choice.report_refused(out);
        }
        if !promotes {
            out.emit(event);
            return;
        }
        if choice.empty == Some(part) {
            choice.empty = None;
        }
        match choice.parts.iter_mut().find(|one| one.part == part) {
            Some(one) => {
                let opened = one
                    .opened
                    .as_ref()
                    .and_then(|opened| opened.item_id.clone());
                let done = done();
                one.done = Some(Done {
                    item_id: done.item_id.or(opened),
                    ..done
                });
            }
            None => {
                out.emit(event);
                return;
            }
        }
        choice.release(out, usize::MAX);
    }

    fn finished(&mut self, out: &mut Output<'_>, index: i32, event: &Event<'_>) {
        let Event::Finished {
            reason,
            raw_reason,
            choice: _,
            metadata,
        } = *event
        else {
            return;
        };
        let promotes = self.settings.mode == Mode::Promote;
        let (choice, context) = self.at(index);
        choice.scanner.advance(&context, true);
        let wanted = choice.scanner.pending.iter();
        let wanted: usize = wanted.map(|block| block.calls.len()).sum();
        if !matches!(reason, "stop" | "tool_calls") {
            choice.refuse_pending(Refusal::Finish);
        } else if choice.has_refusal {
            choice.refuse_pending(Refusal::Declined);
        } else if wanted > 0 && !self.has_room(out, wanted) {
            self.at(index).0.refuse_pending(Refusal::Limit);
        }
        let (choice, _) = self.at(index);
        choice.report_refused(out);
        if !promotes {
            for block in mem::take(&mut choice.scanner.pending) {
                diagnose(out, Code::TEXT_CALL_SEEN, &block.span, Some(block.part), "");
            }
            out.emit(event);
            return;
        }
        self.promote(out, index);
        let (choice, _) = self.at(index);
        choice.release(out, usize::MAX);
        let reason = if choice.has_promoted {
            "tool_calls"
        } else {
            reason
        };
        out.emit(&Event::Finished {
            reason,
            raw_reason,
            choice: index,
            metadata,
        });
    }

    /// Returns true if the limits allow this number of additional calls.
    fn has_room(&self, out: &Output<'_>, calls: usize) -> bool {
        self.calls + calls <= self.max_calls && out.has_room(2 * calls)
    }

    /// Turns the pending blocks of a choice into calls.
    fn promote(&mut self, out: &mut Output<'_>, index: i32) {
        let (choice, _) = self.at(index);
        let blocks = mem::take(&mut choice.scanner.pending);
        if blocks.is_empty() {
            return;
        }
        let parts = mem::take(&mut choice.parts);
        let of_choice = self.structured.iter().filter(|call| call.choice == index);
        let structured = of_choice.filter_map(|call| {
            let is_whole = is_whole(call.arguments.as_bytes());
            is_whole.then(|| (call.name.clone(), comparable(&call.arguments)))
        });
        let structured: HashSet<_> = structured.collect();
        let mut blocks = blocks.into_iter().peekable();
        for mut part in parts {
            let mut shown = Vec::new();
            let mut start = None;
            while let Some(block) = blocks.next_if(|block| block.part == part.part) {
                let range = start..Some(block.span.start);
                shown.extend(self.segment(out, index, &mut part, range));
                start = Some(block.span.end);
                for promoted in self.calls_of(out, index, &part, block, &structured) {
                    shown.push(Shown::Call(promoted));
                }
            }
            shown.extend(self.segment(out, index, &mut part, start..None));
            let number = part.part;
            self.at(index).0.shown.insert(number, shown);
        }
    }

    /// Emits the text between two blocks of a part as a separate part. `between`: the end of the block before the text
    /// and the start of the block after it, if any.
    fn segment(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        part: &mut Part,
        between: std::ops::Range<Option<usize>>,
    ) -> Option<Shown> {
        let done = part.done.as_ref()?;
        let is_first = between.start.is_none();
        let was_shown = is_first && part.opened.is_none();
        let end = between.end.unwrap_or(done.text.len());
        let text = done.text.get(between.start.unwrap_or(0)..end);
        let text = text.unwrap_or_default();
        // Strip the end-of-turn tokens from text after a block. A part without a block is included, because it follows
        // a block of another part.
        let text = match (is_first, between.end) {
            (true, Some(_)) => text,
            (true, None) if was_shown => text,
            _ => self.without_ends(text),
        };
        let range = end - text.len()..end;
        let text = text.to_owned();
        let is_empty = text.chars().all(is_blank);
        let carries = is_first
            && (done.item_id.is_some()
                || done.annotations.is_some()
                || done.signature.is_some()
                || done.encrypted_content.is_some()
                || done.metadata.is_some());
        if is_empty && !carries && !was_shown {
            return None;
        }
        let text = if is_empty && !was_shown {
            String::new()
        } else {
            text
        };
        let mut number = part.part;
        let done = if is_first {
            done.with_text(text)
        } else {
            number = match out.next_part() {
                Ok(number) => number,
                Err(fault) => {
                    out.fail(fault);
                    return None;
                }
            };
            let done = Done {
                text,
                kind: done.kind,
                item_id: None,
                annotations: None,
                signature: None,
                encrypted_content: None,
                metadata: None,
            };
            out.record_fact(NO_ADDRESS);
            part.opened = Some(Start {
                kind: done.kind,
                item_id: None,
                metadata: None,
            });
            done
        };
        part.start(out, index, number);
        if !is_empty {
            part.emit_range(out, index, number, range);
        }
        done.emit(out, index, number, part.channel);
        Some(Shown::Text(number, part.channel, done))
    }

    /// Strips the whitespace and end-of-turn literals from the start of the text after a block.
    fn without_ends<'t>(&self, text: &'t str) -> &'t str {
        let mut text = text.trim_start_matches(is_blank);
        let ends = &self.settings.end_of_turn;
        while let Some(rest) = ends.iter().find_map(|end| text.strip_prefix(end.as_str())) {
            text = rest.trim_start_matches(is_blank);
        }
        text
    }

    fn calls_of(
        &mut self,
        out: &mut Output<'_>,
        index: i32,
        part: &Part,
        block: Block,
        structured: &HashSet<(String, String)>,
    ) -> Vec<Promoted> {
        let mut promoted = Vec::new();
        let raw: Arc<str> = block.raw.into();
        for (name, arguments) in block.calls {
            if structured.contains(&(name.clone(), comparable(&arguments))) {
                diagnose(
                    out,
                    Code::TEXT_CALL_DUPLICATE,
                    &block.span,
                    Some(part.part),
                    "",
                );
                continue;
            }
            let number = match out.next_part() {
                Ok(number) => number,
                Err(fault) => {
                    out.fail(fault);
                    return promoted;
                }
            };
            let id = self.mint(number);
            diagnose(out, Code::TEXT_CALL_PROMOTED, &block.span, Some(number), "");
            let call = Promoted {
                part: number,
                id,
                name,
                arguments,
                raw: Arc::clone(&raw),
            };
            out.record_fact(NO_ADDRESS);
            out.emit(&Event::ToolCallStarted {
                part: number,
                call_id: Some(&call.id),
                item_id: None,
                name: &call.name,
                provider_executed: false,
                custom: false,
                choice: index,
                metadata: None,
            });
            out.emit(&Event::ToolCallDelta(Delta {
                part: number,
                text: &call.arguments,
                choice: index,
                metadata: None,
            }));
            out.emit(&call.event(index));
            self.calls += 1;
            self.at(index).0.has_promoted = true;
            promoted.push(call);
        }
        promoted
    }

    /// Generates a unique call id, in the form that is also used for structured calls that arrived without an id.
    fn mint(&mut self, part: u32) -> String {
        let seed = self.config.seed.as_deref().unwrap_or("sw");
        let wanted = format!("call_{seed}_{part}");
        let mut id = wanted.clone();
        let mut number = 2;
        let known = || self.config.known_call_ids.iter().cloned().collect();
        let taken = self.taken.get_or_insert_with(known);
        taken.extend(mem::take(&mut self.ids));
        while !taken.insert(id.clone()) {
            id = format!("{wanted}__{number}");
            number += 1;
        }
        id
    }
}

/// Reports a diagnostic about a block. If the policy raises a fault for this diagnostic, the fault is stored until the
/// caller retrieves it.
fn diagnose(out: &mut Output<'_>, code: Code, span: &Span, part: Option<u32>, why: &str) {
    let [start, end] = span.characters;
    let gap = if why.is_empty() { "" } else { " " };
    let detail = format!("{} {start}-{end}{gap}{why}", span.family);
    if let Err(fault) = out.diagnose(code, part, &detail) {
        out.fail(fault);
    }
}

impl Choice {
    /// Returns true if the end of the text changes nothing: nothing is held back, and there is no open or pending block.
    fn is_clear(&self, settings: &Settings) -> bool {
        self.is_free(settings) && self.scanner.pending.is_empty()
    }

    /// Returns true if nothing is held back, and text without a marker will not be held back either.
    fn is_free(&self, settings: &Settings) -> bool {
        self.parts.is_empty() && !self.holds_beginning() && self.scanner.is_idle(settings)
    }

    fn holds_beginning(&self) -> bool {
        matches!(self.text_position, TextPosition::Beginning(_))
    }

    /// Reads a piece as described for `TextCalls::reads_beginning`.
    fn reads_beginning(
        &mut self,
        out: &mut Output<'_>,
        delta: &Delta<'_>,
        settings: &Settings,
    ) -> bool {
        let part = delta.part;
        match self.text_position {
            TextPosition::LineStart(it) if it == part => self.beginning.start(true),
            TextPosition::InLine(it) if it == part => self.beginning.start(false),
            TextPosition::Beginning(it) if it == part => {}
            _ => return false,
        }
        let mut held = mem::take(&mut self.beginning);
        held.push(delta.text);
        let text = held.text.as_str();
        let found = held.first_marker(&self.scanner, settings);
        let beginning = found.and_then(|first| text.as_bytes().get(first..));
        if beginning.is_some_and(|beginning| settings.begins_marker(beginning)) {
            held.pop();
            self.beginning = held;
            return false;
        }
        let first = found.unwrap_or(text.len());
        let count = held.ends.partition_point(|end| *end <= first);
        for text in held.texts().take(count) {
            out.emit(&Event::TextDelta(Delta { text, ..*delta }));
        }
        let length = count.checked_sub(1).and_then(|last| held.ends.get(last));
        let read = text.get(..length.copied().unwrap_or_default());
        let read = read.unwrap_or_default();
        self.scanner.take_plain(read);
        held.is_at_line_start = settings.ends_line(read, held.is_at_line_start);
        held.remove(count);
        self.text_position = match (held.ends.is_empty(), held.is_at_line_start) {
            (false, _) => TextPosition::Beginning(part),
            (true, true) => TextPosition::LineStart(part),
            (true, false) => TextPosition::InLine(part),
        };
        self.beginning = held;
        true
    }

    /// Scans the deltas in `beginning`, which are then held back like other deltas.
    fn scan_beginning(&mut self, context: &Context<'_>) {
        let TextPosition::Beginning(part) = self.text_position else {
            return;
        };
        let start = self.scanner.push(&self.beginning.text);
        self.scanner.advance(context, false);
        let mut scanned = Part::new(part, Channel::Text, start);
        for text in self.beginning.texts() {
            scanned.hold(text, None);
        }
        self.parts.push_back(scanned);
    }

    /// Switches to the part that the next text belongs to. If that is an earlier part, scanning of this choice ends,
    /// because the position within the line is unknown.
    fn turn_to(
        &mut self,
        out: &mut Output<'_>,
        channel: Channel,
        part: u32,
        context: &Context<'_>,
    ) {
        let before = self.current.replace(part);
        if before == Some(part) {
            return;
        }
        self.scanner.advance(context, true);
        if before.is_some_and(|before| before > part) {
            self.refuse_pending(Refusal::TextFollows);
            self.scanner.turn_off();
            self.report_refused(out);
            self.let_go(out);
        }
        let in_text = channel == Channel::Text;
        self.scanner.start_part(part, in_text, context.settings);
    }

    /// Releases everything that is held back, without changes.
    fn let_go(&mut self, out: &mut Output<'_>) {
        self.empty = None;
        for mut part in mem::take(&mut self.parts) {
            let number = part.part;
            part.start(out, self.index, number);
            part.emit_range(out, self.index, number, 0..usize::MAX);
            if let Some(done) = part.done.take() {
                done.emit(out, self.index, number, part.channel);
            }
        }
    }

    /// Releases the held start event of a part without text, because another part has started or received text.
    fn note_empty(&mut self, out: &mut Output<'_>, newest: Option<u32>) {
        let Some(empty) = mem::replace(&mut self.empty, newest) else {
            return;
        };
        let position = self.parts.iter().rposition(|part| part.part == empty);
        if let Some(mut part) = position.and_then(|position| self.parts.remove(position)) {
            part.start(out, self.index, empty);
        }
    }

    /// Returns true if only text of this part is held back, and no block has begun in it.
    fn holds_only_text(&self, number: u32) -> bool {
        let mut parts = self.parts.iter();
        let is_text =
            |part: &Part| part.part == number && part.opened.is_none() && part.done.is_none();
        self.scanner.pending.is_empty() && parts.len() == 1 && parts.all(is_text)
    }

    /// If nothing else is held back, emits the start event of a part, and returns true.
    fn start_only(&mut self, out: &mut Output<'_>, number: u32) -> bool {
        let is_only = self.parts.len() == 1;
        let held = self.parts.front_mut().filter(|part| {
            is_only && part.part == number && part.pieces.is_empty() && part.done.is_none()
        });
        let Some(part) = held else {
            return false;
        };
        part.start(out, self.index, number);
        self.parts.clear();
        true
    }

    /// Records whether the scanned text ends at the start of a line or inside a line. While text is held, the position
    /// is unknown.
    fn record_text_position(&mut self, part: u32, settings: &Settings) {
        self.text_position = match self.is_free(settings) {
            false => TextPosition::None,
            true if self.scanner.is_at_line_start(settings) => TextPosition::LineStart(part),
            true => TextPosition::InLine(part),
        };
    }

    /// If the next piece of a part is short, continues a line and contains no marker byte, accepts the piece and
    /// returns true.
    ///
    /// A piece without marker bytes contains no line ending, because a line ending is a marker byte.
    #[inline(always)]
    fn takes_unmarked(&mut self, part: u32, text: &str, settings: &Settings) -> bool {
        self.text_position == TextPosition::InLine(part)
            && self.scanner.take_unmarked(text, settings)
    }

    /// If no marker can begin in the next piece of a part, accepts the piece and returns true.
    fn takes(&mut self, part: u32, text: &str, settings: &Settings) -> bool {
        let is_next = matches!(self.text_position, TextPosition::InLine(it) | TextPosition::LineStart(it) if it == part);
        let takes = is_next && self.first_marker(text, settings).is_none();
        if takes {
            self.take_plain(part, text, settings);
        }
        takes
    }

    /// Returns the offset of the first position at which the text must be scanned, because a marker may begin there. If
    /// the text must be scanned from a position before it, this is the start of the text.
    fn first_marker(&mut self, text: &str, settings: &Settings) -> Option<usize> {
        let is_at_line_start = match self.text_position {
            TextPosition::None | TextPosition::Opened(_) => return Some(0),
            TextPosition::LineStart(_) => true,
            TextPosition::InLine(_) => false,
            TextPosition::Beginning(_) => {
                let held = &mut self.beginning;
                held.push(text);
                let first = held.first_marker(&self.scanner, settings);
                held.pop();
                return first.map(|first| first.saturating_sub(held.text.len()));
            }
        };
        self.scanner.first_marker(text, is_at_line_start, settings)
    }

    /// Accepts the pieces in `beginning`, because no marker begins in them.
    fn take_beginning(&mut self, part: u32, settings: &Settings) {
        let held = &self.beginning;
        self.scanner.take_plain(&held.text);
        self.text_position = match settings.ends_line(&held.text, held.is_at_line_start) {
            true => TextPosition::LineStart(part),
            false => TextPosition::InLine(part),
        };
    }

    /// Accepts a piece in which no marker can begin.
    fn take_plain(&mut self, part: u32, text: &str, settings: &Settings) {
        self.scanner.take_plain(text);
        let was_at_start = matches!(self.text_position, TextPosition::LineStart(_));
        self.text_position = match settings.ends_line(text, was_at_start) {
            true => TextPosition::LineStart(part),
            false => TextPosition::InLine(part),
        };
    }

    fn refuse_pending(&mut self, why: Refusal) {
        for block in mem::take(&mut self.scanner.pending) {
            self.scanner.refused.push((block.span, block.part, why));
        }
    }

    /// Reports the blocks that were refused since this method was last called.
    fn report_refused(&mut self, out: &mut Output<'_>) {
        for (span, part, why) in mem::take(&mut self.scanner.refused) {
            diagnose(out, Code::TEXT_CALL_REFUSED, &span, Some(part), why.name());
        }
    }

    /// Releases text that no longer needs to be held back: text up to `free` in the current part, and all text in
    /// earlier parts.
    fn release(&mut self, out: &mut Output<'_>, free: usize) {
        let index = self.index;
        let pending = self.scanner.pending.first();
        let pending = pending.map(|block| (block.part, block.span.start));
        while let Some(part) = self.parts.front_mut() {
            let is_current = Some(part.part) == self.current;
            let mut end = if is_current { free } else { usize::MAX };
            if let Some((number, start)) = pending {
                if part.part > number {
                    return;
                }
                if part.part == number {
                    end = end.min(start);
                }
            }
            let has_block = pending.is_some_and(|(number, _)| number == part.part);
            let mut end = end.min(part.length);
            if is_current && pending.is_none() && self.scanner.is_in_text() {
                end = part.start_of_piece(end);
            }
            let leaves = part.done.is_some() && end == part.length && !has_block;
            if part.opened.is_some() && !leaves && part.is_blank_to(end) {
                return;
            }
            let number = part.part;
            part.start(out, index, number);
            let from = part.released;
            part.emit_range(out, index, number, from..end);
            if end < part.length || has_block {
                return;
            }
            if let Some(done) = part.done.take() {
                done.emit(out, index, number, part.channel);
            }
            self.parts.pop_front();
        }
    }
}

impl Part {
    /// Creates a part whose text is held back from an offset.
    fn new(part: u32, channel: Channel, start: usize) -> Part {
        Part {
            part,
            channel,
            opened: None,
            pieces: VecDeque::new(),
            released: start,
            length: start,
            solid: None,
            done: None,
        }
    }

    /// Emits the start event that is held back, if any.
    fn start(&mut self, out: &mut Output<'_>, choice: i32, part: u32) {
        let Some(opened) = self.opened.take() else {
            return;
        };
        let (item_id, metadata) = (opened.item_id.as_deref(), opened.metadata.as_deref());
        out.emit(&match self.channel {
            Channel::Reasoning => Event::ReasoningStarted {
                part,
                kind: opened.kind,
                item_id,
                choice,
                metadata,
            },
            _ => Event::TextStarted(Opened {
                part,
                item_id,
                choice,
                metadata,
            }),
        });
    }

    fn hold(&mut self, text: &str, metadata: Option<&str>) {
        if self.solid.is_none() {
            let solid = text.find(|character| !is_blank(character));
            self.solid = solid.map(|at| self.length + at);
        }
        self.pieces.push_back(Piece {
            start: self.length,
            text: text.to_owned(),
            metadata: metadata.map(str::to_owned),
        });
        self.length += text.len();
    }

    /// Returns the start of the held piece that an offset divides, or the offset if it divides no piece.
    fn start_of_piece(&self, offset: usize) -> usize {
        let before = self
            .pieces
            .partition_point(|piece| piece.start + piece.text.len() <= offset);
        let divided = self.pieces.get(before);
        divided.map_or(offset, |piece| piece.start.max(self.released))
    }

    fn is_blank_to(&self, end: usize) -> bool {
        self.solid.is_none_or(|solid| solid >= end)
    }

    /// Emits the held text within a range, one delta for each piece. The pieces up to the end of the range are then no
    /// longer held.
    fn emit_range(
        &mut self,
        out: &mut Output<'_>,
        choice: i32,
        part: u32,
        range: std::ops::Range<usize>,
    ) {
        while let Some(piece) = self.pieces.front_mut() {
            let end = piece.start + piece.text.len();
            if piece.start >= range.end {
                break;
            }
            let from = range
                .start
                .max(self.released)
                .saturating_sub(piece.start)
                .min(piece.text.len());
            let to = range.end.saturating_sub(piece.start).min(piece.text.len());
            let text = piece.text.get(from..to).unwrap_or_default();
            if !text.is_empty() {
                let metadata = piece.metadata.take();
                let delta = Delta {
                    part,
                    text,
                    choice,
                    metadata: metadata.as_deref(),
                };
                out.emit(&DeltaKind::from(self.channel).event(delta));
            }
            if end > range.end {
                break;
            }
            self.pieces.pop_front();
        }
        self.released = self.released.max(range.end);
    }
}

impl Done {
    /// Returns a copy of the closing event with different text.
    fn with_text(&self, text: String) -> Done {
        Done {
            text,
            kind: self.kind,
            item_id: self.item_id.clone(),
            annotations: self.annotations.clone(),
            signature: self.signature.clone(),
            encrypted_content: self.encrypted_content.clone(),
            metadata: self.metadata.clone(),
        }
    }

    fn emit(&self, out: &mut Output<'_>, choice: i32, part: u32, channel: Channel) {
        out.emit(&self.event(choice, part, channel));
    }

    fn event(&self, choice: i32, part: u32, channel: Channel) -> Event<'_> {
        let metadata = self.metadata.as_deref();
        match channel {
            Channel::Reasoning => Event::ReasoningDone {
                part,
                text: &self.text,
                kind: self.kind,
                item_id: self.item_id.as_deref(),
                signature: self.signature.as_deref(),
                encrypted_content: self.encrypted_content.as_deref(),
                choice,
                metadata,
            },
            _ => Event::TextDone {
                part,
                text: &self.text,
                annotations: self.annotations.as_deref(),
                choice,
                metadata,
            },
        }
    }
}

impl Promoted {
    fn event(&self, choice: i32) -> Event<'_> {
        Event::ToolCall {
            part: self.part,
            call_id: &self.id,
            name: &self.name,
            arguments: &self.arguments,
            state: "complete",
            item_id: None,
            reason: None,
            raw_arguments: None,
            provider_executed: false,
            aliases: &[],
            custom: false,
            raw_text: Some(&self.raw),
            choice,
            metadata: None,
        }
    }
}

impl TextCalls {
    #[inline(never)]
    fn take(&mut self, out: &mut Output<'_>, event: &Event<'_>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        match *event {
            Event::TextDelta(delta) => self.text(out, Channel::Text, event, &delta),
            Event::ReasoningDelta(delta) if self.reads(DeltaKind::Reasoning) => {
                self.text(out, Channel::Reasoning, event, &delta);
            }
            Event::TextStarted(opened) if self.settings.mode == Mode::Promote => {
                let start = Start {
                    kind: "raw",
                    item_id: owned(opened.item_id),
                    metadata: owned(opened.metadata),
                };
                self.started(out, Channel::Text, opened.choice, opened.part, start);
            }
            Event::ReasoningStarted {
                part,
                kind,
                item_id,
                choice,
                metadata,
            } if self.settings.mode == Mode::Promote && self.reads(DeltaKind::Reasoning) => {
                let start = Start {
                    kind,
                    item_id: owned(item_id),
                    metadata: owned(metadata),
                };
                self.started(out, Channel::Reasoning, choice, part, start);
            }
            Event::TextDone {
                part,
                text,
                annotations,
                choice,
                metadata,
            } => {
                let done = || Done {
                    text: text.to_owned(),
                    kind: "raw",
                    item_id: None,
                    annotations: owned(annotations),
                    signature: None,
                    encrypted_content: None,
                    metadata: owned(metadata),
                };
                self.done(out, choice, part, done, event);
            }
            Event::ReasoningDone {
                part,
                text,
                kind,
                item_id,
                signature,
                encrypted_content,
                choice,
                metadata,
            } if self.reads(DeltaKind::Reasoning) => {
                let done = || Done {
                    text: text.to_owned(),
                    kind,
                    item_id: owned(item_id),
                    annotations: None,
                    signature: owned(signature),
                    encrypted_content: owned(encrypted_content),
                    metadata: owned(metadata),
                };
                self.done(out, choice, part, done, event);
            }
            Event::ToolCallStarted { call_id, .. } => {
                self.ids.extend(owned(call_id));
                out.emit(event);
            }
            Event::ToolCall {
                call_id,
                name,
                arguments,
                choice,
                ..
            } => {
                if self.ids.last().is_none_or(|last| last != call_id) {
                    self.ids.push(call_id.to_owned());
                }
                let text = if arguments.is_empty() {
                    "{}"
                } else {
                    arguments
                };
                self.calls += 1;
                self.structured.push(StructuredCall {
                    choice,
                    name: name.to_owned(),
                    arguments: text.to_owned(),
                });
                out.emit(event);
            }
            Event::RefusalDelta(refusal) | Event::RefusalDone(refusal) => {
                self.note_refusal(refusal.choice, refusal.text);
                out.emit(event);
            }
            Event::Finished { choice, .. } => self.finished(out, choice, event),
            Event::UpstreamError { .. } => {
                self.end(out);
                out.emit(event);
            }
            _ => out.emit(event),
        }
    }
}

impl TextCalls {
    /// Counts a delta that was processed individually.
    #[inline(always)]
    fn count_single(&mut self) {
        if self.singles > 0 {
            self.singles -= 1;
        }
    }

    /// Returns true if every event of this kind is emitted unchanged and its contents do not matter.
    #[inline(never)] // as for `takes`
    fn ignores(&self, event: &Event<'_>) -> bool {
        match event {
            Event::TextDone { choice, .. } | Event::Finished { choice, .. } => {
                let choice = self.choices.find(*choice);
                choice.is_none_or(|it| !it.has_promoted && it.is_clear(&self.settings))
            }
            Event::RefusalDelta(refusal) | Event::RefusalDone(refusal) => {
                let choice = self.choices.find(refusal.choice);
                refusal.text.is_empty() || choice.is_some_and(|it| it.has_refusal)
            }
            Event::TextStarted(_)
            | Event::TextDelta(_)
            | Event::ToolCallStarted { .. }
            | Event::ToolCall { .. }
            | Event::UpstreamError { .. } => false,
            Event::ReasoningStarted { .. }
            | Event::ReasoningDelta(_)
            | Event::ReasoningDone { .. } => !self.settings.reads_reasoning,
            _ => true,
        }
    }

    /// If no marker can begin in the next delta, accepts the delta and returns true.
    #[inline(never)] // otherwise `passes_unchanged`, which reads every delta, saves more registers
    fn takes(&mut self, delta: &Delta<'_>) -> bool {
        let choice = read_last(&mut self.choices, &mut self.last, delta.choice);
        let takes = choice.is_some_and(|it| it.takes(delta.part, delta.text, &self.settings));
        if takes {
            self.count_single();
        }
        takes
    }
}

impl EventFilter for TextCalls {
    fn passes_unchanged(&mut self, event: &Event<'_>) -> bool {
        let Event::TextDelta(delta) = event else {
            return self.ignores(event);
        };
        if let Some(choice) = self.choices.get_mut(self.last)
            && choice.index == delta.choice
            && choice.takes_unmarked(delta.part, delta.text, &self.settings)
        {
            self.count_single();
            return true;
        }
        self.takes(delta)
    }

    fn event(&mut self, out: &mut Output<'_>, event: &Event<'_>) {
        self.take(out, event);
    }

    fn read_row(&mut self, deltas: &Deltas<'_>) -> Row<'_> {
        if deltas.kind == DeltaKind::Refusal {
            self.note_refusal(deltas.choice, deltas.texts);
        }
        if !self.reads(deltas.kind) {
            return Row::Unchanged;
        }
        let Some(choice) = read_last(&mut self.choices, &mut self.last, deltas.choice) else {
            return Row::Single;
        };
        let before = choice.text_position;
        let (TextPosition::InLine(part)
        | TextPosition::LineStart(part)
        | TextPosition::Beginning(part)) = before
        else {
            return Row::Single;
        };
        let is_one = match deltas.parts {
            Parts::One(one) => one == part,
            Parts::Each(each) => each.iter().all(|one| *one == part),
        };
        // A shorter row may end with the beginning of a marker.
        if !is_one || deltas.texts.len() != self.accepted {
            return Row::Single;
        }
        if before != TextPosition::Beginning(part) {
            choice.take_plain(part, deltas.texts, &self.settings);
            return Row::Unchanged;
        }
        choice.take_beginning(part, &self.settings);
        choice.take_plain(part, deltas.texts, &self.settings);
        Row::After(Deltas {
            parts: Parts::One(part),
            texts: &choice.beginning.text,
            ends: &choice.beginning.ends,
            ..*deltas
        })
    }

    fn passes(&mut self, kind: DeltaKind, choice: i32, texts: &str, ends: &[usize]) -> usize {
        if !self.reads(kind) {
            return ends.len();
        }
        let choice = read_last(&mut self.choices, &mut self.last, choice);
        let Some(choice) = choice else {
            self.singles = BRIEFLY;
            return 0;
        };
        let first = choice.first_marker(texts, &self.settings);
        let count = first.map_or(ends.len(), |first| {
            ends.partition_point(|end| *end <= first)
        });
        match count.checked_sub(1).and_then(|last| ends.get(last)) {
            Some(end) => self.accepted = *end,
            None => {
                let is_in_block =
                    choice.text_position == TextPosition::None && !choice.scanner.is_in_text();
                self.singles = if is_in_block { SINGLES } else { BRIEFLY };
            }
        }
        count
    }

    fn takes_rows(&self) -> bool {
        self.singles == 0
    }
}

/// Returns the choice with this index, if any. Usually, this choice is the one that was looked up last.
#[inline]
fn read_last<'c>(
    choices: &'c mut List<Choice>,
    last: &mut usize,
    index: i32,
) -> Option<&'c mut Choice> {
    if choices.get(*last).is_none_or(|it| it.index != index) {
        *last = position_of(choices, index)?;
    }
    choices.get_mut(*last)
}

#[cold]
fn position_of(choices: &List<Choice>, index: i32) -> Option<usize> {
    choices.position(index)
}

/// Number of deltas to process one by one if a single delta usually suffices: at the start of a choice, because the
/// first delta is emitted with the start event, and at the possible beginning of a marker.
const BRIEFLY: usize = 1;
/// Number of deltas to process one by one in a block and after it.
const SINGLES: usize = 16;

/// Emits a snapshot of the response with its parts replaced. Added parts come after all parts of the assembler.
pub(crate) struct ShownSink<'s> {
    stage: &'s TextCalls,
    sink: &'s mut dyn Sink,
    is_told: bool,
}

impl ShownSink<'_> {
    fn report_added(&mut self) {
        if mem::replace(&mut self.is_told, true) {
            return;
        }
        let mut added: Vec<(u32, i32, &Shown)> = Vec::new();
        for choice in self.stage.choices.iter() {
            for (part, shown) in &choice.shown {
                let own = |one: &&Shown| one.part() != *part;
                added.extend(
                    shown
                        .iter()
                        .filter(own)
                        .map(|one| (one.part(), choice.index, one)),
                );
            }
        }
        added.sort_by_key(|(part, ..)| *part);
        for (_, choice, shown) in added {
            self.sink.event(&shown.event(choice));
        }
    }
}

impl Shown {
    fn part(&self) -> u32 {
        match self {
            Shown::Text(part, ..) => *part,
            Shown::Call(call) => call.part,
        }
    }

    fn event(&self, choice: i32) -> Event<'_> {
        match self {
            Shown::Text(part, channel, done) => done.event(choice, *part, *channel),
            Shown::Call(call) => call.event(choice),
        }
    }
}

impl Sink for ShownSink<'_> {
    fn event(&mut self, event: &Event<'_>) {
        let index = event.choice().unwrap_or_default();
        let choice = self.stage.choices.find(index);
        match *event {
            Event::TextStarted(Opened { part, .. })
            | Event::TextDone { part, .. }
            | Event::ReasoningStarted { part, .. }
            | Event::ReasoningDone { part, .. } => {
                let Some(shown) = choice.and_then(|choice| choice.shown.get(&part)) else {
                    return self.sink.event(event);
                };
                let Some(own) = shown.iter().find(|one| one.part() == part) else {
                    return;
                };
                match event {
                    Event::TextDone { .. } | Event::ReasoningDone { .. } => {
                        self.sink.event(&own.event(index));
                    }
                    _ => self.sink.event(event),
                }
            }
            Event::Usage(_) | Event::UpstreamError { .. } => {
                self.report_added();
                self.sink.event(event);
            }
            Event::Finished {
                reason,
                raw_reason,
                metadata,
                ..
            } => {
                self.report_added();
                let promoted = choice.is_some_and(|choice| choice.has_promoted);
                self.sink.event(&Event::Finished {
                    reason: if promoted { "tool_calls" } else { reason },
                    raw_reason,
                    choice: index,
                    metadata,
                });
            }
            _ => self.sink.event(event),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(mode: &str) -> Arc<str> {
        format!(r#"{{"mode": "{mode}", "after": "end", "families": []}}"#).into()
    }

    #[test]
    fn distinct_settings_are_parsed_once_although_they_alternate() {
        let texts = [text("report"), text("promote")];
        let parsed = || texts.each_ref().map(|text| settings(text).unwrap());
        let [report, promote] = parsed();
        assert_eq!([report.mode, promote.mode], [Mode::Report, Mode::Promote]);
        for [one, other] in [parsed(), parsed()] {
            assert!(Arc::ptr_eq(&one, &report) && Arc::ptr_eq(&other, &promote));
        }
    }
}
