"""The slash commands that change the context: /compact, /notes, /undo, /rewind, /clear, /pin."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.chat.input import PickRow
from reverie.cli.output import one_line, plural
from reverie.cli.screen import printable
from reverie.errors import ReverieError, UserError

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat

_SHOWN = 100
_LISTED = 20
_FILES = 6


async def compact(chat: Chat, rest: str) -> None:
    """/compact [TEXT | --preview | --from MSG | --up-to MSG]"""
    option, _, message = rest.partition(" ")
    if option == "--preview":
        shown = await chat.session.preview(message)
        chat.view.say(shown.text)
        chat.view.tell(shown.notice)
        return
    part = {"--from": "from_", "--up-to": "up_to"}.get(option)
    if part and len(message.split()) != 1:
        raise UserError(f"Write /compact {option} MSG. MSG is the uuid of a message, or -1 for your last message.")
    if not part and option.startswith("--"):
        raise UserError(f"/compact does not know {option}; it knows --preview, --from MSG and --up-to MSG.")
    chat.view.show_status("compacting")
    await (chat.session.compact(**{part: message.strip()}) if part else chat.session.compact(rest))


async def notes(chat: Chat, rest: str) -> None:
    """/notes [update]"""
    from reverie.cli.sessions.notes import read_notes
    from reverie.layers.l3_session_notes.keeper import note_numbers

    if rest not in ("", "update"):
        raise UserError("Write /notes, or /notes update.")
    parts = chat.session.parts
    if rest == "update":
        chat.view.show_status("updating the notes")
        info = await chat.session.update_notes().wait()
        if info.error:
            raise ReverieError(f"The notes were not updated: {info.error}")
        chat.view.pause()
    template = parts.places.notes_config / "template.md"
    shown = read_notes(chat.session.notes_path, template, parts.log.view, note_numbers(parts))
    if shown.text is not None:
        chat.view.say(printable(shown.text.rstrip()))
        chat.view.say()
    for line in shown.about():
        chat.view.tell(line)


async def undo(chat: Chat, rest: str) -> None:
    """/undo [--fit | files]"""
    if rest == "files":
        await _undo_files(chat)
        return
    if rest not in ("", "--fit"):
        raise UserError("Write /undo, /undo --fit, or /undo files.")
    done = await chat.session.undo(fit=rest == "--fit")
    chat.view.tell(done.notice)


async def _undo_files(chat: Chat) -> None:
    """Restores what commands of the last turn changed, after a question that names the files."""
    changes = await chat.session.file_undo.changes()
    names = [*changes.written, *changes.removed]
    shown = ", ".join(one_line(name, 60) for name in names[:_FILES])
    more = f" and {len(names) - _FILES:,} more" if len(names) > _FILES else ""
    if not await chat.confirm(f"Make {plural(len(names), 'file')} as before the commands of the turn: {shown}{more}?"):
        chat.view.tell("Nothing was changed.")
        return
    done = await chat.session.undo_files()
    for verb, files in (("Written back", done.written), ("Removed", done.removed)):
        if files:
            chat.view.tell(f"{verb}: {', '.join(map(one_line, files[:_LISTED]))}" + (" …" if files[_LISTED:] else ""))
    chat.view.tell("/undo files again reverses this. What git ignores and is new stays.")


async def rewind(chat: Chat, rest: str) -> None:
    """/rewind [MSG]"""
    said = chat.session.user_messages()
    if not rest and not said:
        chat.view.tell("There are no messages yet.")
        return
    if not rest and chat.can_ask:
        rows = [PickRow(name, text) for name, text in complete_rewind(chat)]
        rest = await chat.pick("Continue from before which message? Files on disk do not change.", rows) or ""
        if not rest:
            return
    if not rest:
        for back, entry in list(enumerate(reversed(said), 1))[:_LISTED][::-1]:
            name = chat.view.paint.accent(f"{-back:>4}")
            chat.view.say(f"  {name}  {one_line(entry.message.text, _SHOWN)}")
        return
    text = chat.session.rewind(rest)
    back = f"Back to before: {one_line(text, _SHOWN)}."
    chat.view.tell(f"{back} /undo reverses this. Files on disk did not change.")
    chat.input.put(text)


def complete_rewind(chat: Chat) -> Iterable[tuple[str, str]]:
    """Completes /rewind with the messages, newest first."""
    said = chat.session.user_messages()
    return (
        (f"-{back}", one_line(entry.message.text, _SHOWN)) for back, entry in enumerate(reversed(said[-_LISTED:]), 1)
    )


async def clear(chat: Chat, _rest: str) -> None:
    """/clear"""
    said = len(chat.session.user_messages())
    question = f"This removes the conversation ({plural(said, 'message')} of yours) from the window. Continue?"
    if said and not await chat.confirm(question):
        chat.view.tell("Nothing was changed.")
        return
    await chat.session.clear()
    chat.view.tell("This is a new conversation. /undo restores the old one. Pins stay.")


async def pin(chat: Chat, rest: str) -> None:
    """/pin [TEXT | remove ID]"""
    session = chat.session
    what, _, id = rest.partition(" ")
    if what == "remove" and (id.strip() in session.pins or not id.strip()):
        chat.view.tell(f"No longer pinned: {one_line(session.unpin(id.strip()), _SHOWN)}")
    elif rest:
        chat.view.tell(f"Pinned as {session.pin(rest)}; it stays through every compaction.")
    elif not session.pins:
        chat.view.tell("Nothing is pinned. /pin TEXT keeps a text through every compaction.")
    else:
        for name, text in session.pins.items():
            chat.view.say(f"  {chat.view.paint.accent(f'{name:>3}')}  {one_line(text, _SHOWN)}")


def complete_pin(chat: Chat) -> Iterable[tuple[str, str]]:
    return ((f"remove {name}", one_line(text, 60)) for name, text in chat.session.pins.items())
