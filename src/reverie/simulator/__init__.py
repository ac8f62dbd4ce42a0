"""A free stand-in for the Messages API: billed as the public documentation says, in process or over HTTP.

Use `Simulator` in a test of your own agent, `Meter` to bill request bodies without a server, `running` (from
`reverie.simulator.http`) to point a real SDK at it. Knows models and prices; nothing of Reverie's layers.
"""

from __future__ import annotations

from reverie.simulator.control import Clock
from reverie.simulator.errors import ApiError
from reverie.simulator.explain import Miss
from reverie.simulator.ledger import Ledger, Row
from reverie.simulator.meter import Billing, Caller, Meter
from reverie.simulator.responder import EchoResponder, Reply, Responder, ScriptResponder
from reverie.simulator.simulator import Simulator

__all__ = [
    "ApiError",
    "Billing",
    "Caller",
    "Clock",
    "EchoResponder",
    "Ledger",
    "Meter",
    "Miss",
    "Reply",
    "Responder",
    "Row",
    "ScriptResponder",
    "Simulator",
]
