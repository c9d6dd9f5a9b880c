"""`execution.response_store` and `session`: where answers, histories and connections are kept."""

from collections.abc import Iterable
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from turnline.config.block import DAY, WEEK, YEAR, Block, HttpUrl, RedisUrl, ValkeyUrl

ResponseStoreType = Literal["in_memory", "redis", "valkey", "dynamodb"]
SessionType = Literal["in_memory", "redis", "valkey", "dynamodb"]

_UNSUPPORTED_SESSIONS = ("cosmosdb", "firestore")


class DynamoDb(Block):
    """A `dynamodb` block: an existing table."""

    table_name: str | None = Field(
        default=None,
        min_length=3,
        max_length=255,
        description="The existing table.  Unset: none; required when the type is dynamodb.",
    )
    ttl: int = Field(
        default=WEEK,
        ge=1,
        le=YEAR,
        description="Seconds an item is kept; the table's TTL attribute must be expiry_time.  "
        "Default one week: as on redis and valkey.",
    )
    region: str | None = Field(
        default=None, min_length=1, description="AWS region.  Unset: what the AWS environment says."
    )
    endpoint_url: HttpUrl | None = Field(
        default=None,
        description="Where DynamoDB is, for an emulator or a private endpoint.  Unset: AWS's own.",
    )


class ReplyRedis(Block):
    """`execution.response_store.redis`."""

    url: RedisUrl = Field(
        default="redis://localhost:6379",
        description="Server URL; may hold a password.  Default: a server on this machine.",
    )
    ttl: int = Field(
        default=WEEK,
        ge=1,
        le=YEAR,
        description="Seconds an answer is kept.  Default one week: the guide's.",
    )
    prefix: str = Field(
        default="ak:responses:", description="What keys begin with.  Empty: nothing."
    )


class ReplyValkey(ReplyRedis):
    """`execution.response_store.valkey`."""

    url: ValkeyUrl = Field(
        default="valkey://localhost:6379",
        description="Server URL; may hold a password.  Default: a server on this machine.",
    )


class ReplyMemory(Block):
    """`execution.response_store.in_memory`: bounded, lost with the process."""

    ttl: float = Field(
        default=WEEK,
        ge=0.05,
        le=YEAR,
        description="Seconds an answer is kept.  Default one week: as in the shared stores.",
    )
    max_replies: int = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="Answers kept; the oldest gives way.  Default 10000: one process's busy day.",
    )
    max_bytes: int = Field(
        default=134_217_728,
        ge=1024,
        le=1 << 40,
        description="Bytes kept; the oldest answers give way.  Default 128 MiB: fits a small "
        "container.",
    )


class ResponseStore(Block):
    """`execution.response_store`: where answers wait for their callers.

    `retry_count` x `delay` is 60 x 1 s without a block and 5 x 5 s as soon as one is declared
    (guide).
    """

    type: ResponseStoreType = Field(
        default="in_memory",
        description="Kind of store.  in_memory serves one process only.  Default in_memory: "
        "needs nothing.",
    )
    retry_count: int = Field(
        default=5,
        ge=1,
        le=100_000,
        description="With delay, how long a rest_sync caller or an SSE bridge waits: retry_count "
        "x delay.  Default 5 in a declared block, 60 without one: the guide's.",
    )
    delay: float = Field(
        default=5,
        ge=0.01,
        le=3600,
        description="Seconds; see retry_count.  Default 5 in a declared block, 1 without one: "
        "the guide's.",
    )
    in_memory: ReplyMemory = Field(
        default_factory=ReplyMemory, description="Settings of in_memory."
    )
    redis: ReplyRedis = Field(default_factory=ReplyRedis, description="Settings of redis.")
    valkey: ReplyValkey = Field(default_factory=ReplyValkey, description="Settings of valkey.")
    dynamodb: DynamoDb = Field(default_factory=DynamoDb, description="Settings of dynamodb.")

    @model_validator(mode="after")
    def _type_and_blocks_agree(self) -> Self:
        _check_type_named(self.model_fields_set)
        _check_table(self.type, self.dynamodb)
        return self


class SessionRedis(Block):
    """`session.redis`."""

    url: RedisUrl = Field(
        default="redis://localhost:6379",
        description="Server URL; may hold a password.  Default: a server on this machine.",
    )
    ttl: int = Field(
        default=WEEK,
        ge=1,
        le=YEAR,
        description="Seconds a session is kept after its last turn.  Default a week: the guide's.",
    )
    prefix: str = Field(
        default="ak:sessions:", description="What keys begin with.  Empty: nothing."
    )


class SessionValkey(SessionRedis):
    """`session.valkey`."""

    url: ValkeyUrl = Field(
        default="valkey://localhost:6379",
        description="Server URL; may hold a password.  Default: a server on this machine.",
    )


class SessionMemory(Block):
    """`session.in_memory`: bounded, lost with the process."""

    ttl: float = Field(
        default=WEEK,
        ge=0.05,
        le=YEAR,
        description="Seconds a session is kept after its last turn.  Default one week: as in the "
        "shared stores.",
    )
    max_sessions: int = Field(
        default=20_000,
        ge=1,
        le=10_000_000,
        description="Sessions kept; the one idle longest gives way.  Default 20000: fits a small "
        "container with short histories.",
    )


class SessionCache(Block):
    """`session.cache`: a key of the guide, without effect here."""

    size: int = Field(
        default=256,
        ge=0,
        le=10_000_000,
        description="Sessions.  No effect: claiming a turn reads its history in the same step, "
        "so there is nothing to cache.  0: the same.  Default 256: the guide's.",
    )


class ConnectionStore(Block):
    """`session.connection_store`: which sockets a user has, and which pod holds them."""

    table_name: str | None = Field(
        default=None,
        min_length=3,
        max_length=255,
        description="The existing connections table; dynamodb sessions only.  Unset: none.",
    )
    ttl: int = Field(
        default=DAY,
        ge=1,
        le=YEAR,
        description="Seconds until the entry of a lost pod expires; live ones are renewed.  "
        "Default one day: the guide's.",
    )


class Session(Block):
    """`session`: histories, ledgers and connections; all three follow `type`."""

    type: SessionType = Field(
        default="in_memory",
        description="Kind of store.  in_memory serves one process only.  Default in_memory: "
        "needs nothing.",
    )
    lease: float = Field(
        default=10,
        ge=0.05,
        le=3600,
        description="Seconds a runner's claim of a session lives unless renewed: how long a dead "
        "runner keeps others from it.  Default 10: several renewals fit in.",
    )
    max_history_turns: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        description="Finished turns kept per session; the oldest give way.  Default 1000: far "
        "beyond any model's context.",
    )
    cache: SessionCache | None = Field(
        default=None, description="A key of the guide, accepted without effect.  Unset: none."
    )
    in_memory: SessionMemory = Field(
        default_factory=SessionMemory, description="Settings of in_memory."
    )
    redis: SessionRedis = Field(default_factory=SessionRedis, description="Settings of redis.")
    valkey: SessionValkey = Field(default_factory=SessionValkey, description="Settings of valkey.")
    dynamodb: DynamoDb = Field(default_factory=DynamoDb, description="Settings of dynamodb.")
    connection_store: ConnectionStore = Field(
        default_factory=ConnectionStore, description="The store of connections."
    )

    @field_validator("type", mode="before")
    @classmethod
    def _supported(cls, value: object) -> object:
        if value in _UNSUPPORTED_SESSIONS:
            raise ValueError(f"{value} sessions are not supported; use valkey, redis or dynamodb")
        return value

    @model_validator(mode="after")
    def _type_and_blocks_agree(self) -> Self:
        _check_type_named(self.model_fields_set)
        _check_table(self.type, self.dynamodb)
        return self


def _check_type_named(declared: Iterable[str]) -> None:
    shared = sorted({"redis", "valkey", "dynamodb"}.intersection(declared))
    if shared and "type" not in declared:
        raise ValueError(
            f"a {shared[0]} block is declared but type is not, so in_memory would be used; "
            f"set type: {shared[0]}"
        )


def _check_table(type_: str, dynamodb: DynamoDb) -> None:
    if type_ == "dynamodb" and dynamodb.table_name is None:
        raise ValueError(
            "type is dynamodb but dynamodb.table_name is not set; name the existing table"
        )
