"""Runs the tests that a client has in its own language."""

import asyncio
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from turnline.testing.missing import missing
from turnline.testing.servers.process import end_with_parent

TESTS_SECONDS = 400.0


def need(*tools: str) -> None:
    """Stop the test that calls this where a tool is not installed; see `missing`."""
    for tool in tools:
        if shutil.which(tool) is None:
            missing(f"{tool} is not on the PATH: its client can be neither built nor tested")


async def run_tests(
    command: Sequence[str], folder: Path, environment: Mapping[str, str], passed: str
) -> None:
    """Run a test runner in a folder, show what it says, and fail unless its tests passed.

    Args:
        environment: what to add to that of this process.
        passed: pattern of what it says of tests that passed; its group, if it has one, is their
            number, else each match is one.

    Raises:
        AssertionError: it failed, or ran no test.
        TimeoutError: it had not ended after `TESTS_SECONDS`.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env={**os.environ, **environment},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        preexec_fn=end_with_parent,
    )
    try:
        async with asyncio.timeout(TESTS_SECONDS):
            raw, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    said = raw.decode(errors="replace")
    print(said)
    assert process.returncode == 0, f"{' '.join(command)} ended with {process.returncode}"
    found = re.findall(passed, said, re.MULTILINE)
    assert sum(int(one) if one.isdigit() else 1 for one in found) > 0, "no test passed"
