//! Decodes a delta that contains a call or a piece of a call, possibly with an id and a name.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anthropic::block::Block;
use crate::dialect::anthropic::block::SentHead;
use crate::dialect::anthropic::block::at_index;
use crate::dialect::anthropic::fields::CALL_TEXTS;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::a_name;
use crate::dialect::anthropic::fields::an_id;
use crate::dialect::anthropic::fields::call_text;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Kind;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::present;
use crate::model::delta::Address;
use crate::model::delta::CallFields;
use crate::model::delta::ItemKind;
use crate::model::fault::Fault;

const CALL_HEADS: [&str; 3] = ["id", "tool_use_id", "name"];

/// The event that opened the latest call: the start of a block, or a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OpenedBy {
    Block,
    Delta,
}

/// The latest call, with the values that identify its deltas.
#[derive(Debug)]
pub(crate) struct CallHead {
    pub(crate) index: Option<i64>,
    id: Option<String>,
    name: Option<String>,
    opened_by: OpenedBy,
    /// True once arguments have arrived as an object instead of text.
    is_whole: bool,
}

impl CallHead {
    /// Creates the state of a call that a block opened.
    pub(crate) fn of_block(index: i64, sent: SentHead) -> CallHead {
        CallHead {
            index: Some(index),
            id: sent.id,
            name: sent.name,
            opened_by: OpenedBy::Block,
            is_whole: false,
        }
    }

    /// Returns the address of the call. A call that a delta opened is addressed by its id, because another block may
    /// have the same index.
    fn address(&self) -> Address<'_> {
        match self.opened_by {
            OpenedBy::Block => at_index(self.index),
            OpenedBy::Delta => Address {
                call_id: self.id.as_deref(),
                ..Address::default()
            },
        }
    }

    /// Returns true if a delta with these members continues the call. If both ids are known, they must be equal. If one
    /// of the ids is unknown, the index and the name must not differ. `is_whole`: true if the delta contains complete
    /// arguments. Two complete deltas that have a name but no id are two calls.
    fn takes(
        &self,
        index: Option<i64>,
        id: Option<&str>,
        name: Option<&str>,
        is_whole: bool,
    ) -> bool {
        if let (Some(sent), Some(own)) = (id, self.id.as_deref()) {
            return sent == own;
        }
        let renames =
            matches!((name, self.name.as_deref()), (Some(sent), Some(own)) if sent != own);
        if index != self.index || renames {
            return false;
        }
        id.is_some() || name.is_none() || !(is_whole && self.is_whole)
    }

    /// Closes the call if a delta opened it. Any other call is closed when its block is closed.
    pub(crate) fn close(&self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        match self.opened_by {
            OpenedBy::Block => Ok(()),
            OpenedBy::Delta => {
                let kind = Some(ItemKind::Call);
                wire.assembler
                    .item_closed(wire.out, 0, kind, self.address(), None, None)
            }
        }
    }
}

/// Returns true if deltas of this type contain a call or a piece of a call.
pub(crate) fn is_call_delta(kind: &str) -> bool {
    matches!(
        kind,
        "input_json_delta" | "tool_use" | "server_tool_use" | "mcp_tool_use"
    )
}

/// Returns true if a delta has any member of a call.
pub(crate) fn has_call(delta: &[Member<'_>]) -> bool {
    has_head(delta) || has_any(delta, &CALL_TEXTS)
}

/// Returns true if a delta has a call id or a tool name.
pub(crate) fn has_head(delta: &[Member<'_>]) -> bool {
    has_any(delta, &CALL_HEADS)
}

fn has_any(delta: &[Member<'_>], keys: &[&str]) -> bool {
    keys.iter().any(|key| present(find(delta, key)).is_some())
}

/// Handles a delta for which `is_call_delta` is true. Returns true if the delta opened a call.
pub(crate) fn call_delta<'a>(
    wire: &mut DecodeContext<'_, '_>,
    head: &mut Option<Box<CallHead>>,
    block: &Block<'a, '_>,
    index: Option<i64>,
    provider_executed: bool,
    notes: &mut Anomalies<'a>,
) -> Result<bool, Fault> {
    let members = &block.object.members;
    let id = match an_id(members, block.at, "id", notes) {
        None => an_id(members, block.at, "tool_use_id", notes),
        found => found,
    };
    let (id, name) = (id.as_deref(), a_name(members, block.at, notes));
    let mut name = name.as_deref();
    let sent = |key: &&&str| present(find(members, key)).is_some();
    let found = call_text(members);
    let member = found.as_ref().map(|(member, _)| *member);
    let member = member.or_else(|| CALL_TEXTS.iter().find(sent).copied());
    let raw = member.and_then(|member| present(find(members, member)));
    let is_whole = raw.is_some_and(|raw| raw.kind != Kind::String);
    let piece = found.map(|(_, piece)| piece).unwrap_or_default();
    let modelled = FACTS.call_delta_fields.iter().copied().chain(member);
    let modelled: Vec<&str> = modelled
        .filter(|key| !(provider_executed && *key == "type"))
        .collect();
    let mut metadata = block.metadata(&modelled);
    let known = |head: &Option<Box<CallHead>>, is_whole| {
        head.as_ref()
            .is_some_and(|head| head.takes(index, id, name, is_whole))
    };
    let is_headed = id.is_some() || name.is_some();
    let opens = is_headed && !known(head, is_whole);
    let continues = opens || known(head, false);
    if opens {
        if let Some(whole) = head.take_if(|head| head.is_whole) {
            whole.close(wire)?;
        }
        let made = CallHead {
            index,
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            opened_by: OpenedBy::Delta,
            is_whole: false,
        };
        wire.assembler.call_opened(
            wire.out,
            CallFields {
                choice: 0,
                address: made.address(),
                name,
                provider_executed,
                metadata: metadata.as_deref(),
                ..CallFields::default()
            },
        )?;
        *head = Some(Box::new(made));
        (name, metadata) = (None, None);
    }
    let target = match head.as_deref_mut().filter(|_| continues) {
        Some(head) => {
            if !opens {
                // Some gateways repeat the call's name in each of its deltas.
                name = name.filter(|_| head.name.is_none());
                head.id = head.id.take().or_else(|| id.map(str::to_owned));
                head.name = head.name.take().or_else(|| name.map(str::to_owned));
            }
            head.is_whole |= is_whole && !piece.is_empty();
            head.address()
        }
        None => at_index(index),
    };
    if !piece.is_empty() || name.is_some() || metadata.is_some() {
        wire.assembler
            .call_text(wire.out, 0, target, piece, name, metadata.as_deref())?;
    }
    Ok(opens)
}
