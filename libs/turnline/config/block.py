"""What every block of settings is made of: strict, frozen, and careful with secrets.

Field names are the guide's keys, so they carry no unit; each description starts with it.
"""

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from typing_extensions import override

from turnline.config.redact import redacted

MIN_TOKEN_CHARACTERS = 16
MIN_TOKEN_DISTINCT = 8

WEEK = 604_800
DAY = 86_400
YEAR = 366 * DAY
MIB = 1024 * 1024


class Block(BaseModel):
    """A block of settings: unknown keys, infinities and booleans for numbers are refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True
    )

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_for_a_number(cls, value: object, info: ValidationInfo) -> object:
        # YAML reads `yes` and `on` as true, which Python would take for 1.
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in (int, float, int | None, float | None):
            raise ValueError("is a boolean where a number belongs; write the number")
        return value

    @override
    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        return [(name, redacted(value)) for name, value in super().__repr_args__()]


def _strong(token: SecretStr) -> SecretStr:
    value = token.get_secret_value()
    if len(value) < MIN_TOKEN_CHARACTERS or len(set(value)) < MIN_TOKEN_DISTINCT:
        raise ValueError(
            f"is too weak; use at least {MIN_TOKEN_CHARACTERS} characters, "
            f"{MIN_TOKEN_DISTINCT} of them different, such as `openssl rand -hex 32` gives"
        )
    if not value.isascii() or not value.isprintable() or " " in value:
        raise ValueError("holds characters an HTTP header cannot carry; use printable ASCII")
    return token


def _url_of(*schemes: str) -> AfterValidator:
    prefixes = tuple(f"{scheme}://" for scheme in schemes)

    def check(value: str) -> str:
        for url in value.split(","):
            if not url.strip().startswith(prefixes) or url.strip() in prefixes:
                raise ValueError(f"is no URL this can use; it starts with {' or '.join(prefixes)}")
        return value

    return AfterValidator(check)


Token = Annotated[SecretStr, AfterValidator(_strong)]
"""A secret shared by processes: redacted wherever it is printed, refused when guessable."""

NatsUrl = Annotated[str, _url_of("nats", "tls", "ws", "wss")]
RedisUrl = Annotated[str, _url_of("redis", "rediss", "unix")]
ValkeyUrl = Annotated[str, _url_of("valkey", "valkeys", "redis", "rediss", "unix")]
HttpUrl = Annotated[str, _url_of("http", "https")]
