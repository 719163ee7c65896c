//! Maps the finish reasons of all dialects, in any spelling, to the finish reasons of streamweld.
//!
//! Gateways forward the finish reasons of their upstream API, sometimes in capitals or camel case. A reason is looked
//! up in three steps: in the table of its dialect with the exact spelling, in the same table without regard to case and
//! separators, and in the tables of the other dialects. A reason with a detail, such as `content_filter: RECITATION`,
//! is first looked up as a whole, and then without the detail.

use crate::model::spec;
use serde_json::Map;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Maximum length, in bytes, of a finish reason that is looked up without regard to case and separators.
const LONGEST: usize = 64;

type Table = &'static Map<String, Value>;

/// The table of finish reasons of each dialect.
static TABLES: LazyLock<BTreeMap<&'static str, Table>> = LazyLock::new(|| {
    let dialects = spec::dialects().as_object().into_iter().flatten();
    let tables = dialects.filter_map(|(name, facts)| {
        let table = facts.get("finish")?.as_object()?;
        Some((name.as_str(), table))
    });
    tables.collect()
});

/// For each dialect, the finish reasons of all dialects in lower case and without separators. The reasons of the
/// dialect itself take precedence. The reasons of the other dialects are added in the order of the dialect names.
static FOLDED: LazyLock<HashMap<&'static str, HashMap<String, &'static str>>> =
    LazyLock::new(|| {
        let folded = TABLES.iter().map(|(dialect, own)| {
            let others = TABLES.iter().filter(|(name, _)| *name != dialect);
            let tables = [*own].into_iter().chain(others.map(|(_, table)| *table));
            let mut words = HashMap::new();
            for (word, means) in tables.flatten() {
                if let Some(means) = means.as_str() {
                    words.entry(fold(word)).or_insert(means);
                }
            }
            (*dialect, words)
        });
        folded.collect()
    });

/// Returns the meaning of the finish reason, or `None` if no table contains it. The meaning "natural" is a normal end,
/// which becomes `tool_calls` if there are calls and `stop` otherwise.
pub(crate) fn meaning(dialect: &str, raw: &str) -> Option<&'static str> {
    let mut known = TABLES.get(dialect)?.get(raw).and_then(Value::as_str);
    if known.is_none() && raw.len() <= LONGEST && raw.is_ascii() {
        known = FOLDED.get(dialect)?.get(&fold(raw)).copied();
    }
    let Some((reason, _)) = raw.split_once(':').filter(|_| known.is_none()) else {
        return known;
    };
    // A reason that means success is not used without its detail, because the detail may contradict the reason.
    meaning(dialect, reason).filter(|means| !["stop", "tool_calls", "natural"].contains(means))
}

fn fold(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
