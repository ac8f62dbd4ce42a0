"""What code can say about a conversation without a model: what was done, what failed and how, which names came up.

Deterministic, bounded and quick. It is next to every summary, and it is the whole summary when no model can be asked.
Never guesses: every line comes from a record.
"""

from reverie.layers.l4_compaction.by_code.ledger import operation_ledger
from reverie.layers.l4_compaction.by_code.limits import Limits
from reverie.layers.l4_compaction.by_code.masking import without_secrets
from reverie.layers.l4_compaction.by_code.names import names_beside, ranked_names
from reverie.layers.l4_compaction.by_code.operations import Operation, operations, plain_command
from reverie.layers.l4_compaction.by_code.written import PARTS, write_notes, write_summary

__all__ = [
    "PARTS",
    "Limits",
    "Operation",
    "names_beside",
    "operation_ledger",
    "operations",
    "plain_command",
    "ranked_names",
    "without_secrets",
    "write_notes",
    "write_summary",
]
