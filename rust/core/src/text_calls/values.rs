//! Converts the raw text values of a call to the types in the tool's JSON schema.
//!
//! The value of a parameter that can only be a string stays unchanged. Any other value must match one of the types that
//! the schema allows; otherwise it is refused.

use crate::assemble::part::canonical_json::canonical;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Scanner;
use crate::json::members::members;
use crate::json::write_string;
use crate::model::config::Config;
use crate::text_calls::reading::Arguments;
use crate::text_calls::reading::ParsedCall;
use crate::text_calls::reading::Value as Read;
use crate::text_calls::reading::has_unique_keys;
use serde_json::Map;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::OnceLock;

/// Maximum number of digits in an exponent that is compared by value.
const MAX_EXPONENT: usize = 18;
/// Maximum number of schemas to visit for one parameter. References may form a cycle.
const MAX_SCHEMAS: usize = 256;

/// The types that a schema allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    pub const NULL: Types = Types(1);
    pub const INTEGER: Types = Types(2);
    pub const NUMBER: Types = Types(4);
    pub const BOOLEAN: Types = Types(8);
    pub const OBJECT: Types = Types(16);
    pub const ARRAY: Types = Types(32);
    pub const STRING: Types = Types(64);

    fn allows(self, other: Types) -> bool {
        self.0 & other.0 != 0
    }

    fn or(self, other: Types) -> Types {
        Types(self.0 | other.0)
    }

    /// Returns true if only strings, or only strings and null, are allowed.
    fn is_text(self) -> bool {
        self.allows(Types::STRING) && self.or(Types::NULL) == Types::STRING.or(Types::NULL)
    }

    /// Returns the type with this name. Tool schemas use many names for each type; an unknown name means a string.
    fn named(word: &str) -> Types {
        match word.to_ascii_lowercase().as_str() {
            "null" => Types::NULL,
            "integer" | "int" | "long" | "short" | "bigint" => Types::INTEGER,
            "number" | "float" | "double" | "decimal" | "num" => Types::NUMBER,
            "boolean" | "bool" => Types::BOOLEAN,
            "object" | "dict" | "map" => Types::OBJECT,
            "array" | "list" | "tuple" => Types::ARRAY,
            _ => Types::STRING,
        }
    }

    /// Returns the type of a JSON text.
    fn of_text(raw: Raw<'_>) -> Types {
        match raw.kind {
            Kind::Null => Types::NULL,
            Kind::True | Kind::False => Types::BOOLEAN,
            Kind::Number if raw.text.contains(['.', 'e', 'E']) => Types::NUMBER,
            Kind::Number => Types::INTEGER.or(Types::NUMBER),
            Kind::String => Types::STRING,
            Kind::Array => Types::ARRAY,
            Kind::Object => Types::OBJECT,
        }
    }

    fn of(value: &Value) -> Types {
        match value {
            Value::Null => Types::NULL,
            Value::Bool(_) => Types::BOOLEAN,
            Value::Number(number) if number.is_f64() => Types::NUMBER,
            Value::Number(_) => Types::INTEGER,
            Value::String(_) => Types::STRING,
            Value::Array(_) => Types::ARRAY,
            Value::Object(_) => Types::OBJECT,
        }
    }
}

/// The parameters of a tool, as described by its schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters<'a> {
    root: &'a Value,
}

impl<'a> Parameters<'a> {
    pub fn new(root: &'a Value) -> Parameters<'a> {
        Parameters { root }
    }

    /// Returns the types of a parameter, or `None` if the schema does not describe it.
    pub fn types(&self, name: &str) -> Option<Types> {
        let mut found = Vec::new();
        let mut rest = MAX_SCHEMAS;
        self.visit(self.root, &mut rest, &mut |schema| {
            let described = schema.get("properties").and_then(|all| all.get(name));
            found.extend(described);
        });
        let mut types = Types::default();
        for schema in &found {
            self.visit(schema, &mut rest, &mut |schema| {
                types = types.or(declared(schema))
            });
        }
        (types != Types::default()).then_some(types)
    }

    /// Calls `look` with the schema, with the schemas that it refers to, and with its alternatives.
    fn visit(
        &self,
        schema: &'a Value,
        rest: &mut usize,
        look: &mut dyn FnMut(&'a Map<String, Value>),
    ) {
        let mut waiting = vec![schema];
        while let Some(schema) = waiting.pop() {
            if *rest == 0 {
                return;
            }
            *rest -= 1;
            let Some(members) = schema.as_object() else {
                continue;
            };
            look(members);
            let referred = members.get("$ref").and_then(Value::as_str);
            let referred = referred.and_then(|position| position.strip_prefix('#'));
            waiting.extend(referred.and_then(|position| self.root.pointer(position)));
            for key in ["anyOf", "oneOf", "allOf"] {
                let list = members.get(key).and_then(Value::as_array);
                waiting.extend(list.into_iter().flatten());
            }
        }
    }
}

/// Returns the types that a schema itself declares, without the types of schemas that it refers to.
fn declared(schema: &Map<String, Value>) -> Types {
    let mut types = Types::default();
    match schema.get("type") {
        Some(Value::String(word)) => types = Types::named(word),
        Some(Value::Array(words)) => {
            let words = words.iter().filter_map(Value::as_str);
            types = words.fold(types, |types, word| types.or(Types::named(word)));
        }
        _ => {}
    }
    if types == Types::default() {
        let listed = schema.get("enum").and_then(Value::as_array);
        let values = listed.into_iter().flatten().chain(schema.get("const"));
        types = values.fold(types, |types, value| types.or(Types::of(value)));
    }
    if types != Types::default() && schema.get("nullable") == Some(&Value::Bool(true)) {
        types = types.or(Types::NULL);
    }
    types
}

/// Returns the raw text of a value as JSON, or `None` if the value matches none of the types.
pub(crate) fn typed(raw: &str, types: Option<Types>) -> Option<String> {
    let text = |raw: &str| {
        let mut out = String::with_capacity(raw.len() + 2);
        write_string(&mut out, raw);
        out
    };
    let Some(types) = types.filter(|types| !types.is_text()) else {
        return Some(text(raw));
    };
    let trimmed = raw.trim_matches([' ', '\t', '\n', '\r']);
    let found = [
        (Types::NULL, null(trimmed)),
        (Types::INTEGER.or(Types::NUMBER), integer(trimmed)),
        (Types::NUMBER, number(trimmed)),
        (Types::BOOLEAN, boolean(trimmed)),
        (Types::OBJECT, json(trimmed, '{')),
        (Types::ARRAY, json(trimmed, '[')),
        (Types::STRING, Some(text(raw))),
    ];
    let mut found = found.into_iter().filter(|(such, _)| types.allows(*such));
    found.find_map(|(_, value)| value)
}

/// Returns an integer (optional sign and digits) in JSON syntax, or `None` for other text.
fn integer(raw: &str) -> Option<String> {
    let (sign, digits) = match raw.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", raw.strip_prefix('+').unwrap_or(raw)),
    };
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let digits = digits.trim_start_matches('0');
    Some(match digits {
        "" => "0".to_owned(),
        digits => format!("{sign}{digits}"),
    })
}

/// Returns a number in JSON syntax, without a plus sign and leading zeros, or `None` for other text.
fn number(raw: &str) -> Option<String> {
    let (sign, digits) = match raw.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", raw.strip_prefix('+').unwrap_or(raw)),
    };
    let short = digits.trim_start_matches('0');
    let zero = if short.starts_with(|c: char| c.is_ascii_digit()) {
        ""
    } else {
        "0"
    };
    let zero = if short.len() < digits.len() { zero } else { "" };
    let spelled = format!("{sign}{zero}{short}");
    let mut scanner = Scanner::new(&spelled, None);
    scanner.number().ok()?;
    scanner.finish().ok()?;
    let is_finite = spelled.parse::<f64>().is_ok_and(f64::is_finite);
    is_finite.then_some(spelled)
}

fn null(raw: &str) -> Option<String> {
    raw.eq_ignore_ascii_case("null").then(|| "null".to_owned())
}

fn boolean(raw: &str) -> Option<String> {
    let word = ["true", "false"]
        .into_iter()
        .find(|word| raw.eq_ignore_ascii_case(word));
    word.map(str::to_owned)
}

/// Returns the JSON value that begins with this bracket, as written. Returns `None` if it is not valid or has duplicate
/// keys.
fn json(raw: &str, opener: char) -> Option<String> {
    if !raw.starts_with(opener) {
        return None;
    }
    let mut scanner = Scanner::new(raw, None);
    let value = scanner.skip().ok()?;
    scanner.finish().ok()?;
    has_unique_keys(value.text).then(|| value.text.to_owned())
}

/// One of the request's tools.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    schema: Option<Value>,
    /// True if calls to this tool always stay text.
    is_never: bool,
}

impl Tool {
    /// Creates a tool. `schema`: the JSON text of the tool's parameter schema.
    pub fn new(schema: Option<&str>) -> Tool {
        let schema = schema.and_then(|text| serde_json::from_str(text).ok());
        let mark = schema
            .as_ref()
            .and_then(|schema: &Value| schema.get("x-text-calls"));
        Tool {
            is_never: mark == Some(&Value::Bool(false)),
            schema,
        }
    }
}

/// The request's tools. The schemas are parsed only when the first block is checked, because most streams have no
/// block.
#[derive(Debug)]
pub(crate) struct Tools {
    config: Arc<Config>,
    parsed: OnceLock<Option<HashMap<String, Tool>>>,
}

impl Tools {
    pub fn new(config: &Arc<Config>) -> Tools {
        Tools {
            config: Arc::clone(config),
            parsed: OnceLock::new(),
        }
    }

    /// Returns the tools by name, or `None` if the caller supplied none. Without tools, the names of calls are not
    /// checked.
    pub fn get(&self) -> Option<&HashMap<String, Tool>> {
        let parse = || {
            let tools = self.config.text_call_tools.as_ref()?.iter();
            let tools = tools.map(|(name, schema)| (name.clone(), Tool::new(schema.as_deref())));
            Some(tools.collect())
        };
        self.parsed.get_or_init(parse).as_ref()
    }
}

/// The reason why a block stays text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Malformed,
    Cut,
    UnknownName,
    NoTools,
    Never,
    BadValue,
    BadArguments,
    TextFollows,
    Finish,
    /// The response contains a refusal.
    Declined,
    Limit,
}

impl Refusal {
    pub fn name(self) -> &'static str {
        match self {
            Refusal::Malformed => "malformed",
            Refusal::Cut => "cut",
            Refusal::UnknownName => "unknown_name",
            Refusal::NoTools => "no_tools",
            Refusal::Never => "never",
            Refusal::BadValue => "bad_value",
            Refusal::BadArguments => "bad_arguments",
            Refusal::TextFollows => "text_follows",
            Refusal::Finish => "finish",
            Refusal::Declined => "refusal",
            Refusal::Limit => "limit",
        }
    }
}

/// Returns a call's arguments as the text of a JSON object, or the reason for refusing the call.
///
/// `wholly`: all required members must be present, and unknown members are refused.
pub(crate) fn arguments(
    found: &ParsedCall,
    tool: Option<&Tool>,
    wholly: bool,
) -> Result<String, Refusal> {
    if tool.is_some_and(|tool| tool.is_never) {
        return Err(Refusal::Never);
    }
    let schema = tool.and_then(|tool| tool.schema.as_ref());
    let schema = schema.map(Parameters::new);
    let text = match &found.arguments {
        Arguments::Object(text) => text.clone(),
        Arguments::Parameters(members) => {
            let mut text = String::from("{");
            for (key, value) in members {
                if text.len() > 1 {
                    text.push(',');
                }
                write_string(&mut text, key);
                text.push(':');
                let types = schema.and_then(|schema| schema.types(key));
                text.push_str(&json_value(value, types).ok_or(Refusal::BadValue)?);
            }
            text.push('}');
            text
        }
    };
    if wholly && !schema.is_some_and(|schema| schema.fits(&text)) {
        return Err(Refusal::BadArguments);
    }
    Ok(text)
}

/// Returns a text that is the same for all JSON texts of equal arguments. `5`, `5.0`, and `0.5e1` are equal.
pub(crate) fn comparable(arguments: &str) -> String {
    let text = canonical(arguments);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (before, value) = rest.split_at(start);
        out.push_str(before);
        let length = if value.starts_with('"') {
            string_length(value)
        } else {
            let is_number =
                |c: char| c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E');
            value.find(|c| !is_number(c)).unwrap_or(value.len())
        };
        let (value, after) = value.split_at(length);
        match comparable_number(value) {
            Some(number) => out.push_str(&number),
            None => out.push_str(value),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the length of the JSON string at the beginning of the text.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let mut bytes = text.bytes().enumerate().skip(1);
    let end = bytes.find(|(_, byte)| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// Returns the digits of a JSON number, without zeros at either end, and its power of ten.
///
/// Returns `None` for other text and for exponents that are too large.
fn comparable_number(text: &str) -> Option<String> {
    let (sign, number) = match text.strip_prefix('-') {
        Some(number) => ("-", number),
        None => ("", text),
    };
    let (number, exponent) = number.split_once(['e', 'E']).unwrap_or((number, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let exponent_digits = exponent.trim_start_matches(['+', '-']);
    if exponent_digits.len() > MAX_EXPONENT {
        return None;
    }
    let exponent: i64 = exponent.parse().ok()?;
    let digits = digits.trim_start_matches('0');
    let bare = digits.trim_end_matches('0');
    if bare.is_empty() {
        return Some("0".to_owned());
    }
    let zeros = i64::try_from(digits.len() - bare.len()).ok()?;
    let power = exponent - i64::try_from(fraction.len()).ok()? + zeros;
    Some(format!("{sign}{bare}e{power}"))
}

/// Returns a value as JSON, or `None` if the value matches none of the allowed types.
fn json_value(value: &Read, types: Option<Types>) -> Option<String> {
    match value {
        Read::Raw(raw) => typed(raw, types),
        Read::Text(text) => {
            let mut out = String::with_capacity(text.len() + 2);
            write_string(&mut out, text);
            Some(out)
        }
        Read::Json(text) => {
            let mut scanner = Scanner::new(text, None);
            let value = scanner.skip().ok()?;
            scanner.finish().ok()?;
            has_unique_keys(value.text).then(|| text.clone())
        }
    }
}

impl Parameters<'_> {
    /// Returns true if the object has all required members, no unknown members, and values of the declared types.
    fn fits(&self, object: &str) -> bool {
        let members = members(Raw {
            text: object,
            kind: Kind::Object,
        });
        let required = self.root.get("required").and_then(Value::as_array);
        let mut required = required.into_iter().flatten().filter_map(Value::as_str);
        required.all(|key| members.iter().any(|member| member.key.name() == key))
            && members.iter().all(|member| {
                let key = member.key.name();
                let is = Types::of_text(member.raw);
                self.describes(&key) && self.types(&key).is_none_or(|types| types.allows(is))
            })
    }

    fn describes(&self, key: &str) -> bool {
        let mut found = false;
        let mut rest = MAX_SCHEMAS;
        self.visit(self.root, &mut rest, &mut |schema| {
            found |= schema
                .get("properties")
                .is_some_and(|all| all.get(key).is_some());
        });
        found
    }
}
