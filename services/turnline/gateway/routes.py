"""The WebSocket endpoint: opens a socket, and hands it to the reception."""

from starlette.types import Receive, Scope, Send

from turnline.auth import websocket_token
from turnline.errors import TurnlineError
from turnline.gateway.asgi import AsgiSocket
from turnline.gateway.reception import Guest, Reception, refusal_code

SOCKET_PATH = "/ws"


class SocketEndpoint:
    """Serves client sockets; an ASGI application."""

    def __init__(self, reception: Reception) -> None:
        self._reception = reception

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket from its handshake to its end."""
        client = AsgiSocket(scope, receive, send)
        guest = await self._welcome(client, scope)
        if guest is None:
            return
        # With its headers the scope is a good part of what an idle socket costs.
        scope.clear()
        await self._reception.hold(client, guest)

    async def _welcome(self, client: AsgiSocket, scope: Scope) -> Guest | None:
        """Open a socket and learn whose it is; None, and it is closed, if it may not stay."""
        # Accepted first, so that a browser can read why it was refused (guide).
        token, subprotocol = websocket_token(scope)
        await client.accept(subprotocol)
        try:
            return await self._reception.welcome(token)
        except TurnlineError as error:
            await client.close(refusal_code(error), error.message)
            return None
