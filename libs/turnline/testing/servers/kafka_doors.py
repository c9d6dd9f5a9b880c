"""A Kafka broker with listeners that ask for more: TLS, a name and a password, or both."""

import datetime
import ipaddress
from collections.abc import Mapping
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from turnline.testing.servers.kafka import Door, KafkaServer

TLS = Door(name="TLS", protocol="SSL")
SASL = Door(name="SASL", protocol="SASL_PLAINTEXT")
SASL_TLS = Door(name="SASLTLS", protocol="SASL_SSL")

_VALID_DAYS = 36_500


def guarded_server(folder: Path, passwords: Mapping[str, str]) -> KafkaServer:
    """Make a broker with all three doors beside the plain one; the caller starts it.

    Args:
        folder: where its certificate is written; `authority_in` gives what clients are to trust.
        passwords: of the users of SASL/PLAIN.
    """
    store = folder / "broker.pem"
    certificate, key = _signed_by_itself()
    authority_in(folder).write_bytes(certificate)
    store.write_bytes(key + certificate)
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


def authority_in(folder: Path) -> Path:
    """Give the file of what signed the broker's certificate."""
    return folder / "authority.pem"


def _signed_by_itself() -> tuple[bytes, bytes]:
    """Make a certificate for loopback and its key, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
    now = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(now + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private
