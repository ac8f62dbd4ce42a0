"""What the programs of all SDKs share: arguments, the tool, and the record of answered turns.

A program may be killed at any time. Started again with the same arguments, it goes on with the turn that was not
answered. How it finds its conversation again is the matter of each SDK.
"""

from __future__ import annotations

import asyncio
import json
from argparse import ArgumentParser
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from reverie.library.engine import Engine
from reverie.library.memory import Memory
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.storage.transcript.file import read_records
from reverie.storage.transcript.records import Clears, CompactBoundary, Fold, Rewind, from_record

SYSTEM = (
    "You are the clerk of a harbour office. You check its archive step by step, read each file with the tool, and "
    "answer in one sentence."
)
READ_HELP = "Read a file of the archive. With `find`, only the lines that contain this text."
READ_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"path": {"type": "string"}, "find": {"type": "string"}},
    "required": ["path"],
}
WITHOUT, REVERIE = "without", "reverie"
_AROUND = 2


@dataclass(frozen=True, slots=True)
class Options:
    """What a program is told. `window`: the tokens that the model takes; `variant`: what keeps the context small."""

    url: str
    model: str
    state: Path
    conversation: str
    variant: str
    window: int
    texts: tuple[str, ...]

    @property
    def openai_url(self) -> str:
        return self.url + "/v1"

    @property
    def home(self) -> Path:
        """The home of Reverie, if the variant uses it."""
        return self.state / "reverie"

    @property
    def archive(self) -> Path:
        return self.state / "archive"

    def read_file(self, path: str, find: str = "") -> str:
        """The text of a file of the archive, or what is around a text in it."""
        try:
            text = (self.archive / Path(path).name).read_text("utf-8")
        except OSError as error:
            return f"{path} cannot be read: {error.strerror}."
        if not find:
            return text
        lines = text.splitlines()
        hits = [number for number, line in enumerate(lines) if find in line]
        near = sorted({at for hit in hits for at in range(max(0, hit - _AROUND), min(len(lines), hit + _AROUND + 1))})
        return "\n".join(lines[at] for at in near) or f"{path} does not contain {find!r}."


Turn = Callable[[str, bool], Awaitable[str]]
"""Answers a text of the user. The second argument: a killed program began this turn, so the text was given before."""


def options() -> Options:
    """The arguments of the program."""
    parser = ArgumentParser()
    for name in ("url", "model", "state", "conversation", "variant"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--window", type=int, required=True)
    parser.add_argument("texts", nargs="+")
    given = parser.parse_args()
    texts = tuple(given.texts)
    return Options(given.url, given.model, Path(given.state), given.conversation, given.variant, given.window, texts)


def open_engine(given: Options, wire: Literal["messages", "chat", "responses"]) -> Engine:
    """The engine of the conversation, with the memory of all conversations."""
    memory = Memory.open(given.home / "memory", home=given.home)
    model = f"{'anthropic' if given.model.startswith('claude') else 'openai'}:{given.model}"
    return Engine.open(given.conversation, model=model, wire=wire, window=given.window, home=given.home, memory=memory)


def announced_breaks(home: Path) -> list[dict[str, Any]]:
    """The requests for which an engine announced a break, of all conversations and also of a killed program: the
    transcripts have them. `read`: the tokens that the request could read."""
    found = list[dict[str, Any]]()
    for path in sorted(home.glob("projects/*/*.jsonl")):
        why = ""
        for record in read_records(path).records:
            if isinstance(from_record(record), Clears | CompactBoundary | Fold | Rewind):
                why = record.subtype or ""
            usage = record.message.usage if record.message is not None else None
            if why and usage is not None:
                found.append({"why": why, "read": usage.cache_read_input_tokens})
                why = ""
    return found


def answer_all(given: Options, turn: Turn, close: Callable[[], Awaitable[None]] | None = None) -> None:
    """Answers the texts that are not answered yet, closes the conversation, and prints all answers as JSON."""
    asyncio.run(_answer_all(given, turn, close))


async def _answer_all(given: Options, turn: Turn, close: Callable[[], Awaitable[None]] | None) -> None:
    answered, begun = given.state / f"{given.conversation}.answers", given.state / f"{given.conversation}.begun"
    answers: list[str] = load_json(answered.read_text("utf-8")) if answered.exists() else []
    for number, text in enumerate(given.texts[len(answers) :], len(answers)):
        resumed = begun.exists() and begun.read_text("utf-8") == str(number)
        begun.write_text(str(number), "utf-8")
        answers.append(await turn(text, resumed))
        answered.write_text(json.dumps(answers), "utf-8")
    if close is not None:
        await close()
    print(json.dumps({"answers": answers, "announced": announced_breaks(given.home)}), flush=True)
