"""Functions under the real runtime client: warmed, and leaving nothing behind when cut short."""

import asyncio
import os
from pathlib import Path

import psutil
import pytest

from turnline.testing.servers.lambda_runtime import FunctionError, LambdaFunction

ECHO = "def handler(event, context):\n    return event\n"
STUCK = "import threading\nthreading.Event().wait()\n"
STUCK_AT_WORK = "import threading\n\ndef handler(event, context):\n    threading.Event().wait()\n"
BROKEN = "raise KeyError('a setting')\n"


def function(folder: Path, code: str) -> LambdaFunction:
    (folder / "app.py").write_text(code)
    return LambdaFunction("app.handler", folder, environment={})


async def until_children(count: int) -> None:
    this = psutil.Process(os.getpid())
    async with asyncio.timeout(30):
        while len(this.children()) != count:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.02)


async def test_a_warm_function_answers_in_the_sandbox_it_has(tmp_path: Path) -> None:
    async with function(tmp_path, ECHO) as echo:
        await echo.warm()
        answers = [await echo.invoke({"n": 1}), await echo.invoke({"n": 2})]
        sandboxes = echo.sandboxes

    assert answers == [{"n": 1}, {"n": 2}]
    assert sandboxes == 1


async def test_a_function_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with function(tmp_path, BROKEN) as broken:
        with pytest.raises(FunctionError, match="a setting"):
            await broken.warm()
        await until_children(0)


async def test_a_start_that_is_cancelled_leaves_no_process(tmp_path: Path) -> None:
    async with function(tmp_path, STUCK) as stuck, asyncio.TaskGroup() as tasks:
        starting = tasks.create_task(stuck.warm())
        await until_children(1)
        starting.cancel()
        await until_children(0)


async def test_an_invocation_that_is_cancelled_ends_its_sandbox(tmp_path: Path) -> None:
    async with function(tmp_path, STUCK_AT_WORK) as stuck, asyncio.TaskGroup() as tasks:
        await stuck.warm()
        at_work = tasks.create_task(stuck.invoke({}))
        await asyncio.sleep(0)
        at_work.cancel()
        await until_children(0)
