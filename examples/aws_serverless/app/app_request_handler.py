"""Function `request-handler`: chat over the HTTP API, and a path of the application's own."""

from typing import Any

from turnline.aws import Lambda


@Lambda.register("/app", method="GET")
def app(_event: dict[str, Any], _context: object) -> dict[str, Any]:
    return {"name": "docs"}


handler = Lambda.handler
