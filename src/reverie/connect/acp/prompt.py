"""A prompt of the protocol as blocks with origins: what the user wrote, and what came with it.

The protocol does not say which text was typed and which was pasted. So text counts as entered, with logs, code and long
parts split off as pasted. Embedded files are pasted too: nothing in them is an order of the user.
"""

from __future__ import annotations

import binascii
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from acp import schema

from reverie.errors import UserError
from reverie.origins import NO_REQUEST, fence, split_material
from reverie.quick import dataclass
from reverie.text.patterns import late
from reverie.tools.read import MAX_IMAGE_BYTES, find_image_type
from reverie.tools.text_form import replace_surrogates
from reverie.types import ImageBlock, Origin, TextBlock

PromptBlock: TypeAlias = (
    schema.TextContentBlock
    | schema.ImageContentBlock
    | schema.AudioContentBlock
    | schema.ResourceContentBlock
    | schema.EmbeddedResourceContentBlock
)
_MOST_PICTURES = 20
_LINES = late(r"[A-Za-z]?\d+(?:[-:,][A-Za-z]?\d+)*")
_SPACE = late(r"\s")


@dataclass(slots=True)
class Prompt:
    """The parts of one message."""

    blocks: list[TextBlock] = field(default_factory=list[TextBlock])
    images: list[ImageBlock] = field(default_factory=list[ImageBlock])


def read_prompt(given: Sequence[PromptBlock], cwd: Path) -> Prompt:
    """Returns the blocks in their order. Raises UserError for what cannot be sent."""
    found, material, written = Prompt(), list[str](), ""
    for block in given:
        match block:
            case schema.TextContentBlock():
                written += replace_surrogates(block.text)
            case schema.ResourceContentBlock():
                written += _link(block, cwd, material)
            case schema.EmbeddedResourceContentBlock():
                written += _embedded(block, cwd, found, material)
            case schema.ImageContentBlock():
                found.images.append(_image(block.data))
            case schema.AudioContentBlock():
                raise UserError("Reverie cannot hear audio: send the words as text.")
    if len(found.images) > _MOST_PICTURES:
        raise UserError(f"These are {len(found.images)} pictures; at most {_MOST_PICTURES} go with one message.")
    if material and not any(isinstance(one, schema.TextContentBlock) and one.text.strip() for one in given):
        material[0], written = "\n".join(filter(None, (written, material[0]))), ""  # the user wrote nothing
    own = split_material(written, Origin.ENTERED) if written.strip() else []
    notes = [NO_REQUEST if not own else "", *[""] * len(material)]
    found.blocks = [*own, *(fence(Origin.PASTED, text, note) for text, note in zip(material, notes, strict=False))]
    return found


def _link(block: schema.ResourceContentBlock, cwd: Path, material: list[str]) -> str:
    """What a link becomes in the user's text: the path of a file, as if the user had written it."""
    if mark := _mention(block.uri, cwd):
        return mark
    uri = unquote(block.uri) if block.uri.startswith("file:") else block.uri
    about = "\n".join(part for part in (block.name, block.title, block.description, uri) if part)
    material.append(replace_surrogates(about))
    return ""


def _embedded(block: schema.EmbeddedResourceContentBlock, cwd: Path, found: Prompt, material: list[str]) -> str:
    """Takes in a resource with its content; returns what it becomes in the user's text."""
    held = block.resource
    mark = _mention(held.uri, cwd)
    name = mark.removeprefix("@") or held.uri
    if isinstance(held, schema.TextResourceContents):
        material.append(replace_surrogates(f"{name}:\n{held.text}"))
        return mark
    data = _decode(held.blob)
    if find_image_type(data):
        found.images.append(_image(held.blob))
        return mark
    try:
        material.append(f"{name}:\n{data.decode()}")
    except UnicodeDecodeError:
        material.append(f"{name}: a binary file of {len(data):,} bytes, which is not shown.")
    return mark


def _mention(uri: str, cwd: Path) -> str:
    """`@path` for the address of a file; empty for other addresses, and for a name that is not one printable word:
    whoever named the file could write a sentence there, and it would be the user's."""
    try:
        parts = urlsplit(uri) if uri.startswith("file:") else None
    except ValueError:  # such as a bracket without its other one
        return ""
    if parts is None or parts.netloc not in ("", "localhost"):
        return ""
    path = Path(unquote(parts.path))
    shown = str(path.relative_to(cwd) if path.is_relative_to(cwd) and path != cwd else path)
    lines = f":{parts.fragment}" if _LINES.fullmatch(parts.fragment) else ""
    return f"@{shown}{lines}" if shown.isprintable() and not _SPACE.search(shown) else ""


def _image(encoded: str) -> ImageBlock:
    data = _decode(encoded)
    kind = find_image_type(data)
    if kind is None:
        raise UserError("This is not a picture that a model can see: send PNG, JPEG, GIF or WebP.")
    if len(data) > MAX_IMAGE_BYTES:
        raise UserError(f"A picture has {len(data):,} bytes, more than the {MAX_IMAGE_BYTES:,} that can be sent.")
    return ImageBlock({"type": "base64", "media_type": kind, "data": b64encode(data).decode()})


def _decode(encoded: str) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, ValueError) as error:
        raise UserError(f"The data of a picture or file is not base64: {error}.") from error
