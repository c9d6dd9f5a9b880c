"""A ready-made validator of JSON Web Tokens: by a shared secret, a provider's keys or one of them.

Which algorithms are taken is decided here, never by the token: a validator with public keys takes
no HMAC, so a public key cannot pass for a secret (RFC 8725, section 3.1).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jwt
from jwt.exceptions import ExpiredSignatureError, PyJWTError
from typing_extensions import override

from turnline.auth.jwks import Jwks, KeysUnavailableError
from turnline.auth.port import USER_ID_CLAIM, AuthValidator, Context, ValidationResult
from turnline.auth.public_key import Key, PublicKey
from turnline.config.auth import HMAC_SECRET_BYTES, PUBLIC_KEY_ALGORITHMS
from turnline.errors import ConfigurationError
from turnline.telemetry import get_logger

_log = get_logger("auth")

EXPIRED = "Token has expired"


@dataclass(frozen=True, slots=True, kw_only=True)
class JwtRules:
    """Which tokens are taken.

    Attributes:
        algorithms: empty means HS256 with a secret, RS256 and ES256 with a provider's keys, and
            the usual one of its kind with one public key.
        audience: the `aud` a token must have; None takes only tokens without one.
        issuer: the `iss` a token must have; None takes any.
        leeway: seconds by which clocks may differ.
        user_id_claim: the claim that names the user; becomes `userId`.
    """

    algorithms: Sequence[str] = ()
    audience: str | None = None
    issuer: str | None = None
    leeway: float = 5.0
    user_id_claim: str = USER_ID_CLAIM


class JwtValidator(AuthValidator):
    """Checks signature, `exp` (required), `nbf`, `aud` and `iss`."""

    def __init__(
        self,
        *,
        secret: str | None = None,
        keys: Jwks | None = None,
        public_key: PublicKey | None = None,
        rules: JwtRules | None = None,
    ) -> None:
        """Take tokens signed with `secret`, or for one of `keys` or `public_key`; give one of them.

        Raises:
            ConfigurationError: several or none, an algorithm that does not fit, a short secret.
        """
        self._rules = rules or JwtRules()
        if [secret is None, keys is None, public_key is None].count(False) != 1:
            raise ConfigurationError(["JwtValidator: give either a secret or keys or a public_key"])
        self._algorithms = tuple(self._rules.algorithms) or _usual(keys, public_key)
        if faults := _faults(secret, public_key, self._algorithms):
            raise ConfigurationError(faults)
        self._fixed: str | Key = public_key.key if public_key is not None else secret or ""
        self._keys = keys

    @override
    async def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        """Judge a token; only fetching keys takes long, and does so in a thread."""
        try:
            key = await self._key(token)
            claims = jwt.decode(
                token,
                key=key,
                algorithms=self._algorithms,
                audience=self._rules.audience,
                issuer=self._rules.issuer,
                leeway=self._rules.leeway,
                options={"require": ["exp"]},
            )
        except ExpiredSignatureError:
            return ValidationResult(is_valid=False, error_msg=EXPIRED)
        except (PyJWTError, KeysUnavailableError) as error:
            _log.info("auth.refused", reason=type(error).__name__)
            return ValidationResult(is_valid=False)
        expires_at = float(claims["exp"]) + self._rules.leeway
        return ValidationResult(is_valid=True, claims=self._named(claims), expires_at=expires_at)

    async def _key(self, token: str) -> jwt.PyJWK | str | Key:
        if self._keys is None:
            return self._fixed
        header = jwt.get_unverified_header(token)
        # Looked at before the key, so that tokens we would refuse anyway cause no fetch.
        if header.get("alg") not in self._algorithms:
            raise jwt.InvalidAlgorithmError
        key = await self._keys.find(str(header.get("kid", "")))
        if key is None:
            raise jwt.InvalidKeyError
        return key

    def _named(self, claims: Mapping[str, Any]) -> Mapping[str, Any]:
        others = {name: value for name, value in claims.items() if name != USER_ID_CLAIM}
        user_id = claims.get(self._rules.user_id_claim)
        return others if user_id is None else {**others, USER_ID_CLAIM: user_id}


def _usual(keys: Jwks | None, public_key: PublicKey | None) -> tuple[str, ...]:
    if public_key is not None:
        return public_key.algorithms[:1]
    return ("HS256",) if keys is None else ("RS256", "ES256")


def _faults(
    secret: str | None, public_key: PublicKey | None, algorithms: Sequence[str]
) -> list[str]:
    known = HMAC_SECRET_BYTES.keys() if secret is not None else PUBLIC_KEY_ALGORITHMS
    fitting = known if public_key is None else public_key.algorithms
    unfit = [name for name in algorithms if name not in fitting]
    if unfit:
        return [
            f"JwtValidator: {', '.join(unfit)} cannot be used; use {', '.join(sorted(fitting))}"
        ]
    needed = max(HMAC_SECRET_BYTES.get(name, 0) for name in algorithms)
    if secret is not None and len(secret.encode()) < needed:
        return [f"JwtValidator: the secret is short; use at least {needed} random bytes"]
    return []
