"""`PushService`: pushes to a user over gRPC, by the same handler as over HTTP.

Errors are raised as they are; the server that serves this gives them their status and details.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import grpc.aio
from typing_extensions import override

from turnline.errors import InvalidRequestError
from turnline.protocol.json_struct import read_struct
from turnline.push.endpoint import MAX_FRAMES, PushHandler
from turnline.push.port import Frame
from turnline.push.routes import PUSH_TOKEN_HEADER
from turnline.v1 import push_service_pb2 as pb
from turnline.v1.push_service_pb2_grpc import PushServiceServicer

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["PushService"].full_name

# Reading a larger request would hold up the loop for milliseconds.
_READ_HERE_BYTES = 16_384


class GrpcPush(PushServiceServicer):
    """Answers `PushService`."""

    def __init__(self, handler: PushHandler) -> None:
        self._handler = handler

    async def authenticate(self, _method: str, metadata: Mapping[str, str | bytes]) -> None:
        """Check the token in a call's metadata.

        Raises:
            ForbiddenError: no token is configured, so the endpoint is off.
            UnauthenticatedError: a wrong token, or none.
        """
        token = metadata.get(PUSH_TOKEN_HEADER)
        self._handler.authenticate(token if isinstance(token, str) else None)

    @override
    async def Push(
        self, request: pb.PushRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.PushResponse:
        """Push frames to each connection of a user; cancelled, it sends no more of them.

        Raises:
            InvalidRequestError: a field is missing or out of bounds.
            NotFoundError: this pod looks no users up.
            StoreUnavailableError: the connection store did not answer.
        """
        if request.ByteSize() <= _READ_HERE_BYTES:
            frames = _read(request)
        else:
            frames = await asyncio.to_thread(_read, request)
        pushed = await self._handler.frames_to_user(
            request.frames.user_id, frames, hold=request.hold
        )
        return pb.PushResponse(connections=pushed.reached, held=pushed.held)


def _read(request: pb.PushRequest) -> Sequence[Frame]:
    if not request.frames.user_id:
        raise InvalidRequestError("frames.user_id must not be empty", field="frames.user_id")
    if not 0 < len(request.frames.frames) <= MAX_FRAMES:
        raise InvalidRequestError(f"1 to {MAX_FRAMES} frames, please", field="frames.frames")
    return [
        read_struct(frame, field=f"frames.frames[{number}]")
        for number, frame in enumerate(request.frames.frames)
    ]
