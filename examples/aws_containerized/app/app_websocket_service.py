"""One half of the IO container: the sockets of a WebSocket API, and a route of the application."""

from typing import Any

from turnline.aws import AWSWebsocketAPI


@AWSWebsocketAPI.register("status")
def status(msg: dict[str, Any]) -> dict[str, Any]:
    return {"up": True, "who": msg["user_id"]}


runner = AWSWebsocketAPI.run

if __name__ == "__main__":
    runner()
