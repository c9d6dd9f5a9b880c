"""A real ElasticMQ for tests: SQS with FIFO queues, on a loopback port, files below /tmp.

It is a Java process of some 150 MB that starts in about three seconds: share one among many tests,
on queues of their own.  Queues and messages end with the process.
"""

import asyncio
import shutil
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Self

from turnline.testing.servers.maven_jars import MavenJars, find_java
from turnline.testing.servers.process import end, free_ports, freeze

START_SECONDS = 60.0
STOP_SECONDS = 10.0
_JARS = MavenJars("elasticmq", "elasticmq-pom.xml")
_CONFIG = """include classpath("application.conf")
node-address {{ protocol = http, host = "127.0.0.1", port = {port}, context-path = "" }}
rest-sqs {{ enabled = true, bind-hostname = "127.0.0.1", bind-port = {port}, sqs-limits = strict }}
rest-stats {{ enabled = false }}
"""
_LOGBACK = """<configuration>
<appender name="O" class="ch.qos.logback.core.ConsoleAppender">
<encoder><pattern>%d %p %m%n</pattern></encoder></appender>
<root level="WARN"><appender-ref ref="O"/></root>
</configuration>
"""
_REQUEST = b"GET /?Action=ListQueues HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n"


class ElasticMqServer:
    """Use as an async context manager; the port is chosen when it is made and kept."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="turnline-elasticmq-"))
        [self.port] = free_ports(1)
        self._process: subprocess.Popen[bytes] | None = None
        # Who is cancelled in `start` leaves behind a thread that is about to spawn.
        self._spawning = threading.Lock()
        self._is_removed = False

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """What it wrote."""
        return (self._folder / "log").read_text(errors="replace")

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            await asyncio.to_thread(self.remove)
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.to_thread(self.remove)

    def remove(self) -> None:
        """Stop it and delete its files; for good."""
        with self._spawning:
            self._is_removed = True
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    async def start(self) -> None:
        """Start it, without any queue; return when it serves."""
        await asyncio.to_thread(self._spawn)
        async with asyncio.timeout(START_SECONDS):
            while not await self._is_ready():  # noqa: ASYNC110 - another process
                await asyncio.sleep(0.05)

    def stop(self) -> None:
        """Stop it in the ordinary way."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it on the spot."""
        self._end(signal.SIGKILL)

    def freeze(self) -> None:
        """Let it answer nothing any more, with its sockets open (SIGSTOP)."""
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _spawn(self) -> None:
        java, jars = find_java(), _JARS.folder()
        with self._spawning:
            if not self._is_removed:
                self._process = self._spawned(java, jars)

    def _spawned(self, java: str, jars: Path) -> subprocess.Popen[bytes]:
        config, logback = self._folder / "server.conf", self._folder / "logback.xml"
        config.write_text(_CONFIG.format(port=self.port))
        logback.write_text(_LOGBACK)
        command = [
            *(java, "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-XX:-UsePerfData", "-Xshare:auto", f"-Dconfig.file={config}"),
            f"-Dlogback.configurationFile={logback}",
            *("-cp", f"{jars}/*", "org.elasticmq.server.Main"),
        ]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, process_group=0)

    async def _is_ready(self) -> bool:
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError(f"ElasticMQ ended:\n{self.log[-4000:]}")
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:
            return False
        try:
            writer.write(_REQUEST)
            return await reader.readline() != b""
        except OSError:
            return False
        finally:
            writer.close()

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is not None:
            end(process, how, within=STOP_SECONDS)
