"""Keys instead of passwords: an nkey, a user's JWT (decentralised authorisation), a certificate.

The servers check them by the real algorithms; the keys are made here.
"""

import asyncio
import base64
import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import nkeys
import pytest

from turnline.errors import ConfigurationError
from turnline.protocol.clock import SystemClock
from turnline.testing.conformance.transport.envelopes import request
from turnline.testing.servers.nats import NatsServer
from turnline.testing.servers.tls import Identity, self_signed
from turnline.transport.nats import NatsTransport
from turnline.transport.nats.harness import options_for

UNLIMITED = -1
OF_A_USER = dict.fromkeys(("subs", "data", "payload"), UNLIMITED)
LIMITS = OF_A_USER | dict.fromkeys(("imports", "exports", "conn", "leaf"), UNLIMITED)
JETSTREAM = dict.fromkeys(("mem_storage", "disk_storage", "streams", "consumer"), UNLIMITED)


@dataclass(frozen=True, slots=True)
class Key:
    """An nkey pair in its texts."""

    seed: str
    public: str

    @classmethod
    def make(cls, prefix: int) -> "Key":
        """Make one of a kind (`nkeys.PREFIX_BYTE_...`)."""
        pair = nkeys.from_seed(nkeys.encode_seed(os.urandom(32), prefix))
        return cls(bytes(pair.seed).decode(), bytes(pair.public_key).decode())

    def sign(self, raw: bytes) -> bytes:
        """Sign bytes (Ed25519)."""
        signature: bytes = nkeys.from_seed(self.seed.encode()).sign(raw)
        return signature


def jwt(subject: Key, issuer: Key, nats: dict[str, object]) -> str:
    """Make a claim in the form nats-server reads: the header names its own algorithm."""
    claims: dict[str, object] = {
        "iat": 1_767_225_600,
        "iss": issuer.public,
        "sub": subject.public,
        "name": "test",
        "nats": {"version": 2, **nats},
    }
    digest = hashlib.sha256(json.dumps(claims).encode()).digest()
    claims["jti"] = base64.b32encode(digest).decode().rstrip("=")
    head = _part(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    body = _part(json.dumps(claims).encode())
    return f"{head}.{body}.{_part(issuer.sign(f'{head}.{body}'.encode()))}"


def _part(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def credentials(token: str, seed: str) -> str:
    """Make the text of a `.creds` file."""
    return (
        f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
        f"-----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
    )


@dataclass(frozen=True, slots=True)
class Trust:
    """A server that trusts an operator, and who may make users of its one account."""

    server: NatsServer
    account: Key

    def creds(self, user: Key, issuer: Key) -> str:
        """Give a user's credentials, signed by an account."""
        token = jwt(user, issuer, {"type": "user", "pub": {}, "sub": {}, **OF_A_USER})
        return credentials(token, user.seed)


@pytest.fixture(scope="module")
def trust() -> Iterator[Trust]:
    operator = Key.make(nkeys.PREFIX_BYTE_OPERATOR)
    system, account = (Key.make(nkeys.PREFIX_BYTE_ACCOUNT) for _ in range(2))
    of_accounts = {
        system: jwt(system, operator, {"type": "account", "limits": LIMITS}),
        account: jwt(account, operator, {"type": "account", "limits": LIMITS | JETSTREAM}),
    }
    preload = "\n".join(f"{key.public}: {token}" for key, token in of_accounts.items())
    server = NatsServer(
        f"operator: {jwt(operator, operator, {'type': 'operator'})}\n"
        f"system_account: {system.public}\n"
        f"resolver: MEMORY\nresolver_preload: {{\n{preload}\n}}"
    )
    asyncio.run(server.start())
    yield Trust(server, account)
    server.remove()


@pytest.fixture(scope="module")
def user_key() -> Key:
    return Key.make(nkeys.PREFIX_BYTE_USER)


@pytest.fixture(scope="module")
def nkey_server(user_key: Key) -> Iterator[NatsServer]:
    server = NatsServer(f"authorization {{ users: [ {{ nkey: {user_key.public} }} ] }}")
    asyncio.run(server.start())
    yield server
    server.remove()


@pytest.fixture(scope="module")
def identity(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    return self_signed(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def mutual(identity: Identity) -> Iterator[NatsServer]:
    server = NatsServer(
        f'tls {{ cert_file: "{identity.certificate}", key_file: "{identity.key}", '
        f'ca_file: "{identity.certificate}", verify: true }}'
    )
    asyncio.run(server.start())
    yield server
    server.remove()


async def works(server: NatsServer, **given: Path) -> bool:
    options = options_for(server.url)
    asked = replace(options.server, **given)  # type: ignore[arg-type] # files by their names
    async with NatsTransport(replace(options, server=asked), SystemClock()) as transport:
        return await transport.input.send(request("session", "turn"))


async def fault_of(server: NatsServer, **given: Path) -> str:
    async with asyncio.timeout(30):
        with pytest.raises(ConfigurationError) as refusal:
            await works(server, **given)
    (fault,) = refusal.value.faults
    return fault


def written(folder: Path, text: str) -> Path:
    path = folder / "secret"
    path.write_text(text)
    return path


# --- nkeys ----------------------------------------------------------------------------------------


async def test_an_nkey_is_let_in(nkey_server: NatsServer, user_key: Key, tmp_path: Path) -> None:
    assert await works(nkey_server, nkey_seed_file=written(tmp_path, user_key.seed))


async def test_the_nkey_of_a_stranger_stops_start_up(
    nkey_server: NatsServer, tmp_path: Path
) -> None:
    stranger = Key.make(nkeys.PREFIX_BYTE_USER)

    fault = await fault_of(nkey_server, nkey_seed_file=written(tmp_path, stranger.seed))

    assert "refuses these credentials" in fault and stranger.seed not in fault


# --- a user's JWT ---------------------------------------------------------------------------------


async def test_the_credentials_of_a_user_are_let_in(trust: Trust, tmp_path: Path) -> None:
    creds = trust.creds(Key.make(nkeys.PREFIX_BYTE_USER), trust.account)

    assert await works(trust.server, credentials_file=written(tmp_path, creds))


async def test_credentials_signed_by_another_account_stop_start_up(
    trust: Trust, tmp_path: Path
) -> None:
    user = Key.make(nkeys.PREFIX_BYTE_USER)
    creds = trust.creds(user, Key.make(nkeys.PREFIX_BYTE_ACCOUNT))

    fault = await fault_of(trust.server, credentials_file=written(tmp_path, creds))

    assert "refuses these credentials" in fault and user.seed not in fault


async def test_a_user_without_credentials_stops_start_up(trust: Trust) -> None:
    assert "refuses these credentials" in await fault_of(trust.server)


# --- files that hold something else ---------------------------------------------------------------


@pytest.mark.parametrize("setting", ["nkey_seed_file", "credentials_file"])
@pytest.mark.parametrize("text", ["", "no seed\n", "SUAOOPS"])
async def test_a_file_that_holds_no_key_is_named(
    nkey_server: NatsServer, tmp_path: Path, setting: str, text: str
) -> None:
    fault = await fault_of(nkey_server, **{setting: written(tmp_path, text)})

    assert fault.startswith(f"execution.queues.nats.{setting}: ")


# --- certificates of clients ----------------------------------------------------------------------


async def test_a_client_with_a_trusted_certificate_is_let_in(
    mutual: NatsServer, identity: Identity
) -> None:
    assert await works(
        mutual,
        tls_ca_file=identity.certificate,
        tls_cert_file=identity.certificate,
        tls_key_file=identity.key,
    )


async def test_a_client_without_the_certificate_that_is_asked_for_stops_start_up(
    mutual: NatsServer, identity: Identity
) -> None:
    fault = await fault_of(mutual, tls_ca_file=identity.certificate)

    assert fault.startswith("execution.queues.nats.tls_cert_file: ") and "name it" in fault
