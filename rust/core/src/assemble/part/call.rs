//! One tool call in progress: its identity, its arguments, and how much of it was emitted.
//!
//! Holds state and queries. The rules that change it are in `identity`, `route_fragment` and `close_calls`; its events
//! are in `call_events`.

use crate::assemble::part::arguments::ArgumentText;
use crate::assemble::part::canonical_json::canonical;
use crate::assemble::part::fragment::trim;
use crate::assemble::part::object_merge::ObjectMerge;
use crate::assemble::part::object_merge::RawMembers;
use crate::assemble::part::shared_id::SharedId;
use crate::assemble::resolve::names::Progress;
use crate::json::Surrogates;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use std::borrow::Cow;
use std::sync::Arc;

/// An id on the wire: what it addresses and every way there hold the same one.
pub type Id = Arc<str>;

/// A new id in every delta must not fill the memory; the index or the order still finds the call.
pub const MAX_ALIASES: usize = 64;

/// What a closed call came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    pub call_id: String,
    pub arguments: String,
    pub state: &'static str,
    pub reason: Option<&'static str>,
    pub raw_arguments: Option<String>,
    pub aliases: Vec<String>,
}

/// One call of one choice.
#[derive(Clone, Debug, Default)]
pub struct Call {
    /// Its number among the calls of the choice.
    pub slot: usize,
    pub part: u32,
    /// The first one on the wire.
    pub id: Option<Id>,
    /// Further ids, in order.
    pub aliases: LazyBox<Vec<String>>,
    /// The last one, if that is another.
    pub last_id: Option<Id>,
    /// The call that had its id before.
    pub first: Option<usize>,
    /// A later call with its id was told before it: the id is nobody else's.
    pub keeps_id: bool,
    pub id_changed: bool,
    /// What the wire calls its item.
    pub item_id: Option<Id>,
    /// The provider runs it, not the client.
    pub provider_executed: bool,
    pub name: String,
    /// The first index that it was addressed by.
    pub index: Option<i64>,
    /// It was addressed by another index as well.
    pub several_indexes: bool,
    pub custom: bool,
    pub text: ArgumentText,
    pub joiner: Surrogates,
    /// The text is that of an object payload.
    pub object_arguments: bool,
    /// Several object payloads: this is the text.
    pub merge: Option<Box<ObjectMerge>>,
    pub metadata: Option<Box<RawMembers>>,
    /// AM3 is open.
    pub fork: Option<Box<SharedId>>,
    /// Dropped unless arguments come (R1c).
    pub tentative: bool,
    /// Displaced from its index while still empty (AM1).
    pub suspect: bool,
    /// Its result came in the same stream, so the client must not run it.
    pub answered: bool,
    /// R1g: indexes under which a header came again.
    pub announced_again: LazyBox<Set<Option<i64>>>,
    pub name_conflict_said: bool,
    /// Named ambiguities that were said of it.
    pub guess_said: LazyBox<Vec<Code>>,
    /// A terminal message left it out.
    pub conflict_said: bool,
    /// The named ambiguity that the next piece without an id stands in.
    pub contested: Option<Code>,
    /// The sender itself marked the input as invalid for the tool.
    pub refused: bool,
    /// Part of it arrived after the finish reason.
    pub late: bool,
    pub index_said: bool,
    pub dropped: bool,
    /// The wire closed it.
    pub ended: bool,
    /// Its close was the first that was seen of it.
    pub unopened: bool,
    /// It was shown; how much of its text was, the text keeps.
    pub started: bool,
    /// Show none of the text before the close: object payloads may yet be merged.
    pub held_back: bool,
    /// The text on the wire, where the close replaced it by what it stands for.
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

    /// Its arguments are one whole JSON value.
    pub fn is_complete(&self) -> bool {
        self.merge.is_some() || self.text.is_complete()
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// How many bytes of its text may be shown: nothing that comes can make them another call's, or other arguments.
    #[inline]
    pub fn settled(&self) -> usize {
        if self.custom {
            return self.text.data.len();
        }
        let divides = self.fork.as_ref().is_some_and(|fork| !fork.closed);
        if self.held_back || divides {
            return 0;
        }
        self.text.settled()
    }

    /// How far the arguments are for a name that arrives with that payload.
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

    /// The payload says what the finished call says.
    pub fn repeats(&mut self, piece: &[u8]) -> bool {
        match &self.merge {
            Some(merge) => merge.says(&String::from_utf8_lossy(piece)),
            None => self.text.repeats(piece),
        }
    }

    /// The payload, appended, keeps the arguments JSON (or it has nothing to break).
    pub fn accepts(&self, piece: &[u8]) -> bool {
        self.merge.is_none() && (piece.is_empty() || self.text.accepts(piece))
    }

    /// Free-form text and JSON share no call; one without text yet can be of either type.
    pub fn suits(&self, piece: &[u8], custom: bool) -> bool {
        let open = self.is_empty() && !self.joiner.is_pending();
        piece.is_empty() || self.custom == custom || open
    }

    /// The first piece of its text says of which type it is.
    pub fn settle_type(&mut self, custom: bool) {
        if self.custom != custom && self.is_empty() {
            self.custom = custom;
            self.text = ArgumentText::new(custom);
            self.fork = None;
        }
    }

    /// A piece of that type can be the call's next one. Free-form text has nothing that could break.
    pub fn takes(&self, piece: &[u8], custom: bool) -> bool {
        piece.is_empty() || (self.custom == custom && (custom || self.accepts(piece)))
    }

    /// Of a complete call.
    pub fn canonical(&mut self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(canonical(&merge.text())),
            None => Cow::Borrowed(self.text.canonical()),
        }
    }

    /// Make the merged objects the text.
    pub fn settle_merge(&mut self) {
        if let Some(merge) = self.merge.take() {
            self.text.replace(merge.text().into_bytes());
            self.object_arguments = false;
        }
    }

    /// The text as it stands.
    pub fn words(&self) -> Cow<'_, str> {
        match &self.merge {
            Some(merge) => Cow::Owned(merge.text()),
            None => self.text.text(),
        }
    }

    /// The id on the wire that counts: the first, or where a caller wants it, the last.
    pub fn wire_id(&self, last: bool) -> Option<&str> {
        let last = self.last_id.as_deref().filter(|_| last);
        last.or(self.id.as_deref())
    }
}
