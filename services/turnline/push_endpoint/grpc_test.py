"""Pushes over gRPC: a real client, a real server, and real pods behind it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc.aio
import pytest
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2
from grpc_health.v1.health_pb2_grpc import HealthStub
from typing_extensions import override

from turnline.config import Settings
from turnline.errors import ConfigurationError, StoreUnavailableError
from turnline.frontdoor import web_app
from turnline.hosting import Lifecycle, WebOptions, WebServer
from turnline.protocol.clock import SystemClock
from turnline.push import PUSH_TOKEN_HEADER, Frame
from turnline.push.endpoint import MAX_FRAMES, PushHandler
from turnline.push.endpoint_routes import push_routes
from turnline.push_endpoint.process import serve_push_endpoint
from turnline.store import Connection
from turnline.store.memory import MemoryConnectionOptions, MemoryConnectionStore
from turnline.testing.servers.tls import Identity, self_signed
from turnline.v1.push_pb2 import UserFrames
from turnline.v1.push_service_pb2 import PushRequest, PushResponse
from turnline.v1.push_service_pb2_grpc import PushServiceStub

TOKEN = "secret-of-the-pods-of-these-tests"
FRAMES = [
    {"n": 1, "text": "é", "push_id": "a"},
    {"n": 2.5, "deep": {"list": [None, True]}, "push_id": "b"},
]


class Store(MemoryConnectionStore):
    """Answers once it may.

    Attributes:
        asked / cancelled: set when a look-up began, and when it was cancelled.
        may_answer: cleared, look-ups wait.
        broken: raised by look-ups.
    """

    def __init__(self) -> None:
        super().__init__(MemoryConnectionOptions(), SystemClock())
        self.asked, self.cancelled = asyncio.Event(), asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.broken: Exception | None = None

    @override
    async def connections_of(self, user_id: str) -> Sequence[Connection]:
        self.asked.set()
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        if self.broken is not None:
            raise self.broken
        return await super().connections_of(user_id)


@dataclass(slots=True, kw_only=True)
class Served:
    """A push endpoint, and a client of it."""

    store: Store
    lifecycle: Lifecycle
    channel: grpc.aio.Channel
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def push(
        self, request: PushRequest, *, token: str | None = TOKEN, timeout: float | None = 10.0
    ) -> grpc.aio.UnaryUnaryCall[PushRequest, PushResponse]:
        metadata = () if token is None else ((PUSH_TOKEN_HEADER, token),)
        return PushServiceStub(self.channel).Push(request, metadata=metadata, timeout=timeout)


@asynccontextmanager
async def served(
    *, token: str | None = TOKEN, grace: float = 1.0, tls: Identity | None = None
) -> AsyncIterator[Served]:
    settings = Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0},
            "websocket_api": {
                "push_auth_token": token,
                "push_grpc_port": 0,
                "push_grpc_certificate_file": tls and str(tls.certificate),
                "push_grpc_private_key_file": tls and str(tls.key),
            },
            "execution": {"drain_grace": grace},
        }
    )
    bound: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    store, lifecycle = Store(), Lifecycle()

    async def serve(endpoint: asyncio.Future[Served]) -> None:
        await serve_push_endpoint(
            settings,
            lifecycle,
            connections=store,
            clock=SystemClock(),
            grpc_started=bound.set_result,
        )
        (await endpoint).ended.set()

    endpoint: asyncio.Future[Served] = asyncio.get_running_loop().create_future()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        tasks.create_task(serve(endpoint))
        async with _channel(await bound, tls) as channel:
            endpoint.set_result(Served(store=store, lifecycle=lifecycle, channel=channel))
            yield endpoint.result()
        lifecycle.drain()


def _channel(port: int, tls: Identity | None) -> grpc.aio.Channel:
    if tls is None:
        return grpc.aio.insecure_channel(f"127.0.0.1:{port}")
    trusted = grpc.ssl_channel_credentials(tls.certificate.read_bytes())
    return grpc.aio.secure_channel(f"localhost:{port}", trusted)


class Pod:
    """A gateway's pod, as far as pushes see it: it holds every connection it is asked for."""

    def __init__(self) -> None:
        self.got: dict[str, list[Frame]] = {}

    async def push(self, connection_id: str, frames: Sequence[Frame]) -> bool:
        self.got.setdefault(connection_id, []).extend(frames)
        return True


@asynccontextmanager
async def a_pod() -> AsyncIterator[tuple[Pod, str]]:
    """Serve a pod; give it and its endpoint."""
    pod = Pod()
    handler = PushHandler(token=TOKEN, local=pod, users=None)
    app = web_app(push_routes(handler))
    web = WebServer(app, WebOptions(host="127.0.0.1", port=0, close_seconds=1.0))
    stop = asyncio.Event()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(web.run(stop))
        await web.started.wait()
        yield pod, f"http://127.0.0.1:{web.port}"
        stop.set()


def a_push(*frames: Frame, user_id: str = "u", hold: bool = False, copies: int = 1) -> PushRequest:
    request = PushRequest(frames=UserFrames(user_id=user_id), hold=hold)
    for frame in (*(frames or FRAMES),) * copies:
        request.frames.frames.add().update(frame)
    return request


async def refusal(
    call: grpc.aio.UnaryUnaryCall[PushRequest, PushResponse],
) -> tuple[grpc.StatusCode, str, Status]:
    """What a call ends with: status, text and details."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call
    error = caught.value
    trailing = dict(error.trailing_metadata() or ())
    raw = trailing.get("grpc-status-details-bin", b"")
    assert isinstance(raw, bytes)
    return error.code(), error.details() or "", Status.FromString(raw)


def detail(status: Status, kind: Callable[[], object]) -> object:
    """The one detail of a kind; None if there is none."""
    for packed in status.details:
        message = kind()
        if packed.Unpack(message):
            return message
    return None


# --- what a push does -----------------------------------------------------------------------------


async def test_frames_reach_every_connection_on_every_pod_in_order() -> None:
    async with served() as endpoint, a_pod() as (one, one_url), a_pod() as (two, two_url):
        for connection_id, url in {"a": one_url, "b": one_url, "c": two_url}.items():
            await endpoint.store.add(
                Connection(user_id="u", connection_id=connection_id, endpoint=url)
            )

        answer = await endpoint.push(a_push(hold=True))

    assert (answer.connections, answer.held) == (3, False)
    assert one.got == {"a": FRAMES, "b": FRAMES}
    assert two.got == {"c": FRAMES}


async def test_frames_for_nobody_are_held_if_that_is_asked_for() -> None:
    async with served() as endpoint:
        answer = await endpoint.push(a_push(hold=True))

        assert (answer.connections, answer.held) == (0, True)
        assert list((await endpoint.store.held("u")).frames) == FRAMES


async def test_frames_for_nobody_are_dropped_if_holding_is_not_asked_for() -> None:
    async with served() as endpoint:
        answer = await endpoint.push(a_push(hold=False))

        assert (answer.connections, answer.held) == (0, False)
        assert (await endpoint.store.held("u")).frames == ()


async def test_a_large_push_is_read_like_a_small_one() -> None:
    async with served() as endpoint:
        large = {"text": "x" * 100_000, "push_id": "a"}
        await endpoint.push(a_push(large, hold=True))

        assert (await endpoint.store.held("u")).frames == (large,)


# --- who may push ---------------------------------------------------------------------------------


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x"])
async def test_whoever_has_not_the_token_is_refused(token: str | None) -> None:
    async with served() as endpoint:
        code, text, status = await refusal(endpoint.push(a_push(), token=token))

        assert (code, text) == (grpc.StatusCode.UNAUTHENTICATED, "invalid push token")
        assert not endpoint.store.asked.is_set()
    assert detail(status, ErrorInfo) == ErrorInfo(
        reason="unauthenticated", domain="turnline", metadata={"retry": "never"}
    )


@pytest.mark.parametrize(
    "request_", [PushRequest(), a_push({"text": "x" * 5_000_000})], ids=["empty", "too large"]
)
async def test_a_request_without_the_token_is_not_even_looked_at(request_: PushRequest) -> None:
    async with served() as endpoint:
        code, _, _ = await refusal(endpoint.push(request_, token="wrong"))

    assert code is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("token", [None, TOKEN])
async def test_without_a_configured_token_nobody_may_push(token: str | None) -> None:
    async with served(token=None) as endpoint:
        code, text, _ = await refusal(endpoint.push(a_push(), token=token))

    assert code is grpc.StatusCode.PERMISSION_DENIED
    assert "websocket_api.push_auth_token" in text


# --- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (PushRequest(), "frames.user_id"),
        (a_push(user_id=""), "frames.user_id"),
        (PushRequest(frames=UserFrames(user_id="u")), "frames.frames"),
        (a_push({}, copies=MAX_FRAMES + 1), "frames.frames"),
        (a_push({"n": 1}, {"n": float("nan")}), "frames.frames[1]"),
    ],
    ids=["nothing", "no user", "no frames", "too many frames", "no number"],
)
async def test_a_wrong_field_is_named(request_: PushRequest, field: str) -> None:
    async with served() as endpoint:
        code, _, status = await refusal(endpoint.push(request_))

    bad = detail(status, BadRequest)
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert status.code == code.value[0]
    assert isinstance(bad, BadRequest)
    assert [violation.field for violation in bad.field_violations] == [field]


async def test_too_large_a_request_is_refused() -> None:
    async with served() as endpoint:
        code, _, _ = await refusal(endpoint.push(a_push({"text": "x" * 5_000_000})))

    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_store_that_is_away_is_unavailable_with_a_pause_to_keep() -> None:
    async with served() as endpoint:
        endpoint.store.broken = StoreUnavailableError("No answer", retry_after=1.5)
        call = endpoint.push(a_push())
        code, text, status = await refusal(call)
        trailing = dict(await call.trailing_metadata())

    retry = detail(status, RetryInfo)
    assert (code, text) == (grpc.StatusCode.UNAVAILABLE, "No answer")
    assert isinstance(retry, RetryInfo)
    assert retry.retry_delay.ToMilliseconds() == 1500
    assert trailing["grpc-retry-pushback-ms"] == "1500"


async def test_what_nobody_expected_is_an_internal_error_without_details() -> None:
    async with served() as endpoint:
        endpoint.store.broken = RuntimeError("password in a text")
        code, text, status = await refusal(endpoint.push(a_push()))

    assert (code, text) == (grpc.StatusCode.INTERNAL, "Internal error")
    assert "password" not in str(status)


# --- callers who go -------------------------------------------------------------------------------


async def test_a_push_past_its_callers_deadline_is_stopped() -> None:
    async with served() as endpoint:
        endpoint.store.may_answer.clear()
        code, _, _ = await refusal(endpoint.push(a_push(), timeout=0.2))

        await endpoint.store.cancelled.wait()
    assert code is grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_push_whose_caller_cancels_is_stopped() -> None:
    async with served() as endpoint:
        endpoint.store.may_answer.clear()
        call = endpoint.push(a_push())
        await endpoint.store.asked.wait()
        call.cancel()

        await endpoint.store.cancelled.wait()


# --- its life -------------------------------------------------------------------------------------


async def test_a_running_push_ends_before_the_process_does() -> None:
    async with served(grace=10.0) as endpoint:
        endpoint.store.may_answer.clear()
        call = endpoint.push(a_push(hold=True))
        await endpoint.store.asked.wait()
        await draining(endpoint)
        late = await refusal(endpoint.push(a_push()))
        endpoint.store.may_answer.set()

        assert (await call).held
        async with asyncio.timeout(30):
            await endpoint.ended.wait()
    code, _, status = late
    assert code is grpc.StatusCode.UNAVAILABLE
    assert isinstance(info := detail(status, ErrorInfo), ErrorInfo)
    assert info.reason == "draining"


async def draining(endpoint: Served) -> None:
    """Drain, and wait until the server takes nothing new."""
    watch = HealthStub(endpoint.channel).Watch(health_pb2.HealthCheckRequest())
    assert (await anext(aiter(watch))).status == health_pb2.HealthCheckResponse.SERVING
    endpoint.lifecycle.drain()
    assert (await anext(aiter(watch))).status == health_pb2.HealthCheckResponse.NOT_SERVING


async def test_a_push_that_outlasts_the_grace_is_told_to_come_back() -> None:
    async with served(grace=0.5) as endpoint:
        endpoint.store.may_answer.clear()
        call = endpoint.push(a_push())
        await endpoint.store.asked.wait()
        endpoint.lifecycle.drain()
        code, _, status = await refusal(call)

        async with asyncio.timeout(30):
            await endpoint.ended.wait()
    info = detail(status, ErrorInfo)
    assert code is grpc.StatusCode.UNAVAILABLE
    assert isinstance(info, ErrorInfo)
    assert info.reason == "draining"


async def test_watchers_of_the_health_do_not_hold_up_the_end() -> None:
    async with served(grace=15.0) as endpoint:
        await draining(endpoint)

        async with asyncio.timeout(30):
            await endpoint.ended.wait()


@pytest.mark.parametrize("service", ["", "turnline.v1.PushService"])
async def test_its_health_can_be_asked_for_without_a_token(service: str) -> None:
    async with served() as endpoint:
        answer = await HealthStub(endpoint.channel).Check(
            health_pb2.HealthCheckRequest(service=service)
        )

    assert answer.status == health_pb2.HealthCheckResponse.SERVING


# --- what it is served with -----------------------------------------------------------------------


async def test_with_a_certificate_it_is_served_over_tls(tmp_path: Path) -> None:
    async with served(tls=self_signed(tmp_path)) as endpoint:
        answer = await endpoint.push(a_push(hold=True))

    assert answer.held


async def refused(**websocket_api: object) -> str:
    """The fault of settings that it does not start with."""
    settings = Settings.model_validate(
        {
            "api": {"host": "127.0.0.1", "port": 0},
            "websocket_api": {"push_auth_token": TOKEN, "push_grpc_port": 0, **websocket_api},
        }
    )
    with pytest.raises(ConfigurationError) as caught:
        await serve_push_endpoint(settings, Lifecycle(), connections=Store(), clock=SystemClock())
    [fault] = caught.value.faults
    return fault


async def test_a_certificate_and_a_key_that_do_not_fit_are_a_fault(tmp_path: Path) -> None:
    tls, other = self_signed(tmp_path), self_signed(tmp_path, "other")
    certificate, key = "push_grpc_certificate_file", "push_grpc_private_key_file"

    alone = await refused(**{certificate: str(tls.certificate)})
    missing = await refused(**{certificate: str(tls.certificate), key: str(tmp_path / "none")})
    no_pair = await refused(**{certificate: str(tls.certificate), key: str(other.key)})

    assert alone.startswith(f"websocket_api.{key}: is not set, but websocket_api.{certificate} is")
    assert missing.startswith(f"websocket_api.{key}: ")
    assert "cannot be read: No such file" in missing
    assert "are no pair in PEM (KEY_VALUES_MISMATCH)" in no_pair


async def test_a_port_in_use_is_a_fault_that_names_its_setting() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()

        fault = await refused(push_grpc_port=taken.getsockname()[1])

    assert "websocket_api.push_grpc_port" in fault
