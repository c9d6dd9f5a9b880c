"""`execution.queues`: which transport carries the turns, and how each one behaves."""

import re
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, JsonValue, field_validator, model_validator

from turnline.config.block import DAY, WEEK, Block, HttpUrl, NatsUrl

TransportType = Literal["in_memory", "sqs", "kafka", "nats"]

_STREAM_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SUBJECT_PREFIX = re.compile(r"(?=.{1,128}$)[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


class InputQueue(Block):
    """`execution.queues.input`: the queue from request handlers and gateways to runners."""

    url: HttpUrl | None = Field(
        default=None,
        description="URL of the FIFO queue; SQS only.  Unset: none, right for other transports.",
    )
    max_receive_count: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Attempts before a turn fails for good.  1: no retry.  Default 3: enough for "
        "a crash and a hiccup.  On SQS keep it one below the redrive policy's maxReceiveCount.",
    )
    no_of_consumers: int = Field(
        default=5,
        ge=1,
        le=1024,
        description="Consumers per runner.  How many turns run at once is "
        "execution.max_concurrency.  Default 5: the guide's.",
    )


class OutputQueue(Block):
    """`execution.queues.output`: the queue from runners to responders."""

    url: HttpUrl | None = Field(
        default=None,
        description="URL of the FIFO queue; SQS only.  Unset: none, right for other transports.",
    )
    max_receive_count: int = Field(
        default=3,
        ge=1,
        le=1000,
        description="Attempts to keep or push an answer before it is dead-lettered.  1: no "
        "retry.  Default 3: the guide's.",
    )
    no_of_consumers: int = Field(
        default=2,
        ge=1,
        le=1024,
        description="Consumers per responder.  Default 2: keeping an answer is far quicker than "
        "making one.",
    )


class InMemory(Block):
    """`execution.queues.in_memory`: queues inside one process; nothing outlives it."""

    ack_wait: float = Field(
        default=10,
        ge=0.05,
        le=DAY,
        description="Seconds until an unsettled delivery comes back.  Renewed while a turn runs, "
        "so it may be shorter than the longest turn.  Default 10: what a dead runner costs.",
    )
    dedup_window: float = Field(
        default=300,
        ge=0,
        le=DAY,
        description="Seconds within which a repeated request id is dropped.  0: no "
        "deduplication.  Default 300: what SQS does.",
    )
    max_messages: int = Field(
        default=10_000,
        ge=1,
        le=10_000_000,
        description="Messages on each queue, waiting or in work; more are refused with 503.  "
        "Default 10000: some 100 MB of small turns.",
    )
    max_messages_per_session: int = Field(
        default=100,
        ge=0,
        le=10_000_000,
        description="One session's share of the input queue, messages; more are refused with "
        "429.  0: all of it.  Default 100: no person types faster.",
    )
    retry_backoff: float = Field(
        default=0.5,
        ge=0,
        le=3600,
        description="Seconds before a second attempt; doubles with each further one.  0: at "
        "once.  Default 0.5: long enough for most hiccups.",
    )
    max_dead_letters: int = Field(
        default=1000,
        ge=1,
        le=1_000_000,
        description="Dead letters held per queue; the oldest gives way.  Default 1000: enough to "
        "see a pattern.",
    )

    @model_validator(mode="after")
    def _share_fits(self) -> Self:
        if self.max_messages_per_session > self.max_messages:
            raise ValueError(
                f"max_messages_per_session ({self.max_messages_per_session}) is above "
                f"max_messages ({self.max_messages}); lower the one or raise the other"
            )
        return self


class Nats(Block):
    """`execution.queues.nats`: JetStream work-queue streams, partitioned by session."""

    url: NatsUrl = Field(
        default="nats://localhost:4222",
        description="Server URLs, separated by commas.  Default: a server on this machine.",
    )
    input_stream: str = Field(
        default="AGENT_REQUESTS", min_length=1, description="Stream of turns."
    )
    input_subject_prefix: str = Field(
        default="chat.req",
        min_length=1,
        description="Subjects of turns: <prefix>.<partition>.<session>.",
    )
    output_stream: str = Field(
        default="AGENT_REPLIES", min_length=1, description="Stream of answers."
    )
    output_subject_prefix: str = Field(
        default="chat.out",
        min_length=1,
        description="Subjects of answers: <prefix>.<partition>.<session>.",
    )
    partitions: int = Field(
        default=32,
        ge=1,
        le=1024,
        description="Partitions that sessions hash to; changing it re-maps sessions.  Default "
        "32: the guide's.",
    )
    max_ack_pending: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description="Unsettled deliveries per partition.  1: the guide's model, one turn per "
        "partition at a time.  Unset: the transport chooses, ordering by session.",
    )
    ack_wait: float = Field(
        default=10,
        ge=1,
        le=DAY,
        description="Seconds until an unsettled delivery comes back.  Renewed while a turn runs, "
        "so it may be shorter than the longest turn.  Default 10, not the guide's 300: what a "
        "dead runner costs (ADR 0009).",
    )
    retry_backoff: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        description="Seconds before a second attempt; doubles with each further one.  0: at "
        "once.  Default 2: the guide's.",
    )
    duplicate_window: float = Field(
        default=300,
        ge=0,
        le=WEEK,
        description="Seconds within which the server drops a repeated message id.  0: the "
        "server's own default.  Default 300: what SQS does.",
    )
    max_age: float = Field(
        default=DAY,
        ge=0,
        le=365 * DAY,
        description="Seconds a message may wait in a stream.  0: for ever.  Default one day: "
        "nobody waits longer for an answer.",
    )
    request_timeout: float = Field(
        default=10,
        ge=0.1,
        le=300,
        description="Seconds to wait for the server's answer to one request.  Default 10: more "
        "means the server is down.",
    )
    max_messages: int = Field(
        default=10_000,
        ge=1,
        le=100_000_000,
        description="Messages in each stream, waiting or in work; more are refused with 503.  "
        "Default 10000: an hour's work of a few runners.",
    )
    max_messages_per_session: int = Field(
        default=100,
        ge=0,
        le=100_000_000,
        description="One session's share of the input stream, messages; more are refused with "
        "429.  0: all of it.  Default 100: no person types faster.",
    )
    max_dead_letters: int = Field(
        default=1000,
        ge=1,
        le=10_000_000,
        description="Dead letters held per queue; the oldest gives way.  Default 1000: enough to "
        "see a pattern.",
    )
    replicas: int = Field(
        default=1,
        ge=1,
        le=5,
        description="Copies of each stream over the servers of a cluster.  Default 1: a single "
        "server has no more; 3 outlives the loss of one.",
    )
    credentials_file: Path | None = Field(
        default=None, description="File with a user's JWT and seed (`.creds`).  Unset: none."
    )
    nkey_seed_file: Path | None = Field(
        default=None, description="File with an nkey seed.  Unset: none."
    )
    tls_ca_file: Path | None = Field(
        default=None,
        description="File with the authorities that may sign the server's certificate; naming it "
        "refuses servers without TLS, as tls:// does.  Unset: the system's.",
    )
    tls_cert_file: Path | None = Field(
        default=None, description="File with the client's certificate.  Unset: none."
    )
    tls_key_file: Path | None = Field(
        default=None,
        description="File with the key of `tls_cert_file`.  Unset: it stands in the same file.",
    )
    auto_provision: bool = Field(
        default=False,
        description="Create missing streams and consumers at start-up.  Default false: in "
        "production the cluster's tooling owns them, and a missing one stops start-up.",
    )

    @model_validator(mode="after")
    def _window_fits(self) -> Self:
        if 0 < self.max_age < self.duplicate_window:
            raise ValueError(
                f"duplicate_window ({self.duplicate_window:g} s) is above max_age "
                f"({self.max_age:g} s), which the server refuses; lower the one or raise the other"
            )
        if self.input_stream == self.output_stream:
            raise ValueError("input_stream and output_stream are the same; name two streams")
        return self

    @model_validator(mode="after")
    def _share_fits(self) -> Self:
        if self.max_messages_per_session > self.max_messages:
            raise ValueError(
                f"max_messages_per_session ({self.max_messages_per_session}) is above "
                f"max_messages ({self.max_messages}); lower the one or raise the other"
            )
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        for field in ("input_stream", "output_stream"):
            if not _STREAM_NAME.fullmatch(getattr(self, field)):
                raise ValueError(f"{field} may hold letters, digits, - and _, up to 64 of them")
        for field in ("input_subject_prefix", "output_subject_prefix"):
            if not _SUBJECT_PREFIX.fullmatch(getattr(self, field)):
                raise ValueError(
                    f"{field} must be words of letters, digits, - and _ with dots between, "
                    "at most 128 characters"
                )
        one, other = self.input_subject_prefix + ".", self.output_subject_prefix + "."
        if one.startswith(other) or other.startswith(one):
            raise ValueError(
                "input_subject_prefix and output_subject_prefix overlap; name two that do not"
            )
        return self

    @model_validator(mode="after")
    def _credentials_fit(self) -> Self:
        if self.credentials_file and self.nkey_seed_file:
            raise ValueError("credentials_file and nkey_seed_file are both given; name one")
        if self.tls_key_file and not self.tls_cert_file:
            raise ValueError("tls_key_file has no tls_cert_file; name the certificate too")
        return self


class Kafka(Block):
    """`execution.queues.kafka`: one topic each way, keyed by session."""

    bootstrap_servers: str = Field(
        default="localhost:9092",
        min_length=1,
        description="host:port of brokers to start from, separated by commas.  Default: a broker "
        "on this machine.",
    )
    input_topic: str = Field(default="agent-input", min_length=1, description="Topic of turns.")
    output_topic: str = Field(default="agent-output", min_length=1, description="Topic of answers.")
    group_id: str = Field(
        default="agent-kernel",
        min_length=1,
        description="Consumer group; `-input` or `-output` is appended.  A new name replays what "
        "the topics still hold.",
    )
    dlq_suffix: str = Field(
        default=".dlq", min_length=1, description="Dead letters go to <topic><dlq_suffix>."
    )
    retry_backoff: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        description="Seconds before a second attempt, inside the process; doubles with each "
        "further one.  0: at once.  Default 2: the guide's.",
    )
    delivery_timeout: float = Field(
        default=30,
        ge=1,
        le=3600,
        description="Seconds to wait until the brokers confirmed a message.  Default 30: a "
        "leader election fits in.",
    )
    metadata_timeout: float = Field(
        default=5,
        ge=0.1,
        le=300,
        description="Seconds to wait for topic metadata at start-up.  Default 5: more means no "
        "broker answers.",
    )
    ack_wait: float = Field(
        default=10,
        ge=6,
        le=1800,
        description="Seconds without a sign of life until a process's partitions go to others, "
        "and until an unsettled delivery comes back; renewed while a turn runs.  Brokers take 6 "
        "to 1800.  Default 10: what a dead runner costs (ADR 0009).",
    )
    duplicate_window: float = Field(
        default=300,
        ge=0,
        le=WEEK,
        description="Seconds within which a repeated request id is dropped.  0: no "
        "deduplication.  Default 300: what SQS does.",
    )
    partitions: int = Field(
        default=32,
        ge=1,
        le=10_000,
        description="Partitions of each topic when `turnline provision` makes it: as many "
        "processes share a queue at most; more re-map sessions.  Default 32: the guide's.",
    )
    replicas: int = Field(
        default=1,
        ge=1,
        le=9,
        description="Copies of each topic when it is made.  Default 1: a single broker has no "
        "more; 3 outlives the loss of one.",
    )
    max_age: float = Field(
        default=DAY,
        ge=0,
        le=365 * DAY,
        description="Seconds a message stays in a topic when it is made, done or not.  0: for "
        "ever.  Default one day: nobody waits longer for an answer.",
    )
    max_messages: int = Field(
        default=10_000,
        ge=1,
        le=100_000_000,
        description="Messages on each queue, waiting or in work; more are refused with 503.  "
        "Default 10000: an hour's work of a few runners.",
    )
    max_messages_per_session: int = Field(
        default=100,
        ge=0,
        le=100_000_000,
        description="One session's share of the input queue, messages; more are refused with "
        "429.  0: all of it.  Default 100: no person types faster.",
    )
    max_dead_letters: int = Field(
        default=1000,
        ge=1,
        le=10_000_000,
        description="Dead letters held per queue; the oldest gives way.  Default 1000: enough to "
        "see a pattern.",
    )
    client_config: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Settings of librdkafka for both clients (SASL, TLS, tuning), as name to "
        "text, number or boolean.  Empty: none.",
    )

    @field_validator("client_config", mode="before")
    @classmethod
    def _dotted(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        nested = [name for name, entry in value.items() if isinstance(entry, dict | list)]
        if nested:
            raise ValueError(
                f"{', '.join(map(str, nested))} must be text, a number or a boolean; write "
                "librdkafka's dotted names as one key, such as security.protocol"
            )
        return value

    @model_validator(mode="after")
    def _two_topics(self) -> Self:
        if self.input_topic == self.output_topic:
            raise ValueError("input_topic and output_topic are the same; name two topics")
        return self

    @model_validator(mode="after")
    def _names_fit(self) -> Self:
        work = {"input_topic": self.input_topic, "output_topic": self.output_topic}
        for field, topic in work.items():
            for name in (topic, topic + self.dlq_suffix):
                if not _TOPIC_NAME.fullmatch(name) or name in (".", ".."):
                    raise ValueError(
                        f"{field} with dlq_suffix may hold letters, digits, ., - and _, "
                        "up to 249 of them"
                    )
            if topic + self.dlq_suffix in work.values():
                raise ValueError(
                    f"{field} with dlq_suffix names the other queue's topic; name another"
                )
        return self

    @model_validator(mode="after")
    def _share_fits(self) -> Self:
        if self.max_messages_per_session > self.max_messages:
            raise ValueError(
                f"max_messages_per_session ({self.max_messages_per_session}) is above "
                f"max_messages ({self.max_messages}); lower the one or raise the other"
            )
        return self


class Sqs(Block):
    """`execution.queues.sqs`: FIFO queues, whose URLs stand in `input.url` and `output.url`."""

    region: str | None = Field(
        default=None, min_length=1, description="AWS region.  Unset: what the AWS environment says."
    )
    endpoint_url: HttpUrl | None = Field(
        default=None,
        description="Where SQS is, for an emulator or a private endpoint.  Unset: AWS's own.",
    )
    visibility_timeout: int = Field(
        default=10,
        ge=1,
        le=43_200,
        description="Whole seconds until an unsettled delivery comes back, at most 12 hours (AWS). "
        " Renewed while a turn runs, so it may be shorter than the longest turn.  Default 10, not "
        "the guide's 300: what a dead runner costs (ADR 0009).",
    )
    wait_time: int = Field(
        default=20,
        ge=0,
        le=20,
        description="Seconds a receive call waits for messages, at most 20 (AWS).  0: not at "
        "all, which costs more calls.  Default 20: the fewest calls.",
    )
    retry_backoff: float = Field(
        default=2.0,
        ge=0,
        le=3600,
        description="Seconds before a second attempt; doubles with each further one.  0: at "
        "once.  Default 2: as on the other brokers.",
    )
    request_timeout: float = Field(
        default=10,
        ge=0.1,
        le=300,
        description="Seconds to wait for the answer to one call.  Default 10: more means that SQS "
        "is away.",
    )
    max_messages: int = Field(
        default=10_000,
        ge=1,
        le=100_000,
        description="Messages on each queue, waiting or in work, as SQS estimates; more are "
        "refused with 503.  At most 100000: SQS looks no further than 120000 for sessions with "
        "work.  Default 10000: an hour's work of a few runners.",
    )
    max_messages_per_session: int = Field(
        default=100,
        ge=0,
        le=100_000,
        description="One session's share of the input queue, messages; more are refused with "
        "429.  0: all of it.  Kept where sessions are on valkey or redis, since SQS does not count "
        "them.  Default 100: no person types faster.",
    )
    max_dead_letters: int = Field(
        default=1000,
        ge=1,
        le=2000,
        description="Dead letters held per queue; the oldest gives way.  At most 2000: each look "
        "takes all of them.  Default 1000: enough to see a pattern.",
    )


class Queues(Block):
    """`execution.queues`: the transport and both queues; a declared block names its `type`."""

    type: TransportType = Field(
        description="Transport.  It decides how processes are laid out, so a declared block must "
        "name it.  Without a block: in_memory."
    )
    input: InputQueue = Field(default_factory=InputQueue, description="Queue of turns.")
    output: OutputQueue = Field(default_factory=OutputQueue, description="Queue of answers.")
    batch_size: int = Field(
        default=1,
        ge=1,
        le=10,
        description="Messages taken in one receive call, at most 10 (AWS); SQS only.  Default 1: "
        "nothing waits in a buffer behind a long turn.",
    )
    in_memory: InMemory = Field(default_factory=InMemory, description="Settings of in_memory.")
    nats: Nats = Field(default_factory=Nats, description="Settings of nats.")
    kafka: Kafka = Field(default_factory=Kafka, description="Settings of kafka.")
    sqs: Sqs = Field(default_factory=Sqs, description="Settings of sqs.")
