"""`/agents` and `/btw` in the chat: running agents, their permission questions, and side questions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.output import columns, format_seconds, one_line, table
from reverie.cli.tool_lines import call_text
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat


async def show_agents(chat: Chat, rest: str) -> None:
    """Lists agents, their questions and the definitions; or answers a question."""
    what, _, id = rest.partition(" ")
    if what in ("allow", "deny"):
        _answer_question(chat, what == "allow", id.strip())
        return
    if rest:
        raise UserError("Write /agents, /agents allow ID or /agents deny ID; /tasks kill ID ends an agent.")
    _show_at_work(chat)
    _show_questions(chat)
    _show_kinds(chat)


async def ask_aside(chat: Chat, rest: str) -> None:
    """Answers a side question."""
    if not rest:
        raise UserError("Write your question after /btw; it does not become part of the conversation.")
    chat.view.show_status("answering a side question")
    chat.view.say(await chat.session.ask_aside(rest))


def complete_answers(chat: Chat) -> Iterable[tuple[str, str]]:
    for question in chat.session.gate.questions():
        for what in ("allow", "deny"):
            yield f"{what} {question.id}", one_line(question.reason, 60)


def _show_at_work(chat: Chat) -> None:
    from reverie.session.verbs import agent_json, running_agents

    paint = chat.view.paint
    spawner, tasks = chat.session.agents.spawner, chat.session.tasks
    rows = list[tuple[str, ...]]()
    for one in (agent_json(spawner, tasks, member) for member in running_agents(spawner)):
        what = one["doing"] if one["state"] == "running" and one["doing"] else one["title"]
        state = "" if one["state"] == "running" else f" {one['state']}"
        name, took = "  " * one["depth"] + one["name"], format_seconds(one["seconds"])
        rows.append((name, one["mode"] + state, took, one["id"], paint.dim(one_line(what, max(10, columns() // 2)))))
    if not rows:
        chat.view.tell("No agents are running.")
    chat.view.say_all(table(rows, right=(2,)))


def _show_questions(chat: Chat) -> None:
    for question in chat.session.gate.questions():
        asked = question.call
        chat.view.tell(f"{question.reason} /agents allow {question.id}, or deny {question.id}", "warning")
        chat.view.say(f"  {call_text(asked.tool, asked.input, asked.cwd, columns() - 4)}")
        chat.questions.show(question.id, asked.tool, asked.input, asked.cwd)


def _show_kinds(chat: Chat) -> None:
    chat.view.say(chat.view.paint.dim("  definitions:"))
    rows = [
        (kind.name, one_line(kind.description + (f" (memory: {kind.memory.value})" if kind.memory is not None else "")))
        for kind in chat.session.agents.kinds().kinds.values()
    ]
    chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 3, flexible=1, least=20))


def _answer_question(chat: Chat, allow: bool, id: str) -> None:
    open_ones = [question.id for question in chat.session.gate.questions()]
    if not id and len(open_ones) == 1:
        id = open_ones[0]
    if allow and id in open_ones and id in chat.questions.unseen:
        raise UserError(f"You have not seen all of {id}: /agents shows the next page. Until then you can only deny it.")
    chat.questions.unseen.pop(id, None)
    if not chat.session.gate.answer(id, allow=allow):
        known = f"open questions: {', '.join(open_ones)}" if open_ones else "no question is open"
        raise UserError(f"There is no question {id!r}; {known}.")
    chat.view.tell(f"{id}: {'allowed' if allow else 'denied'}")
