"""An agent of the Claude Agent SDK with the hooks: answers the texts, one after the other, and prints what happened."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    create_sdk_mcp_server,
    tool,
)

from reverie import Memory
from reverie.adapters.claude_agent import hooks

FOLDER = Path(os.environ["STATE"])
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@tool("read_log", "Reads a log.", SCHEMA)
async def read_log(given: dict[str, Any]) -> dict[str, Any]:
    lines = 20_000 if "large" in given["name"] else 20
    return {"content": [{"type": "text", "text": "".join(f"line {n} of {given['name']}\n" for n in range(lines))}]}


async def main(resume: str, *texts: str) -> None:
    memory = Memory.open(FOLDER / "memory", home=FOLDER / "home", cwd=FOLDER)
    own = hooks(memory, home=FOLDER / "home")
    options = ClaudeAgentOptions(
        model="claude-sonnet-5-5",
        system_prompt="You are a clerk.",
        tools=[],
        mcp_servers={"office": create_sdk_mcp_server("office", tools=[read_log])},
        allowed_tools=["mcp__office__read_log"],
        setting_sources=[],
        cwd=FOLDER,
        resume=resume or None,
        hooks=own,
        env={
            "ANTHROPIC_BASE_URL": os.environ["SIMULATOR"],
            "ANTHROPIC_API_KEY": "simulated",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "MAX_MCP_OUTPUT_TOKENS": "1000000",
            "HOME": str(FOLDER),
        },
    )
    answers, session = list[str](), ""
    async with ClaudeSDKClient(options) as client:
        for text in texts:
            await client.query(text)
            async for message in client.receive_response():
                if isinstance(message, ResultMessage):
                    answers.append(message.result or "")
                    session = message.session_id
    await own.close()
    print(json.dumps({"answers": answers, "session": session, "memories": [one.text for one in await memory.list()]}))
    await memory.close()


asyncio.run(main(*sys.argv[1:]))
