//! Faults: the data of the exceptions that end a stream.
//!
//! A fault contains no message. `streamweld.errors` creates the message from the data.

use crate::model::limits::LimitName;
use crate::model::spec::Code;
use std::ops::Deref;
use std::ops::DerefMut;

/// Maximum number of payload bytes that a fault stores.
pub const RAW_HEAD: usize = 256;

macro_rules! classes {
    ($($variant:ident = $name:literal,)+) => {
        /// The exception class in `streamweld.errors`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Class { $($variant),+ }

        impl Class {
            pub fn name(self) -> &'static str {
                match self { $(Class::$variant => $name),+ }
            }

            pub fn from_name(name: &str) -> Option<Class> {
                match name { $($name => Some(Class::$variant),)+ _ => None }
            }
        }
    };
}

classes! {
    Stream = "StreamError",
    Framing = "FramingError",
    NotAnEventStream = "NotAnEventStream",
    ChunkDecode = "ChunkDecodeError",
    Limit = "LimitExceeded",
    Assembly = "AssemblyError",
    InvalidToolIndex = "InvalidToolIndex",
    ToolCallConflict = "ToolCallConflict",
    OrphanDelta = "OrphanDelta",
    Upstream = "UpstreamError",
    Truncated = "TruncatedStream",
    UnknownDialect = "UnknownDialect",
    Lifecycle = "LifecycleError",
    Internal = "InternalError",
}

/// The place at which a stream was truncated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Where {
    Empty,
    MidEvent,
    MidUtf8,
    MidText,
    MidArguments,
    BetweenEvents,
    /// The transport failed between two events.
    Transport,
}

impl Where {
    pub const ALL: [Where; 7] = [
        Where::Empty,
        Where::MidEvent,
        Where::MidUtf8,
        Where::MidText,
        Where::MidArguments,
        Where::BetweenEvents,
        Where::Transport,
    ];

    pub fn from_name(name: &str) -> Option<Where> {
        Where::ALL
            .into_iter()
            .find(|position| position.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Where::Empty => "empty",
            Where::MidEvent => "mid_event",
            Where::MidUtf8 => "mid_utf8",
            Where::MidText => "mid_text",
            Where::MidArguments => "mid_arguments",
            Where::BetweenEvents => "between_events",
            Where::Transport => "transport",
        }
    }
}

/// The fields that are specific to one exception class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Extra {
    #[default]
    None,
    Limit {
        name: &'static str,
        limit: u64,
        observed: u64,
    },
    Upstream {
        code: Option<String>,
        kind: Option<String>,
        message: String,
        raw: Vec<u8>,
    },
    Truncated {
        position: Where,
        open_items: Vec<u32>,
    },
    Chunk {
        pos: usize,
    },
    UnknownDialect {
        seen: Vec<String>,
        /// The dialect that the caller specified, if it differs from that of the payloads.
        specified: Option<&'static str>,
    },
    NotAnEventStream {
        body_head: Vec<u8>,
        content_type: Option<String>,
    },
}

/// The fields of a fault. `Fault` dereferences to this type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    pub class: Class,
    pub rule: &'static str,
    pub detail: String,
    pub byte_offset: u64,
    pub event_ordinal: u64,
    pub event_type: Option<String>,
    /// The first bytes of the payload. `RAW_HEAD` is the maximum number of these bytes.
    pub raw: Vec<u8>,
    /// True if `at` has set the byte offset and the ordinal.
    pub placed: bool,
    pub extra: Extra,
}

/// The data of the exception that ends a stream. The data is boxed, so that a `Result` on the hot path takes only one
/// word.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<Facts>);

impl Fault {
    /// Creates a fault without a byte offset, ordinal or extra fields.
    pub fn new(class: Class, rule: &'static str) -> Fault {
        Fault(Box::new(Facts {
            class,
            rule,
            detail: String::new(),
            byte_offset: 0,
            event_ordinal: 0,
            event_type: None,
            raw: Vec::new(),
            placed: false,
            extra: Extra::None,
        }))
    }

    /// Creates the fault for a diagnostic that the policy raises. `_spec/diagnostics.json` defines the exception class
    /// of each code.
    pub fn of_code(code: Code, detail: impl Into<String>) -> Fault {
        let class = Class::from_name(code.raises()).unwrap_or(Class::Stream);
        let mut fault = Fault::new(class, code.name());
        fault.detail = detail.into();
        fault
    }

    /// Creates the fault for an exceeded limit. `observed` is always limit + 1, so that it does not depend on the chunk
    /// sizes.
    pub fn limit(name: LimitName, limit: u64) -> Fault {
        let mut fault = Fault::new(Class::Limit, name.rule());
        fault.extra = Extra::Limit {
            name: name.name(),
            limit,
            observed: limit.saturating_add(1),
        };
        fault
    }

    /// Creates the fault for an event whose data is not JSON. `pos` is a byte offset in the data.
    pub fn chunk(pos: usize) -> Fault {
        let mut fault = Fault::new(Class::ChunkDecode, Code::MALFORMED_JSON.name());
        fault.extra = Extra::Chunk { pos };
        fault
    }

    /// Creates the fault for an error that the gateway sent.
    pub fn upstream(
        code: Option<String>,
        kind: Option<String>,
        message: String,
        raw: Vec<u8>,
    ) -> Fault {
        let mut fault = Fault::new(Class::Upstream, Code::UPSTREAM_ERROR.name());
        fault.extra = Extra::Upstream {
            code,
            kind,
            message,
            raw,
        };
        fault
    }

    /// Creates the fault for input that ended too early. `code` identifies the diagnostic that the policy turned into
    /// an exception.
    pub fn truncated(code: Code, position: Where, open_items: Vec<u32>) -> Fault {
        let mut fault = Fault::new(Class::Truncated, code.name());
        fault.detail = position.name().to_owned();
        fault.extra = Extra::Truncated {
            position,
            open_items,
        };
        fault
    }

    /// Creates the fault for input lines from which the caller removed the line endings.
    pub fn line_ends_missing() -> Fault {
        Fault::new(Class::Framing, "line_ends_missing")
    }

    pub fn unknown_dialect(seen: Vec<String>) -> Fault {
        let mut fault = Fault::new(Class::UnknownDialect, "unknown_dialect");
        fault.extra = Extra::UnknownDialect {
            seen,
            specified: None,
        };
        fault
    }

    /// Creates the fault for payloads in a dialect other than the one that the caller specified.
    pub fn other_dialect(specified: &'static str, found: &str, seen: Vec<String>) -> Fault {
        let mut fault = Fault::new(Class::UnknownDialect, "other_dialect");
        found.clone_into(&mut fault.detail);
        fault.extra = Extra::UnknownDialect {
            seen,
            specified: Some(specified),
        };
        fault
    }

    pub fn not_an_event_stream(body_head: Vec<u8>, content_type: Option<String>) -> Fault {
        let mut fault = Fault::new(Class::NotAnEventStream, "not_an_event_stream");
        fault.extra = Extra::NotAnEventStream {
            body_head,
            content_type,
        };
        fault
    }

    /// Sets the byte offset and ordinal of the payload.
    #[must_use]
    pub fn at(mut self, byte_offset: u64, event_ordinal: u64) -> Fault {
        self.byte_offset = byte_offset;
        self.event_ordinal = event_ordinal;
        self.placed = true;
        self
    }

    /// Stores the first bytes of the payload.
    #[must_use]
    pub fn with_raw(mut self, payload: &[u8]) -> Fault {
        self.raw = payload.iter().take(RAW_HEAD).copied().collect();
        self
    }
}

impl Deref for Fault {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut Facts {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_of_the_file_is_known() {
        for code in Code::all() {
            assert!(Class::from_name(code.raises()).is_some(), "{code}");
        }
    }

    #[test]
    fn an_exceeded_limit_observes_one_more_than_the_limit() {
        let fault = Fault::limit(LimitName::max_event_bytes, 10).at(7, 2);
        assert_eq!(fault.rule, "limit_max_event_bytes");
        assert_eq!((fault.byte_offset, fault.event_ordinal), (7, 2));
        assert_eq!(
            fault.extra,
            Extra::Limit {
                name: "max_event_bytes",
                limit: 10,
                observed: 11
            }
        );
    }

    #[test]
    fn raw_is_a_head() {
        assert_eq!(Fault::chunk(3).with_raw(&[b'x'; 1000]).raw.len(), RAW_HEAD);
        assert_eq!(size_of::<Result<(), Fault>>(), size_of::<usize>());
    }
}
