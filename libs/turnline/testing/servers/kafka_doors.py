"""A Kafka broker with listeners that ask for more: TLS, a name and a password, or both."""

from collections.abc import Mapping
from pathlib import Path

from turnline.testing.servers.kafka import Door, KafkaServer
from turnline.testing.servers.tls import Identity

TLS = Door(name="TLS", protocol="SSL")
SASL = Door(name="SASL", protocol="SASL_PLAINTEXT")
SASL_TLS = Door(name="SASLTLS", protocol="SASL_SSL")


def guarded_server(folder: Path, identity: Identity, passwords: Mapping[str, str]) -> KafkaServer:
    """Make a broker with all three doors beside the plain one; the caller starts it.

    Args:
        folder: for its files.
        identity: its certificate.
        passwords: of the users of SASL/PLAIN.
    """
    store = folder / "broker.pem"
    store.write_bytes(identity.key.read_bytes() + identity.certificate.read_bytes())
    users = " ".join(f'user_{name}="{password}"' for name, password in passwords.items())
    module = f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
    lines = []
    for door in (TLS, SASL_TLS):
        lines += [
            f"listener.name.{door.name.lower()}.ssl.keystore.type=PEM",
            f"listener.name.{door.name.lower()}.ssl.keystore.location={store}",
        ]
    for door in (SASL, SASL_TLS):
        lines.append(f"listener.name.{door.name.lower()}.plain.sasl.jaas.config={module}")
    lines.append("sasl.enabled.mechanisms=PLAIN")
    return KafkaServer(extra="\n".join(lines), doors=(TLS, SASL, SASL_TLS))
