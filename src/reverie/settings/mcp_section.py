"""Settings of the MCP servers that our own agent uses. The servers themselves are in `mcp.json` files."""

from __future__ import annotations

from reverie.settings.fields import Section, number, switch, texts, whole


class McpSettings(Section):
    """MCP servers whose tools the agent can use (docs/mcp-client.md)."""

    enabled: bool = switch(True, "Whether MCP servers are started.")
    project: bool = switch(True, "Whether the servers in `.mcp.json` of a trusted folder are used.")
    off: tuple[str, ...] = texts("The names of servers that are not started.")
    start_s: float = number(30.0, "seconds", "A server that has not listed its tools by then counts as failed.")
    first_wait_s: float = number(1.0, "seconds", "The longest wait of a message for servers that are still starting.")
    call_s: float = number(300.0, "seconds", "The longest time that one call may take.")
    message_bytes: int = whole(16_000_000, "bytes", "A server that sends a larger message is ended.", minimum=1_000)
    listed_characters: int = whole(8_000, "characters", "The longest list of a server's tools that the model sees.")
    description_characters: int = whole(2_000, "characters", "The longest description of a tool that the model sees.")
    instructions_characters: int = whole(2_000, "characters", "The most of a server's own text that the model sees.")
    restore_characters: int = whole(
        20_000, "characters", "How much of the loaded definitions the model sees again after a compaction."
    )
