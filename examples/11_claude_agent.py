"""Hooks for the Claude Agent SDK: a large result goes to disk, and a second session knows what the first was told.

The simulator answers Claude Code, so it needs no key. Run it with: python examples/11_claude_agent.py
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool

from reverie import Memory
from reverie.adapters.claude_agent import hooks
from reverie.simulator import Reply, Simulator
from reverie.simulator.http import running

SIMULATED = {"ANTHROPIC_API_KEY": "simulated", "MAX_MCP_OUTPUT_TOKENS": "1000000"}


class Model:
    async def reply(self, body: Any, *, purpose: str = "main") -> Reply:
        told = json.dumps(body["messages"])
        if "tool_result" not in told:
            call = {"type": "tool_use", "id": "toolu_1", "name": "mcp__office__read_log", "input": {}}
            return Reply([call], "tool_use")
        text = f"I see {len(told):,} characters; “full euros” is among them: {'full euros' in told}."
        return Reply([{"type": "text", "text": text}], "end_turn")


@tool("read_log", "Reads the log.", {})
async def read_log(given: Any) -> Any:
    return {"content": [{"type": "text", "text": "a ship with pears came in\n" * 20_000}]}


async def main(url: str, folder: Path) -> None:
    async with Memory.open(folder / "memory", home=folder / "home", cwd=folder) as memory:
        for text in ("Remember: prices of pears are always rounded to full euros.", "How are prices of pears rounded?"):
            layers = hooks(memory, home=folder / "home")
            options = ClaudeAgentOptions(
                tools=[],
                cwd=folder,
                mcp_servers={"office": create_sdk_mcp_server("office", tools=[read_log])},
                allowed_tools=["mcp__office__read_log"],
                hooks=layers,
                env={**SIMULATED, "ANTHROPIC_BASE_URL": url, "HOME": str(folder)},
            )
            async for message in query(prompt=text, options=options):
                if isinstance(message, ResultMessage):
                    print(f"{text}\n  {message.result}")
            await layers.close()
        print("on disk:", [one.stat().st_size for one in folder.rglob("tool-results/*")])


if __name__ == "__main__":
    with TemporaryDirectory() as made, running(Simulator(Model())) as address:
        asyncio.run(main(address, Path(made)))
