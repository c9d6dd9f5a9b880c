"""With books on a real Valkey, where sessions are: a session's share, and all else as without."""

import itertools
from collections.abc import Iterator

import pytest

from turnline.config import Settings
from turnline.protocol.clock import SystemClock
from turnline.store.registry import open_bookkeeping
from turnline.testing.conformance.transport import TransportHarness
from turnline.testing.conformance.transport.bounds import BoundCases
from turnline.testing.conformance.transport.dead_letters import DeadLetterCases
from turnline.testing.conformance.transport.deduplication import DeduplicationCases
from turnline.testing.conformance.transport.settling import SettlingCases
from turnline.testing.servers.elasticmq import ElasticMqServer
from turnline.testing.servers.valkey import ValkeyServer, running_valkey
from turnline.transport.sqs.harness import SqsHarness

_NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def valkey() -> Iterator[ValkeyServer]:
    with running_valkey() as valkey:
        yield valkey


@pytest.fixture
def harness(server: ElasticMqServer, valkey: ValkeyServer) -> TransportHarness:
    block = {"url": valkey.url, "prefix": f"t{next(_NUMBERS)}:"}
    settings = Settings.model_validate({"session": {"type": "valkey", "valkey": block}})
    return SqsHarness(server.url, open_books=lambda: open_bookkeeping(settings, SystemClock()))


class TestBoundCases(BoundCases):
    """Every case: shares are kept here."""

    @pytest.fixture
    def harness(self, harness: TransportHarness) -> TransportHarness:
        return harness


class TestDeduplicationCases(DeduplicationCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, harness: TransportHarness) -> TransportHarness:
        return harness


class TestSettlingCases(SettlingCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, harness: TransportHarness) -> TransportHarness:
        return harness


class TestDeadLetterCases(DeadLetterCases):
    """Every case but the declared differences."""

    @pytest.fixture
    def harness(self, harness: TransportHarness) -> TransportHarness:
        return harness
