"""Errors as HTTP answers: one shape on every route of every service."""

import math
from collections.abc import Mapping

import orjson
from starlette.responses import Response

from turnline.errors import Code, TurnlineError
from turnline.frontdoor.frames import error_detail
from turnline.protocol import Failure


def error_response(
    error: TurnlineError,
    *,
    session_id: str = "",
    request_id: str = "",
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Answer with an error: status from the failure table, `{"detail": {...}}`, Retry-After."""
    detail = error_detail(
        Failure.from_error(error), session_id=session_id, request_id=request_id
    )
    return Response(
        orjson.dumps({"detail": detail}),
        status_code=error.meaning.http_status,
        media_type="application/json",
        headers={**_standard_headers(error), **(headers or {})},
    )


def _standard_headers(error: TurnlineError) -> dict[str, str]:
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(error.retry_after)))
    if error.code is Code.UNAUTHENTICATED:
        headers["WWW-Authenticate"] = "Bearer"
    return headers
