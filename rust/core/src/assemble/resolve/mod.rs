//! Which part a delta belongs to: by evidence (Chat names no part reliably) or by address (the other dialects do).

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
