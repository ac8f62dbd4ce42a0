"""A recorded session as the traffic of a client: real requests over HTTP to a simulated server that plays the answers.

The server sees what a proxy sends. If an answer used a text that is not in the request (see `replay/uses.py`), the
model first calls a tool that reads it again, in a request that is billed.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from reverie.errors import ReverieError
from reverie.lab.recordings import strings_in
from reverie.lab.replay.policies import BASELINE, POLICIES
from reverie.lab.replay.recorded import LINE_NUMBER, NEVER_FULL, PREFIX_TOKENS, RecordedSession
from reverie.lab.replay.run import NOT_A_BREAK, PAGE, PolicyOutcome, Replay
from reverie.lab.replay.uses import Need, needs_of
from reverie.models import wire
from reverie.models.wire import as_object
from reverie.parsing import load_json
from reverie.quick import dataclass
from reverie.simulator import Billing, Clock, Simulator
from reverie.simulator.http import running
from reverie.simulator.responder import Reply
from reverie.text.patterns import late
from reverie.types import Message, ToolResultBlock, ToolUseBlock

_KEPT = late(r"[^\s\"'<>]*/tool-results/[\w.-]+\w")
"""The path of a copy, in what a proxy shows in place of a result."""
_LARGE = "<persisted-output>"
_TIMEOUT_S = 300
_HEADERS = {"content-type": "application/json", "x-api-key": "simulated", "anthropic-version": "2023-06-01"}


class Player:
    """The simulated model: it gives the recorded answer, but first it reads what the answer needs and is missing."""

    def __init__(self) -> None:
        self.body: Mapping[str, Any] = {}
        self.again: tuple[str, str] | None = None
        """The result that the last reply reads again, and the text that it needs of it."""
        self._response = Message("assistant", ())
        self._needed: Sequence[Need] = ()
        self._tried = set[str]()
        self._calls = dict[str, ToolUseBlock]()
        self._plain = dict[str, str]()

    def play(self, response: Message, needed: Sequence[Need]) -> None:
        """Says what the next answer is, and what it needs."""
        self._response, self._needed = response, needed
        self._tried.clear()

    async def reply(self, body: Mapping[str, Any], *, purpose: str = "main") -> Reply:
        self.body, self.again = body, self._missing(body)
        if self.again is None:
            self._calls |= {call.id: call for call in self._response.tool_uses}
            content = [block.wire() for block in self._response.content]
            return Reply(content, "tool_use" if self._response.tool_uses else "end_turn")
        self._tried.add(self.again[0])
        return Reply([self._read_again(*self.again).wire()], "tool_use")

    def _missing(self, body: Mapping[str, Any]) -> tuple[str, str] | None:
        open_needs = [need for need in self._needed if need.sources[-1] not in self._tried]
        if not open_needs:
            return None
        seen = [self._without_numbers(text) for text in strings_in(body["messages"])]
        for need in open_needs:
            if not any(need.text in text for text in seen):
                return need.sources[-1], need.text
        return None

    def _without_numbers(self, text: str) -> str:
        found = self._plain.get(text)
        if found is None:
            found = self._plain[text] = LINE_NUMBER.sub("", text)
        return found

    def _read_again(self, call: str, text: str) -> ToolUseBlock:
        """Reads the copy on disk if the request names one; else the call is made again."""
        name = f"{call}-again-{len(self._calls)}"
        shown = "\n".join(_shown(self.body, call))
        if (path := _KEPT.search(shown)) is not None:
            made = ToolUseBlock(name, "Read", {"file_path": path[0]})
        else:
            made = replace(self._calls[call], id=name)
        self._calls[name] = made
        return made


def _shown(body: Mapping[str, Any], call: str) -> Iterator[str]:
    """What a request shows of one result."""
    for message in cast("Sequence[Mapping[str, Any]]", body["messages"]):
        content = message["content"]
        for block in cast("Sequence[object]", content) if isinstance(content, list) else ():
            given = as_object(block)
            if given.get("type") == "tool_result" and given.get("tool_use_id") == call:
                yield from strings_in(given.get("content"))


@dataclass(eq=False, slots=True)
class Server:
    """A simulated server with its player and a clock that only moves with the recording."""

    url: str
    simulator: Simulator
    player: Player

    def at(self, seconds: float) -> None:
        """Moves the clock to a recorded time; it never goes back."""
        clock = self.simulator.clock
        clock.advance(max(0.0, seconds - clock.now()))

    def time(self) -> datetime:
        return datetime.fromtimestamp(self.simulator.clock.now(), UTC)


@contextmanager
def serving(start: float) -> Generator[Server]:
    """A server that answers on loopback until the block ends."""
    player = Player()
    simulator = Simulator(player, clock=Clock(start), window=NEVER_FULL)
    with running(simulator) as url:
        yield Server(url, simulator, player)


class Traffic(Replay):
    """A client that keeps its whole history and caches it, and sends it to `url`; the `server` is behind that."""

    def __init__(self, session: RecordedSession, url: str, server: Server, prefix_tokens: int = PREFIX_TOKENS) -> None:
        super().__init__(session, POLICIES[BASELINE], prefix_tokens)
        self._server = server
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=_TIMEOUT_S)

    async def send(self) -> PolicyOutcome:
        """Sends the whole session."""
        try:
            return await self.run(needs_of(self._session))
        finally:
            self._connection.close()

    async def _round(self, name: str, response: Message, needed: Sequence[Need]) -> None:
        server, number = self._server, 0
        server.at(self._at)
        server.player.play(response, needed)
        while True:
            billing, said = self._post(wire.body(await self._prepare()))
            again = server.player.again
            if again is None:
                self._respond(name, response.content, billing)
                return
            call = _call_in(said)
            self._out.read_back += 1
            self._out.regret += billing.input_equivalents
            self._respond(f"{name}-again-{number}", (call,), billing)
            self._enter(Message("user", (self._result(call, *again),)))
            number += 1

    def _post(self, body: Mapping[str, Any]) -> tuple[Billing, dict[str, Any]]:
        self._connection.request("POST", "/v1/messages", json.dumps(body).encode(), _HEADERS)
        answer = self._connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            raise ReverieError(f"{self._session.name}: the answer is {answer.status} {said[:300]!r}")
        billing = self._server.simulator.ledger.rows[-1]
        self._book(billing)
        return billing, load_json(said)

    def _book(self, billing: Billing) -> None:
        out = self._out
        out.requests += 1
        out.cost += billing.input_equivalents
        out.dollars += billing.cost
        out.usage += billing.usage
        if billing.miss is not None and billing.miss.cause not in NOT_A_BREAK:
            out.announced_breaks += 1
            out.breaks.append(f"{billing.miss.cause} at {billing.miss.path}")

    def _result(self, call: ToolUseBlock, source: str, used: str) -> ToolResultBlock:
        """What the client's tool returns: of a large copy one page around the text, else all of it."""
        before = self._results[source]
        path = str(as_object(call.input).get("file_path") or "")
        if "/tool-results/" not in path:
            return replace(before, tool_use_id=call.id)
        text = Path(path).read_text("utf-8", "surrogatepass")
        if _LARGE in "\n".join(_shown(self._server.player.body, source)):
            start = max(0, text.find(used) - PAGE // 2)
            text = text[start : start + PAGE]
        return ToolResultBlock(call.id, text)


def _call_in(answer: Mapping[str, Any]) -> ToolUseBlock:
    given = answer["content"][0]
    return ToolUseBlock(given["id"], given["name"], given["input"])
