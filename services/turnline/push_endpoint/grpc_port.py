"""The gRPC port of the push endpoint, made of settings.  Loaded by name, where the port is set."""

from turnline.config import Settings
from turnline.hosting.grpc_server import GrpcOptions, GrpcServer, GrpcService
from turnline.hosting.grpc_tls import NamedFile, server_credentials
from turnline.push.endpoint import PushHandler
from turnline.push.grpc_service import SERVICE_NAME, GrpcPush
from turnline.v1.push_service_pb2_grpc import add_PushServiceServicer_to_server


def open_server(settings: Settings, handler: PushHandler) -> GrpcServer:
    """Bind the port.

    Raises:
        ConfigurationError: the port is taken, or the certificate and its key cannot be used.
    """
    push = GrpcPush(handler)
    sockets = settings.websocket_api
    service = GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_PushServiceServicer_to_server(push, server),
        authenticate=push.authenticate,
    )
    options = GrpcOptions(
        host=settings.api.host,
        port=sockets.push_grpc_port or 0,
        setting="websocket_api.push_grpc_port",
        credentials=server_credentials(
            NamedFile(
                "websocket_api.push_grpc_certificate_file", sockets.push_grpc_certificate_file
            ),
            NamedFile(
                "websocket_api.push_grpc_private_key_file", sockets.push_grpc_private_key_file
            ),
        ),
        close_seconds=settings.execution.drain_grace,
    )
    return GrpcServer([service], options)
