//! State of one tool call in progress: its identity, its arguments, and how much of them has been emitted.
//!
//! Contains only state and queries. `apply_identity`, `route_fragment` and `close_calls` change the call; `call_events`
//! emits its events.

use crate::assemble::part::arguments::ArgumentText;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::fragment::trim;
use crate::assemble::part::object_merge::ObjectMerge;
use crate::assemble::part::object_merge::RawMembers;
use crate::assemble::part::shared_id::SharedId;
use crate::assemble::resolve::names::Progress;
use crate::json::Surrogates;
use crate::model::delta::CallEnding;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use std::borrow::Cow;
use std::sync::Arc;

/// An id from the wire, shared between the call or item that it addresses and the lookup tables.
pub type Id = Arc<str>;

/// Maximum number of aliases of a call. Limits the memory for a stream with a new id in every delta. A call with more
/// ids can still be found by its index or its order.
pub const MAX_ALIASES: usize = 64;

/// Final result of a closed call.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub call_id: String,
    pub arguments: String,
    pub state: &'static str,
    pub reason: Option<&'static str>,
    pub raw_arguments: Option<String>,
    pub aliases: Vec<String>,
}

/// One tool call of one choice.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Index among the calls of the choice.
    pub slot: usize,
    pub part: u32,
    /// First id received.
    pub id: Option<Id>,
    /// Additional ids, in order of arrival.
    pub aliases: LazyBox<Vec<String>>,
    /// Last id received, if it differs from the first.
    pub last_id: Option<Id>,
    /// Slot of an earlier call that had the same id.
    pub first: Option<usize>,
    /// The id is reserved for this call, because a later call with the same id was closed first.
    pub keeps_id: bool,
    pub id_changed: bool,
    /// Item id on the wire.
    pub item_id: Option<Id>,
    /// The provider, not the client, executes the call.
    pub provider_executed: bool,
    pub name: String,
    /// First index that addressed the call.
    pub index: Option<i64>,
    /// Other indexes addressed the call as well.
    pub several_indexes: bool,
    pub custom: bool,
    pub text: ArgumentText,
    pub joiner: Surrogates,
    /// The arguments were sent as an object, and the text is its JSON.
    pub object_arguments: bool,
    /// Result of merging several object payloads. Used instead of the text.
    pub merge: Option<Box<ObjectMerge>>,
    pub metadata: Option<Box<RawMembers>>,
    /// Text received at each index while AM3 is undecided.
    pub shared_id: Option<Box<SharedId>>,
    /// The call is dropped unless arguments arrive (R1c).
    pub tentative: bool,
    /// Displaced from its index while still empty (AM1).
    pub displaced_empty: bool,
    /// The stream contains the result of the call, so the client must not execute it.
    pub answered: bool,
    /// Indexes at which a header was repeated (R1g).
    pub announced_again: LazyBox<Set<Option<i64>>>,
    pub name_conflict_reported: bool,
    /// Ambiguities (AM…) already reported for this call.
    pub guess_reported: LazyBox<Vec<Code>>,
    /// A conflict with the terminal message was already reported.
    pub conflict_reported: bool,
    /// Ambiguity to report if the next piece without an id is assigned to this call.
    pub pending_ambiguity: Option<Code>,
    /// The sender marked the input as invalid for the tool.
    pub refused: bool,
    /// What the last closing event stated about the end of the call.
    pub ending: CallEnding,
    /// A member that was not read may contain the arguments.
    pub misses_arguments: bool,
    /// Part of the call arrived after the finish reason.
    pub late: bool,
    pub index_reported: bool,
    pub dropped: bool,
    /// The stream closed the call explicitly.
    pub ended: bool,
    /// The first event of the call was its closing event.
    pub unopened: bool,
    /// `ToolCallStarted` has been emitted. `text.shown` is the number of emitted bytes.
    pub started: bool,
    /// Emit no text before the close, because more object payloads may be merged into the arguments.
    pub held_back: bool,
    /// Text as received, if the close replaced it (null, "" or double-encoded JSON).
    pub raw: Option<Box<str>>,
    pub verdict: Option<Box<Verdict>>,
}

blank!(Set<Option<i64>>);

impl Call {
    pub fn new(slot: usize, part: u32, custom: bool) -> Call {
        Call {
            slot,
            part,
            custom,
            text: ArgumentText::new(custom),
            ..Call::default()
        }
    }

    /// Returns true if the arguments are one complete JSON value.
    pub fn is_complete(&self) -> bool {
        self.merge.is_some() || self.text.is_complete()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if the sender reported that the call was cut off, and nothing shows that it is whole.
    ///
    /// The arguments show it if they are complete JSON. If the call was still in progress when its item closed, a
    /// successful end of the response shows it, too.
    pub fn is_cut(&self, succeeded: bool) -> bool {
        let reported = match self.ending {
            CallEnding::Whole => false,
            CallEnding::Cut => true,
            CallEnding::Open | CallEnding::OpenObject => !succeeded,
        };
        reported && (self.custom || !self.is_complete())
    }

    /// Returns how many bytes of the text may be emitted. Later fragments can neither change them nor move them to
    /// another call.
    #[inline]
    pub fn settled(&self) -> usize {
        if self.custom {
            return self.text.data.len();
        }
        let divides = self
            .shared_id
            .as_ref()
            .is_some_and(|shared_id| !shared_id.closed);
        if self.held_back || divides {
            return 0;
        }
        self.text.settled()
    }

    /// Returns the progress of the arguments, used to classify a name that arrives with this payload.
    pub fn progress(&self, piece: &[u8]) -> Progress {
        if self.is_complete() {
            return Progress::Over;
        }
        if self.is_empty() {
            return Progress::None;
        }
        if !self.custom && trim(piece).first() == Some(&b'{') {
            return Progress::Over;
        }
        Progress::Started
    }

    pub fn has_id(&self, identity: &str) -> bool {
        self.id.as_deref() == Some(identity) || self.aliases.iter().any(|alias| alias == identity)
    }

    /// Returns true if the payload repeats the arguments of the finished call.
    pub fn repeats(&mut self, piece: &[u8]) -> bool {
        match &self.merge {
            Some(merge) => merge.has_same_members(&String::from_utf8_lossy(piece)),
            None => self.text.repeats(piece),
        }
    }

    /// Returns true if the arguments remain valid JSON, or a prefix of it, after appending the payload. True for an
    /// empty payload.
    pub fn accepts(&self, piece: &[u8]) -> bool {
        self.merge.is_none() && (piece.is_empty() || self.text.accepts(piece))
    }

    /// Returns true if the type of the piece allows it to belong to the call. Free-form text and JSON never mix; a call
    /// without text accepts either.
    pub fn suits(&self, piece: &[u8], custom: bool) -> bool {
        let open = self.is_empty() && !self.joiner.is_pending();
        piece.is_empty() || self.custom == custom || open
    }

    /// Sets the type of the call, JSON or free-form, from the first piece of its text.
    pub fn settle_type(&mut self, custom: bool) {
        if self.custom != custom && self.is_empty() {
            self.custom = custom;
            self.text = ArgumentText::new(custom);
            self.shared_id = None;
        }
    }

    /// Returns true if the piece can be the next piece of this call. Any free-form text can.
    pub fn takes(&self, piece: &[u8], custom: bool) -> bool {
        piece.is_empty() || (self.custom == custom && (custom || self.accepts(piece)))
    }

    /// Returns the canonical form of the arguments of a complete call.
    pub fn canonical(&mut self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(canonical(&merge.text())),
            None => Cow::Borrowed(self.text.canonical()),
        }
    }

    /// Replaces the text with the merged objects.
    pub fn settle_merge(&mut self) {
        if let Some(merge) = self.merge.take() {
            self.text.replace(merge.text().into_bytes());
            self.object_arguments = false;
        }
    }

    /// Returns the current argument text.
    pub fn words(&self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(merge.text()),
            None => self.text.text(),
        }
    }

    /// Returns the id received: the first one, or the last one if `last` is set.
    pub fn wire_id(&self, last: bool) -> Option<&str> {
        let last = self.last_id.as_deref().filter(|_| last);
        last.or(self.id.as_deref())
    }
}
