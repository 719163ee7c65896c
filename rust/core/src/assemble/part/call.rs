//! The state of one tool call: its ids, name and arguments, and how much of the arguments has been emitted.
//!
//! This module contains only state and queries. `apply_identity`, `route_fragment` and `close_calls` change calls;
//! `call_events` emits their events.

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

/// An id from the wire. The id is shared between the call or item that has it and the lookup tables.
pub type Id = Arc<str>;

/// Maximum number of aliases that a call keeps, because a stream may send a new id in every delta. A call with more ids
/// can still be found by its index or position.
pub const MAX_ALIASES: usize = 64;

/// The final result of a closed call, as reported by its final event.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    pub call_id: String,
    pub arguments: String,
    pub state: &'static str,
    pub reason: Option<&'static str>,
    pub raw_arguments: Option<String>,
    pub aliases: Vec<String>,
}

/// One tool call of a choice.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Position among the calls of the choice, in order of creation.
    pub slot: usize,
    pub part: u32,
    /// The first call id received.
    pub id: Option<Id>,
    /// The other ids received, in order of arrival.
    pub aliases: LazyBox<Vec<String>>,
    /// The last call id received, if it differs from the first.
    pub last_id: Option<Id>,
    /// Position (in the choice's list of calls) of an earlier call that received the same id.
    pub first: Option<usize>,
    /// The id is reserved for this call, even though a later call with the same id closed first.
    pub keeps_id: bool,
    pub id_changed: bool,
    /// The item id that events report for the call.
    pub item_id: Option<Id>,
    /// The provider executes the call, so the client must not.
    pub provider_executed: bool,
    pub name: String,
    /// The index in the first fragment that addressed the call by index.
    pub index: Option<i64>,
    /// Fragments with several indexes addressed the call.
    pub several_indexes: bool,
    pub custom: bool,
    pub text: ArgumentText,
    pub joiner: Surrogates,
    /// The arguments arrived as an object instead of a string; the text is the object's JSON.
    pub object_arguments: bool,
    /// The merged arguments, if they arrived as several objects. The merged arguments replace the text.
    pub merge: Option<Box<ObjectMerge>>,
    pub metadata: Option<Box<RawMembers>>,
    /// AM3: the text received at each index, until the stream shows whether the id belongs to one call or several.
    /// `None` if the id was announced at one index only.
    pub shared_id: Option<Box<SharedId>>,
    /// The call will be dropped unless arguments arrive for it (R1c).
    pub tentative: bool,
    /// A later call took the index of this call before this call had any arguments (AM1).
    pub displaced_empty: bool,
    /// The stream contains the result of the call, so the client must not run the call.
    pub answered: bool,
    /// The indexes at which the call was announced again (R1g). `None` means that the announcement had no index.
    pub announced_again: LazyBox<Set<Option<i64>>>,
    pub name_conflict_reported: bool,
    /// The last piece of the name, if the name may be the beginning of a name in the request's tool list.
    pub doubtful_piece: Option<Box<str>>,
    /// The ambiguities that have already been reported for this call.
    pub guess_reported: LazyBox<Vec<Code>>,
    /// A conflict with the terminal message has already been reported.
    pub conflict_reported: bool,
    /// The ambiguity to report when a piece without an id is next assigned to this call.
    pub pending_ambiguity: Option<Code>,
    /// The sender reported that the tool does not accept the arguments.
    pub refused: bool,
    /// How complete the call is, according to its last closing event.
    pub ending: CallEnding,
    /// A member that was not read may contain arguments of the call.
    pub misses_arguments: bool,
    /// A fragment of the call arrived after the finish reason.
    pub late: bool,
    pub index_reported: bool,
    pub dropped: bool,
    /// The stream closed the call explicitly.
    pub ended: bool,
    /// The first event of the call was its closing event.
    pub unopened: bool,
    /// `ToolCallStarted` has been emitted. `text.shown` is the number of emitted bytes.
    pub started: bool,
    /// No text is emitted before the call closes, because more objects may be merged into the arguments.
    pub held_back: bool,
    /// The text as received, if it was replaced when the call closed (null, "" or double-encoded JSON).
    pub raw: Option<Box<str>>,
    pub outcome: Option<Box<CallOutcome>>,
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

    /// Returns true if the arguments are one complete JSON value. The result is always false for free-form text.
    pub fn is_complete(&self) -> bool {
        self.merge.is_some() || self.text.is_complete()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns true if the call is cut off: its closing event reported this, and its arguments are not complete JSON.
    ///
    /// A call that was still in progress when its item closed is cut off only if the response did not end with success
    /// (`succeeded`).
    pub fn is_cut(&self, succeeded: bool) -> bool {
        let reported = match self.ending {
            CallEnding::Whole => false,
            CallEnding::Cut => true,
            CallEnding::Open | CallEnding::OpenObject => !succeeded,
        };
        reported && (self.custom || !self.is_complete())
    }

    /// Returns how many bytes of the argument text are safe to emit: later fragments cannot change them or move them to
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

    /// Returns how far the arguments have progressed, to classify a name that arrives together with this piece.
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

    /// Returns true if the arguments are complete and the piece is an equal JSON value.
    pub fn repeats(&mut self, piece: &[u8]) -> bool {
        match &self.merge {
            Some(merge) => merge.has_same_members(&String::from_utf8_lossy(piece)),
            None => self.text.repeats(piece),
        }
    }

    /// Returns true if the piece is empty, or if the arguments followed by the piece are JSON or the beginning of JSON.
    /// Returns false if the arguments arrived as several objects.
    pub fn accepts(&self, piece: &[u8]) -> bool {
        self.merge.is_none() && (piece.is_empty() || self.text.accepts(piece))
    }

    /// Returns true if the piece has the type of the call, JSON or free-form, or if the piece or the call has no text.
    pub fn suits(&self, piece: &[u8], custom: bool) -> bool {
        let open = self.is_empty() && !self.joiner.is_pending();
        piece.is_empty() || self.custom == custom || open
    }

    /// Sets the type of the call, JSON or free-form, unless the call already has text.
    pub fn settle_type(&mut self, custom: bool) {
        if self.custom != custom && self.is_empty() {
            self.custom = custom;
            self.text = ArgumentText::new(custom);
            self.shared_id = None;
        }
    }

    /// Returns true if the piece can be appended to the arguments. Any free-form text can be appended to a free-form
    /// call.
    pub fn takes(&self, piece: &[u8], custom: bool) -> bool {
        piece.is_empty() || (self.custom == custom && (custom || self.accepts(piece)))
    }

    /// Returns the canonical form of the arguments, which must be a complete JSON value.
    pub fn canonical(&mut self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(canonical(&merge.text())),
            None => Cow::Borrowed(self.text.canonical()),
        }
    }

    /// If the arguments arrived as several objects, replaces the text with the merged object.
    pub fn settle_merge(&mut self) {
        if let Some(merge) = self.merge.take() {
            self.text.replace(merge.text().into_bytes());
            self.object_arguments = false;
        }
    }

    /// Returns the current argument text, including merged objects.
    pub fn argument_text(&self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(merge.text()),
            None => self.text.text(),
        }
    }

    /// Returns the first id received, or the last one if `last` is true. `None` if the call received no id.
    pub fn wire_id(&self, last: bool) -> Option<&str> {
        let last = self.last_id.as_deref().filter(|_| last);
        last.or(self.id.as_deref())
    }
}
