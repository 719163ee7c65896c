//! What the two protocols of the AI SDK write alike: text and reasoning blocks, calls that are whole or are not, and what
//! their parts bring beside them.
//!
//! Knows the chunks that both have. Knows no tool chunk, no opening and no ending: those are each protocol's own.

use crate::encode::ai_sdk::chunk::end;
use crate::encode::ai_sdk::chunk::frame;
use crate::encode::ai_sdk::chunk::hung;
use crate::encode::ai_sdk::chunk::member;
use crate::encode::common::block::Block;
use crate::encode::common::block::Form;
use crate::encode::common::block::Pen;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Beside;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Given;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::Ran;
use crate::encode::common::part_order::Order;
use crate::encode::common::provider_metadata::provider_metadata;
use crate::encode::common::sequential_answer::Answer;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::writer::Writer;
use crate::json::Kind as JsonKind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::items;
use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::mem;

/// Of what nobody named; both schemas ask for a media type.
pub(crate) const OCTETS: &str = "application/octet-stream";

/// What a protocol adds.
pub(crate) trait Protocol: Debug + Default + Send {
    const TARGET: &'static str;

    /// The opening of the answer.
    fn start(job: &mut EncodeContext, opening: Opening<'_>);

    /// The ending of a whole answer.
    fn finish(job: &mut EncodeContext, word: &str, finish: &Finish);

    /// What stands behind the end of the answer.
    fn mark_end(to: &mut Writer);

    /// What stands before the fault of an answer of which nothing went out.
    fn unopened(to: &mut Writer);

    /// The honest ending of one that is not whole.
    fn fail(job: &mut EncodeContext, trouble: &EndingError);

    /// The input of a call begins.
    fn call_start(to: &mut Writer, call: Ran<'_>);

    /// More of it.
    fn call_delta(to: &mut Writer, call_id: &str, text: &str);

    /// No more of it comes; that says nothing of the call.
    fn call_end(to: &mut Writer, call_id: &str);

    /// The call, with all of its arguments: the text of a JSON object.
    fn call_whole(to: &mut Writer, call: &Call<'_>, text: &str, metadata: Option<&str>);

    /// A call whose arguments are no object.
    fn call_refused(to: &mut Writer, call: &Call<'_>, reason: &str);

    /// Whether a text or an input that is not whole is ended before the fault.
    const ENDS_WHAT_BROKE: bool;

    /// What a tool gave.
    fn result(to: &mut Writer, result: &Given<'_>, call: Ran<'_>);

    /// A page that the answer cites.
    fn page(to: &mut Writer, id: &str, url: &str, title: Option<&str>);

    /// Any other source.
    fn document(to: &mut Writer, id: &str, media_type: &str, title: &str, filename: Option<&str>);

    /// A file of the answer.
    fn file(to: &mut Writer, media_type: &str, data: Option<&str>, url: Option<&str>);
}

/// A writer of blocks with ids of ours; a call has the id that upstream gave it.
#[derive(Debug, Default)]
pub(crate) struct AiSdk<P> {
    /// What was begun and is not whole.
    cut: Vec<Call<'static>>,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Answer for AiSdk<P> {
    const TARGET: &'static str = P::TARGET;

    fn start(&mut self, job: &mut EncodeContext, opening: Opening<'_>) {
        P::start(job, opening);
    }

    fn finish(&mut self, job: &mut EncodeContext, word: &str, finish: &Finish) {
        if !job.passed.finished.is_empty() {
            return P::mark_end(&mut job.writer);
        }
        // The answer is whole, but these calls are not: for the reader they are invalid, unless a limit cut them.
        for call in mem::take(&mut self.cut) {
            if !matches!(finish.reason, "length" | "content_filter") {
                P::call_refused(&mut job.writer, &call, "incomplete");
            }
        }
        P::finish(job, word, finish);
    }

    fn fail(
        &mut self,
        job: &mut EncodeContext,
        blocks: &mut Order,
        opened: bool,
        trouble: &EndingError,
    ) {
        if !opened {
            P::unopened(&mut job.writer);
        }
        blocks.abandon(&mut Pen { form: self, job });
        P::fail(job, trouble);
    }
}

impl<P: Protocol> Form for AiSdk<P> {
    const CORRECTS: bool = true; // `tool-call` and `tool-input-available` say the input again, and win
    const RUNS_CALLS: bool = true;
    const SIDE_BY_SIDE: bool = true; // every event names its block

    fn open(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        let (kind, start) = match block.kind {
            Kind::Call => {
                let call = Ran {
                    call_id: &block.call_id,
                    name: &block.name,
                    provider_executed: block.provider_executed,
                };
                return P::call_start(&mut job.writer, call);
            }
            Kind::Reasoning => ("rs", "reasoning-start"),
            Kind::Text | Kind::Refusal => ("txt", "text-start"),
        };
        if block.kind == Kind::Refusal {
            job.losses.note("refusal");
        }
        block.mark = block.item.clone().unwrap_or_else(|| job.mint.make(kind));
        // Nothing of it came before its end: what hangs on it need not wait for the end of the block.
        let metadata = hangs(job, block, done.filter(|done| done.is_empty));
        let to = member(frame(&mut job.writer, start), "\"id\"", &block.mark);
        end(hung(to, metadata.as_deref()));
    }

    fn piece(&mut self, job: &mut EncodeContext, block: &Block, text: &str) {
        let to = &mut job.writer;
        let kind = match block.kind {
            Kind::Call => return P::call_delta(to, &block.call_id, text),
            Kind::Reasoning => "reasoning-delta",
            Kind::Text | Kind::Refusal => "text-delta",
        };
        let to = member(frame(to, kind), "\"id\"", &block.mark);
        end(member(to, "\"delta\"", text));
    }

    fn close(&mut self, job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        let kind = match block.kind {
            Kind::Reasoning => "reasoning-end",
            _ => "text-end",
        };
        let metadata = hangs(job, block, done);
        let to = member(frame(&mut job.writer, kind), "\"id\"", &block.mark);
        end(hung(to, metadata.as_deref()));
    }

    fn over(&mut self, job: &mut EncodeContext, block: &mut Block, done: &Done<'_>) {
        hangs(job, block, Some(done));
        if let Some(text) = done.annotations.as_deref() {
            cite::<P>(job, text);
        }
    }

    fn is_worth(&mut self, job: &mut EncodeContext, _: &Block, done: &Done<'_>) -> bool {
        done.kind != Kind::Refusal
            && provider_metadata(job, done.metadata.as_deref(), Some(done)).is_some()
    }

    fn close_call(
        &mut self,
        job: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        text: &str,
    ) -> bool {
        if !job.passed.closed.contains(&block.part) {
            P::call_end(&mut job.writer, &call.call_id);
        }
        self.conclude(job, call, text);
        true
    }

    fn whole_call(&mut self, job: &mut EncodeContext, call: &Call<'_>) {
        let text = arguments(job, call);
        let to = &mut job.writer;
        P::call_start(to, call.ran());
        if !text.is_empty() && (call.custom || call.state != "empty") {
            P::call_delta(to, &call.call_id, &text);
        }
        P::call_end(to, &call.call_id);
        self.conclude(job, call, &text);
    }

    fn beside(&mut self, job: &mut EncodeContext, what: &Beside<'_>, call: Option<Ran<'_>>) {
        match what {
            Beside::Source {
                url,
                title,
                document,
                metadata,
            } => {
                job.losses.metadata(metadata.as_deref());
                let title = title.as_deref().filter(|title| !title.is_empty());
                match url {
                    Some(url) => page::<P>(job, url, title),
                    None => other::<P>(job, title, document.as_deref()),
                }
            }
            Beside::File {
                media_type,
                data,
                url,
                metadata,
            } => {
                job.losses.metadata(metadata.as_deref());
                let media_type = media_type.as_deref().filter(|name| !name.is_empty());
                let (data, url) = (data.as_deref(), url.as_deref());
                P::file(&mut job.writer, media_type.unwrap_or(OCTETS), data, url);
            }
            Beside::Result(given) => {
                if let Some(call) = call {
                    P::result(&mut job.writer, given, call);
                }
            }
        }
    }

    fn broken_off(&mut self, job: &mut EncodeContext, block: &mut Block) {
        if !P::ENDS_WHAT_BROKE {
            return;
        }
        if block.kind == Kind::Call {
            P::call_end(&mut job.writer, &block.call_id);
        } else {
            self.close(job, block, None);
        }
    }
}

impl<P: Protocol> AiSdk<P> {
    fn conclude(&mut self, job: &mut EncodeContext, call: &Call<'_>, text: &str) {
        match call.state {
            "complete" | "empty" => {
                let metadata = provider_metadata(job, call.metadata.as_deref(), None);
                P::call_whole(&mut job.writer, call, text, metadata.as_deref());
            }
            "invalid" => {
                job.losses.repeated(call.metadata.as_deref());
                P::call_refused(&mut job.writer, call, call.reason.unwrap_or(call.state));
            }
            _ => {
                job.losses.repeated(call.metadata.as_deref());
                self.cut.push(call.clone().keep());
            }
        }
    }
}

/// The metadata of a part that is over, once.
fn hangs(job: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) -> Option<String> {
    let done = done.filter(|_| !block.told)?;
    block.told = true;
    let metadata = done.metadata.as_deref();
    if done.kind == Kind::Refusal {
        job.losses.repeated(metadata);
        return None;
    }
    provider_metadata(job, metadata, Some(done))
}

fn arguments<'c>(job: &mut EncodeContext, call: &'c Call<'_>) -> Cow<'c, str> {
    if call.custom {
        job.losses.note("custom_call");
    }
    match call.object_text() {
        text if text.is_empty() && call.state == "empty" => Cow::Borrowed("{}"),
        text => text,
    }
}

fn page<P: Protocol>(job: &mut EncodeContext, url: &str, title: Option<&str>) {
    let id = job.mint.make("src");
    P::page(&mut job.writer, &id, url, title);
}

/// A source that is no page.
fn other<P: Protocol>(job: &mut EncodeContext, title: Option<&str>, document: Option<&str>) {
    let id = job.mint.make("src");
    let document = document.and_then(object);
    let told = |name: &str| text(document.as_ref()?, name);
    let media_type = told("mediaType");
    let media_type = media_type.as_deref().unwrap_or(OCTETS);
    let own = told("title");
    let title = title.or(own.as_deref()).unwrap_or_default();
    let filename = told("filename");
    P::document(&mut job.writer, &id, media_type, title, filename.as_deref());
}

/// Citations as sources, where they say which page; places in the text have no member.
fn cite<P: Protocol>(job: &mut EncodeContext, annotations: &str) {
    let list = Raw {
        text: annotations,
        kind: JsonKind::Array,
    };
    for annotation in items(list) {
        let found = Object::of(annotation);
        let inner = found
            .as_ref()
            .and_then(|found| found.object("url_citation"));
        let cited = inner.or(found);
        match cited.as_ref().and_then(|cited| text(cited, "url")) {
            Some(url) => {
                let title = cited.as_ref().and_then(|cited| text(cited, "title"));
                page::<P>(job, &url, title.as_deref());
            }
            None => job.losses.note("sources"),
        }
    }
}

fn object(text: &str) -> Option<Object<'_>> {
    Object::of(Raw {
        text,
        kind: if text.starts_with('{') {
            JsonKind::Object
        } else {
            JsonKind::Null
        },
    })
}

/// A text that says something.
fn text<'a>(holder: &Object<'a>, name: &str) -> Option<Cow<'a, str>> {
    holder.string(name).filter(|text| !text.is_empty())
}
