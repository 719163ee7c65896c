//! The tools of the request, as the rules ask about them.
//!
//! Plain data, read once from the config; it knows no stage.

use crate::model::config::Config;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use std::collections::HashMap;
use std::collections::HashSet;

/// As far as the caller told: names, and whether a schema says that a parameter is required.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    required: HashMap<String, bool>,
}

impl Tools {
    pub fn has(&self, name: &str) -> bool {
        self.required.contains_key(name)
    }

    /// Whether a tool's name begins with `head` and then `tail`.
    pub fn begins(&self, head: &str, tail: &str) -> bool {
        self.required.keys().any(|name| {
            name.strip_prefix(head)
                .is_some_and(|rest| rest.starts_with(tail))
        })
    }

    /// A call of this tool without arguments cannot be finished.
    pub fn needs_arguments(&self, name: &str) -> bool {
        self.required.get(name).copied().unwrap_or(false)
    }
}

/// What of the config is looked up by key.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub tools: Tools,
    pub known_call_ids: HashSet<String>,
    /// Makes minted ids recognisable.
    pub seed: Option<String>,
}

blank!(Settings);

impl Settings {
    /// Most callers say nothing of the kind.
    pub fn of(config: &Config) -> LazyBox<Settings> {
        if config.tools.is_none() && config.known_call_ids.is_empty() && config.seed.is_none() {
            return LazyBox::default();
        }
        let required = config.tools.iter().flatten().map(|tool| {
            let needs = tool.required.as_ref().is_some_and(|list| !list.is_empty());
            (tool.name.clone(), needs)
        });
        LazyBox::from(Settings {
            tools: Tools {
                required: required.collect(),
            },
            known_call_ids: config.known_call_ids.iter().cloned().collect(),
            seed: config.seed.clone(),
        })
    }
}
