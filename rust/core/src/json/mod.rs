//! The JSON that streamweld accepts: RFC 8259, nested at most 128 levels deep, without numbers that overflow to
//! infinity. The module `automaton` validates incrementally, `scan` is a validating pull scanner, `text` decodes
//! strings, and `members` finds the members of scanned values.

pub(crate) mod amount;
pub mod automaton;
pub(crate) mod duplicate_keys;
pub(crate) mod escape;
pub(crate) mod extra_fields;
pub(crate) mod long_lists;
pub(crate) mod members;
pub(crate) mod number;
pub mod partial;
pub mod scan;
pub mod text;
pub(crate) mod token;
pub mod validation;
pub mod value;

pub use crate::json::automaton::Automaton;
pub use crate::json::scan::Scanner;
pub use crate::json::text::Surrogates;
pub use crate::json::text::Text;
pub use crate::json::text::compact;
pub use crate::json::text::write_string;
pub use crate::json::validation::Problem;
pub use crate::json::validation::Root;
pub use crate::json::validation::Status;
pub use crate::json::value::Key;
pub use crate::json::value::Kind;
pub use crate::json::value::Number;
pub use crate::json::value::Raw;
pub use crate::json::value::Scan;
pub use crate::json::value::ScanError;
pub use crate::json::value::Value;

/// Maximum nesting depth of any JSON text.
pub const MAX_DEPTH: u32 = 128;
