"""`auth`: who checks the tokens of callers, and how the ready-made JWT validator does."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, SecretStr

from turnline.config.block import DAY, Block

HMAC_SECRET_BYTES: Mapping[str, int] = MappingProxyType({"HS256": 32, "HS384": 48, "HS512": 64})
"""Algorithms with a shared secret, and its least length: that of the hash (RFC 7518, 3.2)."""

PUBLIC_KEY_ALGORITHMS = frozenset(
    {"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}
)
"""Algorithms whose tokens are checked with a public key."""

MIN_SECRET_BYTES = min(HMAC_SECRET_BYTES.values())
MIN_SECRET_DISTINCT = 8

AuthType = Literal["none", "jwt", "custom"]

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def is_safe_key_url(url: str) -> bool:
    """Whether keys from a URL can be trusted: https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return False
    schemes = ("https", "http") if host in _LOOPBACK else ("https",)
    return bool(host) and parts.scheme in schemes


def _hard_to_guess(secret: SecretStr) -> SecretStr:
    value = secret.get_secret_value()
    if value.lstrip().startswith("-----BEGIN"):
        raise ValueError("holds a PEM key, no secret; name its file as auth.jwt.public_key_file")
    if len(value.encode()) < MIN_SECRET_BYTES or len(set(value)) < MIN_SECRET_DISTINCT:
        raise ValueError(
            f"is too weak; use at least {MIN_SECRET_BYTES} bytes, {MIN_SECRET_DISTINCT} of them "
            "different, such as `openssl rand -hex 32` gives"
        )
    return secret


def _key_url(url: str) -> str:
    if not is_safe_key_url(url):
        raise ValueError(
            "must be https (http on this machine only), because whoever can answer for that host "
            "can make any token; correct the URL"
        )
    return url


def _known_algorithms(text: str) -> str:
    known = sorted({*HMAC_SECRET_BYTES, *PUBLIC_KEY_ALGORITHMS})
    unknown = [name for name in split_names(text) if name not in known]
    if unknown or not split_names(text):
        said = ", ".join(repr(name) for name in unknown) or "the text"
        raise ValueError(f"{said} names no algorithm this can use; use {', '.join(known)}")
    return text


def _attribute_path(path: str) -> str:
    module, _, attribute = path.partition(":")
    if not all(name.isidentifier() for part in (module, attribute) for name in part.split(".")):
        raise ValueError("names no Python object; write package.module:attribute")
    return path


def split_names(text: str) -> tuple[str, ...]:
    """Take a text of names separated by commas apart."""
    return tuple(name for part in text.split(",") if (name := part.strip()))


class Jwt(Block):
    """`auth.jwt`: which JSON Web Tokens are taken; one of the first three says how signed."""

    secret: Annotated[SecretStr, AfterValidator(_hard_to_guess)] | None = Field(
        default=None,
        description="Secret shared with whoever makes the tokens (HMAC).  At least 32 bytes, 48 "
        "for HS384, 64 for HS512.  Unset: tokens are not signed with a secret.",
    )
    jwks_url: Annotated[str, AfterValidator(_key_url)] | None = Field(
        default=None,
        description="Where the identity provider publishes its keys (JWKS); https.  Unset: no "
        "keys are fetched.",
    )
    public_key_file: str | None = Field(
        default=None,
        min_length=1,
        max_length=4096,
        description="PEM file of the one public key tokens are checked with (RSA, EC or Ed25519).  "
        "Unset: none is read.",
    )
    algorithms: Annotated[str, AfterValidator(_known_algorithms)] | None = Field(
        default=None,
        description="Algorithms taken, separated by commas; whatever a token says, no other is.  "
        "Unset: HS256 with a secret, RS256 and ES256 with a JWKS, with a file what fits its key.",
    )
    issuer: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        description="The `iss` a token must have.  Unset: any.",
    )
    audience: str | None = Field(
        default=None,
        min_length=1,
        max_length=2048,
        description="The `aud` a token must have.  Unset: only tokens without one are taken.",
    )
    leeway: float = Field(
        default=5,
        ge=0,
        le=300,
        description="Seconds by which the clock of whoever makes the tokens may differ.  0: not "
        "at all.  Default 5: more than NTP leaves.",
    )
    user_id_claim: str = Field(
        default="userId",
        min_length=1,
        max_length=256,
        description="The claim that names the user.  Default userId: the guide's.",
    )
    jwks_lifespan: float = Field(
        default=300,
        ge=1,
        le=DAY,
        description="Seconds after which keys are fetched again; a revoked key is taken as long.  "
        "Default 300: few fetches, and a revocation counts within minutes.",
    )
    jwks_max_stale: float = Field(
        default=3600,
        ge=1,
        le=DAY,
        description="Seconds after their fetch for which keys are used while the provider does "
        "not answer.  Default 3600: most outages are over by then.",
    )


class Auth(Block):
    """`auth`: who checks the tokens of callers."""

    type: AuthType = Field(
        default="none",
        description="none: nobody; REST is open and there are no sockets.  jwt: the ready-made "
        "validator, see auth.jwt.  custom: the application's own, see auth.validator.  One given "
        "in code comes before either.  Default none: the guide's.",
    )
    validator: Annotated[str, AfterValidator(_attribute_path)] | None = Field(
        default=None,
        description="package.module:attribute of an AuthValidator: an instance, or a class or "
        "function that makes one.  Unset: right unless auth.type is custom.",
    )
    jwt: Jwt = Field(default_factory=Jwt, description="The ready-made validator.")


def auth_faults(auth: Auth) -> tuple[str, ...]:
    """List what in the block contradicts itself; empty when nothing does.

    Each line names the setting, what is wrong and the fix.
    """
    jwt_faults = _jwt_faults(auth.jwt) if auth.type == "jwt" else ()
    return (*_type_faults(auth), *jwt_faults)


def _type_faults(auth: Auth) -> Iterator[str]:
    if auth.type == "custom" and auth.validator is None:
        yield (
            "auth.validator: is not set, but auth.type is custom; name your AuthValidator as "
            "package.module:attribute"
        )
    if auth.type == "jwt" and auth.validator is not None:
        yield (
            "auth.validator: is set, but auth.type is jwt, and one validator checks a token; set "
            "auth.type to custom or remove auth.validator"
        )
    if "type" not in auth.model_fields_set and (named := _named(auth)):
        yield (
            f"auth.type: is not set, so no token is checked, but {named} is; set auth.type to "
            f"{'custom' if auth.validator else 'jwt'}, or to none to leave it so"
        )


def _named(auth: Auth) -> str:
    """The setting that shows that tokens are meant to be checked; empty if there is none."""
    if auth.validator is not None:
        return "auth.validator"
    return next(
        (f"auth.jwt.{name}" for name in Jwt.model_fields if name in auth.jwt.model_fields_set), ""
    )


def _jwt_faults(jwt: Jwt) -> Iterator[str]:
    sources = [name for name in ("secret", "jwks_url", "public_key_file") if getattr(jwt, name)]
    if not sources:
        yield (
            "auth.jwt: nothing says how tokens are signed; set one of auth.jwt.secret, "
            "auth.jwt.jwks_url and auth.jwt.public_key_file"
        )
    elif len(sources) > 1:
        yield f"auth.jwt: {' and '.join(sources)} are set; keep the one tokens are signed for"
    else:
        yield from _algorithm_faults(jwt)
    if jwt.jwks_max_stale < jwt.jwks_lifespan:
        yield (
            "auth.jwt.jwks_max_stale: is below auth.jwt.jwks_lifespan, so keys would go before "
            "they are fetched again; raise the one or lower the other"
        )


def _algorithm_faults(jwt: Jwt) -> Iterator[str]:
    names = split_names(jwt.algorithms or "")
    fitting = HMAC_SECRET_BYTES.keys() if jwt.secret else PUBLIC_KEY_ALGORITHMS
    unfit = [name for name in names if name not in fitting]
    if unfit:
        source = "a secret" if jwt.secret else "a public key"
        yield (
            f"auth.jwt.algorithms: {', '.join(unfit)} cannot be used with {source}; use "
            f"{', '.join(sorted(fitting))}"
        )
    needed = max((HMAC_SECRET_BYTES.get(name, 0) for name in names), default=0)
    if jwt.secret and len(jwt.secret.get_secret_value().encode()) < needed:
        yield f"auth.jwt.secret: is too short for {jwt.algorithms}; use at least {needed} bytes"
