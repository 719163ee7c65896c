//! Parses calls with a tag for each parameter: `<invoke name="f"><parameter name="k">v</parameter></invoke>`.
//!
//! The form is not XML: a value is raw text up to the closing tag of its parameter, and entities are not decoded.

use crate::text_calls::entry::Entry;
use crate::text_calls::grammar::add_member;
use crate::text_calls::reading::GrammarState;
use crate::text_calls::reading::Parse;
use crate::text_calls::reading::ParseFailure;
use crate::text_calls::reading::Reading;
use crate::text_calls::reading::Value;
use crate::text_calls::reading::is_blank;

/// The tags of one family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tags {
    call: Tag,
    parameter: Tag,
    /// Literals by which a parameter's tag declares whether its value is a string. If `None`, the tool's schema
    /// determines the type.
    marks: Option<Marks>,
    /// Literals around an object that can replace all parameters, if the family defines such literals.
    object: Option<[String; 2]>,
    /// True if `&quot;` and `&amp;` in names are decoded.
    has_entities: bool,
    /// True if one line break at each end of a value belongs to the markup.
    trims: bool,
}

/// Literals that follow the name of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Marks {
    /// Literals that declare the value to be a string.
    string: Vec<String>,
    /// Literals that declare the value to be JSON.
    json: Vec<String>,
}

impl Marks {
    fn read(entry: &Entry<'_>) -> Marks {
        let words = |key: &str, usual: &str| match entry.words(key) {
            words if words.is_empty() => vec![usual.to_owned()],
            words => words,
        };
        Marks {
            string: words("string", "string=\"true\">"),
            json: words("json", "string=\"false\">"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Tag {
    lead: Vec<String>,
    /// True if the name may also precede the tag.
    repeats: bool,
    open: String,
    /// Literal that follows the name.
    named: String,
    /// Literal that follows `named` and digits. If `None`, no digits follow.
    counter: Option<String>,
    close: String,
    tail: Vec<String>,
}

impl Tag {
    fn read(entry: &Entry<'_>) -> Option<Tag> {
        Some(Tag {
            lead: entry.words("lead"),
            repeats: entry.flag("repeats"),
            open: entry.word("open")?,
            named: entry.word("named")?,
            counter: entry.word("counter"),
            close: entry.word("close")?,
            tail: entry.words("tail"),
        })
    }

    /// Reads the end of a self-closing tag. Returns true if the tag is self-closing.
    fn is_empty(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        match self.named.strip_suffix('>') {
            Some(named) => reading.take(text, &format!("{named}/>")),
            None => Ok(false),
        }
    }
}

impl Tags {
    pub fn read(entry: &Entry<'_>) -> Option<Tags> {
        Some(Tags {
            call: Tag::read(&entry.inner("call")?)?,
            parameter: Tag::read(&entry.inner("parameter")?)?,
            marks: entry
                .word("typed")
                .is_some_and(|word| word == "attribute")
                .then(|| Marks::read(entry)),
            object: entry.words("object").try_into().ok(),
            has_entities: entry.flag("entities"),
            trims: entry.word("trim").is_some_and(|word| word == "newline"),
        })
    }

    /// Reads one call in the block, and returns true, because another call may follow.
    pub fn advance(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        loop {
            match reading.state {
                GrammarState::Start => {
                    reading.expect_all(text, &self.call.lead)?;
                    reading.state = GrammarState::BeforeValue;
                }
                GrammarState::BeforeValue => {
                    reading.next(text)?;
                    if reading.take(text, &self.call.open)? {
                        reading.state = GrammarState::Name;
                    } else if self.call.repeats && reading.key.is_empty() {
                        reading.key = reading.name(text)?.to_owned();
                    } else {
                        return Err(ParseFailure::Broken);
                    }
                }
                GrammarState::Name => {
                    if reading.name.is_empty() {
                        reading.name = self.name(reading, text)?;
                    }
                    let repeated = std::mem::take(&mut reading.key);
                    if !repeated.is_empty() && repeated != reading.name {
                        return Err(ParseFailure::Broken);
                    }
                    if self.marks.is_some() && self.call.is_empty(reading, text)? {
                        reading.state = GrammarState::AfterCall;
                        reading.end_call();
                        continue;
                    }
                    reading.expect(text, &self.call.named)?;
                    reading.state = GrammarState::Counter;
                }
                GrammarState::Counter => {
                    if let Some(literal) = &self.call.counter {
                        if reading.key.is_empty() {
                            let digits = reading.run(text, |digit| digit.is_ascii_digit())?;
                            reading.key = digits.to_owned();
                        }
                        reading.expect(text, literal)?;
                        reading.key.clear();
                    }
                    reading.state = GrammarState::Members;
                }
                GrammarState::Members => {
                    reading.next(text)?;
                    // An object may replace all parameters.
                    if reading.members.is_empty() && self.takes_object(reading, text)? {
                        reading.state = GrammarState::Object;
                    } else if reading.take(text, &self.call.close)? {
                        reading.end_call();
                        reading.state = GrammarState::AfterCall;
                    } else {
                        reading.state = GrammarState::Opener;
                    }
                }
                GrammarState::Object => {
                    reading.object(text)?;
                    reading.state = GrammarState::AfterValue;
                }
                GrammarState::AfterValue => {
                    let [_, after] = self.object.as_ref().unwrap_or(&NOTHING);
                    let literals = [after.clone(), self.call.close.clone()];
                    reading.expect_all(text, &literals)?;
                    reading.state = GrammarState::AfterCall;
                }
                GrammarState::Opener => {
                    reading.expect_next(text, &self.parameter.open)?;
                    reading.state = GrammarState::Key;
                }
                GrammarState::Key => {
                    if reading.key.is_empty() {
                        reading.key = self.name(reading, text)?;
                    }
                    reading.expect(text, &self.parameter.named)?;
                    reading.state = GrammarState::Attribute;
                }
                GrammarState::Attribute => {
                    if let Some(marks) = &self.marks {
                        reading.next(text)?;
                        reading.is_string = takes_any(reading, text, &marks.string)?;
                        if !reading.is_string && !takes_any(reading, text, &marks.json)? {
                            return Err(ParseFailure::Broken);
                        }
                    }
                    reading.state = GrammarState::Value;
                }
                GrammarState::Value => {
                    self.value(reading, text)?;
                    reading.state = GrammarState::Members;
                }
                GrammarState::AfterCall => {
                    reading.expect_all(text, &self.call.tail)?;
                    reading.state = GrammarState::Start;
                    return Ok(true);
                }
            }
        }
    }

    fn value(&self, reading: &mut Reading, text: &str) -> Parse<()> {
        let close = self.parameter.close.replace("{key}", &reading.key);
        let raw = reading.until(text, &close)?;
        // The closing tag of this parameter is missing. An opening literal that ends in `<` also matches the beginning
        // of closing tags.
        let mut openers = raw.match_indices(&self.parameter.open);
        let is_opener = |at: usize| !raw.get(at..).unwrap_or_default().starts_with('/');
        if openers.any(|(at, opener)| is_opener(at + opener.len())) {
            return Err(ParseFailure::Broken);
        }
        let value = match (self.marks.is_some(), reading.is_string) {
            (true, true) => Value::Text(self.plain(raw).to_owned()),
            (true, false) => Value::Json(raw.trim_matches(is_blank).to_owned()),
            (false, _) => Value::Raw(self.plain(raw).to_owned()),
        };
        add_member(reading, value)
    }

    /// If an object that replaces all parameters comes next, reads the literal before the object, if any, and returns
    /// true.
    fn takes_object(&self, reading: &mut Reading, text: &str) -> Parse<bool> {
        match &self.object {
            Some([before, _]) => reading.take(text, before),
            None => Ok(self.marks.is_some() && reading.peek(text)? == '{'),
        }
    }

    /// Reads the name of a call or a parameter.
    fn name(&self, reading: &mut Reading, text: &str) -> Parse<String> {
        if !self.has_entities {
            return reading.name(text).map(str::to_owned);
        }
        let raw = reading.run(text, |character| !matches!(character, '"' | '<'))?;
        Ok(raw.replace("&quot;", "\"").replace("&amp;", "&"))
    }

    fn plain<'t>(&self, raw: &'t str) -> &'t str {
        if self.trims {
            without_newlines(raw)
        } else {
            raw
        }
    }
}

/// Empty literals, for families that define no literals around an object.
static NOTHING: [String; 2] = [String::new(), String::new()];

/// If one of the literals comes next, reads that literal and returns true. Otherwise, returns false.
fn takes_any(reading: &mut Reading, text: &str, literals: &[String]) -> Parse<bool> {
    for literal in literals {
        if reading.take(text, literal)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Strips the line break that the model's chat template writes at each end.
fn without_newlines(raw: &str) -> &str {
    let raw = raw
        .strip_prefix("\r\n")
        .or(raw.strip_prefix('\n'))
        .unwrap_or(raw);
    raw.strip_suffix("\r\n")
        .or(raw.strip_suffix('\n'))
        .unwrap_or(raw)
}
