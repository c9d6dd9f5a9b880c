"""Function `ws-connection-handler`: the WebSocket API, and a route of the application's own."""

from typing import Any

from turnline.aws import WebsocketConnectionHandler


@WebsocketConnectionHandler.register("status")
def status(msg: dict[str, Any]) -> dict[str, Any]:
    return {"up": True, "who": msg["user_id"]}


handler = WebsocketConnectionHandler.handler
