"""Draws the figures of a replay: the cost of each policy, and how the cost of one long session grew.

Needs matplotlib, from the extra `lab`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reverie.errors import StorageError, UserError
from reverie.lab.replay.costs import SessionCosts, totals
from reverie.lab.replay.policies import BASELINE, OURS
from reverie.regular_files import refuse_special

_COLOURS = {
    "resend": "#bbbbbb",
    "cached": "#555555",
    "summarise": "#937860",
    "langchain": "#c44e52",
    "server": "#dd8452",
    "time": "#8c8cc4",
    "summary": "#ccb974",
    "notes": "#da8bc3",
    "economic": "#64b5cd",
    "reverie": "#2a7f3f",
    "reverie-1m": "#7fbf8f",
}
_WIDEST = 1.15
_MANY_TIMES = 3.0
"""For a policy that costs this many times `cached` the line is left out and the bar is cut, to show the others."""


def check_plot(path: Path) -> None:
    """UserError if the plot cannot be written. Called before the replay, which can take an hour."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("A plot needs matplotlib: install it with `pip install 'reverie[lab]'`.")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UserError(f"{path} is not a picture: end its name in .png, .svg or .pdf.")
    if not path.resolve().parent.is_dir():
        raise UserError(f"{path.resolve().parent} is not a folder; make it first.")
    refuse_special(path)


def draw(done: Sequence[SessionCosts], path: Path) -> None:
    """Writes the picture: bars for all sessions on the left, one long session on the right."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 5.4), width_ratios=(1, 1.25))
    _bars(axes[0], done)
    _growth(axes[1], done)
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    figure.tight_layout(w_pad=3)
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise StorageError(f"The plot {path} cannot be written: {error.strerror or error}.") from error
    finally:
        pyplot.close(figure)


def _bars(axes: Any, done: Sequence[SessionCosts]) -> None:
    paid = totals(done)
    baseline = paid[BASELINE].cost
    bound = sum(each.bound for each in done) / baseline
    names = sorted(paid, key=lambda name: paid[name].cost, reverse=True)
    for place, name in enumerate(names):
        share, regret = paid[name].cost / baseline, paid[name].regret / baseline
        axes.barh(place, min(share, _WIDEST), color=_COLOURS.get(name, "#999999"), height=0.66)
        if share <= _WIDEST:
            axes.barh(place, regret, left=share - regret, color="none", edgecolor="white", hatch="////", height=0.66)
        cut = f" {share:.2f}" if share <= _WIDEST else f"{share:.1f} times (bar cut) "
        side = "left" if share <= _WIDEST else "right"
        axes.text(min(share, _WIDEST), place, cut, va="center", ha=side, fontweight="bold")
    axes.axvline(1, color="#555555", linewidth=1, linestyle=":")
    axes.axvline(bound, color="black", linewidth=1.2, linestyle="--")
    axes.text(bound, len(names) - 0.42, f"no policy can go below {bound:.2f} ", fontsize=9, va="bottom", ha="right")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlim(0, _WIDEST)
    axes.set_ylim(-0.6, len(names) - 0.1)
    axes.set_xlabel("cost of all sessions, as a share of caching everything\n(hatched: paid to read content again)")
    axes.set_title(f"What {len(done)} recorded sessions cost", loc="left", fontweight="bold")


def _growth(axes: Any, done: Sequence[SessionCosts]) -> None:
    each = max(done, key=lambda one: one.rounds)
    most = _MANY_TIMES * each.outcomes[BASELINE].cost
    for name, outcome in sorted(each.outcomes.items(), key=lambda one: -one[1].cost):
        if outcome.cost <= most:
            costs = [cost / 1_000 for cost in outcome.by_round]
            wide = 2.4 if name in (OURS, BASELINE) else 1.3
            axes.plot(range(1, each.rounds + 1), costs, color=_COLOURS.get(name, "#999999"), linewidth=wide, label=name)
    axes.legend(loc="upper left", frameon=False)  # in the order in which the lines end
    axes.set_xlim(0, each.rounds)
    axes.set_ylim(0)
    axes.set_xlabel("requests to the model")
    axes.set_ylabel("cost so far, thousand tokens of fresh input")
    left_out = [name for name, outcome in each.outcomes.items() if outcome.cost > most]
    note = f" (without {', '.join(left_out)})" if left_out else ""
    axes.set_title(f"One long session, request by request{note}", loc="left", fontweight="bold")
