"""An agent of LangChain with the tools of a Reverie server, through langchain-mcp-adapters: over stdio or HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_anthropic import ChatAnthropic
from langchain_mcp_adapters.client import MultiServerMCPClient


def connection() -> dict[str, Any]:
    if sys.argv[1] == "stdio":
        command, *args = sys.argv[2:]
        return {"transport": "stdio", "command": command, "args": args, "env": dict(os.environ)}
    headers = {"Authorization": f"Bearer {sys.argv[3]}"}
    return {"transport": "streamable_http", "url": sys.argv[2], "headers": headers}


async def main() -> None:
    client = MultiServerMCPClient({"reverie": connection()})
    tools = await client.get_tools()
    model = ChatAnthropic(model="claude-opus-5", base_url=os.environ["SIMULATOR"], api_key="simulated")
    agent = create_agent(model, tools=tools)
    said = await agent.ainvoke({"messages": [{"role": "user", "content": "From now on use pnpm. What did I say?"}]})
    prompt = await client.get_prompt("reverie", "with_memory", arguments={"task": "install the packages with pnpm"})
    resources = await client.get_resources("reverie")
    shown = {
        "tools": sorted(tool.name for tool in tools),
        "messages": [str(message.content) for message in said["messages"]],
        "prompt": prompt[0].content,
        "resources": [one.as_string() for one in resources],
    }
    print(json.dumps(shown))


asyncio.run(main())
