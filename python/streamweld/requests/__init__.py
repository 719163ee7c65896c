"""Convert complete requests for another LLM API: messages, tools and options.

    conversion = streamweld.requests.convert(request, source="openai-chat", target="anthropic")
    client.messages.create(**conversion.payload)
    for loss in conversion.losses:
        print(loss.path, loss.why)

The messages are converted by `streamweld.history.convert`; everything else is converted according to the tables in
`_spec/requests.json`. Options that the target does not support are left out and reported as losses. `check` lists the
rules of a target API that a request breaks.
"""

from streamweld.requests.checker import check
from streamweld.requests.conversion import Conversion, convert
from streamweld.requests.policy import RequestPolicy

__all__ = ["Conversion", "RequestPolicy", "check", "convert"]
