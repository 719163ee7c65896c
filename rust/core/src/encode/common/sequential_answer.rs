//! One answer for a target that writes block after block: its opening, its parts, its ending, each at its time.
//!
//! Knows which events open an answer and what makes an ending whole. Knows no dialect and no frame: an `Answer` says how an
//! opening, an ending and a fault are written, and `Order` in which order the parts come.

use crate::encode::common::block::Form;
use crate::encode::common::block::Pen;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::encoder::Encoder;
use crate::encode::common::finish;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_order::Order;
use crate::model::event::Delta;
use crate::model::event::Event;

/// What the source said of the answer when it opened it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) model: Option<&'a str>,
    pub(crate) created: Option<i64>,
}

/// Why the answer ended.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) reason: &'static str,
    pub(crate) raw: Option<String>,
}

/// How a target writes an answer.
pub(crate) trait Answer: Form {
    const TARGET: &'static str;

    /// The opening of the answer.
    fn start(&mut self, job: &mut EncodeContext, opening: Opening<'_>);

    /// The ending of a whole answer.
    fn finish(&mut self, job: &mut EncodeContext, word: &str, finish: &Finish);

    /// The honest ending of one that is not whole; `opened`: something of it went out.
    fn fail(
        &mut self,
        job: &mut EncodeContext,
        blocks: &mut Order,
        opened: bool,
        trouble: &EndingError,
    );
}

/// An answer that is being written.
#[derive(Debug, Default)]
pub(crate) struct SequentialAnswer<A> {
    answer: A,
    blocks: Order,
    opened: bool,
    over: bool,
    /// The one that is written.
    choice: Option<i32>,
    finished: Option<Finish>,
}

impl<A: Answer> Encoder for SequentialAnswer<A> {
    fn event(&mut self, job: &mut EncodeContext, event: &Event<'_>) {
        if self.over {
            return;
        }
        match *event {
            Event::Usage(_) | Event::Unknown { .. } => return job.note(event),
            Event::UpstreamError { .. } => return, // the ending tells it
            Event::ResponseStarted {
                id,
                model,
                created,
                metadata,
            } => {
                if !self.opened {
                    job.losses.repeated(metadata);
                    self.open(job, Opening { id, model, created });
                }
                return;
            }
            _ => {}
        }
        let choice = event.choice().unwrap_or(0);
        if *self.choice.get_or_insert(choice) != choice {
            return job.losses.note("choices");
        }
        if !self.opened {
            self.open(job, Opening::default());
        }
        if let Event::Finished {
            reason, raw_reason, ..
        } = *event
        {
            let raw = raw_reason.map(str::to_owned);
            self.finished = Some(Finish { reason, raw });
            return job.losses.repeated(event.metadata());
        }
        if is_passing(event) && !job.source.starts_with("ai-sdk-") {
            job.losses.metadata(event.metadata());
        }
        let form = &mut self.answer;
        self.blocks.event(&mut Pen { form, job }, event);
        self.stop_if_contradicted(job);
    }

    fn keep(&mut self, piece: &Delta<'_>) -> bool {
        let is_written = !self.over && self.choice == Some(piece.choice);
        is_written && self.blocks.keep(piece.part, piece.text)
    }

    fn end(&mut self, job: &mut EncodeContext, trouble: Option<EndingError>) {
        if self.over {
            return;
        }
        let finish = match (trouble, self.finished.take()) {
            (None, Some(finish)) => finish,
            (trouble, _) => {
                let cut = || EndingError::named("TruncatedStream");
                return self.fail(job, &trouble.unwrap_or_else(cut));
            }
        };
        let raw = finish.raw.as_deref();
        let own = job.own_word(A::TARGET, finish.reason, raw);
        if own.is_some() || finish::word_of(A::TARGET, finish.reason, raw).is_some() {
            let form = &mut self.answer;
            self.blocks.finish(&mut Pen { form, job });
            self.stop_if_contradicted(job);
            if self.over {
                return;
            }
        }
        let runs = self.blocks.client_calls() > 0;
        let reason = match finish.reason {
            // Nothing is left to be run: every call is answered already, or has no name.
            "tool_calls" if !runs && self.blocks.answered() => "other",
            "tool_calls" if !runs => "error",
            reason => reason,
        };
        let is_said = reason == finish.reason;
        let own = own.filter(|_| is_said || finish::word(A::TARGET, reason).is_some());
        let word = own.or_else(|| job.finish_word(A::TARGET, reason, raw.filter(|_| is_said)));
        let Some(word) = word else {
            return self.fail(job, &EndingError::named("finish"));
        };
        self.over = true;
        self.answer.finish(job, word, &finish);
    }
}

impl<A: Answer> SequentialAnswer<A> {
    fn open(&mut self, job: &mut EncodeContext, opening: Opening<'_>) {
        self.opened = true;
        if job.passed.own {
            self.blocks = Order::own();
        }
        self.answer.start(job, opening);
    }

    /// What went out was taken back, and the target cannot: the stream ends here.
    fn stop_if_contradicted(&mut self, job: &mut EncodeContext) {
        if self.blocks.contradicted() {
            job.broken = true;
            self.fail(job, &EndingError::named("contradicted"));
        }
    }

    fn fail(&mut self, job: &mut EncodeContext, trouble: &EndingError) {
        self.over = true;
        self.answer
            .fail(job, &mut self.blocks, self.opened, trouble);
    }
}

/// What hangs on a start or a delta (log probabilities) passes with it. The AI SDK's comes again with the close of its part.
fn is_passing(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::TextStarted(_)
            | Event::ReasoningStarted { .. }
            | Event::RefusalStarted(_)
            | Event::ToolCallStarted { .. }
            | Event::TextDelta(_)
            | Event::ReasoningDelta(_)
            | Event::RefusalDelta(_)
            | Event::ToolCallDelta(_)
    )
}
