//! Checks that, for any bytes, the framer emits the same events and reports the same limits and unfinished input,
//! regardless of how the bytes are split.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_core::model::limits::Limits;
use streamweld_core::sse::Framer;
use streamweld_core::sse::Item;
use streamweld_fuzz::invariants::assert_same;
use streamweld_fuzz::{Case, case, mutate};

/// Feeds the pieces, and ends the input with the bytes in `last`.
fn read(case: &Case<'_>, limits: &Limits, pieces: &[&[u8]], last: &[u8]) -> String {
    let mut framer = Framer::new(limits, case.options & 32 != 0);
    let mut log = String::new();
    let mut on = |item: Item<'_>| {
        log.push_str(&format!("{item:?}\n"));
        Ok(())
    };
    let fed = pieces
        .iter()
        .try_for_each(|piece| framer.feed(piece, &mut on));
    let end = match fed.and_then(|()| framer.finish(last, &mut on)) {
        Ok(pending) => format!("{pending:?}"),
        Err(fault) => format!("{fault:?}"),
    };
    log + &end
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let case = case(data);
    let mut limits = case.config().limits;
    if case.options & 4 != 0 {
        limits.max_event_bytes = Some(40);
        limits.max_field_bytes = Some(10);
    }
    let whole = read(&case, &limits, &[case.body], &[]);
    assert_same("at the end", &whole, &read(&case, &limits, &[], case.body));
    let pieces = case.pieces();
    assert_same("in pieces", &whole, &read(&case, &limits, &pieces, &[]));
    if let Some((last, fed)) = pieces.split_last() {
        assert_same("last piece", &whole, &read(&case, &limits, fed, last));
    }
    let bytes: Vec<&[u8]> = case.body.chunks(1).collect();
    assert_same("byte by byte", &whole, &read(&case, &limits, &bytes, &[]));
});
