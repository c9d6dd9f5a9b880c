"""The validator that the settings ask for, or the one the application gives in code.

Knows no JWT library: the ready-made validator is loaded by its name, when it is asked for.
"""

import pkgutil
from types import MappingProxyType
from typing import assert_never

from turnline.auth.port import AuthValidator
from turnline.config import load_adapter
from turnline.config.auth import Auth, auth_faults
from turnline.errors import ConfigurationError
from turnline.telemetry import get_logger

_log = get_logger("auth")

_READY_MADE = MappingProxyType({"jwt": "turnline.auth.from_settings"})


def configured_validator(auth: Auth, *, given: AuthValidator | None = None) -> AuthValidator | None:
    """Give the validator of this process; None if no token is to be checked.

    Args:
        given: the application's, from code; it comes before the settings, and a log line says
            when they ask for another.

    Raises:
        ConfigurationError: lists every fault of the block, or why its validator cannot be made.
    """
    if given is not None:
        if auth.type != "none":
            _log.warning(
                "config.warning",
                setting="auth.type",
                reason=f"{auth.type} has no effect, because the application gives its own "
                f"{type(given).__name__} in code; remove the one or the other",
            )
        return given
    if faults := auth_faults(auth):
        raise ConfigurationError(faults)
    match auth.type:
        case "none":
            return None
        case "jwt":
            return _ready_made(auth)
        case "custom":
            return _custom(auth.validator or "")
    assert_never(auth.type)


def _ready_made(auth: Auth) -> AuthValidator:
    module = load_adapter(_READY_MADE, auth.type)
    if module is None:
        raise ConfigurationError(
            ["auth.type: is jwt, but this installation lacks its library; install PyJWT[crypto]"]
        )
    validator: AuthValidator = module.open_validator(auth.jwt)
    return validator


def _custom(path: str) -> AuthValidator:
    # Whatever this raises comes from the application's code, and is one fault to the operator.
    try:
        found = pkgutil.resolve_name(path)
        validator = found() if callable(found) and not isinstance(found, AuthValidator) else found
    except Exception as error:
        raise ConfigurationError(
            [
                f"auth.validator: {path} cannot be loaded: {type(error).__name__}: {error}; "
                "correct the name, and see that its module is installed or on PYTHONPATH"
            ]
        ) from error
    if not isinstance(validator, AuthValidator):
        raise ConfigurationError(
            [
                f"auth.validator: {path} is a {type(validator).__name__}; name an AuthValidator, "
                "or a class or function that makes one"
            ]
        )
    return validator
