"""The block `auth`: what it refuses by itself, and what contradicts itself."""

from pathlib import Path

import pytest

from turnline.config import effective_yaml, load_settings
from turnline.config.auth import Auth, auth_faults
from turnline.errors import ConfigurationError

SECRET = "0123456789abcdef0123456789abcdef"
URL = "https://idp.example/jwks.json"


def loaded(tmp_path: Path, **environ: str) -> Auth:
    variables = {f"AK_AUTH__{name.upper()}": value for name, value in environ.items()}
    return load_settings(environ=variables, cwd=tmp_path).settings.auth


def faults(**auth: object) -> tuple[str, ...]:
    return auth_faults(Auth.model_validate(auth))


def test_nothing_is_checked_unless_asked_for(tmp_path: Path) -> None:
    assert loaded(tmp_path).type == "none"
    assert auth_faults(loaded(tmp_path)) == ()


@pytest.mark.parametrize(
    "jwt",
    [
        {"secret": SECRET},
        {"secret": SECRET * 2, "algorithms": "HS256, HS384,HS512"},
        {"jwks_url": URL, "algorithms": "RS256"},
        {"jwks_url": "http://127.0.0.1:9/jwks"},
        {"public_key_file": "key.pem", "algorithms": "ES512,EdDSA"},
    ],
)
def test_each_way_to_sign_can_be_asked_for(jwt: dict[str, str]) -> None:
    assert faults(type="jwt", jwt=jwt) == ()


@pytest.mark.parametrize(
    ("variable", "value", "told"),
    [
        ("jwt__secret", SECRET[:31], "too weak"),
        ("jwt__secret", "a" * 64, "too weak"),
        ("jwt__secret", "-----BEGIN PUBLIC KEY-----\nMIIB", "public_key_file"),
        ("jwt__jwks_url", "http://idp.example/jwks", "must be https"),
        ("jwt__jwks_url", "file:///etc/passwd", "must be https"),
        ("jwt__jwks_url", "http://localhost.example/jwks", "must be https"),
        ("jwt__jwks_url", "https://[x/jwks", "must be https"),
        ("jwt__algorithms", "none", "'none' names no algorithm"),
        ("jwt__algorithms", "RS256,hs256", "'hs256' names no algorithm"),
        ("jwt__algorithms", " , ", "names no algorithm"),
        ("jwt__leeway", "-1", "a number from 0"),
        ("type", "jwtt", "did you mean jwt"),
        ("validator", "app.auth.Validator", "package.module:attribute"),
        ("validator", "app auth:x", "package.module:attribute"),
    ],
)
def test_a_setting_that_is_not_safe_or_not_usable_is_refused_with_its_origin(
    tmp_path: Path, variable: str, value: str, told: str
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        loaded(tmp_path, **{variable: value})

    [fault] = caught.value.faults
    assert fault.startswith(f"env AK_AUTH__{variable.upper()}: auth.")
    assert told in fault
    if variable == "jwt__secret":
        assert value not in fault


@pytest.mark.parametrize(
    ("jwt", "told"),
    [
        ({}, "auth.jwt: nothing says how tokens are signed"),
        ({"secret": SECRET, "jwks_url": URL}, "auth.jwt: secret and jwks_url are set"),
        ({"secret": SECRET, "algorithms": "RS256"}, "RS256 cannot be used with a secret"),
        ({"secret": SECRET, "algorithms": "HS256,HS512"}, "use at least 64 bytes"),
        (
            {"jwks_url": URL, "algorithms": "RS256,HS256"},
            "auth.jwt.algorithms: HS256 cannot be used with a public key",
        ),
        (
            {"public_key_file": "x", "algorithms": "HS384"},
            "auth.jwt.algorithms: HS384 cannot be used with a public key",
        ),
        ({"jwks_url": URL, "jwks_max_stale": 60}, "auth.jwt.jwks_max_stale: is below"),
    ],
)
def test_a_validator_that_could_not_be_safe_is_a_fault(jwt: dict[str, object], told: str) -> None:
    [fault] = faults(type="jwt", jwt=jwt)

    assert told in fault


def test_every_fault_is_told_at_once() -> None:
    jwt = {"secret": SECRET, "algorithms": "RS256,HS384", "jwks_max_stale": 60}

    assert len(faults(type="jwt", validator="a:b", jwt=jwt)) == 4


@pytest.mark.parametrize(
    ("auth", "told"),
    [
        ({"jwt": {"secret": SECRET}}, "auth.jwt.secret is; set auth.type to jwt"),
        ({"jwt": {"audience": "chat"}}, "auth.jwt.audience is; set auth.type to jwt"),
        ({"validator": "a:b"}, "auth.validator is; set auth.type to custom"),
    ],
)
def test_a_forgotten_type_does_not_leave_the_door_open(auth: dict[str, object], told: str) -> None:
    [fault] = faults(**auth)

    assert told in fault
    assert faults(type="none", **auth) == ()


def test_a_custom_type_needs_its_validator() -> None:
    assert faults(type="custom", validator="app.auth:Validator") == ()
    [fault] = faults(type="custom")

    assert fault.startswith("auth.validator: is not set")


def test_the_secret_is_not_shown(tmp_path: Path) -> None:
    environ = {"AK_AUTH__TYPE": "jwt", "AK_AUTH__JWT__SECRET": SECRET}

    given = load_settings(environ=environ, cwd=tmp_path)

    assert SECRET not in effective_yaml(given)
    assert SECRET not in repr(given.settings)
