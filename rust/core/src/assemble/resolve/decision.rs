//! The input and output of `by_evidence::decide`: a tool-call fragment (`Incoming`), and the decision about the call
//! that the fragment belongs to (`Decision`).

use crate::model::spec::Code;

/// What happens to the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// The fragment belongs to the call.
    Join,
    /// The fragment opens a new call.
    New,
    /// The fragment belongs to the call, but its payload only repeats the call's arguments and is dropped.
    Drop,
    /// The fragment belongs to the call, and its payload may repeat the call's arguments, so it is held back.
    Replay,
    /// The fragment belongs to no call.
    Ignore,
}

/// A tool-call fragment whose index is usable or `None`, and whose argument text is bytes.
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

/// The decision on one fragment: the rule that applied, the call (`None` if a new call opens), and what to report.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    pub rule: &'static str,
    pub call: Option<usize>,
    pub resolution: Resolution,
    /// The code of an ambiguity to report, because the stream does not determine the decision.
    pub note: Option<Code>,
    pub tentative: bool,
    /// AM1: the call without arguments whose index the new call took.
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
