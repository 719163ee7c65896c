//! Converts streamed arguments (`partialArgs` of a function call) to JSON text as they arrive.
//!
//! The API streams the leaf values of the argument object in document order, each with its JSON path. A string may
//! arrive in any number of pieces. If a leaf value cannot follow the text that has been written, the text stays
//! unfinished, because a call with a missing value must not look complete.

use crate::json::Text;
use crate::json::write_string;
use std::collections::HashSet;

/// Maximum number of digits in an array index of a path.
const INDEX_DIGITS: usize = 9;

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(u32),
}

/// Returns the steps of a JSON path from the root, or `None` if the path is malformed or has more than `max_depth`
/// steps.
pub(crate) fn parse_path(text: &str, max_depth: usize) -> Option<Vec<Step>> {
    let mut rest = text.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= max_depth {
            return None;
        }
        let (step, remaining) = step(rest)?;
        steps.push(step);
        rest = remaining;
    }
    (!steps.is_empty()).then_some(steps)
}

/// Returns the first step of a path and the rest of the path, or `None` if the step is malformed.
fn step(text: &str) -> Option<(Step, &str)> {
    if let Some(name) = text.strip_prefix('.') {
        let end = name.find(['.', '[', ']']).unwrap_or(name.len());
        let (name, remaining) = name.split_at_checked(end)?;
        return (!name.is_empty()).then(|| (Step::Key(name.to_owned()), remaining));
    }
    let inner = text.strip_prefix('[')?;
    let quote = inner.chars().next()?;
    if quote == '\'' || quote == '"' {
        return quoted(inner.get(1..)?, quote);
    }
    let (digits, remaining) = inner.split_once(']')?;
    let fits = (1..=INDEX_DIGITS).contains(&digits.len());
    if !fits || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((Step::Index(digits.parse().ok()?), remaining))
}

/// Returns the quoted key at the beginning of `text`, and the text after its closing bracket.
fn quoted(text: &str, quote: char) -> Option<(Step, &str)> {
    let mut key = String::new();
    let mut signs = text.char_indices();
    while let Some((at, sign)) = signs.next() {
        if sign == quote {
            let remaining = text.get(at + 1..)?.strip_prefix(']')?;
            return Some((Step::Key(key), remaining));
        }
        key.push(match sign {
            '\\' => signs.next()?.1,
            plain => plain,
        });
    }
    None
}

/// An object or array that is being written.
#[derive(Debug, Default)]
struct Level {
    is_array: bool,
    count: u32,
    /// Key or index of the value that was written last, within its object or array.
    key: Option<Step>,
    keys: HashSet<String>,
}

/// The arguments of one call. The methods return the next piece of the JSON text.
#[derive(Debug, Default)]
pub(crate) struct Partial {
    levels: Vec<Level>,
    /// Path of the unfinished string.
    string: Option<Vec<Step>>,
    /// True once any text has been written.
    begun: bool,
    broken: bool,
}

impl Partial {
    /// Returns true if every string is finished and every leaf value could be added.
    pub(crate) fn is_between(&self) -> bool {
        self.string.is_none() && !self.broken
    }

    /// Returns the text for a piece of a string, or `None` if the piece cannot be added. `goes_on`: true if more pieces
    /// of the string follow.
    pub(crate) fn string(
        &mut self,
        steps: Vec<Step>,
        text: &Text<'_>,
        goes_on: bool,
    ) -> Option<Text<'static>> {
        let mut lone = text.lone;
        let mut lead_low = text.lead_low;
        let mut tail_high = text.tail_high;
        let mut body = String::new();
        if self.string.as_ref() != Some(&steps) {
            body = self.lead(&steps)?;
            body.push('"');
            if lead_low.take().is_some() {
                body.push(char::REPLACEMENT_CHARACTER);
                lone = true;
            }
        }
        let mut piece = String::new();
        write_string(&mut piece, &text.body);
        body.push_str(piece.get(1..piece.len() - 1).unwrap_or_default());
        self.string = None;
        if goes_on {
            self.string = Some(steps);
        } else {
            if tail_high.take().is_some() {
                body.push(char::REPLACEMENT_CHARACTER);
                lone = true;
            }
            body.push('"');
        }
        Some(Text {
            body: body.into(),
            lead_low,
            tail_high,
            lone,
        })
    }

    /// Returns the text for a complete number, boolean, or null. Returns `None` if the value cannot be added.
    pub(crate) fn leaf(&mut self, steps: &[Step], token: &str) -> Option<Text<'static>> {
        let mut text = self.lead(steps)?;
        text.push_str(token);
        Some(whole(text))
    }

    /// Marks the arguments as unfinished, because one of their values cannot be added to the text. Returns "{" if no
    /// text has been written, or an empty string otherwise.
    pub(crate) fn spoil(&mut self) -> Text<'static> {
        self.broken = true;
        let begun = std::mem::replace(&mut self.begun, true);
        Text::plain(if begun { "" } else { "{" })
    }

    /// Returns the brackets that complete the object, or "{}" if no text has been written.
    pub(crate) fn close(&self) -> String {
        if self.levels.is_empty() {
            return "{}".to_owned();
        }
        self.levels.iter().rev().map(end).collect()
    }

    /// Returns the text between the last leaf value and the leaf value at `steps`: brackets, a comma, and a key.
    /// Returns `None` if the leaf value cannot be added.
    fn lead(&mut self, steps: &[Step]) -> Option<String> {
        if self.broken {
            return None;
        }
        let mut out = String::new();
        if self.string.take().is_some() {
            // The next leaf value ends a string that the API did not end explicitly.
            out.push('"');
        }
        let same = |(level, step): &(&Level, &Step)| level.key.as_ref() == Some(*step);
        let most = steps.len().min(self.levels.len()).saturating_sub(1);
        let pairs = self.levels.iter().zip(steps).take(most);
        let common = pairs.take_while(same).count();
        while self.levels.len() > common + 1 {
            out.extend(self.levels.pop().as_ref().map(end));
        }
        if self.levels.is_empty() {
            self.levels.push(Level::default());
            out.push('{');
        }
        for (depth, step) in steps.iter().enumerate().skip(common) {
            self.levels.last_mut()?.put(step, &mut out)?;
            if let Some(inner) = steps.get(depth + 1) {
                let is_array = matches!(inner, Step::Index(_));
                self.levels.push(Level {
                    is_array,
                    ..Level::default()
                });
                out.push(if is_array { '[' } else { '{' });
            }
        }
        self.begun = true;
        Some(out)
    }
}

impl Level {
    /// Writes the comma before a new member or element and, for a member, its key. Returns `None` if the member or
    /// element cannot be added.
    fn put(&mut self, step: &Step, out: &mut String) -> Option<()> {
        let fits = match step {
            Step::Index(index) => self.is_array && *index == self.count,
            Step::Key(key) => !self.is_array && self.keys.insert(key.clone()),
        };
        if !fits {
            return None;
        }
        if self.count > 0 {
            out.push(',');
        }
        if let Step::Key(key) = step {
            write_string(out, key);
            out.push(':');
        }
        self.count += 1;
        self.key = Some(step.clone());
        Some(())
    }
}

fn end(level: &Level) -> char {
    if level.is_array { ']' } else { '}' }
}

fn whole(text: String) -> Text<'static> {
    Text {
        body: text.into(),
        ..Text::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Vec<Step> {
        parse_path(text, 127).unwrap()
    }

    #[test]
    fn paths() {
        let key = |name: &str| Step::Key(name.to_owned());
        assert_eq!(path("$.a[12].b"), [key("a"), Step::Index(12), key("b")]);
        assert_eq!(
            path(r#"$['it\'s']["x\"]"][0]"#),
            [key("it's"), key("x\"]"), Step::Index(0)]
        );
        for text in [
            "",
            "$",
            "a",
            "$.",
            "$.a]",
            "$[",
            "$[1",
            "$[x]",
            "$['a",
            "$['a'",
            "$[]",
            "$[1234567890]",
            "$a",
        ] {
            assert_eq!(parse_path(text, 127), None, "{text}");
        }
        assert_eq!(parse_path("$.a.b.c", 2), None);
    }

    #[test]
    fn leaves_become_one_text() {
        let mut partial = Partial::default();
        let mut out = String::new();
        let mut add = |text: Option<Text<'_>>| out.push_str(&text.unwrap().body);
        add(partial.string(path("$.a.b"), &Text::plain("x\n"), true));
        add(partial.string(path("$.a.b"), &Text::plain("y"), false));
        add(partial.leaf(&path("$.a.c[0]"), "1"));
        add(partial.leaf(&path("$.a.c[1].d"), "true"));
        add(partial.string(path("$.e"), &Text::plain("z"), true));
        assert!(!partial.is_between());
        add(partial.leaf(&path("$.f"), "null"));
        assert!(partial.is_between());
        out.push_str(&partial.close());
        let text = r#"{"a":{"b":"x\ny","c":[1,{"d":true}]},"e":"z","f":null}"#;
        assert_eq!(out, text);
        assert_eq!(partial.leaf(&path("$.a.z"), "1"), None);
        assert_eq!(partial.spoil().body, "");
        assert_eq!(partial.leaf(&path("$.g"), "1"), None);
        assert_eq!(Partial::default().spoil().body, "{");
        assert_eq!(Partial::default().close(), "{}");
    }
}
