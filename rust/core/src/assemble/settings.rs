//! The request's tools and other settings, read once from the config and stored for fast lookups.

use crate::model::config::Config;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use std::collections::HashMap;
use std::collections::HashSet;

/// The request's tools, if the caller supplied them.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// The caller supplied a list of tools, even if it is empty.
    is_known: bool,
    by_name: HashMap<String, Parameters>,
}

/// What is known about the parameters of a tool.
#[derive(Clone, Debug, Default)]
struct Parameters {
    required: Vec<String>,
    /// The names of all parameters. `None` if the schema is unknown or allows other names.
    names: Option<HashSet<String>>,
}

impl Tools {
    pub fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Returns true if the name of any tool begins with `head` followed by `tail`.
    pub fn begins(&self, head: &str, tail: &str) -> bool {
        self.by_name.keys().any(|name| {
            name.strip_prefix(head)
                .is_some_and(|rest| rest.starts_with(tail))
        })
    }

    /// Returns true if the tool has required parameters, so that a call without arguments is not complete.
    pub fn needs_arguments(&self, name: &str) -> bool {
        let parameters = self.by_name.get(name);
        parameters.is_some_and(|parameters| !parameters.required.is_empty())
    }

    /// Returns true if arguments with these names do not contradict what is known about the tool: the request lists the
    /// tool, no required parameter is missing, and each name is that of a parameter.
    pub fn allows(&self, tool: &str, names: &HashSet<String>) -> bool {
        let Some(parameters) = self.by_name.get(tool) else {
            return !self.is_known;
        };
        let known = parameters.names.as_ref();
        known.is_none_or(|known| names.is_subset(known))
            && parameters.required.iter().all(|name| names.contains(name))
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
        let by_name = config.tools.iter().flatten().map(|tool| {
            let parameters = Parameters {
                required: tool.required.clone().unwrap_or_default(),
                names: tool
                    .properties
                    .as_ref()
                    .map(|names| names.iter().cloned().collect()),
            };
            (tool.name.clone(), parameters)
        });
        LazyBox::from(Settings {
            tools: Tools {
                is_known: config.tools.is_some(),
                by_name: by_name.collect(),
            },
            known_call_ids: config.known_call_ids.iter().cloned().collect(),
            seed: config.seed.clone(),
        })
    }
}
