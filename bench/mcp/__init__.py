"""Measures the MCP server beside others: what its tools cost, whether saves are lost, and when a model calls recall."""
