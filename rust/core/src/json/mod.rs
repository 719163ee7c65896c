//! JSON as streamweld accepts it (RFC 8259, depth 128, no infinite numbers): a verdict kept byte by byte
//! (`automaton`), a validating pull scanner (`scan`), and string text (`text`).

pub mod automaton;
mod number;
pub mod scan;
pub mod text;

pub use automaton::{Automaton, Problem, Root, Status};
pub use scan::{Key, Kind, Number, Raw, Scan, ScanError, Scanner, Value};
pub use text::{Surrogates, Text, compact, write_string};

/// The deepest nesting of any JSON text.
pub const MAX_DEPTH: u32 = 128;
