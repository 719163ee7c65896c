"""The response object of the Responses API: all 31 members that its schema requires, and the usage inside.

Knows members and their neutral values: what was asked for is not known here, so everything about the request is the
API's own default. Knows no events and no items.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from streamweld._pure.encode.writer import members, quoted

if TYPE_CHECKING:
    from streamweld._pure.encode.usage import Counts

__all__ = ["Resource", "Status", "usage_json"]

Status: TypeAlias = Literal["in_progress", "completed", "incomplete", "failed"]

_BEFORE_OUTPUT: Final = '"previous_response_id":null,"instructions":null,'
_REQUEST: Final = (
    '"tools":[],"tool_choice":"auto","truncation":"disabled","parallel_tool_calls":true,'
    '"text":{"format":{"type":"text"}},"top_p":1,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,'
    '"temperature":1,"reasoning":null,'
)
_AFTER_USAGE: Final = (
    '"max_output_tokens":null,"max_tool_calls":null,"store":false,"background":false,"service_tier":"default",'
    '"metadata":{},"safety_identifier":null,"prompt_cache_key":null'
)


class Resource:
    """One response, as its events show it."""

    __slots__ = ("_head", "_model")

    def __init__(self, identity: str, model: str, created: int) -> None:
        self._head = f'"id":{quoted(identity)},"object":"response","created_at":{created},"completed_at":null,'
        self._model = quoted(model)

    def json(
        self,
        status: Status,
        output: str = "",
        *,
        usage: str = "null",
        incomplete: str | None = None,
        error: tuple[str, str] | None = None,
    ) -> str:
        """The object. `output`: its items, joined; `incomplete`: the reason; `error`: code and message."""
        details = "null" if incomplete is None else members(reason=quoted(incomplete))
        failure = "null" if error is None else members(code=quoted(error[0]), message=quoted(error[1]))
        return (
            f'{{{self._head}"status":"{status}","incomplete_details":{details},"model":{self._model},{_BEFORE_OUTPUT}'
            f'"output":[{output}],"error":{failure},{_REQUEST}"usage":{usage},{_AFTER_USAGE}}}'
        )


def usage_json(counts: Counts) -> str:
    """The counts; the schema requires numbers, so what is not known is 0."""
    total = counts.total if counts.total is not None else (counts.input or 0) + (counts.output or 0)
    # The published schema asks for the first of these two; OpenAI's client (3.54) for both.
    details = members(cached_tokens=str(counts.cached or 0), cache_write_tokens=str(counts.cache_write or 0))
    return members(
        input_tokens=str(counts.input or 0),
        input_tokens_details=details,
        output_tokens=str(counts.output or 0),
        output_tokens_details=members(reasoning_tokens=str(counts.reasoning or 0)),
        total_tokens=str(total),
    )
