"""Credentials and TLS: what is refused, in which words, and that no secret is in them."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from turnline.errors import ConfigurationError, TransportUnavailableError
from turnline.protocol.clock import SystemClock
from turnline.telemetry import captured_logs
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.kafka import KafkaServer
from turnline.testing.servers.kafka_doors import (
    SASL,
    SASL_TLS,
    TLS,
    guarded_server,
)
from turnline.testing.servers.tls import self_signed
from turnline.transport.kafka import KafkaOptions, KafkaTransport
from turnline.transport.kafka.admin import Admin
from turnline.transport.kafka.clients import admin_config
from turnline.transport.kafka.harness import QUICK, Topics, options_for
from turnline.transport.kafka.options import ConfigValue

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "correct-horse-battery"
WRONG = "wrong-password"
ANN = {"sasl.mechanism": "PLAIN", "sasl.username": "ann", "sasl.password": SECRET}
PATIENCE_SECONDS = 30.0


class Guarded:
    """The broker, and what a client that is let in is told."""

    def __init__(self, server: KafkaServer, authority: Path) -> None:
        self.server = server
        self.trusting = {"ssl.ca.location": str(authority)}
        self.fresh: KafkaOptions

    def by(self, door: str, config: Mapping[str, ConfigValue]) -> KafkaOptions:
        """Give options for clients that come by a door with these settings."""
        return replace(
            self.fresh,
            bootstrap_servers=self.server.bootstrap_at(door),
            client_config={**QUICK, **config},
            metadata_timeout=3.0,
        )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Guarded]:
    folder = tmp_path_factory.mktemp("tls")
    identity = self_signed(folder)
    async with guarded_server(folder, identity, {"ann": SECRET}) as server:
        guarded = Guarded(server, identity.certificate)
        guarded.fresh = options_for(server.bootstrap)
        await Topics(server.bootstrap).create(guarded.fresh)
        yield guarded


async def works(options: KafkaOptions) -> bool:
    """Send, receive and settle, as each of the clients of a transport is needed for."""
    async with (
        asyncio.timeout(PATIENCE_SECONDS),
        KafkaTransport(options, SystemClock()) as transport,
        transport.input.consumer() as reader,
    ):
        await transport.input.send(request("session", "turn"))
        delivery = await reader.receive()
        await delivery.dead_letter("no use")
        letters = await transport.input.dead_letters.list()
        return await transport.input.dead_letters.purge() == len(letters) == 1


async def fault_of(options: KafkaOptions) -> str:
    async with asyncio.timeout(PATIENCE_SECONDS):
        with pytest.raises(ConfigurationError) as refusal:
            await KafkaTransport(options, SystemClock()).__aenter__()
    (fault,) = refusal.value.faults
    assert fault.startswith("execution.queues.kafka.client_config: ")
    return fault


async def test_a_user_with_the_right_password_is_let_in(guarded: Guarded) -> None:
    assert await works(guarded.by(SASL.name, {"security.protocol": "sasl_plaintext", **ANN}))


async def test_tls_works_with_its_authority_named(guarded: Guarded) -> None:
    assert await works(guarded.by(TLS.name, {"security.protocol": "ssl", **guarded.trusting}))


async def test_a_password_over_tls_is_let_in(guarded: Guarded) -> None:
    config = {"security.protocol": "sasl_ssl", **ANN, **guarded.trusting}
    assert await works(guarded.by(SASL_TLS.name, config))


@pytest.mark.parametrize("user", [{"sasl.password": WRONG}, {"sasl.username": "bob"}])
@pytest.mark.parametrize(
    ("door", "protocol"), [(SASL.name, "sasl_plaintext"), (SASL_TLS.name, "sasl_ssl")]
)
async def test_wrong_credentials_stop_start_up_and_are_not_repeated(
    guarded: Guarded,
    caplog: pytest.LogCaptureFixture,
    user: Mapping[str, str],
    door: str,
    protocol: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    config = {"security.protocol": protocol, **guarded.trusting, **ANN, **user}

    with captured_logs() as records:
        fault = await fault_of(guarded.by(door, config))

    assert "refuse these credentials" in fault
    for secret in (SECRET, WRONG):
        assert secret not in fault + caplog.text + str(records)


async def test_a_mechanism_that_the_brokers_do_not_know_stops_start_up(guarded: Guarded) -> None:
    config = {"security.protocol": "sasl_plaintext", **ANN, "sasl.mechanism": "SCRAM-SHA-256"}

    assert "sasl.mechanism" in await fault_of(guarded.by(SASL.name, config))


async def test_a_certificate_nobody_trusts_stops_start_up(guarded: Guarded) -> None:
    fault = await fault_of(guarded.by(TLS.name, {"security.protocol": "ssl"}))

    assert "ssl.ca.location" in fault


async def test_a_listener_without_tls_stops_start_up_where_tls_was_asked_for(
    guarded: Guarded,
) -> None:
    config = {"security.protocol": "sasl_ssl", **ANN, **guarded.trusting}

    fault = await fault_of(guarded.by(SASL.name, config))

    assert "offer no TLS" in fault and "security.protocol" in fault


@pytest.mark.parametrize("door", [TLS.name, SASL.name])
async def test_a_listener_that_asks_for_more_is_never_ready_and_the_reason_names_the_setting(
    guarded: Guarded, door: str
) -> None:
    # The broker hangs up without a word, as one does that is just starting: so it is tried again.
    with pytest.raises(TransportUnavailableError) as refusal:
        await KafkaTransport(guarded.by(door, {}), SystemClock()).__aenter__()

    assert "security.protocol" in refusal.value.message


async def test_a_client_that_is_refused_is_not_ready(guarded: Guarded) -> None:
    config = {"security.protocol": "sasl_plaintext", **ANN, "sasl.password": WRONG}
    admin = Admin(admin_config(guarded.by(SASL.name, config)), seconds=2.0)
    admin.open()
    try:
        with pytest.raises(TransportUnavailableError):
            await admin.check("any")
    finally:
        await admin.close()
