"""The scripted agent in the Claude Agent SDK: its bundled Claude Code, and the tool as a server in the process."""

from __future__ import annotations

from typing import Any

from claude_agent_sdk import (
    ClaudeAgentOptions,
    ClaudeSDKClient,
    ResultMessage,
    SystemMessage,
    create_sdk_mcp_server,
    tool,
)

from bench.adapters.programs.program import (
    READ_HELP,
    READ_SCHEMA,
    REVERIE,
    SYSTEM,
    Options,
    answer_all,
    options,
)
from reverie.adapters.claude_agent import Hooks, hooks
from reverie.library.memory import Memory


class Conversation:
    """One conversation: a session of Claude Code, found again by its id."""

    def __init__(self, given: Options) -> None:
        self._given = given
        self._file = given.state / f"{given.conversation}.session"
        self._hooks: Hooks | None = None
        if given.variant == REVERIE:
            self._hooks = hooks(Memory.open(given.home / "memory", home=given.home), home=given.home)

    def _options(self) -> ClaudeAgentOptions:
        given = self._given

        @tool("read_file", READ_HELP, READ_SCHEMA)
        async def read_file(called: dict[str, Any]) -> dict[str, Any]:
            return {"content": [{"type": "text", "text": given.read_file(called["path"], called.get("find", ""))}]}

        home = given.state / "claude"
        home.mkdir(exist_ok=True)
        return ClaudeAgentOptions(
            model=given.model,
            system_prompt=SYSTEM,
            tools=[],
            mcp_servers={"office": create_sdk_mcp_server("office", tools=[read_file])},
            allowed_tools=["mcp__office__read_file"],
            setting_sources=[],
            hooks=self._hooks,
            cwd=given.state,
            resume=self._file.read_text("utf-8") if self._file.exists() else None,
            env={
                "ANTHROPIC_BASE_URL": given.url,
                "ANTHROPIC_API_KEY": "simulated",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "MAX_MCP_OUTPUT_TOKENS": "1000000",
                "HOME": str(home),
            },
        )

    async def turn(self, text: str, resumed: bool) -> str:
        said = "Go on where you stopped." if resumed and self._file.exists() else text
        answer = ""
        async with ClaudeSDKClient(self._options()) as client:
            await client.query(said)
            async for message in client.receive_response():
                if isinstance(message, SystemMessage) and message.data.get("session_id"):
                    self._file.write_text(str(message.data["session_id"]), "utf-8")
                elif isinstance(message, ResultMessage):
                    answer = message.result or ""
                    self._file.write_text(message.session_id, "utf-8")
        return answer

    async def close(self) -> None:
        if self._hooks is not None:
            await self._hooks.close()


if __name__ == "__main__":
    conversation = Conversation(options())
    answer_all(options(), conversation.turn, conversation.close)
