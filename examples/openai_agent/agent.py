"""An OpenAI agent with one tool, registered under the name "clock"."""

import os
import sys
from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from agents import Agent, function_tool

from turnline.agent.openai import OpenAIModule
from turnline.pipeline import RESTAPI

NO_KEY = """\
OPENAI_API_KEY is not set.  Set it and start again:

    OPENAI_API_KEY=sk-... ./pants run examples/openai_agent/agent.py

For an agent that needs no key, see examples/docs_agent."""


def time_in(zone: str) -> str:
    """Say the date and time in an IANA time zone such as Europe/Oslo."""
    try:
        return datetime.now(ZoneInfo(zone)).strftime("%A %d %B %Y, %H:%M")
    except (ZoneInfoNotFoundError, ValueError):
        return f"there is no time zone {zone!r}"


if not os.environ.get("OPENAI_API_KEY"):
    sys.exit(NO_KEY)

OpenAIModule(
    [
        Agent(
            name="clock",
            instructions="Answer briefly.  Look times up with the tool, never guess them.",
            handoff_description="Knows what time it is anywhere",
            model=os.environ.get("OPENAI_MODEL"),
            tools=[function_tool(time_in)],
        )
    ]
)

if __name__ == "__main__":
    RESTAPI.run()
