"""Real tokens, real keys, and a real JWKS server."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from typing_extensions import override

from turnline.auth import Jwks, JwksOptions, JwtRules, JwtValidator, ValidationResult, authenticate
from turnline.errors import ConfigurationError, UnauthenticatedError
from turnline.telemetry import captured_logs

SECRET = "0123456789abcdef0123456789abcdef"
RSA_KEY = rsa.generate_private_key(65537, 2048)
OTHER_RSA_KEY = rsa.generate_private_key(65537, 2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def claims(**changes: object) -> dict[str, Any]:
    given = {"userId": "u1", "exp": int(time.time()) + 60, **changes}
    return {name: value for name, value in given.items() if value is not None}


def hmac_token(secret: str = SECRET, algorithm: str = "HS256", **changes: object) -> str:
    return jwt.encode(claims(**changes), secret, algorithm)


def rsa_token(key: rsa.RSAPrivateKey = RSA_KEY, kid: str = "r1", **changes: object) -> str:
    return jwt.encode(claims(**changes), key, "RS256", headers={"kid": kid})


def rsa_jwk(key: rsa.RSAPrivateKey = RSA_KEY, kid: str = "r1") -> dict[str, Any]:
    public = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    return {**public, "kid": kid, "use": "sig", "alg": "RS256"}


class Provider(ThreadingHTTPServer):
    """Serves a JWKS; its answer can be changed, delayed or made to fail."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.keys: list[dict[str, Any]] = [rsa_jwk()]
        self.status = 200
        self.fetches = 0
        self.reached = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/jwks.json"


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        provider = self.server
        assert isinstance(provider, Provider)
        provider.fetches += 1
        provider.reached.set()
        provider.may_answer.wait()
        body = json.dumps({"keys": provider.keys}).encode()
        self.send_response(provider.status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Stay quiet."""


@pytest.fixture
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server
    server.may_answer.set()
    server.shutdown()
    thread.join()
    server.server_close()


class Time:
    """A monotonic clock moved by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def judge(validator: JwtValidator, token: str) -> ValidationResult:
    return await validator.validate(token)


async def test_a_token_signed_with_the_secret_is_accepted_until_it_expires() -> None:
    expiry = int(time.time()) + 60

    result = await judge(JwtValidator(secret=SECRET), hmac_token(exp=expiry, role="x"))

    assert result.is_valid
    assert result.claims == {"userId": "u1", "exp": expiry, "role": "x"}
    assert result.expires_at == expiry + 5


@pytest.mark.parametrize(
    "token",
    [
        hmac_token(secret=SECRET[::-1]),
        hmac_token(algorithm="HS512", secret=SECRET * 2),
        hmac_token(exp=None),
        hmac_token(exp="soon"),
        hmac_token(nbf=int(time.time()) + 3600),
        hmac_token(aud="somebody else"),
        jwt.encode(claims(), "", "none"),
        rsa_token(),
        hmac_token() + "x",
        hmac_token().rsplit(".", 1)[0] + ".",
        "not.a.token",
        "x",
    ],
)
async def test_any_other_token_is_refused_and_stays_out_of_the_log(token: str) -> None:
    with captured_logs() as lines:
        result = await judge(JwtValidator(secret=SECRET), token)

    assert not result.is_valid
    assert result.error_msg == ""
    assert [line["event"] for line in lines] == ["auth.refused"]
    assert token not in str(lines) or token == "x"


async def test_an_expired_token_says_so_but_clocks_may_differ_by_the_leeway() -> None:
    token = hmac_token(exp=int(time.time()) - 30)
    lenient = JwtValidator(secret=SECRET, rules=JwtRules(leeway=60))

    assert await judge(JwtValidator(secret=SECRET), token) == ValidationResult(
        is_valid=False, error_msg="Token has expired"
    )
    assert (await judge(lenient, token)).is_valid


@pytest.mark.parametrize(
    ("changes", "is_valid"),
    [
        ({"aud": "chat", "iss": "me"}, True),
        ({"aud": ["x", "chat"], "iss": "me"}, True),
        ({"aud": "other", "iss": "me"}, False),
        ({"iss": "me"}, False),
        ({"aud": "chat", "iss": "other"}, False),
        ({"aud": "chat"}, False),
    ],
)
async def test_audience_and_issuer_must_be_those_asked_for(
    changes: dict[str, Any], is_valid: bool
) -> None:
    validator = JwtValidator(secret=SECRET, rules=JwtRules(audience="chat", issuer="me"))

    assert (await judge(validator, hmac_token(**changes))).is_valid is is_valid


async def test_another_claim_may_name_the_user_and_then_no_user_id_claim_counts() -> None:
    validator = JwtValidator(secret=SECRET, rules=JwtRules(user_id_claim="sub"))

    identity = await authenticate(validator, hmac_token(sub="u2", userId="forged"))

    assert identity.user_id == "u2"
    with pytest.raises(UnauthenticatedError, match="'userId' claim is required in token"):
        await authenticate(validator, hmac_token(userId="forged"))


async def test_keys_of_the_provider_are_fetched_once_and_kept(provider: Provider) -> None:
    provider.keys.append(
        {**ECAlgorithm.to_jwk(EC_KEY.public_key(), as_dict=True), "kid": "e1", "alg": "ES256"}
    )
    validator = JwtValidator(keys=Jwks(provider.url))
    ec_token = jwt.encode(claims(userId="u2"), EC_KEY, "ES256", headers={"kid": "e1"})

    identities = [await authenticate(validator, token) for token in (rsa_token(), ec_token)]

    assert [identity.user_id for identity in identities] == ["u1", "u2"]
    assert provider.fetches == 1


async def test_a_public_key_never_passes_for_a_secret(provider: Provider) -> None:
    pem = RSA_KEY.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    provider.keys.append({"kty": "oct", "kid": "o1", "alg": "HS256", "k": "c2VjcmV0" * 8})
    validator = JwtValidator(keys=Jwks(provider.url))
    unsigned = jwt.encode(claims(), "", "none", headers={"kid": "r1"})

    forged = [
        _raw_hs256(pem, "r1"),
        _raw_hs256(b"secret" * 8, "o1"),
        unsigned,
        rsa_token(OTHER_RSA_KEY),
    ]

    for token in forged:
        assert not (await judge(validator, token)).is_valid


def _raw_hs256(secret: bytes, kid: str) -> str:
    """Sign with any bytes; the library itself refuses to use a PEM as a secret."""
    from_library = jwt.encode(claims(), "x" * 32, "HS256", headers={"kid": kid})
    signing_input = from_library.rsplit(".", 1)[0]
    digest = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    signature = digest.sign(signing_input.encode(), secret)
    return f"{signing_input}.{jwt.utils.base64url_encode(signature).decode()}"


async def test_a_new_key_is_found_but_unknown_ids_cause_few_fetches(provider: Provider) -> None:
    clock = Time()
    validator = JwtValidator(keys=Jwks(provider.url, monotonic=clock))
    await judge(validator, rsa_token())
    provider.keys = [rsa_jwk(), rsa_jwk(OTHER_RSA_KEY, "r2")]
    rotated = rsa_token(OTHER_RSA_KEY, "r2")

    too_soon = await judge(validator, rotated)
    clock.now += 10
    found = await judge(validator, rotated)
    unknown = [await judge(validator, rsa_token(kid=f"no-{n}")) for n in range(20)]

    assert (too_soon.is_valid, found.is_valid) == (False, True)
    assert not any(result.is_valid for result in unknown)
    assert provider.fetches == 2


async def test_tokens_that_would_be_refused_anyway_cause_no_fetch(provider: Provider) -> None:
    validator = JwtValidator(keys=Jwks(provider.url))

    for token in (hmac_token(), "x", jwt.encode(claims(), "", "none")):
        assert not (await judge(validator, token)).is_valid

    assert provider.fetches == 0


async def test_old_keys_are_fetched_again_and_revoked_ones_forgotten(provider: Provider) -> None:
    clock = Time()
    validator = JwtValidator(keys=Jwks(provider.url, monotonic=clock))
    await judge(validator, rsa_token())
    provider.keys = [rsa_jwk(OTHER_RSA_KEY, "r2")]

    clock.now += 301
    result = await judge(validator, rsa_token())

    assert not result.is_valid
    assert provider.fetches == 2


async def test_keys_serve_for_a_while_when_the_provider_fails(provider: Provider) -> None:
    clock = Time()
    validator = JwtValidator(keys=Jwks(provider.url, monotonic=clock))
    await judge(validator, rsa_token())
    provider.status = 500

    clock.now += 3000
    with captured_logs() as lines:
        stale = await judge(validator, rsa_token())
    clock.now += 601
    too_old = await judge(validator, rsa_token())

    assert (stale.is_valid, too_old.is_valid) == (True, False)
    assert [line["event"] for line in lines] == ["dependency.unavailable"]
    assert provider.fetches == 3


async def test_a_provider_that_is_down_is_not_asked_for_every_caller(provider: Provider) -> None:
    clock = Time()
    provider.status = 500
    validator = JwtValidator(keys=Jwks(provider.url, monotonic=clock))

    refused = [await judge(validator, rsa_token()) for _ in range(5)]
    provider.status = 200
    clock.now += 10
    recovered = await judge(validator, rsa_token())

    assert not any(result.is_valid for result in refused)
    assert recovered.is_valid
    assert provider.fetches == 2


@pytest.mark.parametrize("keys", [[], [{"kty": "RSA", "kid": "r1"}], [{"kid": "r1"}]])
async def test_a_provider_without_usable_keys_accepts_nobody(
    provider: Provider, keys: list[dict[str, Any]]
) -> None:
    provider.keys = keys

    assert not (await judge(JwtValidator(keys=Jwks(provider.url)), rsa_token())).is_valid


async def test_callers_at_once_share_one_fetch(provider: Provider) -> None:
    validator = JwtValidator(keys=Jwks(provider.url))

    results = await asyncio.gather(*(judge(validator, rsa_token()) for _ in range(20)))

    assert all(result.is_valid for result in results)
    assert provider.fetches == 1


async def test_who_has_a_usable_key_does_not_wait_for_a_fetch(provider: Provider) -> None:
    clock = Time()
    validator = JwtValidator(keys=Jwks(provider.url, monotonic=clock))
    await judge(validator, rsa_token())
    provider.may_answer.clear()
    provider.reached.clear()
    clock.now += 10

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(judge(validator, rsa_token(kid="r2")))
        await asyncio.to_thread(provider.reached.wait)
        clock.now += 301
        result = await judge(validator, rsa_token())
        fetching = not waiting.done()
        provider.may_answer.set()

    assert result.is_valid
    assert fetching


async def test_a_provider_that_never_answers_costs_a_deadline(provider: Provider) -> None:
    provider.may_answer.clear()
    validator = JwtValidator(keys=Jwks(provider.url, JwksOptions(timeout=0.05)))

    with captured_logs() as lines:
        result = await judge(validator, rsa_token())

    assert not result.is_valid
    assert [line["event"] for line in lines] == ["dependency.unavailable", "auth.refused"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "give either a secret or keys"),
        ({"secret": SECRET, "keys": Jwks("https://x/jwks")}, "give either a secret or keys"),
        ({"secret": SECRET[:31]}, "use at least 32 random bytes"),
        ({"secret": SECRET, "rules": JwtRules(algorithms=["HS512"])}, "at least 64 random bytes"),
        ({"secret": SECRET, "rules": JwtRules(algorithms=["RS256"])}, "RS256 cannot be used"),
        ({"secret": SECRET, "rules": JwtRules(algorithms=["none"])}, "none cannot be used"),
        (
            {"keys": Jwks("https://x/jwks"), "rules": JwtRules(algorithms=["RS256", "HS256"])},
            "HS256 cannot be used",
        ),
    ],
)
def test_a_validator_that_could_not_be_safe_is_not_made(options: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationError, match=told) as caught:
        JwtValidator(**options)
    assert SECRET[:31] not in str(caught.value)


@pytest.mark.parametrize("url", ["http://idp.example/jwks", "file:///etc/passwd", "jwks", ""])
def test_keys_come_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be https"):
        Jwks(url)


def test_plain_http_can_be_permitted() -> None:
    Jwks("http://idp.example/jwks", JwksOptions(allow_http=True))
