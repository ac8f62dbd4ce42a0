"""`/permissions` in the chat: the mode, all rules with their origin, and a way to remove rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.chat.input import PickRow
from reverie.cli.output import columns, exact, one_line, table
from reverie.cli.permissions import rule_rows
from reverie.errors import UserError
from reverie.settings import load_settings
from reverie.storage.saved_rules import find_local_file, list_rules, remove_rule

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.settings import Settings

_SESSION = "this session"


def _load(chat: Chat) -> Settings:
    """The settings as they are now: rules may have been saved or removed since the session began."""
    places = chat.session.places
    given = chat.session.parts.settings
    on_command_line = [one.rule for one in list_rules(given) if one.file is None and one.kind == "allow"]
    return load_settings(places.cwd, home=places.home, overrides={"permissions.allow": on_command_line})


async def show_permissions(chat: Chat, rest: str) -> None:
    """Lists the rules, or removes one: from this session, and from the local settings if it is saved there."""
    what, _, rule = rest.partition(" ")
    if what == "remove":
        await _choose_and_remove(chat, rule.strip())
        return
    if rest:
        raise UserError("Write /permissions, or /permissions remove RULE.")
    gate = chat.session.gate
    has_sandbox = gate.sandboxes.layers.can_read
    commands = "commands run in the sandbox" if has_sandbox else "no sandbox works here: commands ask"
    mode = f"mode: {gate.mode.value}; {commands}{'' if gate.trusted else '; this folder is not trusted'}"
    chat.view.tell(mode)
    rows = _rows(chat)
    chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 3, flexible=1, least=20))
    if not rows:
        chat.view.say("  There are no rules.")


def _rows(chat: Chat) -> list[tuple[str, str, str]]:
    """All rules: the kind, the rule, and where it comes from."""
    settings = _load(chat)
    saved = {one.rule for one in list_rules(settings)}
    chosen = [rule for rule in chat.session.gate.session_rules if rule not in saved]
    return [*rule_rows(settings), *(("allow", exact(rule), _SESSION) for rule in chosen)]


def _removable(chat: Chat) -> dict[str, str]:
    """The rules that can be removed here, and where they are."""
    path = find_local_file(chat.session.places.cwd)
    saved = [one.rule for one in list_rules(_load(chat)) if one.kind == "allow" and one.file == path]
    return {rule: "saved" if rule in saved else _SESSION for rule in (*saved, *chat.session.gate.session_rules)}


def complete_permissions(chat: Chat) -> Iterable[tuple[str, str]]:
    return ((f"remove {rule}", where) for rule, where in _removable(chat).items())


async def _choose_and_remove(chat: Chat, rule: str) -> None:
    if not rule:
        rows = [PickRow(rule, rule, where) for rule, where in _removable(chat).items()]
        if not rows:
            raise UserError("There is no rule that can be removed here; /permissions lists all rules.")
        rule = await chat.pick("Remove which rule?", rows) or ""
    if rule:
        chat.view.tell(_remove(chat, rule))


def _remove(chat: Chat, rule: str) -> str:
    places = chat.session.places
    path = find_local_file(places.cwd)
    saved = _removable(chat).get(rule) == "saved"
    if saved or rule not in chat.session.gate.session_rules:
        remove_rule(places.cwd, places.home, rule)
    chat.session.gate.drop_rule(rule)
    return f"Removed {one_line(rule)}" + (f" from {path}." if saved else " from this session.")
