//! Collects the anomalies in one payload: members of an undocumented type, and lone surrogates.
//!
//! A decoder records anomalies while it reads the payload, and reports them after it has classified the payload. Every
//! dialect uses this module.

use crate::dialect::decode_context;
use crate::dialect::decode_context::DecodeContext;
use crate::dialect::decode_context::Payload;
use crate::dialect::upstream_error::UpstreamErrorFields;
use crate::json::Kind;
use crate::json::Raw;
use crate::json::Text;
use crate::json::duplicate_keys::has_wide_integer;
use crate::json::duplicate_keys::repeats;
use crate::json::members::Member;
use crate::json::members::Object;
use crate::json::members::find;
use crate::json::members::present;
use crate::json::members::text;
use crate::model::output::MAX_NOTES;
use crate::model::spec::Code;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::mem;

/// A JSON pointer (RFC 6901) that is converted to text only when needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pointer<'p> {
    parent: Option<&'p Pointer<'p>>,
    step: ParseResult<'p>,
}

#[derive(Clone, Copy, Debug)]
enum ParseResult<'p> {
    Root,
    Member(&'p str),
    Item(usize),
}

impl<'p> Pointer<'p> {
    pub(crate) const ROOT: Pointer<'static> = Pointer {
        parent: None,
        step: ParseResult::Root,
    };

    pub(crate) fn member(&'p self, name: &'p str) -> Pointer<'p> {
        Pointer {
            parent: Some(self),
            step: ParseResult::Member(name),
        }
    }

    pub(crate) fn item(&'p self, position: usize) -> Pointer<'p> {
        Pointer {
            parent: Some(self),
            step: ParseResult::Item(position),
        }
    }

    pub(crate) fn text(&self) -> String {
        let mut out = self.parent.map(Pointer::text).unwrap_or_default();
        match self.step {
            ParseResult::Root => {}
            ParseResult::Member(name) => {
                out.push('/');
                out.push_str(name);
            }
            // Writing to a String cannot fail.
            ParseResult::Item(position) => _ = write!(out, "/{position}"),
        }
        out
    }
}

#[derive(Debug, Default)]
pub(crate) struct Anomalies<'a> {
    /// JSON pointer and value of each member with an unexpected type.
    shapes: Vec<(String, Raw<'a>)>,
    /// Number of members with an unexpected type that were not stored, because `MAX_NOTES` members were already stored.
    more_shapes: usize,
    /// True if a text contained a lone surrogate that no later text can complete.
    pub(crate) lone: bool,
    /// The first reason why official clients would misread the payload, if it has not been reported yet.
    misread: Option<&'static str>,
    /// True if official clients would misread the payload, even if the reason has been reported.
    odd: bool,
}

impl<'a> Anomalies<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.shapes.is_empty() && !self.lone && self.misread.is_none()
    }

    /// Records why official clients would misread the payload. Only the first reason is kept.
    #[cold]
    pub(crate) fn mark_misread(&mut self, why: &'static str) {
        self.misread.get_or_insert(why);
        self.odd = true;
    }

    /// Returns true if official clients would misread the payload.
    pub(crate) fn is_odd(&self) -> bool {
        self.odd
    }

    #[cold]
    pub(crate) fn shape(&mut self, raw: Raw<'a>, at: Pointer<'_>) {
        if self.shapes.len() < MAX_NOTES {
            self.shapes.push((at.text(), raw));
        } else {
            self.more_shapes += 1;
        }
    }

    pub(crate) fn unless_null(&mut self, raw: Raw<'a>, at: Pointer<'_>) {
        if raw.kind != Kind::Null {
            self.shape(raw, at);
        }
    }

    /// Returns the value of a member, or `None` if it is not an object. A value of another type, except null, is
    /// recorded as an anomaly.
    pub(crate) fn an_object(
        &mut self,
        holder: &[Member<'a>],
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Object<'a>> {
        let raw = present(find(holder, key))?;
        let object = Object::of(raw);
        if object.is_none() {
            self.shape(raw, at.member(key));
        }
        object
    }

    /// Like `an_object`, for an object inside `payload` that may already be split into members.
    pub(crate) fn opened<'p>(
        &mut self,
        payload: &'p Object<'a>,
        holder: &[Member<'a>],
        at: Pointer<'_>,
        key: &str,
    ) -> Option<Cow<'p, Object<'a>>> {
        let raw = present(find(holder, key))?;
        let object = payload.open(raw);
        if object.is_none() {
            self.shape(raw, at.member(key));
        }
        object
    }

    /// Returns the text of a string member, or an empty text. A value of another type, except null, is recorded as an
    /// anomaly.
    #[inline]
    pub(crate) fn a_text(&mut self, holder: &[Member<'a>], at: Pointer<'_>, key: &str) -> Text<'a> {
        let Some(raw) = present(find(holder, key)) else {
            return Text::default();
        };
        let found = text(raw);
        if found.is_none() {
            self.shape(raw, at.member(key));
        }
        found.unwrap_or_default()
    }

    /// Replaces lone surrogates, and records an anomaly if there were any. Use this function only for text that is
    /// complete, because a later piece could complete a surrogate pair.
    #[inline]
    pub(crate) fn clean<'t>(&mut self, text: Text<'t>) -> Cow<'t, str> {
        let (text, lone) = text.into_whole();
        self.lone |= lone;
        text
    }

    /// Reports all anomalies recorded since the last call.
    pub(crate) fn report(
        &mut self,
        wire: &mut DecodeContext<'_, '_>,
    ) -> decode_context::ParseResult {
        if self.is_empty() {
            return Ok(());
        }
        for (at, raw) in mem::take(&mut self.shapes) {
            wire.out.diagnose(Code::SHAPE, None, &at)?;
            wire.assembler
                .unknown(wire.out, None, raw.text.as_bytes())?;
        }
        // Each skipped member counts twice: once as a diagnostic and once as an event.
        wire.out.skip_notes(2 * mem::take(&mut self.more_shapes));
        if let Some(why) = self.misread.take() {
            wire.out.mark_misread(why);
        }
        if mem::take(&mut self.lone) {
            wire.out.diagnose(Code::LONE_SURROGATE, None, "")?;
        }
        Ok(())
    }

    /// Reports the recorded anomalies, and then reports the payload as an upstream error.
    pub(crate) fn report_error(
        mut self,
        wire: &mut DecodeContext<'_, '_>,
        upstream_error: &UpstreamErrorFields<'_>,
        payload: Payload<'_>,
    ) -> decode_context::ParseResult {
        self.lone |= upstream_error.lone;
        self.report(wire)?;
        let (code, kind) = (
            upstream_error.code.as_deref(),
            upstream_error.kind.as_deref(),
        );
        wire.assembler.upstream_error(
            wire.out,
            code,
            kind,
            &upstream_error.message,
            payload.text.as_bytes(),
        )
    }
}

/// Reports duplicate keys among the members that a decoder reads. `is_read` receives the path relative to `base`. In
/// this path, `None` represents an array element.
#[cold]
pub(crate) fn report_duplicate_keys(
    wire: &mut DecodeContext<'_, '_>,
    text: &str,
    base: &[Option<&str>],
    is_read: fn(&[Option<&str>]) -> bool,
) -> decode_context::ParseResult {
    for path in repeats(text) {
        let names: Vec<Option<&str>> = path.iter().map(Option::as_deref).collect();
        let Some([.., Some(key)]) = names.strip_prefix(base) else {
            continue;
        };
        if is_read(names.get(base.len()..).unwrap_or_default()) {
            wire.out.diagnose(Code::DUPLICATE_KEY, None, key)?;
        }
    }
    Ok(())
}

/// Reports an integer that exceeds 64 bits in an error value that is not an object. An error value that is not an
/// object cannot have any other anomaly.
pub(crate) fn report_wide_integer(
    wire: &mut DecodeContext<'_, '_>,
    raw: Raw<'_>,
) -> decode_context::ParseResult {
    if has_wide_integer(raw) {
        wire.out.diagnose(Code::NUMERIC_OVERFLOW, None, "")?;
    }
    Ok(())
}
