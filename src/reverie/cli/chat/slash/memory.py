"""`/memory`, `/remember` and `/forget`: the memory commands inside a chat. Work on the disk runs in a thread."""

from __future__ import annotations

import sys
from asyncio import to_thread
from collections.abc import Iterable
from time import time
from typing import TYPE_CHECKING

from reverie.cli.memory.change import edit_text, explain_inferred, save_edit
from reverie.cli.memory.decisions import (
    KEYS,
    Decided,
    decide_item,
    decide_statement,
    item_lines,
    keys_of,
    statement_lines,
)
from reverie.cli.output import columns, one_line, plural, table
from reverie.cli.screen import printable
from reverie.errors import ReverieError, UserError
from reverie.memory.age import age_words
from reverie.memory.changes import WriteInfo, Writer
from reverie.memory.gate.saving import forget_file, save_text, user_info
from reverie.memory.lookup import find_file
from reverie.memory.opening import OpenedMemory, open_memory

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.storage.history.versions import Version

_LISTED = 30
_VERBS = {"inbox": ("accept", "reject", "keep"), "inferred": ("confirm", "reject", "doubt")}


def _open_memory(chat: Chat) -> OpenedMemory:
    """The session's memory. If memory is off it is opened here: reading is still possible."""
    session = chat.session
    if session.memory is not None:
        return session.memory.opened
    return open_memory(session.parts.settings, session.places)


def _write_info(chat: Chat, command: str, *, confirms: bool = False) -> WriteInfo:
    log = chat.session.log
    return WriteInfo(Writer.USER, f"Asked for with /{command}.", log.session_id, log.head or "", confirms=confirms)


def memory_files(chat: Chat) -> Iterable[tuple[str, str]]:
    """Completes memory files."""
    try:
        listed = [(entry.name, entry.description) for entry in _open_memory(chat).directory.list()]
        return [("inbox", "what waits for your decision"), ("inferred", "what you did not confirm"), *listed]
    except ReverieError:
        return ()


async def show_memory(chat: Chat, rest: str) -> None:
    """/memory lists, /memory FILE shows one, /memory edit FILE opens it in the editor. /memory inbox and /memory
    inferred show what the user can decide. /memory share FILE [SCOPE] and /memory unshare FILE say who sees it."""
    memory = _open_memory(chat)
    verb, _, file = rest.partition(" ")
    if verb == "edit" and file.strip():
        await _edit(chat, memory, file.strip())
    elif verb in _VERBS:
        await _decide(chat, memory, verb, file.split())
    elif verb in ("share", "unshare") and file.strip():
        await _promote(chat, memory, verb, file.split())
    elif rest:
        await _show_one(chat, memory, rest)
    else:
        await _list(chat, memory)


async def _promote(chat: Chat, memory: OpenedMemory, verb: str, words: list[str]) -> None:
    """/memory share FILE [project|team:NAME|organisation]: shows who will see it, and asks."""
    from reverie.cli.memory.store import explain, sync_after
    from reverie.memory.sharing.store.promotion import carry_out, plan_share, plan_unshare

    if len(words) > (2 if verb == "share" else 1):
        raise UserError("Write /memory share FILE [project|team:NAME|organisation], or /memory unshare FILE.")
    name = await to_thread(find_file, memory.directory, words[0])
    scope = words[1] if len(words) > 1 else ""
    plan = await to_thread(plan_share, memory, name, scope) if verb == "share" else plan_unshare(memory, name)
    chat.view.tell(explain(plan))
    if not await chat.confirm("Share it?" if plan.is_sharing else "Make it private?"):
        chat.view.tell("Nothing was changed.")
        return
    version = await to_thread(carry_out, memory, plan, f"Asked for with /memory {verb}.")
    said, held = await to_thread(sync_after, memory, plan)
    chat.view.tell(f"{said}{_undo_hint(version)}".strip())
    for one in held:
        chat.view.tell(one, "warning")


def _show_entries(chat: Chat, entries: Iterable[tuple[str, str]]) -> None:
    rows = [(chat.view.paint.accent(one_line(name, 40)), one_line(about)) for name, about in entries]
    chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 2, flexible=1))


async def _list(chat: Chat, memory: OpenedMemory) -> None:
    found = await to_thread(memory.directory.list)
    if not found:
        chat.view.tell("There are no memories yet; /remember adds one.")
        return
    _show_entries(chat, [(entry.name, entry.description or "(no description)") for entry in found[:_LISTED]])
    more = f", the newest {_LISTED} shown" if len(found) > _LISTED else ""
    off = "" if memory.switch.on else f"; memory is off ({memory.switch.rule})"
    counted = plural(len(found), "memory", "memories")
    chat.view.say(chat.view.paint.dim(f"  {counted}{more}{off}. /memory FILE shows one."))


async def _show_one(chat: Chat, memory: OpenedMemory, given: str) -> None:
    view = chat.view
    name = await to_thread(find_file, memory.directory, given)
    document = await to_thread(memory.directory.read, name)
    view.say(f"  {view.paint.accent(name)}  {view.paint.dim(age_words(document.modified, time()))}")
    view.say_all(f"  {line}" for line in printable(document.text).rstrip("\n").splitlines())


async def _edit(chat: Chat, memory: OpenedMemory, given: str) -> None:
    if not sys.stdin.isatty():
        raise UserError("Editing needs a terminal; use `reverie memory edit` there.")
    name = await to_thread(find_file, memory.directory, given)
    document = await to_thread(memory.directory.read, name)
    async with chat.lend_terminal():
        text = await to_thread(edit_text, document.text, name)
    if text == document.text:
        chat.view.tell("Nothing was changed.")
        return
    version = await to_thread(
        save_edit, memory, name, text, document.digest, _write_info(chat, "memory", confirms=True)
    )
    chat.view.tell(f"Saved {name}.{_undo_hint(version)}")


async def remember(chat: Chat, rest: str) -> None:
    """/remember TEXT saves a memory, beside those that may be about the same."""
    if not rest:
        raise UserError("Say what to remember: /remember TEXT.")
    log = chat.session.log
    info = user_info("Asked for with /remember.", rest, chat.origin, session=log.session_id, message=log.head or "")
    saved, note = await to_thread(save_text, _open_memory(chat), rest, info)
    inferred = f" {explain_inferred(info)}".rstrip()
    for text in saved.warnings:
        chat.view.tell(text, "warning")
    match saved.action:
        case "added" | "updated":
            chat.view.tell(f"Remembered as {saved.file} ({note.type.value}).{inferred}{_undo_hint(saved.version)}")
        case "confirmed":
            chat.view.tell(f"{saved.file} says this already; it is confirmed now.")
        case "unchanged" | "nothing":
            chat.view.tell(f"{saved.file} says this already; nothing was changed.")


async def forget(chat: Chat, rest: str) -> None:
    """/forget TEXT finds the memory, asks, and removes it."""
    from reverie.memory.gate.saving import find_memories

    if not rest:
        raise UserError("Say what to forget: /forget FILE, or a few words of the memory.")
    memory, view = _open_memory(chat), chat.view
    found, is_clear = await to_thread(find_memories, memory, rest)
    if not found:
        raise UserError(f"No memory matches {rest[:60]!r}; /memory lists all memories.")
    _show_entries(chat, [(one.file, one.description) for one in (found[:1] if is_clear else found)])
    if not is_clear and len(found) > 1:
        view.tell("More than one memory matches; name one with /forget FILE.")
        return
    name = found[0].file
    if not await chat.confirm(f"Forget {name}?"):
        view.tell("Nothing was forgotten.")
        return
    forgotten = await to_thread(forget_file, memory, name, _write_info(chat, "forget"))
    also = f" {', '.join(forgotten.also_in)} says much the same." if forgotten.also_in else ""
    view.tell(f"Forgot {name}.{also}{_undo_hint(forgotten.version)}")
    view.tell(f"Remove it from the history too: {forgotten.purge}")


async def _decide(chat: Chat, memory: OpenedMemory, what: str, rest: list[str]) -> None:
    """Shows what waits and asks for one key each, or decides the given ids."""
    from reverie.memory.gate.review import list_inferred

    view, session = chat.view, chat.session.log.session_id
    if rest and (rest[0] not in _VERBS[what] or len(rest) == 1):
        raise UserError(f"Write /memory {what}, or /memory {what} {'|'.join(_VERBS[what])} ID.")

    def settle(id: str, verb: str) -> Decided:
        if what == "inbox":
            return decide_item(memory, memory.inbox.show(id), accepts={"accept": True, "reject": False}.get(verb))
        return decide_statement(memory, id, verb, session=session)

    async def say_decided(id: str, verb: str) -> None:
        decided = await to_thread(settle, id, verb)
        view.tell(f"{decided.said}{_undo_hint(decided.version)}")

    for id in rest[1:]:
        await say_decided(id, rest[0])
    if rest:
        return
    if what == "inbox":
        items = await to_thread(memory.inbox.list)
        shown = [(item.id, list(item_lines(item, memory, view.paint)), keys_of(item)) for item in items]
    else:
        found = await to_thread(list_inferred, memory.directory)
        shown = [(one.id, list(statement_lines(one, view.paint)), KEYS) for one in found]
    if not shown:
        view.tell("The inbox is empty." if what == "inbox" else "No statement is inferred.")
    yes, no = _VERBS[what][:2]
    for number, (id, lines, keys) in enumerate(shown, 1):
        view.say_all(f"  {line}" for line in lines)
        word = await chat.choose(f"{number} of {len(shown)}", keys) if chat.can_ask else "skip"
        verb = {keys["y"]: yes, keys["n"]: no, "both": "keep"}.get(word)
        if verb is not None:
            await say_decided(id, verb)
        elif word != "skip":
            return
    if shown and not chat.can_ask:
        view.tell(f"Decide with /memory {what} {yes} ID, or {no} ID.")


def _undo_hint(version: Version | None) -> str:
    return f" Undo: reverie memory undo {version.short}" if version is not None else ""
