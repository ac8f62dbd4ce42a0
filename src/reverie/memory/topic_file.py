"""One memory: a Markdown file with a small head (name, description, type, trust). Everything that a caller does not
change keeps its bytes: comments, unknown keys, order, quoting, line ends, even bytes that are not UTF-8. A broken head
is readable and reported. It never touches the disk."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from reverie.memory.frontmatter import Frontmatter, split
from reverie.memory.taxonomy import MemoryType, Trust
from reverie.quick import dataclass
from reverie.text.sentences import statements, strip_marks

_NOT_UTF8 = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True, slots=True)
class TopicFile:
    """A parsed topic file. Build it with `parse` or `new`; change it with `with_changes`. `problems` says what is wrong
    with the head, each as the end of a sentence about the file."""

    front: Frontmatter
    name: str
    description: str
    type: MemoryType | None
    """None: missing or unknown."""
    trust: Trust | None
    problems: tuple[str, ...]

    @classmethod
    def parse(cls, content: bytes | str) -> TopicFile:
        """Never fails: problems are listed in `problems`."""
        return _parse(decode(content) if isinstance(content, bytes) else content)

    @classmethod
    def new(
        cls, *, name: str, description: str, type: MemoryType | None, body: str, trust: Trust | None = None
    ) -> TopicFile:
        """A memory from its parts."""
        return cls.parse("").with_changes(name=name, description=description, type=type, trust=trust, body=body)

    @property
    def text(self) -> str:
        """The whole file, exactly."""
        return self.front.text

    @property
    def body(self) -> str:
        """The text below the head, without leading blank lines."""
        return self.front.body.lstrip("\r\n")

    @property
    def fields(self) -> Mapping[str, str]:
        """Every field of the head as text, including unknown ones."""
        return self.front.values

    def with_changes(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        type: MemoryType | None = None,
        trust: Trust | None = None,
        body: str | None = None,
        fields: Mapping[str, str | None] | None = None,
    ) -> TopicFile:
        """A copy with the given values; only the lines of those fields differ. `fields` sets any other field, or
        removes it with None. A field that has its value already keeps its line."""
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

    def repair(self) -> TopicFile:
        """A copy with a head that every YAML reader understands."""
        return TopicFile.parse(self.front.repair().text)


def decode(content: bytes) -> str:
    """A file's bytes as text; `encode` turns it back into the same bytes."""
    return content.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The bytes of a text, the reverse of `decode`."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half a character from a model's JSON
        return text.encode("utf-8", "replace")


@lru_cache(maxsize=256)  # a dream looks at the same memories for each of its writes
def _parse(text: str) -> TopicFile:
    front = split(text)
    problems = list(front.problems)
    if _NOT_UTF8.search(text):
        problems.append("it holds bytes that are not UTF-8")
    kind_text = front.values.get(front.key_of("type"), "")
    kind = MemoryType.read(kind_text)
    if kind_text and kind is None:
        problems.append(f"its type {kind_text[:40]!r} is not one of {', '.join(MemoryType)}")
    trust_text = front.values.get(front.key_of("trust"), "")
    trust = Trust.read(trust_text)
    if trust_text and trust is None:
        problems.append(f"its trust {trust_text[:40]!r} is neither confirmed nor inferred")
    return TopicFile(
        front=front,
        name=" ".join(front.values.get("name", "").split()),
        description=" ".join(front.values.get("description", "").split()),
        type=kind,
        trust=trust,
        problems=tuple(problems),
    )


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


def body_statements(text: str) -> list[str]:
    """The sentences and bullets of a topic file's body, each once."""
    return statements(TopicFile.parse(text).body)


@lru_cache(maxsize=256)
def statements_of(text: str) -> tuple[str, ...]:
    """The statements of a topic file, each once: its description, and the sentences and bullets of its body."""
    topic = TopicFile.parse(text)
    return tuple(dict.fromkeys([*filter(None, [strip_marks(topic.description)]), *statements(topic.body)]))
