"""Fits the numbers of the semantic tier's decision to be silent (`memory.recall.ranking.mixture`), and cross-validates.

Logistic regression with a light ridge; both kinds of queries have the same weight. Use it when you change a signal.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.recall.data import Query, read_folder
from reverie.memory.recall.ranker import Ranker, Ranking
from reverie.memory.recall.ranking.mixture import SEMANTIC_GATE, ShowGate
from reverie.quick import dataclass

FOLDS = 10
REPEATS = 5
RIDGE = 1.0
STEPS = 12


@dataclass(frozen=True, slots=True)
class Fit:
    """The numbers of a gate, fitted on all queries, and their cross-validated results."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    bias: float
    spoke: float
    """The share of queries with relevant files for which recall is not silent."""
    silent: float
    """The share of queries without relevant files for which recall is silent."""
    shown: float
    """The share of relevant files that is shown."""


def fit(folder: Path, models: Path, silent: Sequence[Path]) -> Fit:
    """Fits the gate on the queries of a folder and on other silent ones. UserError if there is no encoder."""
    with tempfile.TemporaryDirectory(prefix="reverie-fit-") as name:
        collection = read_folder(folder, Path(name), silent)
        with Ranker.open(collection.memory, Path(name) / "index", tier="semantic", models_dir=models) as ranker:
            ranker.prepare()
            asked = [(query, ranker.rank(query.text, tools_in_use=query.tools)) for query in collection.queries]
    asked = [(query, ranking) for query, ranking in asked if ranking.grounds]
    gate = SEMANTIC_GATE
    rows = [[value for name, value in ranking.grounds if name in gate.names] for _, ranking in asked]
    wanted = [bool(query.relevant) for query, _ in asked]
    weights, bias = _logistic(rows, wanted)
    spoke: list[float] = []
    silenced: list[float] = []
    shown: list[float] = []
    for repeat in range(REPEATS):
        for n, probability in enumerate(_cross_validate(rows, wanted, repeat)):
            query, ranking = asked[n]
            if query.relevant:
                spoke.append(probability >= gate.least)
                shown.append(_shown_share(query, ranking, gate) if probability >= gate.least else 0.0)
            else:
                silenced.append(probability < gate.least)
    return Fit(gate.names, weights, bias, *map(fmean, (spoke, silenced, shown)))


def _shown_share(query: Query, ranking: Ranking, gate: ShowGate) -> float:
    best = [one.path for one in ranking.ranked[:5] if one.score >= gate.of_best * ranking.ranked[0].score]
    return len(query.relevant & set(best)) / len(query.relevant)


def _cross_validate(rows: Sequence[Sequence[float]], wanted: Sequence[bool], seed: int) -> list[float]:
    order = list(range(len(rows)))
    random.Random(seed).shuffle(order)
    found = [0.0] * len(rows)
    for fold in range(FOLDS):
        held = set(order[fold::FOLDS])
        kept = [n for n in order if n not in held]
        weights, bias = _logistic([rows[n] for n in kept], [wanted[n] for n in kept])
        gate = ShowGate((), weights, bias, least=0.5, of_best=0.0)
        for n in held:
            found[n] = gate.probability(tuple(rows[n]))
    return found


def _logistic(rows: Sequence[Sequence[float]], wanted: Sequence[bool]) -> tuple[tuple[float, ...], float]:
    """Weights and bias by Newton's method on standardised values. Because of the ridge the curve is not singular."""
    np: Any = import_module("numpy")  # not in every environment
    values, labels = np.array(rows, float), np.array(wanted, float)
    means, spreads = values.mean(axis=0), values.std(axis=0) + 1e-9
    known = np.hstack([(values - means) / spreads, np.ones((len(values), 1))])
    share = sum(wanted) / len(wanted)
    balance = np.where(labels > 0, 0.5 / share, 0.5 / (1 - share))
    ridge = RIDGE * np.array([1.0] * values.shape[1] + [0.0])
    beta = np.zeros(known.shape[1])
    for _ in range(STEPS):
        guess = 1 / (1 + np.exp(-known @ beta))
        slope = ridge * beta + known.T @ (balance * (guess - labels))
        curve = np.diag(ridge) + (known.T * (balance * guess * (1 - guess))) @ known
        beta = beta - np.linalg.solve(curve, slope)
    weights = beta[:-1] / spreads
    return tuple(map(float, weights)), float(beta[-1] - weights @ means)
