//! Maps the finish reasons of all dialects, in any spelling, to the finish reasons of streamweld.
//!
//! Gateways forward the finish reasons of their upstream API, sometimes in capitals or camel case. A reason is looked
//! up in three steps: in the table of its dialect with the exact spelling, in the same table without regard to case and
//! separators, and in the tables of the other dialects. A reason with a detail, such as `content_filter: RECITATION`,
//! is first looked up as a whole, and then without the detail.
//!
//! `finish` in `_spec/dialects.json` contains the reasons that clients of the dialect may receive, and `finish_aliases`
//! contains reasons that gateways send instead.

use crate::model::spec;
use serde_json::Map;
use serde_json::Value;
use std::collections::BTreeMap;
use std::collections::HashMap;
use std::sync::LazyLock;

/// Maximum length, in bytes, of a finish reason that is looked up without regard to case and separators.
const LONGEST: usize = 64;

/// Every dialect has a word for these meanings.
const COMMON: [&str; 5] = ["stop", "natural", "length", "tool_calls", "content_filter"];

type Table = &'static Map<String, Value>;

/// The table of finish reasons of each dialect.
static TABLES: LazyLock<BTreeMap<&'static str, Table>> = LazyLock::new(|| tables("finish"));

/// The table of aliases of each dialect that has any.
static ALIASES: LazyLock<BTreeMap<&'static str, Table>> =
    LazyLock::new(|| tables("finish_aliases"));

/// For each dialect, the finish reasons of all dialects in lower case and without separators. The reasons of the
/// dialect itself take precedence. The reasons of the other dialects are added in the order of the dialect names.
static FOLDED: LazyLock<HashMap<&'static str, HashMap<String, &'static str>>> =
    LazyLock::new(|| {
        let folded = TABLES.iter().map(|(dialect, own)| {
            let others = TABLES.iter().filter(|(name, _)| *name != dialect);
            let mut words = HashMap::new();
            let words_of = |(name, table): (&&'static str, &Table)| {
                let aliases = ALIASES.get(name).copied();
                table.iter().chain(aliases.into_iter().flatten())
            };
            for (word, means) in [(dialect, own)]
                .into_iter()
                .chain(others)
                .flat_map(words_of)
            {
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

/// Returns true if clients of the dialect do not know the finish reason, but know another word with its meaning.
///
/// Such a reason comes from another API, such as `tool_use` in Chat Completions, or has another spelling, such as
/// `MAX_TOKENS`. Clients compare the word exactly: a client that waits for `length` would treat a truncated response as
/// complete.
pub(crate) fn is_alias(dialect: &str, raw: &str) -> bool {
    let known = TABLES.get(dialect).is_some_and(|own| own.contains_key(raw));
    !known
        && !raw.contains(':')
        && meaning(dialect, raw).is_some_and(|means| COMMON.contains(&means))
}

fn tables(member: &str) -> BTreeMap<&'static str, Table> {
    let dialects = spec::dialects().as_object().into_iter().flatten();
    let tables = dialects.filter_map(|(name, facts)| {
        let table = facts.get(member)?.as_object()?;
        Some((name.as_str(), table))
    });
    tables.collect()
}

fn fold(word: &str) -> String {
    let letters = word.chars().filter(|c| !matches!(c, '_' | '-' | ' '));
    letters.map(|c| c.to_ascii_lowercase()).collect()
}
