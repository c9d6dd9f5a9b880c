"""The gRPC port of clients, made of settings.  Loaded by name, where the port is set."""

import asyncio
from collections.abc import Sequence

from turnline.config import Settings
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService
from turnline.hosting.grpc_tls import NamedFile, server_credentials

# Calls that wait cost little, and the queue's bounds refuse turns before.
_MAX_CALLS = 10_000


def open_server(
    settings: Settings, services: Sequence[GrpcService], draining: asyncio.Event
) -> GrpcServer:
    """Bind the port.

    Args:
        draining: set when the process begins to drain.

    Raises:
        ConfigurationError: the port is taken, or the certificate and its key cannot be used.
    """
    api = settings.api
    options = GrpcOptions(
        host=api.host,
        port=api.grpc_port or 0,
        setting="api.grpc_port",
        credentials=server_credentials(
            NamedFile("api.grpc_certificate_file", api.grpc_certificate_file),
            NamedFile("api.grpc_private_key_file", api.grpc_private_key_file),
        ),
        max_message_bytes=api.max_body_bytes,
        max_calls=_MAX_CALLS,
        draining=draining,
    )
    return GrpcServer(services, options)
