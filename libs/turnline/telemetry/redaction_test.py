"""What is blanked, cut out and cut off on the way to a log line."""

import pytest

from turnline.protocol import ChatRequest, Envelope
from turnline.telemetry.redaction import MAX_TEXT, REDACTED, is_private, scrub, shown


@pytest.mark.parametrize(
    "name",
    ["prompt", "Authorization", "access_token", "x-api-key", "client_secret", "body", "Set-Cookie"],
)
def test_fields_with_a_telling_name_are_private(name: str) -> None:
    assert is_private(name)


@pytest.mark.parametrize("name", ["request_id", "queue", "status_code", "reason", "tokens_used"])
def test_fields_with_a_harmless_name_are_not(name: str) -> None:
    assert not is_private(name)


@pytest.mark.parametrize(
    "text",
    [
        '127.0.0.1 - "WebSocket /ws?user=1&token=hunter2" [accepted]',
        "GET /ws?access_token=hunter2&x=1",
        "Authorization: Bearer hunter2.hunter2",
        "cannot reach redis://default:hunter2@valkey:6379/0",
    ],
)
def test_credentials_inside_texts_are_cut_out(text: str) -> None:
    scrubbed = scrub(text)

    assert "hunter2" not in scrubbed
    assert REDACTED in scrubbed


def test_what_stands_around_a_credential_stays() -> None:
    assert scrub("/ws?a=1&token=x&b=2") == f"/ws?a=1&token={REDACTED}&b=2"


def test_long_texts_are_cut_off_and_say_so() -> None:
    assert scrub("x" * (MAX_TEXT + 7)).endswith("x... (+7 characters)")


def test_objects_show_their_type_only() -> None:
    envelope = Envelope(request_id="r", session_id="s", payload=ChatRequest(prompt="a pony"))

    assert shown(envelope) == "<Envelope>"
    assert shown(b"a pony") == "<bytes>"


def test_private_names_inside_mappings_are_blanked() -> None:
    assert shown({"a": 1, "inner": [{"prompt": "a pony"}]}) == {
        "a": 1,
        "inner": [{"prompt": REDACTED}],
    }


def test_nesting_without_end_is_cut_off() -> None:
    nest: list[object] = []
    nest.append(nest)

    assert "<list>" in str(shown(nest))


def test_subclasses_of_plain_types_are_shown_by_value() -> None:
    class Code(str):
        pass

    assert shown(Code("x")) == "x"
