//! Finds the part or call that a delta belongs to. Chat does not address calls reliably, so its calls are found by all
//! available evidence; the other dialects use addresses.

pub(crate) mod apply_identity;
pub(crate) mod by_address;
pub(crate) mod by_evidence;
pub(crate) mod call_list;
pub(crate) mod decision;
pub(crate) mod item_index;
pub(crate) mod listed_parts;
pub(crate) mod names;
pub(crate) mod restatement;
pub(crate) mod route_cache;
pub(crate) mod route_fragment;
pub(crate) mod terminal_items;
