"""Authentication: the application's validator, and the identity its verdict gives a caller.

The ready-made validator and what belongs to it are loaded when first named: their libraries take
longer to load than the rest of a process without them.
"""

import importlib
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from turnline.auth.authenticate import authenticate
from turnline.auth.configured import configured_validator
from turnline.auth.port import AuthValidator, Context, Identity, ValidationResult
from turnline.auth.tokens import bearer_token, websocket_token

if TYPE_CHECKING:
    from turnline.auth.jwks import Jwks, JwksOptions
    from turnline.auth.jwt_validator import JwtRules, JwtValidator
    from turnline.auth.public_key import PublicKey

__all__ = [
    "AuthValidator",
    "Context",
    "Identity",
    "Jwks",
    "JwksOptions",
    "JwtRules",
    "JwtValidator",
    "PublicKey",
    "ValidationResult",
    "authenticate",
    "bearer_token",
    "configured_validator",
    "websocket_token",
]

_LOADED_BY_NAME = MappingProxyType(
    {
        "Jwks": "turnline.auth.jwks",
        "JwksOptions": "turnline.auth.jwks",
        "JwtRules": "turnline.auth.jwt_validator",
        "JwtValidator": "turnline.auth.jwt_validator",
        "PublicKey": "turnline.auth.public_key",
    }
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - a class of any of these modules
    if name not in _LOADED_BY_NAME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_LOADED_BY_NAME[name]), name)
