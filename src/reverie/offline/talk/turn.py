"""One turn of talk: the question, its language, what is known already, and the results of this turn's calls."""

from __future__ import annotations

from collections.abc import Iterator

from reverie.models.base import Request
from reverie.offline.conversation import Done, Recalled, Turn, read_turn
from reverie.offline.place import Place, read_place
from reverie.offline.step import Act, PlannedCall, offered_tools
from reverie.offline.talk.wording import ABOUT, Key, word
from reverie.quick import dataclass
from reverie.text.tongue import Tongue, tongue_of
from reverie.types import JsonObject, Purpose


@dataclass(frozen=True, slots=True)
class Talk:
    """What the librarian's parts share."""

    turn: Turn
    place: Place
    tongue: Tongue
    offered: dict[str, JsonObject]

    @classmethod
    def of(cls, request: Request) -> Talk:
        turn = read_turn(request)
        # A side question gets one round without calls.
        offered = {} if request.purpose is Purpose.SIDE_QUESTION else offered_tools(request)
        return cls(turn, read_place(request), tongue_of(turn.question), offered)

    @property
    def done(self) -> tuple[Done, ...]:
        return self.turn.done

    @property
    def recalled(self) -> tuple[Recalled, ...]:
        return self.turn.recalled

    def results(self, tool: str, **given: str) -> Iterator[Done]:
        """The results of this tool's calls with these inputs in this turn."""
        for done in self.done:
            if done.tool == tool and all(done.input.get(key) == value for key, value in given.items()):
                yield done

    def result(self, tool: str, **given: str) -> Done | None:
        """The last of them."""
        return next(reversed(list(self.results(tool, **given))), None)

    def can(self, *tools: str) -> bool:
        return all(tool in self.offered for tool in tools)

    def call(self, tool: str, given: JsonObject) -> PlannedCall:
        """A call with those of the inputs that the tool takes."""
        known = self.offered[tool]
        return PlannedCall(tool, {key: value for key, value in given.items() if key in known or not known})

    def act(self, say: str, tool: str, given: JsonObject) -> Act:
        return Act(say, (self.call(tool, given),))

    def word(self, key: Key, **gaps: str) -> str:
        return word(key, **gaps)

    def about(self) -> str:
        """What this is and how to set up a model: in full the first time, in short later."""
        return self.word("cannot") if any(ABOUT[:40] in text for _, text in self.turn.before) else ABOUT
