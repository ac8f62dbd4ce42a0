"""LangGraph: a `BaseStore` over a memory directory. One item is one memory: a file with versions, behind the gate.

The labels of a namespace are folders, and the key is the name of the file. The longest text of a value is the text of
the memory, where people read and correct it; the rest of the value is in its head. There is no expiry (`ttl`).
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import replace
from typing import Any, Final, cast

from reverie.errors import MissingExtra, UserError
from reverie.library.memory import Memory
from reverie.library.recording import read_origin
from reverie.memory.changes import Change, WriteInfo, Writer
from reverie.memory.gate.saving import trust_of, user_info
from reverie.memory.note import DESCRIPTION_CHARACTERS, classify
from reverie.memory.secrets.new_secret import refuse_secrets
from reverie.memory.taxonomy import INDEX, LOGS, TEAM
from reverie.memory.topic_file import TopicFile
from reverie.models.wire import as_object
from reverie.moments import parse_time, to_datetime
from reverie.parsing import load_json
from reverie.paths.installed import pip_install
from reverie.text.cutting import shorten
from reverie.types import Json, JsonObject

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
    )
except ImportError as error:
    raise MissingExtra(f"This needs LangGraph; install it with: {pip_install('langchain')}") from error

__all__ = ["ReverieStore"]

Namespace = tuple[str, ...]
_log = logging.getLogger("reverie.adapters")
_AT, _REST, _CREATED = "store-field", "store-value", "store-created"
"""Fields of the head: the place of the text in the value, the rest of the value as JSON, and when it was made."""
_WHY: Final = "Asked for by a program ({})."
_ENCODED = re.compile(r"(?:=[0-9A-F]{2})+")
_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_TAKEN = (TEAM, LOGS, INDEX.removesuffix(".md"))
_LONGEST: Final = 240
_FEWEST: Final = 50
"""Memories that a search ranks at least, because those of other namespaces are left out afterwards."""


class ReverieStore(BaseStore):
    """A store of LangGraph over `Memory`: `create_agent(…, store=ReverieStore(Memory.open("~/agents/support")))`.

    `origin` says whose the texts are (`Memory.remember`). With the default they are stored as inferred; of an agent's
    text ("model") the gate stores what the user said, and the rest waits in the inbox. `search` with a query recalls.
    Memories that others wrote are items as well: `{"text": …}` in the namespace of their folder.
    """

    def __init__(self, memory: Memory, *, origin: str = "entered") -> None:
        self._memory = memory
        self._origin = read_origin(origin)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        with ThreadPoolExecutor(1) as thread:  # the caller's thread may run an event loop
            return thread.submit(asyncio.run, self.abatch(ops)).result()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return [await self._run(op) for op in ops]

    async def _run(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await asyncio.to_thread(self._get, _file(op.namespace, op.key))
            case PutOp():
                if op.ttl is not None:
                    raise NotImplementedError("ReverieStore has no expiry: leave `ttl` out.")
                return await asyncio.to_thread(self._put, op)
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await asyncio.to_thread(self._list, op)

    # -- one operation --------------------------------------------------------------------------------------------

    def _get(self, name: str) -> SearchItem | None:
        directory = self._memory.opened.directory
        if not directory.exists(name):
            return None
        document = directory.read(name)
        topic, changed = document.topic, to_datetime(document.modified)
        created = parse_time(topic.fields.get(_CREATED)) or changed
        namespace, key = _place(name)
        return SearchItem(namespace, key, _value(topic), created, changed)

    def _put(self, op: PutOp) -> None:
        memory = self._memory.opened
        memory.require_on("nothing is stored")
        directory, name = memory.directory, _file(op.namespace, op.key)
        if op.value is None:
            if directory.exists(name):
                directory.remove(name, WriteInfo(Writer.USER, _WHY.format("delete")))
            return
        text, at, rest = _split(dict(op.value))
        refuse_secrets(f"{op.key}\n{json.dumps(op.value, ensure_ascii=False)}")
        info = user_info(_WHY.format("put"), text, self._origin)
        if not self._origin.is_given:
            info = replace(info, writer=Writer.AGENT)
        before = self._get(name)
        fields = {_AT: json.dumps(at), _REST: json.dumps(rest, ensure_ascii=False) if rest else None}
        if before is None:
            fields[_CREATED] = info.evidence[0].at
        topic = (TopicFile.parse("") if before is None else directory.read(name).topic).with_changes(
            name=op.key,
            description=shorten(" ".join(text.split()), DESCRIPTION_CHARACTERS),
            type=classify(text),
            trust=trust_of(info),
            body=text,
            fields=fields,
        )
        outcome = directory.transaction([Change(name, topic.text)], info)
        if outcome.note:
            _log.warning("%s: %s", "/".join((*op.namespace, op.key)), outcome.note)

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        if any(key.startswith("$") for one in (op.filter or {}).values() for key in as_object(one)):
            raise NotImplementedError("ReverieStore filters by equal values: operators such as $gt are not known.")
        wanted = op.limit + op.offset
        recalled = await self._memory.recall(op.query, max(_FEWEST, 5 * wanted)) if op.query else []
        scores = {one.name: one.score for one in recalled}
        return await asyncio.to_thread(self._choose, op, scores)

    def _choose(self, op: SearchOp, scores: Mapping[str, float]) -> list[SearchItem]:
        """The items that a search means: the recalled ones, or all below the prefix; a single word must be in them."""
        depth, found = len(op.namespace_prefix), list[SearchItem]()
        for name in scores or [entry.name for entry in self._memory.opened.directory.list()]:
            item = self._get(name) if _place(name)[0][:depth] == op.namespace_prefix else None
            if item is None or not all(item.value.get(key) == value for key, value in (op.filter or {}).items()):
                continue
            said = json.dumps(item.value, ensure_ascii=False).casefold()
            if op.query and not scores and op.query.casefold() not in said:
                continue
            item.score = scores.get(name)
            found.append(item)
        return found[op.offset : op.offset + op.limit]

    def _list(self, op: ListNamespacesOp) -> list[Namespace]:
        names = (_place(name)[0] for name in self._memory.opened.directory.names())
        fitting = {name for name in names if name and all(_matches(one, name) for one in op.match_conditions or ())}
        cut = sorted({name[: op.max_depth] for name in fitting})
        return cut[op.offset : op.offset + op.limit]


# -- names ---------------------------------------------------------------------------------------------------------


def _file(namespace: Namespace, key: str) -> str:
    parts = [_encode(label) for label in (*namespace, key)]
    if any(len(part) > _LONGEST for part in parts):
        raise UserError(f"{key[:60]!r} or its namespace is too long for the name of a memory: use shorter names.")
    return "/".join(parts) + ".md"


def _place(name: str) -> tuple[Namespace, str]:
    *labels, key = (_ENCODED.sub(_decoded, part) for part in name.removesuffix(".md").split("/"))
    return tuple(labels), key


def _encode(label: str) -> str:
    """A label as the name of a file: other characters, and names with a meaning, are written as `=2E`."""
    parts = [c if _PLAIN.match(c) else "".join(f"={byte:02X}" for byte in c.encode()) for c in label]
    if label in _TAKEN:
        parts[0] = f"={ord(label[0]):02X}"
    return "".join(parts)


def _decoded(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("=", "")).decode("utf-8", "replace")


def _matches(condition: MatchCondition, namespace: Namespace) -> bool:
    path = condition.path
    near = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(near) == len(path) and all(label in ("*", part) for label, part in zip(path, near, strict=True))


# -- values --------------------------------------------------------------------------------------------------------


def _split(value: JsonObject) -> tuple[str, list[str], JsonObject]:
    """The longest text of a value, where it is, and the value without it. A value without a text is JSON."""
    path, text = max(_texts(value, []), key=lambda pair: len(pair[1]), default=(list[str](), ""))
    if not text.strip():
        return json.dumps(value, ensure_ascii=False), [], {}
    rest = deepcopy(value)
    _set(rest, path, None)
    return text, path, rest if rest != {path[0]: None} else {}


def _texts(value: JsonObject, path: list[str]) -> Iterator[tuple[list[str], str]]:
    for key, part in value.items():
        if isinstance(part, str):
            yield [*path, key], part
        elif isinstance(part, dict):
            yield from _texts(cast(JsonObject, part), [*path, key])


def _set(value: JsonObject, path: Sequence[str], text: Json) -> None:
    for key in path[:-1]:
        value = value.setdefault(key, {})
    value[path[-1]] = text


def _value(topic: TopicFile) -> JsonObject:
    """The value of an item; the whole text under `text` if the head does not say where it belongs."""
    text, value = topic.body.strip(), dict[str, Any]()
    try:
        path = cast("list[str]", load_json(topic.fields[_AT]))
        if not path:
            return {**cast(JsonObject, load_json(text))}
        value = cast(JsonObject, load_json(topic.fields.get(_REST) or "{}"))
        _set(value, path, text)
    except (KeyError, ValueError, TypeError, AttributeError):
        return {"text": text}
    return value
