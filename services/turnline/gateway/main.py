"""The gateway as a process of its own; needs a broker and shared stores."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from turnline.auth import AuthValidator
from turnline.config import Topology
from turnline.errors import ConfigurationError
from turnline.gateway.custom import RouteHandler
from turnline.gateway.process import serve_gateway
from turnline.hosting import Standalone, serve_service

_NO_VALIDATOR = (
    "the gateway takes no sockets without an AuthValidator: start it from your own module with "
    "WebSocketGateway.run(auth_validator=...)"
)


def main(
    auth_validator: AuthValidator | None = None,
    routes: Mapping[str, RouteHandler] = MappingProxyType({}),
) -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`."""

    async def serve(process: Standalone) -> None:
        if auth_validator is None:
            raise ConfigurationError([_NO_VALIDATOR])
        await serve_gateway(process, validator=auth_validator, routes=routes)

    serve_service(Topology.GATEWAY, serve)


if __name__ == "__main__":
    main()
