"""The runner's side: agents of a host as agents of this process.

    from turnline.agent.remote import RemoteAgents

    RemoteAgents("agents.internal:9000", ["support", "search"])

A turn is one call of `AgentService.Run`.  The host may be away: a call waits for it and the turn
loses no attempt.  A call that breaks once it began, or falls silent, has failed like an agent that
raised, and the runner tries again as it does with any.  Its claim on the session is the runner's
own business: what a host says after the runner lost it reaches nobody.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
import grpc.aio

from turnline.agent.port import FatalAgentError, Reply, RetryableAgentError, Turn
from turnline.agent.registry import AgentRegistry, default_registry
from turnline.agent.remote.messages import read_error, read_reply, write_turn
from turnline.errors import InvalidRequestError
from turnline.protocol import ChatEvent
from turnline.protocol.messages import read_event
from turnline.telemetry import get_logger
from turnline.v1 import agent_service_pb2 as pb
from turnline.v1.agent_service_pb2_grpc import AgentServiceStub

_log = get_logger("agent")

_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", 64 * 1024 * 1024),
    ("grpc.max_send_message_length", 64 * 1024 * 1024),
    # A host that was replaced is found again within a second or two.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.enable_retries", 0),
)

# What another try cannot mend: the host and this process do not fit together.
_HOPELESS = (
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.UNIMPLEMENTED,
)

Call = grpc.aio.UnaryStreamCall[pb.RunRequest, pb.RunResponse]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteOptions:
    """How a host is reached.

    Attributes:
        credentials: TLS to speak with the host; None speaks in the clear.
        silence: seconds without a message, heartbeats included, after which a call has failed;
            hosts send one every 5 seconds at least.
    """

    credentials: grpc.ChannelCredentials | None = None
    silence: float = 15.0


class RemoteAgents:
    """Agents of one host, registered under their names when this is made.

    Args:
        target: where the host is, `name:port`.
        names: which of its agents; the first one registered in a process is its default.
        registry: None means `default_registry`, which the runner serves.

    Raises:
        ConfigurationError: a name is taken.
    """

    def __init__(
        self,
        target: str,
        names: Sequence[str],
        *,
        options: RemoteOptions | None = None,
        registry: AgentRegistry | None = None,
    ) -> None:
        self._host = _Host(target, options or RemoteOptions())
        chosen = default_registry if registry is None else registry
        for name in names:
            chosen.register(RemoteAgent(name, self._host))

    async def close(self) -> None:
        """End the calls that run; they fail as if the host were gone."""
        await self._host.close()


class RemoteAgent:
    """One agent of a host; see `Agent`."""

    def __init__(self, name: str, host: "_Host") -> None:
        self._name = name
        self._host = host

    @property
    def name(self) -> str:
        """Its name, here and at its host."""
        return self._name

    @property
    def description(self) -> str:
        """Nothing: what it does is for its host to say."""
        return ""

    async def run(self, turn: Turn) -> AsyncIterator[ChatEvent | Reply]:
        """Answer a turn by a call of the host; closing the iterator cancels it there.

        Raises:
            RetryableAgentError: the host is away, its call broke or fell silent, or the agent
                asked to be tried again.
            FatalAgentError: the agent refused, the host has no such agent, or one of the two
                cannot carry what the other said.
        """
        try:
            async with self._host.call(self._request(turn)) as call:
                while True:
                    message = await self._host.next_message(call)
                    match message.WhichOneof("item"):
                        case "event":
                            yield read_event(message.event)
                        case "reply":
                            yield read_reply(message.reply, turn)
                            return
                        case "failure":
                            raise read_error(message.failure)
                        case _:
                            pass  # a heartbeat, or a kind that is newer than this code
        except grpc.aio.AioRpcError as error:
            raise _translated(self._name, error) from error
        except InvalidRequestError as error:
            _log.error("agent.failed", agent=self._name, exc_info=error)
            raise FatalAgentError("The agent and its host do not fit together") from error

    def _request(self, turn: Turn) -> pb.RunRequest:
        request = pb.RunRequest(agent=self._name)
        write_turn(turn, self._name, request.turn)
        return request


class _Host:
    """The connection to one host, made when it is first needed, by the loop that needs it."""

    def __init__(self, target: str, options: RemoteOptions) -> None:
        self._target = target
        self._options = options
        self._channel: grpc.aio.Channel | None = None

    @asynccontextmanager
    async def call(self, request: pb.RunRequest) -> AsyncIterator[Call]:
        """Call `Run` for the length of the block."""
        seconds = None
        if request.turn.HasField("deadline"):
            seconds = max(0.0, request.turn.deadline.ToNanoseconds() / 1e9 - time.time())
        stub = AgentServiceStub(self._opened())
        call = stub.Run(request, timeout=seconds, wait_for_ready=True)
        try:
            yield call
        finally:
            call.cancel()

    async def next_message(self, call: Call) -> pb.RunResponse:
        """Give the next message of a call.

        Raises:
            RetryableAgentError: none came in time, or none will.
        """
        try:
            async with asyncio.timeout(self._options.silence):
                message = await call.read()
        except TimeoutError as error:
            if self._is_away():
                raise RetryableAgentError(
                    "the agent's host is away", spends_attempt=False
                ) from error
            raise RetryableAgentError("the agent's host fell silent") from error
        if not isinstance(message, pb.RunResponse):
            raise RetryableAgentError("the agent's host ended the call without an answer")
        return message

    async def close(self) -> None:
        channel, self._channel = self._channel, None
        if channel is not None:
            await channel.close()

    def _opened(self) -> grpc.aio.Channel:
        if self._channel is None:
            credentials = self._options.credentials
            self._channel = (
                grpc.aio.insecure_channel(self._target, options=_CHANNEL_OPTIONS)
                if credentials is None
                else grpc.aio.secure_channel(self._target, credentials, options=_CHANNEL_OPTIONS)
            )
        return self._channel

    def _is_away(self) -> bool:
        return self._opened().get_state() is not grpc.ChannelConnectivity.READY


def _translated(name: str, error: grpc.aio.AioRpcError) -> FatalAgentError | RetryableAgentError:
    code = error.code()
    if code in _HOPELESS:
        _log.error("agent.failed", agent=name, exc_info=error)
        return FatalAgentError("The agent cannot be run")
    overloaded = code is grpc.StatusCode.RESOURCE_EXHAUSTED
    return RetryableAgentError(
        f"the call of the agent's host ended with {code.name}", spends_attempt=not overloaded
    )
