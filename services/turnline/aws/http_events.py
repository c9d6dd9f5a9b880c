"""API Gateway's HTTP events as ASGI requests, and answers the other way round.  Pure.

Both formats: 2.0 of HTTP APIs and function URLs, 1.0 of REST APIs.
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from turnline.aws.environment import Event

_TEXT_TYPES = ("application/json", "application/problem+json", "text/")

Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """One request.

    Attributes:
        path: decoded or not, as API Gateway gives it, without the stage.
        query: encoded, without the question mark.
        headers: lower-case name and value, in any order.
        identity: what an authorizer of the API found out about the caller; None: none was asked.
        old_format: whether the answer goes in format 1.0.
    """

    method: str
    path: str
    query: str
    headers: Headers
    body: bytes
    client: str
    identity: Mapping[str, Any] | None
    old_format: bool

    def header(self, name: str) -> str:
        """Give a header by its lower-case name; empty if there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def with_header(self, name: str, value: str) -> "HttpRequest":
        """Give the same request with one header in place of all of its name."""
        others = [(key, old) for key, old in self.headers if key != name]
        return replace(self, headers=[*others, (name, value)])

    def scope(self) -> dict[str, Any]:
        """Give the ASGI scope."""
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "https",
            "path": self.path,
            "raw_path": self.path.encode(),
            "query_string": self.query.encode(),
            "root_path": "",
            "headers": [
                (name.encode("latin-1"), value.encode("latin-1", "replace"))
                for name, value in self.headers
            ],
            "client": (self.client, 0),
            "server": (self.header("host") or "localhost", 443),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """One answer."""

    status: int
    headers: Headers
    body: bytes

    def header(self, name: str) -> str:
        """Give a header by its lower-case name; empty if there is none."""
        return next((value for key, value in self.headers if key == name), "")

    def event(self, *, old_format: bool) -> Event:
        """Give it as Lambda returns it."""
        text = self.header("content-type").startswith(_TEXT_TYPES) or not self.body
        body = self.body.decode() if text else base64.b64encode(self.body).decode()
        answer: Event = {"statusCode": self.status, "body": body, "isBase64Encoded": not text}
        if old_format:
            many: dict[str, list[str]] = {}
            for name, value in self.headers:
                many.setdefault(name, []).append(value)
            return {**answer, "multiValueHeaders": many}
        answer["headers"] = {n: v for n, v in self.headers if n != "set-cookie"}
        if cookies := [value for name, value in self.headers if name == "set-cookie"]:
            answer["cookies"] = cookies
        return answer


def read_request(event: Event) -> HttpRequest:
    """Read an event of either format.

    Raises:
        ValueError: it is no HTTP event of API Gateway.
    """
    context: Mapping[str, Any] = event.get("requestContext") or {}
    if event.get("version") == "2.0" and "http" in context:
        return _read_new(event, context)
    if context and "httpMethod" in event:
        return _read_old(event, context)
    raise ValueError("no HTTP event of API Gateway in format 1.0 or 2.0")


def _read_new(event: Event, context: Mapping[str, Any]) -> HttpRequest:
    http = context["http"]
    headers = [(name.lower(), value) for name, value in (event.get("headers") or {}).items()]
    if event.get("cookies"):
        headers.append(("cookie", "; ".join(event["cookies"])))
    path = event.get("rawPath") or "/"
    stage = f"/{context.get('stage', '')}"
    # Every stage but $default stands before the path.
    if stage not in ("/", "/$default") and (path == stage or path.startswith(f"{stage}/")):
        path = path.removeprefix(stage) or "/"
    return HttpRequest(
        method=http["method"],
        path=path,
        query=event.get("rawQueryString") or "",
        headers=headers,
        body=_body(event),
        client=http.get("sourceIp", ""),
        identity=_identity(context),
        old_format=False,
    )


def _read_old(event: Event, context: Mapping[str, Any]) -> HttpRequest:
    many = event.get("multiValueHeaders") or {
        name: [value] for name, value in (event.get("headers") or {}).items()
    }
    query = event.get("multiValueQueryStringParameters") or event.get("queryStringParameters") or {}
    return HttpRequest(
        method=event["httpMethod"],
        path=event.get("path") or "/",
        query=urlencode(query, doseq=True),
        headers=[(name.lower(), value) for name, values in many.items() for value in values],
        body=_body(event),
        client=(context.get("identity") or {}).get("sourceIp", ""),
        identity=_identity(context),
        old_format=True,
    )


def _body(event: Event) -> bytes:
    body = event.get("body") or ""
    return base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()


def _identity(context: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Give the claims of a JWT authorizer, or what a Lambda authorizer said; None: neither."""
    authorizer = context.get("authorizer")
    if not isinstance(authorizer, dict):
        return None
    jwt = authorizer.get("jwt")
    found = (jwt.get("claims") if isinstance(jwt, dict) else None) or authorizer.get("lambda")
    if found is None and not authorizer.keys() & {"iam", "jwt", "lambda"}:
        found = authorizer.get("claims") or authorizer
    return found if isinstance(found, dict) else None
