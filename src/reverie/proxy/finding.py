"""Finds the conversation of a request by its content: a known one, an edited one, a branch of one, or a new one.

Only among those of its owner. A conversation that continues from an earlier point gets a copy of the transcript, so
that decisions about the common start stay the same in both branches.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from reverie.library.wires import GivenMessage
from reverie.proxy.bodies import Api
from reverie.proxy.book import Book, hashed
from reverie.proxy.owners import Owner
from reverie.proxy.recalled import asked_in

Found: TypeAlias = Literal["known", "edited", "branch", "new"]
_BRANCHES = 16
"""The most branches of one conversation with a transcript of their own."""
_REWRITES = 8
"""How often a client may change what was said before, and once per ten requests on top."""
_LONG = 80
"""Characters of an answer that is not repeated by accident."""


class Finder:
    """Knows the conversations of one home by their states in the book."""

    def __init__(self, book: Book, home: Path) -> None:
        self._book = book
        self._home = home

    def find(
        self, owner: Owner, states: Sequence[bytes], said: bytes | None, api: Api, model: str
    ) -> tuple[str, Found]:
        """The conversation of a request, and how it was found. `said`: the newest answer in the request."""
        found, how = self._book.find(owner.name, states), "known"
        if found is not None and (found.is_newest or found.asked == states[-1]):
            name = found.conversation
        elif said is not None and (name := self._book.said_last(owner.name, said)):
            self._rewritten(name)
            how = "edited"
        else:  # a client that asks again, because nobody answered, has the same conversation
            name, how = self._book.unanswered(owner.name, states[-1]), "branch" if found is not None else "new"
            if not name and found is not None:
                name = self._branch(owner, found.conversation, api, model)
            name = name or self._begin(owner, api, model)
        self._book.asked(name, states[-1])
        return name, how

    def is_beside(
        self, owner: Owner, name: str, found: Found, given: Sequence[GivenMessage], tools: Sequence[str]
    ) -> bool:
        """Whether a request is beside the conversation with the user: nothing is recalled for it, and nothing is learnt
        from it. The prompt of a sub-agent was written by a model; a title or a summary has no tools and no answer."""
        if found != "known" and self._book.is_written(owner.name, asked_in(given)):
            self._book.add(name, is_beside=1)
        return (found == "new" and not tools) or self._book.is_beside(name)

    def find_kept(self, owner: Owner, kept: str, api: Api, model: str) -> str:
        """The conversation of which the server keeps the history."""
        found = self._book.find(owner.name, [hashed("response", kept)])
        if found is not None:
            return found.conversation
        name = self._begin(owner, api, model)
        self._book.answered(owner.name, name, hashed("response", kept))
        return name

    def _begin(self, owner: Owner, api: Api, model: str) -> str:
        name = f"proxy-{owner.label}-{uuid.uuid4().hex[:16]}"
        self._book.begin(owner.name, name, api, model)
        return name

    def _rewritten(self, name: str) -> None:
        """Counts that a client changed what was said before. If it does so again and again, its cache breaks in every
        request, and each time the transcript would have the history once more: then nothing is done."""
        self._book.add(name, rewrites=1)
        _, passes, requests, rewrites = self._book.state_of(name)
        if not passes and rewrites > _REWRITES + requests / 10:
            self._book.pass_on(name, "its client changes the history all the time: passed on as it comes")

    def _branch(self, owner: Owner, parent: str, api: Api, model: str) -> str:
        """A conversation that goes on from an earlier point of another one. After many of them, all further ones are
        one conversation without a transcript."""
        root, branches = self._book.branches(parent)
        if branches >= _BRANCHES:
            name = f"{root}-more"
            self._book.begin(owner.name, name, api, model)
            self._book.pass_on(
                name, f"after {_BRANCHES} branches of one conversation, others are passed on as they come"
            )
            return name
        name = self._begin(owner, api, model)
        self._book.branch(name, parent)
        for path in self._home.glob(f"projects/*/{parent}.jsonl"):
            shutil.copyfile(path, path.with_name(f"{name}.jsonl"))
            path.with_name(f"{name}.jsonl").chmod(0o600)
        return name


def last_answer(given: Sequence[GivenMessage]) -> bytes | None:
    """The hash of the newest answer, if no other one is like it by accident: it is long, or has the id of a call."""
    end = count_answered(given)
    begin = next((at + 1 for at in range(end - 1, -1, -1) if given[at].message.role != "assistant"), 0)
    said = given[begin:end]
    # A message that is recognised by something else than its fingerprint has the id of a call.
    is_unique = any(len(one.message.text) >= _LONG or one.identity != one.fingerprint for one in said)
    return hashed("answer", *(one.identity for one in said)) if is_unique else None


def count_answered(given: Sequence[GivenMessage]) -> int:
    """How many messages an unknown conversation had up to its newest answer: the server may have cached them."""
    return max((place + 1 for place, one in enumerate(given) if one.message.role == "assistant"), default=0)
