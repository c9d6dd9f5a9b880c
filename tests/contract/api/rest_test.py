"""Every route answers as docs/api/openapi.yaml says, in every mode and with every error."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest

from contract.api.answers import events_in, misfits
from contract.api.documents import document
from turnline.errors import Code
from turnline.request_handler.rig import Rig, RigOptions, TokenIsUser, open_rig, serve

CHAT = "/api/v1/chat"
MULTIPART = "/api/v1/chat-multipart"
EVENTS = {"accept": "text/event-stream"}
BODY = {"prompt": "hello", "session_id": "s1"}
DOCUMENT = document("openapi.yaml")


class Front:
    """The routes on a port of this machine, whose answers are held against the document."""

    def __init__(self, rig: Rig, client: httpx.AsyncClient) -> None:
        self.rig = rig
        self._client = client

    async def ask(
        self, method: str = "POST", path: str = CHAT, **request: object
    ) -> httpx.Response:
        """Send a request; the answer must be in the document."""
        answer = await self._client.request(method, path, **request)  # type: ignore[arg-type]  # passed on as it is
        assert misfits(DOCUMENT, answer) == []
        return answer

    async def refused(self, *codes: Code, **request: object) -> None:
        """Send a request that must be answered by an error with one of the codes."""
        answer = await self.ask(**request)  # type: ignore[arg-type]  # passed on as it is
        assert answer.json()["detail"]["code"] in codes

    async def half_a_body(self) -> httpx.Response:
        """Send less than was announced, and wait."""
        url = self._client.base_url
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(f"POST {CHAT} HTTP/1.1\r\nhost: t\r\ncontent-length: 9\r\n\r\n{{".encode())
        status = int((await reader.readline()).split()[1])
        head = (await reader.readuntil(b"\r\n\r\n")).decode().splitlines()
        headers = dict(line.lower().split(": ", 1) for line in head if line)
        body = await reader.readexactly(int(headers["content-length"]))
        writer.close()
        request = httpx.Request("POST", f"{url}{CHAT}")
        return httpx.Response(status, headers=headers, content=body, request=request)


@asynccontextmanager
async def front(**options: object) -> AsyncIterator[Front]:
    given = RigOptions(**options)  # type: ignore[arg-type]  # passed on as they are
    async with open_rig(given) as rig, serve(rig) as client:
        yield Front(rig, client)


async def test_answers_of_every_mode_are_as_documented() -> None:
    async with front() as at:
        whole = await at.ask(json=BODY)
        accepted = await at.ask(json=BODY, headers={"prefer": "respond-async"})
        waited = await at.ask(
            json={**BODY, "prompt": "status=202"}, headers={"prefer": "respond-async, wait=5"}
        )
        stream = await at.ask(json={**BODY, "prompt": "chunks=3"}, headers=EVENTS)
        form = await at.ask(
            path=MULTIPART,
            data=BODY,
            files={"files": ("a.txt", b"text"), "images": ("a.png", b"png")},
        )
        agents = await at.ask("GET", "/api/v1/agents")
        served = await at.ask("GET", "/openapi.json")

    statuses = [answer.status_code for answer in (whole, accepted, waited, stream, form, agents)]
    assert statuses == [200, 202, 202, 200, 200, 200]
    assert len(events_in(stream.text)) == 4
    assert served.json()["openapi"] == "3.1.0"


async def test_what_is_read_later_is_as_documented() -> None:
    async with front() as at:
        await at.ask(json={**BODY, "prompt": "chunks=3", "request_id": "r"})
        at_r = {"request_id": "r", "session_id": "s1"}
        read = await at.ask("GET", params=at_r)
        joined = await at.ask("GET", params=at_r, headers={**EVENTS, "last-event-id": "1-1"})
        done = await at.ask("DELETE", params=at_r)

    assert read.json()["result"] == "w0 w1 w2 "
    assert [place for place, _ in events_in(joined.text)] == ["1-2", "1-2"]
    assert done.json()["status"] == "DONE"


async def test_a_cancelled_turn_is_answered_as_documented() -> None:
    async with front(running=False) as at:
        await at.ask(json={**BODY, "request_id": "r"}, headers={"prefer": "respond-async"})
        queued = await at.ask("DELETE", params={"request_id": "r"})
        found = await at.ask("GET", params={"request_id": "r"})

    assert queued.json()["status"] == "CANCELLED"
    assert found.json()["detail"]["code"] == "turn_cancelled"


@pytest.mark.parametrize("status", [201, 203, 302, 404, 418, 429, 502])
async def test_statuses_that_an_agent_chose_are_as_documented(status: int) -> None:
    prompt = f"status={status}" if status < 400 else f"fail status={status}"
    async with front() as at:
        await at.ask(json={**BODY, "prompt": prompt, "request_id": "r"})
        await at.ask("GET", params={"request_id": "r"})


async def test_a_failed_turn_is_told_as_documented_in_every_mode() -> None:
    failing = {**BODY, "prompt": "chunks=2 fail", "request_id": "r"}
    async with front() as at:
        await at.refused(Code.AGENT_FAILED, json=failing)
        await at.refused(Code.AGENT_FAILED, method="GET", params={"request_id": "r"})
        stream = await at.ask("GET", params={"request_id": "r"}, headers=EVENTS)

    _, end = events_in(stream.text)[-1]
    assert isinstance(end, dict)
    assert end["code"] == "agent_failed"


async def test_faults_of_a_caller_are_told_as_documented() -> None:
    async with front(max_body_bytes=5_000, knows_agent=lambda name: name != "nobody") as at:
        await at.refused(Code.INVALID_REQUEST, json={"prompt": "x"})
        await at.refused(Code.INVALID_REQUEST, json={**BODY, "prompt": ""})
        await at.refused(Code.MALFORMED_BODY, content=b"{")
        await at.refused(Code.UNKNOWN_AGENT, json={**BODY, "agent": "nobody"})
        await at.refused(Code.PAYLOAD_TOO_LARGE, json={**BODY, "prompt": "x" * 5_001})
        await at.ask(json={**BODY, "request_id": "r"})
        await at.refused(
            Code.REQUEST_ID_REUSED, json={**BODY, "prompt": "other", "request_id": "r"}
        )
        await at.refused(Code.INVALID_REQUEST, method="GET")
        await at.refused(Code.NOT_FOUND, method="GET", params={"request_id": "none"})
        await at.refused(Code.INVALID_REQUEST, method="DELETE")
        await at.refused(Code.NOT_FOUND, method="DELETE", params={"request_id": "none"})
        await at.refused(Code.INVALID_REQUEST, path=MULTIPART, data={"prompt": "x"})


async def test_a_body_that_does_not_come_is_answered_as_documented() -> None:
    async with front() as at:
        answer = await at.half_a_body()

    assert misfits(DOCUMENT, answer) == []
    assert answer.status_code == 408


async def test_full_queues_are_told_as_documented() -> None:
    later = {"prefer": "respond-async"}
    async with front(running=False, max_messages=2, max_messages_per_session=1) as at:
        await at.ask(json=BODY, headers=later)
        await at.refused(Code.SESSION_QUEUE_FULL, json=BODY, headers=later)
        await at.ask(json={**BODY, "session_id": "s2"}, headers=later)
        await at.refused(Code.QUEUE_FULL, json={**BODY, "session_id": "s3"}, headers=later)


async def test_an_answer_that_is_not_there_yet_is_told_as_documented() -> None:
    async with front(running=False, reply_budget=0.1) as at:
        await at.refused(Code.TURN_DEADLINE_EXCEEDED, json={**BODY, "request_id": "r"})
        await at.ask(json={**BODY, "request_id": "r2"}, headers={"prefer": "respond-async"})
        await at.refused(Code.REPLY_NOT_READY, method="GET", params={"request_id": "r2"})


async def test_a_process_that_closes_says_so_as_documented() -> None:
    async with front() as at:
        at.rig.accepting = False
        await at.refused(Code.DRAINING, json=BODY)


async def test_a_fault_of_ours_is_told_as_documented() -> None:
    async with front() as at:
        del at.rig.handler._admission
        await at.refused(Code.INTERNAL, json=BODY)


@pytest.mark.parametrize("token", [None, "Bearer nonsense", "Bearer old-u"])
async def test_whoever_has_no_token_is_told_as_documented(token: str | None) -> None:
    headers = {"authorization": token} if token else {}
    async with front(validator=TokenIsUser()) as at:
        await at.refused(Code.UNAUTHENTICATED, json=BODY, headers=headers)
        await at.refused(Code.UNAUTHENTICATED, method="GET", headers=headers)
        await at.refused(Code.UNAUTHENTICATED, method="DELETE", headers=headers)
        await at.refused(Code.UNAUTHENTICATED, path=MULTIPART, headers=headers)
        await at.refused(Code.UNAUTHENTICATED, method="GET", path="/api/v1/agents", headers=headers)


def test_an_answer_that_is_not_documented_is_seen() -> None:
    request = httpx.Request("POST", f"http://turnline{CHAT}")

    assert misfits(DOCUMENT, httpx.Response(418, json={"teapot": True}, request=request))
    assert misfits(
        DOCUMENT, httpx.Response(200, json={"result": "x", "session_id": "s"}, request=request)
    )
    assert misfits(DOCUMENT, httpx.Response(200, text="x", request=request))
