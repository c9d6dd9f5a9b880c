"""The stores on a server in cluster mode, which refuses a script whose names are in two slots."""

from collections.abc import Iterator

import pytest

from turnline.protocol.clock import SystemClock
from turnline.store.valkey.server import open_commands
from turnline.store.valkey.store_rig import ConnectionRig, ReplyRig, SessionRig, at
from turnline.testing.conformance.stores import (
    ConnectionHarness,
    ConnectionStoreSuite,
    ReplyHarness,
    SessionHarness,
)
from turnline.testing.conformance.stores.cancel_cases import CancelCases, CancelNoticeCases
from turnline.testing.conformance.stores.commit_cases import CommitCases
from turnline.testing.conformance.stores.gap_cases import RetryCases
from turnline.testing.conformance.stores.reply_cases import AdmissionCases, EndCases
from turnline.testing.conformance.stores.stream_cases import ReaderCases
from turnline.testing.servers.valkey import ValkeyServer, running_valkey


@pytest.fixture(scope="module")
def server() -> Iterator[ValkeyServer]:
    with running_valkey("--cluster-enabled", "yes") as server:
        yield server


@pytest.fixture(autouse=True)
async def all_slots(server: ValkeyServer) -> None:
    async with open_commands(at(server), SystemClock()) as commands:
        if (await commands.call("CLUSTER", "INFO")).startswith(b"cluster_state:ok"):
            return
        await commands.call("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        while not (await commands.call("CLUSTER", "INFO")).startswith(b"cluster_state:ok"):
            pass


class TestReplies(AdmissionCases, EndCases, ReaderCases, RetryCases):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> ReplyHarness:
        return ReplyRig(server)


class TestSessions(CommitCases, CancelCases, CancelNoticeCases):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> SessionHarness:
        return SessionRig(server)


class TestConnections(ConnectionStoreSuite):
    @pytest.fixture
    def harness(self, server: ValkeyServer) -> ConnectionHarness:
        return ConnectionRig(server)
