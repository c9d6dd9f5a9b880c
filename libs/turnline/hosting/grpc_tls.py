"""The certificate a gRPC port is served with, read from files that settings name."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from turnline.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class NamedFile:
    """A file, and the setting that names it.

    Attributes:
        setting: dotted key, for faults.
        path: None where the setting is unset.
    """

    setting: str
    path: str | None


def server_credentials(
    certificate: NamedFile, private_key: NamedFile
) -> grpc.ServerCredentials | None:
    """Read a certificate and its key (PEM); None if neither is set, which means without TLS.

    Raises:
        ConfigurationError: one is set without the other, a file cannot be read, or they are no
            pair.
    """
    if certificate.path is None and private_key.path is None:
        return None
    if certificate.path is None or private_key.path is None:
        missing, there = (
            (certificate, private_key) if certificate.path is None else (private_key, certificate)
        )
        raise ConfigurationError(
            [
                f"{missing.setting}: is not set, but {there.setting} is; TLS needs both, so name "
                "its file"
            ]
        )
    chain = _content(certificate.setting, certificate.path)
    private = _content(private_key.setting, private_key.path)
    try:
        # gRPC itself says nothing of a pair that does not fit until a client comes.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.path, private_key.path, password="")
    except ssl.SSLError as error:
        raise ConfigurationError(
            [
                f"{certificate.setting}: {certificate.path} and the key in {private_key.path} are "
                f"no pair in PEM ({error.reason}); name a certificate and its key, without a "
                "passphrase"
            ]
        ) from error
    return grpc.ssl_server_credentials([(private, chain)])


def _content(setting: str, file: str) -> bytes:
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            [f"{setting}: {file} cannot be read: {error.strerror}; mount it there, readable"]
        ) from error
