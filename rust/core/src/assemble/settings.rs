//! The request's tools and other settings, indexed for the rules. Read once from the config.

use crate::model::config::Config;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use std::collections::HashMap;
use std::collections::HashSet;

/// The tools that the caller supplied: for each name, whether the schema requires a parameter.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    required: HashMap<String, bool>,
}

impl Tools {
    pub fn has(&self, name: &str) -> bool {
        self.required.contains_key(name)
    }

    /// Returns true if any tool name begins with `head` followed by `tail`.
    pub fn begins(&self, head: &str, tail: &str) -> bool {
        self.required.keys().any(|name| {
            name.strip_prefix(head)
                .is_some_and(|rest| rest.starts_with(tail))
        })
    }

    /// Returns true if a call of this tool cannot be complete without arguments.
    pub fn needs_arguments(&self, name: &str) -> bool {
        self.required.get(name).copied().unwrap_or(false)
    }
}

/// The members of the config that are looked up by key.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub tools: Tools,
    pub known_call_ids: HashSet<String>,
    /// Included in minted ids to make them recognizable.
    pub seed: Option<String>,
}

blank!(Settings);

impl Settings {
    /// Reads the settings from the config. Allocates nothing if the config has no such settings, which is the usual
    /// case.
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
