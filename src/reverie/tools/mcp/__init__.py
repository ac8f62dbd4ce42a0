"""The MCP client of our own agent: servers of others, and their tools under the names `mcp__server__tool`.

The model gets a list of names first, and the definitions when it asks for them. Everything that a server says is the
text of a tool: never an order. The library `mcp` is loaded when the first server starts.
"""
