"""`/replay`: what recorded sessions would have cost under each policy. A background job computes it."""

from __future__ import annotations

import os
from pathlib import Path

from reverie.errors import UserError
from reverie.lab.replay.recorded import PREFIX_TOKENS, WINDOW, check_room
from reverie.paths.installed import pip_install
from reverie.web.paging import Pager
from reverie.web.replaying import Found, Replays, find_transcripts, policy_names
from reverie.web.visit import Action, Data, Done, Page, Visit

_USUAL = ("cached", "summarise", "langchain", "server", "reverie")
"""Chosen at first: what others do, and what Reverie does."""
BASELINE = "cached"
_MOST_SHOWN = 200


def read(visit: Visit) -> Data:
    policies, missing = policy_names()
    given = visit.query.get("folder", "").strip()
    suggested = _suggested(visit)
    job = visit.site.keep(Replays, Replays).job
    found, problem = None, ""
    if given:
        try:
            found = find_transcripts(_folder(visit, given))
        except UserError as error:
            problem = str(error)
    rows = job.rows() if job is not None else []
    sort = visit.query.get("sort", "")
    rows.sort(key=lambda row: -(row["policies"][BASELINE]["cost_usd"] if sort == "cost" else row["rounds"]))
    pager = Pager(visit, size=25)
    return {
        "folder": given or (str(job.found.folder) if job is not None else suggested[0] if suggested else ""),
        "suggested": suggested,
        "policies": [
            {"name": name, "what": what, "is_missing": name in missing, "is_chosen": name in _USUAL}
            for name, what in policies.items()
        ],
        "missing": missing,
        "baseline": BASELINE,
        "prefix_tokens": PREFIX_TOKENS,
        "window": WINDOW,
        "problem": problem,
        "found": _describe(found) if found is not None else None,
        "job": job.describe() if job is not None else None,
        "sort": sort,
        "sessions": pager.of(rows),
        "pages": pager.describe(len(rows)),
    }


def _suggested(visit: Visit) -> list[str]:
    home = visit.site.settings.places.user_home
    places = (home / ".claude" / "projects", home / ".codex" / "sessions", visit.site.places.projects)
    return [str(path) for path in places if path.is_dir()]


def _folder(visit: Visit, given: str) -> Path:
    if "\0" in given or len(given) > 4_000:
        raise UserError("This is not the path of a folder.")
    path = Path(given)
    if given == "~" or given.startswith("~/"):
        path = visit.site.settings.places.user_home / given[2:]
    return Path(os.path.normpath(visit.site.cwd / path))


def _describe(found: Found) -> Data:
    return {
        "folder": str(found.folder),
        "transcripts": len(found.files),
        "bytes": sum(size for _, size in found.files),
        "files": [{"path": str(path), "size": size} for path, size in found.files[:_MOST_SHOWN]],
        "skipped": found.skipped_count,
        "skipped_files": [{"path": path, "why": why} for path, why in found.skipped[:_MOST_SHOWN]],
    }


def start(visit: Visit) -> Done:
    """Starts the job."""
    policies, missing = policy_names()
    chosen = [name for name in policies if visit.form.get(f"policy-{name}") or name == BASELINE]
    if gone := [name for name in chosen if name in missing]:
        raise UserError(f"The policy {gone[0]} needs a library: install it with `{pip_install('lab')}`.")
    if len(chosen) < 2:
        raise UserError(f"Choose at least one policy beside {BASELINE}.")
    prefix, window = _number(visit, "prefix_tokens", PREFIX_TOKENS), _number(visit, "window", WINDOW)
    check_room(prefix, window)
    found = find_transcripts(_folder(visit, visit.form.get("folder", "").strip()))
    if not found.files:
        raise UserError(f"There are no transcripts (*.jsonl) below {found.folder}.")
    visit.site.keep(Replays, Replays).start(found, chosen, prefix, window)
    return Done(f"The replay of {len(found.files):,} transcripts has started.", "/replay")


def _number(visit: Visit, name: str, otherwise: int) -> int:
    given = visit.form.get(name, "").strip().replace(",", "")
    if given and not given[:12].isdecimal():
        raise UserError(f"{name.replace('_', ' ')} must be a whole number, not {given[:40]!r}.")
    number = int(given[:12]) if given else otherwise
    if name == "window" and number < 8_000:
        raise UserError("The window must have at least 8,000 tokens.")
    return number


def cancel(visit: Visit) -> Done:
    """Ends the job."""
    job = visit.site.keep(Replays, Replays).job
    if job is None or job.state != "running":
        return Done("No replay is running.", "/replay")
    job.cancel()
    return Done("The replay was cancelled. What was done is kept.", "/replay")


PAGES = (
    Page(
        "/replay",
        "replay",
        "Replay",
        read,
        section="replay",
        about="What recorded sessions would have cost under each policy: the job, its progress and its results.",
        query={
            "folder": "which transcripts this folder has, and what would be skipped",
            "sort": "sessions by `rounds` (default) or `cost`",
            "start": "the first session, from 0",
        },
    ),
)
ACTIONS = (
    Action(
        "/replay/start",
        "replay_start",
        start,
        about="Starts a replay. Only one runs at a time.",
        form={
            "folder": "the folder; all *.jsonl below it are read",
            "policy-NAME": "any text: with this policy",
            "prefix_tokens": "the size of system prompt and tools",
            "window": "the window in tokens",
        },
    ),
    Action("/replay/cancel", "replay_cancel", cancel, about="Ends the replay that runs; what is done is kept."),
)
