"""gRPC where a setting asks for it: its modules are loaded by name, so that no others need it."""

from collections.abc import Mapping
from types import ModuleType

from turnline.config import Settings, load_adapter
from turnline.errors import ConfigurationError
from turnline.hosting.lifecycle import Lifecycle
from turnline.hosting.parts import Server

_PORT = "turnline.hosting.grpc_port"
_NO_LIBRARY = (
    "api.grpc_port: is set, but this installation lacks gRPC; install grpcio, "
    "grpcio-health-checking and grpcio-reflection, or unset it"
)


def open_grpc(
    settings: Settings, lifecycle: Lifecycle, desks: Mapping[str, object]
) -> list[Server]:
    """Bind `api.grpc_port` for some services; nothing where it is unset.

    Args:
        desks: module of a service -> what the service works on; its `make_service` is given that.

    Raises:
        ConfigurationError: the port is taken, its certificate cannot be used, or this installation
            lacks gRPC.
    """
    if settings.api.grpc_port is None:
        return []
    services = [_loaded(module).make_service(desk) for module, desk in desks.items()]
    server: Server = _loaded(_PORT).open_server(settings, services, lifecycle.draining)
    return [server]


def _loaded(name: str) -> ModuleType:
    module = load_adapter({name: name}, name)
    if module is None:
        raise ConfigurationError([_NO_LIBRARY])
    return module
