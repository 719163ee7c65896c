//! Tests how the assembler handles items, by comparing the events that a list of wire deltas produces.

use streamweld_core::Config;
use streamweld_core::assemble::Assembler;
use streamweld_core::json::Text;
use streamweld_core::model::delta::Address;
use streamweld_core::model::delta::CallFields;
use streamweld_core::model::delta::Channel;
use streamweld_core::model::delta::InputEnd;
use streamweld_core::model::delta::ItemKind;
use streamweld_core::model::delta::PartAt;
use streamweld_core::model::delta::UnfinishedInput;
use streamweld_core::model::event::Event;
use streamweld_core::model::event::Sink;
use streamweld_core::model::fault::Fault;
use streamweld_core::model::output::Ledger;
use streamweld_core::model::output::Output;
use streamweld_core::model::policy::Base;
use streamweld_core::model::policy::Policy;

#[derive(Default)]
struct Lines(Vec<String>);

impl Sink for Lines {
    fn event(&mut self, event: &Event<'_>) {
        self.0.push(match event {
            Event::TextStarted(part) => format!("text {}", part.part),
            Event::TextDelta(delta) => format!("text {} + {}", delta.part, delta.text),
            Event::TextDone { part, text, .. } => format!("text {part} = {text}"),
            Event::ReasoningStarted { part, .. } => format!("reasoning {part}"),
            Event::ReasoningDelta(delta) => format!("reasoning {} + {}", delta.part, delta.text),
            Event::ReasoningDone {
                part,
                text,
                item_id,
                encrypted_content,
                ..
            } => format!("reasoning {part} = {text} {item_id:?} {encrypted_content:?}"),
            Event::ToolCallStarted {
                part,
                call_id,
                item_id,
                name,
                ..
            } => format!("call {part} {name} {call_id:?} {item_id:?}"),
            Event::ToolCallDelta(delta) => format!("call {} + {}", delta.part, delta.text),
            Event::ToolCallReset(mark) => format!("call {} reset", mark.part),
            Event::ToolCall {
                part,
                call_id,
                name,
                arguments,
                state,
                aliases,
                ..
            } => format!("call {part} = {name} {call_id} {arguments} {state} {aliases:?}"),
            Event::Diagnostic { code, detail, .. } => format!("{code} {detail}").trim().to_owned(),
            Event::Finished { reason, .. } => format!("finished {reason}"),
            other => format!("{other:?}"),
        });
    }
}

/// Runs the steps, and returns the events that they emit.
fn run(steps: impl FnOnce(&mut Assembler, &mut Output<'_>) -> Result<(), Fault>) -> Vec<String> {
    let config = Config {
        policy: Policy::new(Base::Salvage),
        ..Config::default()
    };
    let mut lines = Lines::default();
    let mut ledger = Ledger::default();
    let mut out = Output::new(&config, &mut ledger, &mut lines);
    let mut assembler = Assembler::new(&config);
    assembler.set_dialect("responses");
    let result = steps(&mut assembler, &mut out);
    assert_eq!(result, Ok(()));
    lines.0
}

fn at(address: Address<'_>) -> PartAt<'_> {
    PartAt {
        choice: 0,
        kind: ItemKind::Message,
        address,
        channel: Channel::Text,
        reasoning_kind: "raw",
    }
}

fn index(index: i64) -> Address<'static> {
    Address {
        index: Some(index),
        ..Address::default()
    }
}

fn call<'a>(item_id: &'a str, call_id: &'a str, index: i64) -> CallFields<'a> {
    CallFields {
        address: Address {
            item_id: Some(item_id),
            call_id: Some(call_id),
            index: Some(index),
            ..Address::default()
        },
        name: Some("f"),
        ..CallFields::default()
    }
}

fn with<'a>(fields: &CallFields<'a>, arguments: &'a str) -> CallFields<'a> {
    CallFields {
        arguments: Some(Text::plain(arguments)),
        ..fields.clone()
    }
}

#[test]
fn a_call_is_reported_at_its_own_close() {
    let lines = run(|items, out| {
        let fields = call("fc_1", "call_1", 0);
        items.call_opened(out, fields.clone())?;
        let address = Address {
            item_id: Some("fc_1"),
            ..Address::default()
        };
        items.call_text(out, 0, address, Text::plain("{\"a\":"), None, None)?;
        items.call_text(out, 0, address, Text::plain("1}"), None, None)?;
        items.call_value(out, 0, address, Some(Text::plain("{\"a\":1}")))?;
        items.call_closed(out, with(&fields, "{\"a\":1}"))?;
        items.finish(out, 0, "completed")?;
        items.done(out)
    });
    assert_eq!(
        lines,
        [
            "call 0 f Some(\"call_1\") Some(\"fc_1\")",
            "call 0 + {\"a\":",
            "call 0 + 1}",
            "call 0 = f call_1 {\"a\":1} complete []",
            "finished tool_calls",
        ]
    );
}

#[test]
fn a_call_that_is_announced_again_is_one_call() {
    let lines = run(|items, out| {
        items.call_opened(out, call("fc_1", "call_1", 0))?;
        items.call_closed(out, with(&call("fc_1", "call_1", 0), "{}"))?;
        items.call_opened(out, call("fc_2", "call_1", 1))?;
        items.call_closed(out, with(&call("fc_2", "call_1", 1), "{ }"))?;
        items.call_opened(out, call("fc_3", "call_1", 2))?;
        items.call_closed(out, with(&call("fc_3", "call_1", 2), "{\"b\":2}"))?;
        items.done(out)
    });
    assert_eq!(
        lines,
        [
            "call 0 f Some(\"call_1\") Some(\"fc_1\")",
            "call 0 + {}",
            "call 0 = f call_1 {} complete []",
            "announced_again fc_2",
            "call 2 f Some(\"call_1\") Some(\"fc_3\")",
            "call 2 + {\"b\":2}",
            "id_minted call_1__2",
            "call 2 = f call_1__2 {\"b\":2} complete []",
            "finish_missing",
            "finished tool_calls",
        ]
    );
}

#[test]
fn content_of_an_opening_is_emitted_once() {
    let lines = run(|items, out| {
        items.part_opened(out, at(index(0)), Some(Text::plain("Hel")), None)?;
        items.part_text(out, at(index(0)), Text::plain("Hello"), None)?;
        items.part_opened(out, at(index(1)), Some(Text::plain("A ")), None)?;
        items.part_text(out, at(index(1)), Text::plain("b"), None)?;
        items.part_closed(out, at(index(0)), None, None)?;
        items.item_closed(out, 0, None, index(1), None, None)?;
        items.finish(out, 0, "completed")?;
        items.end(out, UnfinishedInput::Nothing, InputEnd::Clean)
    });
    assert_eq!(
        lines,
        [
            "text 0",
            "text 0 + Hello",
            "text 1",
            "text 1 + A b",
            "text 0 = Hello",
            "text 1 = A b",
            "finished stop",
            "no_terminal_marker",
        ]
    );
}

#[test]
fn the_close_is_authoritative_and_a_lost_beginning_is_restored() {
    let lines = run(|items, out| {
        items.part_text(out, at(index(0)), Text::plain("Helo"), None)?;
        items.part_closed(out, at(index(0)), Some(Text::plain("Hello")), None)?;
        let fields = CallFields {
            address: index(1),
            name: Some("f"),
            ..CallFields::default()
        };
        items.call_opened(out, fields)?;
        items.call_text(out, 0, index(1), Text::plain("a\":1}"), None, None)?;
        items.item_closed(out, 0, None, index(1), None, None)?;
        items.item_closed(
            out,
            0,
            Some(ItemKind::Reasoning),
            Address {
                item_id: Some("rs_1"),
                ..Address::default()
            },
            Some("gAAA"),
            None,
        )?;
        items.finish(out, 0, "completed")?;
        items.done(out)
    });
    assert_eq!(
        lines,
        [
            "text 0",
            "text 0 + Helo",
            "conflict text",
            "text 0 = Hello",
            "call 1 f None None",
            "reasoning 2",
            "reasoning 2 =  Some(\"rs_1\") Some(\"gAAA\")",
            // The arguments are restored only after the finish reason, because a cut call may lack more than `{"`.
            "args_restored",
            "id_minted call_sw_1",
            "call 1 + {\"a\":1}",
            "call 1 = f call_sw_1 {\"a\":1} complete []",
            "finished tool_calls",
        ]
    );
}

#[test]
fn a_terminal_list_emits_nothing_twice() {
    let lines = run(|items, out| {
        items.part_text(out, at(index(0)), Text::plain("Hi"), None)?;
        items.call_closed(out, with(&call("fc_1", "call_1", 1), "{\"a\":1}"))?;
        let other = Address {
            item_id: Some("msg_9"),
            sub: Some(0),
            ..Address::default()
        };
        items.restate_part(out, at(other), Some(Text::plain("Hi")), None)?;
        items.restate_call(out, with(&call("fc_9", "call_1", 5), "{\"a\": 1}"))?;
        items.done(out)
    });
    let count = |begin: &str| lines.iter().filter(|line| line.starts_with(begin)).count();
    assert_eq!((count("text 0 ="), count("call 1 =")), (1, 1), "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains(" 2")), "{lines:?}");
}
