"""The least cost with knowledge of the future: a bound for all policies, and our own rule with foresight.

The bound keeps a result only while it is needed again, and removes it for free. It pays for messages and answers, for
every result once, and for writing everything again after a pause. Foresight is the economic rule that knows how many
rounds are left and which results will be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from reverie.lab.replay.policies import Policy, Stages
from reverie.lab.replay.recorded import PREFIX_TOKENS, RecordedSession, ReplaySetting
from reverie.lab.replay.uses import Need
from reverie.layers.l2_microcompact.economic import Outlook, Rates
from reverie.layers.l2_microcompact.results import CLEARABLE, ClearableResult, ResultIndex
from reverie.layers.l2_microcompact.stage import ECONOMIC
from reverie.simulator.tokens import block_tokens
from reverie.types import Block, ThinkingBlock, ToolResultBlock


def lower_bound(session: RecordedSession, needs: Sequence[Sequence[Need]], prefix_tokens: int = PREFIX_TOKENS) -> float:
    """The tokens of fresh input that every policy needs at least."""
    setting = ReplaySetting.of(session.model, prefix_tokens)
    rates = Rates.of(setting.facts, setting.header.ttl)
    carry = _carrying_costs(session, rates)
    uses = _sole_uses(needs)
    names = dict[str, str]()
    cost, stays, new = 0.0, 0, prefix_tokens
    for number, each in enumerate(session.rounds):
        cost += carry[number] * stays
        stays += new
        for message in each.entered:
            for block in message.content:
                tokens = _tokens(block)
                new += tokens
                if isinstance(block, ToolResultBlock) and names.get(block.tool_use_id) in CLEARABLE:
                    cost += _keeping_cost(tokens, number, uses.get(block.tool_use_id, ()), carry, rates)
                else:
                    stays += tokens
        cost += rates.write * new
        cost += rates.output * sum(block_tokens(block.wire()) for block in each.response.content)
        new = sum(_tokens(block) for block in each.response.content)
        names |= {call.id: call.name for call in each.response.tool_uses}
    return cost


def _carrying_costs(session: RecordedSession, rates: Rates) -> list[float]:
    """The cost of an old token in each round: a read, or a write if the cache had expired."""
    times = [each.at for each in session.rounds]
    pauses = [0.0, *(now - before for before, now in pairwise(times))]
    return [rates.write if pause > rates.lifetime_s else rates.read for pause in pauses]


def _keeping_cost(tokens: int, came: int, uses: Sequence[int], carry: Sequence[float], rates: Rates) -> float:
    """The cost of a result from one use to the next: it is kept or written again, whichever is cheaper."""
    cost, at = 0.0, came
    for use in uses:
        cost += tokens * min(sum(carry[at + 1 : use + 1]), rates.write)
        at = max(at, use)
    return cost


def _sole_uses(needs: Sequence[Sequence[Need]]) -> dict[str, list[int]]:
    """The rounds in which a result was used that no other result could replace."""
    found = dict[str, list[int]]()
    for number, needed in enumerate(needs):
        for call in dict.fromkeys(need.sources[0] for need in needed if len(need.sources) == 1):
            found.setdefault(call, []).append(number)
    return found


def _tokens(block: Block) -> int:
    """The tokens of a block in a prompt; thinking without a signature is not sent."""
    return 0 if isinstance(block, ThinkingBlock) and not block.signature else block_tokens(block.wire())


def foresight(session: RecordedSession, needs: Sequence[Sequence[Need]]) -> Policy:
    """The economic rule with knowledge of the rest of this session."""
    last = dict[str, int]()
    for number, needed in enumerate(needs):
        last |= {need.sources[-1]: number for need in needed}
    times = [each.at for each in session.rounds]

    def ahead(index: ResultIndex, rounds: int, rates: Rates) -> Outlook:
        number = min(rounds, len(times) - 1)
        rest = times[number:]
        expiring = sum(now - before > rates.lifetime_s for before, now in pairwise(rest))

        def needed(held: ClearableResult, _age: int) -> float:
            return float(last.get(held.call_id.partition("-again-")[0], -1) >= number)

        to_come = len(times) - 1 - number
        return Outlook(to_come, expiring / to_come if to_come else 0.0, needed)

    return Policy("foresight", "the economic rule, knowing the future", Stages(ECONOMIC, foresight=ahead))
