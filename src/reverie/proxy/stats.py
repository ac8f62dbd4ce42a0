"""What the proxy did, per conversation and in total: in tokens, dollars and saved dollars. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_SUMS = (
    *("requests", "rounds", "reads", "changed", "results", "compactions"),
    *("fresh", "read", "written", "output", "recalled"),
)
_MONEY = ("paid", "direct", "saved")


class RunTally:
    """What one process of the proxy did, in the form of the rows of the book."""

    def __init__(self) -> None:
        self._rows = dict[str, dict[str, float]]()
        self._models = dict[str, str]()

    def add(self, name: str, model: str, counts: Mapping[str, float]) -> None:
        """Adds to the numbers of a conversation."""
        self._models[name] = model
        row = self._rows.setdefault(name, {})
        for key, count in counts.items():
            row[key] = row.get(key, 0) + count

    def rows(self) -> list[dict[str, Any]]:
        text = dict.fromkeys(("api", "client", "began", "used", "stopped", "passes"), "")
        zero = dict.fromkeys((*_SUMS, "paid", "direct", "sent_meter", "direct_meter"), 0)
        return [
            {**text, **zero, **row, "id": name, "model": self._models[name], "breaks": {}}
            for name, row in self._rows.items()
        ]


def summary(
    rows: Sequence[Mapping[str, Any]], failures: Mapping[str, int], is_priced: Callable[[str], bool]
) -> dict[str, Any]:
    """The numbers for programs. `saved` is what would have been paid directly, less what was paid. Models without a
    known price (`is_priced`) count in tokens only: their dollars are null, and those of a sum are of the others.
    `failures` counts what of ours failed; the requests went through all the same."""
    sessions = [_session(row, is_priced(str(row["model"]))) for row in rows]
    total = _sum(sessions, (*_SUMS, "sent_tokens", "direct_tokens"))
    clients = {
        client: _sum([one for one in sessions if one["client"] == client], ("requests",))
        for client in dict.fromkeys(one["client"] for one in sessions)
    }
    return {"total": _with_shares(total), "clients": clients, "sessions": sessions, "failures": dict(failures)}


def _session(row: Mapping[str, Any], is_priced: bool) -> dict[str, Any]:
    kept = ("id", "api", "model", "client", "began", "used", "stopped", "breaks", *_SUMS)
    money = {"paid": row["paid"], "direct": row["direct"], "saved": row["direct"] - row["paid"]}
    return _with_shares(
        {
            **{name: row[name] for name in kept},
            "stopped": row["passes"] or row["stopped"],
            "sent_tokens": round(row["sent_meter"]),
            "direct_tokens": round(row["direct_meter"]),
            "unpriced": 0 if is_priced else row["requests"],
            **(money if is_priced else dict.fromkeys(_MONEY)),
        }
    )


def _sum(sessions: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """The sums of conversations. `unpriced` counts requests whose price nobody knows; if it is all of them, the dollars
    are null."""
    found: dict[str, Any] = {"sessions": len(sessions), **{name: sum(one[name] for one in sessions) for name in names}}
    found["unpriced"] = sum(one["unpriced"] for one in sessions)
    priced = [one for one in sessions if one["paid"] is not None]
    money = {name: sum(one[name] for one in priced) for name in _MONEY}
    return {**found, **(money if priced or not sessions else dict.fromkeys(_MONEY))}


def _with_shares(sums: dict[str, Any]) -> dict[str, Any]:
    """With the share of the prompts that was read from the cache, and the price as a part of the direct one."""
    prompt = sums["fresh"] + sums["read"] + sums["written"]
    in_dollars = sums["paid"] is not None
    paid, direct = (sums["paid"], sums["direct"]) if in_dollars else (sums["sent_tokens"], sums["direct_tokens"])
    return {
        **sums,
        "cache_share": round(sums["read"] / prompt, 4) if prompt else 0.0,
        "ratio": round(paid / direct, 4) if direct else 1.0,
    }
