"""A team file in TOML: the members of a team, their roles, and the task. It is read as a whole before anything starts.

Each mistake gives one sentence with the file and the key. `introduce` writes the introduction of a member.
"""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from reverie.agents.messages.roster import MAIN
from reverie.errors import UserError
from reverie.parsing import load_toml
from reverie.paths.places import check_name
from reverie.prompts import render
from reverie.quick import dataclass
from reverie.regular_files import read_regular_text
from reverie.types import JsonObject

MODES = ("ask", "accept_edits", "accept_all", "read_only")
MOST_MEMBERS = 32
_TOP = {"team": str, "task": str, "minutes": (int, float), "lead": dict, "teammates": list}
_MEMBER = {
    "name": str,
    "about": str,
    "prompt": str,
    "agent": str,
    "model": str,
    "task": str,
    "plan": bool,
    "permission_mode": str,
    "allow": list,
}


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """One member. `task`: its first task; `plan`: it only reads until the lead approves its plan."""

    name: str
    about: str = ""
    prompt: str = ""
    agent: str = ""
    model: str = ""
    task: str = ""
    plan: bool = False
    permission_mode: str = ""
    allow: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TeamPlan:
    """A whole team. The lead starts with `task`; after `minutes` (None: never) the team is asked to end."""

    team: str
    task: str
    lead: MemberPlan
    teammates: tuple[MemberPlan, ...]
    minutes: float | None = None

    @property
    def members(self) -> tuple[MemberPlan, ...]:
        return (self.lead, *self.teammates)

    def member(self, name: str) -> MemberPlan:
        for one in self.members:
            if one.name == name:
                return one
        raise UserError(f"Nobody in the team {self.team} is called {name!r}.")


def load_team(path: Path) -> TeamPlan:
    """Reads a team file. Raises UserError with one sentence for each mistake."""
    try:
        raw = load_toml(read_regular_text(path))
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {(error.strerror or str(error)).lower()}.") from error
    except ValueError as error:
        raise UserError(f"{path}: {error}.") from error
    plan = _plan(raw, str(path))
    teammates = tuple(_resolve_script(member, path.parent) for member in plan.teammates)
    return replace(plan, lead=_resolve_script(plan.lead, path.parent), teammates=teammates)


def _resolve_script(member: MemberPlan, folder: Path) -> MemberPlan:
    """Looks for a script next to the team file first, so that a team can start from any folder."""
    provider, _, name = member.model.partition(":")
    script = folder.resolve() / name
    return replace(member, model=f"{provider}:{script}") if provider == "scripted" and script.is_file() else member


def _plan(raw: JsonObject, where: str) -> TeamPlan:
    _check(raw, _TOP, where, needed=("team", "task", "teammates"))
    lead = _member(raw.get("lead", {}), f"{where}, [lead]", default_name="lead")
    listed = cast("list[Any]", raw["teammates"])
    mates = tuple(_member(one, f"{where}, teammate {number}") for number, one in enumerate(listed, 1))
    if not mates:
        raise UserError(f"{where}: `teammates` is empty; a team has at least one [[teammates]].")
    if len(mates) >= MOST_MEMBERS:
        raise UserError(f"{where}: {len(mates)} teammates are more than {MOST_MEMBERS - 1}.")
    names = [one.name for one in (lead, *mates)]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"{where}: two members are called {name!r}; every name must be unique.")
    minutes = raw.get("minutes")
    if minutes is not None and minutes <= 0:
        raise UserError(f"{where}: `minutes` must be more than 0, not {minutes}.")
    return TeamPlan(check_name(raw["team"], "team name"), raw["task"], lead, mates, minutes)


def _member(raw: Any, where: str, default_name: str = "") -> MemberPlan:
    if not isinstance(raw, dict):
        raise UserError(f"{where}: must be a table, as in [[teammates]].")
    given = cast(JsonObject, raw)
    _check(given, _MEMBER, where, needed=() if default_name else ("name",))
    name = check_name(given.get("name", default_name), "name for an agent")
    if name == MAIN:
        raise UserError(f"{where}: nobody can be called {MAIN!r}, the name of every session's own agent.")
    mode = given.get("permission_mode", "")
    if mode and mode not in MODES:
        raise UserError(f"{where}: `permission_mode` must be one of {', '.join(MODES)}, not {mode!r}.")
    allow = cast("list[Any]", given.get("allow", []))
    if not all(isinstance(rule, str) for rule in allow):
        raise UserError(f"{where}: `allow` must be a list of rules, as in ['Bash(npm test:*)'].")
    members: dict[str, Any] = {**given, "name": name, "allow": tuple(allow)}
    return MemberPlan(**members)


def _check(raw: JsonObject, known: dict[str, Any], where: str, *, needed: tuple[str, ...]) -> None:
    for key, value in raw.items():
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"it takes {', '.join(known)}."
            raise UserError(f"{where}: there is no `{key}`; {hint}")
        if not isinstance(value, known[key]) or (isinstance(value, bool) and known[key] is not bool):
            raise UserError(f"{where}: `{key}` must be {_KINDS[known[key]]}.")
    for key in needed:
        if key not in raw or (isinstance(raw[key], str) and not raw[key].strip()):
            raise UserError(f"{where}: `{key}` is missing.")


_KINDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    (int, float): "a number",
}


_PLANS_FIRST = "- You may only read for now. Send your plan to {lead}; once it is approved you may carry it out."


def introduce(plan: TeamPlan, member: MemberPlan) -> str:
    """Returns the reminder at the start of a member's conversation."""
    own = [member.prompt.strip()] if member.prompt.strip() else []
    if member.plan:
        own.insert(0, _PLANS_FIRST.format(lead=plan.lead.name))
    values = {
        "name": member.name,
        "team": plan.team,
        "members": "\n".join(_line(one, plan) for one in plan.members if one.name != member.name),
        "prompt": "\n\n".join(["", *own]).rstrip() if own else "",
    }
    if member.name == plan.lead.name:
        return render("reverie.agents", "team_lead.md", values)
    return render("reverie.agents", "teammate.md", {**values, "lead": plan.lead.name})


def _line(member: MemberPlan, plan: TeamPlan) -> str:
    about = member.about or member.agent or " ".join(member.prompt.split())[:120]
    marks = [about, "plans first" if member.plan else "", "lead" if member.name == plan.lead.name else ""]
    text = "; ".join(mark for mark in marks if mark)
    return f"- {member.name}: {text}" if text else f"- {member.name}"
