"""What a NATS transport is made from: where the servers are, and what lies on them.

Plain values; `options_from` reads them out of `execution.queues`.
"""

from dataclasses import dataclass
from pathlib import Path

from turnline.config import Settings

# What a message's headers may take of the server's `max_payload`, which counts both.
HEADER_ROOM_BYTES = 16 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """How to reach the servers.

    Attributes:
        urls: where to connect; a user, password or token may stand in them.  Never logged whole.
        request_timeout: seconds to wait for one answer.
        credentials_file: a user's JWT and seed; None: none.
        nkey_seed_file: an nkey seed; None: none.
        tls_ca_file: who may have signed the server's certificate; None: the system's authorities.
        tls_cert_file: the client's own certificate; None: none.
        tls_key_file: its key; None: it stands in `tls_cert_file`.
    """

    urls: tuple[str, ...]
    request_timeout: float = 10.0
    credentials_file: Path | None = None
    nkey_seed_file: Path | None = None
    tls_ca_file: Path | None = None
    tls_cert_file: Path | None = None
    tls_key_file: Path | None = None

    @property
    def wants_tls(self) -> bool:
        """Whether a connection without TLS must be refused."""
        files = (self.tls_ca_file, self.tls_cert_file, self.tls_key_file)
        return any(files) or any(url.startswith(("tls://", "wss://")) for url in self.urls)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """One queue.

    Attributes:
        name: `input` or `output`, for logs.
        stream: its stream; companions are named after it.
        prefix: its subjects are `<prefix>.<partition>.<session>`.
        max_per_session: one session's share of the stream, messages; 0 means all of it.
        no_of_consumers: readers per process, for the line at start-up.
    """

    name: str
    stream: str
    prefix: str
    max_per_session: int = 0
    no_of_consumers: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsOptions:
    """Both queues and the servers they lie on.

    Attributes:
        partitions: what sessions hash to.
        max_ack_pending: unsettled deliveries per partition, with a consumer for each; None: one
            consumer per queue and no such limit.
        ack_wait: the lease, seconds.
        duplicate_window: seconds within which the server drops a repeated id; 0: its own default.
        max_age: seconds a message may stay; 0: for ever.
        max_messages: what each queue holds; more are refused.
        max_dead_letters: what each dead-letter stream holds; the oldest gives way.
        replicas: copies of each stream, 1 to 5.
        max_bytes: largest encoded envelope; None: what the server takes.
        auto_provision: create what is missing.
    """

    server: ServerOptions
    input: QueueOptions
    output: QueueOptions
    partitions: int = 32
    max_ack_pending: int | None = None
    ack_wait: float = 10.0
    duplicate_window: float = 300.0
    max_age: float = 86_400.0
    max_messages: int = 10_000
    max_dead_letters: int = 1_000
    replicas: int = 1
    max_bytes: int | None = None
    auto_provision: bool = False

    @property
    def queues(self) -> tuple[QueueOptions, QueueOptions]:
        """Both queues, input first."""
        return self.input, self.output


def options_from(settings: Settings) -> NatsOptions:
    """Read what `execution.queues` says."""
    queues = settings.execution.queues
    asked = queues.nats
    return NatsOptions(
        server=ServerOptions(
            urls=tuple(url.strip() for url in asked.url.split(",")),
            request_timeout=asked.request_timeout,
            credentials_file=asked.credentials_file,
            nkey_seed_file=asked.nkey_seed_file,
            tls_ca_file=asked.tls_ca_file,
            tls_cert_file=asked.tls_cert_file,
            tls_key_file=asked.tls_key_file,
        ),
        input=QueueOptions(
            name="input",
            stream=asked.input_stream,
            prefix=asked.input_subject_prefix,
            max_per_session=asked.max_messages_per_session,
            no_of_consumers=queues.input.no_of_consumers,
        ),
        output=QueueOptions(
            name="output",
            stream=asked.output_stream,
            prefix=asked.output_subject_prefix,
            no_of_consumers=queues.output.no_of_consumers,
        ),
        partitions=asked.partitions,
        max_ack_pending=asked.max_ack_pending,
        ack_wait=asked.ack_wait,
        duplicate_window=asked.duplicate_window,
        max_age=asked.max_age,
        max_messages=asked.max_messages,
        max_dead_letters=asked.max_dead_letters,
        replicas=asked.replicas,
        auto_provision=asked.auto_provision,
    )
