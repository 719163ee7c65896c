//! Translates finish reasons from any dialect and in any spelling.
//!
//! Gateways forward the finish reasons of their upstream API, sometimes in capitals or camel case. A reason is looked
//! up in the dialect's own table with its exact spelling, then in the same table ignoring case and separators, then in
//! the tables of the other dialects. A reason with a detail (`content_filter: RECITATION`) is looked up as a whole, then
//! without the detail.

use crate::model::spec;
use serde_json::Map;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Maximum length in bytes of a word that is looked up in any spelling.
const LONGEST: usize = 64;

type Table = &'static Map<String, Value>;

/// Tables by dialect.
static TABLES: LazyLock<BTreeMap<&'static str, Table>> = LazyLock::new(|| {
    let dialects = spec::dialects().as_object().into_iter().flatten();
    let tables = dialects.filter_map(|(name, facts)| {
        let table = facts.get("finish")?.as_object()?;
        Some((name.as_str(), table))
    });
    tables.collect()
});

/// For each dialect: all finish reasons, without case and separators. The dialect's own reasons take precedence; the
/// others follow in order of dialect name.
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

/// Returns the meaning of the finish reason, or `None` if no table contains it. "natural" stands for a normal end:
/// `stop`, or `tool_calls` if there are calls.
pub(crate) fn meaning(dialect: &str, raw: &str) -> Option<&'static str> {
    let mut known = TABLES.get(dialect)?.get(raw).and_then(Value::as_str);
    if known.is_none() && raw.len() <= LONGEST && raw.is_ascii() {
        known = FOLDED.get(dialect)?.get(&fold(raw)).copied();
    }
    let Some((reason, _)) = raw.split_once(':').filter(|_| known.is_none()) else {
        return known;
    };
    // A detail may contradict a reason that means success, but no other.
    meaning(dialect, reason).filter(|means| !["stop", "tool_calls", "natural"].contains(means))
}

fn fold(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
