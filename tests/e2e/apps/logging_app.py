"""An application whose agent logs with the `logging` module."""

import logging

from turnline.agent import Turn, agent
from turnline.pipeline import RESTAPI

_log = logging.getLogger("of.an.agent")


@agent("talkative", description="logs, at two levels")
async def talkative(turn: Turn) -> str:
    _log.info("an agent's remark")
    _log.warning("an agent's warning")
    return turn.prompt


if __name__ == "__main__":
    RESTAPI.run()
