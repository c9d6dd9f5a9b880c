"""The schema of a chat body takes what the parser takes, and refuses what it refuses."""

import jsonschema_rs
import pytest

from turnline.errors import InvalidRequestError
from turnline.frontdoor.schemas import client_maker, client_schemas
from turnline.protocol.json_body import parse_chat_body
from turnline.protocol.json_schema import ref

IDS = {"session_id": "s"}
SAID = {"prompt": "p", **IDS}


def fits(body: object) -> bool:
    schemas = client_schemas(client_maker())
    schema = {**ref("ChatRequest"), "components": {"schemas": schemas}}
    return jsonschema_rs.Draft202012Validator(schema).is_valid(body)


def parses(body: object) -> bool:
    try:
        parse_chat_body(body)
    except InvalidRequestError:
        return False
    return True


@pytest.mark.parametrize(
    "body",
    [
        SAID,
        {**SAID, "request_id": "r", "agent": None, "user_id": "u", "mood": ["fine"]},
        {**SAID, "files": [{"file_data": "eA==", "mime_type": "text/plain", "name": "a"}]},
        {**SAID, "images": [{"image_data": "https://x/y.png", "name": None}]},
        {**SAID, "files": None, "images": None, "requests": None},
        {**IDS, "resume": {"run_id": None, "decisions": [{"id": "i", "status": "approved"}]}},
        {**IDS, "resume": {"decisions": [{"id": "i", "status": None, "payload": [1]}]}},
        {**IDS, "requests": [{"type": "text", "text": "x"}]},
        {**SAID, "schedule": {"at": "2027-01-01T00:00", "timezone": "UTC"}},
        {**SAID, "schedule": {"cron": "* * * * *", "session_mode": "new"}},
    ],
    ids=str,
)
def test_what_the_parser_takes_fits(body: object) -> None:
    assert (parses(body), fits(body)) == (True, True)


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"prompt": "p"},
        IDS,
        {**SAID, "session_id": ""},
        {**SAID, "session_id": "x" * 257},
        {**SAID, "prompt": None},
        {**SAID, "agent": 5},
        {**SAID, "files": [{"image_data": "eA=="}]},
        {**SAID, "files": {}},
        {**IDS, "resume": {"decisions": [{"status": "approved"}]}},
        {**IDS, "resume": {"decisions": [{"id": "i", "status": "maybe"}]}},
        {**IDS, "requests": [{"type": "smell"}]},
        {**SAID, "schedule": {"timezone": "UTC"}},
        {**SAID, "schedule": {"cron": "* * * * *", "session_mode": "other"}},
    ],
    ids=str,
)
def test_what_the_parser_refuses_does_not_fit(body: object) -> None:
    assert (parses(body), fits(body)) == (False, False)
