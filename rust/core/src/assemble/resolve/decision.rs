//! The words between `by_evidence`, which decides, and `route_fragment`, which carries out: a fragment read once, and a verdict on it.

use crate::model::spec::Code;

/// What to do with the fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It belongs to the call.
    Join,
    /// It opens a call.
    New,
    /// It addresses the call, but its payload is a replay.
    Drop,
    /// It addresses the call, and may be a replay of it.
    Shadow,
    /// There is nothing it could belong to.
    Ignore,
}

/// One fragment, read once: its index is usable or `None`, its payload is bytes.
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

/// The verdict on one fragment: the rule, the call if it is not a new one, and what is to be said.
#[derive(Clone, Copy, Debug)]
pub struct Decision {
    pub rule: &'static str,
    pub call: Option<usize>,
    pub deed: Resolution,
    /// The code of the named ambiguity whose default was applied.
    pub note: Option<Code>,
    pub tentative: bool,
    /// The call that a new one displaced while it was still empty.
    pub suspect: Option<usize>,
}

impl Decision {
    pub fn new(rule: &'static str) -> Decision {
        Decision {
            rule,
            call: None,
            deed: Resolution::New,
            note: None,
            tentative: false,
            suspect: None,
        }
    }

    pub fn of(rule: &'static str, call: usize, deed: Resolution) -> Decision {
        Decision {
            call: Some(call),
            deed,
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
