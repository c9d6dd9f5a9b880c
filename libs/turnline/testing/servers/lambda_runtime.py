"""Lambda for tests: a function under the real Python runtime client, and a small Runtime API.

`awslambdaric` runs in child processes as it does in Lambda, imports the application's file, and
takes invocations from here.  A sandbox serves one invocation at a time; what runs over its time is
killed; an idle one is used again, with everything it has open.
https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnline.hosting import WebOptions, WebServer
from turnline.testing.servers.process import end, freeze

_VERSION = "2018-06-01"
_START_SECONDS = 90.0
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.05

# A child finds modules where this process does, and first in its own folder.
_BOOTSTRAP = (
    "import sys; sys.path[:] = {path!r}; from awslambdaric.__main__ import main; "
    "main(['awslambdaric', {handler!r}])"
)


class FunctionError(Exception):
    """The function raised, or did not start.

    Attributes:
        kind: the exception's name.
        message: its text.
    """

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind = kind
        self.message = message


class FunctionTimeoutError(Exception):
    """The function ran over its time, and its sandbox was killed."""


class Sandbox:
    """One execution environment: a process, and the Runtime API it talks to."""

    def __init__(self, function: "LambdaFunction", tasks: asyncio.TaskGroup) -> None:
        self._function = function
        self._events: asyncio.Queue[tuple[str, bytes, float] | None] = asyncio.Queue()
        self._answers: dict[str, asyncio.Future[Any]] = {}
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._web = WebServer(
            Starlette(routes=self._routes()), WebOptions(host="127.0.0.1", port=0)
        )
        self._serving = tasks.create_task(self._web.run(self._stop))
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start the process; return when its application is imported and it asks for work.

        Raises:
            FunctionError: the import failed, or the process ended.
        """
        try:
            await self._web.started.wait()
            self._spawn()
            await self._until(self._ready, _START_SECONDS)
        except BaseException:
            await self.kill()
            raise

    async def invoke(self, event: object, timeout: float) -> Any:  # noqa: ANN401 - any JSON
        """Have the function answer one event within `timeout` seconds."""
        name = str(uuid.uuid4())
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._answers[name] = answer
        self._events.put_nowait((name, json.dumps(event).encode(), time.time() + timeout))
        try:
            return await self._until(answer, timeout)
        except TimeoutError as error:
            await self.kill()
            raise FunctionTimeoutError(f"after {timeout:g} s") from error
        except asyncio.CancelledError:
            # It is at work, and would answer the next one late.
            await self.kill()
            raise
        finally:
            self._answers.pop(name, None)

    def freeze(self) -> None:
        """Stop the process where it is, with its sockets open."""
        assert self._process is not None
        freeze(self._process)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    async def kill(self) -> None:
        """Kill the process, and close its Runtime API."""
        if self._process is not None:
            await asyncio.to_thread(end, self._process, signal.SIGKILL, within=_STOP_SECONDS)
        # The process may have left a question behind, which would keep the server.
        self._events.put_nowait(None)
        self._stop.set()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await asyncio.wait([self._serving])

    async def _until(
        self, wanted: asyncio.Future[Any], seconds: float
    ) -> Any:  # noqa: ANN401 - any JSON
        """Await a future, for no longer than `seconds` and than the process lives."""
        finish = time.monotonic() + seconds
        while True:
            left = finish - time.monotonic()
            done, _ = await asyncio.wait([wanted], timeout=min(_LOOK_SECONDS, max(0.0, left)))
            if done:
                return wanted.result()
            if left <= 0:
                raise TimeoutError
            if not self.alive:
                await self.kill()
                raise FunctionError("Runtime.ExitError", f"exited:\n{self._function.log}")

    def _spawn(self) -> None:
        function = self._function
        path = [str(function.folder), *sys.path]
        with function.log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    *(sys.executable, "-c"),
                    _BOOTSTRAP.format(path=path, handler=function.handler),
                ],
                cwd=function.folder,
                env={
                    **function.environment,
                    "AWS_LAMBDA_RUNTIME_API": f"127.0.0.1:{self._web.port}",
                    "AWS_LAMBDA_FUNCTION_NAME": function.handler,
                    "AWS_LAMBDA_FUNCTION_VERSION": "$LATEST",
                    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "512",
                    "LAMBDA_TASK_ROOT": str(function.folder),
                    "_HANDLER": function.handler,
                },
                stdout=log,
                stderr=subprocess.STDOUT,
                process_group=0,
            )

    # --- the Runtime API ---------------------------------------------------------------------

    def _routes(self) -> list[Route]:
        base = f"/{_VERSION}/runtime"
        return [
            Route(f"{base}/invocation/next", self._next),
            Route(f"{base}/invocation/{{name}}/response", self._response, methods=["POST"]),
            Route(f"{base}/invocation/{{name}}/error", self._error, methods=["POST"]),
            Route(f"{base}/init/error", self._init_error, methods=["POST"]),
        ]

    async def _next(self, _: Request) -> Response:
        if not self._ready.done():
            self._ready.set_result(None)
        got = await self._events.get()
        if got is None:
            return Response(status_code=410)
        name, event, deadline = got
        headers = {
            "Lambda-Runtime-Aws-Request-Id": name,
            "Lambda-Runtime-Deadline-Ms": str(int(deadline * 1000)),
            "Lambda-Runtime-Invoked-Function-Arn": "arn:aws:lambda:eu-west-1:000000000000:f",
            "Lambda-Runtime-Trace-Id": "Root=1-0-0;Sampled=0",
        }
        return Response(event, media_type="application/json", headers=headers)

    async def _response(self, request: Request) -> Response:
        body = await request.body()
        self._settle(request, json.loads(body) if body else None)
        return Response(status_code=202)

    async def _error(self, request: Request) -> Response:
        self._settle(request, _error_in(await request.body()))
        return Response(status_code=202)

    async def _init_error(self, request: Request) -> Response:
        if not self._ready.done():
            self._ready.set_exception(_error_in(await request.body()))
        return Response(status_code=202)

    def _settle(self, request: Request, outcome: object) -> None:
        answer = self._answers.get(request.path_params["name"])
        if answer is None or answer.done():
            return
        if isinstance(outcome, FunctionError):
            answer.set_exception(outcome)
        else:
            answer.set_result(outcome)


class LambdaFunction:
    """A function with its sandboxes; use as an async context manager.

    Args:
        handler: `module.attribute`; the module lies in `folder`.
        folder: of the application; its processes run there and write `<module>.log`.
        environment: variables of its processes, which have none of this one's.
        timeout: seconds an invocation may take.

    Attributes:
        sandboxes: how many were started.
    """

    def __init__(
        self,
        handler: str,
        folder: Path,
        *,
        environment: Mapping[str, str],
        timeout: float = 30.0,
    ) -> None:
        self.handler = handler
        self.folder = folder
        self.environment = dict(environment)
        self.timeout = timeout
        self.sandboxes = 0
        self.log_file = folder / f"{handler.partition('.')[0]}.log"
        self._idle: list[Sandbox] = []
        self._busy: set[Sandbox] = set()
        self._tasks = asyncio.TaskGroup()

    @property
    def log(self) -> str:
        """What its processes wrote."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *exc_info: Any) -> None:  # noqa: ANN401 - as it is given
        for sandbox in [*self._idle, *self._busy]:
            await sandbox.kill()
        await self._tasks.__aexit__(*exc_info)

    async def invoke(self, event: object) -> Any:  # noqa: ANN401 - any JSON
        """Answer one event, in an idle sandbox or a new one.

        Raises:
            FunctionError: the function raised, or did not start.
            FunctionTimeoutError: it ran over its time.
        """
        sandbox = self._idle.pop() if self._idle else await self._started()
        self._busy.add(sandbox)
        try:
            return await sandbox.invoke(event, self.timeout)
        finally:
            self._busy.discard(sandbox)
            if sandbox.alive:
                self._idle.append(sandbox)

    async def warm(self) -> None:
        """Have a sandbox wait for the first event, as provisioned concurrency does.

        Raises:
            FunctionError: the function does not start.
        """
        sandbox = await self._started()
        self._idle.append(sandbox)

    def freeze(self) -> None:
        """Stop idle sandboxes where they are, as Lambda does between invocations."""
        for sandbox in self._idle:
            sandbox.freeze()

    def thaw(self) -> None:
        """Let them go on."""
        for sandbox in self._idle:
            sandbox.thaw()

    async def kill_busy(self) -> None:
        """Kill the sandboxes that are at work, as Lambda does with one that is out of memory."""
        for sandbox in list(self._busy):
            await sandbox.kill()

    async def _started(self) -> Sandbox:
        sandbox = Sandbox(self, self._tasks)
        self.sandboxes += 1
        self._busy.add(sandbox)
        try:
            await sandbox.start()
        finally:
            self._busy.discard(sandbox)
        return sandbox


def _error_in(body: bytes) -> FunctionError:
    error = json.loads(body or b"{}")
    return FunctionError(str(error.get("errorType", "")), str(error.get("errorMessage", "")))
