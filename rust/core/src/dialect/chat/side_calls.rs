//! Stores the calls that a gateway sends outside the usual place of a choice, until they can be compared with the other
//! calls of the choice.
//!
//! Gateways repeat the calls of a delta in `function_call`, in `message`, in the choice, or in the chunk. A call that
//! the delta does not contain is a separate call.

use crate::assemble::choice::CallComparison;
use crate::assemble::part::object_merge::Growth;
use crate::dialect::chat::calls::is_repeated;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::ParseResult;
use crate::json::Text;
use crate::model::delta::Fragment;
use crate::model::spec::Code;
use std::borrow::Cow;
use std::collections::HashSet;
use std::mem;

/// A call from an unusual place that has not been compared with other calls yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct SideCall {
    id: Option<String>,
    name: Option<String>,
    arguments: String,
    custom: bool,
    metadata: Option<String>,
}

/// The calls of one choice that were sent outside the usual place. These calls may repeat the other calls of the
/// choice.
#[derive(Debug, Default)]
pub(crate) struct SideCalls {
    calls: Vec<SideCall>,
    known: HashSet<(Option<String>, Option<String>, String)>,
    /// Position of the last call from `function_call`. The arguments of this call may arrive in pieces.
    legacy: Option<usize>,
    size: usize,
}

impl SideCalls {
    /// Stores a call unless it repeats an earlier call. The caller compares the call with the other calls of the
    /// payload.
    pub(crate) fn add(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        choice: i32,
        fragment: &Fragment<'_>,
    ) -> ParseResult {
        let text = text(fragment);
        let owned = |word: &Option<Cow<'_, str>>| word.as_deref().map(str::to_owned);
        let key = (
            owned(&fragment.id),
            owned(&fragment.name),
            text.clone().into_owned(),
        );
        if is_blank(fragment, &text) || self.known.contains(&key) {
            return Ok(());
        }
        let (id, name) = (key.0.as_deref(), key.1.as_deref().unwrap_or_default());
        if wire.assembler.compare_call(choice, id, name, &text) == CallComparison::Repeated {
            return Ok(());
        }
        self.known.insert(key);
        self.store(wire, fragment, &text)
    }

    /// Stores a piece of `function_call`, unless the same payload contains it in another member.
    pub(crate) fn add_legacy(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        fragment: &Fragment<'_>,
        beside: &[Fragment<'_>],
    ) -> ParseResult {
        let text = text(fragment);
        if is_blank(fragment, &text) || is_repeated(fragment, beside) {
            return Ok(());
        }
        let last = self.legacy.filter(|_| fragment.name.is_none());
        if last.and_then(|last| self.calls.get(last)).is_none() {
            self.legacy = Some(self.calls.len());
            return self.store(wire, fragment, &text);
        }
        self.hold(wire, text.len(), 0)?;
        if let Some(call) = last.and_then(|last| self.calls.get_mut(last)) {
            call.arguments.push_str(&text);
        }
        Ok(())
    }

    /// Emits the stored calls that differ from all other calls. This method is called when no call can change any more.
    pub(crate) fn settle(&mut self, wire: &mut DecodeContext<'_, '_>, choice: i32) -> ParseResult {
        if self.calls.is_empty() {
            return Ok(());
        }
        let calls = mem::take(&mut self.calls);
        self.clear(wire, calls.len())?;
        let mut is_unclear = false;
        for call in calls {
            let (id, name) = (call.id.as_deref(), call.name.as_deref());
            let arguments = call.arguments.as_str();
            let known = name.unwrap_or_default();
            match wire.assembler.compare_call(choice, id, known, arguments) {
                CallComparison::Repeated => {}
                CallComparison::Unclear => is_unclear = true,
                CallComparison::Own => {
                    wire.out.mark_misread("other_member"); // clients look only in the delta
                    let own = Fragment {
                        id: id.map(Cow::Borrowed),
                        name: name.map(Cow::Borrowed),
                        arguments: Some(Text::plain(arguments)),
                        array_len: 1,
                        custom: call.custom,
                        metadata: call.metadata.as_deref().map(Cow::Borrowed),
                        ..Fragment::default()
                    };
                    wire.assembler.call(wire.out, choice, &own)?;
                }
            }
        }
        if is_unclear {
            wire.out.diagnose(Code::CONFLICT, None, "tool_calls")?;
        }
        Ok(())
    }

    /// Discards the stored calls, because the response restarts.
    pub(crate) fn restart(&mut self, wire: &mut DecodeContext<'_, '_>) -> ParseResult {
        let calls = mem::take(&mut self.calls);
        self.clear(wire, calls.len())
    }

    fn clear(&mut self, wire: &mut DecodeContext<'_, '_>, count: usize) -> ParseResult {
        let held = growth(mem::take(self).size, count);
        wire.assembler.hold(wire.out, held.released())
    }

    fn store(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
        fragment: &Fragment<'_>,
        text: &str,
    ) -> ParseResult {
        let owned = |word: &Option<Cow<'_, str>>| word.as_deref().map(str::to_owned);
        let call = SideCall {
            id: owned(&fragment.id),
            name: owned(&fragment.name),
            arguments: text.to_owned(),
            custom: fragment.custom,
            metadata: owned(&fragment.metadata),
        };
        let words = [&call.id, &call.name, &call.metadata];
        let words: usize = words.into_iter().flatten().map(String::len).sum();
        self.hold(wire, text.len() + words, 1)?;
        self.calls.push(call);
        Ok(())
    }

    fn hold(&mut self, wire: &mut DecodeContext<'_, '_>, size: usize, count: usize) -> ParseResult {
        wire.assembler.hold(wire.out, growth(size, count))?;
        self.size += size;
        Ok(())
    }
}

fn growth(size: usize, count: usize) -> Growth {
    let number = |count| i64::try_from(count).unwrap_or(i64::MAX);
    Growth {
        bytes: number(size),
        entries: number(count),
    }
}

/// Returns true if the fragment contains nothing that identifies or extends a call.
fn is_blank(fragment: &Fragment<'_>, text: &str) -> bool {
    fragment.id.is_none() && fragment.name.is_none() && text.is_empty()
}

fn text<'a>(fragment: &Fragment<'a>) -> Cow<'a, str> {
    let text = || fragment.arguments.clone().unwrap_or_default();
    match fragment.object_arguments {
        Some(object) if !object.is_empty() => Cow::Borrowed(object),
        _ => text().into_whole().0,
    }
}
