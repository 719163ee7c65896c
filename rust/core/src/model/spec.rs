//! Reads the data files `_spec/*.json`, which are compiled into the binary. Both backends use the same files.

use serde_json::Map;
use serde_json::Value;
use std::fmt;
use std::sync::LazyLock;

static EMPTY: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

macro_rules! file {
    ($name:literal) => {
        LazyLock::new(|| {
            let text = include_str!(concat!("../../../../python/streamweld/_spec/", $name));
            // The default is never used, because the tests below fail if a file cannot be parsed.
            serde_json::from_str(text).unwrap_or_default()
        })
    };
}

static LIMITS: LazyLock<Value> = file!("limits.json");
static EVENTS: LazyLock<Value> = file!("events.json");
static DIALECTS: LazyLock<Value> = file!("dialects.json");
static DIAGNOSTICS: LazyLock<Value> = file!("diagnostics.json");
static CONVERSIONS: LazyLock<Value> = file!("conversions.json");
static USAGE: LazyLock<Value> = file!("usage.json");

fn object(value: &'static Value, key: &str) -> &'static Map<String, Value> {
    value.get(key).and_then(Value::as_object).unwrap_or(&EMPTY)
}

/// Returns the default limits by name. `null` disables a limit.
pub fn limits() -> &'static Map<String, Value> {
    object(&LIMITS, "limits")
}

/// Returns the fields of each event class, by class name.
pub fn events() -> &'static Map<String, Value> {
    object(&EVENTS, "events")
}

/// Returns the contents of `_spec/dialects.json`: `detect`, and one member for each dialect.
pub fn dialects() -> &'static Value {
    &DIALECTS
}

/// Returns the value that a dialect has for a key, or `None` if the dialect or the key is unknown.
pub(crate) fn fact(dialect: &str, key: &str) -> Option<&'static Value> {
    DIALECTS.get(dialect)?.get(key)
}

/// Returns the strings in a JSON array. The result is empty if the value is not an array.
pub(crate) fn words(list: Option<&'static Value>) -> Vec<&'static str> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

/// Returns the data of each diagnostic code, in the order of the file.
pub fn diagnostics() -> &'static Map<String, Value> {
    object(&DIAGNOSTICS, "codes")
}

/// Returns the value of a key in `_spec/conversions.json`, such as finish words, usage conventions, faults or losses.
pub(crate) fn conversion(key: &str) -> Option<&'static Value> {
    CONVERSIONS.get(key)
}

/// Returns the usage shape of each dialect, by dialect name.
pub(crate) fn usage_dialects() -> &'static Map<String, Value> {
    object(&USAGE, "dialects")
}

/// Returns the meaning of each member in a usage object of this shape.
pub(crate) fn usage_shape(name: &str) -> Option<&'static Value> {
    USAGE.get("shapes")?.get(name)
}

/// Severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Info,
    Warning,
    Error,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

macro_rules! codes {
    ($($constant:ident = $name:literal,)+) => {
        /// The name of each code. `Code(n)` has the name at position `n`.
        const NAMES: &[&str] = &[$($name),+];

        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Number { $($constant),+ }

        impl Code {
            $(pub const $constant: Code = Code(Number::$constant as u8);)+
        }
    };
}

/// A diagnostic code from `_spec/diagnostics.json`, stored as an index, so that it is cheap to copy and to compare.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Code(u8);

codes! {
    INVALID_UTF8 = "invalid_utf8",
    UNTERMINATED_EVENT = "unterminated_event",
    COMMENT_AS_DATA = "comment_as_data",
    NULL_PAYLOAD = "null_payload",
    STRAY_PAYLOAD = "stray_payload",
    JSON_LINES = "json_lines",
    LINES_JOINED = "lines_joined",
    RECOVERED_TAIL = "recovered_tail",
    FIELDS_IN_DATA = "fields_in_data",
    FIELDS_ON_ONE_LINE = "fields_on_one_line",
    MALFORMED_JSON = "malformed_json",
    DATA_AFTER_DONE = "data_after_done",
    DUPLICATE_KEY = "duplicate_key",
    NUMERIC_OVERFLOW = "numeric_overflow",
    LONE_SURROGATE = "lone_surrogate",
    SHAPE = "shape",
    BODY_NOT_STREAMED = "body_not_streamed",
    INDEX_MISSING = "index_missing",
    INDEX_UNUSABLE = "index_unusable",
    ID_MINTED = "id_minted",
    ID_ABSENT = "id_absent",
    ID_INVALID = "id_invalid",
    NAME_NOT_ASCII = "name_not_ascii",
    UNSTABLE_ID = "unstable_id",
    NAME_JOINED = "name_joined",
    NAME_CONFLICT = "name_conflict",
    NO_NAME = "no_name",
    CALL_PLACEHOLDER = "call_placeholder",
    ARGS_OVERFLOW = "args_overflow",
    ARGS_INVALID = "args_invalid",
    ARGS_CUMULATIVE = "args_cumulative",
    ARGS_REPLAY_DROPPED = "args_replay_dropped",
    ARGS_PLACEHOLDER_REPLACED = "args_placeholder_replaced",
    ARGS_MERGED = "args_merged",
    ARGS_RESTART = "args_restart",
    ARGS_DOUBLED = "args_doubled",
    ARGS_DOUBLE_ENCODED = "args_double_encoded",
    ARGS_STITCHED = "args_stitched",
    ARGS_PAIRED = "args_paired",
    DUP_ID_HEADER_DROPPED = "dup_id_header_dropped",
    LATE_DELTA = "late_delta",
    CONFLICT = "conflict",
    AMBIGUOUS_SAME_INDEX = "ambiguous_same_index",
    AMBIGUOUS_ORPHAN_INDEX = "ambiguous_orphan_index",
    AMBIGUOUS_DUPLICATE_ID = "ambiguous_duplicate_id",
    AMBIGUOUS_EMPTY_HEADER = "ambiguous_empty_header",
    AMBIGUOUS_IDENTICAL_CALL = "ambiguous_identical_call",
    AMBIGUOUS_CUMULATIVE = "ambiguous_cumulative",
    DUPLICATE_PAYLOAD = "duplicate_payload",
    CONTENT_CUMULATIVE = "content_cumulative",
    CONTENT_RESTATED = "content_restated",
    STREAM_RESTARTED = "stream_restarted",
    CHOICES_MERGED = "choices_merged",
    REASONING_REPEATED = "reasoning_repeated",
    ORPHAN_THINK_CLOSE = "orphan_think_close",
    FINISH_REPEATED = "finish_repeated",
    FINISH_MISSING = "finish_missing",
    FINISH_CONTRADICTS = "finish_contradicts",
    FINISH_UNKNOWN = "finish_unknown",
    UPSTREAM_ERROR = "upstream_error",
    TRUNCATED = "truncated",
    NO_TERMINAL_MARKER = "no_terminal_marker",
    TERMINAL_MISSING = "terminal_missing",
    ANNOUNCED_AGAIN = "announced_again",
    ARGS_RESTORED = "args_restored",
    JSON_LINES_BODY = "json_lines_body",
    ARRAY_BODY = "array_body",
    SEQUENCE_REPLAYED = "sequence_replayed",
    SEQUENCE_UNTRUSTED = "sequence_untrusted",
    MESSAGE_REPEATED = "message_repeated",
    BLOCK_LEFT_OPEN = "block_left_open",
    OTHER_DIALECT = "other_dialect",
    NOTES_LEFT_OUT = "notes_left_out",
    NOT_CARRIED = "not_carried",
    REWRITTEN = "rewritten",
    TEXT_CALL_SEEN = "text_call_seen",
    TEXT_CALL_PROMOTED = "text_call_promoted",
    TEXT_CALL_DUPLICATE = "text_call_duplicate",
    TEXT_CALL_REFUSED = "text_call_refused",
}

/// The entry of one code in `_spec/diagnostics.json`.
#[derive(Clone, Copy, Debug)]
struct Row {
    severity: Severity,
    raises: Option<&'static str>,
    skippable: bool,
    mends: Option<&'static str>,
    text: &'static str,
    entry: Option<&'static Map<String, Value>>,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| NAMES.iter().map(|name| row(name)).collect());

fn row(name: &str) -> Row {
    let entry = diagnostics().get(name).and_then(Value::as_object);
    let text = |key: &str| {
        entry
            .and_then(|entry| entry.get(key))
            .and_then(Value::as_str)
    };
    Row {
        severity: match text("severity") {
            Some("info") => Severity::Info,
            Some("warning") => Severity::Warning,
            _ => Severity::Error,
        },
        raises: text("raises"),
        skippable: entry
            .and_then(|entry| entry.get("skippable"))
            .and_then(Value::as_bool)
            == Some(true),
        mends: text("mends"),
        text: text("text").unwrap_or_default(),
        entry,
    }
}

/// The entry for a code that is not in the table. This entry is never used, because every `Code` has an entry.
const UNLISTED: Row = Row {
    severity: Severity::Error,
    raises: None,
    skippable: false,
    mends: None,
    text: "",
    entry: None,
};

impl Code {
    /// The number of codes. A table with one entry per code has this length.
    pub const COUNT: usize = NAMES.len();

    /// Returns all codes, in the order of `_spec/diagnostics.json`.
    pub fn all() -> impl Iterator<Item = Code> {
        (0..=u8::MAX).take(Code::COUNT).map(Code)
    }

    /// Returns the code with this name, or `None`.
    pub fn from_name(name: &str) -> Option<Code> {
        Code::all().find(|code| code.name() == name)
    }

    /// Returns the position of this code in a table with one entry per code. The position is always less than `COUNT`.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    pub fn name(self) -> &'static str {
        NAMES.get(self.index()).copied().unwrap_or_default()
    }

    pub fn severity(self) -> Severity {
        self.row().severity
    }

    /// Returns the name of the Python exception for this code. A code with severity `info` has no separate exception.
    /// If a policy raises a code with severity `info`, the base class `StreamError` is used.
    pub fn raises(self) -> &'static str {
        self.row().raises.unwrap_or("StreamError")
    }

    /// Returns true if a policy may drop the piece that the diagnostic is about.
    pub fn skippable(self) -> bool {
        self.row().skippable
    }

    /// Returns the action of repair if this code is reported. For `payload`, repair drops the payload. For `stream`,
    /// repair rewrites the stream from that point on. For `None`, the payload passes through unchanged.
    pub(crate) fn mends(self) -> Option<&'static str> {
        self.row().mends
    }

    /// Returns the message of the code from `_spec/diagnostics.json`.
    pub fn text(self) -> &'static str {
        self.row().text
    }

    /// Returns the action that `_spec/diagnostics.json` defines for this code and base policy. If the result is `None`,
    /// the file defines no action, and the general rule of the base policy applies.
    pub(crate) fn action_of(self, base: &str) -> Option<&'static str> {
        self.row().entry?.get("actions")?.get(base)?.as_str()
    }

    fn row(self) -> &'static Row {
        ROWS.get(self.index()).unwrap_or(&UNLISTED)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_read() {
        assert!(!limits().is_empty());
        assert!(!events().is_empty());
        assert!(dialects().get("detect").is_some());
        assert!(!diagnostics().is_empty());
        assert!(conversion("losses").is_some_and(Value::is_array));
    }

    #[test]
    fn codes_and_file_are_the_same_set() {
        let here: Vec<&str> = Code::all().map(Code::name).collect();
        let there: Vec<&str> = diagnostics().keys().map(String::as_str).collect();
        assert_eq!(here, there);
    }

    #[test]
    fn codes_have_the_data_of_the_file() {
        assert_eq!(Code::INVALID_UTF8.severity(), Severity::Warning);
        assert_eq!(Code::INVALID_UTF8.raises(), "FramingError");
        assert_eq!(Code::NULL_PAYLOAD.severity(), Severity::Info);
        assert_eq!(Code::NULL_PAYLOAD.raises(), "StreamError");
        assert!(Code::MALFORMED_JSON.skippable());
        assert!(!Code::TRUNCATED.skippable());
        assert_eq!(Code::from_name("truncated"), Some(Code::TRUNCATED));
        assert_eq!(Code::from_name("Truncated"), None);
        assert_eq!(format!("{:?}", Code::TRUNCATED), "truncated");
        assert!(
            Code::TRUNCATED
                .text()
                .contains("before the response was complete")
        );
    }
}
