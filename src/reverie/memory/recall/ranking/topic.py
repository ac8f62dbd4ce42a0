"""What the ranker reads of a topic file: header, type and body, forgiving anything. It never writes and never raises.

The strict reader that keeps bytes and reports what is broken lives elsewhere; a search must find broken files too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

HEADER_LINES: Final = 30
MAX_BYTES: Final = 256 * 1024
"""More of a file than this is not searched: a memory is a page, not a book."""

_KEY = re.compile(r"\s{0,8}(name|description|type)\s*:\s*(.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic file as the ranker sees it. `path` is relative to the memory directory."""

    path: str
    name: str
    description: str
    type: str
    body: str

    @property
    def header(self) -> str:
        return f"{self.path.removesuffix('.md').replace('/', ' ')}\n{self.name}\n{self.description}"


def parse_topic(path: str, data: bytes) -> Topic:
    """Reads a file's bytes; whatever is not a header is body."""
    text = data[:MAX_BYTES].decode("utf-8", errors="replace").removeprefix("\ufeff").replace("\r\n", "\n")
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return Topic(path, "", "", "", text)
    end = next((n for n, line in enumerate(lines[1:HEADER_LINES], 1) if line.strip() in ("---", "...")), None)
    if end is None:
        end = next((n for n, line in enumerate(lines[1:HEADER_LINES], 1) if not line.strip()), min(4, len(lines)) - 1)
    found: dict[str, str] = {}
    latest = ""
    for line in lines[1:end]:
        match = _KEY.fullmatch(line)
        if match:
            latest = match[1].lower()
            found.setdefault(latest, _plain(match[2]))
        elif latest and line.startswith((" ", "\t")) and ":" not in line:
            found[latest] = f"{found[latest].lstrip('>|-')} {line.strip()}".strip()
        else:
            latest = ""
    body = "\n".join(lines[end + 1 :])
    return Topic(path, found.get("name", ""), found.get("description", ""), found.get("type", "").lower(), body)


def _plain(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1].replace('\\"', '"').replace("''", "'")
    return value
