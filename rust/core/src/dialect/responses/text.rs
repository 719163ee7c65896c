//! Decodes the text of a Responses stream: deltas, final values, content parts, summaries, and annotations.
//!
//! This module finds the text in an event. The assembler determines which part the text belongs to.

use crate::dialect::anomalies::Pointer;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::dialect::responses::content::each_piece;
use crate::dialect::responses::content::text_kind_of;
use crate::dialect::responses::content::unmodelled_positions;
use crate::dialect::responses::content_index::ContentIndexes;
use crate::dialect::responses::content_index::Purpose;
use crate::dialect::responses::read::ItemAddress;
use crate::dialect::responses::read::Reader;
use crate::dialect::responses::read::extra_fields;
use crate::dialect::responses::spec_tables::FACTS;
use crate::dialect::responses::spec_tables::TextEvent;
use crate::dialect::responses::spec_tables::TextKind;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::extra_fields::ExtraFields;
use crate::json::members::Object;
use crate::json::members::items;
use crate::json::members::members;
use crate::json::members::text;
use crate::model::delta::Address;
use crate::model::delta::ItemKind;
use crate::model::delta::ListedPart;
use crate::model::delta::PartAttributes;
use crate::model::fault::Fault;
use crate::model::lazy_box::blank;
use crate::model::small_map::Map;
use crate::model::small_map::Set;
use crate::model::unmodelled::SentPart;
use crate::model::unmodelled::Unmodelled;
use std::collections::HashMap;

/// Maximum number of items, and of parts in each item, for which annotation counts and closed parts are stored.
const REMEMBERED: usize = 4096;

/// The key of an item: its index, or its id if it has no index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum ItemKey {
    Index(i64),
    Id(String),
    #[default]
    Unaddressed,
}

impl ItemKey {
    fn of(item_address: &ItemAddress<'_>) -> ItemKey {
        item_address
            .index
            .map_or_else(|| ItemKey::of_id(item_address), ItemKey::Index)
    }

    fn of_id(item_address: &ItemAddress<'_>) -> ItemKey {
        let id = item_address.item_id.as_deref();
        id.map_or(ItemKey::Unaddressed, |id| ItemKey::Id(id.to_owned()))
    }
}

/// State of the text parts of one stream.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Number of annotations received for each part.
    annotated: Map<ItemKey, Map<Option<i64>, usize>>,
    /// Parts that are closed. A complete item that repeats a closed part adds no annotations to that part.
    closed: Map<ItemKey, Set<Option<i64>>>,
    /// Unknown members of the last announced message (such as `phase`), as a JSON object. These members become metadata
    /// of the message's parts.
    members: Option<String>,
    members_of: ItemKey,
    /// True until `members` have been attached to a part.
    waiting: bool,
    /// Part positions by `content_index`.
    indexes: ContentIndexes,
    summary_indexes: ContentIndexes,
    /// True once text of a message has arrived.
    has_text: bool,
}

blank!(Texts);

impl Texts {
    /// Returns true if the members of a message have not been attached to a part. As long as these members have not
    /// been attached, the next delta may have to open its part.
    #[inline]
    pub(crate) fn waiting(&self) -> bool {
        self.waiting
    }

    /// Returns true if any `content_index` or `summary_index` was reassigned to another part since the last call to
    /// this function.
    #[inline]
    pub(crate) fn take_renamed(&mut self) -> bool {
        self.indexes.take_renamed() | self.summary_indexes.take_renamed()
    }

    /// Returns the address with the part index replaced by the position of the part in the item.
    #[inline]
    pub(crate) fn with_position<'a>(
        &mut self,
        sent: ItemAddress<'a>,
        wire: &mut DecodeContext<'_, '_>,
        text_kind: TextKind,
        purpose: Purpose,
    ) -> ItemAddress<'a> {
        let position = self
            .content_indexes(text_kind)
            .of(&sent, text_kind.channel, purpose);
        if position != sent.sub {
            wire.out.mark_misread("index_taken"); // clients keep the parts of an item in a list
        }
        ItemAddress {
            sub: position,
            ..sent
        }
    }

    #[inline]
    fn content_indexes(&mut self, text_kind: TextKind) -> &mut ContentIndexes {
        if text_kind == TextKind::SUMMARY {
            &mut self.summary_indexes
        } else {
            &mut self.indexes
        }
    }

    // Events for one part

    /// Handles `response.output_text.delta` and the other text deltas.
    #[inline]
    pub(crate) fn delta<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        facts: TextEvent,
    ) -> ParseResult {
        let TextEvent {
            text_kind,
            position,
            member,
        } = facts;
        let Some(text) = reader.text_of_delta(member).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let sent = reader.item_address(Some(position))?;
        let item_address = self.with_position(sent, &mut reader.wire, text_kind, Purpose::Delta);
        if self.waiting
            && text_kind.item == ItemKind::Message
            && self.members_of == ItemKey::of(&item_address)
        {
            // No event opened the part, so it is opened here with the members of the message. A delta does not contain
            // these members.
            self.waiting = false;
            let DecodeContext { assembler, out } = &mut reader.wire;
            let at = text_kind.at(item_address.address());
            assembler.part_opened(out, at, None, self.members.as_deref())?;
        }
        let metadata = reader.metadata(event);
        self.note(text_kind, Some(&text));
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.part_text(
            out,
            text_kind.at(item_address.address()),
            text,
            metadata.as_deref(),
        )
    }

    /// Appends the message text of a delta that follows a broken document. The ids in the delta are ignored, because
    /// they may be wrong.
    pub(crate) fn recovered(reader: &mut Reader<'_, '_, '_>, facts: TextEvent) -> ParseResult {
        let text = reader.text_of_delta(facts.member);
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        if facts.text_kind.item != ItemKind::Message {
            return Ok(());
        }
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.part_text(out, facts.text_kind.at(Address::default()), text, None)
    }

    /// Handles `response.output_text.done` and similar events, which contain the complete text. The part closes later,
    /// when its content part or its item closes.
    pub(crate) fn value<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        facts: TextEvent,
    ) -> ParseResult {
        let sent = reader.item_address(Some(facts.position))?;
        let item_address =
            self.with_position(sent, &mut reader.wire, facts.text_kind, Purpose::Value);
        let at = facts.text_kind.at(item_address.address());
        let text = reader.text_of_event(facts.member);
        self.note(facts.text_kind, text.as_ref());
        let metadata = reader.metadata(event);
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.part_value(out, at, text)?;
        if metadata.is_none() {
            return Ok(());
        }
        let attributes = PartAttributes {
            metadata: metadata.as_deref(),
            ..PartAttributes::default()
        };
        assembler.part_attributes(out, at, attributes)
    }

    /// Handles `content_part` and `reasoning_summary_part` events (added and done). Returns false if the part has an
    /// unknown type.
    pub(crate) fn part<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
        summary: bool,
        closes: bool,
    ) -> Result<bool, Fault> {
        let Some(part) = reader.object(event, Pointer::ROOT, "part") else {
            return Ok(true);
        };
        let position = if summary {
            FACTS.fields.summary_index
        } else {
            FACTS.fields.content_index
        };
        let sent = reader.item_address(Some(position))?;
        let Some((text_kind, member)) = text_kind_of(&part, summary.then_some(TextKind::SUMMARY))
        else {
            if !closes {
                self.indexes.skip(&sent);
            }
            reader.wire.out.keep(Unmodelled::ContentPart(SentPart {
                item_id: sent.item_id.as_deref(),
                index: sent.index,
                sub: sent.sub,
                part: part.raw.text,
                closes,
            }));
            return Ok(false);
        };
        let purpose = if closes {
            Purpose::Close
        } else {
            Purpose::Open
        };
        let item_address = self.with_position(sent, &mut reader.wire, text_kind, purpose);
        let here = Pointer::ROOT.member("part");
        let text = reader.text(&part, here, member);
        self.note(text_kind, text.as_ref());
        let members = extra_fields(&part, &FACTS.part_fields);
        let at = text_kind.at(item_address.address());
        if closes {
            self.annotations(&part, here, reader, &item_address, text_kind)?;
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.part_closed(out, at, text, members.text().as_deref())?;
            self.close(&item_address);
            return Ok(true);
        }
        let text = text.filter(|text| !text.is_empty());
        let members_sent = if text_kind.item == ItemKind::Message
            && self.members_of == ItemKey::of(&item_address)
        {
            self.waiting = false;
            self.message_members().and(&members).text()
        } else {
            members.text()
        };
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.part_opened(out, at, text, members_sent.as_deref())?;
        self.annotations(&part, here, reader, &item_address, text_kind)?;
        Ok(true)
    }

    /// Handles `response.output_text.annotation.added`.
    pub(crate) fn annotation<'a>(
        &mut self,
        event: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let Some(raw) = event.present("annotation") else {
            return Ok(());
        };
        let sent = reader.item_address(Some(FACTS.fields.content_index))?;
        let item_address =
            self.with_position(sent, &mut reader.wire, TextKind::TEXT, Purpose::Delta);
        annotate(
            reader,
            &item_address,
            TextKind::TEXT,
            &format!("[{}]", raw.text),
        )?;
        self.count(&item_address, 1);
        Ok(())
    }

    /// Emits the `output_text` member of a finished response, if the response has no other text.
    pub(crate) fn top_level<'a>(
        &mut self,
        response: &Object<'a>,
        reader: &mut Reader<'_, '_, 'a>,
    ) -> ParseResult {
        let text = response.present("output_text").and_then(text);
        let Some(text) = text.filter(|text| !self.has_text && !text.is_empty()) else {
            return Ok(());
        };
        self.note(TextKind::TEXT, Some(&text));
        let DecodeContext { assembler, out } = &mut reader.wire;
        out.mark_misread("other_member"); // clients compute this member from the output
        assembler.part_text(out, TextKind::TEXT.at(Address::default()), text, None)
    }

    fn note(&mut self, text_kind: TextKind, text: Option<&Text<'_>>) {
        self.has_text |=
            text_kind.item == ItemKind::Message && text.is_some_and(|text| !text.is_empty());
    }

    // Content of an item

    /// Opens the parts of an announced item that already contain text. `enclosing`: the unknown members of the item.
    pub(crate) fn open_content<'a>(
        &mut self,
        item: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        item_address: &ItemAddress<'a>,
        enclosing: &ExtraFields<'a>,
    ) -> ParseResult {
        self.members = enclosing.text();
        self.waiting = self.members.is_some();
        self.members_of = ItemKey::of(item_address);
        self.annotated.remove(&self.members_of);
        self.closed.remove(&self.members_of);
        self.indexes.begin(item_address);
        self.summary_indexes.begin(item_address);
        let mut others = unmodelled_positions(item, reader).into_iter().peekable();
        let skip = |indexes: &mut ContentIndexes, position| {
            let sub = Some(position);
            indexes.skip(&ItemAddress {
                sub,
                ..item_address.clone()
            });
        };
        each_piece(item, at, reader, |reader, piece, at| {
            if piece.text_kind != TextKind::SUMMARY {
                while let Some(position) = others.next_if(|other| *other < piece.position) {
                    skip(&mut self.indexes, position);
                }
            }
            let Some(text) = piece.text(reader, at).filter(|text| !text.is_empty()) else {
                return Ok(());
            };
            self.note(piece.text_kind, Some(&text));
            let members_sent = enclosing.and(&piece.extra_fields()).text();
            self.waiting = false;
            let sent = ItemAddress {
                sub: Some(piece.position),
                ..item_address.clone()
            };
            let indexes = self.content_indexes(piece.text_kind);
            indexes.of(&sent, piece.text_kind.channel, Purpose::Open);
            let address = sent.address();
            let DecodeContext { assembler, out } = &mut reader.wire;
            assembler.part_opened(
                out,
                piece.text_kind.at(address),
                Some(text),
                members_sent.as_deref(),
            )
        })?;
        for position in others {
            skip(&mut self.indexes, position);
        }
        Ok(())
    }

    /// Closes the parts of a complete item. `again`: true if the item is in the terminal output, which repeats streamed
    /// items. `enclosing`: the unknown members of the item.
    ///
    /// Returns the members in `enclosing` that were not reported when the item opened. If a message was never
    /// announced, its members become metadata of its first part instead.
    pub(crate) fn close_content<'a>(
        &mut self,
        item: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        item_address: &ItemAddress<'a>,
        mut enclosing: ExtraFields<'a>,
        again: bool,
    ) -> Result<ExtraFields<'a>, Fault> {
        let announced = self.members_of == ItemKey::of(item_address);
        let mut entries = Vec::new();
        each_piece(item, at, reader, |reader, piece, at| {
            let indexes = self.content_indexes(piece.text_kind);
            let here = ItemAddress {
                sub: Some(indexes.listed(item_address, piece.text_kind.channel, piece.position)),
                ..item_address.clone()
            };
            let annotations = match &piece.part {
                Some(part) if !self.is_closed(&here) => {
                    self.new_annotations(part, at, reader, &here)
                }
                _ => None,
            };
            let mut rest = piece.extra_fields();
            if piece.text_kind.item == ItemKind::Message && !announced {
                rest = std::mem::take(&mut enclosing).and(&rest);
            }
            self.close(&here);
            let text = piece.text(reader, at);
            self.note(piece.text_kind, text.as_ref());
            entries.push(ListedPart {
                at: piece.text_kind.at(Address {
                    sub: here.sub,
                    ..item_address.address()
                }),
                text,
                annotations,
                metadata: rest.text(),
            });
            Ok(())
        })?;
        let DecodeContext { assembler, out } = &mut reader.wire;
        assembler.parts_listed(out, 0, entries, again)?;
        self.indexes.finish(item_address);
        self.summary_indexes.finish(item_address);
        if !announced {
            return Ok(enclosing);
        }
        let known = self.message_members();
        let known = known.members.iter().filter(|_| !self.waiting);
        let known: HashMap<_, _> = known.map(|one| (one.key.name(), one.raw.text)).collect();
        let mut left = ExtraFields::default();
        for member in enclosing.members {
            if known.get(&member.key.name()) != Some(&member.raw.text) {
                left.members.push(member);
            }
        }
        self.members = None;
        self.members_of = ItemKey::Unaddressed;
        self.waiting = false;
        Ok(left)
    }

    /// Returns the unknown members of the last announced message.
    fn message_members(&self) -> ExtraFields<'_> {
        let text = self.members.as_deref().unwrap_or_default();
        let kind = Kind::Object;
        ExtraFields::of(members(Raw { text, kind }))
    }

    /// Emits the annotations of a part that have not been received before.
    fn annotations<'a>(
        &mut self,
        part: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        item_address: &ItemAddress<'a>,
        text_kind: TextKind,
    ) -> ParseResult {
        match self.new_annotations(part, at, reader, item_address) {
            Some(list) => annotate(reader, item_address, text_kind, &list),
            None => Ok(()),
        }
    }

    /// Returns the annotations of a part that have not been received before, as a JSON array. Returns `None` if there
    /// are no new annotations.
    fn new_annotations<'a>(
        &mut self,
        part: &Object<'a>,
        at: Pointer<'_>,
        reader: &mut Reader<'_, '_, 'a>,
        item_address: &ItemAddress<'a>,
    ) -> Option<String> {
        let listed = part.present("annotations")?;
        if listed.kind != Kind::Array {
            reader.notes.shape(listed, at.member("annotations"));
            return None;
        }
        let known = self.annotated.get(&ItemKey::of(item_address));
        let known = known
            .and_then(|counts| counts.get(&item_address.sub))
            .copied();
        let listed = items(listed);
        let fresh = listed
            .get(known.unwrap_or_default()..)
            .filter(|fresh| !fresh.is_empty())?;
        let texts: Vec<&str> = fresh.iter().map(|raw| raw.text).collect();
        self.count(item_address, fresh.len());
        Some(format!("[{}]", texts.join(",")))
    }

    fn count(&mut self, item_address: &ItemAddress<'_>, more: usize) {
        let key = ItemKey::of(item_address);
        if !self.annotated.contains_key(&key) && self.annotated.len() >= REMEMBERED {
            return;
        }
        let counts = self.annotated.slot(key);
        if counts.contains_key(&item_address.sub) || counts.len() < REMEMBERED {
            *counts.slot(item_address.sub) += more;
        }
    }

    fn close(&mut self, item_address: &ItemAddress<'_>) {
        for key in [ItemKey::of(item_address), ItemKey::of_id(item_address)] {
            if !self.closed.contains_key(&key) && self.closed.len() >= REMEMBERED {
                continue;
            }
            let indexes = self.closed.slot(key);
            if indexes.len() < REMEMBERED {
                indexes.insert(item_address.sub);
            }
        }
    }

    fn is_closed(&self, item_address: &ItemAddress<'_>) -> bool {
        let mut keys = [ItemKey::of(item_address), ItemKey::of_id(item_address)].into_iter();
        keys.any(|key| {
            let indexes = self.closed.get(&key);
            indexes.is_some_and(|indexes| indexes.contains(&item_address.sub))
        })
    }
}

fn annotate(
    reader: &mut Reader<'_, '_, '_>,
    item_address: &ItemAddress<'_>,
    text_kind: TextKind,
    list: &str,
) -> ParseResult {
    let attributes = PartAttributes {
        annotations: Some(list),
        ..PartAttributes::default()
    };
    let DecodeContext { assembler, out } = &mut reader.wire;
    assembler.part_attributes(out, text_kind.at(item_address.address()), attributes)
}
