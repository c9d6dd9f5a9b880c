"""What these tests start ends with them, also where nobody can clean up any more."""

import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.process import environment

# Starts a server that holds a lock, and says when it does.
PARENT = """
import asyncio, pathlib, sys
from e2e.process import launched

SERVER = '''
import fcntl, time
lock = open("held", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
print("holding")
time.sleep(3600)
'''

async def main():
    server = await launched(pathlib.Path(sys.argv[1]), "-c", SERVER)
    while not server.stdout:
        await asyncio.sleep(0.02)
    print(server.stdout)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells children of it")
def test_a_server_ends_with_tests_that_are_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, str(tmp_path)]
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"holding\n"
        finally:
            parent.send_signal(signal.SIGKILL)

    with (tmp_path / "held").open("w") as lock:
        # Waits for its holder's end.
        fcntl.flock(lock, fcntl.LOCK_EX)
