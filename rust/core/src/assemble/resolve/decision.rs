//! Types for routing a tool-call fragment. `Incoming` is the fragment; `Decision` is the result of
//! `by_evidence::decide`, which `route_fragment` carries out.

use crate::model::spec::Code;

/// What to do with the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The fragment belongs to the call.
    Join,
    /// The fragment opens a new call.
    New,
    /// The fragment addresses the call, but its payload is a replay.
    Drop,
    /// The fragment addresses the call and may be a replay of it, so its payload is held back.
    Replay,
    /// The fragment does not belong to any call.
    Ignore,
}

/// A normalized fragment: its index is usable or `None`, and its payload is bytes.
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    pub index: Option<i64>,
    pub id: Option<&'a str>,
    pub name: Option<&'a str>,
    pub payload: &'a [u8],
    pub is_object: bool,
    pub custom: bool,
    pub position: u32,
    pub array_len: u32,
}

impl Incoming<'_> {
    pub fn starts_object(&self) -> bool {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.payload.iter().find(|byte| !blank(byte)) == Some(&b'{')
    }
}

/// The decision on one fragment: the rule, the call (unless a new one opens), and what to report.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    pub rule: &'static str,
    pub call: Option<usize>,
    pub resolution: Resolution,
    /// Code of the ambiguity for which a default was applied.
    pub note: Option<Code>,
    pub tentative: bool,
    /// The call that was empty when the new call took over its index (AM1).
    pub displaced_empty: Option<usize>,
}

impl Decision {
    pub fn new(rule: &'static str) -> Decision {
        Decision {
            rule,
            call: None,
            resolution: Resolution::New,
            note: None,
            tentative: false,
            displaced_empty: None,
        }
    }

    pub fn of(rule: &'static str, call: usize, resolution: Resolution) -> Decision {
        Decision {
            call: Some(call),
            resolution,
            ..Decision::new(rule)
        }
    }

    pub fn join(rule: &'static str, call: usize) -> Decision {
        Decision::of(rule, call, Resolution::Join)
    }

    pub fn noting(self, note: Option<Code>) -> Decision {
        Decision { note, ..self }
    }
}
