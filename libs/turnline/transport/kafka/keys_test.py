"""The key of a record, and the partition that follows from it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnline.protocol import SessionKey
from turnline.protocol.clock import SystemClock
from turnline.testing.servers.kafka import KafkaServer
from turnline.transport.kafka.clients import producer_config
from turnline.transport.kafka.harness import fresh_topics
from turnline.transport.kafka.keys import group_of, group_text, record_key
from turnline.transport.kafka.producer import ConfirmedProducer, Outgoing

# Key -> partition of 32, by the Java client: toPositive(murmur2(key)) % 32, kafka-clients 4.4.0.
JAVA_PARTITIONS = {
    "s1": 29,
    "session": 2,
    "a": 28,
    "A": 2,
    "a b": 7,
    "a.b.c": 7,
    "Sitzung-äöü-会話-🙂": 18,
    "x" * 256: 14,
    "3f2b8c1e-8f5e-4b8e-9a59-1f6d8f0a7c11": 11,
    "21": 12,
    "foobar": 30,
    "a-little-bit-long-string": 0,
    "\x1f3\x1fannsession": 21,
    "\x1f3\x1fbobsession": 5,
    "~1user~1session": 19,
}


async def test_records_lie_where_the_java_client_would_put_them(server: KafkaServer) -> None:
    async with fresh_topics(server.bootstrap, partitions=32) as options:
        producer = ConfirmedProducer(producer_config(options), delivery_timeout=10.0)
        producer.open()
        now = SystemClock().time()
        sends = [
            producer.send(Outgoing(topic=options.input.topic, key=key.encode(), value=b"", at=now))
            for key in JAVA_PARTITIONS
        ]
        places = await asyncio.gather(*sends)
        await producer.close()
    assert [place[0] for place in places] == list(JAVA_PARTITIONS.values())


def test_a_session_without_a_scope_has_its_id_as_key() -> None:
    assert record_key(SessionKey("", "~odd id/1")) == b"~odd id/1"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (SessionKey("ann", "s"), SessionKey("bob", "s")),
        (SessionKey("ann", "s"), SessionKey("", "s")),
        (SessionKey("a", "bc"), SessionKey("ab", "c")),
        (SessionKey("user", "session"), SessionKey("", "~1user~1session")),
    ],
)
def test_two_sessions_never_share_a_key(one: SessionKey, other: SessionKey) -> None:
    assert record_key(one) != record_key(other)


_TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)


@given(st.builds(SessionKey, st.just("") | _TEXT, _TEXT), st.builds(SessionKey, _TEXT, _TEXT))
def test_keys_are_one_to_one(one: SessionKey, other: SessionKey) -> None:
    assert (record_key(one) == record_key(other)) is (one == other)
    assert group_text(record_key(one)) == group_of(one)
