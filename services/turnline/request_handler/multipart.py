"""Chat requests as HTML forms: text fields, and files as parts.

Gives the same object a JSON body would, with files base64-encoded, so that everything behind it
knows one kind of request.  Names of fields and parts are the guide's (`prompt`, `session_id`,
`agent`, `files`, `images`); other text fields reach the agent like other keys of a JSON body.
"""

import asyncio
import base64
import mimetypes
from collections.abc import Mapping
from typing import Any

from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Message, Receive

from turnline.errors import InvalidRequestError, PayloadTooLargeError
from turnline.request_handler.body import BodyLimits, malformed, refuse_length, too_large

_FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
_DATA_KEYS = {"files": "file_data", "images": "image_data"}
_MAX_FILES = 32
_MAX_FIELDS = 64
_UNKNOWN_TYPE = "application/octet-stream"


async def read_form(
    headers: Mapping[str, str], receive: Receive, limits: BodyLimits
) -> dict[str, Any]:
    """Read a form into the object its JSON body would be.

    The body may be `limits.max_file_bytes` larger than a JSON body; one file over that size is
    refused whatever the rest.

    Raises:
        InvalidRequestError: MALFORMED_BODY, it is no form; or a part is not what its name says.
        PayloadTooLargeError: a file or the whole body is too large.
        HTTPException: 408, it did not arrive in time.
        ClientDisconnect: the client left.
    """
    content_type = headers.get("content-type", "")
    if content_type.partition(";")[0].strip().lower() not in _FORMS:
        raise malformed("The body must be a form; send Content-Type: multipart/form-data")
    max_bytes = limits.max_bytes + limits.max_file_bytes
    refuse_length(headers.get("content-length", ""), max_bytes)
    request = Request(
        {
            "type": "http",
            "method": "POST",
            "headers": [(b"content-type", content_type.encode("latin-1"))],
        },
        _bounded(receive, max_bytes),
    )
    try:
        async with asyncio.timeout(limits.timeout):
            async with request.form(
                max_files=_MAX_FILES, max_fields=_MAX_FIELDS, max_part_size=limits.max_bytes
            ) as form:
                return await _as_body(form, limits.max_file_bytes)
    except TimeoutError as error:
        raise HTTPException(408, "The request body did not arrive in time") from error
    except MultiPartException as error:
        raise malformed(f"The form cannot be read: {error.message}") from error


def _bounded(receive: Receive, max_bytes: int) -> Receive:
    size = 0

    async def receive_bounded() -> Message:
        nonlocal size
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise too_large(max_bytes)
        return message

    return receive_bounded


async def _as_body(form: FormData, max_file_bytes: int) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name, value in form.multi_items():
        data_key = _DATA_KEYS.get(name)
        if data_key is None and isinstance(value, str):
            body[name] = value
        elif data_key is not None and isinstance(value, UploadFile):
            body.setdefault(name, []).append(await _attachment(value, data_key, max_file_bytes))
        else:
            expected = "a text field" if data_key is None else "a file"
            raise InvalidRequestError(f"{name[:64]} must be {expected}", field=name[:64])
    return body


async def _attachment(file: UploadFile, data_key: str, max_file_bytes: int) -> dict[str, str]:
    if (file.size or 0) > max_file_bytes:
        raise PayloadTooLargeError(
            f"A file is over {max_file_bytes} bytes", limit_bytes=max_file_bytes, field="files"
        )
    content = await file.read()
    encoded = await asyncio.to_thread(base64.b64encode, content)
    name = file.filename or ""
    return {
        data_key: encoded.decode(),
        "name": name,
        "mime_type": file.content_type or mimetypes.guess_type(name)[0] or _UNKNOWN_TYPE,
    }
