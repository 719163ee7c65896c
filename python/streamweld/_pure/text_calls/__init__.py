"""Tool calls that a model wrote into its text: one stage after the assembler, between its events and their receivers.

The stage exists only if `Policy(text_calls=...)` is `report` or `promote`; without it no code of this folder runs.
Both backends implement what this page defines, and emit the same events and diagnostics at the same payload.

Input
-----
`config["text_calls"]` is JSON text (`table.settings_text`: mode, families, end_of_turn, reasoning_tags, quoting,
after, reasoning), `config["text_call_tools"]` maps a tool's name to the JSON text of its parameter schema, or to None.
A tool whose schema has the member `"x-text-calls": false` is never promoted.

The stage sees every event that the assembler emits. It reads `Text*` events (and `Reasoning*` events if `reasoning`),
`ToolCall` (to find duplicates), `Finished` and `UpstreamErrorEvent`; all others pass at once, unchanged, also while
text is held.

Scanning (`scanner`)
--------------------
Per choice, over the concatenated text of its parts; a new part starts a line. Outside of a block the scanner finds
the leftmost marker (of several at one place the longest) and asks `layout` whether it stands where a call may stand:

- never in a fence, inline code, a quoting element or reasoning tags; never on an indented line of four columns or more,
  in a list item, in a diff, or in the lines after a quotation up to a blank one. A fence that is indented by four
  columns or more may be one or may be code: both readings are kept, and in either a fence that is open counts;
- a `tag` marker starts its line: before it only white space, a reasoning closer, or another pending block (a refused
  block is prose). A reasoning closer in a list item, a quotation or a table row starts no line;
- a `token` marker may also follow prose, if its line is no quotation, list item, table row, diff or numbered line, and
  the character before it is no quotation mark or opening bracket;
- a `markerless` opener is the first non-blank character of the answer (after reasoning tags at most).

A marker that may not stand there is text; the search goes on one character later, or after the marker if another one
stands inside of it. At the end of the part, what may be the beginning of a marker is text. One that may stand there
opens a block: every family with this marker parses in parallel, and the first that ends decides. A family stops at the
first character that its grammar does not allow. If none is left, the block is `malformed`: text to the end of the
choice, because its end is unknown; only a `token` marker after prose, after which no family matched more than white
space and a name and no object or list begins, is a mention, and the search goes on after it. Ends of JSON and Python
values are where brackets of any kind balance outside of strings; they are validated there (duplicate keys, depth 128;
Python and braces 64), before the closer is read. Values that end at a literal are checked when it was read. A name has
256 characters at most. A block that its part or choice ends is `cut`: text to the end of the choice.

A closer that may be missing (`maybe_close`) belongs to the block if it follows directly, white space aside; it closes
no block of another family.

Once whole, a block is judged: each name is a tool's exactly (`unknown_name`, `never`), each value fits its schema
(`bad_value`), markerless arguments fit it wholly (`bad_arguments`). A block that passes is pending. White space and
`end_of_turn` literals may follow it, and further blocks. Anything else, also a refused block, is text: with
`after="end"` all pending blocks are refused (`text_follows`), and what follows is text to the end of the choice,
because the answer shows calls; with `anywhere` only those after prose on their line, and all those that began on the
line on which the text follows.
More calls than `max_tool_calls`, or a block longer than `max_arguments_bytes`, is `limit`: text to the end.

Holding and releasing (`stage`), mode `promote`
-----------------------------------------------
Held are: white space with which a part begins, with its `Started` event; the longest end of the text that is a proper
prefix of a marker at a permitted place; an open block; pending blocks with what follows them. Text is released as
soon as it is none of these: each held piece of a delta as a delta of its own, in order, with the metadata of its event
on its first piece. A delta of which nothing is held passes as the same event. A part's `Done` waits while a block of
the choice is pending, or text of the part is held.

Pending blocks are decided at the choice's `Finished`, before it is emitted: the reason must be `stop`, `tool_calls` or
`other` (else `finish`), and `max_tool_calls` and `max_parts` must allow all of their calls besides those of the stream
(else `limit`). At the end of the stream, or at an error, without `Finished`, they are `cut`. Then, in order:

- text of the parts that precedes the first block is complete: `TextDone` with that text. A part without any text left
  is not shown, neither `Started` nor `Done`, unless it has an item id, annotations, a signature or metadata, which it
  keeps; parts that continue it have none of these;
- each call whose name and arguments equal a structured call of the choice gives `text_call_duplicate`. Every other
  gives `text_call_promoted` (with the part of the call), then `ToolCallStarted`, `ToolCallDelta` (all arguments) and
  `ToolCall`, under the next free part number. The id is `call_sw_<part>` (with a seed `call_<seed>_<part>`), made
  unique as any minted id; state `complete`; `origin="text"`; `raw_text` is the block;
- white space and end-of-turn tokens that follow a block are dropped with it; with `anywhere`, text after them continues
  in a new part;
- `Finished` has the reason `tool_calls` if a call was promoted; `raw_reason` stays.

The snapshot of a response shows the same: the parts' text without the blocks, and what was added after all parts of the
assembler, in the order of part numbers.

Mode `report`: the same scan, nothing is held, and no event is changed. `text_call_seen` stands for `text_call_promoted`
(with the text part); names are not checked if no tools were given.

Diagnostics: `detail` is `<family> <start>-<end>`, in characters of the text of the part as sent; of a refusal also the
reason. A block without an end has the span of its marker, and the first family of that marker in the table. They have
the place of the payload at which the stage decided.

Modules
-------
`table` which families are on · `families` data to typed fields · `layout` where a block may stand ·
`cursor` text that arrives in pieces · `grammar/` one parser per shape · `values` typing by schema, JSON text ·
`scanner` text to blocks · `stage` events to events.
"""
