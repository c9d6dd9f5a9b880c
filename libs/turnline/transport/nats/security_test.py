"""Credentials and TLS: what is refused, in which words, and that no secret is in them."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.telemetry import captured_logs
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.tls import Identity, self_signed
from turnline.transport.nats import NatsOptions, NatsTransport
from turnline.transport.nats.harness import options_for

SECRET = "correct-horse-battery"


@pytest.fixture(scope="module")
def guarded() -> Iterator[NatsServer]:
    server = NatsServer(f'authorization {{ user: ann, password: "{SECRET}" }}')
    asyncio.run(server.start())
    yield server
    server.remove()


@pytest.fixture(scope="module")
def token_server() -> Iterator[NatsServer]:
    server = NatsServer(f'authorization {{ token: "{SECRET}" }}')
    asyncio.run(server.start())
    yield server
    server.remove()


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def tls_server(identity: Identity) -> Iterator[NatsServer]:
    server = NatsServer(
        f'tls {{ cert_file: "{identity.certificate}", key_file: "{identity.key}" }}'
    )
    asyncio.run(server.start())
    yield server
    server.remove()


def with_user(server: NatsServer, user: str) -> NatsOptions:
    return options_for(server.url.replace("//", f"//{user}@"))


async def works(options: NatsOptions) -> bool:
    async with NatsTransport(options, SystemClock()) as transport:
        return await transport.input.send(request("session", "turn"))


async def fault_of(options: NatsOptions) -> str:
    async with asyncio.timeout(30):
        with pytest.raises(ConfigurationError) as refusal:
            await works(options)
    (fault,) = refusal.value.faults
    return fault


async def test_a_user_in_the_url_is_let_in(guarded: NatsServer) -> None:
    assert await works(with_user(guarded, f"ann:{SECRET}"))


async def test_a_token_in_the_url_is_let_in(token_server: NatsServer) -> None:
    assert await works(with_user(token_server, SECRET))


@pytest.mark.parametrize("user", ["ann:wrong-password", "bob:wrong-password", "wrong-password"])
async def test_wrong_credentials_stop_start_up_and_are_not_repeated(
    guarded: NatsServer, user: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)

    with captured_logs() as records:
        fault = await fault_of(with_user(guarded, user))

    assert "refuses these credentials" in fault and "execution.queues.nats.url" in fault
    assert "wrong-password" not in fault + caplog.text + str(records)


async def test_no_credentials_where_some_are_needed_stop_start_up(guarded: NatsServer) -> None:
    assert "refuses these credentials" in await fault_of(options_for(guarded.url))


async def test_tls_works_with_its_authority_named(
    tls_server: NatsServer, identity: Identity
) -> None:
    options = options_for(tls_server.url.replace("nats://", "tls://"))
    named = replace(options.server, tls_ca_file=identity.certificate)

    assert await works(replace(options, server=named))


@pytest.mark.parametrize("scheme", ["nats", "tls"])
async def test_a_certificate_nobody_trusts_stops_start_up(
    tls_server: NatsServer, scheme: str
) -> None:
    fault = await fault_of(options_for(tls_server.url.replace("nats://", f"{scheme}://")))

    assert "tls_ca_file" in fault and "not trusted" in fault


async def test_a_server_without_tls_gets_no_credentials_where_tls_was_asked_for(
    guarded: NatsServer,
) -> None:
    # Credentials that the server would name in its log if it were shown them.
    options = with_user(guarded, f"carol:{SECRET}")
    urls = tuple(url.replace("nats://", "tls://") for url in options.server.urls)

    fault = await fault_of(replace(options, server=replace(options.server, urls=urls)))

    assert "offers no TLS" in fault and SECRET not in fault
    assert "carol" not in guarded.log


@pytest.mark.parametrize(
    "setting", ["tls_ca_file", "tls_cert_file", "credentials_file", "nkey_seed_file"]
)
async def test_a_file_that_is_not_there_is_named(server: NatsServer, setting: str) -> None:
    options = options_for(server.url)
    absent = Path("/nonexistent/file")
    asked = replace(
        options.server,
        tls_ca_file=absent if setting == "tls_ca_file" else None,
        tls_cert_file=absent if setting == "tls_cert_file" else None,
        credentials_file=absent if setting == "credentials_file" else None,
        nkey_seed_file=absent if setting == "nkey_seed_file" else None,
    )

    fault = await fault_of(replace(options, server=asked))

    assert f"execution.queues.nats.{setting}" in fault
