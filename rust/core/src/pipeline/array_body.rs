//! Splits a body that is one JSON array (Gemini without `alt=sse`) into its elements.
//!
//! Each element is returned with its offset as soon as it is complete; reads may have any size. The first bytes of the
//! body are held until they show whether the body is an array. If the body is not an array, these bytes are returned to
//! be parsed as an event stream. Only brackets and strings are tracked, so the caller must check whether an element is
//! valid JSON.

use crate::model::fault::Fault;
use crate::model::limits::LimitName;
use std::borrow::Cow;

const BOM: &[u8] = b"\xEF\xBB\xBF";
/// Number of bytes after which an undecided body is treated as an event stream.
pub(crate) const WINDOW: usize = 4096;
/// Length of the longest UTF-8 sequence.
const LONGEST_CHARACTER: usize = 4;

/// Kind of a body, as far as its first bytes show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Body {
    #[default]
    Undecided,
    /// An event stream, or any other input that is split into lines.
    Events,
    Array,
}

/// What follows an element that does not end in the given bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UnfinishedElement {
    /// The rest of the element may follow, so the element is stored.
    Continues,
    /// The input ends here. Only the last bytes of the element are stored, because the element cannot be used.
    IsCut,
}

/// Scan position within an element or between elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inside {
    /// The scanner is between elements.
    None,
    Structure,
    String,
    /// The scanner is in a string, directly after a backslash.
    Escape,
    /// The element is not an object, array, or string.
    Plain,
}

/// Scan position in an array.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    at: u64,
    /// True once the closing bracket of the array was read.
    closed: bool,
    /// Offset of the first non-whitespace byte after the array, if there is one.
    spilled: Option<u64>,
    inside: Inside,
    depth: usize,
    /// Offset of the element's first byte.
    start: u64,
}

/// State of the splitter for one body.
#[derive(Clone, Debug)]
pub(crate) struct ArrayBody {
    pub(crate) body: Body,
    /// Number of complete elements so far.
    pub(crate) ordinal: u64,
    /// The first bytes of the body, held back while its kind is undecided.
    held: Vec<u8>,
    read: Cursor,
    /// Position at which `ends_in` stopped. This position may be less than `read`, if `read` has advanced since then.
    ahead: Cursor,
    /// Bytes of the unfinished element from earlier reads.
    element: Vec<u8>,
}

/// A complete element.
#[derive(Debug)]
pub(crate) struct Element<'e> {
    pub(crate) data: Cow<'e, [u8]>,
    pub(crate) offset: u64,
    pub(crate) ordinal: u64,
}

impl ArrayBody {
    pub(crate) fn new() -> ArrayBody {
        let start = Cursor {
            at: 0,
            closed: false,
            spilled: None,
            inside: Inside::None,
            depth: 0,
            start: 0,
        };
        ArrayBody {
            body: Body::Undecided,
            ordinal: 0,
            held: Vec::new(),
            read: start,
            ahead: start,
            element: Vec::new(),
        }
    }

    /// Returns true if the closing bracket of the array was read.
    pub(crate) fn is_closed(&self) -> bool {
        self.read.closed
    }

    /// Returns the offset of the first non-whitespace byte after the array, if there is one.
    pub(crate) fn spilled(&self) -> Option<u64> {
        self.read.spilled
    }

    /// Returns the first bytes of the body, which are held back while its kind is undecided.
    pub(crate) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Returns the bytes of the unfinished element.
    pub(crate) fn pending(&self) -> &[u8] {
        &self.element
    }

    /// Adds the next bytes, and decides the kind of body if possible.
    ///
    /// Returns the bytes to parse next, without the opening bracket of an array. Returns `None` while the kind is
    /// undecided.
    pub(crate) fn decide<'d>(&mut self, data: &'d [u8]) -> Option<Cow<'d, [u8]>> {
        let taken = if self.held.is_empty() {
            Cow::Borrowed(data)
        } else {
            self.held.extend_from_slice(data);
            Cow::Owned(std::mem::take(&mut self.held))
        };
        let window = taken.get(..WINDOW).unwrap_or(&taken);
        let (body, at) = kind(window);
        self.body = match body {
            Body::Undecided if window.len() == WINDOW => Body::Events,
            known => known,
        };
        if self.body == Body::Undecided {
            self.held = taken.into_owned();
            return None;
        }
        if self.body == Body::Events {
            return Some(taken);
        }
        self.read.at = at as u64;
        Some(match taken {
            Cow::Borrowed(data) => Cow::Borrowed(data.get(at..).unwrap_or_default()),
            Cow::Owned(mut data) => Cow::Owned(data.split_off(at.min(data.len()))),
        })
    }

    /// Returns true if the body may still be an array, given these next bytes. The bytes are not stored.
    pub(crate) fn may_open(&self, next: &[u8]) -> bool {
        let more = skip_blanks(next);
        let more = more.get(..=BOM.len()).unwrap_or(more);
        kind(&[&self.held, more].concat()).0 != Body::Events
    }

    /// Treats the body as an event stream, and returns the held bytes. This method is called if the input ended before
    /// the kind was decided.
    pub(crate) fn give_up(&mut self) -> Vec<u8> {
        self.body = Body::Events;
        std::mem::take(&mut self.held)
    }

    /// Returns the next element that ends in these bytes, and advances `data` past it.
    ///
    /// Returns `None` if no element ends in `data`. Returns a fault if an element is longer than `limit`.
    pub(crate) fn next<'d>(
        &mut self,
        data: &mut &'d [u8],
        limit: Option<u64>,
        unfinished: UnfinishedElement,
    ) -> Result<Option<Element<'d>>, Fault> {
        let Some((piece, over)) = self.read.piece(data) else {
            return Ok(None);
        };
        self.check_size(piece, limit)?;
        if !over {
            let stored = match unfinished {
                UnfinishedElement::Continues => piece,
                UnfinishedElement::IsCut => {
                    let start = piece.len().saturating_sub(LONGEST_CHARACTER);
                    piece.get(start..).unwrap_or(piece)
                }
            };
            self.element.extend_from_slice(stored);
            return Ok(None);
        }
        let data = if self.element.is_empty() {
            Cow::Borrowed(piece)
        } else {
            let mut whole = std::mem::take(&mut self.element);
            whole.extend_from_slice(piece);
            Cow::Owned(whole)
        };
        let ordinal = self.ordinal;
        self.ordinal += 1;
        Ok(Some(Element {
            data,
            offset: self.read.start,
            ordinal,
        }))
    }

    /// Returns a fault if this piece makes the unfinished element longer than `limit`.
    fn check_size(&self, piece: &[u8], limit: Option<u64>) -> Result<(), Fault> {
        let size = self.element.len() + piece.len();
        let Some(limit) = limit.filter(|limit| size as u64 > *limit) else {
            return Ok(());
        };
        let fault = Fault::limit(LimitName::max_event_bytes, limit);
        Err(fault.at(self.read.start, self.ordinal))
    }

    /// Returns the offset of the end of the last array element that ends in these bytes, or 0 if no element ends in
    /// them.
    ///
    /// The next call resumes where this call stopped.
    pub(crate) fn ends_in(&mut self, next: &[u8]) -> usize {
        if self.ahead.at < self.read.at {
            self.ahead = self.read;
        }
        let seen = usize::try_from(self.ahead.at - self.read.at).unwrap_or(usize::MAX);
        let mut rest = next.get(seen..).unwrap_or_default();
        let mut ends = 0;
        while let Some((_, over)) = self.ahead.piece(&mut rest) {
            if over {
                ends = next.len() - rest.len();
            }
        }
        ends
    }
}

impl Cursor {
    /// Returns the next piece of an element, and whether the element ends with this piece. Returns `None` if the data
    /// contains no further element.
    fn piece<'d>(&mut self, data: &mut &'d [u8]) -> Option<(&'d [u8], bool)> {
        if data.is_empty() || (self.inside == Inside::None && !self.between(data)) {
            return None;
        }
        let (stop, over) = self.scan(data);
        let (piece, rest) = data.split_at_checked(stop).unwrap_or((data, &[]));
        *data = rest;
        self.at += piece.len() as u64;
        if over {
            self.inside = Inside::None;
        }
        Some((piece, over))
    }

    /// Advances to the next element. Returns false if no further element starts in these bytes.
    fn between(&mut self, data: &mut &[u8]) -> bool {
        while let Some((&byte, rest)) = data.split_first() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {}
                b',' if !self.closed => {}
                _ if self.closed => {
                    self.spilled.get_or_insert(self.at);
                    self.at += data.len() as u64;
                    *data = &[];
                    return false;
                }
                b']' => self.closed = true,
                _ => {
                    self.start = self.at;
                    self.depth = 0;
                    self.inside = match byte {
                        b'{' | b'[' | b'"' => Inside::Structure,
                        _ => Inside::Plain,
                    };
                    return true;
                }
            }
            *data = rest;
            self.at += 1;
        }
        false
    }

    /// Returns how many of these bytes belong to the element, and whether the element ends there.
    fn scan(&mut self, data: &[u8]) -> (usize, bool) {
        for (at, &byte) in data.iter().enumerate() {
            match (self.inside, byte) {
                (Inside::Plain, b',' | b']' | b' ' | b'\t' | b'\n' | b'\r') => return (at, true),
                (Inside::Plain, _) => continue,
                (Inside::Escape, _) => {
                    self.inside = Inside::String;
                    continue;
                }
                (Inside::String, b'\\') => self.inside = Inside::Escape,
                (Inside::String, b'"') => self.inside = Inside::Structure,
                (Inside::String, _) => continue,
                (_, b'"') => self.inside = Inside::String,
                (_, b'{' | b'[') => self.depth += 1,
                (_, b'}' | b']') => self.depth = self.depth.saturating_sub(1),
                _ => continue,
            }
            if self.depth == 0 && self.inside == Inside::Structure {
                return (at + 1, true);
            }
        }
        (data.len(), false)
    }
}

/// Returns the kind of body that the first bytes indicate, and the offset after the opening bracket of an array.
fn kind(window: &[u8]) -> (Body, usize) {
    if window.len() < BOM.len() && BOM.starts_with(window) {
        return (Body::Undecided, 0);
    }
    let text = skip_blanks(window.strip_prefix(BOM).unwrap_or(window));
    let Some((first, inside)) = text.split_first() else {
        return (Body::Undecided, 0);
    };
    if *first != b'[' {
        return (Body::Events, 0);
    }
    match skip_blanks(inside).first() {
        None => (Body::Undecided, 0),
        Some(b'{') => (Body::Array, window.len() - inside.len()),
        Some(_) => (Body::Events, 0),
    }
}

fn skip_blanks(text: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
    let start = text.iter().position(|byte| !blank(byte));
    text.get(start.unwrap_or(text.len())..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(body: &[u8], cut: usize) -> (Vec<(String, u64)>, Body, bool, Option<u64>) {
        let mut array = ArrayBody::new();
        let mut out = Vec::new();
        for piece in body.chunks(cut) {
            let piece = match array.body {
                Body::Undecided => match array.decide(piece) {
                    Some(piece) => piece,
                    None => continue,
                },
                _ => Cow::Borrowed(piece),
            };
            let mut rest = piece.as_ref();
            while array.body == Body::Array {
                let Some(element) = array
                    .next(&mut rest, None, UnfinishedElement::Continues)
                    .unwrap()
                else {
                    break;
                };
                let text = String::from_utf8(element.data.into_owned()).unwrap();
                out.push((text, element.offset));
            }
        }
        (out, array.body, array.is_closed(), array.spilled())
    }

    #[test]
    fn elements_do_not_depend_on_the_chunking() {
        let body = br#" [ {"a":"]}\"["} ,{"b":[1]}, 12 ,"x"] y"#;
        let expected = [
            (r#"{"a":"]}\"["}"#, 3),
            (r#"{"b":[1]}"#, 18),
            ("12", 29),
            (r#""x""#, 33),
        ];
        let expected = expected.map(|(text, at)| (text.to_owned(), at)).to_vec();
        for cut in 1..=body.len() {
            let found = elements(body, cut);
            assert_eq!(
                found,
                (expected.clone(), Body::Array, true, Some(38)),
                "{cut}"
            );
        }
    }

    #[test]
    fn other_bodies_are_split_into_lines() {
        for body in ["data: {}\n\n", "[DONE]", "[1]", "{}", "\u{feff}data"] {
            for cut in 1..=body.len() {
                let (found, kind, ..) = elements(body.as_bytes(), cut);
                assert_eq!((found.len(), kind), (0, Body::Events), "{body} {cut}");
            }
        }
        assert_eq!(elements(b"\xEF\xBB\xBF[{}]", 1).0, [("{}".to_owned(), 4)]);
        assert_eq!(elements(b"  [ ", 2).1, Body::Undecided);
    }
}
