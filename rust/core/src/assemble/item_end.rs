//! Where items end: by a close of the wire, or because the choice is over.
//!
//! It knows items; what the end of a part or a call means stands with them.

use super::choice::Choice;
use super::item_again::decide;
use super::item_calls::{end_call, settle_text};
use super::item_parts::finish_item;
use super::shared::{Desk, Step};
use crate::delta::ItemKind;
use crate::event::Sign;

/// The wire closed the item.
pub fn end_item(
    desk: &mut Desk<'_, '_>,
    choice: &mut Choice,
    item: usize,
    encrypted_content: Option<&str>,
    metadata: Option<&str>,
) -> Step {
    decide(desk, choice, item)?;
    choice.book.close(item);
    match choice.book.get(item).map(|item| item.kind) {
        Some(ItemKind::Call) => {
            end_call(desk, choice, item)?;
            if let Some(call) = choice.call_of(item) {
                desk.out.sign(Sign::Ended(call.part));
            }
        }
        Some(_) => {
            finish_item(desk, choice, item, encrypted_content, metadata, true)?;
            for (_, part) in choice.spots(item).filter_map(|spot| choice.one(spot)) {
                desk.out.sign(Sign::Ended(part.part));
            }
        }
        None => {}
    }
    Ok(())
}

/// The choice is over. `ended`: it was not cut. The calls themselves are closed together, by `finalise`.
pub fn end_items(desk: &mut Desk<'_, '_>, choice: &mut Choice, ended: bool) -> Step {
    for item in choice.book.opened() {
        decide(desk, choice, item)?;
        choice.book.close(item);
        match choice.book.get(item).map(|item| item.kind) {
            Some(ItemKind::Call) => settle_text(desk, choice, item, ended)?,
            Some(_) => finish_item(desk, choice, item, None, None, ended)?,
            None => {}
        }
    }
    Ok(())
}
