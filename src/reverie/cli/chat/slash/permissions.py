"""`/permissions` in the chat: the mode, all rules with their origin, and a way to remove rules."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from reverie.cli.output import columns, one_line, table
from reverie.cli.permissions import rule_rows
from reverie.errors import UserError
from reverie.settings import load_settings
from reverie.storage.saved_rules import find_local_file, list_rules, remove_rule

if TYPE_CHECKING:
    from reverie.cli.chat.loop import Chat
    from reverie.settings import Settings


def _load(chat: Chat) -> Settings:
    """The settings as they are now: rules may have been saved or removed since the session began."""
    places = chat.session.places
    given = chat.session.parts.settings
    on_command_line = [one.rule for one in list_rules(given) if one.file is None and one.kind == "allow"]
    return load_settings(places.cwd, home=places.home, overrides={"permissions.allow": on_command_line})


async def show_permissions(chat: Chat, rest: str) -> None:
    """Lists the rules, or removes one: from this session, and from the local settings if it is saved there."""
    what, _, rule = rest.partition(" ")
    if what == "remove" and rule.strip():
        _remove(chat, rule.strip())
        return
    if rest:
        raise UserError("Write /permissions, or /permissions remove RULE.")
    gate, settings = chat.session.gate, _load(chat)
    trusted = "harmless commands run without a question" if gate.trusted else "this folder is not trusted"
    chat.view.tell(f"mode: {gate.mode.value}; {trusted}")
    rows = rule_rows(settings)
    saved = {one.rule for one in list_rules(settings)}
    rows += [("allow", one_line(rule), "this session") for rule in gate.session_rules if rule not in saved]
    chat.view.say_all(f"  {line}" for line in table(rows, room=columns() - 3, flexible=1, least=20))
    if not rows:
        chat.view.say("  There are no rules.")


def complete_permissions(chat: Chat) -> Iterable[tuple[str, str]]:
    path = find_local_file(chat.session.places.cwd)
    saved = [one.rule for one in list_rules(_load(chat)) if one.kind == "allow" and one.file == path]
    for rule in dict.fromkeys((*saved, *chat.session.gate.session_rules)):
        yield f"remove {rule}", "saved" if rule in saved else "this session"


def _remove(chat: Chat, rule: str) -> None:
    places = chat.session.places
    path = find_local_file(places.cwd)
    saved = any(one.rule == rule and one.file == path for one in list_rules(_load(chat)))
    in_session = rule in chat.session.gate.session_rules
    if saved or not in_session:
        remove_rule(places.cwd, places.home, rule)
    chat.session.gate.drop_rule(rule)
    chat.view.tell(f"Removed {one_line(rule)}" + (f" from {path}." if saved else " from this session."))
