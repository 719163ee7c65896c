//! What was streamed, as a terminal list finds it: parts and calls by what they say.

use crate::assemble::part::item::Spot;
use crate::model::delta::Channel;
use crate::model::delta::ItemKind;
use std::collections::HashMap;
/// What was streamed, by what it says. Made once, when the list begins, so that no entry walks over all of it.
#[derive(Clone, Debug, Default)]
pub struct Restatement {
    /// Until an entry is not found by its address, which most are: nothing else is looked up.
    pub(crate) heard: Vec<Heard>,
    pub(crate) parts: HashMap<(ItemKind, Channel, String), Vec<Spot>>,
    pub(crate) calls: HashMap<(String, String), Vec<usize>>,
}
/// What one part or call said before the list.
#[derive(Clone, Debug)]
pub(crate) enum Heard {
    Part(Spot, (ItemKind, Channel, String)),
    Call {
        item: usize,
        name: String,
        said: String,
        /// Arguments that are a whole value, however it is written.
        whole: bool,
    },
}
