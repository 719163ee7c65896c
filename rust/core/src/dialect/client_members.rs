//! Checks whether an object has the members that the official clients of its dialect need.
//!
//! If a required member is missing, null, or of another type, clients raise an exception or drop the content, even if
//! the value does not matter. The table `client_members` in `_spec/dialects.json` lists the required members.

use crate::json::Kind;
use crate::json::members::Member;
use crate::json::members::find;
use crate::json::members::string;
use crate::model::spec::fact;
use serde_json::Value;

/// The members that the clients of one dialect need, by object type.
#[derive(Debug)]
pub(crate) struct ClientMembers {
    types: Vec<(&'static str, Vec<NeededMember>)>,
}

#[derive(Debug)]
struct NeededMember {
    name: &'static str,
    kind: MemberKind,
    may_be_absent: bool,
    may_be_null: bool,
}

#[derive(Debug)]
enum MemberKind {
    /// The value of the member must be one of these strings.
    Word(Vec<&'static str>),
    String,
    Number,
    Boolean,
    Object,
    Array,
    Any,
}

impl ClientMembers {
    pub(crate) fn of(dialect: &str) -> ClientMembers {
        let table = fact(dialect, "client_members").and_then(Value::as_object);
        let types = table.into_iter().flatten().map(|(name, members)| {
            let members = members.as_object().into_iter().flatten();
            let members = members
                .filter_map(|(name, kind)| Some(NeededMember::of(name.as_str(), kind.as_str()?)));
            (name.as_str(), members.collect())
        });
        ClientMembers {
            types: types.collect(),
        }
    }

    /// Returns true if clients can read an object of the type `name`. Objects of types that are not in the table are
    /// not checked.
    pub(crate) fn suit(&self, name: &str, members: &[Member<'_>]) -> bool {
        let found = self.types.iter().find(|(known, _)| *known == name);
        found.is_none_or(|(_, needed)| needed.iter().all(|one| one.suits(members)))
    }
}

impl NeededMember {
    fn of(name: &'static str, kind: &'static str) -> NeededMember {
        let may_be_null = kind.ends_with("|null");
        NeededMember {
            name,
            may_be_absent: may_be_null || kind.ends_with('?'),
            may_be_null,
            kind: match kind.trim_end_matches("|null").trim_end_matches('?') {
                words if words.starts_with('=') => {
                    MemberKind::Word(words.trim_start_matches('=').split(',').collect())
                }
                "string" => MemberKind::String,
                "number" => MemberKind::Number,
                "boolean" => MemberKind::Boolean,
                "object" => MemberKind::Object,
                "array" => MemberKind::Array,
                _ => MemberKind::Any,
            },
        }
    }

    fn suits(&self, members: &[Member<'_>]) -> bool {
        let Some(raw) = find(members, self.name) else {
            return self.may_be_absent;
        };
        match (&self.kind, raw.kind) {
            (_, Kind::Null) => self.may_be_null,
            (MemberKind::Word(words), _) => string(raw).is_some_and(|text| words.contains(&&*text)),
            (MemberKind::String, kind) => kind == Kind::String,
            (MemberKind::Number, kind) => kind == Kind::Number,
            (MemberKind::Boolean, kind) => matches!(kind, Kind::True | Kind::False),
            (MemberKind::Object, kind) => kind == Kind::Object,
            (MemberKind::Array, kind) => kind == Kind::Array,
            (MemberKind::Any, _) => true,
        }
    }
}
