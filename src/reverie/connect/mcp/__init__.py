"""`reverie mcp`: the memory of a project as an MCP server, for every client that speaks the protocol."""
