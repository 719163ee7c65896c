//! Writes the content that both AI SDK protocols represent in the same way: text and reasoning blocks, complete and
//! incomplete calls, and sources and files.
//!
//! Tool chunks, and the events that open and end a response, differ between the protocols and are written by the
//! implementations of `Protocol`.

use crate::encode::ai_sdk::chunk::end;
use crate::encode::ai_sdk::chunk::frame;
use crate::encode::ai_sdk::chunk::member;
use crate::encode::ai_sdk::chunk::write_provider_metadata;
use crate::encode::ai_sdk::web_search::search_result;
use crate::encode::common::block::Block;
use crate::encode::common::block::BlockOutput;
use crate::encode::common::block::BlockWriter;
use crate::encode::common::citations::is_address;
use crate::encode::common::encode_context::EncodeContext;
use crate::encode::common::finish::EndingError;
use crate::encode::common::part_details::Call;
use crate::encode::common::part_details::CallRef;
use crate::encode::common::part_details::CallResult;
use crate::encode::common::part_details::Done;
use crate::encode::common::part_details::Kind;
use crate::encode::common::part_details::StandalonePart;
use crate::encode::common::part_order::PartOrder;
use crate::encode::common::provider_metadata::has_phases;
use crate::encode::common::provider_metadata::provider_metadata;
use crate::encode::common::sequential_answer::Answer;
use crate::encode::common::sequential_answer::Finish;
use crate::encode::common::sequential_answer::Opening;
use crate::encode::common::writer::Writer;
use crate::json::Kind as JsonKind;
use crate::json::Raw;
use crate::json::members::Object;
use crate::json::members::integer;
use crate::json::members::items;
use std::borrow::Cow;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::mem;

/// Media type for a file whose type is unknown, because both schemas require a media type.
pub(crate) const OCTETS: &str = "application/octet-stream";

/// Writes the chunks that differ between the two protocols.
pub(crate) trait Protocol: Debug + Default + Send {
    const TARGET: &'static str;

    /// Writes the events that open the response.
    fn start(context: &mut EncodeContext, opening: Opening<'_>);

    /// Writes the ending of a complete response.
    fn finish(context: &mut EncodeContext, word: &str, finish: &Finish);

    /// Writes the terminal marker, if the protocol has one.
    fn mark_end(to: &mut Writer);

    /// If nothing has been written yet, writes the chunks that must precede an error.
    fn unopened(to: &mut Writer);

    /// Writes the ending of an incomplete response, with the error.
    fn fail(context: &mut EncodeContext, ending_error: &EndingError);

    /// Writes the chunk that starts a call's input.
    fn call_start(to: &mut Writer, call: CallRef<'_>);

    /// Writes the next piece of a call's input.
    fn call_delta(to: &mut Writer, call_id: &str, text: &str);

    /// Writes the end of a call's input. A call may be invalid even though its input has ended.
    fn call_end(to: &mut Writer, call_id: &str);

    /// Writes the call with all of its arguments. `text` must be a JSON object.
    fn call_whole(to: &mut Writer, call: &Call<'_>, text: &str, metadata: Option<&str>);

    /// Writes a call that clients must not run, because it is invalid or incomplete.
    fn call_refused(to: &mut Writer, call: &Call<'_>, reason: &str);

    /// True if open text or call input must be ended before the error is written.
    const ENDS_WHAT_BROKE: bool;

    /// Writes the result of a tool.
    fn result(to: &mut Writer, result: &CallResult<'_>, call: CallRef<'_>);

    /// Writes a web page that the response cites.
    fn page(to: &mut Writer, id: &str, url: &str, title: Option<&str>);

    /// Writes a source that is not a web page.
    fn document(to: &mut Writer, id: &str, media_type: &str, title: &str, filename: Option<&str>);

    /// Writes a file of the response.
    fn file(to: &mut Writer, media_type: &str, data: Option<&str>, url: Option<&str>);
}

/// Writes parts as blocks. A block of text or reasoning gets the source's block id or a generated id.
#[derive(Debug, Default)]
pub(crate) struct AiSdk<P> {
    /// Calls that were started but are incomplete.
    cut: Vec<Call<'static>>,
    protocol: PhantomData<P>,
}

impl<P: Protocol> Answer for AiSdk<P> {
    const TARGET: &'static str = P::TARGET;
    const WRITES_PHASES: bool = true;

    fn start(&mut self, context: &mut EncodeContext, opening: Opening<'_>) {
        P::start(context, opening);
    }

    fn finish(&mut self, context: &mut EncodeContext, word: &str, finish: &Finish) {
        if !context.passed.finished.is_empty() {
            return P::mark_end(&mut context.writer);
        }
        // An incomplete call in a complete response is written as invalid, so that no client runs it. If a limit
        // truncated the response, the finish reason already shows that the call is incomplete.
        for call in mem::take(&mut self.cut) {
            if !matches!(finish.reason, "length" | "content_filter") {
                P::call_refused(&mut context.writer, &call, "incomplete");
            }
        }
        P::finish(context, word, finish);
    }

    fn fail(
        &mut self,
        context: &mut EncodeContext,
        blocks: &mut PartOrder,
        opened: bool,
        ending_error: &EndingError,
    ) {
        if !opened {
            P::unopened(&mut context.writer);
        }
        blocks.abandon(&mut BlockOutput {
            form: self,
            context,
        });
        P::fail(context, ending_error);
    }
}

impl<P: Protocol> BlockWriter for AiSdk<P> {
    // `tool-call` and `tool-input-available` repeat the complete input and replace the streamed input.
    const CORRECTS: bool = true;
    const RUNS_CALLS: bool = true;
    const SIDE_BY_SIDE: bool = true; // every event contains the id of its block

    fn open(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        let (kind, start) = match block.kind {
            Kind::Call => {
                let call = CallRef {
                    call_id: &block.call_id,
                    name: &block.name,
                    provider_executed: block.provider_executed,
                };
                return P::call_start(&mut context.writer, call);
            }
            Kind::Reasoning => ("rs", "reasoning-start"),
            Kind::Text | Kind::Refusal => ("txt", "text-start"),
        };
        if block.kind == Kind::Refusal {
            context.losses.note("refusal");
        }
        block.mark = block
            .item
            .clone()
            .unwrap_or_else(|| context.mint.make(kind));
        // If the block ended without text, its closing event has already arrived and contains the metadata.
        let metadata = take_part_metadata(context, block, done.filter(|done| done.is_empty));
        let to = member(frame(&mut context.writer, start), "\"id\"", &block.mark);
        end(write_provider_metadata(to, metadata.as_deref()));
    }

    fn piece(&mut self, context: &mut EncodeContext, block: &Block, text: &str) {
        let to = &mut context.writer;
        let kind = match block.kind {
            Kind::Call => return P::call_delta(to, &block.call_id, text),
            Kind::Reasoning => "reasoning-delta",
            Kind::Text | Kind::Refusal => "text-delta",
        };
        let to = member(frame(to, kind), "\"id\"", &block.mark);
        end(member(to, "\"delta\"", text));
    }

    fn close(&mut self, context: &mut EncodeContext, block: &mut Block, done: Option<&Done<'_>>) {
        let kind = match block.kind {
            Kind::Reasoning => "reasoning-end",
            _ => "text-end",
        };
        let metadata = take_part_metadata(context, block, done);
        let to = member(frame(&mut context.writer, kind), "\"id\"", &block.mark);
        end(write_provider_metadata(to, metadata.as_deref()));
    }

    fn over(&mut self, context: &mut EncodeContext, block: &mut Block, done: &Done<'_>) {
        // The text has no open block. Only a phase can be left, because a phase alone does not need a block.
        if take_part_metadata(context, block, Some(done)).is_some() {
            context.losses.note("metadata");
        }
        if let Some(text) = done.annotations.as_deref() {
            cite::<P>(context, text);
        }
    }

    fn needs_empty_block(
        &mut self,
        context: &mut EncodeContext,
        _: &Block,
        done: &Done<'_>,
    ) -> bool {
        done.kind != Kind::Refusal
            && !(done.kind == Kind::Text && has_phases(context.source))
            && provider_metadata(context, done.metadata.as_deref(), Some(done)).is_some()
    }

    fn close_call(
        &mut self,
        context: &mut EncodeContext,
        block: &Block,
        call: &Call<'_>,
        text: &str,
    ) -> bool {
        if context.passed.ended.contains(&block.part) && matches!(call.state, "complete" | "empty")
        {
            return true; // clients already have the call and would also run a second call
        }
        if !context.passed.closed.contains(&block.part) {
            P::call_end(&mut context.writer, &call.call_id);
        }
        self.conclude(context, call, text);
        true
    }

    fn whole_call(&mut self, context: &mut EncodeContext, call: &Call<'_>) {
        let text = arguments(context, call);
        let to = &mut context.writer;
        P::call_start(to, call.ran());
        if !text.is_empty() && (call.custom || call.state != "empty") {
            P::call_delta(to, &call.call_id, &text);
        }
        P::call_end(to, &call.call_id);
        self.conclude(context, call, &text);
    }

    fn write_standalone(
        &mut self,
        context: &mut EncodeContext,
        what: &StandalonePart<'_>,
        call: Option<CallRef<'_>>,
    ) {
        match what {
            StandalonePart::Source {
                url,
                title,
                document,
                metadata,
            } => {
                context.losses.metadata(metadata.as_deref());
                let title = title.as_deref().filter(|title| !title.is_empty());
                match url {
                    Some(url) => page::<P>(context, url, title),
                    None => other::<P>(context, title, document.as_deref()),
                }
            }
            StandalonePart::File {
                media_type,
                data,
                url,
                metadata,
            } => {
                context.losses.metadata(metadata.as_deref());
                let media_type = media_type.as_deref().filter(|name| !name.is_empty());
                let (data, url) = (data.as_deref(), url.as_deref());
                P::file(&mut context.writer, media_type.unwrap_or(OCTETS), data, url);
            }
            StandalonePart::Result(given) => {
                if let Some(call) = call {
                    P::result(&mut context.writer, given, call);
                }
            }
        }
    }

    fn broken_off(&mut self, context: &mut EncodeContext, block: &mut Block) {
        if !P::ENDS_WHAT_BROKE {
            return;
        }
        if block.kind == Kind::Call {
            P::call_end(&mut context.writer, &block.call_id);
        } else {
            self.close(context, block, None);
        }
    }
}

impl<P: Protocol> AiSdk<P> {
    fn conclude(&mut self, context: &mut EncodeContext, call: &Call<'_>, text: &str) {
        match call.state {
            "complete" | "empty" => {
                let metadata = provider_metadata(context, call.metadata.as_deref(), None);
                P::call_whole(&mut context.writer, call, text, metadata.as_deref());
                if let Some(result) = search_result(context.source, call) {
                    P::result(&mut context.writer, &result, call.ran());
                }
            }
            "invalid" => {
                context.losses.repeated(call.metadata.as_deref());
                P::call_refused(&mut context.writer, call, call.reason.unwrap_or(call.state));
            }
            _ => {
                context.losses.repeated(call.metadata.as_deref());
                self.cut.push(call.clone().keep());
            }
        }
    }
}

/// Returns the metadata in a part's closing event. Returns `None` if this metadata was already returned for the part.
fn take_part_metadata(
    context: &mut EncodeContext,
    block: &mut Block,
    done: Option<&Done<'_>>,
) -> Option<String> {
    let done = done.filter(|_| !block.metadata_written)?;
    block.metadata_written = true;
    let metadata = done.metadata.as_deref();
    if done.kind == Kind::Refusal {
        context.losses.repeated(metadata);
        return None;
    }
    provider_metadata(context, metadata, Some(done))
}

fn arguments<'c>(context: &mut EncodeContext, call: &'c Call<'_>) -> Cow<'c, str> {
    if call.custom {
        context.losses.note("custom_call");
    }
    match call.object_text() {
        text if text.is_empty() && call.state == "empty" => Cow::Borrowed("{}"),
        text => text,
    }
}

fn page<P: Protocol>(context: &mut EncodeContext, url: &str, title: Option<&str>) {
    let id = context.mint.make("src");
    P::page(&mut context.writer, &id, url, title);
}

/// Writes a source that is not a web page.
fn other<P: Protocol>(context: &mut EncodeContext, title: Option<&str>, document: Option<&str>) {
    let id = context.mint.make("src");
    let document = document.and_then(object);
    let member_text = |name: &str| text(document.as_ref()?, name);
    let media_type = member_text("mediaType");
    let media_type = media_type.as_deref().unwrap_or(OCTETS);
    let own = member_text("title");
    let title = title.or(own.as_deref()).unwrap_or_default();
    let filename = member_text("filename");
    P::document(
        &mut context.writer,
        &id,
        media_type,
        title,
        filename.as_deref(),
    );
}

/// Citation members that identify a document.
const NAMES_OF_DOCUMENT: [&str; 3] = ["document_title", "filename", "file_id"];

/// Returns the media type of a document, based on the type of its citation. OpenAI and Anthropic do not send a media
/// type, so the values are those that @ai-sdk/openai writes.
fn media_type(kind: &str) -> &'static str {
    match kind {
        "page_location" => "application/pdf",
        "file_path" => OCTETS,
        _ => "text/plain",
    }
}

/// Writes citations of pages and documents as sources. The citation's position in the text is lost, because a source
/// has no member for the position.
fn cite<P: Protocol>(context: &mut EncodeContext, annotations: &str) {
    let list = Raw {
        text: annotations,
        kind: JsonKind::Array,
    };
    for annotation in items(list) {
        let found = Object::of(annotation);
        let inner = found
            .as_ref()
            .and_then(|found| found.object("url_citation"));
        let cited = inner.as_ref().or(found.as_ref());
        let member_text = |name: &str| text(found.as_ref()?, name);
        if let Some(url) = cited.and_then(|cited| text(cited, "url")) {
            let title = cited.and_then(|cited| text(cited, "title"));
            page::<P>(context, &url, title.as_deref());
            continue;
        }
        let kind = member_text("type").unwrap_or_default();
        if let Some(source) = member_text("source").filter(|_| kind == "search_result_location") {
            let title = member_text("title");
            if is_address(&source) {
                page::<P>(context, &source, title.as_deref());
            } else {
                let title = title.as_deref().unwrap_or(&source);
                document::<P>(context, media_type(&kind), title, None);
            }
        } else if let Some(name) = NAMES_OF_DOCUMENT.into_iter().find_map(member_text) {
            let filename = member_text("filename");
            document::<P>(context, media_type(&kind), &name, filename.as_deref());
        } else if let Some(index) = found.as_ref().and_then(document_index) {
            // As in @ai-sdk/anthropic.
            document::<P>(
                context,
                media_type(&kind),
                &format!("Document {index}"),
                None,
            );
        } else {
            context.losses.note("sources");
        }
    }
}

fn document_index(citation: &Object<'_>) -> Option<i64> {
    citation.get("document_index").and_then(integer)
}

fn document<P: Protocol>(
    context: &mut EncodeContext,
    media_type: &str,
    title: &str,
    filename: Option<&str>,
) {
    let id = context.mint.make("src");
    P::document(&mut context.writer, &id, media_type, title, filename);
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

/// Returns the member's text, or `None` if it is missing or empty.
fn text<'a>(holder: &Object<'a>, name: &str) -> Option<Cow<'a, str>> {
    holder.string(name).filter(|text| !text.is_empty())
}
