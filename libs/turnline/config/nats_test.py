"""`execution.queues.nats`: what is refused, and what is never shown."""

import pytest
from pydantic import ValidationError

from turnline.config.queues import Nats


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"input_stream": "with.dot"}, "input_stream may hold letters"),
        ({"output_stream": "with space"}, "output_stream may hold letters"),
        ({"input_subject_prefix": "chat.*"}, "input_subject_prefix must be words"),
        ({"output_subject_prefix": "chat..out"}, "output_subject_prefix must be words"),
        ({"input_subject_prefix": "chat", "output_subject_prefix": "chat.out"}, "overlap"),
        ({"input_stream": "X", "output_stream": "X"}, "name two streams"),
        ({"max_messages": 10}, "max_messages_per_session"),
        ({"credentials_file": "/a", "nkey_seed_file": "/b"}, "name one"),
        ({"tls_key_file": "/a"}, "no tls_cert_file"),
        ({"replicas": 6}, "less than or equal to 5"),
        ({"url": "http://somewhere"}, "nats://"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_fix(given: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Nats.model_validate(given)

    assert words in str(refusal.value)


def test_prefixes_that_only_begin_alike_do_not_overlap() -> None:
    Nats(input_subject_prefix="chat.in", output_subject_prefix="chat.input")


def test_credentials_in_the_url_are_not_shown() -> None:
    assert "secret" not in repr(Nats(url="nats://ann:secret@host:4222,nats://secret@other"))
