"""`/tasks` in the chat: what runs in the background, its last lines, what it cost, and a way to end it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.chat.input import PickRow
from reverie.cli.output import format_seconds, format_tokens, one_line, plural, table
from reverie.errors import UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.runtime.tasks import TaskInfo
    from reverie.session.session import Session

_LAST_LINES = 8


async def show_tasks(chat: Chat, rest: str) -> None:
    """Lists the tasks, or ends one: by its ID, or chosen from a list."""
    from reverie.cli.team.status import running_lines

    what, _, id = rest.partition(" ")
    tasks = chat.session.tasks
    if what == "kill":
        info = await tasks.kill(id.strip())
        chat.view.tell(f"{info.id}: {info.state.value}")
        return
    if rest == "end":
        await _choose_and_end(chat)
        return
    if rest:
        raise UserError("Write /tasks, /tasks end to choose one, or /tasks kill ID.")
    listed, teams = tasks.list(), await asyncio.to_thread(running_lines, chat.session.places)
    if not listed and not teams:
        chat.view.tell("No background tasks.")
    rows = list[tuple[str, ...]]()
    for info in listed:
        took = format_seconds(info.seconds)
        rows.append((info.id, info.state.value, took, info.title, chat.view.paint.dim(one_line(_note(info), 60))))
    chat.view.say_all(f"  {line}" for line in (*table(rows, right=(2,)), *(one_line(team, 120) for team in teams)))


def task_ids(chat: Chat) -> Iterable[tuple[str, str]]:
    return ((f"kill {info.id}", info.title) for info in chat.session.tasks.running)


async def _choose_and_end(chat: Chat) -> None:
    """Shows the task that is chosen, and asks whether to end it."""
    tasks = chat.session.tasks
    if not tasks.running:
        chat.view.tell("No background tasks are running.")
        return
    chosen = await chat.pick("Background tasks. Enter shows one, and asks whether to end it.", _rows(tasks.running))
    if chosen is None:
        return
    chat.view.say_all(f"  {line}" for line in _about(chat.session, chosen))
    if await chat.confirm("End this task?"):
        ended = await tasks.kill(chosen)
        chat.view.tell(f"{ended.id}: {ended.state.value}")


def _rows(tasks: Iterable[TaskInfo]) -> list[PickRow]:
    """The tasks, each with its last line."""
    return [
        PickRow(
            info.id,
            f"{info.title}: {_note(info)}" if _note(info) else info.title,
            f"{info.state.value} {format_seconds(info.seconds)}",
        )
        for info in tasks
    ]


def _about(session: Session, id: str) -> list[str]:
    """What a task is, how long it runs, what its requests cost, and its last lines."""
    info = next((one for one in session.tasks.list() if one.id == id), None)
    if info is None:
        return []
    head = f"{info.id} · {info.purpose.value} · {info.state.value} {format_seconds(info.seconds)}"
    lines = [*info.progress[-_LAST_LINES:], *([info.error] if info.error else [])]
    return [f"{head} · {_cost(session, info)}", *(one_line(line, 200) for line in lines or ["no progress yet"])]


def _note(info: TaskInfo) -> str:
    return info.error or (info.progress[-1] if info.progress else "")


def _cost(session: Session, info: TaskInfo) -> str:
    """The requests for the purpose of a task while it ran. Two agents at the same time are counted together."""
    from reverie.cli.chat.figures import dollars
    from reverie.context.ledger import total

    found = [
        one
        for one in session.accounts.ledger.now().entries
        if one.purpose == info.purpose
        and one.at is not None
        and info.started <= one.at
        and (info.ended is None or one.at <= info.ended)
    ]
    if not found:
        return "no requests yet"
    spent = total(found)
    cost = f", {dollars(spent.cost)}" if any(one.priced for one in found) else ""
    tokens = format_tokens(spent.usage.prompt + spent.usage.output_tokens)
    return f"{plural(len(found), 'request')}, {tokens} tokens{cost}"
