"""What the guide's Lambda router answers where no answer has come: NOT_FOUND, under a 200.  Pure.

Elsewhere the same is a 504 (a caller who waited) or a 404 (a poll); ADR 0014 says why not here.
"""

from typing import Any

import orjson

from turnline.aws.http_events import HttpAnswer, HttpRequest
from turnline.errors import Code

NOT_FOUND = "NOT_FOUND"


def in_routers_words(request: HttpRequest, answer: HttpAnswer) -> HttpAnswer:
    """Give the answer as the guide's Lambda router has it; most stay as they are."""
    if answer.status not in (404, 504):
        return answer
    detail = _detail(answer.body)
    polled = request.method in ("GET", "HEAD") and answer.status == 404
    waited = request.method == "POST" and answer.status == 504
    if polled and detail.get("error") == NOT_FOUND:
        body = detail
    elif waited and detail.get("code") == Code.TURN_DEADLINE_EXCEEDED:
        body = {**detail, "error": NOT_FOUND, "message": detail.get("error", "")}
    else:
        return answer
    said = orjson.dumps({"status": NOT_FOUND, **body, "detail": detail})
    kept = [(name, value) for name, value in answer.headers if name != "content-length"]
    return HttpAnswer(
        status=200,
        headers=[*kept, ("content-length", str(len(said)))],
        body=b"" if request.method == "HEAD" else said,
    )


def _detail(body: bytes) -> dict[str, Any]:
    try:
        detail = orjson.loads(body).get("detail")
    except (orjson.JSONDecodeError, AttributeError):
        return {}
    return detail if isinstance(detail, dict) else {}
