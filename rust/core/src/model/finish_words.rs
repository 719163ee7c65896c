//! What a finish reason means, in the word of any dialect and however it is written.
//!
//! Gateways pass on the words of the API behind them, in capitals or in camel case. A dialect's own table holds first, as it
//! is written there; then the same without regard to case and separators; then the words of the other dialects.

use crate::model::spec;
use serde_json::Map;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::LazyLock;

/// No word has more bytes.
const LONGEST: usize = 64;

type Table = &'static Map<String, Value>;

/// By dialect.
static TABLES: LazyLock<BTreeMap<&'static str, Table>> = LazyLock::new(|| {
    let dialects = spec::dialects().as_object().into_iter().flatten();
    let tables = dialects.filter_map(|(name, facts)| {
        let table = facts.get("finish")?.as_object()?;
        Some((name.as_str(), table))
    });
    tables.collect()
});

/// By dialect: all words without case and separators. The dialect's own go first, then those of the others by name.
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

/// What the reason means. `None`: no table has it. "natural": a word for every end that nobody forced.
pub(crate) fn meaning(dialect: &str, raw: &str) -> Option<&'static str> {
    let known = TABLES.get(dialect)?.get(raw).and_then(Value::as_str);
    if known.is_some() || raw.len() > LONGEST || !raw.is_ascii() {
        return known;
    }
    FOLDED.get(dialect)?.get(&fold(raw)).copied()
}

fn fold(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
