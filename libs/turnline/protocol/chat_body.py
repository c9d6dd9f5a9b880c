"""The guide's chat body: a JSON object to a ChatRequest, its rules, and back to an object.

Surfaces use it through `turnline.protocol.json_body`.  Two kinds of fault are kept apart: what is
no chat body at all (MALFORMED_BODY: wrong types) and what is one but breaks a rule
(INVALID_REQUEST).  Texts name fields and hold no content of the body.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from turnline.errors import InvalidRequestError
from turnline.protocol.chat import Attachment, ChatRequest, JsonObject
from turnline.protocol.ids import check_id
from turnline.protocol.json_value import check_json_object, check_text, malformed

BODY_FIELDS = frozenset(
    {
        "prompt",
        "session_id",
        "request_id",
        "agent",
        "user_id",
        "group_id",
        "thread_name",
        "files",
        "images",
        "resume",
        "requests",
        "schedule",
        "scheduled_task_id",
        "scheduled_time",
    }
)
REQUEST_TYPES = frozenset({"text", "file", "image", "voice", "other", "attachment_ref", "resume"})

_DATA_KEYS = {"files": "file_data", "images": "image_data"}
_DECISION_STATUSES = frozenset({"approved", "denied", "cancelled"})
_SESSION_MODES = frozenset({"reuse", "new"})
_URL_PREFIXES = ("http://", "https://", "data:", "s3://")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatBody:
    """A chat body with its ids.

    Attributes:
        session_id: names the session; empty only as long as the rules were not checked.
        request_id: the caller's own name for the turn; empty when none was given.
    """

    session_id: str
    request_id: str
    request: ChatRequest


def parse_chat_body(body: object) -> ChatBody:
    """Read a chat body and check its rules.

    Args:
        body: decoded JSON, of any type.

    Raises:
        InvalidRequestError: names the field; MALFORMED_BODY for a body or field of a wrong type
            and for a body that says nothing at all, INVALID_REQUEST for a rule broken.
    """
    parsed = read_chat_body(body)
    if not parsed.session_id:
        message = "No session_id is provided in the request"
        raise InvalidRequestError(message, field="session_id")
    check_id(parsed.session_id, field="session_id")
    if parsed.request_id:
        check_id(parsed.request_id, field="request_id")
    if isinstance(body, Mapping) and "prompt" not in body and not _says_something(parsed.request):
        message = (
            "a chat request must carry a 'prompt', a 'resume' block, "
            "or a prebuilt 'requests' list"
        )
        raise malformed(message, "prompt")
    check_request(parsed.request)
    return parsed


def read_chat_body(body: object) -> ChatBody:
    """Read a chat body as far as types go; rules are left to `check_request`.

    Raises:
        InvalidRequestError: names the field; a wrong type, or JSON out of bounds.
    """
    if not isinstance(body, Mapping):
        raise malformed("the body must be a JSON object", "body")
    resume, schedule = body.get("resume"), body.get("schedule")
    request = ChatRequest(
        prompt=_text(body, "prompt", nullable=False),
        agent=_text(body, "agent"),
        user_id=_text(body, "user_id"),
        group_id=_text(body, "group_id"),
        thread_name=_text(body, "thread_name"),
        files=_attachments(body, "files"),
        images=_attachments(body, "images"),
        resume=None if resume is None else _resume(resume),
        requests=_requests(body.get("requests")),
        schedule=None if schedule is None else _schedule(schedule),
        scheduled_task_id=_text(body, "scheduled_task_id"),
        scheduled_time=_text(body, "scheduled_time"),
        extra=_extra(body),
    )
    return ChatBody(
        session_id=_text(body, "session_id"),
        request_id=_text(body, "request_id"),
        request=request,
    )


def check_request(request: ChatRequest) -> None:
    """Check the rules of a request, however it came.

    A request off a queue is decoded without them, so that whoever runs it can answer with the
    rule it broke.

    Raises:
        InvalidRequestError: names the field.
    """
    if not request.prompt and not _says_something(request):
        raise InvalidRequestError("No prompt provided in the request", field="prompt")
    if request.user_id:
        check_id(request.user_id, field="user_id")
    _check_attachments("file", request.files)
    _check_attachments("image", request.images)
    _check_typed_inputs(request.requests)
    if request.resume is not None:
        # Off a queue even the shape may be wrong.
        _check_resume(_resume(request.resume))
    if request.schedule is not None:
        _check_schedule(_schedule(request.schedule))


def chat_body_object(request: ChatRequest, *, session_id: str) -> dict[str, Any]:
    """Give the chat body of a request: set fields only, then what is extra.

    Keys of `extra` that are names of fields are left out.

    Raises:
        InvalidRequestError: a free-form part is not JSON, or out of bounds.
    """
    body: dict[str, Any] = {"prompt": request.prompt, "session_id": session_id}
    for name in ("agent", "user_id", "group_id", "thread_name"):
        if text := getattr(request, name):
            body[name] = text
    if request.files:
        body["files"] = [_attachment_object(file, "file_data") for file in request.files]
    if request.images:
        body["images"] = [_attachment_object(image, "image_data") for image in request.images]
    if request.resume is not None:
        body["resume"] = check_json_object(request.resume, field="resume")
    if request.requests:
        body["requests"] = [check_json_object(r, field="requests") for r in request.requests]
    if request.schedule is not None:
        body["schedule"] = check_json_object(request.schedule, field="schedule")
    for name in ("scheduled_task_id", "scheduled_time"):
        if text := getattr(request, name):
            body[name] = text
    extra = check_json_object(request.extra, field="extra")
    body.update((key, value) for key, value in extra.items() if key not in BODY_FIELDS)
    return body


def _says_something(request: ChatRequest) -> bool:
    return bool(request.prompt or request.requests or request.resume is not None)


def _text(body: Mapping[str, Any], name: str, *, nullable: bool = True, at: str = "") -> str:
    value = body.get(name, "")
    if value is None and nullable:
        return ""
    if not isinstance(value, str):
        raise malformed(f"{at}{name} must be a string", f"{at}{name}")
    return check_text(value, field=f"{at}{name}")


def _list(value: object, name: str) -> Sequence[object]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise malformed(f"{name} must be a list", name)
    return value


def _attachments(body: Mapping[str, Any], name: str) -> tuple[Attachment, ...]:
    items = _list(body.get(name), name)
    return tuple(_attachment(item, name, number) for number, item in enumerate(items))


def _attachment(item: object, name: str, number: int) -> Attachment:
    if not isinstance(item, Mapping):
        raise malformed(f"{name}.{number} must be an object", f"{name}.{number}")
    at = f"{name}.{number}."
    return Attachment(
        data=_text(item, _DATA_KEYS[name], nullable=False, at=at),
        name=_text(item, "name", at=at),
        mime_type=_text(item, "mime_type", at=at),
    )


def _attachment_object(attachment: Attachment, data_key: str) -> dict[str, str]:
    item = {data_key: attachment.data, "name": attachment.name}
    if attachment.mime_type:
        item["mime_type"] = attachment.mime_type
    return item


def _check_attachments(kind: str, attachments: Sequence[Attachment]) -> None:
    for number, attachment in enumerate(attachments):
        at = f"{kind}s.{number}"
        if not attachment.data:
            name = f"{at}.{kind}_data"
            raise InvalidRequestError(f"{name} must not be empty", field=name)
        if not attachment.mime_type and not attachment.data.startswith(_URL_PREFIXES):
            message = f"mime_type is missing for {kind} input, either in the base64 or explicitly"
            raise InvalidRequestError(message, field=f"{at}.mime_type")


def _without_nulls(value: object, field: str, names: Sequence[str]) -> dict[str, Any]:
    found = check_json_object(value, field=field)
    kept = {k: v for k, v in found.items() if v is not None or k not in names}
    for name in names:
        if name in kept:
            _text(kept, name, at=f"{field}.")
    return kept


def _resume(value: object) -> dict[str, Any]:
    resume = _without_nulls(value, "resume", ("run_id",))
    decisions = _list(resume.get("decisions"), "resume.decisions")
    resume["decisions"] = [
        _without_nulls(decision, f"resume.decisions.{number}", ("id", "status", "message"))
        for number, decision in enumerate(decisions)
    ]
    return resume


def _check_resume(resume: JsonObject) -> None:
    for number, decision in enumerate(resume.get("decisions", ())):
        at = f"resume.decisions.{number}"
        if not decision.get("id"):
            raise InvalidRequestError(f"{at}.id must not be empty", field=f"{at}.id")
        if decision.get("status", "approved") not in _DECISION_STATUSES:
            message = f"{at}.status must be approved, denied or cancelled"
            raise InvalidRequestError(message, field=f"{at}.status")


def _schedule(value: object) -> dict[str, Any]:
    return _without_nulls(value, "schedule", ("at", "cron", "timezone", "session_mode"))


def _check_schedule(schedule: JsonObject) -> None:
    if bool(schedule.get("at")) == bool(schedule.get("cron")):
        message = "schedule must hold either 'at' or 'cron'"
        raise InvalidRequestError(message, field="schedule")
    if schedule.get("session_mode", "reuse") not in _SESSION_MODES:
        message = "schedule.session_mode must be reuse or new"
        raise InvalidRequestError(message, field="schedule.session_mode")


def _requests(value: object) -> tuple[JsonObject, ...]:
    return tuple(
        check_json_object(item, field=f"requests.{number}")
        for number, item in enumerate(_list(value, "requests"))
    )


def _check_typed_inputs(requests: Sequence[JsonObject]) -> None:
    for number, item in enumerate(requests):
        kind = item.get("type")
        if not isinstance(kind, str) or kind not in REQUEST_TYPES:
            name = f"requests.{number}.type"
            known = ", ".join(sorted(REQUEST_TYPES))
            raise InvalidRequestError(f"{name} must be one of {known}", field=name)


def _extra(body: Mapping[str, Any]) -> dict[str, Any]:
    extra = {key: value for key, value in body.items() if key not in BODY_FIELDS}
    if extra:
        check_json_object(extra, field="extra")
    return extra
