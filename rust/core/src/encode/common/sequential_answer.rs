//! Writes one response to a target with sequential blocks: its opening events, its parts and its ending.
//!
//! Decides which events open a response and whether the response is complete. An `Answer` writes opening events,
//! endings and errors, and `PartOrder` decides the order of the parts.

use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_order::PartOrder;
use crate::encode::common::provider_metadata::has_only_phase;
use crate::model::event::Delta;
use crate::model::event::Event;
use crate::model::unmodelled::Unmodelled;

/// What the source's opening event reports about the response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
}

/// The finish reason of a response: normalized (`reason`) and as sent (`raw`).
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) reason: &'static str,
    pub(crate) raw: Option<String>,
}

/// Writes responses in the format of one target.
pub(crate) trait Answer: BlockWriter {
    const TARGET: &'static str;
    /// True if content that no streamweld event represents is copied from a source in the same dialect.
    const WRITES_UNMODELLED: bool = false;
    /// True if the phase of a text is written at the end of the text.
    const WRITES_PHASES: bool = false;

    /// Writes the events that open the response.
    fn start(&mut self, context: &mut EncodeContext, opening: Opening<'_>);

    /// Writes the ending of a complete response. `word` is the target's word for the finish reason.
    fn finish(&mut self, context: &mut EncodeContext, word: &str, finish: &Finish);

    /// Writes content of the source's own dialect that no streamweld event represents. `opened` is true if the opening
    /// events have already been written.
    fn write_unmodelled(
        &mut self,
        _context: &mut EncodeContext,
        _blocks: &mut PartOrder,
        _opened: bool,
        _content: &Unmodelled<'_>,
    ) {
    }

    /// Writes the ending of an incomplete response. `opened` is true if the opening events have already been written.
    fn fail(
        &mut self,
        context: &mut EncodeContext,
        blocks: &mut PartOrder,
        opened: bool,
        ending_error: &EndingError,
    );
}

/// Encodes one response for a target with sequential blocks.
#[derive(Debug, Default)]
pub(crate) struct SequentialAnswer<A> {
    answer: A,
    blocks: PartOrder,
    opened: bool,
    over: bool,
    /// The only choice that is written, which is the choice of the first event that belongs to any choice.
    choice: Option<i32>,
    finished: Option<Finish>,
}

impl<A: Answer> Encoder for SequentialAnswer<A> {
    fn event(&mut self, context: &mut EncodeContext, event: &Event<'_>) {
        if self.over {
            return;
        }
        let writes_unmodelled = A::WRITES_UNMODELLED && context.passed.own;
        match *event {
            Event::Unknown { .. } | Event::ProviderItem { .. } if writes_unmodelled => return,
            Event::Usage(_) | Event::Unknown { .. } | Event::ProviderItem { .. } => {
                return context.note(event);
            }
            Event::UpstreamError { .. } => return, // the ending reports the error
            Event::ResponseStarted {
                id,
                model,
                created,
                metadata,
            } => {
                if !self.opened {
                    context.losses.repeated(metadata);
                    self.open(context, Opening { id, model, created });
                }
                return;
            }
            _ => {}
        }
        let choice = event.choice().unwrap_or(0);
        if *self.choice.get_or_insert(choice) != choice {
            return context.losses.note("choices");
        }
        if !self.opened {
            self.open(context, Opening::default());
        }
        if let Event::Finished {
            reason, raw_reason, ..
        } = *event
        {
            let raw = raw_reason.map(str::to_owned);
            self.finished = Some(Finish { reason, raw });
            return context.losses.repeated(event.metadata());
        }
        // Targets with sequential blocks cannot represent metadata, such as log probabilities, in start events and
        // deltas. AI SDK sources repeat the metadata of start events and deltas in the closing event of the part.
        let is_phase = A::WRITES_PHASES && has_only_phase(context.source, event);
        let is_written = is_phase || (writes_unmodelled && is_start(event));
        if (is_start(event) || event.is_delta())
            && !is_written
            && !context.source.starts_with("ai-sdk-")
        {
            context.losses.metadata(event.metadata());
        }
        let form = &mut self.answer;
        self.blocks.event(&mut BlockOutput { form, context }, event);
        self.stop_if_contradicted(context);
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let is_written = !self.over && self.choice == Some(piece.choice);
        is_written && self.blocks.keep(piece.part, piece.text)
    }

    fn write_unmodelled(&mut self, context: &mut EncodeContext, content: &Unmodelled<'_>) {
        if !self.over {
            let (blocks, opened) = (&mut self.blocks, self.opened);
            self.answer
                .write_unmodelled(context, blocks, opened, content);
        }
    }

    fn end(&mut self, context: &mut EncodeContext, ending_error: Option<EndingError>) {
        if self.over {
            return;
        }
        let mut finish = match (ending_error, self.finished.take()) {
            (None, Some(finish)) => finish,
            (ending_error, _) => {
                let cut = || EndingError::named("TruncatedStream");
                return self.fail(context, &ending_error.unwrap_or_else(cut));
            }
        };
        if finish::is_success(finish.reason) && self.blocks.has_empty_cut_call() {
            if !context.passed.finished.is_empty() {
                let ending_error = EndingError::named("AssemblyError"); // clients already received the finish reason
                return self.fail(context, &ending_error);
            }
            finish = Finish {
                reason: "length",
                raw: None,
            };
        }
        let raw = finish.raw.as_deref();
        let own = context.own_word(A::TARGET, finish.reason, raw);
        if own.is_some() || finish::word_of(A::TARGET, finish.reason, raw).is_some() {
            let form = &mut self.answer;
            self.blocks.finish(&mut BlockOutput { form, context });
            self.stop_if_contradicted(context);
            if self.over {
                return;
            }
        }
        let runs = self.blocks.client_calls() > 0;
        let reason = match finish.reason {
            // The client has no calls to run, because every call has a result or lacks a name.
            "tool_calls" if !runs && self.blocks.answered() => "other",
            "tool_calls" if !runs => "error",
            reason => reason,
        };
        let is_set = reason == finish.reason;
        let own = own.filter(|_| is_set || finish::word(A::TARGET, reason).is_some());
        let word = own.or_else(|| context.finish_word(A::TARGET, reason, raw.filter(|_| is_set)));
        let Some(word) = word else {
            return self.fail(context, &EndingError::named("finish"));
        };
        self.over = true;
        self.answer.finish(context, word, &finish);
    }
}

impl<A: Answer> SequentialAnswer<A> {
    fn open(&mut self, context: &mut EncodeContext, opening: Opening<'_>) {
        self.opened = true;
        if context.passed.own {
            self.blocks = PartOrder::as_sent();
        }
        self.answer.start(context, opening);
    }

    /// Ends the stream with an error if the upstream contradicted what was already written.
    fn stop_if_contradicted(&mut self, context: &mut EncodeContext) {
        if self.blocks.contradicted() {
            context.broken = true;
            self.fail(context, &EndingError::named("contradicted"));
        }
    }

    fn fail(&mut self, context: &mut EncodeContext, ending_error: &EndingError) {
        self.over = true;
        self.answer
            .fail(context, &mut self.blocks, self.opened, ending_error);
    }
}

fn is_start(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::TextStarted(_)
            | Event::ReasoningStarted { .. }
            | Event::RefusalStarted(_)
            | Event::ToolCallStarted { .. }
    )
}
