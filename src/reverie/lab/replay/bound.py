"""What somebody who knows the future would pay: a bound that no policy can beat, and our own rule with foresight.

The bound keeps a result while it is needed again and drops it for nothing when it is not; it breaks no prefix, leaves
no marker, and what several results could answer costs it nothing. It pays what nobody can avoid: what people and the
model said, every result once, and writing everything again after a pause. The other figure can be had: the economic
rule, told how many rounds are left and which results will be used.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from reverie.lab.replay.policies import Policy, Stages
from reverie.lab.replay.recorded import PREFIX_TOKENS, Recorded, Setting
from reverie.lab.replay.uses import Need
from reverie.layers.l2_microcompact.economic import Outlook, Rates
from reverie.layers.l2_microcompact.results import CLEARABLE, ClearableResult, ResultIndex
from reverie.layers.l2_microcompact.stage import ECONOMIC
from reverie.simulator.tokens import block_tokens
from reverie.types import Block, ThinkingBlock, ToolResultBlock


def lower_bound(session: Recorded, needs: Sequence[Sequence[Need]], prefix_tokens: int = PREFIX_TOKENS) -> float:
    """Tokens of fresh input that no policy can do without."""
    setting = Setting.of(session.model, prefix_tokens)
    rates = Rates.of(setting.facts, setting.header.ttl)
    carry = _carrying(session, rates)
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
                    cost += _kept(tokens, number, uses.get(block.tool_use_id, ()), carry, rates)
                else:
                    stays += tokens
        cost += rates.write * new
        cost += rates.output * sum(block_tokens(block.wire()) for block in each.response.content)
        new = sum(_tokens(block) for block in each.response.content)
        names |= {call.id: call.name for call in each.response.tool_uses}
    return cost


def _carrying(session: Recorded, rates: Rates) -> list[float]:
    """What a token that was there before costs in each round: a read, or a write where the cache had expired."""
    times = [each.at for each in session.rounds]
    pauses = [0.0, *(now - before for before, now in pairwise(times))]
    return [rates.write if pause > rates.lifetime_s else rates.read for pause in pauses]


def _kept(tokens: int, came: int, uses: Sequence[int], carry: Sequence[float], rates: Rates) -> float:
    """From one use to the next a result is carried, or written again, whichever is cheaper."""
    cost, at = 0.0, came
    for use in uses:
        cost += tokens * min(sum(carry[at + 1 : use + 1]), rates.write)
        at = max(at, use)
    return cost


def _sole_uses(needs: Sequence[Sequence[Need]]) -> dict[str, list[int]]:
    """The rounds in which a result was used that nothing else could stand for."""
    found = dict[str, list[int]]()
    for number, needed in enumerate(needs):
        for call in dict.fromkeys(need.sources[0] for need in needed if len(need.sources) == 1):
            found.setdefault(call, []).append(number)
    return found


def _tokens(block: Block) -> int:
    """What a block costs in a prompt; thinking without a signature is not sent back."""
    return 0 if isinstance(block, ThinkingBlock) and not block.signature else block_tokens(block.wire())


def foresight(session: Recorded, needs: Sequence[Sequence[Need]]) -> Policy:
    """The economic rule as a policy that knows the rest of this session."""
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
