"""Recall on the server: which memories of the caller's scopes fit a question, by words and by meaning. Row-level
security limits both searches to these scopes before anything is compared."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import nlargest
from math import log
from typing import TYPE_CHECKING, Any, Final, cast

from reverie.memory.recall.ranking.evidence import chance, is_evidence
from reverie.quick import dataclass
from reverie.server.wire import ApiError, format_time, take_text
from reverie.text.words import stem, words

if TYPE_CHECKING:
    from psycopg import AsyncConnection

    from reverie.server.database import Principal, Row
    from reverie.server.vectors import Vectors

    Connection = AsyncConnection[Row]

FIELDS: Final = ("query", "limit", "scopes", "memory_store_ids")
_MOST_QUERY: Final = 20_000
_MOST_FOUND: Final = 50
_MOST_TERMS: Final = 16
_CANDIDATES: Final = 60
_PASSAGES: Final = 4 * _CANDIDATES
_LONGEST_TERM: Final = 100
_UNRELATED: Final = 0.15
"""The closeness of texts that have nothing to do with each other."""
_WORDS_WEIGHT: Final = 0.4
"""Of the words, if there are vectors too."""

_LEXEMES: Final = """
select word, lexeme from unnest(%s::text[]) as w (word), unnest(ts_lexize('english_stem', word)) as lexeme
"""

# One pass over the words of the scopes. A term weighs more the fewer memories have it, at most what it weighs in any
# text, and more in the head or the path.
_WORDS: Final = """
with visible as materialized (
    select w.memory_id, w.words from recall_words w where w.scope = any (%(scopes)s) and {among}
), hits as materialized (
    select memory_id, words from visible where words @@ %(any)s::tsquery
), asked as (
    select term, most, (quote_literal(term) || ':A')::tsquery as head, quote_literal(term)::tsquery as anywhere
    from unnest(%(terms)s::text[], %(most_weights)s::float8[]) as t (term, most)
), found as materialized (
    select h.memory_id, a.term, a.most, h.words @@ a.head as in_head from hits h join asked a on h.words @@ a.anywhere
), weights as materialized (
    select term, least(
        min(most), ln(1 + ((select count(*)::float8 from visible) - count(*) + 0.5) / (count(*) + 0.5))
    ) as weight
    from found group by term
)
select memory_id, sum(weight * case when in_head then 1.5 else 1 end) / %(total)s as words,
       array_agg(term order by weight desc) as terms
from found join weights using (term)
group by memory_id order by words desc, memory_id limit %(most)s
"""

_MEANING: Final = """
select memory_id, -(vector operator(public.<#>) %(vector)s::public.halfvec) as closeness
from recall_vectors where scope = any (%(scopes)s) and encoder = %(encoder)s and {among}
order by closeness desc, memory_id limit %(most)s
"""


@dataclass(frozen=True, slots=True)
class _Asked:
    query: str
    limit: int
    scopes: list[str]
    stores: list[str] | None


async def recall(connection: Connection, who: Principal, vectors: Vectors, body: Mapping[str, Any]) -> dict[str, Any]:
    """The memories that fit, best first, each with its score and why."""
    asked = _read(who, body)
    scores, terms, near = dict[str, float](), dict[str, list[str]](), dict[str, float]()
    for row in await _by_words(connection, asked):
        scores[row["memory_id"]], terms[row["memory_id"]] = float(row["words"]), row["terms"]
    encoded = await vectors.encode([asked.query])
    if encoded:
        found = await connection.execute(
            _limited(_MEANING, asked),
            {
                "vector": encoded[0],
                "encoder": vectors.name,
                "scopes": asked.scopes,
                "stores": asked.stores,
                "most": _PASSAGES,
            },
        )
        for row in await found.fetchall():  # the closest passage of a memory comes first
            near.setdefault(row["memory_id"], float(row["closeness"]))
    ranked = {
        id: _WORDS_WEIGHT * scores.get(id, 0.0) + near.get(id, _UNRELATED) - _UNRELATED if near else scores[id]
        for id in {*scores, *near}
    }
    rows = await connection.execute("select * from memories where id = any (%s)", (list(ranked),))
    data = sorted(await rows.fetchall(), key=lambda row: (-ranked[row["id"]], row["id"]))[: asked.limit]
    return {
        "data": [
            {
                "type": "recalled_memory",
                "score": round(ranked[row["id"]], 4),
                "words": round(scores.get(row["id"], 0.0), 4),
                "terms": terms.get(row["id"], []),
                "closeness": round(near[row["id"]], 4) if row["id"] in near else None,
                "memory_store_id": row["store_id"],
                "memory_id": row["id"],
                "path": row["path"],
                "scope": row["scope"],
                "trust": row["trust"],
                "updated_at": format_time(row["updated_at"]),
                "content": row["content"],
            }
            for row in data
        ],
        "by_meaning": bool(encoded),
    }


def _limited(statement: str, asked: _Asked) -> bytes:
    """The statement, for the stores that are asked for, if any are named."""
    some = "memory_id in (select id from memories where store_id = any (%(stores)s))"
    return statement.format(among="true" if asked.stores is None else some).encode()


async def _by_words(connection: Connection, asked: _Asked) -> list[Row]:
    weights = {
        word: -log(chance(stem(word), 0, 0))
        for word in words(asked.query)
        if len(word) < _LONGEST_TERM and is_evidence(stem(word))
    }
    found = await connection.execute(_LEXEMES, (list(weights),))
    terms = {str(row["lexeme"]): weights[row["word"]] for row in await found.fetchall()}
    best = nlargest(_MOST_TERMS, terms, key=lambda term: terms[term])
    if not best:
        return []
    rows = await connection.execute(
        _limited(_WORDS, asked),
        {
            "scopes": asked.scopes,
            "stores": asked.stores,
            "any": " | ".join("'{}'".format(term.replace("\\", "\\\\").replace("'", "''")) for term in best),
            "terms": best,
            "most_weights": [terms[term] for term in best],
            "total": sum(terms[term] for term in best),
            "most": _CANDIDATES,
        },
    )
    return await rows.fetchall()


def _read(who: Principal, body: Mapping[str, Any]) -> _Asked:
    query = take_text(body, "query", least=1, most=_MOST_QUERY)
    limit = body.get("limit", 5)
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST_FOUND:
        raise ApiError(400, f"limit: must be 1 to {_MOST_FOUND}.")
    wanted = _texts(body, "scopes")
    scopes = list(who.scopes) if wanted is None else [one for one in who.scopes if {one, one.split(":")[0]} & {*wanted}]
    return _Asked(query, limit, scopes, _texts(body, "memory_store_ids"))


def _texts(body: Mapping[str, Any], name: str) -> list[str] | None:
    given = body.get(name)
    if given is None:
        return None
    if not isinstance(given, list) or not all(isinstance(one, str) for one in cast("list[Any]", given)):
        raise ApiError(400, f"{name}: must be a list of strings.")
    return [one for one in cast("list[str]", given) if "\x00" not in one]
