//! Checks two invariants of every input: the result does not depend on how the input is split, and events follow their
//! lifecycle.

use std::collections::HashMap;
use std::fmt::Write as _;

use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::event::{Event, Sink};
use streamweld_core::{Config, Dialect, Parser};

/// The events of a stream as text.
#[derive(Default)]
pub struct Log(pub String);

impl Sink for Log {
    fn event(&mut self, event: &Event<'_>) {
        let _ = writeln!(self.0, "{event:?}");
    }
}

/// Reads a stream and returns its events, fault, diagnostics, snapshot and completeness as text.
pub fn transcript(
    dialect: Option<Dialect>,
    config: &Config,
    pieces: &[&[u8]],
    end: InputEnd,
    caching: bool,
) -> String {
    let mut parser = Parser::with_caching(dialect, config.clone(), caching);
    let mut log = Log::default();
    let result = pieces
        .iter()
        .try_for_each(|piece| parser.feed(piece, &mut log));
    if let Err(fault) = result.and_then(|()| parser.close(end, &mut log)) {
        let _ = writeln!(log.0, "{fault:?}");
    }
    parser.snapshot(&mut log);
    let _ = writeln!(
        log.0,
        "{:?} {:?} {:?}",
        parser.dialect(),
        parser.diagnostics(),
        parser.completeness()
    );
    log.0
}

/// Panics at the first line that differs between two transcripts.
pub fn assert_same(what: &str, left: &str, right: &str) {
    if left == right {
        return;
    }
    let mut pairs = left.lines().zip(right.lines());
    let (a, b) = pairs
        .find(|(a, b)| a != b)
        .unwrap_or(("end of one side", "end of one side"));
    panic!("{what}\n  {a}\n  {b}");
}

/// A part that a stream has opened.
#[derive(Default)]
struct Part {
    kind: &'static str,
    closed: bool,
}

/// Checks events one by one, and panics at the first one that violates the lifecycle.
#[derive(Default)]
pub struct Lifecycle {
    parts: HashMap<u32, Part>,
    /// Finished choices, and their finish reasons.
    pub finished: Vec<(i32, &'static str)>,
    /// Id, name and arguments of each complete call.
    pub calls: Vec<(String, String, String)>,
    pub text: String,
}

impl Lifecycle {
    fn open(&mut self, part: u32, kind: &'static str) {
        let new = Part {
            kind,
            ..Part::default()
        };
        assert!(
            self.parts.insert(part, new).is_none(),
            "part {part} opened twice"
        );
    }

    fn grow(&mut self, part: u32, kind: &'static str) {
        let open = self
            .parts
            .get(&part)
            .expect("a delta of a part that was never opened");
        assert_eq!(open.kind, kind, "part {part} changed its kind");
        assert!(!open.closed, "a delta of part {part} after its end");
    }

    fn close(&mut self, part: u32, kind: &'static str) {
        let open = self
            .parts
            .get_mut(&part)
            .expect("the end of a part that was never opened");
        assert_eq!(open.kind, kind, "part {part} changed its kind");
        assert!(
            !std::mem::replace(&mut open.closed, true),
            "part {part} ended twice"
        );
    }
}

impl Sink for Lifecycle {
    fn event(&mut self, event: &Event<'_>) {
        match event {
            Event::TextStarted(opened) => self.open(opened.part, "text"),
            Event::TextDelta(delta) => {
                self.text.push_str(delta.text);
                self.grow(delta.part, "text");
            }
            Event::TextDone { part, .. } => self.close(*part, "text"),
            Event::ReasoningStarted { part, .. } => self.open(*part, "reasoning"),
            Event::ReasoningDelta(delta) => self.grow(delta.part, "reasoning"),
            Event::ReasoningDone { part, .. } => self.close(*part, "reasoning"),
            Event::RefusalStarted(mark) => self.open(mark.part, "refusal"),
            Event::RefusalDelta(delta) => self.grow(delta.part, "refusal"),
            Event::RefusalDone(delta) => self.close(delta.part, "refusal"),
            Event::ToolCallStarted { part, .. } => self.open(*part, "call"),
            Event::ToolCallDelta(delta) => self.grow(delta.part, "call"),
            Event::ToolCallReset(mark) => self.grow(mark.part, "call"),
            Event::ToolCallRetracted(mark) => self.close(mark.part, "call"),
            Event::ToolCall {
                part,
                call_id,
                name,
                arguments,
                state,
                custom,
                ..
            } => {
                self.close(*part, "call");
                if *state == "complete" && !custom {
                    let value = serde_json::from_str::<serde_json::Value>(arguments);
                    // serde_json rejects lone surrogates and numbers beyond the range of floats, but arguments may
                    // contain them as sent.
                    let known = |error: &serde_json::Error| {
                        let text = error.to_string();
                        ["surrogate", "out of range", "escape", "recursion"]
                            .iter()
                            .any(|known| text.contains(known))
                    };
                    match value {
                        Ok(value) => assert!(
                            value.is_object(),
                            "complete arguments that are not an object: {arguments}"
                        ),
                        Err(error) => assert!(
                            known(&error),
                            "complete arguments that are not JSON: {arguments}"
                        ),
                    }
                }
                if *state == "complete" {
                    assert!(!name.is_empty(), "a complete call without a name");
                    self.calls.push((
                        (*call_id).to_owned(),
                        (*name).to_owned(),
                        (*arguments).to_owned(),
                    ));
                }
            }
            Event::Finished { choice, reason, .. } => {
                let again = self.finished.iter().any(|(other, _)| other == choice);
                assert!(!again, "choice {choice} finished twice");
                self.finished.push((*choice, *reason));
            }
            _ => {}
        }
    }
}
