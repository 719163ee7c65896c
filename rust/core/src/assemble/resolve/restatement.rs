//! Lookup tables that find the streamed part or call whose content equals that of a part or call in a terminal list.

use crate::assemble::part::item::PartPosition;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use std::collections::HashMap;
/// The streamed parts and calls, by content. The tables are built once, when a terminal list begins, so that a listed
/// part or call can be found without scanning all streamed parts and calls.
#[derive(Clone, Debug, Default)]
pub struct Restatement {
    /// The content that is not in the tables yet. This content is added to the tables only when a listed part or call
    /// is not found by its address, which is rare.
    pub(crate) streamed: Vec<StreamedContent>,
    pub(crate) parts: HashMap<(ItemKind, Channel, String), Vec<PartPosition>>,
    pub(crate) calls: HashMap<(String, String), Vec<usize>>,
}
/// The content of one streamed part or call.
#[derive(Clone, Debug)]
pub(crate) enum StreamedContent {
    Part(PartPosition, (ItemKind, Channel, String)),
    Call {
        item: usize,
        name: String,
        arguments_text: String,
        /// The arguments are a complete JSON value, so they are compared in canonical form.
        whole: bool,
    },
}
