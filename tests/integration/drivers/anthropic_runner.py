"""The Anthropic SDK's tool runner: a tool, a long result, structured output, and a second run that goes on."""

from __future__ import annotations

import json
import os

import anthropic
from pydantic import BaseModel


class Answer(BaseModel):
    port: int
    where: str


@anthropic.beta_tool
def read_log(name: str) -> str:
    """Reads a log.

    Args:
        name: the name of the log.
    """
    return f"{name}\n" + "the server listens on port 8080\n" * 2_000


def main() -> None:
    client = anthropic.Anthropic(base_url=os.environ["SIMULATOR"], api_key="simulated", max_retries=0)
    common = {"model": "claude-opus-5", "max_tokens": 4_000, "tools": [read_log]}
    common["cache_control"] = {"type": "ephemeral"}
    first = client.beta.messages.tool_runner(messages=[{"role": "user", "content": "Which port?"}], **common)
    last = first.until_done()
    history = [*first.messages] if hasattr(first, "messages") else []
    if not history or history[-1]["role"] != "assistant":
        history.append({"role": "assistant", "content": last.content})
    again = client.beta.messages.tool_runner(
        messages=[*history, {"role": "user", "content": "And where was it?"}], output_format=Answer, **common
    )
    done = again.until_done()
    print(json.dumps({"text": last.content[-1].text, "parsed": done.parsed_output.model_dump()}))


main()
