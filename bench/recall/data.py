"""The data for measuring recall: a memory directory with queries, or long conversations with questions.

The files are copied to a scratch folder, with their mtimes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.scratch import copy_memory, read_json_lines
from reverie.errors import UserError
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.regular_files import LARGEST, read_regular_text
from reverie.types import JsonObject

_KIND = re.compile(r"\W*([\w-]*).*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Query:
    """A prompt, and the files that should, may and must not be shown. No relevant files: recall should be silent."""

    text: str
    kind: str
    tools: tuple[str, ...] = ()
    relevant: frozenset[str] = frozenset()
    acceptable: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Collection:
    """A memory directory on disk, and its queries."""

    name: str
    memory: Path
    queries: tuple[Query, ...]


def read_queries(path: Path) -> tuple[Query, ...]:
    """Queries, one JSON object per line."""
    return tuple(read_json_lines(path, _query, "a query as in docs/recall.md"))


def _query(found: JsonObject) -> Query:
    return Query(
        text=found["query"],
        kind=_KIND.sub(r"\1", found.get("note", ""), count=1) or "other",
        tools=tuple(found.get("recent_tools") or ()),
        relevant=frozenset(found["relevant"]),
        acceptable=frozenset(found.get("acceptable") or ()),
        forbidden=frozenset(found.get("forbidden") or ()),
    )


def read_folder(folder: Path, scratch: Path, more: Sequence[Path] = ()) -> Collection:
    """A folder with memory/, queries.jsonl and mtimes.json, copied to `scratch`; `more`: other files of queries."""
    if not (folder / "memory").is_dir() or not (folder / "queries.jsonl").is_file():
        raise UserError(f"{folder}: needs memory/ and queries.jsonl; name a folder that has them.")
    memory = scratch / "memory"
    copy_memory(folder / "memory", memory, folder / "mtimes.json")
    queries = [query for path in (folder / "queries.jsonl", *more) for query in read_queries(path)]
    return Collection(folder.name, memory, tuple(queries))


def read_unrelated(path: Path, scratch: Path) -> list[Collection]:
    """Directories of memories with prompts that have nothing to do with them. One JSON object per line, with the name
    of its `directory`: a memory has a `file` and its `text`, a prompt has a `prompt`."""
    prompts: dict[str, list[Query]] = {}

    def read(found: JsonObject) -> None:
        memory = scratch / check_name(str(found["directory"]))
        memory.mkdir(exist_ok=True)
        of_directory = prompts.setdefault(memory.name, [])
        if "prompt" in found:
            of_directory.append(Query(str(found["prompt"]), memory.name))
        else:
            (memory / check_name(found["file"])).write_text(found["text"], encoding="utf-8")

    read_json_lines(path, read, "a memory or a prompt of a directory")
    return [Collection(name, scratch / name, tuple(asked)) for name, asked in prompts.items()]


def check_name(name: str) -> str:
    """The name, if it stays in its folder."""
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise ValueError(f"{name} is not the name of a file")
    return name


def read_locomo(path: Path, scratch: Path) -> list[Collection]:
    """LoCoMo: one directory per conversation, one file per session, one query per question of categories 1-4."""
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
