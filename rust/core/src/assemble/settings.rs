//! The request's tools and other settings, read once from the config and stored for fast lookups.

use crate::model::config::Config;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use std::collections::HashMap;
use std::collections::HashSet;

/// The request's tools, if the caller supplied them: for each name, whether the tool has required parameters.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    required: HashMap<String, bool>,
}

impl Tools {
    pub fn has(&self, name: &str) -> bool {
        self.required.contains_key(name)
    }

    /// Returns true if the name of any tool begins with `head` followed by `tail`.
    pub fn begins(&self, head: &str, tail: &str) -> bool {
        self.required.keys().any(|name| {
            name.strip_prefix(head)
                .is_some_and(|rest| rest.starts_with(tail))
        })
    }

    /// Returns true if the tool has required parameters, so that a call without arguments is not complete.
    pub fn needs_arguments(&self, name: &str) -> bool {
        self.required.get(name).copied().unwrap_or(false)
    }
}

/// The settings that the rules look up by key.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub tools: Tools,
    pub known_call_ids: HashSet<String>,
    /// Text included in every generated call id, so that the caller can recognize such ids.
    pub seed: Option<String>,
}

blank!(Settings);

impl Settings {
    /// Reads the settings from the config. Allocates nothing if the config has none of these settings, which is the
    /// usual case.
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
