"""The gRPC port of chat, made of settings.  Loaded by name, where the port is set."""

import asyncio

from turnline.config import Settings
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService
from turnline.hosting.grpc_tls import NamedFile, server_credentials
from turnline.request_handler.grpc_service import SERVICE_NAME, GrpcChat
from turnline.request_handler.routes import RestParts
from turnline.v1.chat_service_pb2_grpc import add_ChatServiceServicer_to_server

# Calls that wait cost little, and the queue's bounds refuse turns before.
_MAX_CALLS = 10_000


def open_server(settings: Settings, parts: RestParts, draining: asyncio.Event) -> GrpcServer:
    """Bind the port.

    Args:
        draining: set when the process begins to drain.

    Raises:
        ConfigurationError: the port is taken, or the certificate and its key cannot be used.
    """
    api = settings.api
    chat = GrpcChat(parts)
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
    service = GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_ChatServiceServicer_to_server(chat, server),
        authenticate=chat.authenticate,
    )
    return GrpcServer([service], options)
