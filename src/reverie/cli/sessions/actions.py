"""`reverie compact|rewind|pin|btw`: acts on a conversation, through the socket of a live session or by opening it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from reverie.cli.below_agent import refuse_agent, text_origin
from reverie.cli.options import examples, folder_options, places_of, session_option
from reverie.cli.output import answer
from reverie.types import JsonObject, Origin

if TYPE_CHECKING:
    from reverie.storage.transcript.sessions import SessionInfo

F = TypeVar("F", bound=Callable[..., Any])
_TIMEOUT_S = 1_800.0
_AN_AGENTS = "(an agent pinned this, not the user)"
_CHANGING = frozenset({"compact", "undo", "rewind", "clear", "pin", "unpin", "notes"})


def _action(function: F) -> F:
    """Adds `--session`, `--cwd` and `--json`."""
    help = "The session; the start of its id is enough.  [default: the last used session of this folder]"
    return session_option(help)(folder_options(function))


@examples(
    "reverie compact",
    'reverie compact "Keep everything about the parser"',
    "reverie compact --preview",
    "reverie compact --up-to -3",
    "reverie compact undo",
    "reverie compact undo --fit",
)
@click.command("compact")
@click.argument("text", nargs=-1)
@click.option("--preview", is_flag=True, help="Show the summary, but do not change the conversation.")
@click.option(
    "--from", "from_", metavar="MSG", help="Summarise only from this message to the end; earlier messages stay."
)
@click.option("--up-to", metavar="MSG", help="Summarise only the messages up to this one; later messages stay.")
@click.option("--fit", is_flag=True, help="With undo: restore as much as fits into the window.")
@_action
def compact_command(
    text: tuple[str, ...],
    preview: bool,
    from_: str | None,
    up_to: str | None,
    fit: bool,
    session: str,
    cwd: Path,
    as_json: bool,
) -> None:
    """Summarise a conversation to make room, or undo the last compaction with `undo`.

    TEXT says what the summary must contain. Your pins and your messages are kept word for word (long messages as
    excerpts). Reverie adds a list of the work so far. MSG is the uuid of one of your messages (its first characters are
    enough), or a negative number: -1 is your last message, -2 the one before it. If the session is open in another
    process, that process compacts it: at once, or after the current model request if a turn is running.
    """
    if text == ("undo",):
        if preview or from_ or up_to:
            raise click.UsageError("undo can only be combined with --fit.")
        undone = cast(JsonObject, act_on_session(session, cwd, {"do": "undo", "fit": fit})["undone"])
        answer(as_json, undone, undone["notice"])
        return
    if fit:
        raise click.UsageError("--fit needs undo: `reverie compact undo --fit`.")
    request: JsonObject = {"do": "compact", "text": " ".join(text), "preview": preview}
    request |= {"from": from_} if from_ is not None else {}
    request |= {"up_to": up_to} if up_to is not None else {}
    done = cast(JsonObject, act_on_session(session, cwd, request, asks=not preview)["compacted"])
    answer(as_json, done, done["text"] if preview else done["notice"])
    if preview and not as_json:
        click.echo(f"\n{done['notice']}", err=True)


@examples("reverie rewind", "reverie rewind -1")
@click.command("rewind", context_settings={"ignore_unknown_options": True})
@click.argument("message", metavar="[MSG]", required=False)
@_action
def rewind_command(message: str | None, session: str, cwd: Path, as_json: bool) -> None:
    """Go back to the point before one of your messages; without MSG, list your messages.

    The conversation continues from there. MSG is the uuid of one of your messages (its first characters are enough), or
    a negative number: -1 is your last message, -2 the one before it. Nothing is deleted. To undo a rewind, use `reverie
    compact undo`: it undoes the last compaction or rewind. Files on disk do not change.
    """
    if message is not None:
        done = act_on_session(session, cwd, {"do": "rewind", "message": message})
        answer(as_json, done, f"Back to before: {done['rewound']}")
        return
    listed = cast("list[JsonObject]", act_on_session(session, cwd, {"do": "messages"})["messages"])
    answer(as_json, listed, *(f"{one['back']:>4}  {str(one['uuid'])[:8]}  {one['text']}" for one in listed))
    if not listed and not as_json:
        click.echo("There are no messages yet.", err=True)


@examples('reverie pin "Never touch the generated files"', "reverie pin", "reverie pin --remove 1")
@click.command("pin")
@click.argument("text", nargs=-1)
@click.option("--remove", metavar="ID", help="Remove this pin: its number, or the beginning of its text.")
@click.option("--new", is_flag=True, hidden=True, help="The session may be one of another agent that has just begun.")
@_action
def pin_command(text: tuple[str, ...], remove: str | None, new: bool, session: str, cwd: Path, as_json: bool) -> None:
    """Keep TEXT word for word through every compaction. Without TEXT, list the pins."""
    if remove is not None:
        if text:
            raise click.UsageError("Give a text to pin or --remove ID, not both.")
        refuse_agent("`reverie pin --remove`")
        done = act_on_session(session, cwd, {"do": "unpin", "id": remove})
        answer(as_json, done, f"No longer pinned: {done['unpinned']}")
    elif text:
        # Wherever a pin is shown, it counts as the user's: the text of an agent says itself that it is not.
        said = " ".join((_AN_AGENTS, *text) if text_origin() is Origin.MODEL else text)
        done = _pin_first(session, cwd, said) if new else None
        done = done or act_on_session(session, cwd, {"do": "pin", "text": said})
        answer(as_json, done, f"Pinned as {done['pin']}.")
    else:
        pins = cast("dict[str, str]", act_on_session(session, cwd, {"do": "pins"})["pins"])
        answer(as_json, pins, *(f"{name:>3}  {pinned}" for name, pinned in pins.items()))
        if not pins and not as_json:
            click.echo("Nothing is pinned.", err=True)


def _pin_first(session: str, cwd: Path, text: str) -> JsonObject | None:
    """Pins a text in a session of another agent before anything is said in its copy, and returns the pin. The service
    adds what is said later. None if there is a conversation."""
    from uuid import UUID

    from reverie import __version__
    from reverie.errors import UserError
    from reverie.layers.l4_compaction.pins import check_pin, next_id
    from reverie.settings import load_settings
    from reverie.storage.lease import Lease
    from reverie.storage.transcript.records import Pin
    from reverie.storage.transcript.session_log import SessionLog

    try:
        UUID(session)
        find_with_folder(session, cwd)
    except ValueError:
        return None
    except UserError:
        path = places_of(cwd.resolve()).transcript(session)
        with Lease.take(path.with_suffix("") / Lease.NAME, info={"session": session}):
            log = SessionLog(path, session, cwd=cwd, version=__version__)
            if path.exists():
                log.load(path)
            pins = log.view.pins
            pin = Pin(next_id(pins), check_pin(text, pins, load_settings(cwd).compaction.pins_bytes))
            log.append(pin)
            log.close()
        return {"pin": pin.id}
    return None


@examples('reverie btw "Which file are you changing, and why?"', 'reverie btw -s 3f2a "What is left to do?" --json')
@click.command("btw")
@click.argument("question", nargs=-1, required=True)
@_action
def btw_command(question: tuple[str, ...], session: str, cwd: Path, as_json: bool) -> None:
    """Ask about a conversation without changing it.

    The agent answers from what it already knows, without tools. The question and the answer are not saved. If the
    session is open in another process, it answers and continues its work.
    """
    said = act_on_session(session, cwd, {"do": "aside", "question": " ".join(question)}, asks=True)
    answer(as_json, said, said["answer"])


def act_on_session(session: str, cwd: Path, request: JsonObject, *, asks: bool = False) -> JsonObject:
    """Sends a request to the session and returns the reply. `asks`: the request needs the session's model."""
    from reverie.runtime.live_client import ask_live
    from reverie.storage.lease import Lease

    found, cwd = find_with_folder(session, cwd)
    holder = Lease.holder(found.lease)
    socket = cast(str | None, holder.get("socket")) if holder is not None else None
    if socket:
        return ask_live(Path(socket), request, timeout_s=_TIMEOUT_S)
    return _act_on_closed(found.id, cwd, request, asks)


def find_with_folder(session: str, cwd: Path) -> tuple[SessionInfo, Path]:
    """Finds a session, here or in another folder, and the folder that it belongs to, which may be gone."""
    from reverie.paths import slug
    from reverie.storage.transcript.sessions import find_session

    project = places_of(cwd := cwd.resolve()).project
    found = find_session(project, session, everywhere=True)
    if found.path.parent == project:
        return found, cwd
    own = Path(found.cwd).resolve()
    if slug(own) != found.path.parent.name:  # imported there from elsewhere: its records name another folder
        return find_session(project, session), cwd
    return found, own


def _act_on_closed(session: str, cwd: Path, request: JsonObject, asks: bool) -> JsonObject:
    """Opens the session, carries out the request, and closes it."""
    from reverie.cli.event_loop import CANCELLED, CommandSignals, run_async
    from reverie.errors import Cancelled
    from reverie.session.session import Session
    from reverie.session.verbs import verbs

    answer: JsonObject = {}

    async def main(_signals: CommandSignals) -> int:
        async with await Session.open(cwd=cwd, resume=session, own_model=asks) as opened:
            if str(request["do"]) in _CHANGING and not request.get("preview"):
                opened.log.confirm()  # the disk must accept writes before a model is asked
            answer.update(await verbs(opened)[str(request["do"])](request))
            if opened.log.unsaved:
                click.echo("The cost of this could not be saved: the disk refused it.", err=True)
        return 0

    if run_async(main) == CANCELLED:
        raise Cancelled("Cancelled; nothing was changed.")
    return answer
