//! The limits of one stream. `_spec/limits.json` contains the defaults, and the stages enforce the limits.

use crate::model::spec;

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident,)+) => {
        /// The limits. `None` disables a limit.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits {
            $($(#[$doc])* pub $field: Option<u64>,)+
        }

        /// The name of a limit.
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum LimitName { $($field),+ }

        impl LimitName {
            pub const ALL: &'static [LimitName] = &[$(LimitName::$field),+];

            /// Returns the name used in `_spec/limits.json` and in `Limits`.
            pub fn name(self) -> &'static str {
                match self { $(LimitName::$field => stringify!($field)),+ }
            }

            pub fn from_name(name: &str) -> Option<LimitName> {
                match name { $(stringify!($field) => Some(LimitName::$field),)+ _ => None }
            }

            /// Returns the rule of the `LimitExceeded` exception for this limit.
            pub fn rule(self) -> &'static str {
                match self { $(LimitName::$field => concat!("limit_", stringify!($field))),+ }
            }
        }

        impl Limits {
            /// No limits.
            pub const OFF: Limits = Limits { $($field: None),+ };

            pub fn value(&self, name: LimitName) -> Option<u64> {
                match name { $(LimitName::$field => self.$field),+ }
            }

            fn slot(&mut self, name: &str) -> Option<&mut Option<u64>> {
                match name {
                    $(stringify!($field) => Some(&mut self.$field),)+
                    _ => None,
                }
            }
        }
    };
}

limits! {
    /// The size of the data of one event: the values of its data lines, plus one byte per line. The limit also applies
    /// to the input that a conversion buffers before the dialect is detected, and to a block that repair holds back.
    /// There, a payload on several lines counts twice.
    max_event_bytes,
    /// The length of the value of an `event` or `id` line.
    max_field_bytes,
    max_json_depth,
    /// The number of commas and opening brackets outside strings in one payload.
    max_json_values,
    max_choices,
    /// The number of parts in one stream. The limit also applies, separately, to the number of items.
    max_parts,
    max_tool_calls,
    max_tool_index,
    max_arguments_bytes,
    max_total_arguments_bytes,
    max_name_bytes,
    max_id_bytes,
    max_text_bytes,
    max_events,
    max_stream_bytes,
    /// The ratio of decompressed to compressed bytes. The caller measures the ratio, and reports an exceeded limit
    /// with `exceed`.
    max_inflate_ratio,
    max_diagnostics,
}

impl Limits {
    /// Sets one limit by name. Returns false if there is no limit with this name.
    pub fn set(&mut self, name: &str, value: Option<u64>) -> bool {
        match self.slot(name) {
            Some(slot) => {
                *slot = value;
                true
            }
            None => false,
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        let mut limits = Limits::OFF;
        for (name, value) in spec::limits() {
            limits.set(name, value.as_u64());
        }
        limits
    }
}

/// Returns the limit as a length, or the largest `usize` if the limit is disabled.
pub(crate) fn as_len(limit: Option<u64>) -> usize {
    limit
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_file() {
        let limits = Limits::default();
        assert_eq!(limits.max_event_bytes, Some(16 * 1024 * 1024));
        assert_eq!(limits.max_stream_bytes, None);
        let names: Vec<&str> = LimitName::ALL.iter().map(|name| name.name()).collect();
        let there: Vec<&str> = spec::limits().keys().map(String::as_str).collect();
        assert_eq!(names, there);
        for name in LimitName::ALL {
            let there = spec::limits()
                .get(name.name())
                .and_then(serde_json::Value::as_u64);
            assert_eq!(limits.value(*name), there, "{}", name.name());
        }
    }

    #[test]
    fn a_limit_is_set_by_name() {
        let mut limits = Limits::default();
        assert!(limits.set("max_choices", None));
        assert_eq!(limits.max_choices, None);
        assert!(!limits.set("max_nonsense", Some(1)));
        assert_eq!(LimitName::max_choices.rule(), "limit_max_choices");
    }
}
