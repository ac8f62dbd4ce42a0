"""A summary made of quotes: what was asked, and how each answer began."""

from __future__ import annotations

from reverie.models.base import Request
from reverie.models.embedded.conversation import said
from reverie.models.embedded.step import Say, Step

_LINE = 200


def next_step(request: Request) -> Step:
    """One line for everything that was said, in order."""
    lines = [
        f"- {'Asked' if role == 'user' else 'Answered'}: {_first_line(text)}" for role, text in said(request.messages)
    ]
    return Say("\n".join(["What was said so far, in the order it was said:", *lines]))


def _first_line(text: str) -> str:
    return next((line.strip()[:_LINE] for line in text.splitlines() if line.strip()), "")
