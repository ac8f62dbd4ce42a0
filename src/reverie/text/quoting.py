"""Quotes of somebody else's text for a model, line by line, so that it cannot look like ours."""

from __future__ import annotations

from reverie.origins import escape_tags
from reverie.text.folding import visible
from reverie.text.patterns import late

_CONTROL = late("[\\x00-\\x08\\x0a-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")
"""Control characters, line breaks among them, and halves of characters."""
_CONTROL_IN_LINES = late("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u2028\\u2029\\ud800-\\udfff]")


def without_hidden(text: str) -> str:
    """The text with its lines, but without control characters and characters that nobody sees."""
    return _CONTROL_IN_LINES.sub(" ", visible(text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """The text in one line, without our tags and without characters that nobody sees."""
    return escape_tags(_CONTROL.sub(" ", visible(text)))


def quote_line(line: str) -> str:
    """One line as a quote."""
    return f"> {one_line(line)}" if line.strip() else ">"
