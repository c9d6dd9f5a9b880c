"""The agent of these tests: does what its prompt says, and notes when it began and ended."""

import asyncio
import os
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

from chaos.processes import agent_log
from chaos.processes.directives import CRASH_CODE, Directives
from turnline.agent import FatalAgentError, Turn, agent

LOOK_SECONDS = 0.01


@agent("directed", description="does what its prompt says")
async def directed(turn: Turn) -> AsyncIterator[str]:
    asked = Directives.parse(turn.prompt)
    _note("start", turn)
    await asyncio.sleep(asked.sleep)
    while asked.hold and not Path(asked.hold).exists():  # noqa: ASYNC110, ASYNC240 - another's file
        await asyncio.sleep(LOOK_SECONDS)
    for index in count():
        if index >= asked.chunks and _is_time(asked):
            break
        if index == asked.chunks // 2 and _crashes(asked):
            os._exit(CRASH_CODE)
        # Of each attempt its own text, so that pieces of two cannot pass for one.
        yield f"{turn.request_id}.{turn.attempt}.{index} "
        await asyncio.sleep(asked.gap)
    if turn.attempt <= asked.raises:
        raise RuntimeError("as told")
    if asked.fatal:
        raise FatalAgentError("refused, as told", status_code=402)
    turn.state["answered"] = [*turn.state.get("answered", []), turn.request_id]
    _note("end", turn)


def _note(what: str, turn: Turn) -> None:
    agent_log.write(
        what,
        user=turn.user_id,
        session=turn.session_id,
        request=turn.request_id,
        attempt=turn.attempt,
    )


def _is_time(asked: Directives) -> bool:
    return not asked.until or Path(asked.until).exists()


def _crashes(asked: Directives) -> bool:
    if asked.crashes:
        return True
    if not asked.crash_once:
        return False
    try:
        Path(asked.crash_once).touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
