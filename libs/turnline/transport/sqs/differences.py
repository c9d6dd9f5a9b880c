"""Where SQS is not as the suite of all transports has it, and why."""

_WINDOW = "SQS remembers an id for five minutes, which no setting changes"
_SHARE = "SQS does not tell how many messages of a group it holds"

_ALWAYS: tuple[tuple[str, str], ...] = (
    ("test_after_the_window_a_copy_is_new", _WINDOW),
    ("test_a_refused_copy_does_not_stretch_the_window", _WINDOW),
    (
        "test_a_dead_letter_holds_the_bytes_that_were_queued",
        "what lies on an SQS queue is the guide's JSON, not Protobuf",
    ),
    ("test_the_oldest_ages", "SQS tells the age of what waits to CloudWatch alone"),
)
_WITHOUT_BOOKS = (
    ("test_a_session_has_a_share_of_the_input", _SHARE),
    ("test_one_sessions_share_is_not_anothers", _SHARE),
)


def differences(*, with_books: bool) -> tuple[tuple[str, str], ...]:
    """Give the cases that SQS fails, each with why."""
    return _ALWAYS if with_books else (*_ALWAYS, *_WITHOUT_BOOKS)
