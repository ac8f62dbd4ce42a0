"""What a member of a team is told about it: who it is, who the others are, and how they work together."""

from __future__ import annotations

from reverie.agents.team.team_file import MemberPlan, TeamPlan
from reverie.prompts import render

_PLANS_FIRST = "- You may only read for now. Send your plan to {lead}; once it is approved you may carry it out."


def introduce(plan: TeamPlan, member: MemberPlan) -> str:
    """The reminder at the beginning of a member's conversation."""
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
    told = "; ".join(mark for mark in marks if mark)
    return f"- {member.name}: {told}" if told else f"- {member.name}"
