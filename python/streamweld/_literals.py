"""Types for the strings that events, responses and options may contain, such as dialects and diagnostic codes.

This module does not import any other module of the package.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = [
    "DIALECTS",
    "Completeness",
    "DiagnosticCode",
    "FinishReason",
    "ReasoningKind",
    "RetryVerdict",
    "Severity",
    "Source",
    "Target",
    "ToolCallState",
    "TruncatedAt",
]

# The dialects that can be read, in the order in which messages list them.
DIALECTS: Final = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")

Completeness: TypeAlias = Literal["complete", "assumed", "truncated", "open"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]
ReasoningKind: TypeAlias = Literal["summary", "raw", "thinking", "redacted"]
RetryVerdict: TypeAlias = Literal["nothing_emitted", "text_only", "call_open", "call_complete"]
Severity: TypeAlias = Literal["info", "warning", "error"]
ToolCallState: TypeAlias = Literal["complete", "empty", "incomplete", "invalid", "open"]
# Target APIs of a request history. `chat` and `ai-sdk-parts` are the names used for the same formats in streams.
Target: TypeAlias = Literal[
    "openai-chat",
    "chat",
    "mistral",
    "responses",
    "anthropic",
    "gemini",
    "bedrock-converse",
    "ai-sdk-ui",
    "ai-sdk-model",
    "ai-sdk-parts",
]
Source: TypeAlias = Target | Literal["auto"]
TruncatedAt: TypeAlias = Literal[
    "empty", "mid_event", "mid_utf8", "mid_text", "mid_arguments", "between_events", "idle"
]
# The codes of `_spec/diagnostics.json`. A test checks that the lists are equal.
DiagnosticCode: TypeAlias = Literal[
    "invalid_utf8",
    "unterminated_event",
    "comment_as_data",
    "null_payload",
    "stray_payload",
    "json_lines",
    "lines_joined",
    "recovered_tail",
    "fields_in_data",
    "fields_on_one_line",
    "malformed_json",
    "data_after_done",
    "duplicate_key",
    "numeric_overflow",
    "lone_surrogate",
    "shape",
    "body_not_streamed",
    "index_missing",
    "index_unusable",
    "id_minted",
    "id_absent",
    "id_invalid",
    "name_not_ascii",
    "unstable_id",
    "name_joined",
    "name_conflict",
    "no_name",
    "call_placeholder",
    "args_overflow",
    "args_invalid",
    "args_cumulative",
    "args_replay_dropped",
    "args_placeholder_replaced",
    "args_merged",
    "args_restart",
    "args_doubled",
    "args_double_encoded",
    "args_stitched",
    "args_paired",
    "dup_id_header_dropped",
    "late_delta",
    "conflict",
    "ambiguous_same_index",
    "ambiguous_orphan_index",
    "ambiguous_duplicate_id",
    "ambiguous_empty_header",
    "ambiguous_identical_call",
    "ambiguous_cumulative",
    "duplicate_payload",
    "content_cumulative",
    "content_restated",
    "stream_restarted",
    "choices_merged",
    "reasoning_repeated",
    "orphan_think_close",
    "finish_repeated",
    "finish_missing",
    "finish_contradicts",
    "finish_unknown",
    "upstream_error",
    "truncated",
    "no_terminal_marker",
    "terminal_missing",
    "announced_again",
    "args_restored",
    "json_lines_body",
    "array_body",
    "sequence_replayed",
    "sequence_untrusted",
    "message_repeated",
    "block_left_open",
    "other_dialect",
    "notes_left_out",
    "not_carried",
    "rewritten",
    "text_call_seen",
    "text_call_promoted",
    "text_call_duplicate",
    "text_call_refused",
]
