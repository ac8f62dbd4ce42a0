"""A free simulation of the Messages API and of OpenAI's, in process or over HTTP. It bills as the vendors document.

Use `Simulator` to test your own agent, `Meter` to bill request bodies without a server, and `running` (from
`reverie.simulator.http`) to connect a real SDK.
"""

from __future__ import annotations

from reverie.simulator.bridge import BridgeResponder
from reverie.simulator.control import Clock, RouteProfile
from reverie.simulator.errors import ApiError
from reverie.simulator.explain import Miss
from reverie.simulator.ledger import Billing, Ledger
from reverie.simulator.meter import Caller, Meter
from reverie.simulator.responder import EchoResponder, Reply, Responder, ScriptResponder
from reverie.simulator.simulator import Simulator

__all__ = [
    "ApiError",
    "Billing",
    "BridgeResponder",
    "Caller",
    "Clock",
    "EchoResponder",
    "Ledger",
    "Meter",
    "Miss",
    "Reply",
    "Responder",
    "RouteProfile",
    "ScriptResponder",
    "Simulator",
]
