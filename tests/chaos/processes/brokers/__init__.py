"""The brokers an installation may run over; which they are is said here only."""

from collections.abc import Mapping

from chaos.processes.brokers.kafka import one_kafka, three_kafka
from chaos.processes.brokers.nats import one_nats, three_nats
from chaos.processes.brokers.port import (
    Block,
    Broker,
    Cluster,
    Ill,
    OpenBroker,
    OpenCluster,
    Served,
)
from chaos.processes.brokers.sqs import one_sqs

BROKERS: Mapping[str, OpenBroker] = {"kafka": one_kafka, "nats": one_nats, "sqs": one_sqs}
# Those that can be ended and started with what they kept.
RESTARTABLE = ("kafka", "nats")
CLUSTERS: Mapping[str, OpenCluster] = {"kafka": three_kafka, "nats": three_nats}

__all__ = [
    "BROKERS",
    "CLUSTERS",
    "RESTARTABLE",
    "Block",
    "Broker",
    "Cluster",
    "Ill",
    "OpenBroker",
    "OpenCluster",
    "Served",
]
