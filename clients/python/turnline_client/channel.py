"""The gRPC channel to one server, and the methods of `turnline.v1.ChatService` on it.

Knows what goes over the wire; values and retries are others' business.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Generic, TypeVar

import grpc
import grpc.aio
from google.protobuf.message import Message

from turnline_client._wire import chat_service_pb2 as pb
from turnline_client.retry import RetryPolicy

# The package's own name on the wire, whatever the stubs here are called.
_SERVICE = "/turnline.v1.ChatService"

# A connection that died without a word is noticed within 40 s, and not taken for idle before.
_PING_MS = 20_000

# Answers may be larger than the 4 MiB that gRPC takes by itself.
_MAX_MESSAGE_BYTES = 64 * 1024 * 1024

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Token = str | Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """How the server is known.

    Attributes:
        root_certificates: PEM of the authorities trusted; None means those of the system.
    """

    root_certificates: bytes | None = None


class Unary(Generic[Request, Response]):
    """One method that takes a message and gives one."""

    def __init__(self, channel: "Channel", method: str, response: type[Response]) -> None:
        self._channel = channel
        self._call = channel.grpc.unary_unary(
            f"{_SERVICE}/{method}",
            request_serializer=_write,
            response_deserializer=response.FromString,
        )

    async def __call__(self, request: Request, timeout: float | None) -> Response:
        """Call it once.

        Raises:
            grpc.aio.AioRpcError: it ended with a status.
        """
        answer: Response = await self._call(
            request, timeout=timeout, metadata=self._channel.metadata()
        )
        return answer


class Channel:
    """A channel; belongs to the loop that runs when it is made."""

    def __init__(
        self,
        target: str,
        token: Token | None,
        tls: Tls | None,
        policy: RetryPolicy,
        *,
        allow_plaintext_token: bool,
    ) -> None:
        """Make it; connects with the first call.

        Raises:
            ValueError: a token without TLS, to a host that is not this one, and not allowed.
        """
        if token is not None and tls is None and not (allow_plaintext_token or _loopback(target)):
            text = f"a token without TLS to {target!r}: set tls, or allow_plaintext_token"
            raise ValueError(text)
        self.closed = asyncio.Event()
        self._token = token
        options = _options(policy)
        if tls is None:
            self.grpc = grpc.aio.insecure_channel(target, options)
        else:
            trusted = grpc.ssl_channel_credentials(tls.root_certificates)
            self.grpc = grpc.aio.secure_channel(target, trusted, options)
        self.chat: Unary[pb.ChatServiceChatRequest, pb.ChatServiceChatResponse] = Unary(
            self, "Chat", pb.ChatServiceChatResponse
        )
        self.submit: Unary[pb.SubmitRequest, pb.SubmitResponse] = Unary(
            self, "Submit", pb.SubmitResponse
        )
        self.get_reply: Unary[pb.GetReplyRequest, pb.GetReplyResponse] = Unary(
            self, "GetReply", pb.GetReplyResponse
        )
        self.cancel: Unary[pb.CancelRequest, pb.CancelResponse] = Unary(
            self, "Cancel", pb.CancelResponse
        )
        self._stream: grpc.aio.UnaryStreamMultiCallable[
            pb.StreamChatRequest, pb.StreamChatResponse
        ] = self.grpc.unary_stream(
            f"{_SERVICE}/StreamChat",
            request_serializer=_write,
            response_deserializer=pb.StreamChatResponse.FromString,
        )

    def stream(
        self, request: pb.StreamChatRequest, timeout: float | None
    ) -> grpc.aio.UnaryStreamCall[pb.StreamChatRequest, pb.StreamChatResponse]:
        """Begin to read a turn's events."""
        return self._stream(request, timeout=timeout, metadata=self.metadata())

    async def close(self) -> None:
        """Close the connection, and end the calls that run."""
        self.closed.set()
        await self.grpc.close(None)

    def closed_under_us(self) -> bool:
        """Whether it is this channel's end, and nobody's wish, that cancels the running task."""
        task = asyncio.current_task()
        return self.closed.is_set() and (task is None or not task.cancelling())

    def metadata(self) -> tuple[tuple[str, str], ...]:
        """Give what goes with each call."""
        if self._token is None:
            return ()
        token = self._token if isinstance(self._token, str) else self._token()
        return (("authorization", f"Bearer {token}"),)


def _loopback(target: str) -> bool:
    """Whether a target is on this machine; a name that is not surely so is not."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    for scheme in ("dns:///", "dns:", "ipv4:", "ipv6:"):
        target = target.removeprefix(scheme)
    host = target if target.endswith("]") else target.rpartition(":")[0] or target
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _options(policy: RetryPolicy) -> list[tuple[str, int]]:
    backoff, longest = int(policy.backoff * 1000), int(policy.max_backoff * 1000)
    return [
        ("grpc.keepalive_time_ms", _PING_MS),
        ("grpc.keepalive_timeout_ms", _PING_MS),
        ("grpc.max_receive_message_length", _MAX_MESSAGE_BYTES),
        # Or a channel that was cut would refuse all tries of a call before it connects again.
        ("grpc.initial_reconnect_backoff_ms", backoff),
        ("grpc.min_reconnect_backoff_ms", backoff),
        ("grpc.max_reconnect_backoff_ms", longest),
    ]


def _write(message: Message) -> bytes:
    return message.SerializeToString()
