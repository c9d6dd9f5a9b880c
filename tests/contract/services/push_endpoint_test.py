"""The push endpoint alone: pushes over HTTP and gRPC in, pushes to the pods of a user out."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import grpc.aio
import httpx
import pytest
import pytest_asyncio
from google.protobuf.json_format import ParseDict

from chaos.processes.topology import PUSH_TOKEN
from contract.services.packages import Service
from contract.services.stage import Frame, Stage, nameless, stage
from e2e.process import Server
from turnline.push import PUSH_ID, PUSH_TOKEN_HEADER
from turnline.v1 import push_pb2, push_service_pb2
from turnline.v1.push_service_pb2_grpc import PushServiceStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

TO_USER = "/internal/push/user"


@dataclass(slots=True)
class At:
    stage: Stage
    server: Server

    async def push(self, body: object, token: str = PUSH_TOKEN) -> httpx.Response:
        async with self.server.client() as client:
            return await client.post(TO_USER, json=body, headers={PUSH_TOKEN_HEADER: token})

    async def held(self, user: str) -> list[Frame]:
        """Give what is held for a user, without names."""
        held = await self.stage.stores.connections.held(user)
        return [nameless(frame) for frame in held.frames]

    async def push_over_grpc(
        self, user: str, *frames: Frame, hold: bool = False, token: str = PUSH_TOKEN
    ) -> push_service_pb2.PushResponse:
        named = push_pb2.UserFrames(user_id=user)
        for frame in frames:
            ParseDict(frame, named.frames.add())
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.server.grpc_port}") as channel:
            return await PushServiceStub(channel).Push(
                push_service_pb2.PushRequest(frames=named, hold=hold),
                metadata=((PUSH_TOKEN_HEADER, token),),
                timeout=20,
            )


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def at(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[At]:
    own = {"push_grpc_port": 0}
    async with (
        stage(tmp_path_factory.mktemp("push_endpoint")) as opened,
        opened.playing(Service.PUSH_ENDPOINT, websocket_api=own) as server,
    ):
        yield At(opened, server)


async def test_frames_reach_every_pod_of_a_user_in_order(at: At) -> None:
    async with at.stage.pod("ann") as one, at.stage.pod("ann") as two:
        answer = await at.push({"user_id": "ann", "messages": [{"n": 1}, {"n": 2}]})

        frames, same = [[await pod.frame(), await pod.frame()] for pod in (one, two)]

    assert [nameless(frame) for frame in frames] == [{"n": 1}, {"n": 2}]
    assert frames == same
    assert len({frame[PUSH_ID] for frame in frames}) == 2
    assert answer.json() == {"status": "SUCCESS", "reached": 2, "held": False}


async def test_frames_for_a_user_who_is_away_are_held(at: At) -> None:
    answer = await at.push({"user_id": "bob", "message": {"n": 1}})

    assert answer.json() == {"status": "SUCCESS", "reached": 0, "held": True}
    assert await at.held("bob") == [{"n": 1}]


async def test_a_push_over_grpc_reaches_the_same_pods(at: At) -> None:
    async with at.stage.pod("carl") as pod:
        pushed = await at.push_over_grpc("carl", {"n": 1}, {"n": 2})

        frames = [await pod.frame(), await pod.frame()]

    assert [nameless(frame) for frame in frames] == [{"n": 1}, {"n": 2}]
    assert (pushed.connections, pushed.held) == (1, False)


async def test_a_push_over_grpc_is_held_where_it_says_so(at: At) -> None:
    pushed = await at.push_over_grpc("dan", {"n": 1}, hold=True)

    assert (pushed.connections, pushed.held) == (0, True)
    assert await at.held("dan") == [{"n": 1}]


async def test_whoever_has_not_the_token_is_refused_over_both(at: At) -> None:
    answer = await at.push({"user_id": "ann", "message": {}}, token="wrong")
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await at.push_over_grpc("ann", {"n": 1}, token="wrong")

    assert (answer.status_code, answer.json()["detail"]["code"]) == (401, "unauthenticated")
    assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_a_wrong_body_is_refused_by_its_field(at: At) -> None:
    answer = await at.push({"user_id": "ann"})

    assert (answer.status_code, answer.json()["detail"]["field"]) == (400, "message")
