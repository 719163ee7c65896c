//! Checks that a conversion writes the same bytes regardless of how the input is split, that the output can be parsed,
//! and that a truncated source is never reported as a success.
#![no_main]

use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use streamweld_core::model::delta::Completeness;
use streamweld_core::model::fault::Class;
use streamweld_core::model::policy::{Base, Policy};
use streamweld_core::{Config, Converter, Dialect, WriteOptions};
use streamweld_fuzz::{Case, case, dialects, lifecycle, mutate};

fn convert(case: &Case<'_>, target: Dialect, pieces: &[&[u8]]) -> Option<(Vec<u8>, Converter)> {
    let options = WriteOptions {
        prefix: "fuzz".to_owned(),
        hold_arguments: case.reads.len() % 2 == 1,
        ..WriteOptions::default()
    };
    let mut converter = Converter::new(None, target, case.config(), options).ok()?;
    let mut out = Vec::new();
    for piece in pieces {
        converter.feed(piece, &mut out).ok()?;
    }
    converter.close(case.end(), &mut out).ok()?;
    Some((out, converter))
}

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_target!(|data: &[u8]| {
    let case = case(data);
    let target = dialects()[usize::from(case.options >> 5) % 6];
    let Some((out, converter)) = convert(&case, target, &[case.body]) else {
        return;
    };
    let (cut, _) = convert(&case, target, &case.pieces()).expect("only the cut source is refused");
    assert_eq!(
        String::from_utf8_lossy(&out),
        String::from_utf8_lossy(&cut),
        "in pieces"
    );
    let config = Config {
        policy: Policy::new(Base::Standard),
        ..Config::default()
    };
    let (seen, fault) = lifecycle(&out, Some(target), &config, case.end());
    let class = fault.as_ref().map(|fault| fault.class);
    let shown = || String::from_utf8_lossy(&out).into_owned();
    assert!(
        matches!(
            class,
            None | Some(Class::Upstream | Class::Truncated | Class::NotAnEventStream)
        ),
        "the output cannot be read: {fault:?}\n{}",
        shown()
    );
    if class.is_none() && converter.completeness() == Completeness::Truncated {
        let success = seen
            .finished
            .iter()
            .find(|(_, reason)| matches!(*reason, "stop" | "tool_calls"));
        assert_eq!(success, None, "a cut source became a success\n{}", shown());
    }
});
