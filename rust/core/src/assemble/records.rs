//! Owned copies of the start event, token counts and error of a stream, from which the snapshot emits their events
//! again.

use crate::assemble::part::object_merge::Growth;
use crate::assemble::part::object_merge::RawMembers;
use crate::model::event::Event;
use crate::model::event::Usage;
use crate::model::fault::Fault;

fn own(text: Option<&str>) -> Option<Box<str>> {
    text.map(Box::from)
}

#[derive(Clone, Debug)]
pub struct StartRecord {
    id: Option<Box<str>>,
    model: Option<Box<str>>,
    created: Option<i64>,
    metadata: Option<Box<str>>,
}

impl StartRecord {
    pub fn new(
        id: Option<&str>,
        model: Option<&str>,
        created: Option<i64>,
        metadata: Option<&str>,
    ) -> StartRecord {
        StartRecord {
            id: own(id),
            model: own(model),
            created,
            metadata: own(metadata),
        }
    }

    /// Returns true if a field is missing that a later payload may contain. Some gateways send a blank first chunk.
    pub fn lacks_fields(&self) -> bool {
        self.id.is_none() || self.model.is_none() || self.created.is_none()
    }

    /// Sets the missing fields.
    pub fn complete(&mut self, id: Option<&str>, model: Option<&str>, created: Option<i64>) {
        self.id = self.id.take().or_else(|| own(id));
        self.model = self.model.take().or_else(|| own(model));
        self.created = self.created.or(created);
    }

    pub fn metadata(&self) -> Option<&str> {
        self.metadata.as_deref()
    }

    pub fn event(&self) -> Event<'_> {
        Event::ResponseStarted {
            id: self.id.as_deref(),
            model: self.model.as_deref(),
            created: self.created,
            metadata: self.metadata.as_deref(),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub struct UsageRecord {
    numbers: Usage<'static>,
    raw: Option<Box<str>>,
    /// Raw members of usage that arrives in several payloads. The members are joined only on demand, so that processing
    /// a payload stays cheap.
    members: Option<Box<RawMembers>>,
}

impl UsageRecord {
    pub fn new(usage: Usage<'_>) -> UsageRecord {
        UsageRecord {
            raw: own(usage.raw),
            members: None,
            numbers: Usage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                total_tokens: usage.total_tokens,
                cached_input_tokens: usage.cached_input_tokens,
                cache_write_tokens: usage.cache_write_tokens,
                reasoning_tokens: usage.reasoning_tokens,
                raw: None,
            },
        }
    }

    /// Merges token counts; each count that is present replaces the earlier value. Returns by how much the stored raw
    /// members grew.
    pub fn merge(&mut self, usage: Usage<'_>) -> Growth {
        let known = &mut self.numbers;
        for (known, sent) in [
            (&mut known.input_tokens, usage.input_tokens),
            (&mut known.output_tokens, usage.output_tokens),
            (&mut known.total_tokens, usage.total_tokens),
            (&mut known.cached_input_tokens, usage.cached_input_tokens),
            (&mut known.cache_write_tokens, usage.cache_write_tokens),
            (&mut known.reasoning_tokens, usage.reasoning_tokens),
        ] {
            *known = sent.or(*known);
        }
        let Some(raw) = usage.raw else {
            return Growth::default();
        };
        self.members.get_or_insert_default().add(raw)
    }

    pub fn is_blank(&self) -> bool {
        self.numbers.is_blank()
    }

    pub fn show(&self, give: impl FnOnce(&Event<'_>)) {
        let joined = self.members.as_ref().map(|members| members.text());
        let raw = match &joined {
            Some(joined) => joined.as_deref(),
            None => self.raw.as_deref(),
        };
        give(&Event::Usage(Usage {
            raw,
            ..self.numbers
        }));
    }
}

#[derive(Clone, Debug)]
pub struct ErrorRecord {
    code: Option<String>,
    kind: Option<String>,
    message: String,
    raw: Vec<u8>,
}

impl ErrorRecord {
    pub fn new(code: Option<&str>, kind: Option<&str>, message: &str, raw: &[u8]) -> ErrorRecord {
        ErrorRecord {
            code: code.map(str::to_owned),
            kind: kind.map(str::to_owned),
            message: message.to_owned(),
            raw: raw.to_vec(),
        }
    }

    pub fn event(&self) -> Event<'_> {
        Event::UpstreamError {
            code: self.code.as_deref(),
            kind: self.kind.as_deref(),
            message: &self.message,
            raw: &self.raw,
        }
    }

    pub fn fault(&self) -> Fault {
        Fault::upstream(
            self.code.clone(),
            self.kind.clone(),
            self.message.clone(),
            self.raw.clone(),
        )
    }
}
