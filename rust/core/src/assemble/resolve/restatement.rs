//! Lookup tables for matching the parts and calls in a terminal list with streamed parts and calls that have equal
//! content.

use crate::assemble::part::item::Spot;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use std::collections::HashMap;
/// Streamed parts and calls, keyed by content. Built once, when the list begins, so that a listed part or call can be
/// matched without a scan of all streamed parts and calls.
#[derive(Clone, Debug, Default)]
pub struct Restatement {
    /// Content that is not in the tables yet. Such content is added to them only when a listed part or call cannot be
    /// found by its address, which is rare.
    pub(crate) streamed: Vec<StreamedContent>,
    pub(crate) parts: HashMap<(ItemKind, Channel, String), Vec<Spot>>,
    pub(crate) calls: HashMap<(String, String), Vec<usize>>,
}
/// Content of one streamed part or call.
#[derive(Clone, Debug)]
pub(crate) enum StreamedContent {
    Part(Spot, (ItemKind, Channel, String)),
    Call {
        item: usize,
        name: String,
        arguments_text: String,
        /// The arguments are a complete JSON value, so they are compared in canonical form.
        whole: bool,
    },
}
