"""Writes images as items of the type `image_generation_call`, which OpenAI has for images that the model generated.

Such an item contains the image itself, so an image that has only an address is not written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from streamweld._pure.encode.common.writer import members, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamweld._pure.encode.common.encode_context import EncodeContext
    from streamweld._pure.encode.responses.items import Wire
    from streamweld.events import File

__all__ = ["write_image"]

# The formats that OpenAI generates, by media type.
_FORMATS: Final = {"image/png": "png", "image/jpeg": "jpeg", "image/webp": "webp"}
_KIND: Final = '"image_generation_call"'


def write_image(
    context: EncodeContext, wire: Wire, file: File, take_index: Callable[[], int]
) -> tuple[int, str] | None:
    """Write all events of an image, and return the index and the item. Return None if the file is not an image that an
    item can contain.
    """
    media_type, _, _ = (file.media_type or "").partition(";")
    name = _FORMATS.get(media_type.strip().lower())
    if name is None or file.data is None:
        return None
    item_id, index = quoted(context.mint.new("ig")), take_index()
    at = f'"output_index":{index}'
    begun = members(type=_KIND, id=item_id, status='"in_progress"', result="null")
    item = members(type=_KIND, id=item_id, status='"completed"', result=quoted(file.data), output_format=quoted(name))
    wire.event("response.output_item.added", f'{at},"item":{begun}')
    for step in ("in_progress", "generating", "completed"):
        wire.event(f"response.image_generation_call.{step}", f'"item_id":{item_id},{at}')
    wire.event("response.output_item.done", f'{at},"item":{item}')
    return index, item
