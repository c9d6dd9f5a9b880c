"""The routes that a WebSocket API of API Gateway posts to, through its VPC link.

`/ws/connect`, `/ws/disconnect` and `/ws/message`, each with the socket's id in the header
`x-ak-connection-id`.  The answer to a message is the frame that answers it: the API's routes need a
route response for it to reach the client.
"""

from http import HTTPStatus

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from turnline.auth import websocket_token
from turnline.aws.bodies import body_within
from turnline.aws.sockets import SocketDesk
from turnline.aws.websocket_events import PROTOCOL_HEADER
from turnline.errors import InvalidRequestError
from turnline.frontdoor import json_response

CONNECTION_HEADER = "x-ak-connection-id"
# https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html: 128 KB a message.
MAX_FRAME_BYTES = 128 * 1024


def socket_routes(desk: SocketDesk, *, endpoint: str) -> list[BaseRoute]:
    """Make the routes; `endpoint` is where frames for the sockets are posted."""

    async def connect(request: Request) -> Response:
        offered = request.headers.get(PROTOCOL_HEADER, "")
        names = [name.strip() for name in offered.split(",") if name.strip()]
        token, subprotocol = websocket_token({**request.scope, "subprotocols": names})
        connection_id = _connection(request)
        user_id = await desk.connect(connection_id, endpoint=endpoint, token=token)
        headers = {} if subprotocol is None else {PROTOCOL_HEADER: subprotocol}
        response = json_response(HTTPStatus.OK, {"status": "SUCCESS"}, headers)
        # The socket opens by this answer, and takes frames only then.
        response.background = BackgroundTask(
            desk.give_held, connection_id, user_id, endpoint=endpoint
        )
        return response

    async def disconnect(request: Request) -> Response:
        await desk.disconnect(_connection(request))
        return json_response(HTTPStatus.OK, {"status": "SUCCESS"})

    async def message(request: Request) -> Response:
        text = await _frame(request)
        frame = await desk.message(_connection(request), text, endpoint=endpoint)
        if frame is None:
            return Response(status_code=HTTPStatus.OK)
        return json_response(HTTPStatus.OK, frame)

    return [
        Route("/ws/connect", connect, methods=["POST"]),
        Route("/ws/disconnect", disconnect, methods=["POST"]),
        Route("/ws/message", message, methods=["POST"]),
    ]


def _connection(request: Request) -> str:
    name = request.headers.get(CONNECTION_HEADER, "")
    if not name:
        raise InvalidRequestError(f"{CONNECTION_HEADER} is required", field=CONNECTION_HEADER)
    return name


async def _frame(request: Request) -> str:
    return (await body_within(request, MAX_FRAME_BYTES)).decode(errors="replace")
