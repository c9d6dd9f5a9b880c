"""What both queues of a transport share."""

from dataclasses import dataclass

from turnline.transport.background import Background
from turnline.transport.kafka.admin import Admin
from turnline.transport.kafka.commit_reader import CommitReader
from turnline.transport.kafka.producer import ConfirmedProducer
from turnline.transport.kafka.reader import LogReader
from turnline.transport.port import Bookkeeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Clients of the brokers, the books, and work that outlives its caller."""

    admin: Admin
    producer: ConfirmedProducer
    reader: LogReader
    commits: CommitReader
    background: Background
    books: Bookkeeping
