//! Stores the items of tools that the provider of another dialect runs itself. These items have no parts.

use crate::encode::common::writer::Writer;
use crate::model::small_map::Map;
use std::collections::BTreeMap;
use std::collections::VecDeque;

/// The items of one response that tools of the provider created.
#[derive(Debug, Default)]
pub(crate) struct HostedItems {
    /// The output index and the JSON of each finished item.
    pub(crate) finished: Vec<(i64, String)>,
    /// The searches without a result, by output index.
    pub(crate) searches: BTreeMap<i64, WebSearch>,
    /// The output indexes of the searches without a result, by call id, in the order of the calls.
    pub(crate) searches_of_call: Map<String, VecDeque<i64>>,
}

/// A search without a result.
#[derive(Debug)]
pub(crate) struct WebSearch {
    pub(crate) id: String,
    pub(crate) query: String,
}

impl WebSearch {
    /// Returns the item as JSON. `sources` contains the pages as a JSON list without brackets.
    pub(crate) fn item(&self, status: &str, sources: &str) -> String {
        let mut to = Writer::default();
        to.raw("{\"type\":\"web_search_call\",\"id\":")
            .string(&self.id);
        to.raw(",\"status\":\"").raw(status);
        to.raw("\",\"action\":{\"type\":\"search\",\"query\":")
            .string(&self.query)
            .raw(",\"queries\":[")
            .string(&self.query)
            .raw("]");
        if !sources.is_empty() {
            to.raw(",\"sources\":[").raw(sources).raw("]");
        }
        to.raw("}}");
        to.into_text()
    }
}
