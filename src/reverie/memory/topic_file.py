"""One memory: a Markdown file with a small head (name, description, type, trust), read and changed as plain data.

What a caller does not change keeps its bytes: comments, unknown keys, order, quoting, line ends, byte order mark, even
bytes that are not UTF-8. A broken head is readable and reported. It never touches the disk.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from reverie.memory.frontmatter import Frontmatter, split
from reverie.memory.taxonomy import MemoryType, Trust
from reverie.text.sentences import statements, unmarked

_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class TopicFile:
    """A parsed topic file. Build it with `parse` or `new`; change it with `updated`."""

    front: Frontmatter
    name: str
    description: str
    """What selection reads; empty if there is none."""
    type: MemoryType | None
    """None: untyped (missing or unknown), still a memory."""
    trust: Trust | None
    problems: tuple[str, ...]
    """What is wrong with the head, each the end of a sentence about the file."""

    @classmethod
    def parse(cls, content: bytes | str) -> TopicFile:
        """Never fails: what cannot be understood is in `problems`."""
        text = decode(content) if isinstance(content, bytes) else content
        front = split(text)
        problems = list(front.problems)
        if _NOT_UTF8.search(text):
            problems.append("it holds bytes that are not UTF-8")
        kind_text = front.values.get(front.key_of("type"), "")
        kind = MemoryType.read(kind_text)
        if kind_text and kind is None:
            known = ", ".join(MemoryType)
            problems.append(f"its type {kind_text[:40]!r} is none of {known}")
        trust_text = front.values.get(front.key_of("trust"), "")
        trust = Trust.read(trust_text)
        if trust_text and trust is None:
            problems.append(f"its trust {trust_text[:40]!r} is neither confirmed nor inferred")
        return cls(
            front=front,
            name=" ".join(front.values.get("name", "").split()),
            description=" ".join(front.values.get("description", "").split()),
            type=kind,
            trust=trust,
            problems=tuple(problems),
        )

    @classmethod
    def new(
        cls, *, name: str, description: str, type: MemoryType | None, body: str, trust: Trust | None = None
    ) -> TopicFile:
        """A memory from its parts."""
        return cls.parse("").updated(name=name, description=description, type=type, trust=trust, body=body)

    @property
    def text(self) -> str:
        """The whole file, exactly."""
        return self.front.text

    @property
    def body(self) -> str:
        """What stands below the head, without the blank lines between."""
        return self.front.body.lstrip("\r\n")

    @property
    def fields(self) -> Mapping[str, str]:
        """Every field of the head as text, also those we do not know."""
        return self.front.values

    def to_bytes(self) -> bytes:
        return encode(self.text)

    def updated(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        type: MemoryType | None = None,
        trust: Trust | None = None,
        body: str | None = None,
        fields: Mapping[str, str | None] | None = None,
    ) -> TopicFile:
        """The same with what is given changed; only the lines of those fields differ.

        `fields` sets any other field, or takes it out with None. A value that is already so leaves its line alone.
        """
        wanted: dict[str, str | None] = dict(fields or {})
        for key, value in (("name", name), ("description", description), ("type", type), ("trust", trust)):
            if value is not None:
                wanted[key] = " ".join(value.split())
        front = self.front
        for key, value in wanted.items():
            if front.values.get(front.key_of(key)) != value:
                front = front.with_value(key, value)
        if body is not None:
            front = _with_body(front, body)
        return TopicFile.parse(front.text)

    def repaired(self) -> TopicFile:
        """The same with a head that every YAML reader understands; unchanged if nothing is wrong with it."""
        return TopicFile.parse(self.front.repaired().text)


def decode(content: bytes) -> str:
    """A file's bytes as text that `encode` turns back into the very same bytes."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes of a text; what `decode` could not understand comes out as it went in."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character from a model's JSON: no file system can hold it
        return text.encode("utf-8", "replace")


def _with_body(front: Frontmatter, body: str) -> Frontmatter:
    end = front.newline
    lead = front.body[: len(front.body) - len(front.body.lstrip("\r\n"))]
    if not front.body.strip() and front.present:
        lead = end
    text = body.lstrip("\r\n")
    if end == "\r\n":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    if text and not text.endswith("\n"):
        text += end
    head = front.before + "".join(front.lines) + front.after
    if head and front.present and not head.endswith("\n"):
        head += end
    return split(head + lead + text)


def said_in(text: str) -> list[str]:
    """What a topic file states, each once: its description, and the sentences and bullets of its body."""
    topic = TopicFile.parse(text)
    return list(dict.fromkeys([*filter(None, [unmarked(topic.description)]), *statements(topic.body)]))
