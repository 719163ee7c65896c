//! Policies. A policy defines the action for each diagnostic code, and the switches that select how ambiguous streams
//! are interpreted.

use crate::model::spec::Code;
use crate::model::spec::Severity;

/// The action of a policy for a diagnostic code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// End the stream and raise the exception for this code.
    Raise,
    /// Record the diagnostic and continue.
    Diagnose,
    /// Drop the piece that the diagnostic is about, and record the diagnostic.
    Skip,
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$vdoc])* $variant),+ }

        impl $name {
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($word => Some($name::$variant),)+ _ => None }
            }

            pub fn name(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }
    )+};
}

words! {
    /// The base policy, which defines every action and switch that the caller does not set.
    Base {
        Standard = "standard",
        Strict = "strict",
        Salvage = "salvage",
    }
    /// When the calls of a Chat choice close: at the end of the stream, or at the finish reason.
    CloseCallsAt {
        Done = "done",
        Finish = "finish",
    }
    /// AM1: a header with a new id arrives at the index of a call that has the same name and no arguments yet.
    SameIndexNewId {
        New = "new",
        Merge = "merge",
    }
    /// AM2: arguments arrive at an index that no call has, while several calls have no arguments yet.
    OrphanIndex {
        Fifo = "fifo",
        Latest = "latest",
    }
    /// AM3: the same id is announced at two indexes. The switch selects whether there is one call (`Join`) or two
    /// (`Split`).
    ParallelHeaders {
        /// Split only if the joined text is invalid JSON but the text at each index is valid JSON.
        Auto = "auto",
        Join = "join",
        Split = "split",
    }
    /// AM4: the id of a complete call is announced again, and no arguments follow.
    EmptyHeader {
        Drop = "drop",
        Keep = "keep",
    }
    /// AM5: a call without an id arrives at the index of a call with the same name and arguments.
    IdenticalCall {
        Drop = "drop",
        Keep = "keep",
    }
    /// A stream ends without a finish reason, and a call has no arguments.
    EmptyCall {
        Cut = "cut",
        /// The call is complete and has no arguments. This value is for gateways that never send a finish reason.
        Run = "run",
    }
    /// AM6: a second JSON object arrives for a complete call, without a tool name.
    Overflow {
        Flag = "flag",
        Split = "split",
    }
    /// AM7: a payload is equal to the previous payload.
    DuplicatePayload {
        Keep = "keep",
        Drop = "drop",
    }
    /// AM8: a text delta may contain only new text, or the accumulated text.
    ContentMode {
        Delta = "delta",
        Auto = "auto",
        Cumulative = "cumulative",
    }
    /// AM12: the id of a call changes. The switch selects which id to use.
    UnstableId {
        First = "first",
        Last = "last",
    }
    /// A stream ends without a finish reason and without a terminal marker, but no part or call is open.
    MissingTerminal {
        /// The stream is treated as truncated.
        Truncate = "truncate",
        /// The stream is treated as complete. This value is for gateways that never send a finish reason or terminal
        /// marker.
        Assume = "assume",
    }
}

/// The switches that select how ambiguous streams are interpreted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Switches {
    pub same_index_new_id_same_name_empty: SameIndexNewId,
    pub orphan_index: OrphanIndex,
    pub dup_id_parallel_headers: ParallelHeaders,
    pub dup_id_empty_header: EmptyHeader,
    pub identical_idless_same_index: IdenticalCall,
    pub on_overflow: Overflow,
    pub duplicate_payload: DuplicatePayload,
    pub content_mode: ContentMode,
    /// AM9: the last chunk repeats the whole text. If true, the repetition is dropped.
    pub drop_restated_content: bool,
    /// AM10: a new chunk id and role arrive in the middle of the stream. If true, the response restarts.
    pub restart_on_new_stream_id: bool,
    /// AM11: tool calls arrive in a different choice from the text. If true, all choices are merged into choice 0.
    pub merge_choices: bool,
    pub unstable_id: UnstableId,
    pub empty_call_without_reason: EmptyCall,
    pub missing_terminal: MissingTerminal,
}

impl Default for Switches {
    fn default() -> Self {
        Switches {
            same_index_new_id_same_name_empty: SameIndexNewId::New,
            orphan_index: OrphanIndex::Fifo,
            dup_id_parallel_headers: ParallelHeaders::Auto,
            dup_id_empty_header: EmptyHeader::Drop,
            identical_idless_same_index: IdenticalCall::Drop,
            on_overflow: Overflow::Flag,
            duplicate_payload: DuplicatePayload::Keep,
            content_mode: ContentMode::Delta,
            drop_restated_content: true,
            restart_on_new_stream_id: false,
            merge_choices: false,
            unstable_id: UnstableId::First,
            empty_call_without_reason: EmptyCall::Cut,
            missing_terminal: MissingTerminal::Truncate,
        }
    }
}

/// The value that a caller passes for a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SwitchValue<'a> {
    Word(&'a str),
    Flag(bool),
}

fn word<T>(slot: &mut T, parse: fn(&str) -> Option<T>, value: SwitchValue<'_>) -> bool {
    match value {
        SwitchValue::Word(word) => match parse(word) {
            Some(found) => {
                *slot = found;
                true
            }
            None => false,
        },
        SwitchValue::Flag(_) => false,
    }
}

fn flag(slot: &mut bool, value: SwitchValue<'_>) -> bool {
    match value {
        SwitchValue::Flag(value) => {
            *slot = value;
            true
        }
        SwitchValue::Word(_) => false,
    }
}

impl Switches {
    /// Returns the default switches of a base policy.
    fn of(base: Base) -> Switches {
        let mut switches = Switches::default();
        if base == Base::Salvage {
            switches.missing_terminal = MissingTerminal::Assume;
        }
        switches
    }

    /// Sets one switch by name. Returns false if the name is unknown or the switch does not accept the value.
    pub fn set(&mut self, name: &str, value: SwitchValue<'_>) -> bool {
        match name {
            "same_index_new_id_same_name_empty" => word(
                &mut self.same_index_new_id_same_name_empty,
                SameIndexNewId::from_name,
                value,
            ),
            "orphan_index" => word(&mut self.orphan_index, OrphanIndex::from_name, value),
            "dup_id_parallel_headers" => word(
                &mut self.dup_id_parallel_headers,
                ParallelHeaders::from_name,
                value,
            ),
            "dup_id_empty_header" => {
                word(&mut self.dup_id_empty_header, EmptyHeader::from_name, value)
            }
            "identical_idless_same_index" => word(
                &mut self.identical_idless_same_index,
                IdenticalCall::from_name,
                value,
            ),
            "on_overflow" => word(&mut self.on_overflow, Overflow::from_name, value),
            "duplicate_payload" => word(
                &mut self.duplicate_payload,
                DuplicatePayload::from_name,
                value,
            ),
            "content_mode" => word(&mut self.content_mode, ContentMode::from_name, value),
            "drop_restated_content" => flag(&mut self.drop_restated_content, value),
            "restart_on_new_stream_id" => flag(&mut self.restart_on_new_stream_id, value),
            "merge_choices" => flag(&mut self.merge_choices, value),
            "unstable_id" => word(&mut self.unstable_id, UnstableId::from_name, value),
            "empty_call_without_reason" => word(
                &mut self.empty_call_without_reason,
                EmptyCall::from_name,
                value,
            ),
            "missing_terminal" => word(
                &mut self.missing_terminal,
                MissingTerminal::from_name,
                value,
            ),
            _ => false,
        }
    }
}

/// A policy with one action for every diagnostic code, and the switches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    pub base: Base,
    pub inline_reasoning: bool,
    pub close_calls_at: CloseCallsAt,
    pub switches: Switches,
    actions: [Action; Code::COUNT],
}

impl Policy {
    /// Creates the policy with the default actions and switches of this base policy.
    pub fn new(base: Base) -> Policy {
        let mut actions = [Action::Diagnose; Code::COUNT];
        for (slot, code) in actions.iter_mut().zip(Code::all()) {
            *slot = default_action(base, code);
        }
        Policy {
            base,
            inline_reasoning: false,
            close_calls_at: CloseCallsAt::Done,
            switches: Switches::of(base),
            actions,
        }
    }

    pub fn action(&self, code: Code) -> Action {
        self.actions
            .get(code.index())
            .copied()
            .unwrap_or(Action::Raise)
    }

    pub fn raises(&self, code: Code) -> bool {
        self.action(code) == Action::Raise
    }

    /// Sets the action of one code. If the action is `Skip` and the code cannot be skipped, returns false and changes
    /// nothing.
    pub fn set_action(&mut self, code: Code, action: Action) -> bool {
        if action == Action::Skip && !code.skippable() {
            return false;
        }
        match self.actions.get_mut(code.index()) {
            Some(slot) => {
                *slot = action;
                true
            }
            None => false,
        }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Policy::new(Base::Standard)
    }
}

impl Action {
    pub fn from_name(name: &str) -> Option<Action> {
        match name {
            "raise" => Some(Action::Raise),
            "diagnose" => Some(Action::Diagnose),
            "skip" => Some(Action::Skip),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Action::Raise => "raise",
            Action::Diagnose => "diagnose",
            Action::Skip => "skip",
        }
    }
}

fn default_action(base: Base, code: Code) -> Action {
    match code.action_of(base.name()).and_then(Action::from_name) {
        Some(action) => action,
        None if base == Base::Strict && code.severity() >= Severity::Warning => Action::Raise,
        None => Action::Diagnose,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_follow_the_file_and_then_the_base() {
        let standard = Policy::default();
        assert_eq!(standard.action(Code::MALFORMED_JSON), Action::Raise);
        assert_eq!(standard.action(Code::TRUNCATED), Action::Raise);
        assert_eq!(standard.action(Code::INVALID_UTF8), Action::Diagnose);
        let strict = Policy::new(Base::Strict);
        assert!(strict.raises(Code::INVALID_UTF8));
        assert!(strict.raises(Code::NO_NAME));
        assert!(!strict.raises(Code::NULL_PAYLOAD));
        let salvage = Policy::new(Base::Salvage);
        assert_eq!(salvage.action(Code::MALFORMED_JSON), Action::Skip);
        assert_eq!(salvage.action(Code::TRUNCATED), Action::Diagnose);
    }

    #[test]
    fn only_salvage_reads_a_stream_without_an_end_as_ended() {
        let of = |base| Policy::new(base).switches.missing_terminal;
        assert_eq!(of(Base::Standard), MissingTerminal::Truncate);
        assert_eq!(of(Base::Strict), MissingTerminal::Truncate);
        assert_eq!(of(Base::Salvage), MissingTerminal::Assume);
    }

    #[test]
    fn skip_is_for_codes_that_can_be_skipped() {
        let mut policy = Policy::default();
        assert!(policy.set_action(Code::MALFORMED_JSON, Action::Skip));
        assert!(!policy.set_action(Code::TRUNCATED, Action::Skip));
        assert_eq!(policy.action(Code::TRUNCATED), Action::Raise);
    }

    #[test]
    fn switches_are_set_by_name() {
        let mut switches = Switches::default();
        assert!(switches.set("orphan_index", SwitchValue::Word("latest")));
        assert_eq!(switches.orphan_index, OrphanIndex::Latest);
        assert!(switches.set("merge_choices", SwitchValue::Flag(true)));
        assert!(switches.merge_choices);
        assert!(!switches.set("merge_choices", SwitchValue::Word("yes")));
        assert!(!switches.set("orphan_index", SwitchValue::Word("sometimes")));
        assert!(!switches.set("orphan", SwitchValue::Word("latest")));
        for name in [
            "same_index_new_id_same_name_empty",
            "dup_id_parallel_headers",
            "dup_id_empty_header",
            "identical_idless_same_index",
            "on_overflow",
            "duplicate_payload",
            "content_mode",
            "unstable_id",
            "empty_call_without_reason",
            "missing_terminal",
        ] {
            let words = [
                "merge", "split", "keep", "drop", "auto", "last", "assume", "run",
            ];
            assert!(
                words
                    .iter()
                    .any(|word| switches.set(name, SwitchValue::Word(word))),
                "{name}"
            );
        }
    }
}
