//! Decodes the content blocks of a Messages stream: the opening event, the deltas, and the closing event of each block.
//!
//! The index of a block is its address, even if a gateway misuses indexes. If an index is ambiguous, the assembler
//! determines which block a delta belongs to.

use crate::dialect::anomalies::Anomalies;
use crate::dialect::anthropic::block::Block;
use crate::dialect::anthropic::block::OtherBlock;
use crate::dialect::anthropic::block::TEXT_ELSEWHERE;
use crate::dialect::anthropic::block::THINKING_ELSEWHERE;
use crate::dialect::anthropic::block::at_index;
use crate::dialect::anthropic::block::filled;
use crate::dialect::anthropic::block::message;
use crate::dialect::anthropic::block::open_call;
use crate::dialect::anthropic::block::open_text;
use crate::dialect::anthropic::block::open_thinking;
use crate::dialect::anthropic::block::other;
use crate::dialect::anthropic::block::reasoning;
use crate::dialect::anthropic::block::restate;
use crate::dialect::anthropic::block::text_elsewhere;
use crate::dialect::anthropic::block::thought;
use crate::dialect::anthropic::call_delta::CallHead;
use crate::dialect::anthropic::call_delta::call_delta;
use crate::dialect::anthropic::call_delta::has_call;
use crate::dialect::anthropic::call_delta::has_head;
use crate::dialect::anthropic::call_delta::is_call_delta;
use crate::dialect::anthropic::fields::CALL_TEXTS;
use crate::dialect::anthropic::fields::FACTS;
use crate::dialect::anthropic::fields::call_text;
use crate::dialect::anthropic::fields::check;
use crate::dialect::anthropic::fields::extra_fields;
use crate::dialect::anthropic::fields::type_of;
use crate::dialect::anthropic::fields::unknown_members;
use crate::dialect::anthropic::unknown_block::UnknownBlock;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::upstream_error::is_empty_value;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::integer;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::config::Config;
use crate::model::delta::PartAt;
use crate::model::delta::PartAttributes;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::spec::Code;
use crate::model::unmodelled::Unmodelled;
use std::mem;

/// An unusable index is reported with at most this many characters of its JSON text.
const INDEX_HEAD: usize = 64;
/// Maximum index if the limit is disabled.
const INDEX_CAP: u64 = u32::MAX as u64;

/// A block that `message_start` contained.
#[derive(Debug)]
pub(crate) struct StartBlock {
    pub(crate) raw: String,
    /// Name of the event that contained the block.
    pub(crate) event: Option<String>,
}

/// State of the blocks of one message.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    max_index: u64,
    /// The open blocks that have a part, by index, with the kind of content that their deltas must have.
    open: Map<i64, BlockContent>,
    /// Index of the latest block, of any type. `None` once the block has been closed.
    pub(crate) open_index: Option<i64>,
    /// Kind of content that the deltas of the latest block must have. `None` if the API defines no deltas for blocks of
    /// this type.
    brings: Option<BlockContent>,
    /// Index of the block that was opened last.
    last: Option<i64>,
    /// True if the block that was opened last cannot end a turn, because it is neither text nor a call that the client
    /// runs.
    at_work: bool,
    /// One more than the highest index of any opened block.
    fresh: i64,
    held: Vec<StartBlock>,
    /// Number of held blocks that have been emitted or skipped.
    given: usize,
    /// Positions of held blocks that were also streamed.
    restated: LazyBox<Set<usize>>,
    /// A `compaction` block that is still receiving deltas.
    kept: Option<Box<UnknownBlock>>,
    /// One more than the highest index before a late `message_start`.
    used_before_start: i64,
    /// The latest call.
    head: Option<Box<CallHead>>,
}

blank!(Set<usize>);

impl Blocks {
    pub(crate) fn new(config: &Config) -> Blocks {
        Blocks {
            max_index: config.limits.max_tool_index.unwrap_or(INDEX_CAP),
            ..Blocks::default()
        }
    }

    /// Resets the state when a `message_start` restarts the message.
    pub(crate) fn begin(&mut self) {
        *self = Blocks {
            max_index: self.max_index,
            ..Blocks::default()
        };
    }

    /// Handles a `message_start` that arrives after blocks. The message is repeated from its beginning if a block starts
    /// at an index that is in use already.
    pub(crate) fn start_late(&mut self) {
        self.used_before_start = self.fresh;
    }

    /// Returns true if the latest block can end a turn, because it is text or a call that the client runs.
    pub(crate) fn ends_with_answer(&self) -> bool {
        !self.at_work
    }

    #[inline]
    pub(crate) fn is_within(&self, index: i64) -> bool {
        u64::try_from(index).is_ok_and(|index| index <= self.max_index)
    }

    /// Returns true if no held block is pending. In this state, a delta affects only its own block.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.given >= self.held.len()
    }

    /// Returns the index in an event, or `None` if the index is absent or unusable. An unusable index is reported.
    #[inline]
    pub(crate) fn index(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        event: &Object<'_>,
    ) -> Result<Option<i64>, Fault> {
        let Some(raw) = present(event.get("index")) else {
            return Ok(None);
        };
        let usable = integer(raw).filter(|index| self.is_within(*index));
        if usable.is_some() {
            if !is_plainly_written(raw) {
                wire.out.mark_misread("other_index"); // clients compare the index as it is written
            }
        } else {
            let head = raw.text.char_indices().nth(INDEX_HEAD);
            let end = head.map_or(raw.text.len(), |(at, _)| at);
            let head = raw.text.get(..end).unwrap_or_default();
            wire.out.diagnose(Code::INDEX_UNUSABLE, None, head)?;
        }
        Ok(usable)
    }

    /// Holds back the blocks that `message_start` contained. A held block is emitted unless a `content_block_start` has
    /// the same index, whether this event arrives before or after the block is held back.
    pub(crate) fn hold(&mut self, blocks: Vec<StartBlock>) {
        let streamed = usize::try_from(self.fresh).unwrap_or_default();
        for position in 0..streamed.min(blocks.len()) {
            self.restated.insert(position);
        }
        self.held = blocks;
    }

    /// Handles `content_block_start`. A block without an index gets the next free index.
    pub(crate) fn start<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: Option<i64>,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let index = match index {
            Some(index) => index,
            None => {
                wire.out.diagnose(Code::INDEX_MISSING, None, "")?;
                self.fresh
            }
        };
        if index < self.used_before_start {
            self.used_before_start = 0;
            self.open_index = None; // the block that was open is repeated
            wire.assembler.message_repeated(wire.out, 0)?;
        }
        if !self.is_plain() {
            self.emit_held(wire, Some(index), None)?;
            let position = usize::try_from(index).unwrap_or(usize::MAX);
            if self.given <= position
                && position < self.held.len()
                && self.restated.insert(position)
            {
                wire.out.diagnose(Code::CONTENT_RESTATED, None, "")?;
            }
        }
        self.left_open(wire, "block_open")?; // clients close the latest block at the next stop event
        if index != self.fresh {
            wire.out.mark_misread("other_index"); // clients append blocks to a list and find them by their index
        }
        if begins_with_content(&block.object.members) {
            wire.out.mark_misread("whole_at_start"); // clients read only deltas
        }
        self.open_index = Some(index);
        let kind = FACTS.block_type(&block.object.members);
        if kind != type_of(&block.object.members) {
            wire.out.mark_misread("other_kind"); // clients ignore the content of a block without a type, or raise
        }
        check(wire, &kind, &block.object.members);
        self.brings = BlockContent::of_block(&kind);
        self.open(wire, block, index, notes)
    }

    /// Emits the held blocks with an index less than `below`, or all held blocks if `below` is `None`. Each block is
    /// closed immediately, except the block at `stays_open`, to which a delta belongs.
    fn emit_held(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        below: Option<i64>,
        stays_open: Option<i64>,
    ) -> ParseResult {
        let all = self.held.len();
        let end = below.map_or(all, |below| usize::try_from(below).unwrap_or(0).min(all));
        while self.given < end {
            let position = self.given;
            self.given += 1;
            if self.restated.contains(&position) {
                continue;
            }
            let Some(held) = self.held.get_mut(position) else {
                return Ok(());
            };
            let raw = mem::take(&mut held.raw);
            let event = held.event.take();
            let Some(object) = Object::of(Raw {
                text: &raw,
                kind: Kind::Object,
            }) else {
                continue;
            };
            let block = Block::new(&object, event.as_deref());
            let index = i64::try_from(position).unwrap_or(i64::MAX);
            // Anomalies in a held block belong to an earlier event, so they are not reported here.
            self.open(wire, &block, index, &mut Anomalies::default())?;
            if Some(index) != stays_open {
                self.close(wire, Some(index), &ExtraFields::default())?;
            }
        }
        Ok(())
    }

    /// Compares a block in a complete message with the streamed block. Emits a tool result that was not streamed.
    pub(crate) fn restate<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: i64,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        let kind = FACTS.block_type(&block.object.members);
        if kind.ends_with("tool_result") && index >= self.fresh {
            return self.whole_block(wire, block, index, notes);
        }
        restate(wire, block, index, notes)
    }

    fn open<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: i64,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        self.emit_compaction(wire)?;
        self.last = Some(index);
        self.fresh = self.fresh.max(index.saturating_add(1));
        let kind = FACTS.block_type(&block.object.members);
        self.at_work = !matches!(kind.as_ref(), "text" | "tool_use");
        if let Some(modelled) = FACTS
            .modelled_block(&kind)
            .filter(|_| wire.out.wants_wire_facts())
        {
            let elsewhere = match kind.as_ref() {
                "thinking" => &THINKING_ELSEWHERE[..],
                "tool_use" | "server_tool_use" | "mcp_tool_use" => &CALL_TEXTS[..],
                _ => &[],
            };
            let modelled = [modelled, elsewhere].concat();
            let members = &unknown_members(&block.object.members, &modelled);
            wire.out.keep(Unmodelled::BlockMembers { index, members });
        }
        match kind.as_ref() {
            "text" => {
                self.open.insert(index, BlockContent::Text);
                open_text(wire, block, index, notes)
            }
            "thinking" | "redacted_thinking" => {
                self.open.insert(index, BlockContent::Thinking);
                open_thinking(wire, block, index, kind == "thinking", notes)
            }
            "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                self.open.insert(index, BlockContent::Input);
                let sent = open_call(wire, block, index, &kind, notes)?;
                self.head = Some(Box::new(CallHead::of_block(index, sent)));
                Ok(())
            }
            _ => {
                if self.open.remove(&index) {
                    // Another block with the same index is still open. The new block closes the open block.
                    close(wire, index, None)?;
                }
                wire.out.record_fact(WireFact::Announced(index));
                let other = other(wire, block, &kind, notes)?;
                let block = match &other {
                    OtherBlock::Renamed(text) => text,
                    _ => block.object.raw.text,
                };
                wire.out.keep(Unmodelled::BlockOpened { index, block });
                if let OtherBlock::Growing(kept) = other {
                    self.kept = Some(Box::new(kept));
                }
                Ok(())
            }
        }
    }

    /// Handles `content_block_delta`. Returns false if the type of the delta is unknown.
    #[inline]
    pub(crate) fn delta<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: Option<i64>,
        tail: bool,
        notes: &mut Anomalies<'a>,
    ) -> Result<bool, Fault> {
        let kind = FACTS.delta_type(&block.object.members);
        let modelled = match FACTS.delta(&kind) {
            Some(modelled) => modelled,
            None if is_call_delta(&kind) && has_call(&block.object.members) => {
                &*FACTS.call_delta_fields
            }
            None => {
                let index = index.or(self.last);
                self.miss_arguments(wire, block, index, &["type"], notes);
                self.keep_delta(wire, block, index);
                return Ok(false);
            }
        };
        if tail && kind != "text_delta" {
            return Ok(true);
        }
        if FACTS.delta(&type_of(&block.object.members)).is_none() {
            wire.out.mark_misread("other_kind"); // clients drop a delta of an unknown type, or raise
        }
        check(wire, &kind, &block.object.members);
        self.expect(wire, index);
        if BlockContent::of_delta(&kind).is_some_and(|own| !self.takes(own)) {
            wire.out.mark_misread("other_kind"); // clients drop a delta of another type, or raise
        }
        let index = index.or(self.last);
        if let Some(index) = index.filter(|_| !self.is_plain()) {
            self.emit_held(wire, Some(index.saturating_add(1)), Some(index))?;
        }
        let (members, at) = (&block.object.members, block.at);
        if kind == "compaction_delta" {
            self.keep_delta(wire, block, index);
            self.compact(wire, block, modelled)?;
            return Ok(true);
        }
        if is_call_delta(&kind) && (kind != "input_json_delta" || has_head(members)) {
            let is_provider = matches!(kind.as_ref(), "server_tool_use" | "mcp_tool_use");
            if call_delta(wire, &mut self.head, block, index, is_provider, notes)? {
                self.at_work = is_provider;
            }
            return Ok(true);
        }
        let metadata = block.metadata(modelled);
        let metadata = metadata.as_deref();
        match kind.as_ref() {
            "text_delta" => {
                let at = ("text", &TEXT_ELSEWHERE[..]);
                let (text, metadata) = text_elsewhere(wire, block, at, modelled, notes);
                push(wire, message(index), text, metadata.as_deref())?;
            }
            "thinking_delta" => {
                let (text, metadata) = thought(wire, block, modelled, notes);
                let part = reasoning(index, "thinking");
                push(wire, part, text, metadata.as_deref())?;
            }
            "signature_delta" => {
                let signature = notes.a_text(members, at, "signature");
                let signature = notes.clean(signature);
                let attributes = PartAttributes {
                    signature: filled(&signature),
                    metadata,
                    ..PartAttributes::default()
                };
                let part = reasoning(index, "");
                wire.assembler.part_attributes(wire.out, part, attributes)?;
            }
            "citations_delta" => {
                if let Some(citation) = notes.an_object(members, at, "citation") {
                    let annotations = format!("[{}]", citation.raw.text);
                    let attributes = PartAttributes {
                        annotations: Some(&annotations),
                        metadata,
                        ..PartAttributes::default()
                    };
                    let part = message(index);
                    wire.assembler.part_attributes(wire.out, part, attributes)?;
                }
            }
            _ => {
                let found = call_text(members);
                let own = find(members, "partial_json");
                if found.is_some()
                    && own.is_none_or(|raw| raw.kind != Kind::String || raw.text == "\"\"")
                {
                    wire.out.mark_misread("other_member"); // clients look only for a string in `partial_json`
                }
                let name = found.as_ref().map(|(name, _)| *name);
                let piece = found.map(|(_, piece)| piece).unwrap_or_default();
                let modelled: Vec<&str> = modelled.iter().copied().chain(name).collect();
                let metadata = block.metadata(&modelled);
                let metadata = metadata.as_deref();
                if piece.is_empty() {
                    self.miss_arguments(wire, block, index, &modelled, notes);
                }
                if !piece.is_empty() || metadata.is_some() {
                    let address = at_index(index);
                    wire.assembler
                        .call_text(wire.out, 0, address, piece, None, metadata)?;
                }
            }
        }
        Ok(true)
    }

    /// Handles a delta that is a string instead of an object. Such a delta extends the open text or thinking block.
    pub(crate) fn bare_delta<'a>(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        raw: Raw<'a>,
        index: Option<i64>,
    ) -> ParseResult {
        let (Some(text), Some(index)) = (text(raw), index.or(self.last)) else {
            return Ok(());
        };
        let part = match self.brings {
            Some(BlockContent::Text) => message(Some(index)),
            Some(BlockContent::Thinking) => reasoning(Some(index), "thinking"),
            _ => return Ok(()),
        };
        if self.open_index != Some(index) {
            return Ok(());
        }
        wire.out.mark_misread("other_member"); // clients expect an object
        push(wire, part, text, None)
    }

    /// Reports an unknown member of a delta that may contain arguments of the open call at this index. After this
    /// report, the call is dispatchable only if its arguments also arrive in a known member.
    fn miss_arguments<'a>(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: Option<i64>,
        read: &[&str],
        notes: &mut Anomalies<'a>,
    ) {
        let content = index.and_then(|index| self.open.get(&index));
        if content != Some(&BlockContent::Input) {
            return;
        }
        let may_be = |member: &&Member<'a>| {
            let is_text = matches!(member.raw.kind, Kind::String | Kind::Object | Kind::Array);
            is_text && !is_empty_value(member.raw) && !read.iter().any(|name| member.key.is(name))
        };
        if let Some(member) = block.object.members.iter().find(may_be) {
            notes.shape(member.raw, block.at.member(&member.key.name()));
            wire.assembler.call_misses_arguments(0, at_index(index));
        }
    }

    /// Records a delta that no event contains, so that the repair stage can write it.
    fn keep_delta(
        &self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'_, '_>,
        index: Option<i64>,
    ) {
        let delta = block.object.raw.text;
        wire.out.keep(Unmodelled::BlockDelta { index, delta });
    }

    fn compact(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'_, '_>,
        modelled: &[&str],
    ) -> ParseResult {
        let extra = extra_fields(&block.object.members, modelled);
        match &mut self.kept {
            Some(kept) => {
                kept.update(&extra.members);
                Ok(())
            }
            None if extra.is_empty() => Ok(()),
            None => block.keep(wire),
        }
    }

    /// Handles `content_block_stop`.
    pub(crate) fn stop(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        index: Option<i64>,
        extra: &ExtraFields<'_>,
    ) -> ParseResult {
        self.expect(wire, index);
        self.open_index = None;
        self.close(wire, index, extra)
    }

    /// Returns true if no block is open, or if the deltas of the open block must have this kind of content.
    #[inline]
    pub(crate) fn takes(&self, content: BlockContent) -> bool {
        self.open_index.is_none() || self.brings == Some(content)
    }

    /// Marks the event as misread by clients unless it addresses the open block.
    #[inline]
    pub(crate) fn expect(&self, wire: &mut DecodeContext<'_, '_>, index: Option<i64>) {
        if index.is_none() || index != self.open_index {
            wire.out.mark_misread(match self.open_index {
                None => "not_opened",
                Some(_) => "other_index",
            });
        }
    }

    fn close(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        index: Option<i64>,
        extra: &ExtraFields<'_>,
    ) -> ParseResult {
        self.emit_compaction(wire)?;
        let index = index.or(self.last);
        if let Some(head) = self.head.take_if(|head| head.index == index) {
            head.close(wire)?;
        }
        match index {
            Some(index) if self.open.remove(&index) => close(wire, index, extra.text().as_deref()),
            // The type of the block is unknown, or the block was never opened.
            Some(index) => {
                wire.out.keep(Unmodelled::BlockClosed { index });
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Emits the `compaction` block, if there is one. This method is called when the deltas of the block are complete.
    pub(crate) fn emit_compaction(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        match self.kept.take() {
            Some(kept) => kept.emit_compaction(wire),
            None => Ok(()),
        }
    }

    /// Handles the end of the message, when no block should be open.
    pub(crate) fn end(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.emit_compaction(wire)?;
        self.left_open(wire, "not_closed")?; // clients run a call when its block is closed
        self.open_index = None;
        Ok(())
    }

    /// Reports the latest block if it is still open.
    #[inline]
    fn left_open(&self, wire: &mut DecodeContext<'_, '_>, reason: &'static str) -> ParseResult {
        let Some(index) = self.open_index else {
            return Ok(());
        };
        wire.out.mark_misread(reason);
        wire.out
            .diagnose(Code::BLOCK_LEFT_OPEN, None, &index.to_string())
    }

    /// Emits the held blocks and the `compaction` block when the message or the input ends.
    pub(crate) fn finish(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        self.emit_held(wire, None, None)?;
        self.emit_compaction(wire)
    }

    /// Opens and closes a block of a complete message, because the block has no deltas.
    pub(crate) fn whole_block<'a>(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        block: &Block<'a, '_>,
        index: i64,
        notes: &mut Anomalies<'a>,
    ) -> ParseResult {
        self.open(wire, block, index, notes)?;
        self.close(wire, Some(index), &ExtraFields::default())
    }
}

/// What the deltas of a block contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockContent {
    Text,
    Thinking,
    Input,
}

impl BlockContent {
    fn of_block(kind: &str) -> Option<BlockContent> {
        match kind {
            "text" => Some(BlockContent::Text),
            "thinking" | "redacted_thinking" => Some(BlockContent::Thinking),
            "tool_use" | "server_tool_use" | "mcp_tool_use" => Some(BlockContent::Input),
            _ => None,
        }
    }

    fn of_delta(kind: &str) -> Option<BlockContent> {
        match kind {
            "text_delta" | "citations_delta" => Some(BlockContent::Text),
            "thinking_delta" | "signature_delta" => Some(BlockContent::Thinking),
            _ if is_call_delta(kind) => Some(BlockContent::Input),
            _ => None,
        }
    }
}

/// Returns true if an opening event contains content that should arrive in deltas.
fn begins_with_content(block: &[Member<'_>]) -> bool {
    let has = |key, kind| {
        let member = find(block, key).filter(|raw| raw.kind == kind);
        member.is_some_and(|raw| raw.text.len() > 2 && raw.text.contains('"'))
    };
    match &*FACTS.block_type(block) {
        "text" => has("text", Kind::String),
        "thinking" => has("thinking", Kind::String),
        "tool_use" => has("input", Kind::Object),
        _ => false,
    }
}

/// Returns true if a number is written without a fraction or an exponent.
#[inline]
pub(crate) fn is_plainly_written(raw: Raw<'_>) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    raw.kind == Kind::Number && raw.text.bytes().all(is_plain)
}

fn close(wire: &mut DecodeContext<'_, '_>, index: i64, metadata: Option<&str>) -> ParseResult {
    let address = at_index(Some(index));
    wire.assembler
        .item_closed(wire.out, 0, None, address, None, metadata)
}

fn push(
    wire: &mut DecodeContext<'_, '_>,
    part: PartAt<'_>,
    text: Text<'_>,
    metadata: Option<&str>,
) -> ParseResult {
    match metadata {
        _ if !text.is_empty() => wire.assembler.part_text(wire.out, part, text, metadata),
        Some(metadata) => wire.assembler.choice_metadata(wire.out, 0, metadata),
        None => Ok(()),
    }
}
