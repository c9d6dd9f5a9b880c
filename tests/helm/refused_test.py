"""Mistakes in values are refused before anything reaches a cluster."""

from collections.abc import Mapping
from typing import Any

import pytest

from helm.chart import AGENTS, EKS, EXTERNAL_KAFKA, JWT, Refused, flavour, merged, render

KAFKA = merged(AGENTS, EXTERNAL_KAFKA)
ON_EKS = merged(flavour("eks"), AGENTS, EKS)


def queues(**blocks: object) -> dict[str, Any]:
    return {"settings": {"execution": {"queues": blocks}}}


def execution(**settings: object) -> dict[str, Any]:
    return {"settings": {"execution": settings}}


def session(**settings: object) -> dict[str, Any]:
    return {"settings": {"session": settings}}


MISTAKES: dict[str, Mapping[str, Any]] = {
    # Names and kinds.
    "an unknown value": {"replicaCount": 3},
    "an unknown value in a block": {"autoscaling": {"minReplica": 1}},
    "an unknown value of a part": {"ioHandler": {"resource": {}}},
    "an unknown setting": execution(turn_timout=5),
    "an unknown setting of the broker": queues(nats={"partition": 3}),
    "a setting of another kind": execution(max_concurrency="many"),
    "a setting out of its range": execution(max_concurrency=0),
    "an unknown layout": {"layout": "three"},
    "an unknown transport": queues(type="rabbitmq"),
    "queues in memory": queues(type="in_memory"),
    "sessions in memory": session(type="in_memory"),
    "answers in memory": execution(response_store={"type": "in_memory"}),
    "no kind of sessions": session(type=None),
    "a name Kubernetes does not take": {"fullnameOverride": "Chat_1"},
    "a size that is none": {"nats": {"storage": "10 GB"}},
    "a pull policy that is none": {"image": {"pullPolicy": "Sometimes"}},
    "an image of agents without its tag": {
        "image": {"tag": "9"},
        "agentRunner": {"image": {"tag": ""}},
    },
    "an image of another part without its tag": {
        "ioHandler": {"image": {"repository": "registry.example/handler"}}
    },
    # What the chart says itself.
    "a port of its own": {"settings": {"api": {"port": 9000}}},
    "a port of pushes of its own": {"settings": {"websocket_api": {"push_port": 9000}}},
    "a variable that the chart sets": {"defaults": {"env": [{"name": "AK_POD_IP", "value": "x"}]}},
    # Secrets.
    "a secret as a setting": {
        "settings": {"websocket_api": {"push_auth_token": "0123456789abcdef"}}
    },
    "a key as a setting": {"settings": {"auth": {"type": "jwt", "jwt": {"secret": "x" * 32}}}},
    "a password in an address": merged(
        {"valkey": {"enabled": False}}, session(valkey={"url": "valkey://:secret@cache:6379"})
    ),
    "a password of Kafka as a setting": merged(
        KAFKA, queues(kafka={"client_config": {"sasl.password": "x"}})
    ),
    "SASL without a password": merged(KAFKA, {"secrets": {"kafka": {"existingSecret": ""}}}),
    "tokens without a key": {"settings": {"auth": {"type": "jwt"}}},
    "tokens with two keys": merged(JWT, {"secrets": {"jwt": {"generate": True}}}),
    "a key without tokens": {"secrets": {"jwt": {"generate": True}}},
    "two ways to sign in to NATS": {
        "secrets": {"nats": {"existingSecret": "a", "credentialsSecret": "b"}}
    },
    "a validator without a name": {"settings": {"auth": {"type": "custom"}}},
    # Who scales.
    "replicas beside KEDA": {"agentRunner": {"replicas": 3}},
    "replicas beside an autoscaler": {
        "ioHandler": {"replicas": 3, "cpuAutoscaling": {"enabled": True}}
    },
    "runners scaled by CPU": {"agentRunner": {"cpuAutoscaling": {"enabled": True}}},
    "more runners at least than at most": {"autoscaling": {"minReplicas": 9, "maxReplicas": 2}},
    "runners for no turns": {"autoscaling": {"turnsPerReplica": 0}},
    "an age below the longest turn": {"autoscaling": {"oldestTurnSeconds": 20}},
    "an age on SQS": merged(ON_EKS, {"autoscaling": {"oldestTurnSeconds": 900}}),
    "CPU without a request": {
        "ioHandler": {
            "cpuAutoscaling": {"enabled": True},
            "resources": {"requests": {"cpu": None}},
        }
    },
    "Kafka counted by KEDA without its user": merged(KAFKA, {"autoscaling": {"by": "broker"}}),
    "SQS counted by KEDA without a region": merged(
        ON_EKS, {"autoscaling": {"by": "broker"}}, queues(sqs={"region": None})
    ),
    # Brokers and stores.
    "SQS without its queues": merged(flavour("eks"), AGENTS),
    "SQS queues that keep no order": merged(
        ON_EKS, queues(input={"url": "https://sqs.eu-west-1.amazonaws.com/1/input"})
    ),
    "SQS queues by an operator": merged(ON_EKS, {"provisioning": {"by": "resources"}}),
    "NATS nowhere": {"nats": {"enabled": False}},
    "NATS twice": queues(nats={"url": "nats://elsewhere:4222"}),
    "Kafka nowhere": merged(KAFKA, queues(kafka={"bootstrap_servers": None})),
    "Kafka's cluster without a user": {
        "kafka": {"cluster": {"create": True}, "user": {"create": False}}
    },
    "Kafka's user under the name of the release's secret": merged(
        flavour("baremetal-kafka"), {"secrets": {"kafka": {"username": "chat-turnline"}}}
    ),
    "sessions elsewhere beside the Valkey of the release": session(
        valkey={"url": "valkeys://cache.example:6379"}
    ),
    "answers elsewhere beside the Valkey of the release": execution(
        response_store={"type": "redis", "redis": {"url": "rediss://cache.example:6379"}}
    ),
    "Valkey nowhere": {"valkey": {"enabled": False}},
    "more copies than servers": queues(nats={"replicas": 3}),
    "two servers, of which none may go": {"nats": {"replicas": 2}},
    "DynamoDB without a table": session(type="dynamodb"),
    # Sockets.
    "answers over sockets without a gateway": execution(mode="async"),
    "a gateway that nobody checks tokens for": {"wsGateway": {"enabled": True}},
    "five services that nobody checks tokens for": {"layout": "five"},
    # The way in.
    "an ingress without a host": {"ingress": {"enabled": True}},
    "sockets cut off between two pings": merged(
        {"ingress": {"enabled": True, "host": "chat.example", "idleSeconds": 30}},
        {"settings": {"websocket_api": {"ping_interval": 60}}},
    ),
    "an unknown ingress": {"ingress": {"controller": "haproxy"}},
}


@pytest.mark.parametrize("mistake", sorted(MISTAKES))
def test_a_mistake_is_refused(mistake: str) -> None:
    with pytest.raises(Refused, match=r"turnline"):
        render(merged(AGENTS, MISTAKES[mistake]))


def test_a_runner_without_agents_is_refused() -> None:
    with pytest.raises(Refused, match="agentRunner"):
        render({})


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("an unknown transport", "settings/execution/queues/type"),
        ("an unknown setting", "turn_timout"),
        ("replicas beside KEDA", "agentRunner/replicas"),
        ("more copies than servers", "a stream has no more copies than there are servers"),
        ("an age below the longest turn", "raise it"),
        ("Valkey nowhere", "set the url"),
        ("sessions elsewhere beside the Valkey of the release", "set valkey.enabled=false"),
        ("answers elsewhere beside the Valkey of the release", "set valkey.enabled=false"),
        ("an image of agents without its tag", "agentRunner.image.tag"),
        ("an image of another part without its tag", "ioHandler.image.tag"),
        ("Kafka's user under the name of the release's secret", "choose another"),
    ],
)
def test_what_is_wrong_is_told(mistake: str, told: str) -> None:
    with pytest.raises(Refused) as caught:
        render(merged(AGENTS, MISTAKES[mistake]))

    assert told in str(caught.value)
