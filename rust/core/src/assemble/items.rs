//! Parts and calls that the wire itself opens and closes: the wire deltas of every dialect but Chat.
//!
//! An item is what the wire addresses: a Responses output item, an Anthropic content block, an AI SDK id. It holds one call
//! or text-like parts. Every method is one wire delta; the rest of the `Assembler`. `metadata` is the text of a JSON
//! object, everywhere.
#![allow(dead_code, unused_variables)] // until the dialects that need it are read

use super::Assembler;
use super::shared::Step;
use crate::delta::{Address, CallSaid, ItemKind, PartAt, PartAttributes};
use crate::event::Usage;
use crate::json::Text;
use crate::out::Out;

impl Assembler {
    /// An item that has no part yet.
    pub fn item_opened(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        kind: ItemKind,
        address: Address<'_>,
    ) -> Step {
        Ok(())
    }

    /// A part opens. `text`: what the opening carries already, a snapshot.
    pub fn part_opened(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// A piece of a part's text; opens what is not known.
    pub fn part_text(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Text<'_>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// The whole text of a part, said with authority; it is not closed by that.
    pub fn part_value(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
    ) -> Step {
        Ok(())
    }

    /// What hangs on a part.
    pub fn part_attributes(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        attributes: PartAttributes<'_>,
    ) -> Step {
        Ok(())
    }

    /// A part is whole. `text` None: as it was streamed.
    pub fn part_closed(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// An item is whole, with all that is in it. `kind` None: whatever is open there.
    pub fn item_closed(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        kind: Option<ItemKind>,
        address: Address<'_>,
        encrypted_content: Option<&str>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// A call is announced. Its arguments: what the opening carries already, a snapshot.
    pub fn call_opened(&mut self, out: &mut Out<'_>, call: CallSaid<'_>) -> Step {
        Ok(())
    }

    /// A piece of a call's arguments.
    pub fn call_text(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        address: Address<'_>,
        text: Text<'_>,
        name: Option<&str>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// The whole arguments of a call, said with authority; it is not closed by that.
    pub fn call_value(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        address: Address<'_>,
        arguments: Option<Text<'_>>,
    ) -> Step {
        Ok(())
    }

    /// A call is whole; it is created if nobody announced it. Its arguments None: as they were streamed.
    pub fn call_closed(&mut self, out: &mut Out<'_>, call: CallSaid<'_>) -> Step {
        Ok(())
    }

    /// A terminal list tells a part again: what is missing is made, what is open closes, nothing is appended.
    pub fn restate_part(
        &mut self,
        out: &mut Out<'_>,
        at: PartAt<'_>,
        text: Option<Text<'_>>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// A terminal list tells a call again.
    pub fn restate_call(&mut self, out: &mut Out<'_>, call: CallSaid<'_>) -> Step {
        Ok(())
    }

    /// What a tool gave that the provider ran. `output`: JSON text. The same call again is the same part.
    pub fn result(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        call_id: &str,
        output: &str,
        is_error: bool,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// A source of the answer. `document`: the text of a JSON object.
    pub fn source(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        url: Option<&str>,
        title: Option<&str>,
        document: Option<&str>,
        metadata: Option<&str>,
    ) -> Step {
        Ok(())
    }

    /// An item that nobody models but that a later turn must hand back.
    pub fn kept_unknown(
        &mut self,
        out: &mut Out<'_>,
        choice: i32,
        event: Option<&str>,
        raw: &[u8],
    ) -> Step {
        Ok(())
    }

    /// Token counts, field by field: the last that says something holds; they are never summed.
    pub fn merge_usage(&mut self, out: &mut Out<'_>, usage: Usage<'_>) -> Step {
        Ok(())
    }

    /// Ids and indexes may be used again for other items.
    pub fn forget_addresses(&mut self, out: &mut Out<'_>, choice: i32) -> Step {
        Ok(())
    }

    /// Whose finish table holds, and whether ids are optional there.
    pub fn speak(&mut self, dialect: &str) {}
}
