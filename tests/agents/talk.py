"""What tests of agents share: a project with definitions, and a look at the requests that were sent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reverie.agents.definition import trusted_parts
from reverie.models.request_log import LoggedRequest, read_log
from reverie.paths import Places
from reverie.session import Session
from reverie.settings import load_settings
from reverie.storage.transcript.file import read_records
from reverie.storage.trust_file import trust
from reverie.types import ToolResultBlock


def define(folder: Path, name: str, prompt: str = "You review.", **head: str) -> Path:
    """A kind of agent in the project's own folder, which the user trusts."""
    path = folder / ".reverie" / "agents" / f"{name}.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    fields = {"name": name, "description": f"does {name}", **head}
    path.write_text("---\n" + "".join(f"{key}: {value}\n" for key, value in fields.items()) + f"---\n{prompt}\n")
    places = Places.of(folder, load_settings(folder))
    if parts := trusted_parts(places):
        trust(places.home, parts, places.checkout)
    return path


def requests(log: Path, *, thread: str | None = None) -> list[LoggedRequest]:
    """The requests that were sent, of one thread or of all."""
    return [request for request in read_log(log) if thread is None or request.thread == thread]


def of_agents(log: Path) -> dict[str, list[LoggedRequest]]:
    """The requests of every agent, by its id, in the order they came up."""
    found: dict[str, list[LoggedRequest]] = {}
    for request in requests(log):
        if request.purpose == "agent":
            found.setdefault(request.thread, []).append(request)
    return found


def part(request: LoggedRequest, key: str) -> list[Any]:
    """The blocks of one kind: `system`, `tool`, `user`, `assistant`."""
    parsed = [json.loads(one) for one in request.parts]
    return [one[key] for one in parsed if key in one]


def user_texts(request: LoggedRequest) -> list[str]:
    return [block["text"] for block in part(request, "user") if block["type"] == "text"]


def results(session: Session) -> list[tuple[str, bool]]:
    """Every tool result of the main conversation, and whether it is an error."""
    found = list[tuple[str, bool]]()
    for entry in session.view.entries:
        found += [(b.text, bool(b.is_error)) for b in entry.message.content if isinstance(b, ToolResultBlock)]
    return found


def said_to_main(session: Session) -> str:
    """Everything on the user side of the main conversation, as one text."""
    return "\n".join(entry.message.text for entry in session.view.entries if entry.message.role == "user")


def transcripts(session: Session) -> dict[str, str]:
    """The transcripts that agents with a context of their own have left, by agent."""
    folder = session.places.session(session.id) / "subagents"
    found = sorted(folder.glob("agent-*.jsonl")) if folder.is_dir() else []
    return {
        path.stem.removeprefix("agent-"): "\n".join(
            record.message.text for record in read_records(path).records if record.message is not None
        )
        for path in found
    }
