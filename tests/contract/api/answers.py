"""Whether HTTP answers are as an OpenAPI document says."""

import json
import re

import httpx

from contract.api.documents import Document, faults


def misfits(of: Document, answer: httpx.Response) -> list[str]:
    """Say how an answer differs from what a document says of it; empty where it does not."""
    operation = of["paths"][_path_of(of, answer.request.url.path)][answer.request.method.lower()]
    status, own = str(answer.status_code), f"{answer.status_code // 100}XX"
    if (said := operation["responses"].get(status, operation["responses"].get(own))) is None:
        return [f"status {status} is not in the document"]
    kind = answer.headers.get("content-type", "").partition(";")[0]
    if kind not in said["content"]:
        return [f"content type {kind!r} is not in the document of {status}"]
    media = said["content"][kind]
    if kind == "application/json":
        return faults(of, media["schema"], answer.json())
    if kind == "text/plain":
        return faults(of, media["schema"], answer.text)
    return [
        fault
        for place, data in events_in(answer.text)
        for fault in (
            *faults(of, media["x-event-id"], place),
            *faults(of, media["x-event-data"], data),
        )
    ]


def events_in(text: str) -> list[tuple[str, object]]:
    """Read an event stream into ids and data."""
    found: list[tuple[str, object]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] not in ":")
        if "data" in fields:
            found.append((fields["id"], json.loads(fields["data"])))
    return found


def _path_of(of: Document, path: str) -> str:
    """Give the path of the document, with its parameters, that a path is one of."""
    [found] = [
        template
        for template in of["paths"]
        if re.fullmatch(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(template)), path)
    ]
    return str(found)
