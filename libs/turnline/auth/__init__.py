"""Authentication: the application's validator, and the identity its verdict gives a caller."""

from turnline.auth.authenticate import authenticate
from turnline.auth.jwks import Jwks, JwksOptions
from turnline.auth.jwt_validator import JwtRules, JwtValidator
from turnline.auth.port import AuthValidator, Context, Identity, ValidationResult
from turnline.auth.tokens import bearer_token, websocket_token

__all__ = [
    "AuthValidator",
    "Context",
    "Identity",
    "Jwks",
    "JwksOptions",
    "JwtRules",
    "JwtValidator",
    "ValidationResult",
    "authenticate",
    "bearer_token",
    "websocket_token",
]
