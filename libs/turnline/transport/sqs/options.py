"""What an SQS transport is made from: where SQS is, and which queues are whose.

Plain values; `options_from` reads them out of `execution.queues`.
"""

import re
from dataclasses import dataclass

from turnline.awssdk import AwsOptions
from turnline.config import Settings

# What AWS allows.
MOST_VISIBLE_SECONDS = 43_200
MOST_WAIT_SECONDS = 20
MOST_IN_BATCH = 10
MOST_BYTES = 1024 * 1024

_AWS_HOST = re.compile(r"https?://sqs[.-](?:fips\.)?([a-z0-9-]+)\.(?:amazonaws|api\.aws)")
_DEAD_SUFFIX = "-dlq.fifo"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueOptions:
    """One queue.

    Attributes:
        name: `input` or `output`, for logs.
        url: of the FIFO queue; empty: this process does not use it.
        max_receive_count: attempts the application makes; the queue's own ceiling is above it.
        no_of_consumers: readers per process, for the line at start-up.
        max_per_session: messages of one session that it holds, where books are kept; 0: any number.
    """

    name: str
    url: str
    max_receive_count: int = 3
    no_of_consumers: int = 1
    max_per_session: int = 0

    @property
    def queue_name(self) -> str:
        """The last part of its URL."""
        return self.url.rpartition("/")[2]

    @property
    def dead_name(self) -> str:
        """How the queue of its dead letters is called unless its redrive policy names another."""
        return self.queue_name.removesuffix(".fifo") + _DEAD_SUFFIX


@dataclass(frozen=True, slots=True, kw_only=True)
class SqsOptions:
    """Both queues and where they are.

    Attributes:
        region: None: what the queues' URLs or the AWS environment say.
        endpoint_url: of an emulator or a private endpoint; None: AWS's own.
        request_timeout: seconds to wait for the answer to one call.
        visibility_timeout: the lease, whole seconds.
        wait_time: seconds a receive call waits for messages.
        batch_size: messages one receive call takes at most.
        max_messages: what each queue holds; more are refused.
        max_dead_letters: dead letters each queue holds; the oldest gives way.
        max_bytes: largest message; None: what the queue takes.
    """

    input: QueueOptions
    output: QueueOptions
    region: str | None = None
    endpoint_url: str | None = None
    request_timeout: float = 10.0
    visibility_timeout: int = 10
    wait_time: int = MOST_WAIT_SECONDS
    batch_size: int = 1
    max_messages: int = 10_000
    max_dead_letters: int = 1_000
    max_bytes: int | None = None

    @property
    def queues(self) -> tuple[QueueOptions, ...]:
        """The queues that this process uses, input first."""
        return tuple(queue for queue in (self.input, self.output) if queue.url)

    @property
    def aws(self) -> AwsOptions:
        """What the client is made from; its answers may wait as long as a receive does."""
        return AwsOptions(
            region=self.region or region_of(self.queues),
            endpoint_url=self.endpoint_url,
            request_seconds=self.request_timeout + self.wait_time,
            max_connections=128,
        )


def region_of(queues: tuple[QueueOptions, ...]) -> str | None:
    """Read the region out of a queue's URL; None: it says none."""
    found = (_AWS_HOST.match(queue.url) for queue in queues)
    return next((match[1] for match in found if match), None)


def options_from(settings: Settings) -> SqsOptions:
    """Read what `execution.queues` says."""
    queues = settings.execution.queues
    asked = queues.sqs
    return SqsOptions(
        input=QueueOptions(
            name="input",
            url=queues.input.url or "",
            max_receive_count=queues.input.max_receive_count,
            no_of_consumers=queues.input.no_of_consumers,
            max_per_session=asked.max_messages_per_session,
        ),
        output=QueueOptions(
            name="output",
            url=queues.output.url or "",
            max_receive_count=queues.output.max_receive_count,
            no_of_consumers=queues.output.no_of_consumers,
        ),
        region=asked.region,
        endpoint_url=asked.endpoint_url,
        request_timeout=asked.request_timeout,
        visibility_timeout=asked.visibility_timeout,
        wait_time=asked.wait_time,
        batch_size=queues.batch_size,
        max_messages=asked.max_messages,
        max_dead_letters=asked.max_dead_letters,
    )
