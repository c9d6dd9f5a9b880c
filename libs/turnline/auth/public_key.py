"""A public key from a PEM text, and the algorithms that go with its kind."""

from dataclasses import dataclass
from typing import TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from turnline.errors import ConfigurationError

MIN_RSA_BITS = 2048

# RFC 7518, section 3.4: each of these algorithms is of one curve.
_CURVES = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

Key: TypeAlias = RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey


@dataclass(frozen=True, slots=True, kw_only=True)
class PublicKey:
    """A key that tokens are checked with.

    Attributes:
        algorithms: those it can be used with; the first is the usual one.
    """

    key: Key
    algorithms: tuple[str, ...]

    @classmethod
    def from_pem(cls, pem: str) -> "PublicKey":
        """Read a key.

        Raises:
            ConfigurationError: the text is no PEM of a public key, or of one that cannot be used.
        """
        if "PRIVATE KEY-----" in pem:
            raise ConfigurationError(
                ["holds a private key, which checks no tokens; give the public one of the pair"]
            )
        try:
            key = load_pem_public_key(pem.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            raise ConfigurationError(
                ["holds no public key in PEM; begin it with -----BEGIN PUBLIC KEY-----"]
            ) from error
        match key:
            case RSAPublicKey() if key.key_size < MIN_RSA_BITS:
                raise ConfigurationError(
                    [f"holds an RSA key of {key.key_size} bits; use {MIN_RSA_BITS} or more"]
                )
            case RSAPublicKey():
                return cls(key=key, algorithms=_RSA)
            case EllipticCurvePublicKey() if key.curve.name in _CURVES:
                return cls(key=key, algorithms=(_CURVES[key.curve.name],))
            case Ed25519PublicKey():
                return cls(key=key, algorithms=("EdDSA",))
            case _:
                raise ConfigurationError(
                    ["holds a key tokens are not signed for; use RSA, P-256, P-384 or Ed25519"]
                )
