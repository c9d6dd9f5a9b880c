"""A host's side of `AgentService`, for agents written in Python."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

import grpc.aio
from typing_extensions import override

from turnline.agent.answers import AgentContractError
from turnline.agent.port import Agent, AgentError, Reply, Turn
from turnline.agent.registry import AgentRegistry
from turnline.agent.remote.messages import read_turn, write_error, write_reply
from turnline.errors import InvalidRequestError, UnknownAgentError
from turnline.protocol import ChatEvent
from turnline.protocol.messages import write_event
from turnline.telemetry import get_logger
from turnline.v1 import agent_service_pb2 as pb
from turnline.v1.agent_service_pb2_grpc import AgentServiceServicer

_log = get_logger("agent")

HEARTBEAT_SECONDS = 5.0

Context = grpc.aio.ServicerContext[Any, Any]
Item = ChatEvent | Reply


class AgentHost(AgentServiceServicer):
    """Runs the agents of a registry for runners elsewhere.

        add_AgentServiceServicer_to_server(AgentHost(default_registry), server)

    Args:
        heartbeat: seconds of silence after which a sign of life is sent; runners bear 15.
    """

    def __init__(self, agents: AgentRegistry, *, heartbeat: float = HEARTBEAT_SECONDS) -> None:
        self._agents = agents
        self._heartbeat = heartbeat

    @override
    async def Run(self, request: pb.RunRequest, context: Context) -> AsyncIterator[pb.RunResponse]:
        """Run one turn; cancelling the call stops its agent."""
        try:
            agent, turn = self._agents.get(request.agent), read_turn(request.turn)
        except UnknownAgentError:
            await context.abort(grpc.StatusCode.NOT_FOUND, "no agent of this name")
        except InvalidRequestError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, error.message)
        try:
            async with aclosing(self._items(agent, turn)) as items:
                async for item in items:
                    yield _response(item, turn)
        except Exception as error:  # noqa: BLE001 - other people's code; it is told to the runner
            if not isinstance(error, AgentError) or isinstance(error, AgentContractError):
                _log.error("agent.failed", agent=agent.name, exc_info=error)
            response = pb.RunResponse()
            write_error(error, response.failure)
            yield response

    @override
    async def ListAgents(
        self, request: pb.ListAgentsRequest, context: Context
    ) -> pb.ListAgentsResponse:
        """Say which agents there are, in the order registered."""
        response = pb.ListAgentsResponse()
        for name in self._agents.names():
            agent = self._agents.get(name)
            response.agents.add(name=agent.name, description=agent.description)
        return response

    async def _items(self, agent: Agent, turn: Turn) -> AsyncGenerator[Item | None, None]:
        """Give what an agent says, up to its reply, and None for each silence."""
        said = agent.run(turn)
        step: asyncio.Task[Item] | None = None
        try:
            while True:
                # A task, because it outlives the wait for it; ended below.
                step = asyncio.ensure_future(_next(said))  # noqa: TID251
                while not (await asyncio.wait([step], timeout=self._heartbeat))[0]:
                    yield None
                item = step.result()
                yield item
                if isinstance(item, Reply):
                    return
        except StopAsyncIteration:
            raise AgentContractError(agent.name, "gave no answer") from None
        finally:
            turn.cancelled.set()
            if step is not None and not step.done():
                step.cancel()
                await asyncio.wait([step])
            if (close := getattr(said, "aclose", None)) is not None:
                await close()


async def _next(items: AsyncIterator[Item]) -> Item:
    return await anext(items)


def _response(item: Item | None, turn: Turn) -> pb.RunResponse:
    response = pb.RunResponse()
    match item:
        case None:
            response.heartbeat.SetInParent()
        case Reply():
            write_reply(item, turn, response.reply)
        case _:
            write_event(item, response.event)
    return response
