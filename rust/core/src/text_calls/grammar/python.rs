//! Parses calls in Python syntax: `[f(k='v'), g()]`, or one per line.

use crate::text_calls::grammar::python_literal::Cursor;
use crate::text_calls::grammar::python_literal::call;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Syntax;

/// Reads a list of calls, and returns false, because nothing else may follow in the block.
pub(crate) fn list(reading: &mut Reading, text: &str) -> Parse<bool> {
    if reading.next(text)? != '[' {
        return Err(ParseFailure::Broken);
    }
    reading.opens(text, b'(')?;
    let raw = reading.balanced(text, Syntax::Python)?;
    let mut cursor = Cursor::new(raw, 1);
    loop {
        cursor.skip_blank();
        if !reading.calls.is_empty() && cursor.take(']') {
            return Ok(false);
        }
        reading
            .calls
            .push(call(&mut cursor).ok_or(ParseFailure::Broken)?);
        cursor.skip_blank();
        if !cursor.take(',') && cursor.peek() != Some(']') {
            return Err(ParseFailure::Broken);
        }
    }
}

/// Reads one call, and returns true, because another call may follow.
pub(crate) fn one(reading: &mut Reading, text: &str) -> Parse<bool> {
    if reading.name.is_empty() {
        reading.next(text)?;
        reading.name = reading.name(text)?.to_owned();
    }
    if reading.peek(text)? != '(' {
        return Err(ParseFailure::Broken);
    }
    let raw = reading.balanced(text, Syntax::Python)?;
    let whole = format!("{}{raw}", std::mem::take(&mut reading.name));
    let mut cursor = Cursor::new(&whole, 0);
    reading
        .calls
        .push(call(&mut cursor).ok_or(ParseFailure::Broken)?);
    Ok(true)
}
