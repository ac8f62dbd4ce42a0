"""Which conversations have our tool, and what the server has seen of it: calls and results that the client never got.

The decision is in the book, and is made once. Hidden calls and results are files in the folder of the session, so that
another worker, or a later proxy, sends the same bytes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from pathlib import Path

from reverie.errors import ReverieError, UserError
from reverie.library.engine import Engine
from reverie.library.wires import GivenMessage, wire_named
from reverie.models.wire import as_object
from reverie.parsing import MAX_JSON, RECORD_DEPTH, load_json
from reverie.plugins import guarded
from reverie.proxy.bodies import Api, GivenResult, dump, items_of, objects_of, tool_names
from reverie.proxy.book import Book, extended, hashed
from reverie.proxy.read_back import (
    OwnCall,
    ReadResult,
    make_tool,
    name_of,
    with_items,
    with_marker_of,
    with_results_first,
    with_tool,
)
from reverie.quick import dataclass
from reverie.regular_files import read_regular
from reverie.storage.atomic import make_private_dir, write_atomic
from reverie.types import Json, JsonObject

_FOLDER = "hidden"
_KEPT = ("tool-results", "requests")
"""The folders of a session with what our tool reads."""
_SHARE = 134
"""How many times larger the first request is, in bytes, if our tool is 1% of its tokens: a definition has three bytes
per token, and text has four."""
_ROOM = 4_000
"""Bytes for our tool and for what is shown of a large result."""
_LEADING = ("system", "developer")


@dataclass(frozen=True, slots=True)
class Hidden:
    """What the server has in place of an answer of the client. `after`: blocks at the start of the next user message
    (Messages API). If the server keeps the history (responses): `waiting` are items before those of the next request,
    and `last` is the name that the server has for the answer; the client has that of the first round."""

    items: Sequence[JsonObject] = field(default_factory=list[JsonObject])
    after: Sequence[JsonObject] = field(default_factory=list[JsonObject])
    waiting: Sequence[JsonObject] = field(default_factory=list[JsonObject])
    last: str = ""


class SavedReads:
    """Our tool in the conversations of one home."""

    def __init__(self, book: Book, home: Path) -> None:
        self._book = book
        self._home = home
        folder = f"{home / 'projects'}/"
        written = "|".join(map(re.escape, {folder, json.dumps(folder)[1:-1]}))
        self._paths = re.compile(
            rf"(?:{written})[^/\s]+/(?:[^/\s]+/(?:{'|'.join(_KEPT)})/)?(?=[\w-]+\.(?:txt|json|md|jsonl)\b)"
        )

    # The tool.

    def tool_of(
        self, name: str, api: Api, body: JsonObject, *, size: int, taken: int, is_first: bool
    ) -> JsonObject | None:
        """Our tool in this conversation; None if it has none, so far. It is added to the first request, if it costs at
        most 1% of that; else when results come of which `taken` bytes are taken out, if those are more than all other
        bytes of the request. Then the request costs less than without us, although nothing of it is read from a cache.
        """
        names = tool_names(api, body)
        if (
            not names or body.get("n") not in (None, 1) or body.get("background")
        ):  # the client fetches that answer later
            return None
        if not (decided := self._book.tool(name)):
            tool = json.dumps(make_tool(api, names))
            is_small = is_first and len(tool) * _SHARE <= size
            if not is_small and taken < size - taken + _ROOM:
                return None
            decided = self._book.set_tool(name, tool)
        return _unless_taken(decided, names)

    # What the server has seen.

    def server_side(self, name: str, api: Api, body: JsonObject, tool: JsonObject, seed: str) -> JsonObject:
        """A request as the server knows its history: with our tool, our calls and their results."""
        body = with_tool(api, body, tool)
        stored, given = self._stored(name), items_of(api, body)
        if not stored and not any(map(_says_nothing, given)):
            return body
        items = [one for one in _expanded(api, given, hashed(seed), stored) if not _says_nothing(one)]
        return with_items(api, body, items)

    def server_side_kept(self, name: str, body: JsonObject, kept: str) -> tuple[JsonObject, str] | None:
        """The same for a history that the server keeps, and the name of our tool; None if there is no tool."""
        if body.get("conversation") or body.get("background") or not (decided := self._book.tool(name)):
            return None
        if (tool := _unless_taken(decided, tool_names("responses", body))) is None:
            return None
        body = with_tool("responses", body, tool)
        if path := self._stored(name).get(_response_key(kept)):
            hidden = _load(path)
            body = with_items("responses", body, [*hidden.waiting, *items_of("responses", body)])
            body |= {"previous_response_id": hidden.last}
        return body, name_of(tool)

    def _stored(self, name: str) -> dict[str, Path]:
        """The hidden answers of a conversation and of those of which it is a branch."""
        found = dict[str, Path]()
        for one, reads in reversed(self._book.family(name).items()):
            for folder in self._home.glob(f"projects/*/{one}/{_FOLDER}") if reads else ():
                found |= {path.stem: path for path in folder.glob("*.json")}
        return found

    def hide(
        self, folder: Path, state: bytes | None, said: Sequence[GivenMessage], hidden: Hidden, response: str
    ) -> None:
        """Keeps what the server has in place of an answer, in the folder of the session. `state`: after the answer;
        None if the server keeps the history, and knows it by the name of the response."""
        make_private_dir(folder / _FOLDER)
        if state is not None:
            _keep(folder, _key(state, said), hidden)
        if hidden.last:
            _keep(folder, _response_key(response), Hidden(waiting=hidden.waiting, last=hidden.last))

    # Reading.

    def with_ids(self, text: str) -> str:
        """A text for the model in which the paths of kept results are the ids that our tool takes."""
        return self._paths.sub("", text)

    async def read(
        self, name: str, call: OwnCall, engine_of: Callable[[str], Engine], given: Iterable[GivenResult]
    ) -> ReadResult:
        """Answers a call of our tool: a part of what was kept of this conversation, or an error. `given`: the results
        that this request has."""
        wanted, offset = str(call.input.get("id") or ""), str(call.input.get("offset") or 0)
        try:
            with guarded("Reverie"):
                if (known := self._find(name, wanted, given)) is None:
                    raise UserError(f"{wanted[:200]!r} is not the id of a kept result of this conversation")
                conversation, path = known
                start = int(offset) if offset.isdecimal() else 0
                return ReadResult(call.id, await engine_of(conversation).read(str(path), start))
        except ReverieError as error:
            return ReadResult(call.id, f"Nothing was read: {error}", is_error=True)

    def _find(self, name: str, wanted: str, given: Iterable[GivenResult]) -> tuple[str, Path] | None:
        """The file with this id, and the conversation that kept it. Ids are compared with those of all files, so no
        path is made of what a model writes. Of conversations from which this one branched, it has the results that its
        own requests have; and not their transcript, with which its own began."""
        family = self._book.family(name)
        for one in family:
            files = [path for kept in _KEPT for path in self._home.glob(f"projects/*/{one}/{kept}/*")]
            for path in files:
                if path.name == wanted and (one == name or _is_given(path, given)):
                    return one, path
        own = [path for path in self._home.glob(f"projects/*/{name}.jsonl") if path.name == wanted]
        return (name, own[0]) if own and len(family) == 1 else None


def _is_given(path: Path, given: Iterable[GivenResult]) -> bool:
    """Whether a copy has nothing but a result that the client itself sends."""
    if path.parent.name != "tool-results" or path.is_symlink() or not path.is_file():
        return False
    text = read_regular(path, MAX_JSON).decode("utf-8", "surrogatepass")
    copied = _texts(load_json(text) if path.suffix == ".json" else text)
    return any(_texts(one.content) == copied for one in given)


def _texts(content: Json) -> list[Json]:
    return [content] if isinstance(content, str) else [part.get("text") for part in objects_of(content)]


def _says_nothing(item: JsonObject) -> bool:
    """Whether an answer had only a call of ours that was cut off: servers refuse a message without content."""
    return item.get("role") == "assistant" and not item.get("content") and not item.get("tool_calls")


def _unless_taken(decided: str, names: Sequence[str]) -> JsonObject | None:
    """Our tool; None if the client has one with its name by now, because then the calls are the client's."""
    tool = as_object(load_json(decided))
    return None if name_of(tool) in names else tool


def _expanded(api: Api, items: Sequence[JsonObject], state: bytes, stored: dict[str, Path]) -> Iterator[JsonObject]:
    """The items of a client with the server's side of each answer that has one."""
    after: Sequence[JsonObject] = ()
    for said, run in _runs(api, items):
        state = extended(state, [one.identity for one in said])[-1]
        is_answer = bool(said) and said[0].message.role == "assistant"
        path = stored.get(_key(state, said)) if is_answer else None
        if after and not is_answer:
            run, after = [with_results_first(run[0], after), *run[1:]], ()
        elif after:
            yield with_results_first({"role": "user"}, after)
            after = ()
        if path is None:
            yield from run
            continue
        hidden = _load(path)
        *before, end = hidden.items
        yield from before
        yield with_marker_of(end, run[-1]) if api == "messages" else end
        after = hidden.after
    if after:
        yield with_results_first({"role": "user"}, after)


def _runs(api: Api, items: Sequence[JsonObject]) -> Iterator[tuple[list[GivenMessage], list[JsonObject]]]:
    """Each item, and the items of one response together, with what is read from them."""
    wire = wire_named(api)
    said, run = list[GivenMessage](), list[JsonObject]()
    leads = api != "messages"
    for item in items:
        leads = leads and item.get("role") in _LEADING
        read = [] if leads else wire.read_messages([item], continued=True)
        is_answer = bool(read) and read[-1].message.role == "assistant"
        if run and not (api == "responses" and is_answer and said):
            yield said, run
            said, run = [], []
        run.append(item)
        said += read
        if not is_answer:
            yield said, run
            said, run = [], []
    if run:
        yield said, run


def _key(state: bytes, said: Sequence[GivenMessage]) -> str:
    """What recognises an answer: the ids of its calls, if it has long ones, even if its client changed what was said
    before; else all that was said."""
    calls = [one.identity for one in said if one.identity != one.fingerprint]
    return (hashed("calls", *calls) if calls else state).hex()[:40]


def _response_key(name: str) -> str:
    return hashed("response", name).hex()[:40]


def _keep(folder: Path, key: str, hidden: Hidden) -> None:
    kept = {"items": hidden.items, "after": hidden.after, "waiting": hidden.waiting, "last": hidden.last}
    write_atomic(folder / _FOLDER / f"{key}.json", dump(kept), fsync=False)


def _load(path: Path) -> Hidden:
    found = as_object(load_json(read_regular(path, MAX_JSON), depth=RECORD_DEPTH))
    items, after, waiting = (objects_of(found.get(key)) for key in ("items", "after", "waiting"))
    return Hidden(items, after, waiting, str(found.get("last") or ""))
