//! State and helpers that all encoders use: the context of a conversion, losses, ids, endings and usage.

pub(crate) mod block;
pub(crate) mod block_calls;
pub(crate) mod carrier;
pub(crate) mod citations;
pub(crate) mod compact_json;
pub(crate) mod encode_context;
pub(crate) mod encoder;
pub(crate) mod extra_members;
pub(crate) mod finish;
pub(crate) mod held_calls;
pub(crate) mod id_mint;
pub(crate) mod logprobs;
pub(crate) mod losses;
pub(crate) mod part_details;
pub(crate) mod part_order;
pub(crate) mod passed_through;
pub(crate) mod provider_metadata;
pub(crate) mod same_json;
pub(crate) mod sequential_answer;
pub(crate) mod sequential_blocks;
pub(crate) mod source_blocks;
pub(crate) mod tool_ids;
pub(crate) mod usage;
pub(crate) mod writer;
