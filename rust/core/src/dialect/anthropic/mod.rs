//! Messages streams, and whole `type: message` bodies, as wire deltas.
//!
//! Knows the events of a stream and in which order everything counts. What a message says of itself is read in `message`,
//! the blocks in `blocks` and `block`. Knows no other dialect, no framing and no identity of calls.

mod block;
mod blocks;
mod fields;
mod kept;
mod message;
mod shape;
mod swift;

use block::Block;
use blocks::Blocks;
use fields::{FACTS, is_read, rest, type_of};
pub(crate) use shape::SHAPES;
use shape::{complains, is_tail};

use crate::complaint::{Complaint, says_nothing};
use crate::config::Config;
use crate::decode::Decode;
use crate::envelope::Envelopes;
use crate::fault::Fault;
use crate::json::members::{Document, Member, Object};
use crate::json::repeats::{may_repeat, may_repeat_in};
use crate::json::{Kind, Text};
use crate::leftovers::Leftovers;
use crate::notes::{Notes, Pointer, tell_repeats, tell_wide_integer};
use crate::spec::Code;
use crate::sse::Taken;
use crate::wire::{Incoming, Payload, Step, Wire, unknown};

/// The decoder of one stream. There is one choice.
#[derive(Debug)]
pub(crate) struct Anthropic {
    blocks: Blocks,
    id: Option<String>,
    started: bool,
    /// A block was.
    streamed: bool,
    /// Why the message ended was said.
    reason: bool,
    ended: bool,
    envelopes: Envelopes,
}

impl Anthropic {
    pub(crate) fn new(config: &Config) -> Anthropic {
        Anthropic {
            blocks: Blocks::new(config),
            id: None,
            started: false,
            streamed: false,
            reason: false,
            ended: false,
            envelopes: Envelopes::default(),
        }
    }

    /// An event, or a whole message. `delta`: its member of that name, read already.
    fn object<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        object: &Object<'a>,
        delta: Option<&Object<'a>>,
        payload: Payload<'a>,
    ) -> Step {
        if object.wide_integer {
            wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
        }
        if may_repeat_inside(&object.members, delta) && may_repeat_in(payload.text) {
            tell_repeats(wire, payload.text, &[], is_read)?;
        }
        let mut notes = Notes::default();
        let sent = type_of(&object.members);
        let kind = match payload.event {
            // What the name of the frame may tell: `message` is the name of a frame without a name.
            Some(name) if sent.is_empty() && name != "message" && FACTS.is_event(name) => name,
            _ => sent.as_ref(),
        };
        let error = object.present("error");
        let says = error.filter(|raw| !says_nothing(*raw)).is_some();
        if kind == "error"
            || payload.event == Some("error")
            || (!FACTS.is_event(kind) && (says || complains(object)))
        {
            if payload.event != Some("error") {
                // Readers raise under no other name.
                let is_good = sent == "error" && error.is_some_and(|raw| raw.kind == Kind::Object);
                name(wire, "error", is_good);
            }
            let complaint = match error {
                Some(error) => Complaint::of_value(error),
                None => Complaint::of_members(&object.members, object.raw),
            };
            self.flush(wire)?;
            return notes.complain(wire, &complaint, payload);
        }
        let is_typed = !sent.is_empty();
        if let Some(wanted) = FACTS.needs_name(kind, payload.event.filter(|_| is_typed)) {
            name(wire, wanted, is_typed);
        }
        if !payload.tail || is_tail(kind) {
            self.event(wire, kind, object, delta, payload, &mut notes)?;
        }
        notes.tell(wire)
    }

    fn event<'a>(
        &mut self,
        wire: &mut Wire<'_, '_>,
        kind: &str,
        object: &Object<'a>,
        delta: Option<&Object<'a>>,
        payload: Payload<'a>,
        notes: &mut Notes<'a>,
    ) -> Step {
        let extra = |object: &Object<'a>| rest(&object.members, &FACTS.event_fields);
        match kind {
            "content_block_delta" => {
                let Some(delta) = delta else {
                    let at = Pointer::ROOT.member("delta");
                    if let Some(raw) = object.get("delta") {
                        notes.unless_null(raw, at);
                    }
                    return Ok(());
                };
                self.begin(wire)?;
                let block = Block {
                    object: delta,
                    at: Pointer::ROOT.member("delta"),
                    event: payload.event,
                    extra: extra(object),
                };
                let index = self.blocks.index(wire, object)?;
                if self
                    .blocks
                    .delta(wire, &block, index, payload.tail, notes)?
                {
                    return Ok(());
                }
                unknown(wire, payload)
            }
            "content_block_start" => {
                let inner = notes.an_object(&object.members, Pointer::ROOT, "content_block");
                let Some(inner) = inner else {
                    wire.out.touch("not_opened"); // readers have something at its index
                    return Ok(());
                };
                self.begin(wire)?;
                self.streamed = true;
                let block = Block {
                    object: &inner,
                    at: Pointer::ROOT.member("content_block"),
                    event: payload.event,
                    extra: extra(object),
                };
                let index = self.blocks.index(wire, object)?;
                self.envelopes.forget();
                self.blocks.start(wire, &block, index, notes)
            }
            "content_block_stop" => {
                let index = self.blocks.index(wire, object)?;
                self.envelopes.forget(); // they are of a block that is over
                self.blocks.stop(wire, index, &extra(object))
            }
            "message_delta" => self.message_delta(wire, object, notes),
            "message_start" => self.message_start(wire, object, payload, notes),
            "message_stop" => {
                self.begin(wire)?;
                self.blocks.end(wire)?;
                leave(wire, &extra(object))?;
                notes.tell(wire)?;
                self.done(wire)
            }
            "message" => self.whole(wire, object, payload, notes),
            "ping" => Ok(()),
            _ => unknown(wire, payload),
        }
    }

    /// Blocks may come without a message_start. Also a message that never says anything has to end.
    #[inline]
    fn begin(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if self.started {
            return Ok(());
        }
        wire.out.miss_opening(); // readers have no message without it, or raise
        self.start(wire, &Leftovers::default(), None, None)
    }

    fn start(
        &mut self,
        wire: &mut Wire<'_, '_>,
        extra: &Leftovers<'_>,
        id: Option<&str>,
        model: Option<&str>,
    ) -> Step {
        self.started = true;
        self.id = id.map(str::to_owned);
        let Wire { assembler, out } = wire;
        assembler.started(out, id, model, None, extra.text().as_deref())?;
        assembler.text(out, 0, Text::default(), None)
    }

    fn done(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.blocks.finish(wire)?;
        wire.assembler.done(wire.out)?;
        self.ended = true;
        Ok(())
    }
}

impl Decode for Anthropic {
    fn decode(
        &mut self,
        wire: &mut Wire<'_, '_>,
        document: &Document<'_>,
        payload: Payload<'_>,
    ) -> Step {
        match document {
            Document::Object(object) => {
                if self.swift(wire, object, payload)? {
                    return Ok(());
                }
                let delta = object.object("delta");
                self.object(wire, object, delta.as_ref(), payload)
            }
            Document::Other(raw) if payload.event == Some("error") => {
                tell_wide_integer(wire, *raw)?;
                self.flush(wire)?;
                Notes::default().complain(wire, &Complaint::of_value(*raw), payload)
            }
            Document::Other(_) => unknown(wire, payload),
        }
    }

    #[inline]
    fn known(&mut self, wire: &mut Wire<'_, '_>, incoming: Incoming<'_>) -> Result<usize, Fault> {
        if !self.blocks.is_plain() {
            return Ok(0);
        }
        let Some(found) = self.envelopes.find(incoming) else {
            return Ok(0);
        };
        wire.out.further(found.before);
        self.envelopes.act(wire, &found)?;
        Ok(found.length)
    }

    fn row(&mut self, wire: &mut Wire<'_, '_>, lines: &[u8], most: usize) -> Taken {
        if !self.blocks.is_plain() {
            return Taken::default();
        }
        self.envelopes.row(wire, lines, most, None, |_, _| {})
    }

    /// `[DONE]`, which some gateways send: the end where the message has said why it ends, else nothing.
    fn marker(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        if self.reason {
            wire.out.touch("done_marker"); // readers wait for message_stop
            return self.done(wire);
        }
        Ok(())
    }

    fn text(&mut self, wire: &mut Wire<'_, '_>, payload: Payload<'_>) -> Step {
        self.flush(wire)?;
        Notes::default().complain(wire, &Complaint::of_text(payload.text), payload)
    }

    fn flush(&mut self, wire: &mut Wire<'_, '_>) -> Step {
        self.blocks.finish(wire)?;
        if !self.reason && !self.blocks.ends_with_answer() {
            // The provider was still at work: that is cut, whatever a policy assumes of a missing end.
            wire.assembler.cut();
        }
        Ok(())
    }

    fn ended(&self) -> bool {
        self.ended
    }
}

/// The event needs another name, and more than that where its data is not as readers want it.
#[cold]
fn name(wire: &mut Wire<'_, '_>, name: &'static str, is_good: bool) {
    if is_good {
        wire.out.rename(name);
    } else {
        wire.out.touch("event_name");
    }
}

/// Whether a key may stand twice in what is read: false is certain.
#[inline]
fn may_repeat_inside(members: &[Member<'_>], delta: Option<&Object<'_>>) -> bool {
    let unread = |member: &Member<'_>| {
        matches!(member.raw.kind, Kind::Object | Kind::Array)
            && !member.key.is("delta")
            && !member.key.is("usage")
    };
    may_repeat(members)
        || delta.is_some_and(|delta| may_repeat(&delta.members))
        || members.iter().any(unread)
}

/// What no event carries goes to the end of the answer.
fn leave(wire: &mut Wire<'_, '_>, extra: &Leftovers<'_>) -> Step {
    match extra.text() {
        Some(metadata) => wire.assembler.choice_metadata(wire.out, 0, &metadata),
        None => Ok(()),
    }
}
