"""What the proxy did, from its book: per conversation and in total, in tokens, dollars and saved dollars. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SUMS = (
    *("requests", "rounds", "reads", "changed", "results", "compactions"),
    *("fresh", "read", "written", "output", "recalled"),
)


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The numbers for programs. `saved` is what would have been paid directly, less what was paid."""
    sessions = [_session(row) for row in rows]
    total: dict[str, Any] = {name: sum(one[name] for one in sessions) for name in (*_SUMS, "paid", "direct")}
    clients = dict[str, dict[str, Any]]()
    for one in sessions:
        own = clients.setdefault(one["client"], {"sessions": 0, "requests": 0, "paid": 0.0, "direct": 0.0})
        own["sessions"] += 1
        for key in ("requests", "paid", "direct"):
            own[key] += one[key]
    return {"total": _with_saved(total), "clients": clients, "sessions": sessions}


def _session(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("id", "api", "model", "began", "used", "stopped", "breaks", *_SUMS, "paid", "direct")
    more = {"client": row["owner"], "stopped": row["passes"] or row["stopped"]}
    return _with_saved({name: row[name] for name in kept} | more)


def _with_saved(sums: dict[str, Any]) -> dict[str, Any]:
    prompt = sums["fresh"] + sums["read"] + sums["written"]
    return {
        **sums,
        "cache_share": round(sums["read"] / prompt, 4) if prompt else 0.0,
        "saved": sums["direct"] - sums["paid"],
        "ratio": round(sums["paid"] / sums["direct"], 4) if sums["direct"] else 1.0,
    }
