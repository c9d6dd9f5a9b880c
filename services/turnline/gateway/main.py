"""The gateway as a process of its own; needs a broker and shared stores."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NoReturn

from turnline.auth import AuthValidator, configured_validator
from turnline.config import Settings, Topology
from turnline.errors import ConfigurationError
from turnline.gateway.custom import RouteHandler
from turnline.gateway.process import serve_gateway
from turnline.hosting import ServeStandalone, serve_prepared

_NO_ROUTES: Mapping[str, RouteHandler] = MappingProxyType({})
_NO_VALIDATOR = (
    "auth.type: is none, but the gateway takes no sockets without an AuthValidator; set it to jwt "
    "or custom, or start it from your own module with WebSocketGateway.run(auth_validator=...)"
)


def main(
    auth_validator: AuthValidator | None = None, routes: Mapping[str, RouteHandler] = _NO_ROUTES
) -> NoReturn:
    """Serve until told to stop, then exit; codes are those of `turnline.hosting.process`.

    Args:
        auth_validator: checks the tokens of sockets; None takes the one the settings name.
        routes: custom routes by name.
    """
    serve_prepared(Topology.GATEWAY, lambda settings: prepared(settings, auth_validator, routes))


def prepared(
    settings: Settings,
    auth_validator: AuthValidator | None = None,
    routes: Mapping[str, RouteHandler] = _NO_ROUTES,
) -> ServeStandalone:
    """Give what serves a gateway; the arguments are those of `main`.

    Raises:
        ConfigurationError: neither the code nor the settings give a validator that can be made.
    """
    validator = configured_validator(settings.auth, given=auth_validator)
    if validator is None:
        raise ConfigurationError([_NO_VALIDATOR])
    return lambda process: serve_gateway(process, validator=validator, routes=routes)


if __name__ == "__main__":
    main()
