"""Messages on the queues are as docs/api/asyncapi.yaml says."""

import asyncio
import base64
import json
import re
import time
from collections.abc import Mapping
from typing import Any

import nats
import pytest
from confluent_kafka import Consumer, Message
from google.protobuf import json_format
from nats.aio.msg import Msg

from chaos.processes.brokers.nats import one_nats
from contract.api.documents import document, faults, resolved
from contract.proto.golden_cases import ENVELOPES
from turnline.config import Settings
from turnline.hosting import open_backends
from turnline.protocol import ChatRequest, Envelope
from turnline.protocol.clock import SystemClock
from turnline.protocol.codec import encode
from turnline.protocol.json_schema import ref
from turnline.testing.servers.kafka import KafkaServer
from turnline.testing.servers.nats import listens
from turnline.transport.kafka import KafkaTransport
from turnline.transport.kafka.harness import fresh_topics
from turnline.transport.kafka.holding import headers_of
from turnline.transport.sqs.wire import outgoing
from turnline.v1 import envelope_pb2

DOCUMENT = document("asyncapi.yaml")
SMALL = 1
READ_SECONDS = 30.0


def kind_of(envelope: Envelope) -> str:
    return "Request" if isinstance(envelope.payload, ChatRequest) else "Answer"


def proto_json(raw: bytes) -> dict[str, Any]:
    message = envelope_pb2.Envelope.FromString(raw)
    return json_format.MessageToDict(message, preserving_proto_field_name=True)


def misfits(message: str, payload: object, headers: Mapping[str, str]) -> list[str]:
    """Say how a message differs from what the document says of one of its name."""
    said = resolved(DOCUMENT, {"$ref": f"#/components/messages/{message}"})
    found = faults(DOCUMENT, said["payload"], payload)
    return found + faults(DOCUMENT, said.get("headers", {}), headers)


@pytest.mark.parametrize("name", ENVELOPES)
def test_the_bytes_of_every_envelope_are_as_documented(name: str) -> None:
    envelope = ENVELOPES[name]
    schema = ref(f"{kind_of(envelope)}Envelope")

    assert faults(DOCUMENT, schema, proto_json(encode(envelope))) == []


@pytest.mark.parametrize("name", ENVELOPES)
def test_every_envelope_on_sqs_is_as_documented(name: str) -> None:
    envelope = ENVELOPES[name]
    message = outgoing(envelope, largest=10_000_000)

    body = json.loads(message.body)
    assert misfits(f"Sqs{kind_of(envelope)}", body, message.attributes) == []
    metadata = json.loads(message.attributes["turnline"])
    assert faults(DOCUMENT, ref("Metadata"), metadata) == []


def test_an_envelope_that_is_packed_for_sqs_is_as_documented() -> None:
    envelope = ENVELOPES["reply"]
    message = outgoing(envelope, largest=SMALL)

    assert misfits("SqsPackedAnswer", message.body, message.attributes) == []
    schema = ref("AnswerEnvelope")
    assert faults(DOCUMENT, schema, proto_json(base64.b64decode(message.body))) == []


async def test_every_envelope_on_nats_is_as_documented() -> None:
    heard: asyncio.Queue[Msg] = asyncio.Queue()
    async with one_nats((), partitions=4) as broker, asyncio.timeout(60):
        settings = Settings.model_validate(broker.settings)
        client = await nats.connect(broker.address)
        try:
            async with open_backends(settings, SystemClock()) as backends:
                options = settings.execution.queues.nats
                for prefix in (options.input_subject_prefix, options.output_subject_prefix):
                    await client.subscribe(f"{prefix}.>", cb=heard.put)
                await listens(client)
                for envelope in ENVELOPES.values():
                    kind = kind_of(envelope)
                    transport = backends.transport
                    queue = transport.input if kind == "Request" else transport.output
                    await queue.send(envelope)
                    message = await heard.get()
                    headers = message.headers or {}
                    assert misfits(f"Nats{kind}", proto_json(message.data), headers) == []
                    assert at_documented_address(kind, message.subject, settings)
        finally:
            await client.close()


async def test_every_envelope_on_kafka_is_as_documented() -> None:
    async with (
        asyncio.timeout(100),
        KafkaServer() as server,
        fresh_topics(server.bootstrap) as options,
        KafkaTransport(options, SystemClock()) as transport,
    ):
        sides = {"Request": transport.input, "Answer": transport.output}
        sent = [await sides[kind_of(each)].send(each) for each in ENVELOPES.values()]
        topics = {options.input.topic: "Request", options.output.topic: "Answer"}
        records = await asyncio.to_thread(read_records, server.bootstrap, [*topics], sum(sent))

    assert len(records) == sum(sent)
    for record in records:
        kind, payload = topics[record.topic() or ""], proto_json(record.value() or b"")
        assert misfits(f"Kafka{kind}", payload, headers_of(record)) == []
        assert record.key()


def read_records(address: str, topics: list[str], count: int) -> list[Message]:
    """Read so many records from the beginning of topics, as a consumer without Turnline."""
    reader = Consumer(
        {"bootstrap.servers": address, "group.id": "reader", "auto.offset.reset": "earliest"}
    )
    try:
        reader.subscribe(topics)
        found: list[Message] = []
        ends = time.monotonic() + READ_SECONDS
        while len(found) < count and time.monotonic() < ends:
            found += [record for record in reader.consume(count, 1.0) if record.error() is None]
        return found
    finally:
        reader.close()


def at_documented_address(kind: str, subject: str, settings: Settings) -> bool:
    """Whether a subject is the channel's address, but for the prefix that a setting changed."""
    side = "input" if kind == "Request" else "output"
    address = DOCUMENT["channels"][f"nats.{side}"]["address"]
    default = getattr(Settings().execution.queues.nats, f"{side}_subject_prefix")
    prefix = getattr(settings.execution.queues.nats, f"{side}_subject_prefix")
    tail = address.removeprefix(default)
    pattern = re.sub(r"\\\{\w+\\\}", r"[^.]+", re.escape(tail))
    return re.fullmatch(re.escape(prefix) + pattern, subject) is not None


def test_a_message_that_is_not_documented_is_seen() -> None:
    headers = {"content-type": "application/x-protobuf", "request_id": "r", "Nats-Msg-Id": "m"}
    whole = {"request_id": "r", "session_id": "s", "request": {"prompt": "p"}}

    assert misfits("NatsRequest", whole, headers) == []
    assert misfits("NatsRequest", whole, {"request_id": "r"})
    assert misfits("NatsRequest", {**whole, "attempt": "one"}, headers)
    assert misfits("NatsAnswer", whole, headers)
