"""Finds tool calls that a model wrote into its text: a stage between the assembler and the receivers of its events.

The stage exists only if `Policy(text_calls=...)` is `report` or `promote`; otherwise, no code in this folder runs. This
docstring is the specification for both backends, which must emit the same events and diagnostics at the same payload.

Input
-----
`config["text_calls"]` is JSON text written by `table.settings_text`: mode, families, end_of_turn, next_turn, messages,
reasoning_tags, quoting, after, reasoning, and the marks of quotations, lists and tables under their names in
`_spec/text_calls.json`. `config["text_call_tools"]` maps the name of a tool to the JSON text of its parameter schema,
or to None. A tool is never promoted if its schema has the member `"x-text-calls": false`.

The stage receives every event from the assembler. The stage reads `Text*` events, `Reasoning*` events if `reasoning` is
set, `ToolCall` events (to find duplicates), `Refusal*` events, `Finished` and `UpstreamErrorEvent`. All other events
pass through unchanged and without delay, even while text is held.

Scanning (`scanner`)
--------------------
The scanner reads the text of each choice, part after part; a new part begins a new line. Only the opener of a message,
an element, a section or reasoning may be split between two parts of the same kind; a role, a closer and a call's marker
may not. Outside a block it looks for the leftmost marker. If several markers begin at the same position, the longest
one takes precedence. `layout` then determines whether a call may begin there:

- A call is never allowed in a fence, inline code, a quoting element, a quoting section, reasoning tags or a message of
  another role, on a line indented by four columns or more, in a list item, in a diff, or on the lines between a
  quotation and the next blank line. A line is a quotation if it begins with `>`, or if a list item on it does; list
  items may follow each other (`- 1. > text`), and each may begin with the box of a task (`- [x] > text`). A list item,
  a table row or a similar line counts as a quotation if it contains a marker (except a markerless one); any line that
  ends in a marker also counts as a quotation. Unified, context and classic diffs are recognized. A fence that is
  indented by four columns or more may also be code. Both interpretations are tracked, and a call is allowed only if
  neither has an open fence.
- Elements of the same name nest. An element ends when all of them have ended. White space may precede the `>` of a
  closing tag.
- The opener of a section is ignored if the rest of a closer directly follows that shares its first characters with the
  end of the opener: `<!-->` and `<!--->` are complete comments.
- An entry of `messages` consists of an opener, a role and a closer. The role is the model's: if it does not follow the
  opener as a whole, or is the beginning of a longer name, the message belongs to another role. If the role is null, the
  opener itself names another role. The message ends at the first closer that is not quoted. To determine this, the
  message is read as Markdown of its own (`turn`): a closer is quoted in a fence, after an open run of backticks of the
  same paragraph, on a line that is a quotation, or between the two marks of a quotation.
- In inline code, the opener of a message, an element or reasoning is ignored, unless a blank line or a fence shows that
  no backticks end the code. From there on, the opener counts, because the backticks were text.
- A `tag` marker must begin its line. Only whitespace, a reasoning closer, or another pending block may precede it; a
  refused block counts as prose. A reasoning closer in a list item, a quotation or a table row does not begin a line.
  After a reasoning closer at which a quotation is open on the line, no call is allowed on the rest of the line.
- A `token` marker may also follow prose, unless its line is a quotation, a list item, a table row, part of a diff or a
  numbered line, a quotation or a parenthesis is open on the line, an opening bracket precedes the marker (with optional
  whitespace between them), or the character before it is a quotation mark or emphasis that does not close all
  quotations and emphasis of the line (`quotes`).
- A `markerless` opener must be the first non-blank character of the response; only reasoning tags may precede it.

A marker at any other position is text. The search continues at the next character, or, if another marker begins inside
this one, after this marker. At the end of the part, the beginning of a possible marker is treated as text.

A marker at an allowed position opens a block. All families with this marker parse the block in parallel; the first one
that reaches the end of its grammar is used. A family is dropped at the first character that its grammar does not allow.
If no family remains, the block is `malformed`. The end of a malformed block is unknown, so everything up to the end of
the choice is text. There are two exceptions, in which the search continues after the marker. First, a `token` marker
after prose is only a mention if no family matched more than whitespace and a name, and no object or list begins.
Second, a `markerless` opener is ordinary text unless a family matched a whole object or list.

After its opening bracket, a JSON object must continue with a quotation mark, an array of calls with an object, and a
Python list of calls with a name and a parenthesis. If anything else follows the bracket, the family is dropped there.
JSON and Python values end where all of their brackets outside strings are closed. At that point, before the closer is
read, they are validated: no duplicate keys, and a depth of at most 128 (64 for Python and braces). A value that ends at
a literal is checked once that literal has been read. A name has at most 256 characters. A block that is interrupted by
the end of its part or choice is `cut`, and everything up to the end of the choice is text.

An optional closer (`maybe_close`) belongs to the block if only whitespace precedes it in the same part. An optional
closer cannot close a block of another family.

A complete block is checked. Each name must be the name of a tool (otherwise `unknown_name`, `no_tools` if there are no
tools at all, or `never` if the tool is never promoted), each value must match its schema (`bad_value`), and markerless
arguments must match the schema completely (`bad_arguments`). An integer of any number of digits is an integer and a
number; a number with a fraction or an exponent must be finite. A `$ref` is resolved if it is `#` or a JSON pointer in a
fragment (`#/...`): its tokens are percent-decoded, then `~1` and `~0` are read, and the index of an array has no sign
and no leading zero. Any other `$ref` does not restrict the type. If the arguments are the JSON schema of a declaration
(`"type": "object"`, and an object as `properties`), and the tool declares neither a parameter `type` nor `properties`,
the block is `malformed` as if its grammar were broken; its family is known. A block that passes these checks is
pending. Whitespace, `end_of_turn` literals and further blocks may follow it. After a `next_turn` literal, which may
also follow, only whitespace may follow; everything else up to the end of the choice is text. Anything else that
follows, including a refused block, counts as text. If text follows, pending blocks are refused (`text_follows`):

- with `after="end"`, all of them; the rest of the choice is text, because the response quotes calls;
- with `anywhere`, only those that follow prose on their line, those without a marker, and all that began on the line on
  which the text follows.

If there are more calls than `max_tool_calls`, or if a block is longer than `max_arguments_bytes`, the block is refused
as `limit`, and everything up to the end of the choice is text.

Holding and releasing (`stage`), mode `promote`
-----------------------------------------------
The stage holds back: whitespace at the beginning of a part, with the part's `Started` event; each delta that contains
characters of the longest suffix of the text that may be the beginning of a marker; an open block; pending blocks and
what follows them. A suffix may be the beginning of a marker if it is a proper prefix of one, and

- the marker is a `token` or contains another marker, or
- the marker is a `tag`, and before the suffix, its line contains only spaces and tabs. The last character of a
  reasoning closer also ends a line here. Or
- the marker is `markerless`, and it may begin at this position.

Whether a call may begin at the position is determined only if the marker is complete. It depends on all text before the
position, and reading that text would cost much more than waiting for one more delta. Text that no longer belongs to any
of these is released. If a block begins within a delta, the text before the block is released as a separate delta, and
so is each later piece of the delta; the first piece carries the metadata of the original event. Every other delta is
emitted as the same event, so that text without a marker gives the same events as with mode `off`.
A part's `Done` event waits as long as text of this part or of an earlier part is held, but it does not wait for later
parts.

Whether pending blocks are promoted is decided just before the choice's `Finished` event is emitted. The finish reason
must be `stop` or `tool_calls`; otherwise, the blocks are refused as `finish`. The choice must not contain a refusal;
otherwise, they are refused as `refusal`. `max_tool_calls` and `max_parts` must also leave room for all calls of the
blocks, in addition to the calls already in the stream; otherwise, the blocks are refused as `limit`. If the stream ends
or fails without a `Finished` event, the blocks are refused as `cut`. If none of these cases applies, the events are
emitted in this order:

- The text of each part up to its first block is complete and is emitted as `TextDone`. If no text of a part remains,
  the part is not emitted at all (neither `Started` nor `Done`), unless it has an item id, annotations, a signature or
  metadata. The first part keeps these fields; the parts that continue it do not get them.
- A call whose name and arguments equal those of a structured call in the choice is reported as `text_call_duplicate`.
  The order of members and the spelling of numbers and strings are ignored in this comparison. Any other call is
  reported as `text_call_promoted` (with the part number of the call) and emitted as `ToolCallStarted`, `ToolCallDelta`
  (all arguments) and `ToolCall`, with the next free part number. The id of the call is `call_sw_<part>` (or
  `call_<seed>_<part>` if there is a seed), made unique like every generated id. The call's state is `complete`, its
  `origin` is `"text"`, and its `raw_text` is the block.
- Whitespace and end-of-turn tokens after a block are dropped together with the block. With `anywhere`, text after the
  dropped tokens continues in a new part.
- `Finished` has the reason `tool_calls` if a call was promoted; `raw_reason` does not change.

A snapshot of the response matches these events: it first contains the text of the parts without the blocks, and then,
after all parts from the assembler, the added parts in the order of their part numbers.

Mode `report` scans in the same way, but holds nothing back and changes no events. Where mode `promote` reports
`text_call_promoted`, mode `report` reports `text_call_seen` (with the number of the text part). Names are not checked
if the caller supplied no tools.

The `detail` of a diagnostic is `<family> <start>-<end>`, in characters of the part's text as sent; for a refused block,
the reason follows. If a block has no end, the span is that of its marker, and the family is the first one in the table
that has this marker. A diagnostic has the position of the payload at which the stage made the decision.

Modules
-------
- `table`: the families that a policy enables
- `families`: converts the data of a family to typed fields
- `layout`: where a block is allowed
- `words`: the literals that change the meaning of text
- `fences`: fences and inline code
- `quotes`: quotations that are open on a line
- `turn`: where the turn of another role ends
- `cursor`: reads text that arrives in pieces
- `grammar/`: one parser for each shape of a block
- `values`: types values by the tool's schema, writes JSON text
- `scanner`: finds blocks in text
- `stage`: receives and emits events
"""
