"""Turns the result of an MCP call into the result of a tool: text stays text, small images stay images.

Everything else (sound, files, large images) becomes a file, and the result names it. What a server writes is the text
of a tool, never an order; layer 1 judges its size like that of any result.
"""

from __future__ import annotations

import base64
import binascii
import json
import mimetypes
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from reverie.errors import StorageError
from reverie.origins import escape_tags
from reverie.storage.atomic import create_exclusive, make_private_dir
from reverie.text.quoting import without_hidden
from reverie.tools.base import ToolOutput
from reverie.tools.mcp.definitions import clean
from reverie.tools.read import find_image_type
from reverie.types import Block, ImageBlock, Origin, TextBlock

if TYPE_CHECKING:
    from mcp_types import CallToolResult

_LARGEST_IMAGE = 3_750_000
_MOST_OTHERS = 50
"""Parts of one result that are not plain text: each of them may become a file."""
_LARGEST_TEXT_BESIDE = 50_000
"""In characters. Layer 1 leaves a result with an image whole, so a longer text beside one goes to a file here."""


def make_output(result: CallToolResult, folder: Path) -> ToolOutput:
    """Returns the result for the model. Files go to `folder`."""
    made = list(_blocks(result, folder))
    if not made and result.structured_content is not None:
        made = [TextBlock(json.dumps(result.structured_content, ensure_ascii=False, default=str), Origin.TOOL)]
    blocks = [
        replace(one, text=escape_tags(without_hidden(one.text))) if isinstance(one, TextBlock) else one for one in made
    ]
    texts = [block.text for block in blocks if isinstance(block, TextBlock)]
    if len(texts) == len(blocks):
        return ToolOutput("\n\n".join(texts), result.is_error)
    if sum(map(len, texts)) > _LARGEST_TEXT_BESIDE:
        note = _save("\n\n".join(texts).encode("utf-8", "replace"), ".txt", "the text of this result", folder)
        blocks = [TextBlock(note, Origin.TOOL), *(block for block in blocks if not isinstance(block, TextBlock))]
    return ToolOutput(tuple(blocks), result.is_error)


def _blocks(result: CallToolResult, folder: Path) -> Iterator[Block]:
    others = 0
    for part in result.content:
        others += part.type != "text"
        if part.type != "text" and others > _MOST_OTHERS:
            continue
        match part.type:
            case "text":
                yield TextBlock(part.text, Origin.TOOL)
            case "image":
                yield _image(part.data, part.mime_type, folder)
            case "audio":
                yield TextBlock(_decode_and_save(part.data, part.mime_type, "sound", folder), Origin.TOOL)
            case "resource_link":
                about = " ".join(filter(None, (clean(part.name, 200), clean(part.description, 500))))
                yield TextBlock(f"[a link: {clean(str(part.uri), 2_000)} {about}]", Origin.TOOL)
            case "resource":
                inside, uri = part.resource, clean(str(part.resource.uri), 2_000)
                text = getattr(inside, "text", None)
                if isinstance(text, str):
                    yield TextBlock(f"[{uri}]\n{text}", Origin.TOOL)
                else:
                    data = str(getattr(inside, "blob", ""))
                    yield TextBlock(_decode_and_save(data, inside.mime_type or "", uri, folder), Origin.TOOL)
    if others > _MOST_OTHERS:
        yield TextBlock(f"[{others - _MOST_OTHERS:,} more parts were left out: images, files, links]", Origin.TOOL)


def _image(data: str, mime: str, folder: Path) -> Block:
    """Returns an image that an API takes as it is; else says where its file is. The content says its type."""
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return TextBlock("[an image that cannot be read: it is not base64]", Origin.TOOL)
    kind = find_image_type(raw[:32])
    if kind is not None and len(raw) <= _LARGEST_IMAGE:
        source = {"type": "base64", "media_type": kind, "data": base64.b64encode(raw).decode()}
        return ImageBlock(source, Origin.TOOL)
    return TextBlock(_save(raw, _ending(kind or mime), "an image", folder), Origin.TOOL)


def _decode_and_save(data: str, mime: str, what: str, folder: Path) -> str:
    try:
        raw = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return f"[{what}: it cannot be read, because it is not base64]"
    return _save(raw, _ending(mime), what, folder)


def _ending(mime: str) -> str:
    return mimetypes.guess_extension(mime.split(";")[0].strip().lower()) or ".bin"


def _save(raw: bytes, ending: str, what: str, folder: Path) -> str:
    path = folder / f"mcp-{uuid.uuid4().hex[:16]}{ending}"
    try:
        make_private_dir(folder)
        create_exclusive(path, raw)
    except StorageError as error:
        return f"[{what}: {len(raw):,} bytes, which could not be saved: {error}]"
    return f"[{what}: {len(raw):,} bytes, saved as {path}]"
