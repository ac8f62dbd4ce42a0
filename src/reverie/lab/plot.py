"""Draws what a replay found: what each policy cost in all, and how the cost of one long session grew.

Needs matplotlib, which the extra `lab` brings; nothing else of Reverie does.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from reverie.errors import StorageError, UserError
from reverie.lab.replay.policies import BASELINE, OURS
from reverie.lab.replay.report import Replayed, totals
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
}
_MANY_TIMES = 3.0
"""A policy that costs this many times `cached` would squash all others: its line is left out, its bar is cut."""


def check_plot(path: Path) -> None:
    """Says what is wrong before an hour is spent on replaying."""
    if importlib.util.find_spec("matplotlib") is None:
        raise UserError("A plot needs matplotlib: install it with `pip install 'reverie[lab]'`.")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise UserError(f"{path} is not a picture: end its name in .png, .svg or .pdf.")
    if not path.resolve().parent.is_dir():
        raise UserError(f"{path.resolve().parent} is not a folder; make it first.")
    refuse_special(path)


def draw(done: Sequence[Replayed], path: Path) -> None:
    """Writes the picture: bars for all sessions on the left, one long session round by round on the right."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure: Any
    axes: Any
    figure, axes = pyplot.subplots(1, 2, figsize=(13, 5.4), width_ratios=(1, 1.25))
    _bars(axes[0], done)
    _growth(axes[1], done)
    figure.tight_layout(w_pad=3)
    try:
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise StorageError(f"The plot {path} cannot be written: {error.strerror or error}.") from error
    finally:
        pyplot.close(figure)


def _bars(axes: Any, done: Sequence[Replayed]) -> None:
    paid = totals(done)
    baseline = paid[BASELINE].cost
    names = sorted(paid, key=lambda name: paid[name].cost, reverse=True)
    bound = sum(each.bound for each in done) / baseline
    limit = 1.15
    for place, name in enumerate(names):
        share = paid[name].cost / baseline
        shown = min(share, limit)
        regret = paid[name].regret / baseline
        axes.barh(place, shown, color=_COLOURS.get(name, "#999999"), height=0.66)
        if regret > 0 and share <= limit:
            axes.barh(place, regret, left=share - regret, color="none", edgecolor="white", hatch="////", height=0.66)
        if share <= limit:
            axes.text(shown + 0.012, place, f"{share:.2f}", va="center", fontweight="bold")
        else:
            axes.text(shown - 0.015, place, f"{share:.1f} times (bar cut)", va="center", ha="right", fontweight="bold")
    axes.axvline(1, color="#555555", linewidth=1, linestyle=":")
    axes.axvline(bound, color="black", linewidth=1.2, linestyle="--")
    axes.text(
        bound - 0.01, len(names) - 0.42, f"no policy can go below {bound:.2f} ", fontsize=9, va="bottom", ha="right"
    )
    axes.set_yticks(range(len(names)), names)
    for tick, name in zip(axes.get_yticklabels(), names, strict=True):
        tick.set_fontweight("bold" if name == OURS else "normal")
    axes.set_xlim(0, limit)
    axes.set_ylim(-0.6, len(names) - 0.1)
    axes.set_xlabel(
        "cost of all sessions, as a share of caching everything\n(hatched: paid to read cleared content again)"
    )
    axes.set_title(f"What {len(done)} recorded sessions cost", loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)


def _growth(axes: Any, done: Sequence[Replayed]) -> None:
    each = max(done, key=lambda one: one.rounds)
    base = each.outcomes[BASELINE].cost
    ends = list[tuple[float, str]]()
    for name, outcome in each.outcomes.items():
        if outcome.cost > _MANY_TIMES * base:
            continue  # it would squash the others; the bars show it
        bold = name in (OURS, BASELINE)
        axes.plot(
            range(1, each.rounds + 1),
            [cost / 1_000 for cost in outcome.by_round],
            color=_COLOURS.get(name, "#999999"),
            linewidth=2.4 if bold else 1.3,
            zorder=3 if bold else 2,
        )
        ends.append((outcome.cost / 1_000, name))
    gap = 0.045 * max(end for end, _ in ends)
    height = float("-inf")
    for end, name in sorted(ends):
        height = max(end, height + gap)
        weight = "bold" if name == OURS else "normal"
        axes.text(
            each.rounds * 1.015, height, name, color=_COLOURS.get(name, "#999999"), va="center", fontweight=weight
        )
    axes.set_xlim(0, each.rounds * 1.16)
    axes.set_ylim(0, max(height, max(end for end, _ in ends)) * 1.04)
    axes.set_xlabel("requests to the model")
    axes.set_ylabel("cost so far, thousand tokens of fresh input")
    left_out = [name for name in each.outcomes if name not in {name for _, name in ends}]
    note = f" (without {', '.join(left_out)})" if left_out else ""
    axes.set_title(f"One long session, request by request{note}", loc="left", fontweight="bold")
    axes.spines[["top", "right"]].set_visible(False)
