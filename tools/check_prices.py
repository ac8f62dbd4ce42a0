"""Compares the prices of the catalogue with the price tables of litellm and genai-prices. Run by `make prices`.

Prints one line per model, and ends with an error if a table gives another price, or if no table knows a model.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

CATALOGUE = Path(__file__).resolve().parents[1] / "src/reverie/models/catalogue.toml"
MILLION = 1_000_000
SMALL, LONG = 1_000, 300_000
"""Sizes of a prompt, in tokens: below and above the limits from which long prompts cost more."""
Row = dict[str, float]


def ours(entry: Mapping[str, Any], provider: Mapping[str, Any], default: Mapping[str, Any]) -> Row:
    """The prices of an entry in US dollars per million tokens."""
    facts = {**default, **provider, **entry}
    base = facts["input_price"]
    row = {"input": base, "output": facts["output_price"], "read": base * facts["cache_read"]}
    if provider.get("cache_markers"):
        row["write"] = base * facts["cache_write_5m"]
    if "long_input_price" in facts:
        row |= {"long input": facts["long_input_price"], "long output": facts["long_output_price"]}
    return row


def litellm(names: list[str], long: bool) -> Row | None:
    """The prices in litellm's table. It is read as a file: to import litellm takes seconds."""
    spec = find_spec("litellm")
    assert spec is not None and spec.origin is not None
    table = json.loads(Path(spec.origin).with_name("model_prices_and_context_window_backup.json").read_text("utf-8"))
    keys = [key for name in names for key in (name, *(k for k in table if k.startswith(f"anthropic.{name}-20")))]
    entry = next((table[key] for key in keys if key in table), None)
    if entry is None:
        return None
    fields = {"input": "input_cost_per_token", "output": "output_cost_per_token"}
    fields |= {"read": "cache_read_input_token_cost", "write": "cache_creation_input_token_cost"}
    row = {name: entry[field] * MILLION for name, field in fields.items() if entry.get(field)}
    for name in ("input", "output") if long else ():
        field = next(
            (key for key in entry if key.startswith(f"{fields[name]}_above_") and key.endswith("k_tokens")), ""
        )
        if field:
            row[f"long {name}"] = entry[field] * MILLION
    return row


def genai_prices(names: list[str], provider: str, long: bool) -> Row | None:
    """The prices that genai-prices computes for today."""
    from genai_prices import Usage, calc_price

    def price(name: str, **usage: int) -> float:
        today = datetime.now(UTC)
        result = calc_price(Usage(**usage), name, provider_id=provider, genai_request_timestamp=today)
        return float(result.total_price) * MILLION

    for name in names:
        try:
            row = {
                "input": price(name, input_tokens=SMALL) / SMALL,
                "output": price(name, output_tokens=SMALL) / SMALL,
                "read": price(name, input_tokens=SMALL, cache_read_tokens=SMALL) / SMALL,
                "write": price(name, input_tokens=SMALL, cache_write_tokens=SMALL) / SMALL,
            }
            if long:
                prompt = price(name, input_tokens=LONG)
                row["long input"] = prompt / LONG
                row["long output"] = (price(name, input_tokens=LONG, output_tokens=SMALL) - prompt) / SMALL
            return row
        except LookupError:
            continue
    return None


def main() -> int:
    data = tomllib.loads(CATALOGUE.read_text("utf-8"))
    sources = [f"{name} {version(name)}" for name in ("litellm", "genai-prices")]
    print(f"{'model':20} {'ours: input, output, read':28} {' and '.join(sources)}")
    compared = wrong = 0
    for name, entry in data["models"].items():
        if not entry.get("input_price"):
            continue
        provider = entry["provider"]
        row = ours(entry, data["provider"][provider], data["default"])
        names, long = [name, *entry.get("aliases", [])], "long input" in row
        tables = [litellm(names, long), genai_prices(names, provider, long)]
        said: list[str] = []
        for table in tables:
            both = [key for key in row if table and key in table]
            differ = [f"{key} {table[key]:g}" for key in both if table and abs(table[key] - row[key]) > 1e-6]
            compared, wrong = compared + len(both), wrong + len(differ)
            said.append("not listed" if table is None else ", ".join(differ) or "same")
        wrong += tables == [None, None]
        shown = ", ".join(f"{row[key]:g}" for key in ("input", "output", "read"))
        print(f"{name:20} {shown:28} {' | '.join(said)} (checked {entry.get('checked', 'never')})")
    print(f"{compared} prices compared, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
