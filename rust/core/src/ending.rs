//! The end of the input: whether an unfinished event can be used, and what was missing.

use crate::delta::Rest;
use crate::fault::{Extra, Fault};
use crate::json::Problem;
use crate::ladder::{Found, MARKER, climb, trim};
use crate::out::Out;
use crate::policy::Base;
use crate::spec::Code;
use crate::sse::{Pending, decode_utf8};
use crate::stage::{Arrival, Stage};

/// The fields of an event stream.
const FIELDS: [&[u8]; 4] = [b"data", b"event", b"id", b"retry"];

type Step = Result<(), Fault>;

impl Stage {
    pub(crate) fn close(&mut self, out: &mut Out<'_>, pending: &Pending<'_>) -> Step {
        let data = pending
            .data
            .filter(|data| !data.is_empty())
            .map(|data| Arrival {
                event: pending.event,
                data,
                offset: pending.data_offset,
                ordinal: pending.ordinal,
                stray: false,
            });
        let stray = pending
            .stray
            .filter(|data| !data.is_empty())
            .map(|data| Arrival {
                event: b"",
                data,
                offset: pending.stray_offset,
                ordinal: pending.ordinal,
                stray: true,
            });
        let begun = data.is_some() || stray.is_some();
        let mut cut = pending.open && !begun;
        let mut ordinal = pending.ordinal;
        for arrival in [data, stray].into_iter().flatten() {
            let arrival = Arrival { ordinal, ..arrival };
            match self
                .last_one(out, arrival)
                .map_err(|fault| arrival.place(fault))?
            {
                Last::Used => ordinal += 1,
                Last::Nothing => {}
                Last::Cut => cut = true,
            }
        }
        out.at(pending.offset, ordinal);
        self.end(out, pending, begun, cut)
            .map_err(|fault| match fault.extra {
                Extra::NotAnEventStream { .. } => fault,
                _ => fault.at(pending.offset, ordinal),
            })
    }

    /// Uses an event that the input did not finish, if it is whole all the same.
    fn last_one(&mut self, out: &mut Out<'_>, arrival: Arrival<'_>) -> Result<Last, Fault> {
        let (text, _) = decode_utf8(arrival.data);
        let text = trim(&text);
        let event = arrival.event_name();
        let heartbeat = event
            .as_deref()
            .is_some_and(|event| self.is_keep_alive(event));
        if text.is_empty() || text.starts_with(':') || heartbeat {
            return Ok(Last::Nothing);
        }
        if arrival.stray && !self.seen && text.starts_with('<') {
            return Err(self.no_event_stream(out));
        }
        if text != MARKER && !self.done && !self.is_whole(out, arrival.data, text) {
            return Ok(Last::Cut);
        }
        if !arrival.stray && !self.done {
            out.at(arrival.offset, arrival.ordinal);
            out.diagnose(Code::UNTERMINATED_EVENT, None, "")?;
        }
        self.arrival(out, arrival)?;
        Ok(Last::Used)
    }

    fn end(&mut self, out: &mut Out<'_>, pending: &Pending<'_>, begun: bool, cut: bool) -> Step {
        if !self.seen && !begun && is_foreign(&self.head) {
            return Err(self.no_event_stream(out));
        }
        let rest = match (cut, pending.mid_utf8) {
            (true, true) => Rest::MidUtf8,
            (true, false) => Rest::MidEvent,
            (false, _) if !self.seen => Rest::Empty,
            (false, _) => Rest::Nothing,
        };
        self.flush(out)?;
        self.assembler.end(out, rest)
    }

    /// Whether an unfinished event can be read as it is; a broken one is a cut one.
    fn is_whole(&self, out: &Out<'_>, data: &[u8], text: &str) -> bool {
        let lenient = out.config.policy.base != Base::Strict;
        text.starts_with(['{', '['])
            && match climb(data, text, self.reader(out), lenient) {
                // Too deep is too deep, whole or not.
                Found::Broken(error) => error.problem == Problem::TooDeep,
                Found::Text => false,
                _ => true,
            }
    }
}

/// What an unfinished event came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Used,
    /// It says nothing.
    Nothing,
    Cut,
}

/// Whether the beginning of a body has a line that no event stream has.
fn is_foreign(head: &[u8]) -> bool {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r')).peekable();
    while let Some(line) = lines.next() {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        let blank = line
            .iter()
            .all(|byte| byte.is_ascii_whitespace() || *byte == 0x0b);
        if blank || line.first() == Some(&b':') || FIELDS.contains(&name) {
            continue;
        }
        // The last line may be cut inside its field name.
        let cut = lines.peek().is_none() && name.len() == line.len();
        if !(cut && FIELDS.iter().any(|field| field.starts_with(name))) {
            return true;
        }
    }
    false
}
