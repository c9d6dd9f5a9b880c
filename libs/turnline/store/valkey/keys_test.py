"""Names of one key share a slot and are nobody else's."""

from hypothesis import given, settings
from hypothesis import strategies as st
from valkey.crc import key_slot

from turnline.protocol import ReplyKey, SessionKey
from turnline.store.valkey.keys import reply_names, session_names, user_names

# The characters that names are made of, and others.
_TEXTS = st.text(st.sampled_from("a{}~01:u ü"), max_size=6)
_MANY = settings(max_examples=300)


@_MANY
@given(scope=_TEXTS, name=_TEXTS.filter(bool))
def test_all_names_of_a_key_are_in_one_slot(scope: str, name: str) -> None:
    groups = (
        reply_names("p:", ReplyKey(scope, name))[:2],
        session_names("p:", SessionKey(scope, name))[:6],
        user_names("p:", scope),
    )

    for names in groups:
        assert len({key_slot(each) for each in names}) == 1


@_MANY
@given(first=st.tuples(_TEXTS, _TEXTS), second=st.tuples(_TEXTS, _TEXTS))
def test_two_keys_share_no_name(first: tuple[str, str], second: tuple[str, str]) -> None:
    mine = {*reply_names("", ReplyKey(*first)), *session_names("", SessionKey(*first))}
    yours = {*reply_names("", ReplyKey(*second)), *session_names("", SessionKey(*second))}

    assert first == second or not mine & yours


@_MANY
@given(first=_TEXTS, second=_TEXTS)
def test_two_users_share_no_name(first: str, second: str) -> None:
    mine, yours = set(user_names("", first)), set(user_names("", second))

    assert first == second or not mine & yours


def test_a_user_a_session_and_a_turn_of_one_name_share_nothing() -> None:
    names = [
        *reply_names("", ReplyKey("", "user:a")),
        *session_names("", SessionKey("", "user:a")),
        *user_names("", "a"),
    ]

    assert len(set(names)) == len(names)
