//! JSON as streamweld accepts it (RFC 8259, depth 128, no infinite numbers): a verdict kept byte by byte
//! (`automaton`), a validating pull scanner (`scan`), string text (`text`), and members of what was scanned (`members`).

pub(crate) mod amount;
pub mod automaton;
mod escape;
pub(crate) mod members;
mod number;
pub(crate) mod repeats;
pub mod scan;
pub mod text;
mod token;
pub mod value;
pub mod verdict;

pub use automaton::Automaton;
pub use scan::Scanner;
pub use text::{Surrogates, Text, compact, write_string};
pub(crate) use token::{plain_end, string_end};
pub use value::{Key, Kind, Number, Raw, Scan, ScanError, Value};
pub use verdict::{Problem, Root, Status};

/// The deepest nesting of any JSON text.
pub const MAX_DEPTH: u32 = 128;
