"""The gRPC port of the push endpoint, made of settings.  Loaded by name, where the port is set."""

import ssl
from pathlib import Path

import grpc

from turnline.config import Settings
from turnline.errors import ConfigurationError
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService
from turnline.push.endpoint import PushHandler
from turnline.push.grpc_service import SERVICE_NAME, GrpcPush
from turnline.v1.push_service_pb2_grpc import add_PushServiceServicer_to_server

_CERTIFICATE = "websocket_api.push_grpc_certificate_file"
_PRIVATE_KEY = "websocket_api.push_grpc_private_key_file"


def open_server(settings: Settings, handler: PushHandler) -> GrpcServer:
    """Bind the port.

    Raises:
        ConfigurationError: the port is taken, or the certificate and its key cannot be used.
    """
    push = GrpcPush(handler)
    service = GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_PushServiceServicer_to_server(push, server),
        authenticate=push.authenticate,
    )
    options = GrpcOptions(
        host=settings.api.host,
        port=settings.websocket_api.push_grpc_port or 0,
        setting="websocket_api.push_grpc_port",
        credentials=_credentials(
            settings.websocket_api.push_grpc_certificate_file,
            settings.websocket_api.push_grpc_private_key_file,
        ),
        close_seconds=settings.execution.drain_grace,
    )
    return GrpcServer([service], options)


def _credentials(certificate: str | None, key: str | None) -> grpc.ServerCredentials | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        missing, there = (
            (_CERTIFICATE, _PRIVATE_KEY) if certificate is None else (_PRIVATE_KEY, _CERTIFICATE)
        )
        raise ConfigurationError(
            [f"{missing}: is not set, but {there} is; TLS needs both, so name its file"]
        )
    chain, private = _content(_CERTIFICATE, certificate), _content(_PRIVATE_KEY, key)
    try:
        # gRPC itself says nothing of a pair that does not fit until a client comes.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except ssl.SSLError as error:
        raise ConfigurationError(
            [
                f"{_CERTIFICATE}: {certificate} and the key in {key} are no pair in PEM "
                f"({error.reason}); name a certificate and its key, without a passphrase"
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
