"""Who lives in a process: names, inboxes and the tree."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reverie.agents.messages.message import new_message
from reverie.agents.messages.roster import MAIN, AgentInbox, AgentMode, Member, Roster
from reverie.errors import UserError


def roster() -> Roster:
    found = Roster()
    found.add(Member(MAIN, MAIN, AgentMode.MAIN))
    found.add(Member("ann", "agent-1", AgentMode.SUB_AGENT, parent=MAIN))
    found.add(Member("bob", "agent-2", AgentMode.SUB_AGENT, parent="agent-1"))
    return found


def test_members_are_found_by_name_and_by_id_until_they_leave() -> None:
    found = roster()
    assert found.names() == ["main", "ann", "bob"]
    assert found.find("ann") is found.find("agent-1") is not None
    assert [one.name for one in found.children("agent-1")] == ["bob"]
    assert [found.depth(id) for id in (MAIN, "agent-1", "agent-2", "nobody")] == [0, 1, 2, 0]
    found.remove("agent-1")
    found.remove("agent-1")
    assert found.find("ann") is None and found.names() == ["main", "bob"]


@pytest.mark.parametrize("name", ["ann", "agent-2", "", "*", "a b", "../x", "x" * 65, "-x"])
def test_a_name_that_is_taken_or_none_is_refused(name: str) -> None:
    with pytest.raises(UserError):
        roster().add(Member(name, "agent-9", AgentMode.FORK))


@given(st.lists(st.text(max_size=80), max_size=8))
def test_there_is_always_a_free_name(wanted: list[str]) -> None:
    found = roster()
    for number, text in enumerate(wanted):
        found.add(Member(found.free_name(text), f"id-{number}", AgentMode.FORK))
    assert len(set(found.names())) == len(wanted) + 3


def test_letters_keep_their_order_and_are_taken_once() -> None:
    async def work() -> None:
        inbox = AgentInbox()
        waiting = asyncio.ensure_future(inbox.arrived.wait())
        await asyncio.sleep(0)
        assert not waiting.done()
        for text in "abc":
            inbox.put(new_message("ann", "bob", text))
        await asyncio.wait_for(waiting, 1)
        assert len(inbox) == 3 and [message.text for message in inbox.drain()] == ["a", "b", "c"]
        assert inbox.drain() == [] and not inbox.arrived.is_set()

    asyncio.run(work())
