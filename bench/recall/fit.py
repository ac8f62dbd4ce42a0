"""Fits the numbers of the semantic tier's decision to be silent (`memory.recall.ranking.mixture`), and cross-validates.

Logistic regression with a light ridge; both kinds of queries have the same weight. Use it when you change a signal.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from math import exp
from pathlib import Path
from statistics import fmean, pstdev

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
    """Weights and bias by Newton's method on standardised values."""
    columns = list(zip(*rows, strict=True))
    means = [fmean(column) for column in columns]
    spreads = [pstdev(column) + 1e-9 for column in columns]
    known = [[*((v - m) / s for v, m, s in zip(row, means, spreads, strict=True)), 1.0] for row in rows]
    share = sum(wanted) / len(wanted)
    size = len(columns) + 1
    beta = [0.0] * size
    for _ in range(STEPS):
        slope = [RIDGE * weight for weight in beta[:-1]] + [0.0]
        curve = [[RIDGE * (i == j < size - 1) for j in range(size)] for i in range(size)]
        for row, is_wanted in zip(known, wanted, strict=True):
            guess = 1 / (1 + exp(-sum(b * v for b, v in zip(beta, row, strict=True))))
            balance = 0.5 / share if is_wanted else 0.5 / (1 - share)
            for i in range(size):
                slope[i] += balance * (guess - is_wanted) * row[i]
                for j in range(size):
                    curve[i][j] += balance * guess * (1 - guess) * row[i] * row[j]
        beta = [b - d for b, d in zip(beta, _solve(curve, slope), strict=True)]
    weights = [b / s for b, s in zip(beta, spreads, strict=False)]
    return tuple(weights), beta[-1] - sum(w * m for w, m in zip(weights, means, strict=True))


def _solve(matrix: list[list[float]], right: Sequence[float]) -> list[float]:
    """Gaussian elimination; because of the ridge the matrix is not singular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for n, pivot in enumerate(rows):
        for other in rows:
            if other is not pivot:
                factor = other[n] / pivot[n]
                other[:] = [a - factor * b for a, b in zip(other, pivot, strict=True)]
    return [row[-1] / row[n] for n, row in enumerate(rows)]
