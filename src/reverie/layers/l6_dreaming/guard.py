"""What stands between a dreamer and the memory: its permissions, and the way of each write into the copy.

Every write passes the write gate before it is in the copy, so that the dreamer is told at once and can word it
otherwise; when everything lands, the gate is asked again. Refusals are logged by kind, never with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from reverie.errors import ReverieError
from reverie.layers.l6_dreaming.copy import MemoryCopy
from reverie.layers.l6_dreaming.dreamer import MOST_LINES
from reverie.layers.l6_dreaming.sources import Sources, message_evidence, transcript_evidence
from reverie.memory.changes import Evidence, Gate, ProposedWrite, Writer
from reverie.memory.gate.evidence import Ground, spoken
from reverie.memory.gate.forgotten import Forgotten, brought_back, why_forgotten
from reverie.memory.gate.privacy import is_shared, why_private
from reverie.memory.gate.turned import turned_round, why_turned
from reverie.memory.taxonomy import is_log, is_topic
from reverie.memory.topic_file import decode
from reverie.permissions.background import BackgroundWriter
from reverie.permissions.patterns import list_paths
from reverie.permissions.rules import ToolCall
from reverie.permissions.shell.commands import all_commands
from reverie.runtime.background_log import BackgroundLog
from reverie.tools.base import Keeper
from reverie.types import Message

_NARROW: Final = f"Transcripts are searched for narrow terms, at most the last {MOST_LINES} matches, never read whole"


class NotForTheTeam(ReverieError):
    """A dream wanted to put a private note where others read it."""


class TurnedRound(ReverieError):
    """A dream wanted to say the opposite, or something else, of what memory says, and nobody said so."""


class WasForgotten(ReverieError):
    """A dream wanted to bring back what a person had taken out of memory."""


class DreamGuard:
    """The guard of one dream. `on_write` is told each file that was written."""

    def __init__(
        self,
        copy: MemoryCopy,
        gate: Gate,
        log: BackgroundLog,
        *,
        transcripts: Sequence[Path],
        conversation: Iterable[tuple[Message, str]],
        gone: Callable[[], Sequence[Forgotten]],
        on_write: Callable[[str], None],
    ) -> None:
        self._copy = copy
        self._gate = gate
        self._log = log
        self._transcripts = transcripts
        self._conversation = conversation
        self._find_gone = gone
        self._gone: Sequence[Forgotten] | None = None
        self._on_write = on_write
        self._sources: Sources | None = None
        self.refused: dict[str, str] = {}
        """What it was not allowed to write, by file, and has not written otherwise since."""
        self.permission = BackgroundWriter(
            copy.root, refuse_write=_why_not_write, refuse_read=self._why_not_read, on_denied=self._denied
        )

    def evidence(self, *texts: str) -> tuple[Evidence, ...]:
        """What was said in the sessions this dream is about, and by whom, near to these texts."""
        if self._sources is None:  # read when it is first needed
            said = (*transcript_evidence(self._transcripts), *message_evidence(self._conversation))
            self._sources = Sources(said)
        return self._sources.near(*texts)

    def keeper(self, path: Path) -> Keeper | None:
        """Who writes a file: for one of the memory directory, the copy."""
        name = self._copy.name_of(path)
        if name is None:
            return None

        def keep(data: bytes, before: bytes | None) -> bool:
            del before
            is_gone = is_topic(name) and not data.strip()
            if not is_gone:
                self.refused[name] = decode(data)
                self._check(name, data)
            self.refused.pop(name, None)
            self._copy.write(name, None if is_gone else data)
            self._on_write(name)
            return not is_gone

        return keep

    def _check(self, name: str, data: bytes) -> None:
        from reverie.memory.gate.write_gate import Refused

        before = self._copy.base.get(name)
        others = {one.name: None if one.after is None else decode(one.after) for one in self._copy.changes()}
        text = decode(data)
        if (private := self._why_private(name, text)) is not None:
            self._log.write("dream_refused", refused="private", file=name)
            raise NotForTheTeam(private)
        if is_topic(name) and (turned := self._turned_round(name, text)) is not None:
            self._log.write("dream_refused", refused="turned_round", file=name)
            raise TurnedRound(why_turned(name, *turned))
        if is_topic(name) and (back := self._brought_back(text)) is not None:
            self._log.write("dream_refused", refused="forgotten", file=name)
            raise WasForgotten(why_forgotten(name, back))
        write = ProposedWrite(
            name=name,
            text=text,
            before=None if before is None else decode(before),
            writer=Writer.DREAM,
            evidence=self.evidence(text),
            together={other: text for other, text in others.items() if other != name},
        )
        try:
            self._gate(write)
        except Refused as refusal:
            # A double may be about to go: whether one is left is judged when everything lands together.
            if refusal.refusal.kind != "duplicate":
                self._log.write("dream_refused", refused=refusal.refusal.kind, file=refusal.refusal.name)
                raise

    def _brought_back(self, text: str) -> Forgotten | None:
        """What this text says that people had forgotten; what stands in any memory now was told again since."""
        if self._gone is None:  # looked up when it is first needed
            self._gone = self._find_gone()
        standing = (decode(held) for other, held in self._copy.base.items() if is_topic(other))
        return brought_back(text, standing, self._gone) if self._gone else None

    def _turned_round(self, name: str, text: str) -> tuple[str, str] | None:
        """A statement of the file, or of one that is to go, that the new text turns round."""
        standing = {other: decode(held) for other, held in self._copy.base.items()}
        now = {other: decode(held) for other, held in self._copy.files().items() if is_topic(other)}
        joined = [held for other, held in standing.items() if is_topic(other) and other != name and other not in now]
        elsewhere = [held for other, held in now.items() if other != name]
        typed = Ground([spoken(self.evidence(text))])
        before = standing.get(name, "")
        return turned_round(text, before, typed, standing.values, joined=joined, elsewhere=elsewhere)

    def _why_private(self, name: str, text: str) -> str | None:
        before = self._copy.base.get(name)
        notes = [decode(held) for other, held in self._copy.base.items() if is_topic(other) and not is_shared(other)]
        return why_private(name, text, None if before is None else decode(before), notes)

    def _denied(self, tool: str, reason: str) -> None:
        self._log.write("dream_denied", tool=tool, reason=reason)

    def _why_not_read(self, call: ToolCall) -> str | None:
        """A folder above the memory directory is not searched (that would meet the real files), nor is a transcript
        read whole."""
        if call.tool == "Bash":
            for part in all_commands(str(call.input.get("command", ""))):
                words = [word for word in part.words if word]
                if words[:1] == ["cat"] and any(word.endswith(".jsonl") for word in words[1:]):
                    return f"{_NARROW}: use grep and tail."
            return None
        if call.tool == "Read":
            limit = call.input.get("limit")
            whole = not isinstance(limit, int) or limit > MOST_LINES
            is_transcript = str(call.input.get("file_path", "")).endswith(".jsonl")
            return f"{_NARROW}: give a limit of at most {MOST_LINES} lines." if is_transcript and whole else None
        pattern = str(call.input.get("glob" if call.tool == "Grep" else "pattern") or "")
        folder = list_paths(call)[-1]
        is_above = folder != self._copy.root and self._copy.root.is_relative_to(folder)
        if is_above and not pattern.endswith(".jsonl"):
            what = "glob" if call.tool == "Grep" else "pattern"
            return (
                f"{folder} holds the memory directory: search {self._copy.root} by its own path, or transcripts with a "
                f"{what} that ends in .jsonl."
            )
        return None


def _why_not_write(name: str) -> str | None:
    return "A daily log is never changed: write what it teaches into a topic file." if is_log(name) else None
