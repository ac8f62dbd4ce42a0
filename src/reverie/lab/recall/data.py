"""What recall is measured on: a memory directory with queries, or long conversations with questions about them.

Everything is copied to a scratch folder with the mtimes it should have; the data itself is only read.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from reverie.errors import UserError
from reverie.parsing import load_json
from reverie.regular_files import LARGEST, read_regular_text

_KIND = re.compile(r"\W*([\w-]*).*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt and which files should, may and must not come back; nothing relevant means silence."""

    text: str
    kind: str
    tools: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    acceptable: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Collection:
    """A memory directory on disk and the queries to ask of it."""

    name: str
    memory: Path
    queries: tuple[Query, ...]


def read_queries(path: Path) -> tuple[Query, ...]:
    """Queries, one JSON object a line."""
    queries: list[Query] = []
    for number, line in enumerate(read_regular_text(path, LARGEST).splitlines(), 1):
        if not line.strip():
            continue
        try:
            found: dict[str, Any] = load_json(line)
            queries.append(
                Query(
                    text=found["query"],
                    kind=_KIND.sub(r"\1", found.get("note", ""), count=1) or "other",
                    tools=tuple(found.get("recent_tools") or ()),
                    relevant=frozenset(found["relevant"]),
                    acceptable=frozenset(found.get("acceptable") or ()),
                    forbidden=frozenset(found.get("forbidden") or ()),
                )
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f"{path}:{number}: not a query ({error!r}); see docs/recall.md for the form.") from error
    return tuple(queries)


def read_folder(folder: Path, scratch: Path, more: Sequence[Path] = ()) -> Collection:
    """A folder with memory/, queries.jsonl and mtimes.json, copied to `scratch`; `more` files of queries beside."""
    if not (folder / "memory").is_dir() or not (folder / "queries.jsonl").is_file():
        raise UserError(f"{folder}: needs memory/ and queries.jsonl; name a folder that has them.")
    memory = scratch / "memory"
    shutil.copytree(folder / "memory", memory, copy_function=shutil.copyfile)
    for path in (memory, *memory.rglob("*")):
        path.chmod(0o700 if path.is_dir() else 0o600)
    stamps = folder / "mtimes.json"
    if stamps.is_file():
        times: dict[str, str] = load_json(read_regular_text(stamps))
        for name, when in times.items():
            if (memory / name).is_file():
                seconds = datetime.fromisoformat(when.replace("Z", "+00:00")).timestamp()
                os.utime(memory / name, (seconds, seconds))
    queries = read_queries(folder / "queries.jsonl")
    for path in more:
        queries += read_queries(path)
    return Collection(folder.name, memory, queries)


def read_locomo(path: Path, scratch: Path) -> list[Collection]:
    """LoCoMo: a conversation is a directory, a session a file, a question of categories 1-4 a query for sessions."""
    try:
        conversations: list[dict[str, Any]] = load_json(read_regular_text(path, LARGEST))
        return [_conversation(n, found, scratch) for n, found in enumerate(conversations)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: not a LoCoMo file ({error!r}); name its JSON file.") from error


def _conversation(number: int, found: dict[str, Any], scratch: Path) -> Collection:
    memory = scratch / f"conversation-{number}"
    memory.mkdir(parents=True)
    talk: dict[str, Any] = found["conversation"]
    sessions: dict[int, str] = {}
    for key, turns in talk.items():
        match = re.fullmatch(r"session_(\d+)", key)
        if match and turns:
            name = f"session_{int(match[1]):02}.md"
            when = talk.get(f"{key}_date_time", "")
            lines = "\n".join(_turn(turn) for turn in turns)
            text = f"---\nname: Session {match[1]}\ndescription: {when}\n---\n\n{lines}\n"
            (memory / name).write_text(text, encoding="utf-8")
            sessions[int(match[1])] = name
    queries: list[Query] = []
    for asked in found["qa"]:
        wanted = {int(n) for evidence in asked.get("evidence", ()) for n in re.findall(r"D(\d+):\d+", evidence)}
        relevant = frozenset(sessions[n] for n in wanted if n in sessions)
        if asked["category"] in (1, 2, 3, 4) and relevant:
            queries.append(Query(asked["question"], f"category-{asked['category']}", relevant=relevant))
    return Collection(f"conversation {number}", memory, tuple(queries))


def _turn(turn: dict[str, Any]) -> str:
    caption = turn.get("blip_caption")
    return f"{turn['speaker']}: {turn['text']}" + (f" (photo: {caption})" if caption else "")
