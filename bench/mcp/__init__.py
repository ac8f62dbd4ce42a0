"""Measures the MCP server beside others: what its tools cost, whether saves are lost, and when a model calls recall."""

from __future__ import annotations

import click

from bench.mcp.calls import calls
from bench.mcp.saves import saves
from bench.mcp.servers import sizes
from reverie.cli.options import examples


@examples("reverie lab mcp sizes", "reverie lab mcp saves --count 1000")
@click.group()
def mcp() -> None:
    """Measure the MCP server: what its tools cost, whether saves are lost, when a model calls recall."""


for measurement in (sizes, saves, calls):
    mcp.add_command(measurement)
