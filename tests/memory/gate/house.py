"""A memory directory with its real gate and inbox, for tests of who may write what."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reverie.memory.changes import Change, Evidence, Mark, Outcome, WriteInfo, Writer
from reverie.memory.directory import MemoryDirectory
from reverie.memory.gate.forgotten import list_forgotten
from reverie.memory.gate.inbox import MemoryInbox
from reverie.memory.gate.marks import Marks
from reverie.memory.gate.write_gate import Refusal, WriteGate
from reverie.memory.taxonomy import MemoryType, Trust
from reverie.memory.topic_file import TopicFile
from reverie.types import Origin


class House:
    """A directory with its gate, its inbox, and what was reported."""

    def __init__(self, root: Path, instructions: Mapping[str, str] | None = None) -> None:
        self.reported: list[Refusal] = []
        self.inbox = MemoryInbox(root)
        self.gate = WriteGate(
            root,
            instructions=lambda: instructions or {},
            inbox=self.inbox,
            report=self.reported.append,
            forgotten=lambda: list_forgotten(self.memory),
        )
        self.memory = MemoryDirectory.open(root, gate=self.gate)

    def write(
        self,
        name: str,
        body: str,
        writer: Writer,
        evidence: tuple[Evidence, ...] = (),
        trust: Trust | None = None,
        kind: MemoryType = MemoryType.FEEDBACK,
    ) -> Outcome:
        """Writes the memory `feedback_NAME.md`; an empty body removes it."""
        topic = TopicFile.new(name=name, description="", type=kind, body=body, trust=trust)
        return self.put(f"feedback_{name}.md", topic.text if body else None, evidence, writer=writer)

    def put(
        self, file: str, text: str | None, evidence: tuple[Evidence, ...] = (), *, writer: Writer = Writer.AGENT
    ) -> Outcome:
        """Writes a whole file; None removes it."""
        return self.memory.transaction([Change(file, text)], WriteInfo(writer, "a test", evidence=evidence))

    def confirm(self, name: str, body: str) -> None:
        """Writes a memory that the user typed."""
        self.write(name, body, Writer.USER, (Evidence(Origin.TYPED, body, "u1"),), Trust.CONFIRMED)

    def body(self, name: str) -> str:
        return self.memory.read(f"feedback_{name}.md").topic.body

    def trust(self, name: str) -> Trust | None:
        """How far a memory is trusted; its head says the same."""
        document = self.memory.read(f"feedback_{name}.md")
        trust = Marks(self.memory.root).lead_trust(document.text)
        assert document.topic.trust is trust
        return trust

    def mark(self, statement: str) -> Mark:
        mark = Marks(self.memory.root).of(statement)
        assert mark is not None, statement
        return mark

    @property
    def waits(self) -> list[str]:
        """All statements that wait for the user."""
        return [text for item in self.inbox.list() for text in item.statements]

    @property
    def all_text(self) -> str:
        """Everything that a model could be shown."""
        return "".join(path.read_text() for path in sorted(self.memory.root.rglob("*.md")))
