"""Certificates for servers and clients of tests, made on the spot."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_FROM = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
_VALID_DAYS = 36_500


@dataclass(frozen=True, slots=True)
class Identity:
    """PEM files of a certificate for loopback, which vouches for itself, and of its key."""

    certificate: Path
    key: Path


def self_signed(folder: Path, name: str = "tls") -> Identity:
    """Make a certificate for `localhost` and 127.0.0.1 and write it and its key to a folder.

    It is its own authority, so that it can stand on the side of the server, the client, or both.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    hosts = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    certificate = (
        x509.CertificateBuilder(subject, subject, key.public_key(), x509.random_serial_number())
        .not_valid_before(_FROM)
        .not_valid_after(_FROM + datetime.timedelta(days=_VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .sign(key, hashes.SHA256())
    )
    made = Identity(folder / f"{name}.crt", folder / f"{name}.key")
    made.certificate.write_bytes(certificate.public_bytes(Encoding.PEM))
    made.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return made
