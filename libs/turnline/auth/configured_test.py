"""Validators by settings: real tokens, real key files, and a real JWKS server."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from jwt.algorithms import RSAAlgorithm
from typing_extensions import override

from turnline.auth import (
    AuthValidator,
    Context,
    ValidationResult,
    authenticate,
    configured_validator,
)
from turnline.config.auth import Auth
from turnline.errors import ConfigurationError, UnauthenticatedError
from turnline.telemetry import captured_logs

SECRET = "0123456789abcdef0123456789abcdef"
RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP384R1())
ED_KEY = ed25519.Ed25519PrivateKey.generate()

Keys = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey


def a_token(key: Keys | str, algorithm: str, **changes: object) -> str:
    claims = {"userId": "u1", "exp": int(time.time()) + 60, **changes}
    return jwt.encode(claims, key, algorithm, headers={"kid": "k1"})


def pem_of(key: Keys | dsa.DSAPrivateKey) -> str:
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return public.decode()


def by_settings(**jwt_settings: object) -> AuthValidator:
    validator = configured_validator(Auth.model_validate({"type": "jwt", "jwt": jwt_settings}))
    assert validator is not None
    return validator


async def user(validator: AuthValidator, token: str) -> str | None:
    """Who the bearer of a token is; None if it is refused."""
    try:
        return (await authenticate(validator, token)).user_id
    except UnauthenticatedError:
        return None


def faults(**auth: object) -> tuple[str, ...]:
    with pytest.raises(ConfigurationError) as caught:
        configured_validator(Auth.model_validate(auth))
    return caught.value.faults


# --- the ready-made one ---------------------------------------------------------------------------


async def test_tokens_signed_with_the_secret_are_taken() -> None:
    validator = by_settings(secret=SECRET)

    assert await user(validator, a_token(SECRET, "HS256")) == "u1"
    assert await user(validator, a_token(SECRET[::-1], "HS256")) is None
    assert await user(validator, a_token(RSA_KEY, "RS256")) is None
    assert await user(validator, a_token("", "none")) is None


async def test_rules_are_taken_from_the_settings() -> None:
    validator = by_settings(
        secret=SECRET * 2,
        algorithms="HS384, HS512",
        issuer="me",
        audience="chat",
        leeway=60,
        user_id_claim="sub",
    )
    good = {"iss": "me", "aud": "chat", "sub": "u2", "exp": int(time.time()) - 30}

    async def answer(algorithm: str = "HS512", **changes: object) -> str | None:
        return await user(validator, a_token(SECRET * 2, algorithm, **{**good, **changes}))

    assert await answer() == "u2"
    assert await answer("HS384") == "u2"
    assert await answer("HS256") is None
    assert await answer(iss="other") is None
    assert await answer(aud="other") is None
    assert await answer(exp=int(time.time()) - 90) is None


@pytest.mark.parametrize(
    ("key", "algorithm"), [(RSA_KEY, "RS256"), (EC_KEY, "ES384"), (ED_KEY, "EdDSA")]
)
async def test_a_public_key_is_read_from_its_file(
    tmp_path: Path, key: Keys, algorithm: str
) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem_of(key))

    validator = by_settings(public_key_file=str(file))

    assert await user(validator, a_token(key, algorithm)) == "u1"
    assert await user(validator, a_token(SECRET, "HS256")) is None
    other = rsa.generate_private_key(65537, 2048)
    assert await user(validator, a_token(other, "RS256")) is None


async def test_a_public_key_takes_the_algorithms_that_are_named(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem_of(RSA_KEY))

    validator = by_settings(public_key_file=str(file), algorithms="PS256,RS512")

    assert await user(validator, a_token(RSA_KEY, "PS256")) == "u1"
    assert await user(validator, a_token(RSA_KEY, "RS256")) is None


@pytest.fixture
def jwks_url() -> Iterator[str]:
    public: dict[str, Any] = RSAAlgorithm.to_jwk(RSA_KEY.public_key(), as_dict=True)
    body = json.dumps({"keys": [{**public, "kid": "k1", "use": "sig", "alg": "RS256"}]}).encode()

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet."""

    server = HTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/jwks.json"
    server.shutdown()
    thread.join()
    server.server_close()


async def test_keys_are_fetched_from_the_provider(jwks_url: str) -> None:
    validator = by_settings(jwks_url=jwks_url)

    assert await user(validator, a_token(RSA_KEY, "RS256")) == "u1"
    assert await user(validator, a_token(EC_KEY, "ES384")) is None
    assert await user(validator, a_token(SECRET, "HS256")) is None


# --- key files that cannot be used ----------------------------------------------------------------


def _private(key: Keys) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize(
    ("pem", "told"),
    [
        (_private(RSA_KEY), "holds a private key"),
        ("no key at all", "holds no public key in PEM"),
        ("\xe9", "is no PEM text"),
        ("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n", "BEGIN PUBLIC KEY"),
        (pem_of(rsa.generate_private_key(65537, 1024)), "of 1024 bits; use 2048 or more"),
        (pem_of(ec.generate_private_key(ec.SECP256K1())), "tokens are not signed for"),
        (pem_of(dsa.generate_private_key(2048)), "tokens are not signed for"),
    ],
    ids=["private", "text", "binary", "certificate", "short", "curve", "dsa"],
)
def test_a_key_that_cannot_be_used_is_a_fault_that_names_its_file(
    tmp_path: Path, pem: str, told: str
) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem, encoding="utf-8")

    [fault] = faults(type="jwt", jwt={"public_key_file": str(file)})

    assert fault.startswith(f"auth.jwt.public_key_file: {file} ")
    assert told in fault
    assert "MII" not in fault


def test_a_missing_key_file_is_a_fault(tmp_path: Path) -> None:
    [fault] = faults(type="jwt", jwt={"public_key_file": str(tmp_path / "none.pem")})

    assert "cannot be read: No such file" in fault


def test_an_algorithm_of_another_kind_of_key_is_a_fault(tmp_path: Path) -> None:
    file = tmp_path / "key.pem"
    file.write_text(pem_of(EC_KEY))

    [fault] = faults(type="jwt", jwt={"public_key_file": str(file), "algorithms": "RS256,ES384"})

    assert fault.startswith("auth.jwt.algorithms: RS256 cannot be used with the key in ")
    assert fault.endswith("use ES384")


def test_a_block_that_contradicts_itself_makes_no_validator() -> None:
    assert len(faults(type="jwt", validator="a:b")) == 2


# --- the application's own ------------------------------------------------------------------------


class Own(AuthValidator):
    """Takes every token for its user."""

    @override
    def validate(self, token: str, context: Context | None = None) -> ValidationResult:
        return ValidationResult(is_valid=True, claims={"userId": token})


INSTANCE = Own()
A_NUMBER = 5


class Broken(Own):
    """Cannot be made."""

    def __init__(self) -> None:
        raise KeyError("OWN_SETTING")


def custom(attribute: str, module: str = __name__) -> Auth:
    return Auth.model_validate({"type": "custom", "validator": f"{module}:{attribute}"})


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An application's module, importable by its name."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "own_validators", sys.modules[__name__])
    (tmp_path / "broken_validators.py").write_text("this is no Python\n")
    yield "own_validators"


@pytest.mark.parametrize("attribute", ["Own", "INSTANCE"])
async def test_a_class_or_an_instance_can_be_named(module: str, attribute: str) -> None:
    validator = configured_validator(custom(attribute, module))

    assert validator is not None
    assert await user(validator, "u5") == "u5"


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("no_such_module_here:X", "ModuleNotFoundError: No module named 'no_such_module_here'"),
        ("own_validators:Nothing", "AttributeError"),
        ("broken_validators:X", "SyntaxError"),
        ("own_validators:Broken", "KeyError: 'OWN_SETTING'"),
        ("own_validators:A_NUMBER", "is a int; name an AuthValidator"),
    ],
)
@pytest.mark.usefixtures("module")
def test_a_name_that_leads_to_no_validator_is_a_fault(path: str, told: str) -> None:
    [fault] = faults(type="custom", validator=path)

    assert fault.startswith(f"auth.validator: {path} ")
    assert told in fault


# --- which one counts -----------------------------------------------------------------------------


def test_without_a_type_there_is_none() -> None:
    assert configured_validator(Auth()) is None


def test_one_given_in_code_counts_and_the_conflict_is_said() -> None:
    auth = Auth.model_validate({"type": "jwt", "jwt": {"secret": SECRET}})

    with captured_logs() as lines:
        assert configured_validator(auth, given=INSTANCE) is INSTANCE

    [line] = lines
    assert (line["event"], line["setting"]) == ("config.warning", "auth.type")
    assert "Own in code" in str(line["reason"])


def test_one_given_in_code_alone_is_no_conflict() -> None:
    with captured_logs() as lines:
        assert configured_validator(Auth(), given=INSTANCE) is INSTANCE

    assert lines == []


@pytest.mark.parametrize(
    ("program", "loads"),
    [
        ("from turnline.auth import AuthValidator, configured_validator", False),
        ("from turnline.auth import JwtValidator", True),
    ],
)
def test_the_jwt_library_is_loaded_only_when_it_is_named(program: str, loads: bool) -> None:
    told = f"{program}; import sys; print(bool({{'jwt', 'cryptography'}} & set(sys.modules)))"
    paths = "; ".join(f"sys.path.append({path!r})" for path in sys.path)

    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; {paths}; {told}"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert ran.stdout.strip() == str(loads)
