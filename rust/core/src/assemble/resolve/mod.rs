//! Finds the part or call that a delta belongs to: by evidence in Chat, which does not address parts reliably, and by
//! address in the other dialects.

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
