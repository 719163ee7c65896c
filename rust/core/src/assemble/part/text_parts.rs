//! The text, reasoning and refusal parts of one choice: opens, extends and closes them, and removes repeated text.
//!
//! Only one part is open at a time. The open part closes when a piece for another channel or a tool call arrives.

use crate::assemble::part::content_mode::ContentMode;
pub use crate::assemble::part::text::Attributes;
pub use crate::assemble::part::text::TextPart;
use crate::assemble::part::text::joined;
use crate::assemble::rule_context::ParseResult;
use crate::assemble::rule_context::RuleContext;
use crate::json::Surrogates;
use crate::json::Text;
pub use crate::model::delta::Channel;
use crate::model::event::WireFact;
use crate::model::fault::Fault;
use crate::model::lazy_box::LazyBox;
use crate::model::output::Output;
use crate::model::policy::ContentMode as Mode;
use crate::model::spec::Code;
use std::collections::HashSet;

/// The amount of text received in one channel (text, reasoning or refusal). Texts of different lengths need not be
/// compared.
#[derive(Clone, Copy, Debug, Default)]
struct ChannelLength {
    parts: u32,
    pieces: u32,
    /// Length in bytes.
    length: usize,
}

/// The text, reasoning and refusal parts of one choice.
#[derive(Clone, Debug)]
pub struct TextParts {
    choice: i32,
    content_mode: Mode,
    mode: Option<Box<ContentMode>>,
    joiners: [Surrogates; 3],
    lengths: [ChannelLength; 3],
    /// Annotations for the next text part.
    annotations: LazyBox<Vec<String>>,
    /// Attributes for the next reasoning part.
    attributes: LazyBox<Vec<Attributes>>,
    pub parts: Vec<TextPart>,
    /// Position of the open part. Parts that the stream opens and closes explicitly (`item_text`) do not count.
    open: Option<usize>,
}

impl TextParts {
    pub fn new(choice: i32, content_mode: Mode) -> TextParts {
        TextParts {
            choice,
            content_mode,
            mode: ContentMode::new(content_mode).map(Box::new),
            joiners: [Surrogates::default(); 3],
            lengths: [ChannelLength::default(); 3],
            annotations: LazyBox::default(),
            attributes: LazyBox::default(),
            parts: Vec::new(),
            open: None,
        }
    }

    /// Returns the open part, or `None`. Parts that the stream opens and closes explicitly do not count.
    #[inline]
    pub fn current(&self) -> Option<&TextPart> {
        self.parts.get(self.open?)
    }

    #[inline]
    fn current_mut(&mut self, channel: Channel) -> Option<&mut TextPart> {
        let part = self.parts.get_mut(self.open?);
        part.filter(|part| part.channel == channel)
    }

    /// Returns the part numbers of all open parts, including those that the stream opens and closes explicitly.
    pub fn open_parts(&self) -> impl Iterator<Item = u32> + '_ {
        self.parts
            .iter()
            .filter(|part| part.open)
            .map(|part| part.part)
    }

    fn current_part(&self) -> Option<u32> {
        self.current().map(|part| part.part)
    }

    fn joiner(&mut self, channel: Channel) -> &mut Surrogates {
        let [text, reasoning, refusal] = &mut self.joiners;
        match channel {
            Channel::Text => text,
            Channel::Reasoning => reasoning,
            Channel::Refusal => refusal,
        }
    }

    fn length_mut(&mut self, channel: Channel) -> &mut ChannelLength {
        let [text, reasoning, refusal] = &mut self.lengths;
        match channel {
            Channel::Text => text,
            Channel::Reasoning => reasoning,
            Channel::Refusal => refusal,
        }
    }

    fn length_of(&self, channel: Channel) -> ChannelLength {
        let [text, reasoning, refusal] = self.lengths;
        match channel {
            Channel::Text => text,
            Channel::Reasoning => reasoning,
            Channel::Refusal => refusal,
        }
    }

    /// Adds one piece of text, except for earlier text that the piece repeats (AM8). Returns false if no event was
    /// emitted, so that the caller must keep the metadata.
    #[inline]
    pub fn push(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Result<bool, Fault> {
        if channel == Channel::Text
            && let Some(mode) = &mut self.mode
        {
            let doubtful = mode.is_doubtful(&text);
            let (new, less) = mode.read(text);
            if less {
                ctx.out.mark_misread("text_again");
            }
            let first = less && !mode.reported;
            mode.reported |= less;
            if doubtful || first {
                let (code, detail) = match first {
                    true => (Code::CONTENT_CUMULATIVE, ""),
                    false => (Code::AMBIGUOUS_CUMULATIVE, "appended"),
                };
                ctx.out.diagnose(code, self.current_part(), detail)?;
            }
            return self.push_raw(ctx, channel, kind, new, metadata);
        }
        self.push_raw(ctx, channel, kind, text, metadata)
    }

    /// Like `push`, but does not check the piece for repeated text, because the piece is known to be new.
    #[inline]
    pub fn push_raw(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        kind: &'static str,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Result<bool, Fault> {
        let joiner = self.joiner(channel);
        let continues = joiner.is_pending();
        let (text, lone) = joiner.join(text);
        if continues || joiner.is_pending() {
            ctx.out.mark_misread("half_character");
        }
        if lone {
            let part = self.current_part();
            ctx.out.diagnose(Code::LONE_SURROGATE, part, "")?;
        }
        if text.is_empty() {
            return Ok(false);
        }
        self.append(ctx, channel, kind, &text, metadata)?;
        Ok(true)
    }

    /// Returns true if half of a surrogate pair is held back.
    pub fn has_pending(&self) -> bool {
        self.joiners.iter().any(Surrogates::is_pending)
    }

    /// Closes the open part, if any, because other content arrives.
    #[inline]
    pub fn close_open(&mut self, ctx: &mut RuleContext<'_, '_>) -> ParseResult {
        if self.open.is_none() {
            return Ok(());
        }
        self.flush_joiner(ctx)?;
        self.close(ctx.out);
        Ok(())
    }

    /// Returns true if `text` equals all text of the channel so far, and this text arrived in at least two pieces
    /// (AM9).
    pub fn restates(&self, channel: Channel, text: &Text<'_>) -> bool {
        let lengths = self.length_of(channel);
        lengths.pieces > 1
            && lengths.length == text.body.len()
            && text.lead_low.is_none()
            && text.tail_high.is_none()
            && self.channel_text(channel) == *text.body
    }

    /// Returns the number of bytes received in a channel (text, reasoning or refusal).
    pub fn length(&self, channel: Channel) -> usize {
        self.length_of(channel).length
    }

    /// Returns all text received in a channel (text, reasoning or refusal). Takes time proportional to the length of
    /// that text.
    pub fn channel_text(&self, channel: Channel) -> String {
        let parts = self.parts.iter();
        let parts = parts.filter(|part| part.channel == channel && !part.void);
        parts.map(|part| part.text.as_str()).collect()
    }

    pub fn annotate(&mut self, ctx: &mut RuleContext<'_, '_>, raw: &str) -> ParseResult {
        ctx.spend_bytes(raw.len())?;
        ctx.spend_entries(1)?;
        match self.current_mut(Channel::Text) {
            Some(part) => part.annotations.push(raw.to_owned()),
            None => self.annotations.push(raw.to_owned()),
        }
        Ok(())
    }

    pub fn attribute(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        attributes: Attributes,
    ) -> ParseResult {
        let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let details: usize = attributes.details.iter().map(String::len).sum();
        ctx.spend_bytes(
            length(&attributes.signature) + length(&attributes.encrypted_content) + details,
        )?;
        ctx.spend_entries(1)?;
        match self.current_mut(Channel::Reasoning) {
            Some(part) => part.attributes.take_in(attributes),
            None => self.attributes.push(attributes),
        }
        Ok(())
    }

    /// Closes the open reasoning part with these attributes, or adds a part that has the attributes but no text.
    pub fn end_reasoning(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        attributes: Attributes,
    ) -> ParseResult {
        let redacted = attributes.encrypted_content.is_some();
        if redacted || self.current_mut(Channel::Reasoning).is_none() {
            self.close_open(ctx)?;
        }
        self.attribute(ctx, attributes)?;
        let kind = if redacted { "redacted" } else { "thinking" };
        match self.current_mut(Channel::Reasoning) {
            Some(part) => part.kind = kind,
            None => self.open(ctx, Channel::Reasoning, kind, None)?,
        }
        self.close_open(ctx)
    }

    /// Replaces the text of a channel with the text of a complete message. Returns false and changes nothing unless the
    /// channel has only one part, which is open.
    pub fn correct(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        text: &str,
    ) -> Result<bool, Fault> {
        if self.length_of(channel).parts > 1 {
            return Ok(false);
        }
        let Some(part) = self.current_mut(channel) else {
            return Ok(false);
        };
        ctx.spend_bytes(text.len())?;
        text.clone_into(&mut part.text);
        self.length_mut(channel).length = text.len();
        Ok(true)
    }

    /// Turns the open text part into reasoning: closes the part with empty text, and emits the text in a new reasoning
    /// part.
    pub fn retype(&mut self, ctx: &mut RuleContext<'_, '_>) -> ParseResult {
        if self.current_mut(Channel::Text).is_none() {
            return Ok(());
        }
        self.flush_joiner(ctx)?;
        let Some(part) = self.current_mut(Channel::Text) else {
            return Ok(());
        };
        part.void = true;
        let text = std::mem::take(&mut part.text);
        self.close(ctx.out);
        let lengths = self.length_mut(Channel::Text);
        lengths.length -= text.len();
        lengths.parts -= 1;
        self.append(ctx, Channel::Reasoning, "raw", &text, None)
    }

    /// AM10: discards all parts. An open part closes with empty text.
    pub fn take_back(&mut self, out: &mut Output<'_>) {
        if let Some(part) = self.open.and_then(|position| self.parts.get_mut(position)) {
            part.text.clear();
            self.close(out);
        }
        self.parts.clear();
        self.lengths = [ChannelLength::default(); 3];
        self.mode = ContentMode::new(self.content_mode).map(Box::new);
        self.joiners = [Surrogates::default(); 3];
        self.annotations = LazyBox::default();
        self.attributes = LazyBox::default();
    }

    /// Marks the parts with number `first` or higher as retracted, so that they do not belong to the response.
    pub fn take_back_from(&mut self, first: u32) {
        let parts = self.parts.iter_mut().rev();
        for part in parts.take_while(|part| part.part >= first) {
            part.void = true;
        }
    }

    /// Closes the open part at the end of the choice. A held-back half of a surrogate pair is emitted as U+FFFD, even
    /// if no part is open. Returns the annotations and details that no part contains, as member names and texts of JSON
    /// arrays.
    pub fn end(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
    ) -> Result<Vec<(&'static str, String)>, Fault> {
        self.close_open(ctx)?;
        for channel in [Channel::Text, Channel::Reasoning, Channel::Refusal] {
            if let Some(half) = self.joiner(channel).finish() {
                ctx.out.diagnose(Code::LONE_SURROGATE, None, "")?;
                self.append(ctx, channel, "raw", half.encode_utf8(&mut [0; 4]), None)?;
            }
        }
        self.close_open(ctx)?;
        let mut left = Vec::new();
        if !self.attributes.is_empty() {
            let waiting = self.attributes.take();
            let attached = self.have_attached(&waiting);
            let details: Vec<String> = waiting.iter().flat_map(|one| one.details.clone()).collect();
            if !attached {
                // Clients must send signed or encrypted reasoning back in the next turn, even without text.
                self.attributes = waiting.into();
                self.open(ctx, Channel::Reasoning, "raw", None)?;
                self.close(ctx.out);
            } else if !details.is_empty()
                && !self
                    .parts
                    .iter()
                    .any(|part| !part.attributes.details.is_empty())
            {
                left.push(("reasoning_details", joined(&details)));
            }
        }
        if !self.annotations.is_empty() {
            left.push(("annotations", joined(&self.annotations.take())));
        }
        Ok(left)
    }

    /// Returns true if the parts already contain all signatures and encrypted content in `waiting`, because a complete
    /// message repeated them.
    fn have_attached(&self, waiting: &[Attributes]) -> bool {
        let among = |field: fn(&Attributes) -> &Option<String>| {
            let known = self.parts.iter().map(|part| field(&part.attributes));
            let known: HashSet<&String> = known.flatten().collect();
            let mut texts = waiting.iter().filter_map(|one| field(one).as_ref());
            texts.all(|text| known.contains(text))
        };
        among(|attributes| &attributes.signature)
            && among(|attributes| &attributes.encrypted_content)
    }

    #[inline]
    fn append(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        kind: &'static str,
        text: &str,
        mut metadata: Option<&str>,
    ) -> ParseResult {
        ctx.spend_bytes(text.len())?;
        if self.current_mut(channel).is_none() {
            self.close_open(ctx)?;
            self.open(ctx, channel, kind, metadata.take())?;
        }
        self.grow(ctx, channel, text, metadata);
        Ok(())
    }

    /// Adds a non-empty piece of text on the fast path, if `goes_on` returns true. If `goes_on` returns false, changes
    /// nothing and returns false.
    #[inline]
    pub fn go_on(&mut self, ctx: &mut RuleContext<'_, '_>, text: &str) -> Result<bool, Fault> {
        if text.is_empty() || !self.goes_on() {
            return Ok(false);
        }
        ctx.spend_bytes(text.len())?;
        self.grow(ctx, Channel::Text, text, None);
        Ok(true)
    }

    /// Returns true if a text part is open, no half of a surrogate pair is held back, and repeated text is not removed.
    #[inline]
    pub fn goes_on(&self) -> bool {
        let [joiner, ..] = &self.joiners;
        let open = self.current().map(|part| part.channel) == Some(Channel::Text);
        open && self.mode.is_none() && !joiner.is_pending()
    }

    /// Adds `count` non-empty pieces of text in one step and returns the number of their part. The caller emits their
    /// deltas. Returns `None` and changes nothing if the pieces cannot be added on the fast path.
    pub fn go_on_by(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        texts: &str,
        count: usize,
    ) -> Option<u32> {
        if !self.goes_on() || ctx.spend_bytes(texts.len()).is_err() {
            return None;
        }
        let lengths = self.length_mut(Channel::Text);
        lengths.pieces = lengths
            .pieces
            .saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        lengths.length += texts.len();
        let part = self.parts.get_mut(self.open?)?;
        part.text.push_str(texts);
        Some(part.part)
    }

    /// Appends text to the open part and emits the delta. The open part must belong to this channel.
    #[inline]
    fn grow(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        text: &str,
        metadata: Option<&str>,
    ) {
        let choice = self.choice;
        let lengths = self.length_mut(channel);
        lengths.pieces = lengths.pieces.saturating_add(1);
        lengths.length += text.len();
        let Some(part) = self.open.and_then(|position| self.parts.get_mut(position)) else {
            return;
        };
        part.text.push_str(text);
        part.delta(choice, text, metadata, |event| ctx.out.emit(event));
    }

    fn open(
        &mut self,
        ctx: &mut RuleContext<'_, '_>,
        channel: Channel,
        kind: &'static str,
        metadata: Option<&str>,
    ) -> ParseResult {
        let (part, choice) = (ctx.next_part()?, self.choice);
        let mut new = TextPart::new(part, channel, kind);
        if channel == Channel::Text {
            new.annotations = self.annotations.take();
        } else if channel == Channel::Reasoning {
            for one in self.attributes.take() {
                new.attributes.take_in(one);
            }
        }
        ctx.out.record_fact(WireFact::Address {
            index: None,
            sub: None,
            item_id: None,
        });
        new.started(choice, metadata, |event| ctx.out.emit(event));
        self.open = Some(self.parts.len());
        self.parts.reserve_exact(usize::from(self.parts.is_empty()));
        self.parts.push(new);
        self.length_mut(channel).parts += 1;
        Ok(())
    }

    fn close(&mut self, out: &mut Output<'_>) {
        let choice = self.choice;
        let position = self.open.take();
        if let Some(part) = position.and_then(|position| self.parts.get_mut(position)) {
            part.open = false;
            part.done(choice, |event| out.emit(event));
        }
    }

    fn flush_joiner(&mut self, ctx: &mut RuleContext<'_, '_>) -> ParseResult {
        let Some((part, channel, kind)) =
            self.current().map(|one| (one.part, one.channel, one.kind))
        else {
            return Ok(());
        };
        let Some(tail) = self.joiner(channel).finish() else {
            return Ok(());
        };
        ctx.report(Code::LONE_SURROGATE, part)?;
        self.append(ctx, channel, kind, tail.encode_utf8(&mut [0; 4]), None)
    }
}
