"""Subjects of sessions: injective, safe, bounded."""

import zlib

from hypothesis import given
from hypothesis import strategies as st

from turnline.protocol import SessionKey
from turnline.transport.nats.subjects import MAX_TOKEN_LENGTH, subject_of, subject_token

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(TEXTS)
def test_any_text_is_one_safe_token(text: str) -> None:
    token = subject_token(text)

    assert 1 <= len(token) <= MAX_TOKEN_LENGTH
    assert token.isascii() and token.isprintable()
    assert not set(token) & set(".*> \t")


@given(TEXTS, TEXTS)
def test_two_texts_have_two_tokens(one: str, other: str) -> None:
    assert (subject_token(one) == subject_token(other)) == (one == other)


def test_texts_that_look_like_tokens_are_told_from_what_they_look_like() -> None:
    long = "x" * 300
    texts = ["a.b", "a%2Eb", "a b", "a%20b", "", "=", long, subject_token(long), "%", "%25"]

    assert len({subject_token(text) for text in texts}) == len(texts)


def test_a_plain_session_id_is_its_own_token() -> None:
    assert subject_token("sess-1_A~b") == "sess-1_A~b"


def test_a_session_hashes_to_its_partition_as_in_the_guide() -> None:
    for number in range(50):
        session = f"session-{number}"
        partition = zlib.crc32(session.encode()) % 32
        key = SessionKey("", session)
        assert subject_of("chat.req", key, 32) == f"chat.req.{partition}.{session}"


def test_sessions_of_one_name_of_two_users_have_two_subjects() -> None:
    subjects = {subject_of("chat.req", SessionKey(user, "s1"), 32) for user in ("", "ann", "bob")}

    assert len(subjects) == 3
