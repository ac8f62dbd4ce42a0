"""/memory, /remember and /forget: the memory commands inside a chat, on the memory of its session.

The same rules as on the command line; what would lose something is asked first. Work on the disk runs in a thread.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from datetime import datetime
from time import time
from typing import TYPE_CHECKING

from reverie.cli.output import columns, cut, one_line, pad, plural, width
from reverie.cli.screen import printable
from reverie.errors import ReverieError, UserError
from reverie.memory.age import age_words
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.opening import OpenedMemory, open_memory

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.memory.gate.saving import Saved
    from reverie.memory.note import Note

_LISTED = 30


def _memory(chat: Chat) -> OpenedMemory:
    """The session's memory; opened anew where it is off, since looking stays possible."""
    session = chat.session
    if session.memory is not None:
        return session.memory.opened
    return open_memory(session.parts.settings, session.places)


def _info(chat: Chat, command: str) -> WriteInfo:
    log = chat.session.log
    return WriteInfo(Writer.USER, f"Asked for with /{command}.", session=log.session_id, message=log.head or "")


def memory_files(chat: Chat) -> Iterable[tuple[str, str]]:
    """Completion: every memory, with what it is about."""
    try:
        found = _memory(chat).directory.list()
    except ReverieError:
        return
    for entry in found:
        yield entry.name, entry.description


async def show_memory(chat: Chat, rest: str) -> None:
    """/memory lists, /memory FILE shows one, /memory edit FILE opens it in the editor."""
    memory = _memory(chat)
    verb, _, file = rest.partition(" ")
    if verb == "edit" and file.strip():
        await _edit(chat, memory, file.strip())
    elif rest:
        await _open(chat, memory, rest)
    else:
        await _list(chat, memory)


async def _list(chat: Chat, memory: OpenedMemory) -> None:
    view, paint = chat.view, chat.view.paint
    found = await asyncio.to_thread(memory.directory.list)
    if not found:
        view.tell("Nothing is remembered here yet: /remember adds something.")
        return
    names = min(max(width(entry.name) for entry in found[:_LISTED]), 40)
    for entry in found[:_LISTED]:
        name = pad(cut(one_line(entry.name), names), names)
        view.say(
            f"  {paint.accent(name)}  {cut(one_line(entry.description or '(no description)'), columns() - names - 4)}"
        )
    more = f", the newest {_LISTED} shown" if len(found) > _LISTED else ""
    off = "" if memory.switch.on else f"; memory is off ({memory.switch.rule})"
    view.say(paint.dim(f"  {plural(len(found), 'memory', 'memories')}{more}{off}. /memory FILE shows one."))


async def _open(chat: Chat, memory: OpenedMemory, given: str) -> None:
    from reverie.cli.memory.opening import file_meant

    view = chat.view
    name = await asyncio.to_thread(file_meant, memory, given)
    document = await asyncio.to_thread(memory.directory.read, name)
    view.say(f"  {view.paint.accent(name)}  {view.paint.dim(age_words(document.modified, time()))}")
    for line in printable(document.text).rstrip("\n").splitlines():
        view.say(f"  {line}")


async def _edit(chat: Chat, memory: OpenedMemory, given: str) -> None:
    from reverie.cli.memory.change import edited, save_edited
    from reverie.cli.memory.opening import file_meant

    if not sys.stdin.isatty():
        raise UserError("Nobody is there to edit; use `reverie memory edit` on a terminal.")
    name = await asyncio.to_thread(file_meant, memory, given)
    document = await asyncio.to_thread(memory.directory.read, name)
    text = await asyncio.to_thread(edited, document.text, name)
    if text == document.text:
        chat.view.tell("Nothing was changed.")
        return
    info = _info(chat, "memory")
    version = await asyncio.to_thread(save_edited, memory, name, text, document.digest, info)
    chat.view.tell(f"Saved {name}." + (_undo(version.short) if version else ""))


async def remember(chat: Chat, rest: str) -> None:
    """/remember TEXT saves a memory, or corrects the one that says much the same."""
    from reverie.memory.gate.saving import refuse_secrets, save_note
    from reverie.memory.note import note_of

    if not rest:
        raise UserError("Say what to remember: /remember TEXT.")
    memory = _memory(chat)
    memory.require_on("nothing is remembered")

    def save() -> tuple[Saved, Note]:
        refuse_secrets(rest)
        note = note_of(rest, today=datetime.now().astimezone().date())
        return save_note(memory, note, _info(chat, "remember")), note

    saved, note = await asyncio.to_thread(save)
    for text in saved.warnings:
        chat.view.tell(f"{text} It was saved all the same.", "warning")
    undo = _undo(saved.version.short) if saved.version else ""
    match saved.action:
        case "added":
            chat.view.tell(f"Remembered as {saved.file} ({note.type.value}).{undo}")
        case "updated":
            chat.view.tell(f"Corrected {saved.file}, which said: {saved.instead_of}{undo}")
        case "unchanged" | "nothing":
            chat.view.tell(f"{saved.file} says this already; nothing was changed.")


async def forget(chat: Chat, rest: str) -> None:
    """/forget TEXT finds the memory that is meant, asks, and removes it."""
    from reverie.memory.gate.saving import memories_meant

    if not rest:
        raise UserError("Say what to forget: /forget FILE, or a few words that tell which.")
    memory, view = _memory(chat), chat.view
    found, is_clear = await asyncio.to_thread(memories_meant, memory, rest)
    if not found:
        raise UserError(f"No memory fits {rest[:60]!r}; /memory lists what there is.")
    for one in found if not is_clear else found[:1]:
        view.say(
            f"  {view.paint.accent(one.file)}  {cut(one_line(one.description), max(20, columns() - len(one.file) - 4))}"
        )
    if not is_clear and len(found) > 1:
        view.tell("More than one may be meant: /forget FILE says which.")
        return
    name = found[0].file
    if not await chat.confirm(f"Forget {name}?"):
        view.tell("Nothing was forgotten.")
        return
    version = await asyncio.to_thread(memory.directory.remove, name, _info(chat, "forget"))
    view.tell(f"Forgot {name}.{_undo(version.short)}")


def _undo(version: str) -> str:
    return f" Undo: reverie memory undo {version}"
