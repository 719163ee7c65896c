//! The state and rules of tool calls, text parts and items, from their opening to their closing event.

pub(crate) mod append_arguments;
pub(crate) mod arguments;
pub(crate) mod attachment;
pub(crate) mod call;
pub(crate) mod call_events;
pub(crate) mod canonical_json;
pub(crate) mod classify;
pub(crate) mod close_calls;
pub(crate) mod content_mode;
pub(crate) mod fragment;
pub(crate) mod item;
pub(crate) mod item_call;
pub(crate) mod item_end;
pub(crate) mod item_list;
pub(crate) mod item_shared_id;
pub(crate) mod item_text;
pub(crate) mod join_fragments;
pub(crate) mod labels;
pub(crate) mod object_merge;
pub(crate) mod reannounced;
pub(crate) mod replay_detectors;
pub(crate) mod shared_id;
pub(crate) mod text;
pub(crate) mod text_parts;
