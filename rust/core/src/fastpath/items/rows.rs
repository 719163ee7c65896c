//! Processes a row, which is a sequence of complete events that match known templates, for one item or for several
//! alternating items.
//!
//! First, the members of a few dozen events are extracted, and one UTF-8 check covers all of their texts. Then each
//! text is appended to the part that received the previous text of the same template. An event that does more than
//! continue its part ends the row and is decoded by the full decoder.

use crate::assemble::Appended;
use crate::assemble::PieceRun;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Incoming;
use crate::fastpath::items::ItemTemplates;
use crate::fastpath::items::template::ItemTemplate;
use crate::fastpath::numeral::Numeral;
use crate::fastpath::utf8_batch::AT_ONCE;
use crate::fastpath::utf8_batch::LONGEST;
use crate::fastpath::utf8_batch::Utf8Batch;
use crate::model::event::DeltaKind;
use crate::model::event::Deltas;
use crate::model::event::Parts;
use crate::sse::WholeEvents;

/// One event of a row.
#[derive(Clone, Copy, Debug, Default)]
struct MatchedEvent {
    /// Index of the event's template.
    position: usize,
    /// Offset of the event's end.
    end: usize,
    /// Number of events with a sequence number, up to and including this event.
    numbered: usize,
}

/// Hashes of the numbered events (see `text_mark`), in order.
type Marks = [u64; AT_ONCE];

impl ItemTemplates {
    /// Consumes up to `most` events at the start of `lines`.
    ///
    /// The first numbered event must have the number `number`, and each later one must have the next number. Calls
    /// `numbered` with the first number and the marks (hashes) of the consumed events that have a number.
    pub(crate) fn row(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        lines: &[u8],
        most: usize,
        number: Option<u32>,
        mut numbered: impl FnMut(u32, &[u64]),
    ) -> WholeEvents {
        let (mut taken, mut number) = (WholeEvents::default(), number);
        // For a shorter input, the setup would cost more time than it saves.
        let likely = self
            .known
            .get(self.last)
            .and_then(|last| self.known.get(last.next));
        let worth = likely.is_some_and(|it| {
            wire.assembler.leads(&it.route_cache) && lines.len() >= it.length() * 3
        });
        if !worth || !wire.out.takes_rows() {
            return taken;
        }
        loop {
            let remaining = lines.get(taken.bytes..).unwrap_or_default();
            let mut row = [MatchedEvent::default(); AT_ONCE];
            let mut marks = [0; AT_ONCE];
            let most = AT_ONCE.min(most - taken.events);
            let mut texts = Utf8Batch::new();
            let events = row.iter_mut().take(most);
            self.gather(wire, remaining, events, number, &mut texts, &mut marks);
            let (texts, ends) = texts.valid();
            let row = row.get(..ends.len()).unwrap_or_default();
            let mut parts = [0; AT_ONCE];
            let gone = self.append_row(wire, row, texts, ends, &mut parts);
            if let Some(last) = gone.checked_sub(1).and_then(|last| row.get(last)) {
                if let (Some(first), Some(marks)) = (number, marks.get(..last.numbered)) {
                    numbered(first, marks);
                    number = first.checked_add(last.numbered as u32);
                }
                taken.bytes += last.end;
            }
            taken.events += gone;
            if gone < AT_ONCE {
                return taken;
            }
        }
    }

    /// Appends the texts of a row to the parts that received the previous texts, and emits the deltas. Returns how many
    /// texts were appended.
    ///
    /// Stops at the first text that has a different kind or may do more than continue its part.
    #[inline]
    fn append_row(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        row: &[MatchedEvent],
        texts: &str,
        ends: &[usize],
        parts: &mut [u32; AT_ONCE],
    ) -> usize {
        let first = row.first().and_then(|event| self.known.get(event.position));
        let Some((kind, choice)) = first.map(ItemTemplate::kind_and_choice) else {
            return 0;
        };
        let (texts, ends) = wire.out.passes(kind, choice, texts, ends);
        let row = row.get(..ends.len()).unwrap_or_default();
        if row.is_empty() {
            return 0;
        }
        let mut gone = 0;
        if kind == DeltaKind::ToolCall {
            let (known, out) = (&self.known, &mut *wire.out);
            let runs = runs(row, texts, ends, 0).map_while(|(position, run)| {
                let template = known.get(position).filter(|it| it.part.is_none())?;
                Some((&template.route_cache, run))
            });
            gone = wire.assembler.more_of_calls(out, choice, runs, parts);
        }
        for (position, run) in runs(row, texts, ends, gone) {
            let template = self.known.get_mut(position);
            let Some(template) = template.filter(|it| it.kind_and_choice() == (kind, choice))
            else {
                break;
            };
            let more = template.more(wire, run, true);
            for part in parts.iter_mut().skip(gone).take(more.count) {
                *part = more.part;
            }
            gone += more.count;
            if more.count < run.count() {
                break;
            }
        }
        let Some(last) = gone.checked_sub(1).and_then(|last| row.get(last)) else {
            return 0;
        };
        (self.last, self.fruitless) = (last.position, 0);
        let ends = ends.get(..gone).unwrap_or_default();
        let end = ends.last().copied().unwrap_or_default();
        wire.out.emit_all(&Deltas {
            kind,
            choice,
            parts: Parts::Each(parts.get(..gone).unwrap_or_default()),
            texts: texts.get(..end).unwrap_or_default(),
            ends,
        });
        gone
    }

    /// Extracts the members of the events at the start of the input, up to the first event that is not a short text for
    /// a known part.
    #[inline]
    fn gather<'r>(
        &self,
        wire: &DecodeContext<'_, '_>,
        lines: &[u8],
        row: impl Iterator<Item = &'r mut MatchedEvent>,
        number: Option<u32>,
        texts: &mut Utf8Batch,
        marks: &mut Marks,
    ) {
        let mut remaining = lines;
        let (mut next, mut numbered) = (number.and_then(Numeral::of), 0);
        let open = |position: usize| {
            let template = self.known.get(position)?;
            let leads = wire.assembler.leads(&template.route_cache);
            leads.then_some((position, template))
        };
        let mut likely = self.known.get(self.last).and_then(|last| open(last.next));
        for event in row {
            let Some((position, template)) = likely else {
                break;
            };
            let found = template.fit_with(Incoming::Lines(remaining), |bytes| next?.read(bytes));
            let Some(found) = found else {
                break;
            };
            let Some(text) = found.bytes.first_chunk::<LONGEST>() else {
                break;
            };
            if found.escaped || found.text_length >= LONGEST {
                break;
            }
            texts.add(text, found.text_length);
            if found.number.is_some() {
                if let Some(mark) = marks.get_mut(numbered) {
                    *mark = found.mark();
                }
                (next, numbered) = (next.and_then(Numeral::next), numbered + 1);
            }
            remaining = remaining.get(found.length..).unwrap_or_default();
            *event = MatchedEvent {
                position,
                end: lines.len() - remaining.len(),
                numbered,
            };
            if template.next != position {
                likely = open(template.next);
            }
        }
    }
}

/// Skips the first `first` pieces of a row, and groups the remaining pieces into runs with the same template.
#[inline]
fn runs<'r>(
    row: &'r [MatchedEvent],
    texts: &'r str,
    ends: &'r [usize],
    first: usize,
) -> impl Iterator<Item = (usize, PieceRun<'r>)> {
    let (before, mut following) = ends.split_at_checked(first).unwrap_or_default();
    let mut start = before.last().copied().unwrap_or_default();
    let row = row.get(first..).unwrap_or_default();
    let runs = row.chunk_by(|one, next| one.position == next.position);
    runs.map(move |events| {
        let (ends, others) = following.split_at_checked(events.len()).unwrap_or_default();
        let run = PieceRun::new(texts, start, ends);
        (following, start) = (others, run.end());
        let position = events.first().map_or(0, |event| event.position);
        (position, run)
    })
}

impl ItemTemplate {
    /// Returns the kind and choice of the events that this template's pieces produce.
    #[inline]
    pub(crate) fn kind_and_choice(&self) -> (DeltaKind, i32) {
        match self.part {
            Some(part) => (part.channel.into(), part.choice),
            None => (DeltaKind::ToolCall, 0),
        }
    }

    /// Appends the next pieces to the part that received the previous piece. Returns how many pieces were appended.
    ///
    /// Stops at the first piece that may do more than continue the part. `bare` is true if the pieces were already
    /// scanned and contain no escapes or control characters.
    #[inline]
    pub(crate) fn more(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        run: PieceRun<'_>,
        bare: bool,
    ) -> Appended {
        let DecodeContext { assembler, out } = wire;
        let route_cache = &mut self.route_cache;
        match self.part {
            Some(part) => {
                assembler.more_of_part(out, part.choice, self.item_address.sub, run, route_cache)
            }
            None => assembler.more_of_call(out, 0, run, bare, route_cache),
        }
    }
}
