"""The ready-made JWT validator, as the block `auth.jwt` describes it.  Loaded by name."""

from pathlib import Path

from turnline.auth.jwks import Jwks, JwksOptions
from turnline.auth.jwt_validator import JwtRules, JwtValidator
from turnline.auth.public_key import PublicKey
from turnline.config.auth import Jwt, split_names
from turnline.errors import ConfigurationError

MAX_KEY_BYTES = 65_536


def open_validator(jwt: Jwt) -> JwtValidator:
    """Make the validator of a block without faults; reads the key's file, if one is named.

    Raises:
        ConfigurationError: the file cannot be read, or its key cannot be used.
    """
    return JwtValidator(
        secret=jwt.secret.get_secret_value() if jwt.secret else None,
        keys=_jwks(jwt, jwt.jwks_url) if jwt.jwks_url else None,
        public_key=_public_key(jwt, jwt.public_key_file) if jwt.public_key_file else None,
        rules=JwtRules(
            algorithms=split_names(jwt.algorithms or ""),
            audience=jwt.audience,
            issuer=jwt.issuer,
            leeway=jwt.leeway,
            user_id_claim=jwt.user_id_claim,
        ),
    )


def _jwks(jwt: Jwt, url: str) -> Jwks:
    options = JwksOptions(lifespan=jwt.jwks_lifespan, max_stale=jwt.jwks_max_stale)
    return Jwks(url, options)


def _public_key(jwt: Jwt, file: str) -> PublicKey:
    try:
        with Path(file).open("rb") as stream:
            pem = stream.read(MAX_KEY_BYTES).decode("ascii")
        key = PublicKey.from_pem(pem)
    except OSError as error:
        raise _fault(file, f"cannot be read: {error.strerror}; mount it there") from error
    except UnicodeDecodeError as error:
        raise _fault(file, "is no PEM text; convert it with openssl") from error
    except ConfigurationError as error:
        raise _fault(file, error.faults[0]) from error
    unfit = [name for name in split_names(jwt.algorithms or "") if name not in key.algorithms]
    if unfit:
        fitting = ", ".join(key.algorithms)
        raise ConfigurationError(
            [
                f"auth.jwt.algorithms: {', '.join(unfit)} cannot be used with the key in {file}; "
                f"use {fitting}"
            ]
        )
    return key


def _fault(file: str, what: str) -> ConfigurationError:
    return ConfigurationError([f"auth.jwt.public_key_file: {file} {what}"])
