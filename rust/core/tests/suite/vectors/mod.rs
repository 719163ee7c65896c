//! Reads the project's `tests/vectors`. The README in that folder describes the format.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::policy::Action;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::Policy;
use streamweld_core::model::policy::SwitchValue;
use streamweld_core::model::spec::Code;

/// Returns all tests from all files in a folder.
pub(crate) fn tests_in(folder: &str) -> Vec<Value> {
    let mut tests = Vec::new();
    for document in files_in(folder) {
        tests.extend(document["tests"].as_array().unwrap().iter().cloned());
    }
    tests
}

/// Returns all files in a folder.
pub(crate) fn files_in(folder: &str) -> Vec<Value> {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../tests/vectors", folder]
        .iter()
        .collect();
    let mut files: Vec<PathBuf> = fs::read_dir(&root)
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    let read = |file: PathBuf| {
        let mut document: Value =
            serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(document["format"], 1, "{}", file.display());
        document["file"] = file.file_stem().unwrap().to_str().unwrap().into();
        document
    };
    files.into_iter().map(read).collect()
}

/// Returns the bytes of one element of `chunks`.
pub(crate) fn bytes_of(chunk: &Value) -> Vec<u8> {
    if let Some(text) = chunk.as_str() {
        return text.as_bytes().to_vec();
    }
    if let Some(parts) = chunk.as_array() {
        return parts.iter().flat_map(bytes_of).collect();
    }
    if let Some(hex) = chunk["hex"].as_str() {
        let nibble = |digit: u8| char::from(digit).to_digit(16).unwrap() as u8;
        let pairs = hex.as_bytes().chunks(2);
        return pairs
            .map(|pair| nibble(pair[0]) << 4 | nibble(pair[1]))
            .collect();
    }
    let times = chunk["times"].as_u64().unwrap();
    chunk["text"]
        .as_str()
        .unwrap()
        .repeat(times as usize)
        .into_bytes()
}

/// Returns how a vector's input ends.
pub(crate) fn input_end(test: &Value) -> InputEnd {
    match test["end"].as_str() {
        None => InputEnd::Clean,
        Some("broken") => InputEnd::Broken,
        Some(other) => panic!("end {other}"),
    }
}

/// Returns the policy for the option `policy`: the name of a base, or an object with `base` and `actions`.
pub(crate) fn policy_of(value: &Value) -> Policy {
    let named = value.as_str().or_else(|| value["base"].as_str());
    let named = named.unwrap_or_else(|| Base::Standard.name());
    let mut bases = [Base::Strict, Base::Standard, Base::Salvage].into_iter();
    let mut policy = Policy::new(bases.find(|base| named == base.name()).unwrap());
    for (code, action) in value["actions"].as_object().into_iter().flatten() {
        let code = Code::from_name(code).unwrap();
        let action = Action::from_name(action.as_str().unwrap()).unwrap();
        assert!(policy.set_action(code, action), "{value}");
    }
    for (name, switch) in value.as_object().into_iter().flatten() {
        if !matches!(name.as_str(), "base" | "actions") {
            let switch = SwitchValue::Word(switch.as_str().unwrap());
            assert!(policy.switches.set(name, switch), "{value}");
        }
    }
    policy
}
