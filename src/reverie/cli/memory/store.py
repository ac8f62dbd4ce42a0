"""`reverie memory login|logout|store|share|unshare`: the memory server of the settings, and what others see of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reverie.cli.memory.opening import file_names, undo_hint, version_json, with_memory_here
from reverie.cli.options import examples, folder_options, load_places
from reverie.cli.output import answer, can_ask, format_age, get_paint, one_line, plural, say, say_all, say_dim, warn
from reverie.errors import ReverieError, StorageError, UserError
from reverie.memory.lookup import find_file
from reverie.memory.sharing.store.client import StoreAddress, StoreClient
from reverie.memory.sharing.store.naming import name_project
from reverie.memory.sharing.store.promotion import Promotion, carry_out, plan_share, plan_unshare
from reverie.memory.sharing.store.state import StoreState
from reverie.memory.sharing.store.status import load_status
from reverie.memory.sharing.store.sync import Caller, open_client, require_store, shelves, store_folder, sync_store
from reverie.memory.sharing.store.tokens import check_token, remove_token, save_token
from reverie.memory.taxonomy import TEAM

if TYPE_CHECKING:
    from reverie.memory.opening import OpenedMemory

_CHECK_S = 20.0
_STATUS_S = 5.0
_SHOWN_LINES = 12


@examples(
    "reverie memory login https://memory.example.com",
    "reverie memory login http://127.0.0.1:8791 < ~/.reverie/server/token",
)
@click.command("login")
@click.argument("url", required=False)
@folder_options
def login_command(url: str | None, as_json: bool, cwd: Path) -> None:
    """Use a memory server: give its token once.

    The command asks for the token (it is not shown), checks it, and stores it in a file that only you can read, for
    this server only. Without a terminal it reads the token from standard input. If `memory.store` is not set, it is set
    in your settings, so that all your projects use the server. Your memories stay private until you share them.

    Exit codes: 0: done; 1: the server refuses the token; 2: wrong usage; 4: the server does not answer, or storage
    error.
    """
    settings, places = load_places(cwd)
    given = url or settings.memory.store
    if not given:
        raise UserError("Which server? Give its address: reverie memory login https://HOST.")
    address = StoreAddress.parse(given)
    token = check_token(
        str(click.prompt(f"Token for {address.host} (not shown)", hide_input=True))
        if sys.stdin.isatty()
        else sys.stdin.readline()
    )
    with StoreClient(address, token, timeout_s=_CHECK_S) as client:
        caller = _read_caller(client)
    lines = [f"You are {get_paint().accent(caller.name)} of {caller.organisation} at {address.url}."]
    lines.append(get_paint().dim(f"The token is in {save_token(places.home, address, token)}."))
    if not settings.memory.store:
        _set_store(places.home / "settings.toml", address)
        lines.append(get_paint().dim(f"`memory.store` is set in {places.home / 'settings.toml'}."))
    answer(as_json, {"server": address.url, "person": caller.name, "organisation": caller.organisation}, *lines)
    if not settings.memory.store:
        return
    if StoreAddress.parse(settings.memory.store) != address:
        warn(f"`memory.store` is {settings.memory.store}; set it to {address.url} to use this server.")


@examples("reverie memory logout", "reverie memory logout https://memory.example.com")
@click.command("logout")
@click.argument("url", required=False)
@folder_options
def logout_command(url: str | None, as_json: bool, cwd: Path) -> None:
    """Remove the stored token of a memory server. Memories stay here and there."""
    settings, places = load_places(cwd)
    given = url or settings.memory.store
    if not given:
        raise UserError("Which server? Give its address: reverie memory logout https://HOST.")
    address = StoreAddress.parse(given)
    if not remove_token(places.home, address):
        raise UserError(f"There is no stored token for {address.url}.")
    said = f"Removed the token for {address.url}. Syncs stop until you log in again."
    answer(as_json, {"removed": address.url}, said)


@examples("reverie memory store", "reverie memory store --json")
@click.command("store")
@with_memory_here
def store_command(as_json: bool, memory: OpenedMemory) -> int:
    """Show the memory server: who you are, your stores, the last sync, and what waits.

    Exit codes: 0: the last sync worked; 1: there is a problem; 2: no memory server is set.
    """
    require_store(memory)
    folder, project = store_folder(memory), name_project(memory)
    caller, problem, rows = None, "", list[dict[str, Any]]()
    try:
        with open_client(memory, within_s=_STATUS_S) as client:
            caller = _read_caller(client)
    except ReverieError as error:
        problem = str(error)
    for shelf in shelves(memory, caller or Caller("", "your organisation"), project):
        state = StoreState.load(folder / f"{shelf.key}.json")
        if state.store or shelf.is_private or state.promoted:
            row = {"folder": shelf.part.prefix or "./", "with": shelf.label, "store": state.store or None}
            rows.append({**row, "memories": len(state.there), "change": state.last, "promoted": state.promoted})
    status = load_status(folder)
    questions = [item.id for item in memory.inbox.list() if item.other]
    value = {
        "server": memory.settings.memory.store,
        "person": caller.name if caller else None,
        "organisation": caller.organisation if caller else None,
        "project": project.name,
        "stores": rows,
        "last_sync": status.done_at or None,
        "problem": problem or status.problem or None,
        "failures": status.failures,
        "held_back": list(status.held_back),
        "questions": questions,
    }
    if as_json:
        answer(True, value)
        return 1 if value["problem"] else 0
    paint = get_paint()
    who = f"{caller.name} of {caller.organisation}" if caller else status.who or "unknown"
    say(f"{paint.bold(memory.settings.memory.store)}  {who}")
    say(f"project   {one_line(project.name)}{'' if project.is_shared else ' (private: no git remote)'}")
    say(f"last sync {f'{format_age(status.done_at)} ago' if status.done_at else 'never'}")
    for row in rows:
        say(f"  {paint.accent(row['folder'])}  {row['with']}: {plural(row['memories'], 'memory', 'memories')}")
    if caller and project.is_shared and not caller.scope_of("project", project.name):
        say(f"  {paint.accent(f'{TEAM}/')}  the project {one_line(project.name)}: you are not a member yet")
    for one in status.held_back:
        warn(one_line(one))
    if questions:
        say(f"{plural(len(questions), 'memory has', 'memories have')} two versions: reverie memory inbox")
    if value["problem"]:
        warn(str(value["problem"]))
    return 1 if value["problem"] else 0


_WITH_HELP = "project, team:NAME or organisation.  [default: project]"


@examples(
    "reverie memory share no_mocks",
    "reverie memory share release_days --with team:core",
    "reverie memory share office_hours --with organisation --yes",
)
@click.command("share")
@click.argument("file", shell_complete=file_names)
@click.option("--with", "scope", default="", metavar="SCOPE", help=_WITH_HELP)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_memory_here
def share_command(file: str, scope: str, yes: bool, as_json: bool, memory: OpenedMemory) -> int:
    """Share a private memory with your project, a team or your organisation.

    The command shows the text and who will see it, and asks. The file moves to the folder team/ (for the project),
    team/teams/NAME/ or team/organisation/ of the memory directory, and the memory server gives it to the others. A
    shared file of a team or the organisation that you changed is sent again with `share`.

    Exit codes: 0: shared; 1: you said no; 2: wrong usage, or a check refused the text; 4: storage error. If the server
    does not answer, the memory is shared at the next sync.
    """
    promotion = plan_share(memory, find_file(memory.directory, file), scope)
    return _promote(memory, promotion, yes, as_json, "share")


@examples("reverie memory unshare team/no_mocks", "reverie memory unshare team/organisation/office_hours --yes")
@click.command("unshare")
@click.argument("file", shell_complete=file_names)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@with_memory_here
def unshare_command(file: str, yes: bool, as_json: bool, memory: OpenedMemory) -> int:
    """Make a shared memory private again: you keep it, and it is removed for all others.

    Others may have read it, and the versions of the memory server keep it. Exit codes as `reverie memory share`.
    """
    promotion = plan_unshare(memory, find_file(memory.directory, file))
    return _promote(memory, promotion, yes, as_json, "unshare")


def explain(promotion: Promotion) -> str:
    """Who sees what afterwards, in one sentence."""
    if promotion.is_sharing:
        said = f"{promotion.source} will be visible to {promotion.whom}, as {promotion.target}."
        return f"{said} {promotion.warning}".rstrip()
    return f"{promotion.source} will be removed for {promotion.whom}; you keep it, as {promotion.target}."


def sync_after(memory: OpenedMemory, promotion: Promotion) -> tuple[str, list[str]]:
    """Syncs at once. Returns what to say, and what was held back."""
    try:
        report = sync_store(memory)
    except StorageError as error:
        return f"It waits for the next sync: {error}", []
    if not promotion.is_sharing:
        if memory.directory.exists(promotion.source):
            return f"Somebody changed {promotion.source}, so it is still shared; your copy is {promotion.target}.", []
        return f"{promotion.target} is private.", []
    if promotion.target in report.kept_both:
        return (
            f"{promotion.whom.capitalize()} has another {promotion.target} already: both are shared, and a question "
            "waits in `reverie memory inbox`."
        ), []
    if promotion.target in report.sent:
        return f"Shared {promotion.target} with {promotion.whom}.", []
    folder = promotion.target.rpartition("/")[0]
    held = [one for one in report.held_back if one.startswith((promotion.target, f"{folder}/ "))]
    return ("" if held else f"{promotion.whom.capitalize()} has it as it is."), held


def _promote(memory: OpenedMemory, promotion: Promotion, yes: bool, as_json: bool, verb: str) -> int:
    if not as_json:
        say(explain(promotion))
        lines = promotion.text.rstrip("\n").splitlines()
        say_all(get_paint().dim(f"  {one_line(line)}") for line in lines[:_SHOWN_LINES])
        if len(lines) > _SHOWN_LINES:
            say_dim(f"… {plural(len(lines) - _SHOWN_LINES, 'more line')}", 2)
    if not yes:
        if not can_ask() or as_json:
            raise UserError("Nothing was changed: there is no terminal to ask on; give --yes.")
        if not click.confirm("Share it?" if promotion.is_sharing else "Make it private?"):
            raise ReverieError("Nothing was changed.")
    version = carry_out(memory, promotion, f"Asked for with `reverie memory {verb}`.")
    said, held = sync_after(memory, promotion)
    result = {"from": promotion.source, "to": promotion.target, "with": promotion.whom, "said": said}
    lines = [said or f"Not shared yet: {promotion.target} is only on this machine."]
    answer(as_json, {**result, "held_back": held, "version": version_json(version)}, *lines, *undo_hint(version))
    for one in held:
        warn(one_line(one))
    return 2 if held else 0


def _read_caller(client: StoreClient) -> Caller:
    raw = client.me()
    try:
        return Caller.read(raw)
    except (LookupError, TypeError, AttributeError):
        raise UserError(f"{client.address.url} does not answer as a memory server does.") from None


def _set_store(path: Path, address: StoreAddress) -> None:
    from reverie.connect.files import read_user_file
    from reverie.connect.own_settings import add_value
    from reverie.storage.atomic import make_private_dir, write_atomic

    file = read_user_file(path)
    text = add_value(file, "store", address.url, "set it by hand")
    make_private_dir(path.parent)
    write_atomic(file.real, file.encode(text), mode=file.mode)
