"""A tool's description for the model: a Markdown file under `prompts/`, the same bytes in every session.

Descriptions hold no variables; one that looks like it does is an error, not text sent to a model.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from reverie.errors import ReverieError


@cache
def description(file_name: str) -> str:
    """The text of `prompts/<file_name>`."""
    text = (Path(__file__).parent / "prompts" / file_name).read_text("utf-8").strip()
    if "{{" in text:
        raise ReverieError(f"The prompt {file_name} holds a variable, and tool descriptions have none: write it out.")
    return text
