"""What a sentence encoder is shown of a topic file: its header, and its body whole or in overlapping windows."""

from __future__ import annotations

from typing import Final

from reverie.text.sentences import sentences

WHOLE_WORDS: Final = 170
"""A file up to this long is one passage: its title gives the body its meaning."""
WINDOW_WORDS: Final = 70
MAX_PASSAGES: Final = 32


def passages(path: str, name: str, description: str, body: str) -> list[str]:
    """What to encode of a topic file: its header, and its body whole or in overlapping windows of whole lines."""
    title = name or _title(path)
    header = f"{title}. {description}" if description else title
    body = body.strip()
    if not body:
        return [header]
    if len(body.split()) <= WHOLE_WORDS:
        return [header, f"{_title(path)}. {header}\n{body}"]
    return [header, *(f"{title}\n{window}" for window in _windows(body))][:MAX_PASSAGES]


def _windows(body: str) -> list[str]:
    lines = [line.strip() for line in body.splitlines() if line.strip()]
    lines = [piece for line in lines for piece in _pieces(line)]
    windows: list[str] = []
    start = 0
    while start < len(lines):
        end, count = start, 0
        while end < len(lines) and (end == start or count + len(lines[end].split()) <= WINDOW_WORDS):
            count += len(lines[end].split())
            end += 1
        windows.append("\n".join(lines[start:end]))
        if end >= len(lines):
            break
        start = max(start + 1, end - 1)
    return windows


def _pieces(line: str) -> list[str]:
    """A line that is a whole paragraph, cut at its sentences."""
    if len(line.split()) <= WINDOW_WORDS:
        return [line]
    return sentences(line)


def _title(path: str) -> str:
    stem_of_name = path.rsplit("/", 1)[-1].removesuffix(".md")
    return stem_of_name.replace("_", " ").replace("-", " ")
