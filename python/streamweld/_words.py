"""The closed vocabularies of events and responses, as types. Layer 0: it knows nothing else."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

__all__ = [
    "DIALECTS",
    "Completeness",
    "FinishReason",
    "ReasoningKind",
    "RetryVerdict",
    "Severity",
    "Source",
    "Target",
    "ToolCallState",
    "TruncatedAt",
]

# What can be read, in the order in which it is told.
DIALECTS: Final = ("chat", "responses", "anthropic", "gemini", "ai-sdk-parts", "ai-sdk-ui")

Completeness: TypeAlias = Literal["complete", "assumed", "truncated", "open"]
FinishReason: TypeAlias = Literal["stop", "length", "tool_calls", "content_filter", "error", "other"]
ReasoningKind: TypeAlias = Literal["summary", "raw", "thinking", "redacted"]
RetryVerdict: TypeAlias = Literal["nothing_emitted", "text_only", "call_open", "call_complete"]
Severity: TypeAlias = Literal["info", "warning", "error"]
ToolCallState: TypeAlias = Literal["complete", "empty", "incomplete", "invalid", "open"]
# The APIs that a request history may be for; `chat` and `ai-sdk-parts` are the names of the same in streams.
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
