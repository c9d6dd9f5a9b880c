"""POST /api/v1/chat-multipart."""

from collections.abc import AsyncIterator

import httpx
import pytest

from turnline.protocol import Attachment, ChatRequest
from turnline.request_handler.rig import Rig, RigOptions, open_rig

PATH = "/api/v1/chat-multipart"
FIELDS = {"prompt": "look", "session_id": "s1"}


async def post(rig: Rig, data: dict[str, str], files: list[tuple[str, object]]) -> httpx.Response:
    return await rig.client.post(PATH, data=data, files=files)  # type: ignore[arg-type]  # httpx's own forms of files


def request_of(rig: Rig) -> ChatRequest:
    payload = rig.envelopes[0].payload
    assert isinstance(payload, ChatRequest)
    return payload


async def test_files_and_images_reach_the_agent_with_names_and_types() -> None:
    async with open_rig() as rig:
        answer = await post(
            rig,
            {**FIELDS, "agent": "echo"},
            [
                ("files", ("a.csv", b"1,2", "text/csv")),
                ("files", ("b.txt", b"\x00\xff", None)),
                ("images", ("c.png", b"png", "image/png")),
            ],
        )

    request = request_of(rig)
    assert (answer.status_code, answer.json()["result"]) == (200, "echo: look")
    assert list(request.files) == [
        Attachment(data="MSwy", name="a.csv", mime_type="text/csv"),
        Attachment(data="AP8=", name="b.txt", mime_type="text/plain"),
    ]
    assert list(request.images) == [Attachment(data="cG5n", name="c.png", mime_type="image/png")]
    assert request.agent == "echo"


async def test_a_form_without_files_will_do() -> None:
    async with open_rig() as rig:
        plain = await rig.client.post(PATH, data=FIELDS)

    assert plain.status_code == 200


async def test_other_fields_reach_the_agent_as_they_would_from_json() -> None:
    async with open_rig() as rig:
        await post(rig, {**FIELDS, "color": "red"}, [("files", ("a.txt", b"x"))])

    assert request_of(rig).extra == {"color": "red"}


@pytest.mark.parametrize("headers", [{"Accept": "text/event-stream"}, {"Prefer": "respond-async"}])
async def test_callers_may_prefer_another_way_here_too(headers: dict[str, str]) -> None:
    async with open_rig() as rig:
        answer = await rig.client.post(PATH, data=FIELDS, headers=headers)

    assert (answer.status_code, answer.headers["content-type"]) in (
        (200, "text/event-stream; charset=utf-8"),
        (202, "application/json"),
    )


async def test_a_file_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    async with open_rig(RigOptions(max_file_bytes=1000)) as rig:
        at = await post(rig, FIELDS, [("files", ("a", b"x" * 1000))])
        over = await post(rig, FIELDS, [("files", ("a", b"x" * 1001))])

    assert (at.status_code, over.status_code) == (200, 413)
    assert over.json()["detail"]["code"] == "payload_too_large"


@pytest.mark.parametrize("chunked", [False, True])
async def test_many_files_together_are_bounded_too(chunked: bool) -> None:
    files = [("files", (f"f{i}", b"x" * 900)) for i in range(3)]
    form = httpx.Request("POST", "http://t", data=FIELDS, files=files)
    content = form.read()

    async def parts() -> AsyncIterator[bytes]:
        for start in range(0, len(content), 500):
            yield content[start : start + 500]

    options = RigOptions(max_file_bytes=1000, max_body_bytes=1000)
    async with open_rig(options) as rig:
        answer = await rig.client.post(
            PATH,
            content=parts() if chunked else content,
            headers={"Content-Type": form.headers["content-type"]},
        )

    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "content_type"),
    [
        (b"", "multipart/form-data"),
        (b"nonsense", "multipart/form-data; boundary=b"),
        (b"--b\r\n\r\nx\r\n--b--\r\n", "multipart/form-data; boundary=b"),
        (
            b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--\r\n",
            "multipart/form-data; boundary=b",
        ),
        (b"{}", "application/json"),
        (b"x", ""),
    ],
)
async def test_what_is_no_form_is_422(content: bytes, content_type: str) -> None:
    async with open_rig() as rig:
        headers = {"Content-Type": content_type} if content_type else {}
        answer = await rig.client.post(PATH, content=content, headers=headers)

    assert (answer.status_code, answer.json()["detail"]["code"]) == (422, "malformed_body")


async def test_too_many_files_are_422() -> None:
    async with open_rig() as rig:
        answer = await post(rig, FIELDS, [("files", (f"f{i}", b"x")) for i in range(33)])

    assert answer.status_code == 422


@pytest.mark.parametrize(
    ("data", "files"),
    [
        ({**FIELDS, "files": "text"}, []),
        (FIELDS, [("prompt", ("a.txt", b"x"))]),
    ],
)
async def test_a_part_must_be_what_its_name_says(
    data: dict[str, str], files: list[tuple[str, object]]
) -> None:
    async with open_rig() as rig:
        answer = await post(rig, data, files)

    assert answer.status_code == 400


async def test_text_that_is_not_valid_is_no_500() -> None:
    part = b'--b\r\nContent-Disposition: form-data; name="prompt"\r\n\r\n\xff\xfe\r\n'
    session = b'--b\r\nContent-Disposition: form-data; name="session_id"\r\n\r\ns\r\n--b--\r\n'
    async with open_rig() as rig:
        answer = await rig.client.post(
            PATH,
            content=part + session,
            headers={"Content-Type": "multipart/form-data; boundary=b"},
        )

    assert answer.status_code in (200, 400, 422)
